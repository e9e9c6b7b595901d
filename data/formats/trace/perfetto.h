/* Timelines in Perfetto's own format: the events of Chrome's JSON as protocol buffers, in a
 * fraction of the bytes. Part of data's public interface.
 *
 * Each process of Chrome's events becomes a process, each of its threads a track, each counter a
 * track of bytes; times are rounded to whole nanoseconds. */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether a file of that name is to be in this format: it ends in .pftrace or .perfetto-trace,
 * gzipped (.gz) or not. */
bool perfetto_is_name(const char *file);

typedef struct Perfetto Perfetto;

Perfetto *perfetto_new(void);
/* Appends an event of Chrome's: the name of a process or thread ("M"), a whole slice ("X") or the
 * value of a counter ("C"). A slice's args are texts and whole numbers. flow: ids of n_out arrows
 * that lead from the slice, then of n_in arrows that lead to it. */
void perfetto_add(Perfetto *perfetto, const json_t *event, const uint64_t *flow,
                  uint32_t n_out, uint32_t n_in);
/* The file's bytes. Frees the rest. */
GByteArray *perfetto_end(Perfetto *perfetto);
