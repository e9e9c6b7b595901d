/* The time of layers on the devices of a stage's replica (private to synth).
 *
 * A pass over a layer moves four clocks: the host has launched, the device has computed, the stream
 * of messages is free, the last message among the devices that share layers has ended. Each clock
 * ends at the maximum over the four earlier clocks of clock plus delay, so passes over many layers
 * compose to one pass. */
#pragma once

#include "synth/amp/steps.h"

enum { CLOCK_HOST, CLOCK_DEVICE, CLOCK_STREAM, CLOCK_SHARED, CLOCKS };

typedef struct {
    double s[CLOCKS];
} AmpClocks;

typedef struct {
    double s[CLOCKS][CLOCKS]; /* [before][after]; -INFINITY: does not wait */
} AmpDelay;

/* The delays of layers found so far, by devices and micro-batch. */
typedef struct AmpLayers AmpLayers;
AmpLayers *amp_layers_new(const AmpModel *model, const AmpCluster *cluster);
AUTOPTR(amp_layers_free, AmpLayers)

/* The first of n_groups groups that do the same at the same time, on microbatches of mbs samples;
 * each has n devices that share the layers, device [group * n + position]. */
typedef struct {
    uint32_t degree, mbs, n, n_groups;
    const uint32_t *device;
    const double *gradient_s; /* [kind]: gradients are all-reduced when made; or NULL */
} AmpWhere;

/* Delays [pass * n_layers + layer]; with `again` those of what the backward runs again,
 * [when * n_layers + layer]. The result is borrowed. */
const AmpDelay *amp_layers_delays(AmpLayers *layers, const AmpWhere *where,
                                  const AmpAgain *again);

/* Seconds of a step of the model for `mbs` samples on a device of the type: between the model's
 * sizes on the line between them, beyond the last one on the last line, below the first one and
 * with a single one in proportion. */
double amp_step_s(const AmpModel *model, uint32_t degree, uint32_t mbs, uint32_t type,
                  uint32_t step);

AmpClocks amp_clocks_pass(const AmpClocks *clocks, const AmpDelay *delay);
/* The delay of `first` followed by `then`. */
AmpDelay amp_delay_join(const AmpDelay *first, const AmpDelay *then);
AmpDelay amp_delay_none(void);
/* The seconds that each repetition of a pass adds. */
double amp_delay_pace(const AmpDelay *delay);
