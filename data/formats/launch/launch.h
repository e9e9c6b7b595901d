/* Launches of training frameworks (docs/launches.md), which people have in the place of a strategy.
 * Readers for each format turn flags or keys into words, by the table of names with which exporters
 * write them (data/formats/launch/names.h). Unknown names are listed, never dropped in silence;
 * names that change neither plan nor costs are known. */
#pragma once

#include "data/cluster/cluster.h"
#include "data/strategy/strategy.h"

typedef struct {
    const char *framework; /* "Megatron-LM" */
    const char *flags;     /* "megatron": whose flags it has; "": it has keys */
    const char *runtime;   /* its kernels and memory; "": those of the strategy */
    char **value; /* [WORDS]: texts by data/formats/launch/names.h; NULL: not said */
    /* names without meaning here, with their values: "--moe-x 7" */
    GPtrArray *unknown;
    /* "MACHINE:GPU" of each rank, by a table in comments that exporters write; empty: not said */
    GPtrArray *rank;
} Launch;

/* Reads a file of any of these formats, told by its content. KILTER_ERROR_INPUT names file, line
 * and what was expected. */
Launch *launch_read(const char *file, GError **error);
/* The same from text; messages call it `file`. */
Launch *launch_parse(const char *file, const char *text, size_t length, GError **error);
AUTOPTR(launch_free, Launch)

/* The keys that it gives a model on n_devices GPUs: global_batch, seq, precision, "" if there are
 * none. The caller frees the text. */
char *launch_model_keys(const Launch *launch, uint32_t n_devices);

/* The strategy of the launch for a model on n_devices GPUs. KILTER_ERROR_INPUT names what
 * contradicts: number of GPUs, batches that do not divide, layers of another model. */
bool launch_strategy(const Launch *launch, const Graph *graph, uint32_t n_devices,
                     Strategy *strategy, GError **error);
/* How tokens reach experts, a value of the simulation's option `dispatcher`; NULL: not said. */
const char *launch_dispatcher(const Launch *launch);
/* Sets ranks by the table, if there is one; that of other machines is unknown. view: of GPUs. */
void launch_place(const Launch *launch, const ClusterView *view, Strategy *strategy);
