/* Recomputation where op groups are on subsets of the devices. Private to synth/tag.
 *
 * Forward ops run again on the device group that they ran on, right before the first backward op
 * there that needs them:
 *
 *     full        what a layer's backward ops need of the layer's forward, from the results of other
 *                 layers, which are kept
 *     selective   single ops whose results only backward ops read (synth_makes_inner)
 *
 * Nothing is communicated again: what another device group made, or sums over replicas, is kept. */
#pragma once

#include "synth/tag/tag.h"

typedef struct TagAgain TagAgain;

/* All arguments must outlive it; work->recompute is not NULL. */
TagAgain *tag_again_new(const TagWork *work, const TagPlacement *placement);
AUTOPTR(tag_again_free, TagAgain)

/* The ops (OpId) to run again before an op, in order; ops are asked for once each, in execution
 * order. Valid until the next call. */
const GArray *tag_again_before(TagAgain *again, OpId op);
