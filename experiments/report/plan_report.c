/* A plan as a page: its report as text, a timeline of its devices, memory over time, the busiest
 * links. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/report/page.h"
#include "experiments/report/report.h"

enum { WIDTH = 1200, LANE = 26, LABEL = 150, MAX_LANES = 48, MAX_LINKS = 20 };

/* Spans shorter than this, in units of the picture, are joined with the previous spans of their
 * kind. */
static const double JOINED = 0.4;

typedef enum { FORWARD, BACKWARD, UPDATE, COMMUNICATION, INSIDE, KINDS } Kind;

static const struct {
    const char *name, *color;
} KIND[KINDS] = {
    [FORWARD] = {"forward", "#4878a8"},
    [BACKWARD] = {"backward", "#2f9e77"},
    [UPDATE] = {"update", "#8c6bb1"},
    [COMMUNICATION] = {"communication", "#e08214"},
    [INSIDE] = {"inside machines", "#c7a76c"},
};

typedef struct {
    const Evaluation *evaluation;
    const SimTimeline *timeline;
    GString *page;
    double end_s;
} Drawing;

static Kind kind_of(const Drawing *drawing, const SimSpan *span)
{
    const Instr *instr = &drawing->evaluation->plan->program->instr[span->instr];
    if (span->lane == SIM_TEAM)
        return COMMUNICATION;
    if (instr->kind != INSTR_COMPUTE)
        return INSIDE;
    switch (graph_get_op(drawing->evaluation->graph, instr->op)->pass) {
    case PASS_FORWARD:
        return FORWARD;
    case PASS_BACKWARD:
        return BACKWARD;
    default:
        return UPDATE;
    }
}

/* --- lanes --- */

/* One device of each lane; if there are too many lanes, some of them, with those that compute
 * most. */
static GArray *lanes_of(const Drawing *drawing)
{
    const SimTimeline *timeline = drawing->timeline;
    GArray *lanes = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_autofree bool *seen = g_new0(bool, timeline->n_lanes);
    uint32_t busiest = 0;
    for (uint32_t j = 0; j < timeline->n_devices; j++)
        if (drawing->evaluation->report->busy_s[j] >
            drawing->evaluation->report->busy_s[busiest])
            busiest = j;
    seen[timeline->lane[busiest]] = true;
    for (uint32_t j = 0; j < timeline->n_devices; j++) {
        const bool first = !seen[timeline->lane[j]];
        seen[timeline->lane[j]] = true;
        if (j == busiest || (first && lanes->len + (j < busiest) < MAX_LANES))
            g_array_append_val(lanes, j);
    }
    return lanes;
}

static char *lane_label(const Drawing *drawing, uint32_t device)
{
    const SimTimeline *timeline = drawing->timeline;
    uint32_t alike = 0;
    for (uint32_t j = 0; j < timeline->n_devices; j++)
        alike += timeline->lane[j] == timeline->lane[device];
    const Device *d = &drawing->evaluation->view->device[device];
    return alike > 1 ? g_strdup_printf("%s and %u like it (%s)", d->name, alike - 1,
                                       d->type_name)
                     : g_strdup_printf("%s (%s)", d->name, d->type_name);
}

static void add_svg_text(GString *page, double x, double y, const char *text)
{
    g_string_append_printf(page,
                           "<text x=\"%.1f\" y=\"%.1f\" font-size=\"11\" "
                           "font-family=\"sans-serif\">",
                           x, y);
    page_text(page, text);
    g_string_append(page, "</text>\n");
}

/* The last span drawn in a row, which the next one may join. */
typedef struct {
    double from, to;
    Kind kind;
    uint32_t n, span;
} Box;

static void flush(const Drawing *drawing, const Box *box, double y)
{
    if (box->n == 0)
        return;
    g_autofree char *what =
        sim_span_text(drawing->timeline, box->span, drawing->evaluation->plan->program,
                      drawing->evaluation->graph);
    g_string_append_printf(
        drawing->page,
        "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" fill=\"%s\"><title>",
        box->from, y, MAX(box->to - box->from, 0.05), LANE / 2 - 2,
        KIND[box->kind].color);
    page_text(drawing->page, what);
    if (box->n > 1)
        g_string_append_printf(drawing->page, " and %u more", box->n - 1);
    g_string_append(drawing->page, "</title></rect>\n");
}

static bool runs_on(const SimTimeline *timeline, const SimSpan *span, uint32_t lane)
{
    uint32_t n;
    const uint32_t *lanes = sim_span_lanes(timeline, span, &n);
    for (uint32_t k = 0; k < n; k++)
        if (lanes[k] == lane)
            return true;
    return false;
}

static int by_start(gconstpointer a, gconstpointer b, gpointer spans)
{
    const SimSpan *x = &((SimSpan *)spans)[*(const uint32_t *)a],
                  *y = &((SimSpan *)spans)[*(const uint32_t *)b];
    return (x->start_s > y->start_s) - (x->start_s < y->start_s);
}

/* Spans of a lane in the upper half of its row (computation) or the lower one. */
static void draw_lane(const Drawing *drawing, uint32_t lane, bool communicates, double y)
{
    const SimTimeline *timeline = drawing->timeline;
    g_autoptr(GArray) order = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (uint32_t i = 0; i < timeline->n_spans; i++) {
        const SimSpan *span = &timeline->span[i];
        if (!span->launch && span->end_s > span->start_s &&
            (span->lane == SIM_TEAM) == communicates && runs_on(timeline, span, lane))
            g_array_append_val(order, i);
    }
    g_array_sort_with_data(order, by_start, timeline->span);
    Box box = {0};
    const double scale = (WIDTH - LABEL) / drawing->end_s;
    for (uint32_t i = 0; i < order->len; i++) {
        const uint32_t id = g_array_index(order, uint32_t, i);
        const SimSpan *span = &timeline->span[id];
        const double from = LABEL + scale * span->start_s,
                     to = LABEL + scale * span->end_s;
        const Kind kind = kind_of(drawing, span);
        const bool joins = box.n > 0 && box.kind == kind && from - box.to < JOINED &&
                           (to - from < JOINED || box.to - box.from < JOINED);
        if (!joins) {
            flush(drawing, &box, y);
            box = (Box){from, to, kind, 0, id};
        }
        box.to = MAX(box.to, to);
        box.n++;
    }
    flush(drawing, &box, y);
}

static void add_timeline(const Drawing *drawing)
{
    GString *page = drawing->page;
    g_autoptr(GArray) lanes = lanes_of(drawing);
    g_autofree char *end = units_format(drawing->end_s, QUANTITY_TIME);
    const int height = (int)lanes->len * LANE + 24;
    page_heading(page, "h2", "timeline", "Timeline");
    g_string_append(page, "<p>");
    for (uint32_t k = 0; k < KINDS; k++)
        g_string_append_printf(
            page, "<span style=\"color:%s\" aria-hidden=\"true\">&#9632;</span> %s%s",
            KIND[k].color, KIND[k].name, k + 1 < KINDS ? ", " : ". ");
    page_text(page,
              "Devices that do the same are one row, and of each row computation is "
              "above communication. The whole is ");
    page_text(page, end);
    g_string_append(page, ".</p>\n<div class=\"timeline\">\n");
    g_string_append_printf(page,
                           "<svg viewBox=\"0 0 %d %d\" role=\"img\" "
                           "aria-label=\"What each device does when\">\n",
                           WIDTH, height);
    for (uint32_t i = 0; i < lanes->len; i++) {
        const uint32_t device = g_array_index(lanes, uint32_t, i);
        g_autofree char *label = lane_label(drawing, device);
        const double y = 4 + (double)i * LANE;
        add_svg_text(page, 2, y + LANE / 2.0, label);
        draw_lane(drawing, drawing->timeline->lane[device], false, y);
        draw_lane(drawing, drawing->timeline->lane[device], true, y + LANE / 2.0 - 1);
    }
    for (uint32_t tick = 0; tick <= 4; tick++) {
        g_autofree char *time = units_format(drawing->end_s * tick / 4, QUANTITY_TIME);
        const double x = LABEL + (WIDTH - LABEL - 45.0) * tick / 4;
        add_svg_text(page, x, height - 6, time);
    }
    g_string_append(page, "</svg>\n</div>\n");
}

/* --- memory --- */

/* The upper edge of the picture: the capacity, or less where that would show only a flat line. */
static double most_bytes(const Drawing *drawing, uint32_t device)
{
    const double capacity =
        (double)drawing->evaluation->view->device[device].memory_bytes;
    const GArray *steps = drawing->timeline->memory[drawing->timeline->lane[device]];
    double most = 1;
    for (uint32_t i = 0; i < steps->len; i++)
        most = fmax(most, g_array_index(steps, SimMemoryStep, i).bytes);
    return most > capacity / 3 ? fmax(most, capacity) : most;
}

/* A line for one device, its capacity dashed. */
static void draw_memory(const Drawing *drawing, uint32_t device)
{
    enum { HEIGHT = 140 };
    GString *page = drawing->page;
    const GArray *steps = drawing->timeline->memory[drawing->timeline->lane[device]];
    const double most = most_bytes(drawing, device);
    const double capacity =
        (double)drawing->evaluation->view->device[device].memory_bytes;
    g_autofree char *label = lane_label(drawing, device);
    g_autofree char *limit = units_format(capacity, QUANTITY_BYTES);
    g_autofree char *peak = units_format(
        (double)drawing->evaluation->report->memory_bytes[device], QUANTITY_BYTES);
    double x = LABEL, y = HEIGHT - 4;
    page_add(page, "h3", "%s: peak %s of %s", label, peak, limit);
    g_string_append_printf(page,
                           "<div class=\"timeline\">\n<svg viewBox=\"0 0 %d %d\" "
                           "role=\"img\" aria-label=\"Memory over time\">\n<path "
                           "fill=\"none\" stroke=\"#4878a8\" stroke-width=\"1.2\" "
                           "vector-effect=\"non-scaling-stroke\" d=\"M%.1f %.1f",
                           WIDTH, HEIGHT, x, y);
    for (uint32_t i = 0; i < steps->len; i++) {
        const SimMemoryStep *step = &g_array_index(steps, SimMemoryStep, i);
        const double at = LABEL + (WIDTH - LABEL) * step->time_s / drawing->end_s;
        const double to = (HEIGHT - 4) - (HEIGHT - 12) * step->bytes / most;
        if (i + 1 < steps->len && fabs(at - x) < 0.2 && fabs(to - y) < 1)
            continue;
        x = at, y = to;
        g_string_append_printf(page, "H%.1fV%.1f", x, y);
    }
    g_string_append_printf(page, "H%d\"/>\n", WIDTH);
    y = (HEIGHT - 4) - (HEIGHT - 12) * MIN(capacity / most, 1);
    if (capacity <= most)
        g_string_append_printf(page,
                               "<path stroke=\"#b42318\" stroke-dasharray=\"5 4\" "
                               "d=\"M%d %.1fH%d\"/>\n",
                               LABEL, y, WIDTH);
    g_autofree char *upper = units_format(most, QUANTITY_BYTES);
    add_svg_text(page, 2, y + 4, capacity <= most ? "capacity" : upper);
    g_string_append(page, "</svg>\n</div>\n");
}

/* The fullest device of each type. */
static void add_memory(const Drawing *drawing)
{
    const Evaluation *evaluation = drawing->evaluation;
    g_autoptr(GHashTable) fullest = g_hash_table_new(g_str_hash, g_str_equal);
    if (!drawing->timeline->memory)
        return;
    page_heading(drawing->page, "h2", "memory", "Memory over time");
    page_add(drawing->page, "p",
             "Memory of a GPU of the fullest device of each type; categories at the peak "
             "are above.");
    for (uint32_t j = 0; j < evaluation->view->n_devices; j++) {
        const char *type = evaluation->view->device[j].type_name;
        const uint32_t known = GPOINTER_TO_UINT(g_hash_table_lookup(fullest, type));
        if (!known || evaluation->report->memory_bytes[j] >
                          evaluation->report->memory_bytes[known - 1])
            g_hash_table_insert(fullest, (void *)type, GUINT_TO_POINTER(j + 1));
    }
    for (uint32_t j = 0; j < evaluation->view->n_devices; j++)
        if (GPOINTER_TO_UINT(g_hash_table_lookup(
                fullest, evaluation->view->device[j].type_name)) == j + 1)
            draw_memory(drawing, j);
}

/* --- links --- */

static int by_use(gconstpointer a, gconstpointer b)
{
    const SimLinkUse *x = a, *y = b;
    return x->busy_s != y->busy_s ? (x->busy_s < y->busy_s ? 1 : -1)
                                  : strcmp(x->name, y->name);
}

static void add_links(const Drawing *drawing)
{
    static const char *const COLUMNS[] = {
        "link", "#GB/s", "#GB carried", "#busy %", "#of its capacity %", NULL};
    const SimTimeline *timeline = drawing->timeline;
    if (timeline->n_links == 0)
        return;
    g_autofree SimLinkUse *link =
        g_memdup2(timeline->link, timeline->n_links * sizeof *link);
    qsort(link, timeline->n_links, sizeof *link, by_use);
    page_heading(drawing->page, "h2", "links", "Links");
    page_table(drawing->page, "The busiest, each in one direction", COLUMNS);
    for (uint32_t i = 0; i < MIN(timeline->n_links, MAX_LINKS) && link[i].bytes > 0;
         i++) {
        page_row(drawing->page);
        page_cell(drawing->page, link[i].name);
        page_number(drawing->page, 1e-9 * link[i].bandwidth, "%.3g");
        page_number(drawing->page, 1e-9 * link[i].bytes, "%.3g");
        page_number(drawing->page, 100 * link[i].busy_s / drawing->end_s, "%.1f");
        page_number(drawing->page,
                    100 * link[i].bytes / (link[i].bandwidth * drawing->end_s), "%.1f");
        page_row_end(drawing->page);
    }
    page_table_end(drawing->page);
}

/* --- the page --- */

static const char *text_at(const json_t *answer, const char *key)
{
    const char *text = json_string_value(json_object_get(answer, key));
    return text ? text : "";
}

char *report_plan(const Evaluation *evaluation, const json_t *answer, const char *words,
                  GError **error)
{
    const SimTimeline *timeline = evaluation->report->timeline;
    g_autofree char *title =
        g_strdup_printf("%s on %s by %s", text_at(answer, "model"),
                        text_at(answer, "cluster"), text_at(answer, "planner"));
    GString *page = page_new(title, error);
    if (!page)
        return NULL;
    page_add(page, "pre", "%s", words);
    if (timeline) {
        const Drawing drawing = {evaluation, timeline, page,
                                 sim_timeline_end_s(timeline)};
        if (drawing.end_s > 0) {
            add_timeline(&drawing);
            add_memory(&drawing);
            add_links(&drawing);
        }
    }
    return page_end(page);
}
