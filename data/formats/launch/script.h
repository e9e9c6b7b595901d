/* Settings of TOML and of Python, as far as they are literal (private to data/formats): keyword
 * arguments of calls that configure a run, TrainingArguments(bf16=True), and lines such as
 * cfg.model.seq_length = 4096. */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* The whole number that an expression has, with the texts of names put in; NULL if it has none. */
char *launch_arithmetic(const char *text, GHashTable *variable);

/* Whether a text in Python has settings of a run. */
bool script_has_settings(const char *text);

typedef void (*ScriptTake)(void *data, const char *name, const char *text, bool known);
/* Calls `take` for each setting in their order: "bf16", "fsdp_config.version" of a dict or of an
 * inner call. Texts are without quotes, lists as they stand; those that are no literals, nor
 * names that the script sets to one, are not known. */
void script_read(const char *text, bool toml, ScriptTake take, void *data);
