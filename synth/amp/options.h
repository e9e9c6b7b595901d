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

#define AMP_OPTION_TABLE(X)                                                                \
    X(COUNT(0, 1000000), tmp, "tmp", "0", "AMP's name for tp")                            \
    X(COUNT(0, 1000000), most_tmp, "most_tmp", "0", "largest tmp; 0: any")                \
    X(COUNT(0, 1000000), mbs, "mbs", "0", "AMP's name for micro_batch; 0: any number")    \
    X(COUNT(0, 1000000), chunks, "chunks", "2", "stages per device when interleaved")     \
    X(CHOICE(AMP_COST_WORDS), cost, "cost", "detailed",                                    \
      "which reading of AMP's cost model")                                                 \
    X(CHOICE(AMP_BALANCE_WORDS), balance, "balance", "layers",                             \
      "what megatron divides evenly")                                                      \
    X(CHOICE(AMP_PLACEMENT_WORDS), placement, "placement", "random",                       \
      "how amp-random places its ranks; domino: as amp-sa, with equal numbers of layers") \
    X(DATA, profile, "profile", "",                                                       \
      "file of measured layer times; default: FLOPs over rates")                          \
    X(COUNT(0, 1000000), steps, "steps", "0",                                             \
      "amp-sa: strategies that it tries; 0: as many as amp")                               \
    X(COUNT(0, 1000000), trials, "trials", "5",                                           \
      "number of candidates, by predicted time, that are simulated")                      \
    X(COUNT(0, 1000000), rank, "rank", "0",                                               \
      "take the n-th candidate by predicted time, or the n-th random one; 0: choose "     \
      "by trials")
/* clang-format on */

typedef struct {
    AMP_OPTION_TABLE(OPTION_MEMBER)
} AmpPlanOptions;
