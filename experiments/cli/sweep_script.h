/* Scripts that run a sweep in parts on many machines (private to experiments/cli). */
#pragma once

#include <glib.h>
#include <stdint.h>

typedef struct {
    const char *name;       /* of the experiment */
    const char *database;   /* the database for all results */
    const char *experiment; /* quoted for the shell, with its options */
    const char *threads;    /* "-j 4 ", or "" */
    uint32_t shards;
    /* what a part asks for, as the scheduler writes it; NULL: its default */
    const char *processors, *memory, *time, *queue;
} SweepScript;

/* kind: a name of data/schedulers, such as "slurm" (a job array, and a last job that merges), or of
 * a user's own schedulers/. Caller frees. KILTER_ERROR_INPUT for any other kind, or where what a
 * part asks for is no word. */
char *sweep_script(const char *kind, const SweepScript *script, GError **error);
