/* kilter plot: a chart of stored results. */
#include <math.h>

#include "data/base/names.h"
#include "data/base/units.h"
#include "data/store/store.h"
#include "experiments/cli/command.h"
#include "experiments/figures/figure.h"
#include "experiments/sweep/frame.h"

/* More than gnuplot's picture has place for. */
enum { PLOT_PLACES = 60, PLOT_SERIES = 12 };

/* clang-format off */
#define PLOT_OPTIONS(X)                  \
    X(TEXT, x, "x", 0)                   \
    X(TEXT, y, "y", 0)                   \
    X(TEXT, by, "by", 0)                 \
    X(TEXT, kind, "kind", 0)             \
    X(TEXT, experiment, "experiment", 0) \
    X(FILE, output, "output", 'o')
/* clang-format on */
COMMAND_OPTIONS(Own, plot_options, PLOT_OPTIONS)

static double plot_number(const char *text)
{
    double number;
    return number_is(text, &number) ? number : NAN;
}

/* A text for a data file, and short enough for a label. */
static void plot_add_text(GString *data, const char *text)
{
    enum { LONGEST = 22 };
    g_autofree char *plain = g_utf8_make_valid(text && *text ? text : "-", -1);
    g_strdelimit(plain, "\t\n\"", ' ');
    const bool cut = g_utf8_strlen(plain, -1) > LONGEST;
    if (cut)
        *g_utf8_offset_to_pointer(plain, LONGEST - 1) = '\0';
    g_string_append_printf(data, "%s%s", plain, cut ? "\u2026" : "");
}

static gint by_place(gconstpointer a, gconstpointer b, gpointer pivot)
{
    const double x = plot_number(frame_at(pivot, *(const uint32_t *)a, 0)),
                 y = plot_number(frame_at(pivot, *(const uint32_t *)b, 0));
    return x < y ? -1 : x > y ? 1 : *(const gint *)a - *(const gint *)b;
}

/* Every result, for boxes: place, label, number. */
static void plot_add_boxes(GString *data, const Frame *frame, const Frame *pivot,
                           const char *x, const char *y)
{
    const uint32_t along = frame_column(frame, x), drawn = frame_column(frame, y);
    for (uint32_t place = 0; place < pivot->row->len; place++)
        for (uint32_t i = 0; i < frame->row->len; i++) {
            const double number = plot_number(frame_at(frame, i, drawn));
            if (g_strcmp0(frame_at(frame, i, along), frame_at(pivot, place, 0)) == 0 &&
                isfinite(number))
                g_string_append_printf(data, "%u\t%.9g\n", place, number);
        }
}

/* Index 0: place, label, number of x, then a number for each series; index 1: names of series;
 * index 2: the kind, titles, least and most, number of results; index 3: every result. */
static char *plot_data(const Frame *frame, const Frame *pivot, const Own *own,
                       const char *kind)
{
    GString *data = g_string_new("# place\tlabel\tx\tseries\n");
    const uint32_t n = pivot->row->len, n_series = pivot->column->len - 1;
    g_autofree uint32_t *order = g_new(uint32_t, n);
    double low = INFINITY, high = 0;
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    g_qsort_with_data(order, (gint)n, sizeof *order, by_place, (gpointer)pivot);
    for (uint32_t i = 0; i < n; i++) {
        const double x = plot_number(frame_at(pivot, order[i], 0));
        g_string_append_printf(data, "%u\t", i);
        plot_add_text(data, frame_at(pivot, order[i], 0));
        g_string_append_printf(data, isfinite(x) ? "\t%.9g" : "\tNaN", x);
        for (uint32_t k = 1; k <= n_series; k++) {
            const double y = plot_number(frame_at(pivot, order[i], k));
            g_string_append_printf(data, isfinite(y) ? "\t%.9g" : "\tNaN", y);
            low = y > 0 ? fmin(low, y) : low;
            high = y > 0 ? fmax(high, y) : high;
        }
        g_string_append_c(data, '\n');
    }
    g_string_append(data, "\n\n");
    for (uint32_t k = 1; k <= n_series; k++) {
        g_string_append_printf(data, "%u\t", k - 1);
        plot_add_text(data, pivot->column->pdata[k]);
        g_string_append_c(data, '\n');
    }
    g_string_append_printf(data, "\n\n%s\t%s\t%s\t%s\t%.9g\t%.9g\t%u\n\n\n", kind, own->x,
                           own->y, own->by, isfinite(low) ? low : 1, high > 0 ? high : 1,
                           frame->row->len);
    plot_add_boxes(data, frame, pivot, own->x, own->y);
    return g_string_free(data, FALSE);
}

COMMAND(plot, Own, PLOT_OPTIONS, 0)
{
    static const char *const KINDS[] = {"line", "bar", "heat", "box", NULL};
    uint32_t kind = 1, numbers = 0, results = 0;
    if (own->kind && !names_find("--kind", own->kind, KINDS, &kind, error))
        return false;
    own->x = own->x ? own->x : g_strdup("model");
    own->y = own->y ? own->y : g_strdup("iteration_time_s");
    own->by = own->by ? own->by : g_strdup("planner");
    const PivotSpec spec = {own->x, own->by, own->y, frame_best(own->y)};
    g_autoptr(Store) store = store_open_read(argv[1], error);
    g_autoptr(Frame) frame = store ? frame_read(store, own->experiment, error) : NULL;
    g_autoptr(Frame) pivot = frame ? frame_pivot(frame, &spec, error) : NULL;
    if (!pivot)
        return false;
    for (uint32_t i = 0; i < pivot->row->len; i++) {
        numbers += isfinite(plot_number(frame_at(pivot, i, 0)));
        for (uint32_t k = 1; k < pivot->column->len; k++)
            results += isfinite(plot_number(frame_at(pivot, i, k)));
    }
    if (results == 0 || pivot->row->len > PLOT_PLACES ||
        pivot->column->len > PLOT_SERIES + 1)
        return refuse(error,
                      "expected numbers at 1 to %d places of %s in 1 to %d series of %s, "
                      "got %u numbers at %u places in %u series",
                      PLOT_PLACES, own->x, PLOT_SERIES, own->by, results, pivot->row->len,
                      pivot->column->len - 1);
    if (!own->kind)
        kind = numbers == pivot->row->len && numbers > 1 ? 0 : 1;
    if (kind == 0 && numbers == 0)
        return refuse(error, "--kind line: expected numbers in %s, got '%s'", own->x,
                      frame_at(pivot, 0, 0) ? frame_at(pivot, 0, 0) : "");
    const char *target = own->output ? own->output : "out";
    g_autofree char *data = plot_data(frame, pivot, own, KINDS[kind]);
    if (!figure_draw_text("plot", data, target, error))
        return false;
    json_t *files = json_array();
    char *path;
    for (int i = 0; (path = figure_path("plot", target, i)); i++) {
        json_array_append_new(files, json_string(path));
        g_free(path);
    }
    command_report(options,
                   json_pack("{s:o, s:s, s:i, s:i}", "files", files, "kind", KINDS[kind],
                             "places", (int)pivot->row->len, "series",
                             (int)pivot->column->len - 1),
                   "[*files/ :{.}]\n", NULL);
    return true;
}
