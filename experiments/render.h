/* Text from JSON: a command makes its answer once, as JSON, and a template turns it
 * into text (data/answers/).
 *
 *     {KEY}               the member: a string as it is, an integer, a real as %.4g, a list joined by commas; "-" without it
 *     {KEY:SPEC}          SPEC is [-][+][WIDTH][.PRECISION][KIND]; - aligns left. Kinds:
 *                           time bytes bandwidth rate    with a unit and three digits (data/base/units.h)
 *                           f g % ms flop si n n%        %f, %g, in percent, in milliseconds, "1.04 GFLOP", "8.03 B", "114,000", "46.5 %"
 *                           s                            "s" unless the number is 1
 *                           brief                        a model's spec without its defaults
 *                           count over                   the length of a list; by how much it, or a number, exceeds PRECISION
 *                           names rest                   "a, b, c and 4 more"; from the second entry on, "layers.1-7, layers.9"
 *     [A|B|C]             the first text whose members are all there, else nothing; null, false, "" and empty lists count as absent
 *     {?KEY} {!KEY}       prints nothing; the text needs the member to be there and not 0, or (!) not to be
 *     {?KEY=WORD}         prints nothing; the text needs the member to be this word
 *     {?KEY>N}            prints nothing; the text needs the number, or the length of the list, to be larger than N
 *     {^KEY}              prints nothing; the text needs the row to be the first with this member
 *     [=WIDTH:TEXT]       the text in WIDTH columns; - aligns left
 *     [*KEY:ROW]          a row per element of a list; [*KEY/SEPARATOR:ROW] with a text between, [*KEY<N:ROW] the first N only
 *     [*KEY:A&B&C]        elements with equal B and C make one row A B; {alike} is their number
 *     [*KEY:...]          the same of an object: one row for each member, with {key} and {value}
 *     \C                  the character C
 *
 * KEY is a path such as a.b or names.0. In a row, members of the element hide those of the object
 * around it; "." is the element, ".a" a member of the element only, and "#" its index among the
 * rows that are not empty. An empty list or group inside a text does not make the text absent. */
#pragma once

#include <glib.h>
#include <jansson.h>

/* Caller frees. A template that is not well formed is a mistake in the program. */
char *render(const char *text, const json_t *value);
/* The same for pages: what stands for members is escaped, except of kind `raw`; a number keeps its
 * unit in the same line, which a + makes small. */
char *render_html(const char *text, const json_t *value);
/* The same for manual pages: what stands for members is escaped, except of kind `raw`, so that roff
 * sees no request, no escape and no hyphen that it may turn into a dash. */
char *render_roff(const char *text, const json_t *value);
