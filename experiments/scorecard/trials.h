/* Trials measured by other people: the work, and the time it took.
 *
 * A data set is a query, experiments/scorecard/NAME.sql, over CSV files of a folder: FOLDER/a/b.csv
 * is the table a_b, all of its columns text or numbers. Its first lines are comments, the very
 * first one the data set's description. The query gives one row per trial; columns marked * may be
 * left out:
 *
 *     split         'calibration' or 'test'
 *     contest       trials of one contest are alternatives for the same work (the fastest is the right choice)
 *     group *       similar trials, which are held out together; if left out, the contest
 *     model         one of kilter models
 *     reason *      why the trial cannot be expressed; NULL where it can
 *     measured_s, measured_gib      NULL where the trial failed, or was not measured
 *     tokens_per_s_per_gpu *        instead of measured_s
 *     measured_comm_s, measured_hidden_s *  communication of a device, and its part beside computation; NULL: not measured
 *     steady *      1: the time of many microbatches is extrapolated from that of two full pipelines; pipelines of equal stages
 *     software *    the runtime (data/runtimes) whose stack ran the trial; plain predictions take it unless they are told one
 *     fidelity *    'flow' if the framework exchanges gradients while it computes; NULL: for strategies 'stage', without overlap
 *     failed        1 if it ran out of memory
 *     cluster *     its file's text, in YAML; costs start as experiments/calibration/costs.h says. Or, for equal devices:
 *         device, memory_gib of each, and how many processors it has
 *         gpus, machines        GPUs per machine, and the number of machines
 *         slowdown *    of computation beside communication (data/cluster/cluster.h); default: none
 *         rate (FLOP/s), bandwidth (of memory, and as unfused of attention and the loss), inner and outer
 *                       (of links), in bytes/s, latency_s (of links), launch_s (of an op, on the host) and
 *                       overhead_s (on the device): where costs start
 *         handover_s *  of a pipeline's transfer, on the host; default: none
 *     planner, options *    one of kilter planners and its options, such as 'bucket=25MiB,duplex=on'. Or, for strategies:
 *         pp, dp, tmp, mbs      degrees and samples of a micro-batch (synth/amp/amp.h)
 *         chunks, recompute     stages of each device; 1 if activations are computed again
 *         cuts          first layers of the second and later stages, such as '9 15 21'; '' for equally many layers
 *         options *     further keys of the strategy, such as 'recompute=selective,sequence_parallel=on'
 *
 * A quarter of the groups of test trials, chosen by hash, is sealed: these trials are predicted
 * only on request. */
#pragma once

#include "experiments/calibration/trial.h"

typedef struct {
    char *name, *description;
    GArray *trial;      /* Trial */
    GHashTable *unable; /* reason -> number of trials that cannot be expressed */
    uint32_t n_unable;
    char *further; /* options of all trials, ",key=value"; NULL: not read as plain ones */
} TrialSet;

/* Names of the data sets that are there; free with g_strfreev. */
char **trials_names(void);

/* KILTER_ERROR_INPUT: no such data set, a file or column that is missing, a query that fails. */
TrialSet *trials_read(const char *name, const char *folder, GError **error);
/* The same as `kilter simulate` would predict it: clusters keep the numbers of their files, no
 * trial is for calibration, and options have these further ones ("key=value"; NULL: none). Trials
 * whose rows say what devices cost are left out. */
TrialSet *trials_read_plain(const char *name, const char *folder, char **further,
                            GError **error);
/* A set without trials, to be filled by the caller. */
TrialSet *trials_new(const char *name);
AUTOPTR(trials_free, TrialSet)
