/* Measured times of layers in place of FLOPs over rates. Private to sim.
 *
 * The computations of a layer in one pass get one common factor per group and device type, so that
 * together they take what the profile (data/formats/measured/layer_profile.h) says of the device
 * type and the group's degree of tensor parallelism, in proportion to the samples: the forward pass
 * its time, the backward pass twice as long. The profile includes the messages of tensor
 * parallelism, so these take no time. Updates keep their time. */
#pragma once

#include "sim/evaluate.h"

/* Reads the profile `file` for a plan. KILTER_ERROR_INPUT if it lacks the model, a device type or a
 * group's degree. */
SimLayerTimes *sim_layer_times_new(const char *file, const SimParts *parts,
                                   const ClusterView *view, GError **error);
AUTOPTR(sim_layer_times_free, SimLayerTimes)

/* The factor on the time of a computation at place i of its group. */
double sim_layer_factor(const SimLayerTimes *times, const Instr *instr, uint32_t i);
