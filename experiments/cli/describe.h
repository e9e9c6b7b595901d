/* Commands for machines: `kilter COMMAND --describe` prints the content of --help as JSON. */
#pragma once

#include "experiments/cli/command.h"

#define COMMAND_DESCRIBE "--describe"

/* {name, arguments, summary, example, options: [{name, help, file, letter?, argument?}]}: the
 * command's own options, *n_own of them, and then `common`, which every command has; the caller
 * gets a reference. Texts are those of data/commands/NAME.txt; what it does not say of an option is
 * said by data/commands/options.txt. Where the file is missing, the summary says so. */
json_t *command_about(const CommandSyntax *syntax, const GOptionEntry *common,
                      size_t *n_own);

/* The domain of the "error" whose message is a description. */
#define COMMAND_DESCRIPTION (command_description_quark())
GQuark command_description_quark(void);

/* "; it is an option of kilter simulate." of those that describe this one with a value; "" if none
 * does. Caller frees. */
char *command_having(const char *option);

/* Sets that error; returns false. */
bool command_describe(const CommandSyntax *syntax, const GOptionEntry *common,
                      GError **error);

/* The description of a command by its name. */
json_t *command_description(const char *name, CommandRun run);
