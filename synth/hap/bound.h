/* Boxes of ratios and bounds of all programs in them (private to synth): shared by the quick
 * bound (bound.c) and the certificate (certify.c). */
#pragma once

#include "synth/answer/answer.h"

enum { CERTIFIER_MAX_KINDS = 256 };

/* An interval of ratios for each kind of device, and one of their largest: collectives take as long
 * as the largest ratio, and a limit on it says how much work the slower devices must take. */
typedef struct {
    double lo[CERTIFIER_MAX_KINDS], hi[CERTIFIER_MAX_KINDS];
    double largest_lo, largest_hi;
    /* halvings of the largest ratio's interval since one raised the bound */
    uint32_t idle;
    double bound_s;
    SynthBytes bytes[SYNTH_POINTS]; /* of a program in the box, where memory is limited */
} CertifierBox;

/* Ways to halve a box. */
typedef enum { HALVE_LARGEST, HALVE_KIND, HALVINGS } CertifierHalving;

typedef struct {
    const Question *question;
    Answer *answer;
    const ClusterView *view;
    Plan *plan;     /* the answer's */
    double upper_s; /* the least time before rounding of all plans seen */
    /* the part of the plan's time that is in proportion to the largest ratio */
    double largest_part;
    /* multipliers of memory (SynthOptions.memory_s); NULL: memory does not matter */
    double *memory_s;
    double gain
        [HALVINGS]; /* what each way has raised bounds by, relatively; INFINITY: not tried */
    bool open_at_point; /* memory leaves the gap open at the plan's own ratios */
    DeviceKinds kinds;
    GArray *boxes; /* CertifierBox; together they cover all ratios */
} Certifier;

/* NULL where nothing can be proved; the reason is in plan->certificate. */
Certifier *certifier_new(const Question *question, Answer *answer);
void certifier_free(Certifier *c);

/* The box of all ratios. */
CertifierBox certifier_all(const Certifier *c);
/* Spreads one value per kind to all devices. Caller frees. */
double *certifier_spread(const Certifier *c, const double *kind);
/* Raises a box's bound to the bound without regard to memory. */
bool certifier_bound(const Certifier *c, CertifierBox *box, GError **error);
/* Sets multipliers at the plan's ratios, if memory matters there. */
bool certifier_find_multipliers(Certifier *c, GError **error);
/* Sets the plan's bound and the words for its space of plans. */
void certifier_set_bound(Certifier *c, double bound_s);
