/* Indexes of checkpoints in several files, as Hugging Face writes them
 * (model.safetensors.index.json, pytorch_model.bin.index.json): the names of all tensors, and their
 * bytes together. They have no shapes, so no graph follows; they check a config.json. Part of
 * data's public interface. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t tensors, bytes; /* bytes: of all tensors, buffers included */
    uint32_t files,
        layers; /* layers: one more than the largest number of a layer in a name; 0: names have none */
    uint64_t in_layers; /* tensors of layers */
} CheckpointIndex;

/* KILTER_ERROR_INPUT names file, key, and what was expected. */
bool checkpoint_index_read(const char *file, CheckpointIndex *index, GError **error);
