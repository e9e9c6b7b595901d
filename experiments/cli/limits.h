/* The limits of a command, and notes when it takes long or much. */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* From here on a failed allocation or a failed write to stdout ends the program with one line on
 * stderr and status 1; a command that takes a minute, or 2 GiB, says so once on stderr. Call first
 * in main(). `command`: its name where each line on stderr is a JSON object, as under --json
 * (data/schemas/error.json, note.json); NULL: lines are plain text. */
void limits_begin(const char *command);

/* One line on stderr about a command that goes on. */
void limits_note(const char *format, ...) G_GNUC_PRINTF(1, 2);

/* From here on an interrupt (SIGINT) says so in one line before it ends the program, unless it was
 * ignored. limits_begin does so; to be called again by who let it have another meaning. */
void limits_catch_interrupts(void);

/* Turns notes about time off: the command is to be quiet, or shows its progress itself. */
void limits_hush(void);

/* From here on, a program that ends by its own fault (a crash, no memory left) makes this file;
 * NULL: no longer. */
void limits_mark_faults(const char *path);

/* Takes back the default limit, half of the machine's memory, which limits_begin sets: for the
 * ranks of exec, which check what they need. */
void limits_lift(void);

/* Bounds the memory of this process to "SIZE", such as 4GiB. KILTER_ERROR_INPUT if it is not a
 * size, or less than 64 MiB. */
bool limits_set_memory(const char *size, GError **error);
