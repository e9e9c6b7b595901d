/* Results as tables: reading and pivoting them. */
#include "experiments/sweep/frame.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "data/base/each.h"
#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/json.h"
#include "data/base/names.h"
#include "data/base/units.h"
#include "data/store/store.h"

static Frame *frame_new(void)
{
    Frame *frame = g_new(Frame, 1);
    frame->column = g_ptr_array_new_with_free_func(g_free);
    frame->row = g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);
    return frame;
}

FREE_DEFINE(frame_free, Frame, frame, g_ptr_array_unref(frame->column),
            g_ptr_array_unref(frame->row));

uint32_t frame_column(const Frame *frame, const char *name)
{
    return TEXT_PLACE(frame->column->pdata, frame->column->len, name);
}

/* The place of a column, or false with KILTER_ERROR_INPUT that lists the columns. */
static bool frame_find(const Frame *frame, const char *name, uint32_t *index,
                       GError **error)
{
    *index = frame_column(frame, name);
    if (*index < frame->column->len)
        return true;
    g_autofree const char **known = g_new0(const char *, frame->column->len + 1);
    for (uint32_t i = 0; i < frame->column->len; i++)
        known[i] = frame->column->pdata[i];
    return names_find("column", name, known, index, error);
}

const char *frame_at(const Frame *frame, uint32_t row, uint32_t column)
{
    const GPtrArray *texts = frame->row->pdata[row];
    return column < texts->len ? texts->pdata[column] : NULL;
}

/* Takes the text. */
static void set(GPtrArray *row, uint32_t column, char *text)
{
    if (row->len <= column)
        g_ptr_array_set_size(row, (gint)column + 1);
    put_block(row->pdata[column], text);
}

/* --- reading --- */

/* {"model.layers": "12"} */
static void add_axes(Frame *frame, GPtrArray *row, const char *axes)
{
    json_t *object = json_loads(axes, 0, NULL);
    members_each (key, value, object) {
        const uint32_t index = frame_column(frame, key);
        if (index == frame->column->len)
            g_ptr_array_add(frame->column, g_strdup(key));
        set(row, index, g_strdup(json_string_value(value)));
    }
    json_decref(object);
}

/* SQLite writes 15 digits of a real; the query asks for 17. A row without a plan has neither stages
 * nor a peak, which stores keep as 0. */
static char *text_of(const char *column, const char *value)
{
    static const char *const REALS[] = {"gap", "mfu", "dollars_per_million", NULL},
                             *const PLANNED[] = {"stages", "peak_memory_bytes", NULL};
    if (g_strv_contains(PLANNED, column) && g_strcmp0(value, "0") == 0)
        return NULL;
    const bool is_real = value && g_strv_contains(REALS, column);
    return value && (is_real || g_str_has_suffix(column, "_s"))
               ? number_exact(g_ascii_strtod(value, NULL))
               : g_strdup(value);
}

static void add_row(uint32_t n_columns, char **value, char **column, void *data)
{
    Frame *frame = data;
    GPtrArray *row = g_ptr_array_new_with_free_func(g_free);
    const uint32_t last = n_columns - 1; /* the axes as JSON, which become columns */
    if (frame->column->len == 0)
        for (uint32_t i = 0; i < last; i++)
            g_ptr_array_add(frame->column, g_strdup(column[i]));
    for (uint32_t i = 0; i < last; i++)
        g_ptr_array_add(row, text_of(column[i], value[i]));
    if (value[last])
        add_axes(frame, row, value[last]);
    g_ptr_array_add(frame->row, row);
}

/* Members of the pace of a plan that fits (experiments/sweep/result.c), with all digits. */
#define PACE_OF(name)                                                            \
    ", CASE WHEN status = 'ok' AND json_valid(detail) AND json_extract(detail, " \
    "'$.pace." #name                                                             \
    "') NOTNULL THEN printf('%!.17g', json_extract(detail, '$.pace." #name       \
    "')) END AS " #name
#define FRAME_LEFT                                                      \
    ", CASE WHEN status = 'ok' AND json_valid(detail) THEN detail ->> " \
    "'$.pace.memory_left_bytes' END AS memory_left_bytes"
#define FRAME_PACE \
    PACE_OF(samples_per_s) PACE_OF(tokens_per_s) PACE_OF(mfu) PACE_OF(dollars_per_million)

Frame *frame_read(Store *store, const char *experiment, GError **error)
{
    static const char columns[] =
        "SELECT experiment, ordinal, hash, model, cluster, entry" ANSWER_METHOD(
            STORE_EXACT) ", seed" ANSWER_NUMBERS(STORE_EXACT) FRAME_PACE FRAME_LEFT
        ", ratios, spec, run, axes "
        "FROM result";
    g_autoptr(Frame) frame = frame_new();
    g_autoptr(GString) sql = g_string_new(columns);
    if (experiment) {
        g_auto(GStrv) part = g_strsplit(experiment, "'", -1);
        g_autofree char *escaped = g_strjoinv("''", part);
        g_string_append_printf(sql, " WHERE experiment = '%s'", escaped);
    }
    g_string_append(sql, " ORDER BY experiment, ordinal");
    if (!store_query(store, sql->str, add_row, frame, error))
        return NULL;
    if (frame->row->len > 0)
        return g_steal_pointer(&frame);
    return refused(error, "no results%s%s", experiment ? " of the experiment " : "",
                   experiment ? experiment : "");
}

/* Whether the column is one of the words by which an experiment asks; axes follow the column
 * `run`. */
static bool is_asked(const Frame *frame, uint32_t column, uint32_t run)
{
    static const char *const ASKED[] = {"experiment", "model",       "cluster", "entry",
                                        "fidelity",   "granularity", "seed",    NULL};
    return column > run || g_strv_contains(ASKED, frame->column->pdata[column]);
}

uint32_t frame_n_repeated(const Frame *frame)
{
    g_autoptr(GHashTable) seen = text_table(NULL);
    const uint32_t run = frame_column(frame, "run");
    uint32_t repeated = 0;
    for (uint32_t i = 0; i < frame->row->len; i++) {
        g_autoptr(GString) words = g_string_new(NULL);
        for (uint32_t k = 0; k < frame->column->len; k++) {
            const char *text = is_asked(frame, k, run) ? frame_at(frame, i, k) : NULL;
            g_string_append_printf(words, "%s%c", text ? text : "", '\n');
        }
        repeated += !g_hash_table_add(seen, g_strdup(words->str));
    }
    return repeated;
}

/* --- pivots --- */

PivotReduce frame_best(const char *value)
{
    return g_str_has_suffix(value, "_per_s") || strcmp(value, "mfu") == 0 ? PIVOT_MAX
                                                                          : PIVOT_MIN;
}

/* The results at one place. */
typedef struct {
    double least, most, sum;
    uint32_t n, n_all;
    const char *status;
} Cell;

static void cell_take(Cell *cell, const char *value, const char *status)
{
    double number;
    cell->n_all++;
    if (!number_is(value, &number)) {
        cell->status = cell->status ? cell->status : value ? value : status;
        return;
    }
    cell->least = cell->n ? fmin(cell->least, number) : number;
    cell->most = cell->n ? fmax(cell->most, number) : number;
    cell->sum += number;
    cell->n++;
}

static char *cell_text(const Cell *cell, PivotReduce reduce)
{
    const double value[] = {[PIVOT_MIN] = cell->least,
                            [PIVOT_MAX] = cell->most,
                            [PIVOT_MEAN] = cell->sum / cell->n,
                            [PIVOT_COUNT] = cell->n_all};
    if (cell->n == 0 && reduce != PIVOT_COUNT)
        return g_strdup(cell->status);
    return number_exact(value[reduce]);
}

/* Indices of the columns that `list` names, separated by commas. Caller frees. */
static GArray *find_all(const Frame *frame, const char *list, GError **error)
{
    g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_auto(GStrv) name = g_strsplit(list, ",", -1);
    for (char **n = name; *n; n++) {
        uint32_t index;
        if (!frame_find(frame, *n, &index, error))
            return NULL;
        g_array_append_val(found, index);
    }
    return g_steal_pointer(&found);
}

uint32_t frame_number_of(GHashTable *known, const char *key, bool *is_new)
{
    gpointer number;
    *is_new = !g_hash_table_lookup_extended(known, key, NULL, &number);
    if (!*is_new)
        return GPOINTER_TO_UINT(number);
    const uint32_t next = g_hash_table_size(known);
    g_hash_table_insert(known, g_strdup(key), GUINT_TO_POINTER(next));
    return next;
}

/* The row of the pivot that a result belongs to. */
static uint32_t frame_place_of(const Frame *frame, Frame *pivot, GHashTable *known,
                               const GArray *by, uint32_t row)
{
    g_autoptr(GString) key = g_string_new(NULL);
    for (uint32_t k = 0; k < by->len; k++) {
        const char *text = frame_at(frame, row, g_array_index(by, uint32_t, k));
        g_string_append_printf(key, "%s\n", text ? text : "");
    }
    bool is_new;
    const uint32_t place = frame_number_of(known, key->str, &is_new);
    if (is_new) {
        GPtrArray *texts = g_ptr_array_new_with_free_func(g_free);
        for (uint32_t k = 0; k < by->len; k++)
            g_ptr_array_add(
                texts, g_strdup(frame_at(frame, row, g_array_index(by, uint32_t, k))));
        g_ptr_array_add(pivot->row, texts);
    }
    return place;
}

typedef struct {
    uint32_t row, column;
    Cell cell;
} Placed;

static Placed *cell_of(GHashTable *cells, uint32_t row, uint32_t column)
{
    const gint64 key = (gint64)row << 32 | column;
    Placed *placed = g_hash_table_lookup(cells, &key);
    if (!placed) {
        placed = g_new0(Placed, 1);
        placed->row = row;
        placed->column = column;
        g_hash_table_insert(cells, g_memdup2(&key, sizeof key), placed);
    }
    return placed;
}

Frame *frame_pivot(const Frame *frame, const PivotSpec *spec, GError **error)
{
    uint32_t column, value;
    const uint32_t status = frame_column(frame, "status");
    g_autoptr(GArray) by = find_all(frame, spec->rows, error);
    if (!by || !frame_find(frame, spec->columns, &column, error) ||
        !frame_find(frame, spec->value, &value, error))
        return NULL;
    Frame *pivot = frame_new();
    g_autoptr(GHashTable) rows = text_table(NULL);
    g_autoptr(GHashTable) columns = text_table(NULL);
    g_autoptr(GHashTable) cells =
        g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    for (uint32_t k = 0; k < by->len; k++)
        g_ptr_array_add(pivot->column,
                        g_strdup(frame->column->pdata[g_array_index(by, uint32_t, k)]));
    for (uint32_t i = 0; i < frame->row->len; i++) {
        const char *name = frame_at(frame, i, column);
        bool is_new;
        const uint32_t at = frame_number_of(columns, name ? name : "", &is_new);
        if (is_new)
            g_ptr_array_add(pivot->column, g_strdup(name ? name : ""));
        const uint32_t to = frame_place_of(frame, pivot, rows, by, i);
        cell_take(&cell_of(cells, to, by->len + at)->cell, frame_at(frame, i, value),
                  frame_at(frame, i, status));
    }
    table_each (key, item, cells) {
        const Placed *placed = item;
        set(pivot->row->pdata[placed->row], placed->column,
            cell_text(&placed->cell, spec->reduce));
    }
    return pivot;
}

/* --- writing --- */

/* A number with four digits, a whole one (bytes) with all; other text as it is. Caller frees. */
static char *short_text(const char *text)
{
    double number;
    const bool is_real = number_is(text, &number) && strpbrk(text, ".eE");
    const bool whole = is_real && fabs(number) < 1e15 && number == trunc(number);
    return is_real ? g_strdup_printf(whole ? "%.0f" : "%.4g", number)
                   : g_strdup(text ? text : "");
}

static void add_csv(GString *out, const char *text)
{
    if (!text || !strpbrk(text, ",\"\r\n")) {
        g_string_append(out, text ? text : "");
        return;
    }
    g_string_append_c(out, '"');
    for (; *text; text++)
        g_string_append_printf(out, *text == '"' ? "\"\"" : "%c", *text);
    g_string_append_c(out, '"');
}

/* Appends the text with a backslash before the format's special characters. */
static void add_escaped(GString *out, const char *text, const char *special)
{
    g_autofree char *brief = short_text(text);
    for (const char *c = brief; *c; c++)
        if (*c == '\\' && strchr(special, '{'))
            g_string_append(out, "\\textbackslash{}");
        else if ((*c == '^' || *c == '~') && strchr(special, '{'))
            g_string_append_printf(out, "\\%c{}", *c);
        else
            g_string_append_printf(out, strchr(special, *c) ? "\\%c" : "%c",
                                   *c == '\n' ? ' ' : *c);
}

static void add_padded(GString *out, const char *text, int width, bool last)
{
    g_autofree char *brief = short_text(text);
    g_string_append(out, brief);
    for (glong i = g_utf8_strlen(brief, -1); !last && i < width + 2; i++)
        g_string_append_c(out, ' ');
}

static int width_of(const Frame *frame, uint32_t column)
{
    glong width = g_utf8_strlen(frame->column->pdata[column], -1);
    for (uint32_t i = 0; i < frame->row->len; i++) {
        g_autofree char *text = short_text(frame_at(frame, i, column));
        width = MAX(width, g_utf8_strlen(text, -1));
    }
    return (int)width;
}

static const struct {
    const char *begin, *between, *end;
} LINE[] = {[FRAME_TEXT] = {"", "", "\n"},
            [FRAME_CSV] = {"", ",", "\n"},
            [FRAME_CSV_SAFE] = {"", ",", "\n"},
            [FRAME_MARKDOWN] = {"| ", " | ", " |\n"},
            [FRAME_TEX] = {"", " & ", " \\\\\n"}};

static void frame_add_line(GString *out, const Frame *frame, FrameFormat format,
                           const int *width, const GPtrArray *texts)
{
    const uint32_t n = frame->column->len;
    g_string_append(out, LINE[format].begin);
    for (uint32_t i = 0; i < n; i++) {
        const char *text = i < texts->len ? texts->pdata[i] : NULL;
        if (i > 0)
            g_string_append(out, LINE[format].between);
        /* spreadsheets take the text for a formula */
        const bool formula = format == FRAME_CSV_SAFE && text && *text &&
                             strchr("=+-@\t\r", *text) && !number_is(text, NULL);
        g_autofree char *safe = formula ? g_strconcat("'", text, NULL) : NULL;
        if (format == FRAME_CSV || format == FRAME_CSV_SAFE)
            add_csv(out, safe ? safe : text);
        else if (format == FRAME_TEXT)
            add_padded(out, text, width[i], i + 1 == n);
        else
            add_escaped(out, text, format == FRAME_TEX ? "&%$#_{}" : "|\\");
    }
    g_string_append(out, LINE[format].end);
}

char *frame_write(const Frame *frame, FrameFormat format)
{
    const uint32_t n = frame->column->len;
    GString *out = g_string_new(NULL);
    g_autofree int *width = g_new0(int, n);
    for (uint32_t i = 0; format == FRAME_TEXT && i < n; i++)
        width[i] = width_of(frame, i);
    if (format == FRAME_TEX) {
        g_string_append(out, "\\begin{tabular}{");
        for (uint32_t i = 0; i < n; i++)
            g_string_append_c(out, 'l');
        g_string_append(out, "}\n\\hline\n");
    }
    frame_add_line(out, frame, format, width, frame->column);
    for (uint32_t i = 0; format == FRAME_MARKDOWN && i < n; i++)
        g_string_append(out, i + 1 < n ? "|---" : "|---|\n");
    if (format == FRAME_TEX)
        g_string_append(out, "\\hline\n");
    for (uint32_t i = 0; i < frame->row->len; i++)
        frame_add_line(out, frame, format, width, frame->row->pdata[i]);
    if (format == FRAME_TEX)
        g_string_append(out, "\\hline\n\\end{tabular}\n");
    return g_string_free(out, FALSE);
}
