/* Options of HAP's search, and of the certificates, pins and segments of its plans; gathered by
 * synth/question/planner_options.h. */
#pragma once

#include "data/base/options.h"

/* clang-format off */
#define HAP_SEARCH_OPTION_TABLE(X)                                                         \
    X(COUNT(0, 1000000000), effort, "effort", "600000",                                   \
      "partial programs per round of hap's search for less memory, where the fastest "    \
      "program does not fit (600000: under a second; a budget adds more); 0: no limit")   \
    X(COUNT(1, 100000000), labels, "labels", "800",                                        \
      "hap: partial programs per op that its search for less memory keeps (certify: at "   \
      "least 3000)")                                                                       \
    X(COUNT(1, 100000), programs, "programs", "12",                                        \
      "hap: fastest programs of its search for less memory that are rounded and "          \
      "evaluated")                                                                         \
    X(COUNT(0, 1000000), moves, "moves", "200",                                           \
      "hap: most moves of units between devices that improve rounded shards; 0: none")

#define HAP_PLAN_OPTION_TABLE(X)                                                           \
    X(COUNT(1, 1000000), boxes, "boxes", "400",                                           \
      "most boxes of ratios that a certificate looks at (certify); with a budget, 25 "    \
      "times as many")                                                                    \
    X(PARSED(read_pins), pins, "pin", "",                                                 \
      "hap: the form of a tensor, as TENSOR=FORM; may be repeated; pins=FILE reads "      \
      "lines of these")                                                                   \
    X(PARSED(segments_parse), segments, "segments", "none",                               \
      "hap: ops with ratios of their own: none, layers, ops, metis:K, OP=NUMBER;... "     \
      "or FILE")
/* clang-format on */
