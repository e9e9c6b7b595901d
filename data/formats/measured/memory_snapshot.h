/* PyTorch's memory snapshot: what torch.cuda.memory._snapshot() returns, as JSON or as the pickle
 * that _dump_snapshot() writes and the page memory_viz shows. */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdint.h>

/* A device of which the snapshot knows something. Before the first event of its trace it has what
 * its segments have in the end less what the events add. */
typedef struct {
    uint32_t device, n_events;
    uint64_t allocated_bytes; /* given out at the peak, */
    uint32_t event;           /* which is after that number of events */
    uint64_t reserved_bytes;  /* the most that segments had */
} SnapshotPeak;

/* SnapshotPeak by device; `file` is for messages. KILTER_ERROR_INPUT: no snapshot, or numbers that
 * contradict one another. Free with g_array_unref. */
GArray *snapshot_parse(const char *file, const char *text, gsize length, GError **error);
GArray *snapshot_read(const char *file, GError **error);

/* A block that is allocated from step `first` to `last`, both included; UINT32_MAX: to the end. */
typedef struct {
    uint32_t device, first, last;
    uint64_t bytes;
    const char *name, *category;
} SnapshotBlock;

/* A snapshot with the blocks, which are sorted; a step is a microsecond. */
json_t *snapshot_write(GArray *block, uint32_t n_devices);
/* It as a pickle, which the page and torch/cuda/_memory_viz.py read. Caller frees. */
char *snapshot_pickle(const json_t *snapshot, gsize *length);
