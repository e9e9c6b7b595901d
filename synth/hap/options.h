/* Options of HAP's search, and of the certificates, pins and segments of its plans; gathered by
 * synth/question/planner_options.h. */
#pragma once

#include "data/base/options.h"

/* clang-format off */
#define HAP_SEARCH_OPTION_TABLE(X)                      \
    X(COUNT(0, 1000000000), effort, "effort", "600000") \
    X(COUNT(1, 100000000), labels, "labels", "800")     \
    X(COUNT(1, 100000), programs, "programs", "12")     \
    X(COUNT(0, 1000000), moves, "moves", "200")

#define HAP_PLAN_OPTION_TABLE(X)                            \
    X(COUNT(1, 1000000), boxes, "boxes", "400")             \
    X(PARSED(read_pins), pins, "pin", "")                   \
    X(PARSED(segments_parse), segments, "segments", "none")
/* clang-format on */
