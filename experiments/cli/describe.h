/* Commands described for machines: `kilter COMMAND --describe` prints the content of --help as
 * JSON. */
#pragma once

#include "experiments/cli/command.h"

#define COMMAND_DESCRIBE "--describe"

/* The text of a command's help: the summary with its tables, and the lines of its examples, the
 * first without indentation. Where the file is missing, the summary says so. Caller frees both. */
void command_text(const CommandSyntax *syntax, char **summary, char **example);

/* The domain of the "error" whose message is a description. */
#define COMMAND_DESCRIPTION (command_description_quark())
GQuark command_description_quark(void);

/* Sets that error; returns false. common: the entries that every command has. */
bool command_describe(const CommandSyntax *syntax, const GOptionEntry *common,
                      GError **error);

/* {name, arguments, summary, example, options: [{name, help, file, letter?, argument?}]}; the
 * caller gets a reference. */
json_t *command_description(const char *name, CommandRun run);
