/* Options of joint; gathered by synth/question/planner_options.h. */
#pragma once

#include "data/base/options.h"

/* clang-format off */
#define JOINT_OPTION_TABLE(X)                          \
    X(COUNT(1, 1000000), pipelines, "pipelines", "40") \
    X(COUNT(0, 1000000), work, "work", "400")
/* clang-format on */
