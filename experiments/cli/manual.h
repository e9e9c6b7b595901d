/* Manual pages and completions, made from the tables of --help. */
#pragma once

#include "experiments/cli/command.h"

/* Writes below `folder`: man/man1/kilter.1 and a page for each command; completions for bash, zsh
 * and fish, where each shell looks for them below share/ of a prefix. KILTER_ERROR_INPUT if a file
 * cannot be written. */
bool manual_write(const Command *command, uint32_t n, const char *folder, GError **error);
