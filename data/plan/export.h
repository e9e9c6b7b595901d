/* Plans for training frameworks: flags, layouts, schedules and rank tables, where a framework can hold
 * the plan. An exporter takes a plan as it is or refuses it, naming the first instruction that has no
 * counterpart; it never rounds a plan to another one. */
#ifndef KILTER_DATA_PLAN_EXPORT_H
#define KILTER_DATA_PLAN_EXPORT_H

#include "data/plan/plan.h"

/*    name          what is written */
#define EXPORT_TABLE(X)                                                                  \
    X(megatron, "a script of Megatron-LM's flags with torchrun lines")                   \
    X(flagscale, "the system and model sections of a FlagScale configuration (YAML)")    \
    X(torchtitan,                                                                        \
      "overrides of a torchtitan configuration (JSON), and its schedule (CSV)")          \
    X(deepspeed, "ds_config.json, for plans without pipelines and tensor parallelism")   \
    X(ddp, "a rank table with batch shares and loss weights, and how a script reads it") \
    X(json, "everything: ranks, stages, layers, steps, shards of parameters")

typedef struct {
    const char *name, *description;
} ExportTarget;

uint32_t export_target_count(void);
const ExportTarget *export_target(uint32_t index);

/* One file of an export: its text, and what comes after the name that the user gives ("", ".csv"). */
typedef struct {
    const char *suffix;
    char *text;
} ExportFile;
void export_file_clear(ExportFile *file);

/* The files (ExportFile), the first one with suffix "". `base`: how the first one is called, as the
 * others are referred to by it. Free with g_array_unref. KILTER_ERROR_INPUT: an unknown target, listing
 * them, or the first instruction that it has no counterpart for. */
GArray *plan_export(const Plan *plan, const Graph *graph, const ClusterView *view,
                    const char *target, const char *base, GError **error);

#endif
