/* Completion scripts for shells, made from the commands' descriptions (experiments/cli/describe.h,
 * with the `help` of each). */
#ifndef KILTER_EXPERIMENTS_CLI_COMPLETION_H
#define KILTER_EXPERIMENTS_CLI_COMPLETION_H

#include <jansson.h>

/* Callers free. */
char *completion_bash(const json_t *commands);
char *completion_zsh(const json_t *commands);
char *completion_fish(const json_t *commands);

#endif
