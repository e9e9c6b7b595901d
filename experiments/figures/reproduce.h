/* Reproducing a paper's figure: its experiment's sweep, the figure, its claims beside ours. */
#pragma once

#include "experiments/figures/claims.h"
#include "experiments/sweep/sweep.h"

/* Names of the experiments that `asked` stands for, in letters of either case: one of
 * experiments/NAME.yaml, the same without its paper ("fig13"), all of a paper's ("hap": every name
 * that starts with hap-), or "all". KILTER_ERROR_INPUT lists the known ones, or those of several
 * papers that it may be. Free with g_strfreev. */
char **reproduce_names(const char *asked, GError **error);

typedef struct {
    const char *database; /* NULL: folder/NAME.db */
    const char *folder;
    /* another database, whose answers are taken over first; NULL: none */
    const char *known;
    const char *command, *revision; /* the command line and the commit, for the store */
    /* with which the experiment was read; also applied to its columns */
    ExperimentChange change;
    SweepOptions sweep;
} ReproduceOptions;

typedef struct {
    char *database;
    char *png, *svg;
    Claims *claims;
    SweepProgress progress; /* also set on failure */
} Reproduction;

/* Sweeps the experiment and its columns. The figure and the claims use only the configurations that
 * the experiment asks for now, whatever else the database holds. */
bool reproduce_run(const Experiment *experiment, const ReproduceOptions *options,
                   Reproduction *reproduction, GError **error);
AUTOCLEAR(reproduction_clear, Reproduction)
