/* How long a plan takes on a backend: warm-up runs, then repeats, each from a common start.
 * Iterations run freely; instructions are timed one by one, on a GPU in runs of their own, as
 * timing them takes longer there. */
#pragma once

#include "exec/replay.h"

/* The spread of repeated times, in seconds. */
typedef struct {
    double median_s, low_s, high_s; /* low, high: quartiles */
} ExecSpread;

/* The spread of value [n], n > 0; sorts `value`. Private to exec. */
ExecSpread exec_spread_of(double *value, uint32_t n);

/* A stage opens with the first priced collective after a computation, as in sim/sim.h: conversions
 * that need no other rank neither open nor end a stage. Its communication is the time that the rank
 * that waits least spends in collectives, its computation the time of the slowest rank. */
typedef struct {
    uint32_t first; /* instruction */
    ExecSpread comm, comp;
} ExecStage;

typedef struct {
    uint32_t n; /* instructions of the kind */
    /* of all of them, each on the slowest rank (collectives: on the rank that waits least) */
    double median_s;
} ExecKind;

typedef struct {
    uint32_t repeats, n_stages;
    ExecSpread iteration; /* of the slowest rank */
    ExecStage *stage;
    ExecKind op[OP_KINDS], collective[COLLECTIVES];
    uint64_t bytes;    /* most bytes of values that a rank has held at once */
    ExecMemory memory; /* while iterations were timed */
} ExecMeasurement;

/* How many runs to make: first without measurement, then with it (at least one). */
typedef struct {
    uint32_t warm_up, repeats;
} ExecRuns;

/* To be called after exec_replay_load, of a replay that trains. Every process of the backend gets
 * the same measurement. */
bool exec_measure(ExecBackend *backend, ExecReplay *replay, const Plan *plan,
                  const Graph *graph, ExecRuns runs, ExecMeasurement *measurement,
                  GError **error);
AUTOCLEAR(exec_measurement_clear, ExecMeasurement)
