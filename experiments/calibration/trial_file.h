/* Trials of one's own, a CSV file with a row for each iteration that was measured, or might be:
 *
 *     model,machines,tp,pp,micro_batch,seconds,peak,group
 *     "llama:layers=32,seq=4096,global_batch=64,precision=bf16",2,4,2,1,1.84,61 GiB,8B
 *     "llama:layers=32,seq=4096,global_batch=64,precision=bf16",2,2,4,1,2.31,oom,8B
 *
 *     model            of kilter models
 *     cluster *        a cluster's name or file; else the one that the command is given
 *     machines *       how many of its machines took part: 2, or by device type, h100-sxm=2 a100=1; else all
 *     gpus *           of each machine, if not all
 *     pp, tp, ... *    any key of a strategy (data/strategy/strategy.h), for the planner manual; empty: the key's default
 *     planner, options *   another planner and options of its, as 'bucket=25MiB duplex=on'
 *     seconds *        of an iteration; or tokens_per_s, tokens_per_s_per_gpu, samples_per_s; empty: not measured
 *     peak *           of the fullest GPU's memory, as 61 GiB; or peak_bytes, peak_gib; oom: it ended for want of memory
 *     group *          what is held out together; else the model
 *     contest *        alternatives for the same work; else model and machines
 *
 * Columns marked * may be left out. */
#ifndef KILTER_EXPERIMENTS_CALIBRATION_TRIAL_FILE_H
#define KILTER_EXPERIMENTS_CALIBRATION_TRIAL_FILE_H

#include "experiments/calibration/trial.h"

/* Trials (of type Trial) on parts of `cluster`. KILTER_ERROR_INPUT with file, line, column and what was
 * expected. Free with g_array_unref. */
GArray *trial_file_read(const char *file, const Cluster *cluster, GError **error);
/* The same from text; messages call it `file`. */
GArray *trial_file_parse(const char *file, const char *text, size_t length,
                         const Cluster *cluster, GError **error);

#endif
