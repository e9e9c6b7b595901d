/* The help of commands, as wide as the terminal. */
#pragma once

#include "experiments/cli/describe.h"

/* Prints usage, summary, options (the command's own, then those in common) and examples. */
void help_print(const CommandSyntax *syntax, const GOptionEntry *common);

/* Prints what kilter is for, and the commands to begin with; or all commands by their groups. */
void help_greet(const Command *list, uint32_t n);
void help_all(const Command *list, uint32_t n);
