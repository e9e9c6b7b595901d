/* Options of the planners that let two microbatches take turns (HiDup); gathered by
 * synth/question/planner_options.h. */
#pragma once

#include "data/base/options.h"

/* clang-format off */
#define DUPLEX_WORDS(X) X(DUPLEX_OWN, "own") X(DUPLEX_OFF, "off") X(DUPLEX_ON, "on")
OPTION_WORDS(DUPLEX_WORDS) /* HiDup Sec. 3 */
#define BACKWARD_WORDS(X) \
    X(BACKWARD_OVERLAPPED, "overlapped") X(BACKWARD_SERIAL, "serial")
OPTION_WORDS(BACKWARD_WORDS) /* overlapped: HiDup Eq. 5 */

#define HIDUP_OPTION_TABLE(X)                                     \
    X(CHOICE(DUPLEX_WORDS), duplex, "duplex", "own")              \
    X(CHOICE(BACKWARD_WORDS), backward, "backward", "overlapped") \
    X(NUMBER(0, 1), noise, "noise", "0")                          \
    X(NUMBER(-1, 100), communication, "communication", "0")
/* clang-format on */
