/* The files of a figure: plots/NAME.gp, NAME.sql and NAME-claims.sql. */
#pragma once

#include <glib.h>

/* Names of all figures of stored results, sorted. Free with g_strfreev. */
char **figure_list(void);

/* The path of plots/NAMEsuffix. KILTER_ERROR_INPUT lists the known figures. Caller frees. */
char *figure_file(const char *name, const char *suffix, GError **error);

/* Reads plots/NAMEsuffix, in which a line `.read FILE` stands for the text of plots/FILE: what
 * several queries share. KILTER_ERROR_INPUT lists the known figures. Caller frees. */
char *figure_query(const char *name, const char *suffix, GError **error);
