/* Completion scripts for shells, made from the commands' descriptions (experiments/cli/describe.h,
 * with the `help` of each). */
#pragma once

#include <jansson.h>

/* Callers free. */
char *completion_bash(const json_t *commands);
char *completion_zsh(const json_t *commands);
char *completion_fish(const json_t *commands);
