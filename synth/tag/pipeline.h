/* Pipelines in TAG's space (private to synth): op groups in the order of execution, cut into
 * runs, each on a device set of its own or on one device. With microbatches these work at the same
 * time. */
#pragma once

#include "synth/tag/tag.h"

/* Evaluates a strategy, [op group]; *time_s: INFINITY if it does not fit. */
typedef bool (*TagTry)(void *context, const uint16_t *action, double *time_s,
                       GError **error);

/* Tries the orders of device sets (of more than four sets only those by speed), and of all devices
 * by speed, with runs that take equally long; then moves the cuts of the fastest one as long as
 * that gains time. Errors are those of `try`. */
bool tag_try_pipelines(const TagSpace *space, const TagWork *work, TagTry try,
                       void *context, GError **error);
