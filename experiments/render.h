/* Text from JSON: a command makes its answer once, as JSON, and a template says how that reads.
 *
 *     {KEY}               the member: a string as it is, an integer, a real as %.4g, a list joined by commas; "-" without it
 *     {KEY:SPEC}          SPEC is [-][+][WIDTH][.PRECISION][KIND]; - aligns left. Kinds:
 *                           time bytes bandwidth rate    with a unit and three digits (data/base/units.h)
 *                           f g % ms mi                  %f, %g, in percent, in milliseconds, in 2^20
 *                           s                            "s" unless the number is 1
 *                           count over                   how many a list has; by how many more, or a number, than PRECISION
 *                           names rest                   "a, b, c and 4 more"; from the second on, "layers.1-7, layers.9"
 *     [A|B|C]             the first text of which every member is there, else none; null, false, "" and empty lists are not
 *     {?KEY} {!KEY}       nothing, but the text needs a member that is there and not 0, or one that is not
 *     {?KEY=WORD}         nothing, but the text needs the member to be this word
 *     {?KEY>N}            nothing, but the text needs the number, or the length of the list, to be larger
 *     {^KEY}              nothing, but the text needs a row that is the first with this member
 *     [=WIDTH:TEXT]       the text in so many columns; - aligns left
 *     [*KEY:ROW]          the row for each element of a list; [*KEY/SEPARATOR:ROW] with a text between, [*KEY<N:ROW] for the first N
 *     [*KEY:A&B&C]        elements whose B and C are equal make one row A B; {alike} is their number
 *     [*KEY:...]          of an object: one row for each member, with {key} and {value}
 *     \C                  the character C
 *
 * KEY is a path such as a.b or names.0. In a row its members come before those around it; "." is the element, ".a" a
 * member of no other than it, "#" its
 * index among the rows that are not empty. Lists and groups in a text are no reason to leave it out. */
#ifndef KILTER_EXPERIMENTS_RENDER_H
#define KILTER_EXPERIMENTS_RENDER_H

#include <glib.h>
#include <jansson.h>

/* Caller frees. A template that is not well formed is a mistake in the program. */
char *render(const char *text, const json_t *value);

#endif
