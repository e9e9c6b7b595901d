/* The plan: what a planner decides, in one form for all of them.
 *
 * program + ratios + rounded shard sizes + communication options + what it costs + where it came
 * from. Written as JSON (versioned, stable key order) such that read(write(plan)) == plan. The
 * graph is not stored: `model` rebuilds it, and ops and tensors are named by it. A file is sealed: in one
 * that was edited nothing is proved any more, and ratios and splits have to agree. */
#ifndef KILTER_DATA_PLAN_PLAN_H
#define KILTER_DATA_PLAN_PLAN_H

#include "data/program/batch.h"
#include "data/strategy/strategy.h"

/* What a split cuts a dim for: the form over positions, the batch's parts, or the forms over shards and
 * replicas. */
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
 * (e / units) elements. SPLIT_BATCH is the cut of a microbatch of a program that cuts the
 * batch: over all devices of the group, a replica having what its devices have; by SPLIT_POSITIONS all
 * replicas are cut alike, as gradients are summed position by position. SPLIT_SHARDS cuts evenly over the
 * shards, what each has over its devices as by SPLIT_POSITIONS, alike in every set of shards; SPLIT_REPLICAS
 * evenly over the sets, all devices of a set having the same. SPLIT_NESTED cuts over the devices as by
 * SPLIT_POSITIONS, what each has over its shards. */
typedef struct {
    uint32_t segment;
    uint32_t units;
    uint32_t *count; /* [replica * n_devices + position]; sums to units in every replica,
                        by SPLIT_BATCH in all of them, by SPLIT_SHARDS and SPLIT_NESTED in every set of shards, by
                        SPLIT_REPLICAS over the first device of every set */
    uint16_t group;
    SplitKind kind;
} Split;

/* The outcome of the proof that was asked for: how it ended, and what is printed beside the
 * bound. */
#define CERTIFICATE_TABLE(X)                                                            \
    X(NONE, "none", "")                                                                 \
    X(REACHED, "reached", "within the gap asked for")                                   \
    X(BOXES, "boxes",                                                                   \
      "not within the gap asked for: stopped at the most boxes of ratios")              \
    X(BUDGET, "budget", "not within the gap asked for: the budget ran out")             \
    X(ROUNDING, "rounding",                                                             \
      "not within the gap asked for: rounding the shards costs more than that")         \
    X(MEMORY, "memory",                                                                 \
      "not within the gap asked for: too many programs need about that memory")         \
    X(BUCKETS, "buckets", "nothing is proved of plans with gradient buckets")           \
    X(SEGMENTS, "segments",                                                             \
      "not within the gap asked for: segments of their own ratios have one box")        \
    X(KINDS, "kinds", "nothing is proved for so many kinds of devices")                 \
    X(PLANNER, "planner",                                                               \
      "not within the gap asked for: other programs or ratios are faster, see planner " \
      "hap")
typedef enum {
#define X(id, name, text) CERTIFICATE_##id,
    CERTIFICATE_TABLE(X)
#undef X
        CERTIFICATES
} Certificate;
const char *certificate_name(Certificate certificate);
const char *certificate_text(Certificate certificate);

typedef struct {
    char *model;   /* canonical, with every parameter: "vit:layers=8,..." */
    char *content; /* of the file that `model` names, as JSON; NULL for built-in models */
    char *cluster; /* name or file as given */
    /* the cluster whole, as cluster_json_text() writes it; NULL: only its name is known, as of plans
     * that no file was written of */
    char *cluster_text;
    Granularity granularity;
    char *planner;
    char *maker; /* the planner whose plan `planner` chose; NULL: it made it itself */
    uint64_t seed;
    char *version;     /* of kilter */
    Strategy strategy; /* that made it; all at the defaults: a planner without one */

    Program *program;
    uint32_t n_devices;
    uint32_t n_segments;
    double *ratio; /* [segment * n_devices + device], rows sum to 1 */
    uint32_t n_ops;
    uint16_t *segment; /* of each op of the graph */
    uint32_t n_splits;
    Split *split; /* sorted by (group, batch, segment, units): every cut that the program
                     needs */

    uint64_t bucket_bytes; /* gradient collectives fused up to this size; 0: one each */

    /* cost of the rounded plan under the analytic model */
    double iteration_time_s;
    double fractional_time_s; /* before rounding; 0: not known */
    double lower_bound_s;     /* 0: none proved */
    char *bound_over; /* the plans that the bound is below, in words; NULL without one */
    Certificate certificate; /* NONE unless a gap was asked for */
    bool
        optimal; /* no program of the planner's space is faster at these ratios, before rounding */
    uint64_t *memory_bytes; /* peak of one GPU of each device */
    bool feasible;
    /* proof that nothing in the planner's space fits, NULL without one; not in the file */
    char *misfit;
    double search_time_s, balance_time_s;
    double certificate_time_s; /* of the bound and its proof */
    uint32_t stages;
} Plan;

Plan *plan_new(void);
void plan_free(Plan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Plan, plan_free)

/* Forgets what was proved of the plan, and its time before rounding: it is not that plan any more. */
void plan_drop_proofs(Plan *plan);

/* What rounding costs, relative to the time before; 0 where that is not known. */
double plan_rounding_loss(const Plan *plan);

/* gap = (t - bound) / t's bound; infinity when nothing is proved. */
double plan_gap(const Plan *plan);

/* Rounds ratio * units to integers that sum to units (HAP Sec. 5.1): nearest integers first, then
 * single units are moved where the rounding error grows least; ties go to the lower index. count:
 * out, [n_devices]. */
void split_round(const double *ratio, uint32_t n_devices, uint32_t units,
                 uint32_t *count);

/* The segment whose ratios cut each instance [tensor * FORM_MAX + form] of a program, from the
 * segment of each op (NULL: all 0). What a computation makes goes by the op's; what is loaded or
 * converted by that of the first op that reads it so, or, if none does, of the tensor: its
 * producer's, else its first consumer's.
 *
 * Hence a tensor crosses from one segment into another where it is converted: an all-to-all from
 * Gather(a) to Gather(b) cuts by the ratios of both. An op that goes by another segment than an
 * input of it gets that input cut anew; planners make no such programs (plan_ties). Caller frees. */
uint16_t *plan_segments(const Program *program, const Graph *graph,
                        const uint16_t *segment);

/* Which ops have to go by one segment so that no input is cut anew: the least op of each op's set.
 * Caller frees. */
OpId *plan_ties(const Program *program, const Graph *graph);

/* Of each op: whether some operand of it is sharded. Caller frees. */
bool *plan_sharded_ops(const Program *program, const Graph *graph);

/* The split with the group, batch, segment and units of `key`, or NULL. */
const Split *plan_find_split(const Plan *plan, const Split *key);

/* The splits by which an instance is cut (its counts are NULL). */
typedef struct {
    /* of microbatches, over replicas by `batch`: by the sums of sets of shards, or, */
    bool has_parts;
    bool to_shard;  /* if the batch is what the form over the shards cuts, of replicas, */
    bool to_device; /* if it is what the form cuts, of devices */
    bool is_sharded, over_replicas; /* by `shards`, `replicas` */
    bool is_cut;                    /* inside of each replica, by `inner`, or, */
    /* where the shards cut the same dim, by `shards`: the sequence (dim 1) over these first, any
     * other dim over the devices first, by SPLIT_NESTED */
    bool nested;
    Split batch, shards, replicas, inner;
} PlanCut;

/* Of a tensor in that form, held by a group and cut by the ratios of a segment. `batch` NULL: the
 * batch is not cut. */
PlanCut plan_cut(const Program *program, const Graph *graph, const BatchForms *batch,
                 uint32_t group, uint32_t segment, TensorId tensor, Form form);

/* Order of a plan's splits, for qsort. */
int plan_compare_splits(const void *a, const void *b);

/* Every split that the program needs, sorted, without counts (Split). Free with g_array_unref. */
GArray *plan_needed_splits(const Plan *plan, const Graph *graph, const BatchForms *batch);

/* The same with counts: the plan's, or, where it has no such split, its ratios rounded. Free the
 * counts, too. The plan's groups have been checked. */
GArray *plan_rounded_splits(const Plan *plan, const Graph *graph,
                            const BatchForms *batch);

/* Shares of a split (its group is given) under the ratios of its segment: of the devices in their
 * replica, [replica * n_devices + position]. They are the same in every replica, by the sum of the
 * ratios at each position, but for a batch split. replica: out, of the replicas in the group. Both
 * sum to 1. Caller frees. */
double *plan_group_shares(const Plan *plan, const DeviceGroup *group, const Split *split,
                          double *replica);

/* Rounds the ratios for every cut that the program needs: fills split, in place of what there was.
 * Errors as batch_forms_new, and plan_check_groups. */
bool plan_round(Plan *plan, const Graph *graph, GError **error);

/* Whether all ratios are equal, and so are the counts of every split: rounding changed nothing. */
bool plan_splits_evenly(const Plan *plan);

/* Whether the program's groups fit the plan: devices that there are, and one segment where the
 * batch is cut over replicas (the part of a replica is one and the same for all tensors).
 * KILTER_ERROR_INPUT. */
bool plan_check_groups(const Plan *plan, GError **error);

/* The fidelity that planners evaluate by: the formula, or, what it does not know (groups,
 * microbatches), by `stage`. */
const char *plan_fidelity(const Plan *plan);

/* The ratios as JSON, [segment][device]; the caller's. */
struct json_t *plan_ratios_json(const Plan *plan);

/* JSON text; the graph names ops and tensors. */
char *plan_write(const Plan *plan, const Graph *graph);

/* Reads a plan file; builds its graph into *graph. KILTER_ERROR_INPUT says file, line or key, and
 * what was expected (ratios that do not sum to 1, an op the model lacks, a foreign version, ...). */
Plan *plan_read(const char *file, Graph **graph, GError **error);

#endif
