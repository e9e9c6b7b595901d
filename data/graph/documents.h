/* Packed sequences: documents one behind the other, whose tokens attend to no other document's.
 *
 * A text, "512" or "9000+500+40": their lengths, over and over until the sequence ends, which cuts
 * the last one. NULL: one document as long as the sequence. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

bool documents_are(const char *text);

/* The first token of the document of a token. */
uint64_t documents_first(const char *text, uint64_t token);

/* Pairs of a query among the first n tokens and a key that it sees: no later one, and of the last
 * `span` (0: all). */
double documents_pairs(const char *text, uint64_t n, uint64_t span);

/* Of `parts` of a sequence, each a chunk of its first and one of its second half (zigzag, which
 * makes equal parts of one document), the most pairs over the mean. */
double documents_fullest(const char *text, uint64_t seq, uint64_t span, uint32_t parts);
