/* The devices' shares of the batch at which op groups are searched (private to synth). */
#pragma once

#include "synth/question/question.h"

/* Vectors [device], all different; replicas on a subset have their part of these. `by_speed`: the
 * planner's own shares are, beside even ones, those in proportion to speed. ratios=best adds those
 * of data parallelism by HAP's linear program (balance/balance.h), within the memory if any are.
 * KILTER_ERROR_FAILED if the solver failed. */
GPtrArray *tag_shares(const Question *question, bool by_speed, GError **error);
