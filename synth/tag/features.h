/* The inputs that a search gives the network. Private to synth/tag. */
#pragma once

#include "synth/tag/net.h"
#include "synth/tag/search.h"

typedef struct NetCase NetCase;

/* All arguments but `quick` must outlive it. dp_s: seconds of data parallelism. */
NetCase *net_case_new(const TagSpace *space, const TagWork *work, SimQuick *quick,
                      TagObjective objective, double dp_s);
AUTOPTR(net_case_free, NetCase)

/* The view of a vertex. action: [op group], the strategy with which it was evaluated; decided: [op
 * group], which groups are decided; next: the next group. The evaluator runs the strategy once
 * more, for the feedback. The caller frees the view. */
NetView *net_case_view(const NetCase *c, TagEvaluator *evaluator, const uint16_t *action,
                       const bool *decided, uint32_t next);
