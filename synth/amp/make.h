/* AMP (NeurIPS'22): pipelines, replicas and tensor parallelism on single GPUs; layers by dynamic
 * programming (Algorithm 1), the cost by Sec. 3 or, per layer, by max-plus matrices (layers.h). The
 * space: degrees that divide the devices, placements (Sec. 4.2), cuts between layers; least.c has
 * the bound (private to synth). */
#pragma once

#include "synth/amp/amp.h"
#include "synth/answer/answer.h"

/* Planners' variants are AmpMethods; one of Megatron's heuristics stands for both. */
bool amp_make(const Question *question, Answer *answer, GError **error);
