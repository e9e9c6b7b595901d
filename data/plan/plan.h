/* The plan: the decisions of a planner, in one form for all planners.
 *
 * program + ratios + rounded shard sizes + communication options + costs + provenance. Written as
 * JSON (versioned, stable key order) such that read(write(plan)) == plan. The graph is not stored:
 * `model` rebuilds it, and its names identify ops and tensors. A file is sealed: an edited file
 * loses its proofs, and its ratios and splits have to agree. */
#pragma once

#include "data/program/batch.h"
#include "data/strategy/strategy.h"

/* The purpose of a split: to cut by the form over positions, the batch into parts, or by the forms
 * over shards and replicas. */
typedef enum {
    SPLIT_POSITIONS,
    SPLIT_BATCH,
    SPLIT_SHARDS,
    SPLIT_REPLICAS,
    SPLIT_NESTED,
    SPLIT_KINDS
} SplitKind;

/* The integer cut of a dimension of `units` pieces over the devices of a group under the ratios of
 * one segment. Dims with as many units are cut alike; a dim of extent e gives device j count[j] *
 * (e / units) elements. SPLIT_BATCH cuts a microbatch over all devices of the group, where a
 * replica has the parts of its devices. SPLIT_POSITIONS cuts all replicas alike, as gradients are
 * summed position by position. SPLIT_SHARDS cuts evenly over the shards, and each shard's part over
 * its devices as SPLIT_POSITIONS does, alike in every set of shards. SPLIT_REPLICAS cuts evenly
 * over the sets; all devices of a set have the same part. SPLIT_NESTED cuts over the devices as
 * SPLIT_POSITIONS does, and each device's part over its shards. */
typedef struct {
    uint32_t segment;
    uint32_t units;
    /* [replica * n_devices + position]; sums to units in every replica; for SPLIT_BATCH over all
     * replicas, for SPLIT_SHARDS and SPLIT_NESTED in every set of shards, for SPLIT_REPLICAS over
     * the first devices of the sets */
    uint32_t *count;
    uint16_t group;
    SplitKind kind;
    /* SPLIT_BATCH: a form divides a replica's part over its devices or shards */
    bool divided;
} Split;

/* The outcome of a requested proof: how it ended, and the text printed beside the bound. */
#define CERTIFICATE_TABLE(X)                                                             \
    X(NONE, "none", "")                                                                  \
    X(REACHED, "reached", "the gap is as small as requested")                            \
    X(BOXES, "boxes",                                                                    \
      "the gap is larger than requested: the limit of boxes of ratios was reached")      \
    X(BUDGET, "budget", "the gap is larger than requested: the budget ran out")          \
    X(ROUNDING, "rounding",                                                              \
      "the gap is larger than requested: rounding the shards alone costs more")          \
    X(MEMORY, "memory",                                                                  \
      "the gap is larger than requested: too many programs need about that memory")      \
    X(BUCKETS, "buckets", "nothing is proved about plans with gradient buckets")         \
    X(SEGMENTS, "segments",                                                              \
      "the gap is larger than requested: with segments there is only one box of ratios") \
    X(KINDS, "kinds", "nothing is proved for so many kinds of devices")                  \
    X(PLANNER, "planner",                                                                \
      "the gap is larger than requested: other programs or ratios are faster, see "      \
      "planner "                                                                         \
      "hap")
#define CERTIFICATE_ID(id, name, text) CERTIFICATE_##id,
typedef enum { CERTIFICATE_TABLE(CERTIFICATE_ID) CERTIFICATES } Certificate;
const char *certificate_name(Certificate certificate);
const char *certificate_text(Certificate certificate);

/* A bound beside the main one. */
typedef struct {
    double s;
    const char *over; /* the space of plans that it is over, in words */
} PlanBound;

typedef struct {
    char *model; /* canonical, with every parameter: "vit:layers=8,..." */
    /* content of the file that `model` names, as JSON; NULL for built-in models */
    char *content;
    char *cluster; /* name or file as given */
    /* the whole cluster, as cluster_json_text() writes it; NULL: only its name is known, as in
     * plans never written to a file */
    char *cluster_text;
    Granularity granularity;
    char *planner;
    char *maker;   /* the planner whose plan `planner` chose; NULL: its own plan */
    char *runtime; /* what is held beside it: a name of data/runtimes; NULL: nothing */
    uint64_t seed;
    char *version; /* version of kilter */
    /* the rest of the question, and what can be done with the answer; NULL: not known */
    char *target;      /* the framework that it was made for; NULL: any */
    char *options;     /* options that are not at their defaults, "key=value key=value" */
    char *revision;    /* commit of the program */
    char *exports;     /* the targets that take it, "megatron torchtitan"; "": none */
    double any_time_s; /* of the plan that any framework may run; 0: not known */
    /* why `target` does not run that plan; NULL: it does, or is not known */
    char *any_why;
    /* the strategy that made it; all defaults if the planner has none */
    Strategy strategy;

    Program *program;
    uint32_t n_devices;
    uint32_t n_segments;
    double *ratio; /* [segment * n_devices + device], rows sum to 1 */
    uint32_t n_ops;
    uint16_t *segment; /* [op of the graph] */
    uint32_t n_splits;
    /* every cut that the program needs, sorted by (group, batch, segment, units) */
    Split *split;

    /* gradient all-reduces are fused up to this size; 0: not fused */
    uint64_t bucket_bytes;

    /* time of the rounded plan under the analytic model */
    double iteration_time_s;
    double fractional_time_s; /* before rounding; 0: not known */
    double lower_bound_s;     /* 0: none was proved */
    /* the plans that the bound covers, in words; NULL without a bound */
    char *bound_over;
    GArray *bounds; /* PlanBound: bounds over other spaces; NULL: none; not in the file */
    Certificate certificate; /* NONE unless a gap was requested */
    /* no program of the planner's space is faster at these ratios, before rounding */
    bool optimal;
    uint64_t *memory_bytes; /* peak of one GPU of each device */
    bool feasible;
    /* proof that nothing in the planner's space fits, or NULL; not in the file */
    char *misfit;
    double search_time_s, balance_time_s;
    /* of TAG's space: strategies that the last search evaluated, or iterations of a tree search,
     * and how many of them until one was faster than data parallelism (0: none was); not in the
     * file */
    uint32_t tries, tries_to_beat_dp;
    double certificate_time_s; /* wall clock of the bound and its proof */
    /* partial programs that the searches kept, or cells of the tables that AMP's assignment of
     * layers filled: unlike seconds they repeat; 0: not counted; not in the file */
    uint64_t search_labels;
    uint32_t stages;
} Plan;

/* The number of counts of a split. */
uint32_t plan_split_devices(const Plan *plan, const Split *split);

Plan *plan_new(void);
AUTOPTR(plan_free, Plan)

/* Adds a bound over another space. */
void plan_add_bound(Plan *plan, double bound_s, const char *over);

/* Drops the plan's proofs and its time before rounding, as the plan has changed. */
void plan_drop_proofs(Plan *plan);

/* The loss by rounding, relative to the time before rounding; 0 if that time is not known. */
double plan_rounding_loss(const Plan *plan);

/* gap = (t - bound) / bound; infinity if nothing is proved. */
double plan_gap(const Plan *plan);

/* Rounds ratio * units to integers that sum to units (HAP Sec. 5.1): nearest integers first, then
 * single units are moved where the rounding error grows least; ties go to the lower index. count:
 * out, [n_devices]. */
void split_round(const double *ratio, uint32_t n_devices, uint32_t units,
                 uint32_t *count);

/* The segment whose ratios cut each instance [tensor * FORM_MAX + form] of a program, from the
 * segment of each op (NULL: all 0). A computed instance has its op's segment. A loaded or converted
 * instance has the segment of the first op that reads it in that form, or, if none does, the
 * tensor's: its producer's, else its first consumer's.
 *
 * Hence a tensor crosses from one segment into another where it is converted: an all-to-all from
 * Gather(a) to Gather(b) cuts by the ratios of both. An op of another segment than one of its
 * inputs gets that input cut anew; planners make no such programs (plan_ties). The caller frees the
 * result. */
uint16_t *plan_segments(const Program *program, const Graph *graph,
                        const uint16_t *segment);

/* The sets of ops that must share a segment so that no input is cut anew: [op], the least op of its
 * set. The caller frees it. */
OpId *plan_ties(const Program *program, const Graph *graph);

/* [op]: whether one of its operands is sharded. The caller frees it. */
bool *plan_sharded_ops(const Program *program, const Graph *graph);

/* The split with the group, batch, segment and units of `key`, or NULL. */
const Split *plan_find_split(const Plan *plan, const Split *key);

/* The splits by which an instance is cut (its counts are NULL). */
typedef struct {
    /* the instance has one part per microbatch, divided over replicas by `batch`: by the sums over
     * sets of shards */
    bool has_parts;
    bool to_shard;  /* or by replicas, if the form over the shards cuts the batch */
    bool to_device; /* or by devices, if the form over positions cuts the batch */
    bool is_sharded, over_replicas; /* cut by `shards`, by `replicas` */
    bool is_cut;                    /* cut inside each replica, by `inner` */
    /* shards and positions cut the same dim, by `shards`: the sequence (dim 1) over the shards
     * first, any other dim over the devices first (SPLIT_NESTED) */
    bool nested;
    Split batch, shards, replicas, inner;
} PlanCut;

/* The cut of a tensor in that form, held by a group and cut by the ratios of a segment. `batch`
 * NULL: the batch is not cut. */
PlanCut plan_cut(const Program *program, const Graph *graph, const BatchForms *batch,
                 uint32_t group, uint32_t segment, TensorId tensor, Form form);

/* The order of a plan's splits, for qsort. */
int plan_compare_splits(const void *a, const void *b);

/* Every split that the program needs, sorted, without counts (Split). Free with g_array_unref. */
GArray *plan_needed_splits(const Plan *plan, const Graph *graph, const BatchForms *batch);

/* The same with counts: the plan's, or, if it has no such split, its rounded ratios. Free the
 * counts, too. The plan's groups must have been checked. */
GArray *plan_rounded_splits(const Plan *plan, const Graph *graph,
                            const BatchForms *batch);

/* Shares of a split, whose group is given, under the ratios of its segment: [replica * n_devices +
 * position], the devices' shares in their replica. Except for a batch split they are equal in all
 * replicas, by the sum of the ratios at each position. replica: out, the replicas' shares in the
 * group. Both sum to 1. The caller frees the result. */
double *plan_group_shares(const Plan *plan, const DeviceGroup *group, const Split *split,
                          double *replica);

/* Rounds the ratios for every cut that the program needs, and replaces the plan's splits. Errors as
 * batch_forms_new and plan_check_groups. */
bool plan_round(Plan *plan, const Graph *graph, GError **error);

/* Whether all ratios are equal, and so are the counts of every split, so that rounding changed
 * nothing. */
bool plan_splits_evenly(const Plan *plan);

/* Whether the program's groups fit the plan: all devices exist, and there is one segment if the
 * batch is cut over replicas (a replica's part is the same for all tensors). KILTER_ERROR_INPUT. */
bool plan_check_groups(const Plan *plan, GError **error);

/* The fidelity by which planners evaluate: the first of the table that takes the program. */
const char *plan_fidelity(const Plan *plan);

/* The ratios as JSON, [segment][device]; the caller owns the value. */
struct json_t *plan_ratios_json(const Plan *plan);

/* The plan as JSON text; the graph gives the names of ops and tensors. */
char *plan_write(const Plan *plan, const Graph *graph);

/* Reads a plan file; builds its graph into *graph. KILTER_ERROR_INPUT says file, line or key,
 * and what was expected (ratios that do not sum to 1, an op the model lacks, a foreign version,
 * ...). */
Plan *plan_read(const char *file, Graph **graph, GError **error);
