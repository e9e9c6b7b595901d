/* Options of joint; gathered by synth/question/planner_options.h. */
#pragma once

#include "data/base/options.h"

/* clang-format off */
#define JOINT_OPTION_TABLE(X)                                                              \
    X(COUNT(1, 1000000), pipelines, "pipelines", "40",                                    \
      "joint: pipelines of each number of microbatches that are walked step by step")       \
    X(COUNT(0, 1000000), work, "work", "400",                                             \
      "joint: millions of stages put in front of partial pipelines, in all of its "        \
      "searches together, after which they end; auto also leaves out what promises "       \
      "little, below 400 more and at 1 most; 0: no limit")
/* clang-format on */
