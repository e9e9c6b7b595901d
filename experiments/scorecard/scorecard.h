/* The scorecard: the simulator held against iterations that others measured
 * (experiments/scorecard/trials.h).
 *
 * What devices and links cost is fitted to the times of the calibration trials
 * (experiments/calibration/trial_fit.h), the others are predicted with it. Memory is that of the plan
 * and what the runtime has besides (its context, communicators, unused pieces), the same for every
 * device of a type: the median of what calibration trials have more than their plans. A set without
 * calibration trials is predicted with the costs that it starts from.
 *
 * Development trials were looked at while Kilter was made; sealed ones are predicted only if asked
 * for. A trial whose strategy cannot be made is counted, with the reason. */
#ifndef KILTER_EXPERIMENTS_SCORECARD_SCORECARD_H
#define KILTER_EXPERIMENTS_SCORECARD_SCORECARD_H

#include "experiments/calibration/trial_fit.h"
#include "experiments/scorecard/baseline.h"
#include "experiments/scorecard/trials.h"

/* Whether trials fit their devices' memory, predicted and in fact. */
typedef struct {
    uint32_t fit, failed;  /* in fact */
    uint32_t hits;         /* failed, as predicted */
    uint32_t false_alarms; /* fit, but predicted to fail */
} MemoryVerdict;

/* Intervals of the test trials' times, by what fits say of trials that were left out. */
typedef struct {
    uint32_t inside, in_50,
        in_90; /* trials like those fitted, and how many of them lie in the intervals */
    uint32_t
        outside; /* the others, of which it is said that they are outside of what was fitted */
    uint32_t missed,
        missed_flagged; /* beyond the 90 % interval, and those of them of which it is said */
} Coverage;

typedef struct {
    uint32_t n;            /* trials of the set */
    FittedCosts costs;     /* empty: nothing was fitted */
    double runtime_bytes;  /* 0: no calibration trial tells its memory */
    uint32_t n_fitted;     /* calibration trials that were fitted to */
    Agreement calibration; /* of times of the fitted ones */
    Agreement held_out;    /* the same by fits without their group */
    Agreement test;        /* of the development trials, or the sealed ones */
    double regret; /* mean over the test's contests of at least two trials; NAN: none */
    uint32_t contests;             /* such ones */
    Agreement baseline[BASELINES]; /* of the test's times; n = 0: nothing was fitted */
    double baseline_regret[BASELINES];
    BaselinePoint *base;   /* [trial] */
    Fitted *fitted;        /* NULL: nothing was fitted */
    FittedPoint *point;    /* [trial], where the time is not NAN */
    Coverage coverage;     /* of the test trials */
    MemoryVerdict verdict; /* of the test trials */
    Agreement memory;      /* of the test trials' peaks that were measured */
    /* [trial], of the test and what was fitted to; NAN where it was not predicted */
    double *predicted_s;
    TrialDetail *detail; /* [trial], where the time is not NAN */
    char **reason;       /* [trial], why it cannot be made; NULL */
} Score;

typedef struct {
    uint32_t max_fitted; /* calibration trials to fit to, evenly chosen; 0: all */
    uint32_t threads;    /* 0: one per core */
    bool sealed;    /* the test is on the sealed trials, else on the development ones */
    bool unfitted;  /* the costs stay where they start */
    bool one_start; /* the fit begins once (TrialFitOptions) */
} ScoreOptions;

/* Predicts all trials at the set's starting values, without a fit. */
bool score_evaluate(TrialSet *set, const ScoreOptions *options, Score *score,
                    GError **error);

/* Fits to the calibration trials, predicts the test trials. Sets measured_s of trials that say
 * tokens. KILTER_ERROR_INPUT: there is no trial that can be made. */
bool score_trials(TrialSet *set, const ScoreOptions *options, Score *score,
                  GError **error);
void score_clear(Score *score);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Score, score_clear)

#endif
