/* The runtime: what a framework holds in a device's memory beside the plan, and what it does to
 * times. A file of its own, data/runtimes/NAME.yaml; data/schemas/runtime-file.json describes the
 * keys, of which all but `name`, `description` and `source` are optional. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "data/base/free.h"
#include "data/cluster/stack.h"

/* The bundled file of that name, for its options. */
#define RUNTIME_FILE "runtimes/%s.yaml"

/* Bytes of gradients that are reduced together where the file says no others: bucket_cap_mb of
 * PyTorch's DDP. */
enum { RUNTIME_BUCKET = 25 << 20 };

typedef struct Runtime {
    char *name, *description, *source;
    uint32_t gradients, bucket_copies, float_gradients, half_gradients, handed_gradients,
        norms, gates, expert_bytes, loss_copies, prefetch;
    uint64_t bucket_bytes, context_bytes, workspace_bytes, communicator_bytes;
    double reserve, host; /* up to 1: none */
    Stack stack;          /* what it does to times */
} Runtime;

/* The one of that name. "NAME/reserved": of that what the framework's allocator has, which is what
 * torch.cuda.max_memory_reserved counts: no context and communicators. "NAME/allocated": what it
 * has given out, as torch.cuda.max_memory_allocated counts: no workspace and reserve either.
 * KILTER_ERROR_INPUT lists the names, or names file, line and key. */
Runtime *runtime_load(const char *name, GError **error);
/* The same from text; messages call it `file`. */
Runtime *runtime_parse(const char *file, const char *text, size_t length, GError **error);
AUTOPTR(runtime_free, Runtime)

/* Bytes that it holds of one GPU beside all buffers, whose peak is given, where the GPU is in so
 * many kinds of groups; `fixed`: what the cluster's file says of it counts instead of context,
 * workspace and communicators. NULL: 0. */
double runtime_held_bytes(const Runtime *runtime, bool fixed, uint32_t communicators,
                          double peak_bytes);
/* The peak of buffers for which it leaves room in so many bytes; at least 1. */
uint64_t runtime_left_bytes(const Runtime *runtime, uint64_t capacity_bytes, bool fixed,
                            uint32_t communicators);

/* The bytes of gradients in a bucket where the question does not say them; NULL: as most have. */
uint64_t runtime_bucket_bytes(const Runtime *runtime, uint64_t asked_bytes);

/* Their names, sorted; free with g_strfreev. */
char **runtime_names(void);
