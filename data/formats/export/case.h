/* The input of all exporters (private to data): data/formats/export/export.h. */
#pragma once

#include <jansson.h>

#include "data/formats/export/export.h"
#include "data/formats/launch/names.h"
#include "data/plan/layout.h"

/* A step of a device group: the forward or backward of a pipeline stage on a microbatch. */
typedef struct {
    uint32_t stage, microbatch;
    bool backward;
    /* F, B, or of a split backward I for the stage before and W for weights */
    char letter;
    uint32_t instr; /* its first computation */
} ExportStep;

typedef struct {
    const Plan *plan; /* NULL: there is a layout alone */
    const Graph *graph;
    const ClusterView *view;
    const char *target, *base;
    const Strategy *strategy;
    bool has_strategy;
    StrategyLayout layout; /* set if there is a strategy */
    PlanLayout cuts;
    GArray *names; /* launch_names_read() */
    uint32_t batch,
        micro_batch; /* samples of an iteration; samples of a microbatch on a replica */
    uint32_t seq;    /* tokens per sample; 0: samples have no tokens */
    uint32_t vocab;  /* rows of the first embedding's table; 0: there is none */
    uint32_t ends, inner; /* layers at each end, of models with others; and the others */
} ExportCase;

/* Sets the model's sizes; the second function also the rest, of a plan. */
void export_case_of(ExportCase *c);
bool export_case_init(ExportCase *c, GError **error);
AUTOCLEAR(export_case_clear, ExportCase)

/* Fails with "TARGET cannot run this plan: reason (from instruction I on, TEXT)"; always false. */
bool export_refuse(const ExportCase *c, uint32_t instr, GError **error,
                   const char *format, ...) G_GNUC_PRINTF(4, 5);

/* The same for the first computation of a layer; without a plan the message names none. */
bool export_refuse_layer(const ExportCase *c, uint32_t layer, GError **error,
                         const char *format, ...) G_GNUC_PRINTF(4, 5);

/* Refuses a layout that the target does not run (data/formats/export/target.c). */
bool export_need_target(const ExportCase *c, GError **error);

/* Refuses the first instruction unless a strategy made the plan. */
bool export_need_strategy(const ExportCase *c, GError **error);
/* Refuses unless all shards over the devices that share a tensor are equal, and the replicas' parts
 * of the batch. Shards of the vocabulary may differ by a row: frameworks that take these pad the
 * others (export_padded). */
bool export_need_even(const ExportCase *c, GError **error);
/* Refuses unless stages and microbatches run as in Megatron-LM's 1F1B, interleaved where devices
 * have several stages; other schedules are refused where they differ. */
bool export_need_1f1b(const ExportCase *c, GError **error);

/* The number of ranks of a stage. */
uint32_t export_stage_ranks(const ExportCase *c);
/* Megatron-LM's layout of the stages, in the order of the model: "Et*4|ttt|tL". Caller frees. */
char *export_layers_text(const ExportCase *c);

/* The number of layers of a stage, without embedding and head. */
uint32_t export_inner_layers(const ExportCase *c, uint32_t stage);

/* [group]: a GArray of its steps in the order of the program; free with g_ptr_array_unref. */
GPtrArray *export_steps(const ExportCase *c);
/* The same for PyTorch: one row per rank of the pipeline, with cells such as 0F3 and 0B3. */
GString *export_steps_csv(const ExportCase *c);

/* How a tensor in that form is cut over a group's devices, with counts as in Split; NULL if it is
 * whole. */
const Split *export_cut(const ExportCase *c, uint32_t group, TensorId tensor, Form form,
                        bool *batch);

/* sample: out, [device], the samples of an iteration on each GPU of the view; refuses if a GPU of a
 * machine would get a part of a sample. */
bool export_samples(const ExportCase *c, uint32_t *sample, GError **error);

/* The device of a rank, in the view. */
uint32_t export_rank(const ExportCase *c, uint32_t rank);
/* Appends "# rank,machine,gpu,type" and one line per rank, each after `prefix`. */
void export_add_ranks(const ExportCase *c, const char *prefix, GString *out);
/* Appends lines that start `script` by torchrun, one per run of neighbouring ranks on a machine:
 * node ranks follow the order of the ranks, and a run that is not a whole machine in order names
 * its GPUs. */
void export_add_torchrun(const ExportCase *c, const char *prefix, const char *script,
                         GString *out);

/* The rows of the vocabulary with those that make all shards as large as the plan's largest; 0:
 * none are added. */
uint32_t export_padded(const ExportCase *c);

/* The number of neighbouring layers, from a stage's first one on, that are computed again in
 * full, and whether all others are not. */
bool export_block(const ExportCase *c, uint32_t stage, uint32_t *n);

/* The words of a strategy [WORDS]; the second function adds the facts of the model, or none and
 * returns the name, to be freed, of one that Megatron-LM's GPTModel has no flag for; the third one
 * frees the words. */
char **export_words(const ExportCase *c);
char *export_model_words(const ExportCase *c, char **value);
void export_words_free(char **value);

/* Exporters append files. */
typedef bool Exporter(const ExportCase *c, GArray *files, GError **error);
#define X(name, description) Exporter export_##name;
EXPORT_TABLE(X)
#undef X

void export_add_file(GArray *files, const char *suffix, GString *text);
/* Releases the value. */
void export_add_json(GArray *files, const char *suffix, json_t *root);
