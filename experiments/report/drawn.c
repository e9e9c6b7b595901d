/* The numbers behind a figure's picture, each with the rows that it is from. */
#include "experiments/report/drawn.h"

#include <string.h>

#include "data/base/units.h"
#include "data/store/store.h"
#include "experiments/figures/figure.h"
#include "experiments/report/page.h"

/* Shorter numbers are counts and places, which rows of many kinds have. */
enum { LEAST_DIGITS = 7, MOST_LINKS = 6 };

typedef struct {
    GString *page;
    const char *experiment;
    GHashTable *rows; /* number as text -> GPtrArray of ordinals */
} Drawn;

char *report_row_id(const char *experiment, const char *ordinal)
{
    return g_strdup_printf("%s-row-%s", experiment, ordinal);
}

/* The row's ordinal under each of its numbers. */
static void know_row(uint32_t n_columns, char **value, char **column, void *data)
{
    GHashTable *rows = data;
    (void)column;
    for (uint32_t i = 1; i < n_columns; i++) {
        if (!value[i] || strlen(value[i]) < LEAST_DIGITS)
            continue;
        GPtrArray *same = g_hash_table_lookup(rows, value[i]);
        if (!same) {
            same = g_ptr_array_new_with_free_func(g_free);
            g_hash_table_insert(rows, g_strdup(value[i]), same);
        }
        g_ptr_array_add(same, g_strdup(value[0]));
    }
}

/* Appends "what, what" to the texts and "number, number" to the numbers. */
static void add_value(const char *value, GString *texts, GString *numbers)
{
    double number;
    GString *to = number_is(value, &number) ? numbers : texts;
    if (to->len > 0)
        g_string_append(to, ", ");
    if (to == texts) {
        g_string_append(to, value);
        return;
    }
    char shown[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append(to, g_ascii_formatd(shown, sizeof shown, "%.4g", number));
}

/* A link to the row, unless there are enough or it is there. */
static void add_link(const Drawn *drawn, const char *ordinal, GHashTable *seen)
{
    const guint n = g_hash_table_size(seen);
    if (n >= MOST_LINKS || !g_hash_table_add(seen, g_strdup(ordinal)))
        return;
    g_autofree char *id = report_row_id(drawn->experiment, ordinal);
    g_string_append(drawn->page, n ? ", " : "");
    page_anchor(drawn->page, id, ordinal);
}

/* Links to the rows that the query names, and to those that have a number of the bar. */
static void add_links(const Drawn *drawn, uint32_t n_columns, char **value, char **column)
{
    g_autoptr(GHashTable) seen =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_string_append(drawn->page, "<td>");
    for (uint32_t i = 0; i < n_columns; i++) {
        if (!value[i])
            continue;
        if (strcmp(column[i], FIGURE_ROWS) == 0) {
            g_auto(GStrv) named = g_strsplit(value[i], " ", -1);
            for (char **ordinal = named; *ordinal; ordinal++)
                add_link(drawn, *ordinal, seen);
            continue;
        }
        const GPtrArray *same = g_hash_table_lookup(drawn->rows, value[i]);
        for (guint k = 0; same && k < same->len; k++)
            add_link(drawn, same->pdata[k], seen);
    }
    g_string_append(drawn->page, "</td>\n");
}

/* Columns that say where gnuplot draws, or which rows to lead to. */
static const char *const PLACES[] = {"panel", "group",   "seat",      "slot",
                                     "slots", "measure", FIGURE_ROWS, NULL};

static void add_drawn(uint32_t n_columns, char **value, char **column, void *data)
{
    const Drawn *drawn = data;
    g_autoptr(GString) texts = g_string_new(NULL), numbers = g_string_new(NULL);
    for (uint32_t i = 0; i < n_columns; i++)
        if (value[i] && !g_strv_contains(PLACES, column[i]))
            add_value(value[i], texts, numbers);
    page_row(drawn->page);
    page_cell(drawn->page, texts->str);
    page_cell(drawn->page, numbers->str);
    add_links(drawn, n_columns, value, column);
    page_row_end(drawn->page);
}

static void free_rows(void *rows)
{
    g_ptr_array_unref(rows);
}

bool report_add_drawn(const ReportParts *report, const ReportPart *part, GError **error)
{
    static const char *const COLUMNS[] = {"bar or point", "numbers", "rows", NULL};
    g_autoptr(GHashTable) rows =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_rows);
    g_autofree char *name = report_quoted(part->name);
    g_autofree char *sql = g_strdup_printf(
        "SELECT ordinal, iteration_time_s, communication_s, computation_s, "
        "search_time_s, peak_memory_bytes FROM result WHERE experiment = '%s'",
        name);
    g_autofree char *query = figure_query(part->name, ".sql", error);
    if (!query || !store_query(report->store, sql, know_row, rows, error))
        return false;
    Drawn drawn = {report->page, part->name, rows};
    g_string_append(report->page, "<details>\n");
    page_add(report->page, "summary", "Numbers of the picture");
    page_table(report->page, NULL, COLUMNS);
    const bool good = store_query(report->store, query, add_drawn, &drawn, error);
    page_table_end(report->page);
    g_string_append(report->page, "</details>\n");
    return good;
}
