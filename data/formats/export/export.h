/* Plans for training frameworks: flags, layouts, schedules and rank tables, if the framework can
 * express the plan. An exporter takes a plan as it is or refuses it and names the first instruction
 * without counterpart; it never changes a plan. */
#pragma once

#include "data/plan/plan.h"

/*    name          contents */
#define EXPORT_TABLE(X)                                                                \
    X(megatron, "a script of Megatron-LM's flags with torchrun lines")                 \
    X(flagscale, "the system and model sections of a FlagScale configuration (YAML)")  \
    X(torchtitan, "a recipe of torchtitan (Python), and its schedule (CSV)")           \
    X(deepspeed, "ds_config.json, for plans without pipelines and tensor parallelism") \
    X(fsdp, "accelerate's configuration of FSDP (YAML), for plans of replicas alone")  \
    X(ddp, "a rank table with batch shares and loss weights, and code that reads it")  \
    X(pytorch, "stages for torch.distributed.pipelining (Python), and their schedule") \
    X(json, "everything: ranks, stages, layers, steps, shards of parameters")

typedef struct {
    const char *name, *description;
} ExportTarget;

uint32_t export_target_count(void);
const ExportTarget *export_target(uint32_t index);

/* One file of an export: its text, and the suffix after the user's name ("", ".csv"). */
typedef struct {
    const char *suffix;
    char *text;
} ExportFile;

/* The files (ExportFile), the first one with suffix "". `base`: the name of the first file, by
 * which files refer to one another. Free with g_array_unref. KILTER_ERROR_INPUT lists the targets
 * if `target` is unknown, or names the first instruction without counterpart. */
GArray *plan_export(const Plan *plan, const Graph *graph, const ClusterView *view,
                    const char *target, const char *base, GError **error);

/* The frameworks that take the plan, "megatron torchtitan"; "": none. Caller frees. */
char *plan_exports(const Plan *plan, const Graph *graph, const ClusterView *view);

/* The reason in a refusal by plan_export, without the place in the plan. Caller frees. */
char *export_reason(const GError *refusal);

/* Whether the target runs a strategy laid out over the devices of the view: the common part of
 * exporters and of searches for its plans. KILTER_ERROR_INPUT gives the first reason why not.
 * plan_export also refuses what only a plan shows, such as shards that cannot be cut evenly. */
bool export_check(const char *target, const StrategyLayout *layout, const Graph *graph,
                  const ClusterView *view, GError **error);
