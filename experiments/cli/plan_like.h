/* Plans like a launch of a framework: kilter plan --like. */
#pragma once

#include "experiments/cli/command.h"

/* Reads the launch, sets the strategy of the options and the planner manual on single GPUs, and
 * puts into *spec the keys of the model that the launch gives and the spec has not (interned).
 * *like gets {file, framework, model, unknown: names without meaning here}. KILTER_ERROR_INPUT
 * names the file and what contradicts. */
bool plan_like(const char *file, char **spec, const char *cluster, CommandPlanning *how,
               CommandOptions *options, json_t **like, GError **error);

#define PLAN_TEXT_LIKE                                 \
    "[  like         {like.file}, {like.framework}\n]" \
    "[*like.unknown<20:  not read     {.}\n]"
