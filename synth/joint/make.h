/* Joint search over pipelines whose stages differ in devices, programs, layers and recomputation,
 * with HAP's programs inside stages (AMP, NeurIPS'22, Sec. 3; HAP, EuroSys'24, Sec. 8): the cost
 * formula, the space and its bounds are in joint.h (private to synth). */
#pragma once

#include "synth/answer/answer.h"

bool joint_make(const Question *question, Answer *answer, GError **error);
