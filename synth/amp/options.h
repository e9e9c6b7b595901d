/* Options of the planners of pipelines (amp, amp-sa, megatron, amp-random); gathered by
 * synth/question/planner_options.h. */
#pragma once

#include "data/base/options.h"

/* clang-format off */
#define AMP_COST_WORDS(X) \
    X(AMP_COST_DETAILED, "detailed") X(AMP_COST_FAITHFUL, "faithful")
OPTION_WORDS(AMP_COST_WORDS)
#define AMP_BALANCE_WORDS(X) \
    X(AMP_BALANCE_LAYERS, "layers") X(AMP_BALANCE_PARAMETERS, "parameters")
OPTION_WORDS(AMP_BALANCE_WORDS)
#define AMP_PLACEMENT_WORDS(X) \
    X(AMP_PLACEMENT_RANDOM, "random") X(AMP_PLACEMENT_DOMINO, "domino")
OPTION_WORDS(AMP_PLACEMENT_WORDS)

#define AMP_OPTION_TABLE(X)                                          \
    X(COUNT(0, 1000000), tmp, "tmp", "0")                            \
    X(COUNT(0, 1000000), most_tmp, "most_tmp", "0")                  \
    X(COUNT(0, 1000000), mbs, "mbs", "0")                            \
    X(COUNT(0, 1000000), chunks, "chunks", "2")                      \
    X(CHOICE(AMP_COST_WORDS), cost, "cost", "detailed")              \
    X(CHOICE(AMP_BALANCE_WORDS), balance, "balance", "layers")       \
    X(CHOICE(AMP_PLACEMENT_WORDS), placement, "placement", "random") \
    X(DATA(layer_profile_option), profile, "profile", "")            \
    X(COUNT(0, 1000000), steps, "steps", "0")                        \
    X(COUNT(0, 1000000), trials, "trials", "5")                      \
    X(COUNT(0, 1000000), rank, "rank", "0")
/* clang-format on */

typedef struct {
    AMP_OPTION_TABLE(OPTION_MEMBER)
} AmpPlanOptions;
