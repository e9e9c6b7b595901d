/* Text on a terminal: as wide as it is, and verdicts in colour. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Marks inside texts: what follows is a good or a bad verdict, up to the end. Without colours they
 * are left out. */
#define SCREEN_GOOD "\001"
#define SCREEN_BAD  "\002"
#define SCREEN_END  "\003"

/* --color=auto, always or never. KILTER_ERROR_INPUT for another word. */
bool screen_set_color(const char *word, GError **error);

/* Columns of a terminal (COLUMNS, where it does not say); 0: no terminal, nothing is folded. */
uint32_t screen_width(FILE *file);

/* Text in lines of at most `width` columns (0: as it is). Lines are folded at blanks and go on
 * indented. Lines below one another whose columns have gutters are a table: the columns that do not
 * fit go below the first ones. A line that begins with "  kilter " is a command and is continued by
 * a backslash. A word is broken only behind a comma or bar, if it is longer than a line. Caller
 * frees. */
char *screen_text(const char *text, uint32_t width, bool color);

/* Prints a text as the file shows it. */
void screen_put(const char *text, FILE *file);
void screen_print(FILE *file, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* The first `most` lines of a text in lines of `width` columns, all but the first indented by
 * `indent`; "..." stands for the rest. Caller frees. */
char *screen_paragraph(const char *text, uint32_t width, uint32_t indent, uint32_t most);

/* A text as paragraphs: lines that go on are joined. A line that begins with blanks is a paragraph
 * of its own, with the lines below the explanation of its term: "  MFU     the model's FLOPs". Free
 * with g_strfreev. */
char **screen_paragraphs(const char *text);
/* The term of such a paragraph, which the caller frees, and its explanation; false if it has
 * none. */
bool screen_split_term(const char *paragraph, char **term, const char **text);
/* The paragraphs in lines of a width. Ends with a newline. Caller frees. */
char *screen_refill(const char *text, uint32_t width);
