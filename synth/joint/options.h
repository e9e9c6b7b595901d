/* Options of joint; gathered by synth/question/planner_options.h. */
#ifndef KILTER_SYNTH_JOINT_OPTIONS_H
#define KILTER_SYNTH_JOINT_OPTIONS_H

#include "data/base/options.h"

/* clang-format off */
#define JOINT_OPTION_TABLE(X)                                                              \
    X(COUNT(1, 1000000), pipelines, "pipelines", "40",                                    \
      "joint: pipelines of each number of microbatches that are walked step by step")
/* clang-format on */

#endif
