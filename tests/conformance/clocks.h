/* The clocks: every function that says how long an iteration takes, the programs that it takes, and
 * how far its time is from that of a fidelity. tests/conformance/test_clocks.c runs each of them on
 * random programs of its domain, under all costs, and checks the row. */
#pragma once

/* The costs that a cluster's file may give beside rates and links: id, words. */
#define CLOCK_COSTS(X)                                           \
    X(LAUNCH, "launches by the host")                            \
    X(HANDOVER, "the host's time at transfers of a pipeline")    \
    X(CROWDING, "launches of a crowded host")                    \
    X(SLOWDOWN, "computation that communication slows down")     \
    X(INTERFERENCE, "communication that computation slows down") \
    X(STRETCH, "a slow machine")                                 \
    X(FITTED, "fitted times of ops and pieces of collectives")

#define CLOCK_COST(id, words) CLOCK_COST_##id,
typedef enum { CLOCK_COSTS(CLOCK_COST) N_CLOCK_COSTS } ClockCost;
#undef CLOCK_COST

/* Programs of one group; with two microbatches that take turns; of op groups on device groups that
 * overlap, with one microbatch; pipelines of equal stages; pipelines of unlike stages. */
typedef enum {
    CLOCK_SPMD,
    CLOCK_DUPLEX,
    CLOCK_GROUPS,
    CLOCK_PIPELINE,
    CLOCK_STAGES
} ClockDomain;

/* SAME: equal up to the part. BELOW: never above it by more than the part. NEAR: on average at most
 * the part off, above or below, and never more than CLOCK_WORST times as far. Where the cluster has
 * a cost that the clock leaves out, SAME and NEAR hold below alone. */
typedef enum { CLOCK_SAME, CLOCK_BELOW, CLOCK_NEAR } ClockRelation;
enum { CLOCK_WORST = 15 };

#define CLOCK_NO_HOST \
    (1U << CLOCK_COST_LAUNCH | 1U << CLOCK_COST_CROWDING | 1U << CLOCK_COST_HANDOVER)
#define CLOCK_NO_OVERLAP (1U << CLOCK_COST_SLOWDOWN | 1U << CLOCK_COST_INTERFERENCE)

/* id, domain, relation, fidelity, part, costs left out, where it is. */
#define CLOCK_TABLE(X)                                                                  \
    X(ANALYTIC, SPMD, SAME, STAGE, 1e-9, CLOCK_NO_HOST, "sim/cost/analytic.c")          \
    X(LINEAR, SPMD, SAME, STAGE, 1e-9, CLOCK_NO_HOST, "sim_linear_time")                \
    X(TRACES, SPMD, NEAR, FLOW, 0.01, CLOCK_NO_HOST | CLOCK_NO_OVERLAP,                 \
      "sim_execution_run")                                                              \
    X(COMPUTE, SPMD, BELOW, STAGE, 1e-9, 0, "sim_compute_bound_s")                      \
    X(TURNS, DUPLEX, SAME, STAGE, 1e-9, CLOCK_NO_HOST, "sim_linear_time, equation (4)") \
    X(QUICK_STAGE, GROUPS, SAME, STAGE, 1e-9, CLOCK_NO_HOST, "sim_quick_times")         \
    X(QUICK_FLOW, GROUPS, SAME, FLOW, 1e-9, CLOCK_NO_HOST | CLOCK_NO_OVERLAP,           \
      "sim_quick_times")                                                                \
    X(TAG_BOUND, GROUPS, BELOW, STAGE, 1e-9, 0, "tag_bound")                            \
    X(AMP_WALK, PIPELINE, NEAR, FLOW, 0.05, CLOCK_NO_OVERLAP, "synth_amp_cost")         \
    X(AMP_LEAST, PIPELINE, BELOW, STAGE, 1e-9, 0, "AmpCandidate.least_s")               \
    X(JOINT_WALK, STAGES, NEAR, STAGE, 0.012, 0, "synth_joint_walk_s")                  \
    X(JOINT_FORMULA, STAGES, NEAR, STAGE, 0.02, 0, "synth_joint_cost, 1f1b")            \
    X(JOINT_DENSITY, STAGES, BELOW, STAGE, 1e-9, 0, "synth_joint_density_s")

#define CLOCK_MEMBER(id, domain, relation, fidelity, part, without, where) CLOCK_##id,
typedef enum { CLOCK_TABLE(CLOCK_MEMBER) N_CLOCKS } Clock;
#undef CLOCK_MEMBER
