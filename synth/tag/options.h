/* Options of the planners of op groups (tag and its baselines); gathered by
 * synth/question/planner_options.h. */
#pragma once

#include "data/base/options.h"

/* Whether a file is a network's, synth/tag/net.h. */
OptionReader tag_net_option;

/* clang-format off */
#define TAG_GROUPS_WORDS(X) \
    X(TAG_GROUPS_OWN, "own") X(TAG_GROUPS_METIS, "metis") \
    X(TAG_GROUPS_LAYERS, "layers")
OPTION_WORDS(TAG_GROUPS_WORDS)
#define TAG_OBJECTIVE_WORDS(X) \
    X(TAG_OBJECTIVE_BOTH, "both") X(TAG_OBJECTIVE_STAGE, "stage") \
    X(TAG_OBJECTIVE_FLOW, "flow")
OPTION_WORDS(TAG_OBJECTIVE_WORDS)
#define TAG_LINKS_WORDS(X) X(TAG_LINKS_SHARED, "shared") X(TAG_LINKS_OWN, "own")
OPTION_WORDS(TAG_LINKS_WORDS)
#define TAG_SETS_WORDS(X) X(TAG_SETS_KINDS, "kinds") X(TAG_SETS_MACHINES, "machines")
OPTION_WORDS(TAG_SETS_WORDS)
#define TAG_LEAVE_WORDS(X) X(TAG_LEAVE_ON, "on") X(TAG_LEAVE_OFF, "off")
OPTION_WORDS(TAG_LEAVE_WORDS)
#define TAG_FACTORS_WORDS(X) X(TAG_FACTORS_JOINT, "joint") X(TAG_FACTORS_PAPER, "paper")
OPTION_WORDS(TAG_FACTORS_WORDS)
#define TAG_UNDECIDED_WORDS(X) X(TAG_UNDECIDED_FIRST, "first") X(TAG_UNDECIDED_LAST, "last")
OPTION_WORDS(TAG_UNDECIDED_WORDS)
#define TAG_PRIORS_WORDS(X) \
    X(TAG_PRIORS_UNIFORM, "uniform") X(TAG_PRIORS_GNN, "gnn") \
    X(TAG_PRIORS_AHEAD, "ahead")
OPTION_WORDS(TAG_PRIORS_WORDS)

#define TAG_PLAN_OPTION_TABLE(X)                                                       \
    X(COUNT(1, 1000), groups, "groups", "60")                                          \
    X(CHOICE(TAG_GROUPS_WORDS), grouping, "grouping", "own")                           \
    X(COUNT(1, 100000000), evaluations, "evaluations", "8000")                         \
    X(NUMBER(0, 1000), heat, "heat", "0.01")                                           \
    X(COUNT(0, 1000000), branches, "branches", "200")                                  \
    X(CHOICE(TAG_OBJECTIVE_WORDS), objective, "objective", "both")                     \
    X(CHOICE(TAG_LINKS_WORDS), links, "links", "shared")                               \
    X(CHOICE(TAG_SETS_WORDS), sets, "sets", "kinds")                                   \
    X(CHOICE(TAG_LEAVE_WORDS), leave, "leave", "on")                                   \
    X(CHOICE(TAG_FACTORS_WORDS), factors, "factors", "joint")                          \
    X(CHOICE(TAG_UNDECIDED_WORDS), undecided, "undecided", "first")                    \
    X(COUNT(1, 256), leaves, "leaves", "1")                                            \
    X(FILES(TAG_PRIORS_WORDS, "|tag/network.txt|tag/ahead.txt", tag_net_option), priors, \
      "priors", "uniform")
/* clang-format on */

typedef struct {
    TAG_PLAN_OPTION_TABLE(OPTION_MEMBER)
} TagPlanOptions;
