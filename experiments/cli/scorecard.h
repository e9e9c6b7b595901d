/* kilter reproduce scorecard. Private to experiments. */
#pragma once

#include "experiments/cli/command.h"

typedef struct {
    const char *sets;     /* some of the data sets' names, with commas; NULL: all */
    const char *measured; /* folder of the data; NULL: refused */
    const char *database; /* for the trials' rows (experiments/scorecard/record.h) */
    const char *line;     /* the command line */
    uint32_t threads;     /* 0: one per core */
    uint32_t starts;      /* number of other starting values to score the sets from */
    bool sealed;          /* the test uses the sealed trials */
    bool unfitted;        /* costs keep their starting values */
    bool plain;           /* or those of the clusters' files, as in kilter simulate */
} ScorecardRun;

/* Scores the data sets, stores their trials, prints the table. */
bool scorecard_run(const ScorecardRun *run, const CommandOptions *options,
                   GError **error);
