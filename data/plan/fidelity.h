/* Fidelities: ways to say how long an iteration of a plan takes (sim/sim.h). Plan files, results
 * and trials name them. For each row sim has an evaluator of that name. */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef enum {
    FIDELITY_GROUPS = 1, /* takes programs of several groups or microbatches, too */
    FIDELITY_LANES = 2,  /* has a timeline, and so times of measured layers */
    FIDELITY_STREAMS = 4 /* communication beside computation; noise */
} FidelityAbility;

/* name, abilities, words; of two fidelities that take a plan, planners evaluate by the first. */
#define FIDELITY_TABLE(X)                                                           \
    X(ANALYTIC, analytic, 0, "the stage-synchronized formula (HAP Sec. 3.2)")       \
    X(STAGE, stage, FIDELITY_GROUPS | FIDELITY_LANES,                               \
      "each device has a clock that collectives advance together; equals analytic " \
      "where "                                                                      \
      "launching takes no time")                                                    \
    X(FLOW, flow, FIDELITY_GROUPS | FIDELITY_LANES | FIDELITY_STREAMS,              \
      "discrete events; streams, overlap, and collectives that share links")

#define FIDELITY_MEMBER(name, word, abilities, words) FIDELITY_##name,
typedef enum {
    FIDELITY_TABLE(FIDELITY_MEMBER) FIDELITIES,
    FIDELITY_DEFAULT = FIDELITY_STAGE, /* of commands and experiments */
    FIDELITY_DRAWN = FIDELITY_FLOW,    /* of pictures, and of frameworks that overlap */
} Fidelity;
#undef FIDELITY_MEMBER

/* In the order of the table, for completions; and with their words. */
#define FIDELITY_WORD(name, word, abilities, words) #word " "
#define FIDELITY_WORDS                              FIDELITY_TABLE(FIDELITY_WORD)
#define FIDELITY_LINE(name, word, abilities, words) "  " #word ": " words "\n"
#define FIDELITY_LINES                              FIDELITY_TABLE(FIDELITY_LINE)

const char *fidelity_name(Fidelity fidelity);
/* The row of a name of the table. */
Fidelity fidelity_of(const char *name);

/* The table's own name; KILTER_ERROR_INPUT for an unknown name lists the known ones. */
const char *fidelity_find(const char *name, GError **error);

/* Whether a fidelity, by its name, has an ability. */
bool fidelity_can(const char *name, FidelityAbility ability);

/* "stage or flow": the fidelities with an ability, for messages. Caller frees. */
char *fidelity_list(FidelityAbility ability);
