/* The results of a sweep, compared: settings are the points of all axes but the planner's. */
#include "experiments/report/sweep_facts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/base/each.h"
#include "data/base/free.h"
#include "data/base/json.h"
#include "data/base/order.h"
#include "data/base/units.h"
#include "experiments/sweep/frame.h"

/* Of a chart and a pivot table; the list of all rows has the others. */
enum {
    MOST_FACETS = 6,
    MOST_SERIES = 6,
    MOST_PLANNERS = 24,
    MOST_SETTINGS = 24,
    MOST_ROWS = 300
};
enum { ROW_PIXELS = 28, FOOT_PIXELS = 14, LONGEST_NAME = 40 };

/* A column with several values. */
typedef struct {
    const char *name;
    uint32_t column;
    GPtrArray *value; /* in the order of the rows; borrowed */
    GPtrArray *label; /* [value]: its name on the page */
    uint32_t *at;     /* [row]: its value */
} Axis;

typedef struct {
    Frame *frame;
    Axis by;      /* the planners or, where there is one, the last axis */
    GArray *axis; /* Axis: of the settings */
    uint32_t n, n_settings;
    uint32_t *setting; /* [row] */
    double *time_s;    /* [row]; NaN: no plan */
    double *best_s;    /* [setting]; NaN: none */
    double *regret;    /* [row]: time over the fastest; NaN */
    uint32_t status, message;
} Sweep;

static const char *cell(const Sweep *s, uint32_t row, uint32_t column)
{
    const char *text = frame_at(s->frame, row, column);
    return text ? text : "";
}

static const char *status_of(const Sweep *s, uint32_t row)
{
    const char *status = cell(s, row, s->status);
    return strcmp(status, "oom") == 0 ? "out of memory" : status;
}

static double facts_number_of(const Sweep *s, uint32_t row, const char *name)
{
    const char *text = frame_at(s->frame, row, frame_column(s->frame, name));
    return text ? g_ascii_strtod(text, NULL) : NAN;
}

/* --- axes --- */

static CLEAR_DEFINE(axis_clear, Axis, own, g_ptr_array_unref(own->value),
                    g_ptr_array_unref(own->label), g_free(own->at));

static Axis *axis_at(const Sweep *s, guint a)
{
    return &g_array_index(s->axis, Axis, a);
}

/* A name that fits: a file without its folder and ending. Caller frees. */
static char *short_of(const char *text)
{
    g_autofree char *base =
        strchr(text, ':') ? g_strdup(text) : g_path_get_basename(text);
    g_auto(GStrv) part = g_strsplit(base, ".yaml", 2);
    g_autofree char *name = g_strjoinv("", part);
    g_autofree char *valid = g_utf8_make_valid(name, -1);
    g_autofree char *start =
        g_utf8_substring(valid, 0, MIN(LONGEST_NAME, g_utf8_strlen(valid, -1)));
    return g_strconcat(start, strlen(start) < strlen(valid) ? "\u2026" : NULL, NULL);
}

/* Labels of the values: the text up to a colon where no other value begins with it. */
static void axis_name(Axis *axis)
{
    const char *dot = strrchr(axis->name, '.');
    const bool said = dot || strcmp(axis->name, "seed") == 0;
    g_autoptr(GHashTable) alike = text_table(NULL);
    pointers_each (const char, text, axis->value) {
        char *stem = g_strndup(text, strcspn(text, ":"));
        const guint n = GPOINTER_TO_UINT(g_hash_table_lookup(alike, stem));
        g_hash_table_replace(alike, stem, GUINT_TO_POINTER(n + 1));
    }
    pointers_each (const char, text, axis->value) {
        g_autofree char *stem = g_strndup(text, strcspn(text, ":"));
        const bool alone = GPOINTER_TO_UINT(g_hash_table_lookup(alike, stem)) == 1;
        g_autofree char *name = short_of(alone ? stem : text);
        g_ptr_array_add(axis->label,
                        !said
                            ? g_steal_pointer(&name)
                            : g_strdup_printf("%s %s", dot ? dot + 1 : axis->name, name));
    }
}

/* The value of a row without the part that other axes add to it: " scale network=2" of a cluster,
 * ",image=64" of a model. Caller frees. */
static char *value_of(const Sweep *s, uint32_t row, uint32_t column)
{
    static const char *const MARK[] = {" %.*s ", ",%.*s=", ":%.*s="};
    const char *const name = s->frame->column->pdata[column];
    char *text = g_strdup(cell(s, row, column));
    for (uint32_t c = frame_column(s->frame, "run") + 1; c < s->frame->column->len; c++) {
        const char *key = s->frame->column->pdata[c], *dot = strchr(key, '.');
        if (!dot || strncmp(key, name, (size_t)(dot - key)) != 0)
            continue;
        for (uint32_t m = 0; m < G_N_ELEMENTS(MARK); m++) {
            g_autofree char *mark =
                g_strdup_printf(MARK[m], (int)strcspn(dot + 1, "."), dot + 1);
            char *at = strstr(text, mark);
            if (at)
                *at = '\0';
        }
    }
    return text;
}

static Axis read_axis(const Sweep *s, uint32_t column)
{
    Axis axis = {s->frame->column->pdata[column], column,
                 g_ptr_array_new_with_free_func(g_free),
                 g_ptr_array_new_with_free_func(g_free), g_new(uint32_t, s->n)};
    g_autoptr(GHashTable) place = text_table(NULL);
    for (uint32_t i = 0; i < s->n; i++) {
        g_autofree char *text = value_of(s, i, column);
        bool is_new;
        axis.at[i] = frame_number_of(place, text, &is_new);
        if (is_new)
            g_ptr_array_add(axis.value, g_steal_pointer(&text));
    }
    axis_name(&axis);
    return axis;
}

/* The values of a row on all axes, as a text. Caller frees. */
static char *point_of(const Sweep *s, uint32_t row)
{
    GString *text = g_string_new(NULL);
    for (guint a = 0; a < s->axis->len; a++)
        g_string_append_printf(text, "%u ", axis_at(s, a)->at[row]);
    return g_string_free(text, FALSE);
}

/* Whether each planner has one value on the axis, as where the granularity follows the planner: it
 * is then no setting in which planners are compared. */
static bool is_of_planner(const Sweep *s, const Axis *axis)
{
    g_autofree uint32_t *value = g_new0(uint32_t, s->by.value->len);
    bool one = true;
    for (uint32_t i = 0; i < s->n && one; i++) {
        uint32_t *known = &value[s->by.at[i]];
        one = *known == 0 || *known == 1 + axis->at[i];
        *known = 1 + axis->at[i];
    }
    return one;
}

/* Finds the axes: first the columns by which experiments ask, then those of the grid. */
static void find_axes(Sweep *s)
{
    static const char *const ASKED[] = {"model", "cluster", "granularity", "fidelity",
                                        "seed"};
    const uint32_t n = s->frame->column->len, run = frame_column(s->frame, "run");
    s->axis = array_owning(Axis, axis_clear);
    s->by = read_axis(s, frame_column(s->frame, "entry"));
    for (uint32_t i = 0; i < G_N_ELEMENTS(ASKED) + (n - run - 1); i++) {
        const bool asked = i < G_N_ELEMENTS(ASKED);
        Axis axis = read_axis(s, asked ? frame_column(s->frame, ASKED[i])
                                       : run + 1 + i - (uint32_t)G_N_ELEMENTS(ASKED));
        if (axis.value->len > 1 && !is_of_planner(s, &axis))
            g_array_append_val(s->axis, axis);
        else
            axis_clear(&axis);
    }
    if (s->by.value->len == 1 && s->axis->len > 0) { /* nothing else to compare */
        Axis *last = axis_at(s, s->axis->len - 1), planners = s->by;
        s->by = *last;
        *last = planners;
        g_array_set_size(s->axis, s->axis->len - 1);
    }
}

static const char *planner_of(const Sweep *s, uint32_t row)
{
    return s->by.label->pdata[s->by.at[row]];
}

/* The values of a setting on the axes from `first` on. Caller frees. */
static char *setting_name(const Sweep *s, uint32_t row, guint first)
{
    GString *text = g_string_new(NULL);
    for (guint a = first; a < s->axis->len; a++) {
        const Axis *axis = axis_at(s, a);
        const char *label = axis->label->pdata[axis->at[row]];
        g_string_append_printf(text, "%s%s", text->len ? ", " : "", label);
    }
    return g_string_free(text, FALSE);
}

/* --- comparison --- */

static void compare_rows(Sweep *s)
{
    g_autoptr(GHashTable) settings = text_table(NULL);
    s->setting = g_new(uint32_t, s->n);
    s->time_s = g_new(double, s->n);
    s->regret = g_new(double, s->n);
    s->best_s = g_new(double, s->n);
    for (uint32_t i = 0; i < s->n; i++) {
        g_autofree char *point = point_of(s, i);
        const bool ok = strcmp(cell(s, i, s->status), "ok") == 0;
        bool is_new;
        s->setting[i] = frame_number_of(settings, point, &is_new);
        if (is_new)
            s->best_s[s->n_settings++] = NAN;
        s->time_s[i] = ok ? facts_number_of(s, i, "iteration_time_s") : NAN;
        s->best_s[s->setting[i]] = fmin(s->best_s[s->setting[i]], s->time_s[i]);
    }
    for (uint32_t i = 0; i < s->n; i++)
        s->regret[i] = s->time_s[i] / s->best_s[s->setting[i]];
}

/* A row of the league. */
typedef struct {
    uint32_t entry, n, plans, wins;
    double regret, worst, search_s; /* geometric mean, times; NaN: no plan */
    const char *name;
} Rank;

static ORDER_DEFINE(sweep_by_rank, Rank, DESCENDING(plans), ASCENDING(regret),
                    ASCENDING(entry));

static Rank *facts_ranks_of(const Sweep *s)
{
    const guint n = s->by.value->len;
    Rank *rank = g_new0(Rank, n);
    for (guint e = 0; e < n; e++)
        rank[e] = (Rank){.entry = e, .name = s->by.label->pdata[e]};
    for (uint32_t i = 0; i < s->n; i++) {
        Rank *r = &rank[s->by.at[i]];
        r->n++;
        if (isnan(s->time_s[i]))
            continue;
        r->plans++;
        r->wins += s->regret[i] <= 1 + 1e-9;
        r->regret += log(s->regret[i]);
        r->worst = fmax(r->worst, s->regret[i]);
        r->search_s += facts_number_of(s, i, "search_time_s");
    }
    for (guint e = 0; e < n; e++) {
        rank[e].regret = rank[e].plans ? exp(rank[e].regret / rank[e].plans) : NAN;
        rank[e].search_s /= MAX(rank[e].plans, 1);
    }
    qsort(rank, n, sizeof *rank, sweep_by_rank);
    return rank;
}

/* "none", "+51 %" of a factor. */
static json_t *more_json(double factor)
{
    if (!(factor > 1 + 5e-4))
        return json_string("none");
    return factor < 1.1 ? json_sprintf("+%.1f\302\240%%", 100 * (factor - 1))
                        : json_sprintf("+%.0f\302\240%%", 100 * (factor - 1));
}

static json_t *league_json(const Rank *rank, guint n)
{
    json_t *list = json_array();
    const double most = most_over(double, i, n, 1, rank[i].plans ? rank[i].regret : 1);
    for (guint i = 0; i < n; i++) {
        json_t *row = json_pack("{s:s, s:i, s:i, s:i}", "planner", rank[i].name,
                                "results", (int)rank[i].n, "plans", (int)rank[i].plans,
                                "wins", (int)rank[i].wins);
        if (rank[i].plans > 0)
            json_object_update_new(
                row,
                json_pack("{s:f, s:f, s:o, s:o, s:f, s:f}", "regret", rank[i].regret - 1,
                          "worst_regret", rank[i].worst - 1, "more",
                          more_json(rank[i].regret), "worst_more",
                          more_json(rank[i].worst), "search_s", rank[i].search_s, "width",
                          most > 1 ? 100 * log(rank[i].regret) / log(most) : 0));
        json_array_append_new(list, row);
    }
    return list;
}

/* --- chart --- */

/* The shared scale of a facet: logarithmic, from low to high. */
typedef struct {
    double low, high;
} Scale;

static double place_on(const Scale *scale, double value)
{
    return 100 * log(value / scale->low) / log(scale->high / scale->low);
}

static json_t *scale_ticks(const Scale *scale)
{
    json_t *ticks = json_array();
    const double ratio = scale->high / scale->low;
    for (int power = (int)floor(log10(scale->low)); power <= log10(scale->high); power++)
        for (const char *digit = ratio > 300  ? "1"
                                 : ratio > 10 ? "125"
                                              : "123456789";
             *digit; digit++) {
            const double at = pow(10, power) * (*digit - '0');
            const double unit = at >= 1 ? 1 : at >= 1e-3 ? 1e-3 : 1e-6;
            const double left = place_on(scale, at);
            g_autofree char *label = g_strdup_printf("%g\u00a0%s", at / unit,
                                                     at >= 1      ? "s"
                                                     : at >= 1e-3 ? "ms"
                                                                  : "\u00b5s");
            if (left >= 4 && left <= 94)
                json_array_append_new(ticks, json_pack("{s:f, s:f, s:s}", "at", left, "x",
                                                       10 * left, "label", label));
        }
    /* labels closer than 19 % of the width would touch on a phone */
    for (size_t i = 1; i < json_array_size(ticks);) {
        const double from = json_number_value(
                         json_object_get(json_array_get(ticks, i - 1), "at")),
                     to = json_number_value(
                         json_object_get(json_array_get(ticks, i), "at"));
        if (to - from < 19)
            json_array_remove(ticks, i);
        else
            i++;
    }
    return ticks;
}

static guint facet_of(const Sweep *s, uint32_t row)
{
    return s->axis->len < 2 ? 0 : axis_at(s, 0)->at[row];
}

/* The parts of the settings that stand beside one another in a facet. */
typedef struct {
    GPtrArray *name;
    GHashTable *place; /* name -> place */
} Series;

static guint series_of(const Sweep *s, uint32_t row, Series *series)
{
    g_autofree char *name = setting_name(s, row, s->axis->len < 2 ? 0 : 1);
    bool is_new;
    const guint place = frame_number_of(series->place, name, &is_new);
    if (is_new)
        g_ptr_array_add(series->name, g_steal_pointer(&name));
    return place;
}

static void add_dot(const Sweep *s, uint32_t row, guint series, const Scale *scale,
                    json_t *line)
{
    g_autofree char *time = units_format(s->time_s[row], QUANTITY_TIME);
    const double left = place_on(scale, s->time_s[row]);
    json_t *low = json_object_get(line, "from"), *high = json_object_get(line, "to");
    const double from = low ? fmin(json_number_value(low), 10 * left) : 10 * left,
                 to = fmax(json_number_value(high), 10 * left);
    json_object_update_new(line, json_pack("{s:f, s:f}", "from", from, "to", to));
    json_array_append_new(json_object_get(line, "dots"),
                          json_pack("{s:f, s:i, s:s}", "left", left, "series",
                                    (int)MIN(series, MOST_SERIES - 1) + 1, "time", time));
}

static json_t *facet_json(const Sweep *s, const Rank *rank, guint n, guint facet,
                          Series *series)
{
    Scale scale = {INFINITY, 0};
    json_t *lines = json_array();
    for (uint32_t i = 0; i < s->n; i++)
        if (facet_of(s, i) == facet && s->time_s[i] > 0) {
            scale.low = fmin(scale.low, s->time_s[i] / 1.2);
            scale.high = fmax(scale.high, s->time_s[i] * 1.2);
        }
    for (guint p = 0; p < n; p++) {
        json_t *line = json_pack("{s:s, s:i, s:[]}", "planner", rank[p].name, "top",
                                 (int)(p * ROW_PIXELS + FOOT_PIXELS), "dots");
        const char *without = NULL;
        for (uint32_t i = 0; i < s->n; i++) {
            if (facet_of(s, i) != facet || s->by.at[i] != rank[p].entry)
                continue;
            const guint place = series_of(s, i, series);
            if (s->time_s[i] > 0)
                add_dot(s, i, place, &scale, line);
            else
                without = status_of(s, i);
        }
        if (without && json_array_size(json_object_get(line, "dots")) == 0)
            json_object_set_new(line, "without", json_string(without));
        json_array_append_new(lines, line);
    }
    const char *name = s->axis->len < 2 ? "" : axis_at(s, 0)->label->pdata[facet];
    return json_pack("{s:s, s:o, s:o, s:i}", "name", name, "lines", lines, "ticks",
                     scale.high > 0 ? scale_ticks(&scale) : json_array(), "height",
                     (int)(n * ROW_PIXELS));
}

static void add_chart(const Sweep *s, const Rank *rank, guint n, json_t *facts)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GHashTable) place = text_table(NULL);
    Series of = {names, place};
    const guint n_facets = s->axis->len < 2 ? 1 : axis_at(s, 0)->value->len;
    json_t *facets = json_array(), *series = json_array();
    for (guint f = 0; f < MIN(n_facets, MOST_FACETS); f++)
        json_array_append_new(facets, facet_json(s, rank, n, f, &of));
    for (guint i = 0; i < MIN(names->len, MOST_SERIES); i++)
        if (*(char *)names->pdata[i])
            json_array_append_new(series, json_pack("{s:s, s:i}", "name", names->pdata[i],
                                                    "series", (int)i + 1));
    json_object_update_new(
        facts,
        json_pack("{s:o, s:i, s:o, s:i}", "facets", facets, "facets_left",
                  (int)(n_facets - MIN(n_facets, MOST_FACETS)), "series", series,
                  "series_left", (int)(names->len - MIN(names->len, MOST_SERIES))));
}

/* --- pivot table --- */

static json_t *place_json(const Sweep *s, uint32_t row)
{
    if (row == s->n)
        return json_pack("{s:s}", "without", "\u2014");
    if (isnan(s->time_s[row]))
        return json_pack("{s:s}", "without", status_of(s, row));
    g_autofree char *time = units_format(s->time_s[row], QUANTITY_TIME);
    const double regret = s->regret[row];
    const int heat = (regret >= 2) + (regret >= 6) + (regret >= 12) + (regret >= 30);
    json_t *place = json_pack("{s:s, s:i}", "time", time, "heat", heat);
    if (s->regret[row] <= 1 + 1e-9)
        json_object_set_new(place, "best", json_true());
    else
        json_object_set_new(
            place, "times",
            json_sprintf(s->regret[row] < 9.995 ? "%.2f" : "%.0f", s->regret[row]));
    return place;
}

static void add_pivot(const Sweep *s, const Rank *rank, guint n, json_t *facts)
{
    json_t *heads = json_array(), *lines = json_array(), *best = json_array();
    const uint32_t n_settings = MIN(s->n_settings, MOST_SETTINGS);
    for (uint32_t k = 0; k < n_settings; k++) {
        uint32_t first = 0;
        while (s->setting[first] != k)
            first++;
        g_autofree char *name = setting_name(s, first, 0);
        g_autofree char *time = isnan(s->best_s[k])
                                    ? g_strdup("\u2014")
                                    : units_format(s->best_s[k], QUANTITY_TIME);
        json_array_append_new(heads, json_text(name));
        json_array_append_new(best, json_string(time));
    }
    for (guint p = 0; p < n; p++) {
        json_t *places = json_array();
        for (uint32_t k = 0; k < n_settings; k++) {
            uint32_t at = s->n;
            for (uint32_t i = 0; i < s->n; i++)
                if (s->setting[i] == k && s->by.at[i] == rank[p].entry &&
                    (at == s->n || isnan(s->time_s[at]) || s->time_s[i] < s->time_s[at]))
                    at = i;
            json_array_append_new(places, place_json(s, at));
        }
        json_array_append_new(
            lines, json_pack("{s:s, s:o}", "planner", rank[p].name, "places", places));
    }
    json_object_set_new(facts, "pivot",
                        json_pack("{s:o, s:o, s:o, s:i}", "heads", heads, "lines", lines,
                                  "best", best, "left",
                                  (int)(s->n_settings - n_settings)));
}

/* --- rows --- */

/* Rows without a plan, by status and message, in which numbers are left out. */
static json_t *sweep_refusals(const Sweep *s)
{
    json_t *list = json_array();
    g_autoptr(GRegex) numbers = g_regex_new("[0-9][0-9.]*", 0, 0, NULL);
    g_autoptr(GRegex) bytes = g_regex_new("lacks \\d+ bytes \\(([^)]*)\\).*", 0, 0, NULL);
    g_autoptr(GHashTable) known = text_table(NULL);
    for (uint32_t i = 0; i < s->n; i++) {
        const char *message = cell(s, i, s->message);
        if (strcmp(status_of(s, i), "ok") == 0)
            continue;
        g_autofree char *plain =
            g_regex_replace_literal(numbers, message, -1, 0, "", 0, NULL);
        char *key = g_strconcat(planner_of(s, i), "\n", plain, NULL);
        json_t *row = g_hash_table_lookup(known, key);
        if (row) {
            json_t *rows = json_object_get(row, "rows");
            json_integer_set(rows, json_integer_value(rows) + 1);
            g_free(key);
            continue;
        }
        g_autofree char *why =
            g_regex_replace(bytes, message, -1, 0, "lacks \\1", 0, NULL);
        g_autofree char *where = setting_name(s, i, 0);
        row = json_pack("{s:s, s:s, s:s, s:s, s:i}", "status", status_of(s, i), "planner",
                        planner_of(s, i), "where", where, "why", why, "rows", 1);
        json_array_append_new(list, row);
        g_hash_table_insert(known, key, row);
    }
    return list;
}

/* A row of the table; null where it has no number, since a member that is missing is looked for in
 * what is around the row. */
static json_t *sweep_row(const Sweep *s, uint32_t i)
{
    const double time_s = s->time_s[i];
    g_autofree char *setting = setting_name(s, i, 0);
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "planner",
        planner_of(s, i), "setting", setting, "status", cell(s, i, s->status), "hash",
        json_sprintf("%.12s", cell(s, i, frame_column(s->frame, "hash"))), "time_s",
        json_number(time_s), "times", json_number(s->regret[i]), "share",
        json_number(facts_number_of(s, i, "communication_s") / time_s), "bytes",
        json_number(isnan(time_s) ? NAN : facts_number_of(s, i, "peak_memory_bytes")),
        "left", json_number(facts_number_of(s, i, "memory_left_bytes")), "tokens_per_s",
        json_number(facts_number_of(s, i, "tokens_per_s")), "samples_per_s",
        json_number(facts_number_of(s, i, "samples_per_s")), "mfu",
        json_number(facts_number_of(s, i, "mfu")));
}

/* Values to pick in the table of all rows: of the settings and the planners. */
static void sweep_rows(const Sweep *s, json_t *facts)
{
    json_t *rows = json_list(places_before(i, MIN(s->n, MOST_ROWS)), sweep_row(s, i));
    json_object_update_new(facts, json_pack("{s:o, s:i, s:o}", "rows", rows, "rows_left",
                                            (int)(s->n - MIN(s->n, MOST_ROWS)), "picks",
                                            json_texts(s->by.label)));
}

/* --- the whole --- */

/* "3 model, 5 planners": the axes and their numbers of values. */
static json_t *axes_json(const Sweep *s)
{
    json_t *list = json_array();
    const bool planners = strcmp(s->by.name, "entry") == 0;
    json_array_append_new(list, json_pack("{s:s, s:i}", "name",
                                          planners ? "planner" : s->by.name, "n",
                                          (int)s->by.value->len));
    for (guint a = 0; a < s->axis->len; a++) {
        const Axis *axis = axis_at(s, a);
        const char *dot = strrchr(axis->name, '.');
        json_array_append_new(list,
                              json_pack("{s:s, s:i}", "name", dot ? dot + 1 : axis->name,
                                        "n", (int)axis->value->len));
    }
    return list;
}

static void add_headline(const Sweep *s, const Rank *rank, guint n, json_t *facts)
{
    uint32_t with = 0, compared = 0, worst = s->n;
    for (uint32_t i = 0; i < s->n; i++) {
        with += !isnan(s->time_s[i]);
        if (!isnan(s->regret[i]) && (worst == s->n || s->regret[i] > s->regret[worst]))
            worst = i;
    }
    for (uint32_t k = 0; k < s->n_settings; k++)
        compared += !isnan(s->best_s[k]);
    guint first = 0, next;
    for (guint i = 1; i < n; i++)
        first = rank[i].wins > rank[first].wins ? i : first;
    for (next = 0; next < n && (next == first || rank[next].plans == 0);)
        next++;
    json_object_update_new(
        facts, json_pack("{s:i, s:i, s:i, s:i}", "n", (int)s->n, "with", (int)with,
                         "without", (int)(s->n - with), "settings", (int)compared));
    if (n > 0 && rank[first].wins > 0)
        json_object_set_new(facts, "winner",
                            json_pack("{s:s, s:i, s:b}", "name", rank[first].name, "wins",
                                      (int)rank[first].wins, "all",
                                      rank[first].wins == compared));
    if (next < n)
        json_object_set_new(facts, "next",
                            json_pack("{s:s, s:o}", "name", rank[next].name, "more",
                                      more_json(rank[next].regret)));
    if (worst < s->n && s->regret[worst] > 1 + 1e-9) {
        g_autofree char *where = setting_name(s, worst, 0);
        json_object_set_new(facts, "worst",
                            json_pack("{s:s, s:s, s:f}", "planner", planner_of(s, worst),
                                      "where", where, "times", s->regret[worst]));
    }
}

static CLEAR_DEFINE(sweep_clear, Sweep, s, g_array_unref(s->axis), axis_clear(&s->by),
                    frame_free(s->frame),
                    free_each(s->setting, s->time_s, s->regret, s->best_s));

json_t *sweep_facts(Store *store, const char *experiment, GError **error)
{
    Sweep s = {.frame = frame_read(store, experiment, error)};
    if (!s.frame)
        return NULL;
    s.n = s.frame->row->len;
    s.status = frame_column(s.frame, "status");
    s.message = frame_column(s.frame, "message");
    find_axes(&s);
    compare_rows(&s);
    const guint n = s.by.value->len;
    g_autofree Rank *rank = facts_ranks_of(&s);
    json_t *facts = json_pack("{s:o, s:o, s:o, s:i}", "name", json_text(experiment),
                              "axes", axes_json(&s), "league", league_json(rank, n),
                              "repeated", (int)frame_n_repeated(s.frame));
    add_headline(&s, rank, n, facts);
    add_chart(&s, rank, MIN(n, MOST_PLANNERS), facts);
    add_pivot(&s, rank, MIN(n, MOST_PLANNERS), facts);
    json_object_set_new(facts, "refusals", sweep_refusals(&s));
    sweep_rows(&s, facts);
    sweep_clear(&s);
    return facts;
}
