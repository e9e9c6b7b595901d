/* The figure of a plan. */
#include "experiments/figures/plan_figure.h"

#include "data/base/names.h"
#include "data/base/units.h"
#include "experiments/figures/figure.h"

enum { ROWS_DRAWN = 16, LINKS_DRAWN = 4 };

/* How a layer's parameters and activations lie on a device. */
typedef enum { FORM_NONE, FORM_WHOLE, FORM_BATCH, FORM_WEIGHTS, FORM_BOTH } LayerForm;

typedef struct {
    const Plan *plan;
    const Graph *graph;
    const ClusterView *view;
    const SimTimeline *timeline;
    uint32_t n_rows;
    uint32_t row[ROWS_DRAWN]; /* the device that represents its lane */
    GString *text;
} Picture;

/* --- rows --- */

static uint32_t alike(const Picture *p, uint32_t device)
{
    return sum_over(uint32_t, j, p->timeline->n_devices,
                    p->timeline->lane[j] == p->timeline->lane[device]);
}

/* The first device of each lane; the lane that computes longest takes the last row if it had
 * none. */
static void figure_choose_rows(Picture *p)
{
    const SimTimeline *t = p->timeline;
    g_autofree SimBreakdown *of = g_new0(SimBreakdown, t->n_lanes);
    g_autofree bool *seen = g_new0(bool, t->n_lanes);
    uint32_t longest = 0, n_lanes = 0;
    bool shown = false;
    sim_timeline_breakdown(t, of);
    for (uint32_t j = 0; j < t->n_devices; j++)
        if (of[t->lane[j]].compute_s > of[t->lane[longest]].compute_s)
            longest = j;
    for (uint32_t j = 0; j < t->n_devices; j++) {
        if (seen[t->lane[j]])
            continue;
        seen[t->lane[j]] = true;
        n_lanes++;
        if (p->n_rows == ROWS_DRAWN)
            continue;
        shown |= t->lane[j] == t->lane[longest];
        p->row[p->n_rows++] = j;
    }
    if (!shown)
        p->row[p->n_rows - 1] = longest;
    g_string_append_printf(p->text, "# row\tname; %u lanes\n", n_lanes);
    for (uint32_t r = 0; r < p->n_rows; r++) {
        const Device *device = &p->view->device[p->row[r]];
        const uint32_t n = alike(p, p->row[r]);
        const char *mark = t->lane[p->row[r]] == t->lane[longest] ? " (busiest)" : "";
        if (n > 1)
            g_string_append_printf(p->text, "%u\t%u x %s%s\n", r, n, device->type_name,
                                   mark);
        else
            g_string_append_printf(p->text, "%u\t%s%s\n", r, device->name, mark);
    }
    g_string_append(p->text, "\n\n");
}

/* --- layers --- */

/* The device's part of its group's work, relative to the largest part in the group. */
static double figure_part_of(const Picture *p, const DeviceGroup *group, uint32_t device)
{
    double largest = 0;
    for (uint32_t i = 0; i < group->n_replicas * group->n_devices; i++)
        largest = MAX(largest, p->plan->ratio[group->device[i]]);
    return largest > 0 ? p->plan->ratio[device] / largest : 1;
}

static void note_form(const Picture *p, const DeviceGroup *group, const Instr *instr,
                      LayerForm *form)
{
    const Op *op = graph_get_op(p->graph, instr->op);
    bool batch = group->n_replicas > 1, weights = false;
    for (uint32_t i = 0; i < op->n_in; i++) {
        const bool cut = form_is_gather(instr->form[i]);
        if (graph_is_weight(p->graph, op->in[i]))
            weights |= cut;
        else
            batch |= instr->form[i] == form_gather(0);
    }
    const LayerForm found = batch && weights ? FORM_BOTH
                            : weights        ? FORM_WEIGHTS
                            : batch          ? FORM_BATCH
                                             : FORM_WHOLE;
    *form = MAX(*form, found);
}

/* Boxes of runs of layers with one form: row, first layer, end, form, part. */
static void add_boxes(const Picture *p, uint32_t r, const DeviceGroup *group,
                      const LayerForm *form)
{
    const uint32_t n = graph_n_layers(p->graph);
    for (uint32_t l = 0, end; l < n; l = end) {
        for (end = l + 1; end < n && form[end] == form[l];)
            end++;
        if (form[l] != FORM_NONE)
            g_string_append_printf(p->text, "%u\t%u\t%u\t%d\t%.6g\n", r, l, end, form[l],
                                   figure_part_of(p, group, p->row[r]));
    }
}

static void add_layers(const Picture *p)
{
    const Program *program = p->plan->program;
    uint32_t n_groups;
    DeviceGroup *group = program_groups(program, p->plan->n_devices, &n_groups);
    g_string_append(p->text, "# row\tfirst\tend\tform\tpart\n");
    for (uint32_t r = 0; r < p->n_rows; r++)
        for (uint32_t g = 0; g < n_groups; g++) {
            if (!group_has(&group[g], p->row[r]))
                continue;
            g_autofree LayerForm *form = g_new0(LayerForm, graph_n_layers(p->graph));
            items_each (const Instr, instr, program->instr, program->n) {
                if (instr->kind != INSTR_COMPUTE || instr->group != g)
                    continue;
                const Op *op = graph_get_op(p->graph, instr->op);
                if (op->pass == PASS_FORWARD)
                    note_form(p, &group[g], instr, &form[op->layer]);
            }
            add_boxes(p, r, &group[g], form);
        }
    g_string_append(p->text, "\n\n");
    program_groups_free(group, n_groups);
}

/* --- time --- */

static uint32_t figure_category_of(const char *name)
{
    static const char *const category[] = {"forward", "backward", "update", "inside"};
    return TEXT_PLACE(category, G_N_ELEMENTS(category), name ? name : "");
}

static bool is_on(const SimTimeline *t, const SimSpan *span, uint32_t device)
{
    uint32_t n;
    const uint32_t *lane = sim_span_lanes(t, span, &n);
    const bool on = any_of(k, n, lane[k] == t->lane[device]);
    return on;
}

/* A box that may still grow; empty while both are 0. */
typedef struct {
    double start_s, end_s;
} SpanBox;

static void put_box(const Picture *p, uint32_t r, uint32_t stream, uint32_t category,
                    const SpanBox *box)
{
    if (box->end_s > 0)
        g_string_append_printf(p->text, "%u\t%u\t%.9g\t%.9g\t%u\n", r, stream,
                               1e3 * box->start_s, 1e3 * box->end_s, category);
}

/* Boxes of the rows: row, stream, start and end in ms, category. Spans of one category that less
 * than half a pixel parts are one box, since a deep model has a hundred thousand spans. */
static void figure_add_spans(const Picture *p)
{
    enum { CATEGORIES = 5, HALF_PIXELS = 2500 };
    const SimTimeline *t = p->timeline;
    const uint32_t n_streams = t->n_streams + 1;
    const double gap_s = sim_timeline_end_s(t) / HALF_PIXELS;
    g_autofree SpanBox *open = g_new0(SpanBox, p->n_rows * n_streams * CATEGORIES);
    g_string_append(p->text, "# row\tstream\tstart\tend\tcategory\n");
    items_each (const SimSpan, span, t->span, t->n_spans) {
        if (span->start_s == span->end_s)
            continue;
        const uint32_t stream = span->launch ? t->n_streams : span->stream,
                       c = figure_category_of(
                           sim_span_category(span, p->plan->program, p->graph));
        for (uint32_t r = 0; r < p->n_rows; r++) {
            if (!is_on(t, span, p->row[r]))
                continue;
            SpanBox *box = &open[(r * n_streams + stream) * CATEGORIES + c];
            if (span->start_s > box->end_s + gap_s ||
                span->end_s < box->start_s - gap_s) {
                put_box(p, r, stream, c, box);
                *box = (SpanBox){span->start_s, span->end_s};
            }
            box->start_s = MIN(box->start_s, span->start_s);
            box->end_s = MAX(box->end_s, span->end_s);
        }
    }
    for (uint32_t b = 0; b < p->n_rows * n_streams * CATEGORIES; b++)
        put_box(p, b / CATEGORIES / n_streams, b / CATEGORIES % n_streams, b % CATEGORIES,
                &open[b]);
}

/* "the busiest links: 8 like a 80 %, 1 like b 3 %"; "-" without a network. Caller frees. */
static char *links_text(const SimTimeline *t)
{
    const double end_s = sim_timeline_end_s(t);
    g_autofree bool *taken = g_new0(bool, MAX(t->n_links, 1));
    g_autoptr(GString) text = g_string_new(t->n_links ? "the busiest links:" : "-");
    for (uint32_t k = 0; k < MIN(LINKS_DRAWN, t->n_links); k++) {
        uint32_t most = t->n_links;
        for (uint32_t i = 0; i < t->n_links; i++)
            if (!taken[i] &&
                (most == t->n_links || t->link[i].busy_s > t->link[most].busy_s))
                most = i;
        uint32_t alike = 0; /* links that are as busy, itself included */
        for (uint32_t i = 0; most < t->n_links && i < t->n_links; i++)
            if (!taken[i] && t->link[i].busy_s > 0.99 * t->link[most].busy_s) {
                taken[i] = true;
                alike++;
            }
        if (alike > 0)
            g_string_append_printf(text, "%s %u like %s %.0f %%", k ? "," : "", alike,
                                   t->link[most].name,
                                   end_s > 0 ? 100 * t->link[most].busy_s / end_s : 0);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* --- the whole --- */

static void add_title(const Picture *p, const SimReport *report)
{
    g_autofree char *time = units_format(report->iteration_time_s, QUANTITY_TIME);
    g_autofree char *links = links_text(p->timeline);
    g_string_append_printf(p->text,
                           "# title\tlayers\tlinks\n%s on %u GPUs by %s: %s per "
                           "iteration (%s)\t%u\t%s\n\n\n",
                           graph_name(p->graph), cluster_gpus(p->view->cluster),
                           p->plan->planner, time, report->fidelity,
                           graph_n_layers(p->graph), links);
}

char *plan_figure_data(const Plan *plan, const Graph *graph, const ClusterView *view,
                       const SimReport *report)
{
    g_assert(report->timeline);
    Picture p = {.plan = plan,
                 .graph = graph,
                 .view = view,
                 .timeline = report->timeline,
                 .text = g_string_new(NULL)};
    add_title(&p, report);
    figure_choose_rows(&p);
    add_layers(&p);
    figure_add_spans(&p);
    return g_string_free(p.text, FALSE);
}

bool plan_figure_draw(const Plan *plan, const Graph *graph, const ClusterView *view,
                      const SimReport *report, const char *folder, GError **error)
{
    g_autofree char *text = plan_figure_data(plan, graph, view, report);
    return figure_draw_text("plan", text, folder, error);
}
