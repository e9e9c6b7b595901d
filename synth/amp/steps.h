/* The steps that layers take (private to synth). */
#ifndef KILTER_SYNTH_AMP_STEPS_H
#define KILTER_SYNTH_AMP_STEPS_H

#include "synth/amp/amp.h"

typedef enum { AMP_FORWARD, AMP_BACKWARD, AMP_UPDATE, AMP_PASSES } AmpPass;

enum { AMP_NO_STEP = UINT32_MAX };

/* An op, or a message: a collective among the devices that share the layer. Ops follow one another,
 * and so do messages. */
typedef struct {
    AmpPass pass;
    uint32_t layer;
    bool is_message;
    uint32_t message; /* MESSAGE: which kind, */
    uint32_t
        after; /* the op that makes what it is on; of an op the last message that it needs */
} AmpStep;

typedef struct {
    Collective collective;
    double bytes, sample_bytes; /* of the whole tensor: in all, and a sample */
} AmpMessage;

/* Gradients that replicas all-reduce: whole + cut / degree bytes of each device. */
typedef struct {
    double whole, cut;
} AmpGradientKind;

typedef struct {
    uint32_t step; /* that makes it */
    uint32_t kind;
} AmpGradient;

typedef struct AmpSteps {
    GArray *step;     /* AmpStep, by pass, then by layer */
    uint32_t *first;  /* [pass * n_layers + layer]: its steps begin there; and the end */
    uint32_t *like;   /* likewise: the first one with equal steps */
    GArray *message;  /* AmpMessage */
    GArray *gradient; /* AmpGradient, by step */
    uint32_t *first_gradient; /* [step], and the end */
    GArray *gradient_kind;    /* AmpGradientKind */
    double
        *time_s; /* [((type * n_degrees + degree) * n_sizes + size) * n_steps + step] */
    double *launch_s;            /* [type * n_steps + step] */
    double *collective_launch_s; /* [type]: of a collective or a transfer */
    /* [layer]: bytes, a sample, that pass to the next layer forward and come back from it */
    double *sent, *returned;
} AmpSteps;

/* Of the program that shares layers among all devices of the view; the model has its degrees and
 * sizes. KILTER_ERROR_INPUT: the batch cannot be cut. */
AmpSteps *amp_steps_read(const AmpModel *model, const Graph *graph,
                         const ClusterView *view, const Program *program, GError **error);
/* Sets first, like and first_gradient of steps that are in order and have times. */
void amp_steps_index(const AmpModel *model, AmpSteps *steps);
/* Adds what each layer takes alone on a device, forward and backward, to the model's times. */
void amp_steps_sum(const AmpSteps *steps, AmpModel *model);
/* One step a layer and pass, of measured times in model->time_s; messages are part of them. */
void amp_steps_measured(const AmpModel *model, AmpSteps *steps);
void amp_steps_free(AmpSteps *steps);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AmpSteps, amp_steps_free)

#endif
