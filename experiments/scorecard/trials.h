/* Measured trials of other people: what ran, how long it took.
 *
 * A data set is a query, experiments/scorecard/NAME.sql, over CSV files of a folder: FOLDER/a/b.csv
 * is the table a_b, all of its columns text or numbers. Its first lines are comments, the very
 * first one the data set's description. The query gives a row for each trial:
 *
 *     split         'calibration' or 'test'
 *     contest       trials of one contest are alternatives for the same work (the fastest is the right choice)
 *     model         of kilter models
 *     device        type of the devices, all alike; memory_gib of each, and how many processors it has
 *     gpus, machines        of a machine, and how many there are
 *     pp, dp, tmp, mbs      degrees and samples of a micro-batch (synth/amp/amp.h)
 *     chunks, recompute     stages of each device; 1 if activations are computed again
 *     cuts          first layer of the stages after the first one, as '9 15 21'; '' for equally many
 *     planner, options      instead of these five lines: one of kilter planners and its options, as
 *                   'bucket=25MiB,duplex=on'; may be left out. Options without a planner are further
 *                   keys of the strategy, as 'recompute=selective,sequence_parallel=on'
 *     measured_s, measured_gib      NULL where the trial failed, or was not measured
 *     measured_comm_s, measured_hidden_s    in which a device communicates, and part of it in which it
 *                   computes as well; NULL, or left out: not measured
 *     failed        1 if it ended for want of memory
 *
 *     slowdown      of computation beside communication (data/cluster/cluster.h); may be left out: none
 *
 * and where a calibration starts, the same in all rows: rate (FLOP/s), bandwidth (of memory, and as
 * unfused of attention and the loss), inner and outer (of links), in bytes/s, latency_s (of links),
 * launch_s (of an op, on the host) and overhead_s (on the device). The bundled queries start from
 * 0.8 of a data sheet's rate and links; from 0.4 of its memory, since biases, masks and conversions
 * are kernels of their own, which go through operands again; and from 0.1 where not fused. Where no
 * row is of the split 'calibration' they stay as they are. */
#ifndef KILTER_EXPERIMENTS_SCORECARD_TRIALS_H
#define KILTER_EXPERIMENTS_SCORECARD_TRIALS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* The constants that are fitted: id, column of where it starts, text, unit, within about which
 * factor exp(width) of the start it is expected: hardware is near its data sheet, what software
 * does is anybody's guess. */
#define SCORE_PARAMETERS(X)                                             \
    X(LAUNCH, "launch_s", "launch of an op", "s", 1)                    \
    X(OVERHEAD, "overhead_s", "overhead of an op", "s", 1)              \
    X(RATE, "rate", "computation", "FLOP/s", 0.3)                       \
    X(BANDWIDTH, "bandwidth", "memory", "B/s", 0.7)                     \
    X(ATTENTION, "unfused", "memory, for attention", "B/s", 0.7)        \
    X(LOSS, "unfused", "memory, for the loss", "B/s", 0.7)              \
    X(INNER_LATENCY, "latency_s", "latency inside machines", "s", 0.3)  \
    X(INNER_BANDWIDTH, "inner", "links inside machines", "B/s", 0.3)    \
    X(OUTER_LATENCY, "latency_s", "latency between machines", "s", 0.3) \
    X(OUTER_BANDWIDTH, "outer", "links between machines", "B/s", 0.3)

typedef enum {
#define X(id, column, text, unit, width) SCORE_##id,
    SCORE_PARAMETERS(X)
#undef X
        SCORE_N_PARAMETERS
} ScoreParameter;

typedef struct {
    const char *column, *text, *unit;
    double width;
} ScoreParameterInfo;

const ScoreParameterInfo *score_parameter(ScoreParameter parameter);

typedef struct {
    char *contest, *model, *device, *cuts;
    char *planner, *options; /* "": a strategy of these degrees */
    bool calibration, recompute, failed;
    double memory_bytes, slowdown;
    uint32_t processors, gpus, machines, pp, dp, tmp, mbs, chunks;
    double measured_s, measured_bytes, measured_comm_s,
        measured_hidden_s; /* NAN: not measured */
} Trial;

typedef struct {
    char *name, *description;
    GArray *trial; /* Trial */
    double start[SCORE_N_PARAMETERS];
} TrialSet;

/* Names of the data sets that are there; free with g_strfreev. */
char **trials_names(void);

/* KILTER_ERROR_INPUT: no such data set, a file or column that is missing, a query that fails. */
TrialSet *trials_read(const char *name, const char *folder, GError **error);
void trials_free(TrialSet *set);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TrialSet, trials_free)

#endif
