/* Measured times of a model's layers, as AMP profiles them (Sec. 3.4).
 *
 * A CSV file (data/base/csv.h) with these columns, in any order (others are ignored):
 *
 *     gpu                     device type; its first word must match the cluster's, in any case of
 *                             letters
 *     model                   model; must match the graph's name
 *     tmp                     degree of tensor parallelism
 *     layer_index             from 0, in execution order
 *     layer_kind              see below
 *     fwd_time_s_per_sample   forward seconds per sample, tensor-parallel communication included
 *     mbs                     optional: samples of the measured micro-batch; default 1
 *
 * Rows of kind `aux` are not layers of the model (AMP leaves them out of its cost). Of the others,
 * those whose kind starts with `transformer` are the model's repeated layers in order; rows before
 * them belong to the first layer of the graph, rows after them to its last layer. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "data/graph/graph.h"

typedef struct {
    char *gpu, *model;
    uint32_t tmp, mbs, layer;
    char *kind;
    double forward_s; /* seconds per sample */
} LayerTime;

typedef struct {
    char *file;
    GArray *times; /* LayerTime, by layer */
} LayerProfile;

/* Reads a profile. KILTER_ERROR_INPUT with file, line, column and what was expected. */
LayerProfile *layer_profile_read(const char *file, GError **error);
AUTOPTR(layer_profile_free, LayerProfile)
/* The OptionReader of an option whose text is such a file, or a pipe; '': none. */
bool layer_profile_option(const char *file, const char **kept, GError **error);

/* The times of one (gpu type, model, tmp, mbs) in order, without aux rows; empty if there are none.
 * Pointers into the profile; free with g_ptr_array_unref. */
GPtrArray *layer_profile_select(const LayerProfile *profile, const char *type,
                                const char *model, uint32_t tmp, uint32_t mbs);

/* A layer's time over its forward time: the backward has two matrix products for each of the
 * forward's. */
static const double LAYER_PASSES_OF_FORWARD = 3;

/* Fills in the forward seconds per sample of the graph's layers [layer] by those rows.
 * KILTER_ERROR_INPUT if there are none, or if they have another number of repeated layers. */
bool layer_profile_forward(const LayerProfile *profile, const Graph *graph,
                           const char *type, uint32_t tmp, uint32_t mbs,
                           double *forward_s, GError **error);
