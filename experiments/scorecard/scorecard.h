/* The scorecard: the simulator held against iterations that others measured
 * (experiments/scorecard/trials.h).
 *
 * The costs of devices and links are fitted to the times of the calibration trials
 * (experiments/calibration/trial_fit.h); the other trials are predicted with these costs. Memory is
 * the plan's memory plus that of the runtime (its context, communicators, unused pieces), which is
 * the same for every device of a type: the median excess of the calibration trials over their
 * plans. A set without calibration trials is predicted with the costs' starting values.
 *
 * Development trials were looked at while Kilter was made; sealed trials are predicted only on
 * request. A trial whose strategy cannot be made is counted, with the reason. */
#pragma once

#include "experiments/calibration/trial_fit.h"
#include "experiments/scorecard/baseline.h"
#include "experiments/scorecard/trials.h"

/* Prediction intervals of the test trials, from the errors of fits on trials that were left out. */
typedef struct {
    uint32_t inside, in_50,
        in_90; /* trials like the fitted ones, and the numbers of them within the intervals */
    /* the other trials, which are flagged as outside of the fitted ones */
    uint32_t outside;
    uint32_t missed,
        missed_flagged; /* trials outside beyond the 90 % interval, and the number of them that were
                         * flagged */
} Coverage;

typedef struct {
    uint32_t n;            /* trials of the set */
    FittedCosts costs;     /* empty if nothing was fitted */
    double runtime_bytes;  /* 0: no calibration trial gives a peak of memory */
    uint32_t n_fitted;     /* number of calibration trials in the fit */
    Agreement calibration; /* of the times of the fitted trials */
    Agreement held_out;    /* the same, predicted by fits without their group */
    Agreement test;        /* of the development trials, or the sealed ones */
    /* mean over the test's contests with at least two trials; NAN: there is none */
    double regret;
    uint32_t contests;             /* number of these contests */
    Agreement baseline[BASELINES]; /* for the test's times; n = 0 if nothing was fitted */
    double baseline_regret[BASELINES];
    BaselinePoint *base;   /* [trial] */
    Fitted *fitted;        /* NULL: nothing was fitted */
    FittedPoint *point;    /* [trial], where the time is not NAN */
    Coverage coverage;     /* of the test trials */
    MemoryVerdict verdict; /* of the test trials */
    Agreement memory;      /* of the measured peaks of the test trials */
    /* [trial]: times of test and fitted trials; NAN where a trial was not predicted */
    double *predicted_s;
    TrialDetail *detail; /* [trial], where the time is not NAN */
    char **reason;       /* [trial]: why its strategy cannot be made, or NULL */
} Score;

typedef struct {
    /* number of calibration trials to fit to, evenly chosen; 0: all */
    uint32_t max_fitted;
    uint32_t threads; /* 0: one per core */
    bool sealed;      /* the test uses the sealed trials, not the development ones */
    bool unfitted;    /* the costs keep their starting values */
    bool one_start;   /* the fit starts from one point (TrialFitOptions) */
} ScoreOptions;

/* Fits to the calibration trials, predicts the test trials. Sets measured_s of trials that give
 * tokens per second. KILTER_ERROR_INPUT: none of the trials can be made. */
bool score_trials(TrialSet *set, const ScoreOptions *options, Score *score,
                  GError **error);
AUTOCLEAR(score_clear, Score)

/* --- how much errors depend on the starting values of costs, which are guesses about software
 * (experiments/calibration/costs.h) --- */

typedef struct {
    Agreement calibration, test;
    double regret; /* NAN: the set has no contest */
} StartScore;

/* Scores the set from n other starting values: each cost's is multiplied by exp(u width), with the
 * cost's width and u at random from -1 to 1, the same for all device types. of: [n]. The set has
 * its starting values again afterwards. Errors as score_trials. */
bool starts_score(TrialSet *set, const ScoreOptions *options, uint32_t n, uint64_t seed,
                  StartScore *of, GError **error);
