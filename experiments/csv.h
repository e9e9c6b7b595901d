/* Lines of CSV files. Private to experiments. */
#ifndef KILTER_EXPERIMENTS_CSV_H
#define KILTER_EXPERIMENTS_CSV_H

/* Fields of one line; a quoted field may hold commas and "" for a quote. Free with g_strfreev. */
char **csv_split(const char *line);

#endif
