/* What the network is shown of a search. Private to synth/tag. */
#ifndef KILTER_SYNTH_TAG_FEATURES_H
#define KILTER_SYNTH_TAG_FEATURES_H

#include "synth/tag/net.h"
#include "synth/tag/search.h"

typedef struct NetCase NetCase;

/* All but the evaluator's quick must outlive it. dp_s: of data parallelism. */
NetCase *net_case_new(const TagSpace *space, const TagWork *work, SimQuick *quick,
                      TagObjective objective, double dp_s);
void net_case_free(NetCase *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NetCase, net_case_free)

/* A vertex: the strategy that it was evaluated with, [op group], which groups are decided, and the one that is next. The
 * evaluator runs the strategy once more, for the loads. The caller frees it. */
NetView *net_case_view(const NetCase *c, TagEvaluator *evaluator, const uint16_t *action,
                       const bool *decided, uint32_t next);

#endif
