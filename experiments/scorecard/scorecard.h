/* The scorecard: the simulator held against iterations that others measured
 * (experiments/scorecard/trials.h).
 *
 * A trial's strategy becomes a program like AMP's (synth_amp_program), or that of the planner that
 * it names (experiments/scorecard/trial_plan.h), which is simulated on a cluster of its devices,
 * where hosts wait for what they receive (as those of Megatron-LM and DeepSpeed do). What the
 * cluster costs is fitted to the calibration trials' times: an op takes its launch on the host, and
 * on the device overhead + FLOPs / rate + bytes / bandwidth; attention and the loss have bandwidths
 * of their own (where they are not fused, they go through scores and logits several times), a
 * message takes latency + bytes / bandwidth inside of machines and between them
 * (experiments/scorecard/fit.h). The wave (data/cluster/cluster.h), tiles of 128 x 128 on all
 * processors, is given. The test trials are predicted with them. Memory is that of the plan and
 * what the runtime has besides (its context, communicators, unused pieces), the same for every
 * device: the median of what calibration trials have more than their plans. A set without
 * calibration trials is predicted with the costs that it gives. */
#ifndef KILTER_EXPERIMENTS_SCORECARD_SCORECARD_H
#define KILTER_EXPERIMENTS_SCORECARD_SCORECARD_H

#include "experiments/calibration/statistics.h"
#include "experiments/scorecard/trial_plan.h"

typedef struct {
    double parameter[SCORE_N_PARAMETERS];
    double runtime_bytes;        /* 0: no calibration trial tells its memory */
    uint32_t n_fitted;           /* calibration trials that were fitted to */
    Agreement calibration, test; /* of times; calibration: of the fitted ones */
    double regret; /* mean over the test's contests of at least two trials; NAN: none */
    uint32_t n_memory,
        n_memory_right; /* test trials: whether one fits its memory is predicted right */
    Agreement memory;   /* of the test trials' peaks that were measured */
    /* [trial], of the test and what was fitted to; NAN where it was not predicted */
    double *predicted_s;
    ScoreDetail *detail; /* [trial], where the time is not NAN */
} Score;

typedef struct {
    uint32_t max_fitted; /* calibration trials to fit to, evenly chosen; 0: all */
    uint32_t threads;    /* 0: one per core */
} ScoreOptions;

/* Predicts all trials at the set's starting values, without a fit. */
bool score_evaluate(const TrialSet *set, const ScoreOptions *options, Score *score,
                    GError **error);

/* Fits to the calibration trials, predicts the test trials. KILTER_ERROR_INPUT: a trial whose
 * strategy cannot be made. */
bool score_trials(const TrialSet *set, const ScoreOptions *options, Score *score,
                  GError **error);
void score_clear(Score *score);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Score, score_clear)

#endif
