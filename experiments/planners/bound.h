/* Boxes of ratios and bounds of all programs in them (private to experiments): what a bound at once (bound.c) and a
 * certificate (certify.c) share. */
#ifndef KILTER_EXPERIMENTS_PLANNERS_BOUND_H
#define KILTER_EXPERIMENTS_PLANNERS_BOUND_H

#include "experiments/planners/planning.h"

enum { CERTIFIER_MAX_KINDS = 256 };

/* An interval of ratios for each kind of device. */
typedef struct {
    double lo[CERTIFIER_MAX_KINDS], hi[CERTIFIER_MAX_KINDS];
    double bound_s;
    SynthBytes bytes[SYNTH_POINTS]; /* of a program there, once memory is rationed */
} CertifierBox;

typedef struct {
    const Planning *planning;
    const ClusterView *view;
    Plan *plan;
    double upper_s; /* the least time before rounding of a plan that was seen */
    /* multipliers (SynthOptions.memory_s); NULL: memory does not matter */
    double *memory_s;
    DeviceKinds kinds;
    GArray *boxes; /* CertifierBox; those that cover all ratios */
} Certifier;

/* NULL, with the reason in plan->certificate, where nothing is proved. */
Certifier *certifier_new(Plan *plan, const Planning *planning);
void certifier_free(Certifier *c);

/* The box of all ratios. */
CertifierBox certifier_all(const Certifier *c);
/* One value per kind, for each device. Caller frees. */
double *certifier_spread(const Certifier *c, const double *kind);
/* Raises a box's bound to one without regard to memory. */
bool certifier_bound(const Certifier *c, CertifierBox *box, GError **error);
/* Sets multipliers at the plan's ratios, if memory matters there. */
bool certifier_find_multipliers(Certifier *c, GError **error);
/* Gives the plan its bound and says what it is over. */
void certifier_set_bound(Certifier *c, double bound_s);

#endif
