/* Options of the planners of op groups (tag and its baselines); gathered by
 * synth/question/planner_options.h. */
#pragma once

#include "data/base/options.h"

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

#define TAG_PLAN_OPTION_TABLE(X)                                                           \
    X(COUNT(1, 1000), groups, "groups", "60", "most op groups")                           \
    X(CHOICE(TAG_GROUPS_WORDS), grouping, "grouping", "own",                               \
      "op groups by METIS, as TAG makes them, or whole layers; own: layers, but metis "    \
      "with search=mcts")                                                                  \
    X(COUNT(1, 100000000), evaluations, "evaluations", "8000",                            \
      "most strategies to try; with search=mcts most iterations")                         \
    X(NUMBER(0, 1000), heat, "heat", "0.01",                                               \
      "flexflow: a strategy slower by this part of data parallelism's time is taken "      \
      "with probability 1/e; 0: only faster ones")                                         \
    X(COUNT(0, 1000000), branches, "branches", "200",                                     \
      "most branches that the bound visits to improve itself; 0: none")                   \
    X(CHOICE(TAG_OBJECTIVE_WORDS), objective, "objective", "both",                         \
      "the fidelity whose time is minimized; both: half of the evaluations each")          \
    X(CHOICE(TAG_LINKS_WORDS), links, "links", "shared",                                   \
      "whether plans are judged by flow on links that messages share, or as in the "       \
      "search, each message on links of its own (network=crossbar)")                       \
    X(CHOICE(TAG_SETS_WORDS), sets, "sets", "kinds",                                       \
      "subsets are made of all machines of a kind together, or of single machines")        \
    X(CHOICE(TAG_LEAVE_WORDS), leave, "leave", "on",                                       \
      "whether finished vertices leave the tree of search=mcts; off: as in TAG's "         \
      "artifact")                                                                          \
    X(CHOICE(TAG_FACTORS_WORDS), factors, "factors", "joint",                              \
      "how sufficient factors are chosen; joint: for all gradients at once; paper: for "   \
      "each alone, by TAG's formula")                                                      \
    X(CHOICE(TAG_UNDECIDED_WORDS), undecided, "undecided", "first",                        \
      "groups that search=mcts has not decided do as the first, which computes longest, "  \
      "as in the paper, or as the last before; then those of large gradients come first")  \
    X(COUNT(1, 256), leaves, "leaves", "1",                                                \
      "number of leaves that search=mcts chooses before it evaluates them, on all "        \
      "cores; 1: as in the paper")                                                         \
    X(FILES(TAG_PRIORS_WORDS, "|tag/network.txt|tag/ahead.txt"), priors,                   \
      "priors", "uniform",                                                                 \
      "priors of search=mcts; gnn: from the network in data/tag/network.txt, which "       \
      "learnt as TAG's does; ahead: in data/tag/ahead.txt, which learnt from strategies "  \
      "one step ahead")
/* clang-format on */

typedef struct {
    TAG_PLAN_OPTION_TABLE(OPTION_MEMBER)
} TagPlanOptions;
