/* The option `segments` of hap: which ops may have ratios of their own (private to synth).
 *
 *     none           all ops have the same ratios
 *     layers         one segment per layer of the model, with its backward and updates
 *     ops            one segment per op: as many as the program allows
 *     metis:K        K segments of equal FLOPs with few bytes between them
 *     OP=NUMBER;...  by the names of forward ops (* is any text), or a file of such lines; other ops are in segment
 * 0 */
#pragma once

#include "data/graph/graph.h"

/* *segments: the same text, or the lines of the file; interned; NULL for "none". */
bool segments_parse(const char *text, const char **segments, GError **error);

/* Fills segment [op]. Fails with KILTER_ERROR_INPUT for an op that the model lacks, or too many
 * segments. */
bool segments_make(const char *segments, const Graph *graph, uint16_t *segment,
                   GError **error);
