/* A user's own trials: a CSV file with one row for each iteration that was measured, or could be:
 *
 *     model,machines,tp,pp,micro_batch,seconds,peak,group
 *     "llama:layers=32,seq=4096,global_batch=64,precision=bf16",2,4,2,1,1.84,61 GiB,8B
 *     "llama:layers=32,seq=4096,global_batch=64,precision=bf16",2,2,4,1,2.31,oom,8B
 *
 *     model            one of kilter models
 *     global_batch, seq, precision *   keys of the model; empty: as the model says
 *     cluster *        a cluster's name or file; empty: the command's cluster
 *     machines *       the machines that took part: 2, or by device type, h100-sxm=2 a100=1; empty: all
 *     gpus *           the GPUs used in each machine; empty: all
 *     pp, tp, ... *    any key of a strategy (data/strategy/strategy.h), for the planner manual; empty: the key's default
 *     planner, options *   another planner and its options, such as 'bucket=25MiB duplex=on'
 *     seconds *        the time of an iteration; or tokens_per_s, tokens_per_s_per_gpu, samples_per_s; empty: not measured
 *     peak *           the peak of memory on the fullest GPU, such as 61 GiB; or peak_bytes, peak_gib; oom: it ran out of memory
 *     log *            the log of the run (training_log.h), for a time and a peak not in cells
 *     group *          trials that are held out together; empty: the model
 *     contest *        alternatives for the same work; empty: model and machines
 *     software *       the runtime (data/runtimes) that ran it; empty: that of the plan's kind
 *     fidelity *       analytic, stage or flow, which predicts the trial; empty: stage for strategies, flow for planners
 *
 * A pipeline with many micro-batches is simulated with fewer; once it is full it takes as long for
 * each further one. Columns marked * may be left out. */
#pragma once

#include "experiments/calibration/trial.h"

/* Trials (of type Trial) on parts of `cluster`. KILTER_ERROR_INPUT with file, line, column and what
 * was expected. Free with g_array_unref. */
GArray *trial_file_read(const char *file, const Cluster *cluster, GError **error);
/* The same from text; messages call it `file`. */
GArray *trial_file_parse(const char *file, const char *text, size_t length,
                         const Cluster *cluster, const Sheets *sheets, GError **error);
