/* A plan as a page: its report as text, what binds it, its cluster, a timeline of its devices,
 * memory over time, the busiest links. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/base/units.h"
#include "experiments/report/drawing.h"
#include "experiments/report/page.h"
#include "experiments/report/report.h"

enum {
    WIDTH = DRAWING_WIDTH,
    LANE = 26,
    LABEL = DRAWING_LABEL,
    MAX_LANES = 48,
    MAX_LINKS = 20
};

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
        drawing_legend(page, KIND[k].color, KIND[k].name, k + 1 == KINDS);
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
        g_autofree char *label = drawing_label(drawing, device);
        const double y = 4 + (double)i * LANE;
        drawing_text(page, 2, y + LANE / 2.0, label);
        draw_lane(drawing, drawing->timeline->lane[device], false, y);
        draw_lane(drawing, drawing->timeline->lane[device], true, y + LANE / 2.0 - 1);
    }
    for (uint32_t tick = 0; tick <= 4; tick++) {
        g_autofree char *time = units_format(drawing->end_s * tick / 4, QUANTITY_TIME);
        const double x = LABEL + (WIDTH - LABEL - 45.0) * tick / 4;
        drawing_text(page, x, height - 6, time);
    }
    g_string_append(page, "</svg>\n</div>\n");
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

/* The parts of the critical path. */
static void add_limits(const Drawing *drawing)
{
    const Evaluation *evaluation = drawing->evaluation;
    if (drawing->end_s <= 0)
        return;
    g_autofree char *text =
        sim_timeline_explain(drawing->timeline, evaluation->plan->program,
                             evaluation->graph, evaluation->view);
    page_heading(drawing->page, "h2", "limits", "What binds");
    page_add(drawing->page, "pre", "%s", text);
}

static const char *text_at(const json_t *answer, const char *key)
{
    const char *text = json_string_value(json_object_get(answer, key));
    return text ? text : "";
}

char *report_plan(const Evaluation *evaluation, const json_t *answer, const char *words,
                  const char *days, GError **error)
{
    const SimTimeline *timeline = evaluation->report->timeline;
    g_autofree char *title =
        g_strdup_printf("%s on %s by %s", text_at(answer, "model"),
                        text_at(answer, "cluster"), text_at(answer, "planner"));
    GString *page = page_new(title, error);
    if (!page)
        return NULL;
    page_add(page, "pre", "%s", words);
    if (days)
        drawing_add_days(page, json_object_get(answer, "campaign"), days);
    const Drawing drawing = {evaluation, timeline, page,
                             timeline ? sim_timeline_end_s(timeline) : 0};
    add_limits(&drawing);
    drawing_add_cluster(&drawing);
    if (drawing.end_s > 0) {
        add_timeline(&drawing);
        drawing_add_memory(&drawing);
        add_links(&drawing);
    }
    return page_end(page);
}
