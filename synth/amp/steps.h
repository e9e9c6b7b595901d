/* The steps that layers take (private to synth). */
#pragma once

#include "data/program/batch.h"
#include "synth/amp/amp.h"

typedef enum { AMP_FORWARD, AMP_BACKWARD, AMP_UPDATE, AMP_PASSES } AmpPass;

enum { AMP_NO_STEP = UINT32_MAX };

/* An op, or a message: a collective among the devices that share the layer. Ops follow one another,
 * and so do messages. */
typedef struct {
    AmpPass pass;
    uint32_t layer;
    bool is_message;
    uint32_t message; /* MESSAGE: its kind */
    /* for a message the op that makes its tensor; for an op the last message that it needs */
    uint32_t after;
    bool waits; /* of a backward: no other layer needs it, as with gradients of weights */
    OpId op;    /* GRAPH_NONE: none */
} AmpStep;

typedef struct {
    Collective collective;
    double bytes, sample_bytes; /* bytes of the whole tensor: in all, and per sample */
} AmpMessage;

/* A gradient that replicas all-reduce: whole + cut / degree bytes per device. */
typedef struct {
    double whole, cut;
} AmpGradientKind;

typedef struct {
    uint32_t step; /* that makes it */
    uint32_t kind;
} AmpGradient;

typedef struct AmpSteps {
    GArray *step; /* AmpStep, by pass, then by layer */
    /* [pass * n_layers + layer]: its first step; the last element is the end */
    uint32_t *first;
    uint32_t *like;   /* likewise: the first layer with equal steps */
    GArray *message;  /* AmpMessage */
    GArray *gradient; /* AmpGradient, by step */
    /* [step]: its first gradient; the last element is the end */
    uint32_t *first_gradient;
    GArray *gradient_kind; /* AmpGradientKind */
    /* [((type * n_degrees + degree) * n_sizes + size) * n_steps + step] */
    double *time_s;
    double *launch_s;            /* [type * n_steps + step] */
    double *collective_launch_s; /* [type]: launch time of a collective */
    double *transfer_launch_s;   /* [type]: the same of a transfer, with its hand-over */
    /* [layer]: bytes per sample that pass forward to the next layer and come back from it */
    double *sent, *returned;
} AmpSteps;

/* When a step runs again: before its layer's backward waits for the next layer's, or after. */
typedef enum {
    AMP_EARLY,
    AMP_LATE,
    AMP_AGAIN_PARTS,
    AMP_NEVER = AMP_AGAIN_PARTS
} AmpWhen;

/* The steps that a mode runs again where all layers have it. */
typedef struct {
    Recompute mode;
    AmpWhen *when;  /* [step] */
    uint32_t *like; /* [layer]: an earlier layer that runs equal steps again, or itself */
    double *less;   /* [degree * n_layers + layer]: bytes per sample that are not kept */
} AmpAgain;

GHashTable *amp_agains_new(void);
/* Of a model with steps, read from a graph. The result is the model's. */
const AmpAgain *amp_again(const AmpModel *model, Recompute mode);

/* Reads the steps of a program that shares layers among all devices of the view; the model must
 * have its degrees and sizes. KILTER_ERROR_INPUT if the batch cannot be cut. */
AmpSteps *amp_steps_read(const AmpModel *model, const Graph *graph,
                         const ClusterView *view, const Program *program, GError **error);
/* Sets first, like and first_gradient of steps that are in order and have times. */
void amp_steps_index(const AmpModel *model, AmpSteps *steps);
/* Adds the time of each layer alone on a device, forward and backward, to the model's times. */
void amp_steps_sum(const AmpSteps *steps, AmpModel *model);
/* Replaces the steps by one step per layer and pass, with the measured times in model->time_s,
 * which include messages. */
void amp_steps_measured(const AmpModel *model, AmpSteps *steps);
/* Whether two instructions compute ops that are alike, in the same forms. */
bool amp_computes_alike(const Graph *graph, const BatchForms *batch, const Instr *a,
                        const Instr *b);
void amp_steps_free(AmpSteps *steps);
