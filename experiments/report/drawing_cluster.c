/* The cluster of a plan, with what each GPU has of it. */
#include <math.h>

#include "experiments/report/drawing.h"
#include "experiments/report/page.h"

enum { GPU = 22, GAP = 3, BOX_HEAD = 18, MAX_GPUS = 1024, MAX_STAGES = 64 };

/* [device]: the first stage (group) that it is in. Caller frees. */
static uint32_t *stages_of(const Evaluation *evaluation)
{
    const Program *program = evaluation->plan->program;
    uint32_t *stage = g_new0(uint32_t, evaluation->view->n_devices);
    for (uint32_t g = program->n_groups; g-- > 0;)
        for (uint32_t i = 0;
             i < program->group[g].n_devices * program->group[g].n_replicas; i++)
            stage[program->group[g].device[i]] = g;
    return stage;
}

/* Light colours that black text stands on, far apart for neighbours. */
static void add_color(GString *page, uint32_t stage)
{
    g_string_append_printf(page, "fill=\"hsl(%u,60%%,75%%)\"", (210 + stage * 137) % 360);
}

static void draw_gpu(const Drawing *drawing, uint32_t device, uint32_t stage, double x,
                     double y)
{
    const Evaluation *evaluation = drawing->evaluation;
    const Device *d = &evaluation->view->device[device];
    const bool staged = evaluation->plan->program->n_groups > 1;
    GString *page = drawing->page;
    g_string_append_printf(
        page, "<rect x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" ", x, y, GPU, GPU);
    add_color(page, staged ? stage : d->type);
    g_string_append(page, " stroke=\"#444\" stroke-width=\"0.5\"><title>");
    page_text(page, d->name);
    g_string_append_printf(page, " (%s): ", d->type_name);
    if (staged)
        g_string_append_printf(page, "stage %u, ", stage);
    g_string_append_printf(page, "ratio %.4f</title></rect>\n",
                           evaluation->plan->ratio[device]);
    g_autofree char *number = g_strdup_printf("%u", stage);
    if (staged)
        drawing_text(page, x + (strlen(number) > 1 ? 4 : 8), y + 15, number);
}

/* Draws a machine, whose devices are first to end - 1, and returns its width. */
static double draw_machine(const Drawing *drawing, uint32_t first, uint32_t end,
                           const uint32_t *stage, double x, double y)
{
    const ClusterView *view = drawing->evaluation->view;
    const Machine *machine = &view->cluster->machine[view->device[first].machine];
    double at = x + GAP;
    for (uint32_t j = first; j < end; j++)
        for (uint32_t i = 0; i < view->device[j].gpus; i++, at += GPU + GAP)
            draw_gpu(drawing, j, stage[j], at, y + BOX_HEAD);
    const double width = fmax(at - x, 60);
    g_string_append_printf(drawing->page,
                           "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%d\" "
                           "fill=\"none\" stroke=\"#444\"/>\n",
                           x, y, width, BOX_HEAD + GPU + GAP);
    drawing_text(drawing->page, x + GAP, y + 13, machine->name);
    return width;
}

static uint32_t end_of_machine(const ClusterView *view, uint32_t first)
{
    uint32_t end = first;
    while (end < view->n_devices &&
           view->device[end].machine == view->device[first].machine)
        end++;
    return end;
}

static double width_of(const ClusterView *view, uint32_t first, uint32_t end)
{
    uint32_t gpus = 0;
    for (uint32_t j = first; j < end; j++)
        gpus += view->device[j].gpus;
    return fmax(GAP + (double)gpus * (GPU + GAP), 60);
}

/* Draws the machines from left to right in rows; with `dry` it only returns the height. */
static double draw_machines(const Drawing *drawing, const uint32_t *stage, bool dry)
{
    const ClusterView *view = drawing->evaluation->view;
    const double row = BOX_HEAD + GPU + GAP + 8;
    double x = 1, y = 1;
    uint32_t gpus = 0;
    for (uint32_t first = 0; first < view->n_devices && gpus < MAX_GPUS;) {
        const uint32_t end = end_of_machine(view, first);
        const double width = width_of(view, first, end);
        if (x > 1 && x + width > DRAWING_WIDTH) {
            x = 1;
            y += row;
        }
        if (!dry)
            draw_machine(drawing, first, end, stage, x, y);
        for (; first < end; first++)
            gpus += view->device[first].gpus;
        x += width + 8;
    }
    return y + row;
}

/* --- stages --- */

/* The layers of the forward ops of a group, as "embedding to layers.5". Caller frees. */
static char *layers_of(const Evaluation *evaluation, uint32_t group)
{
    const Program *program = evaluation->plan->program;
    uint32_t first = UINT32_MAX, last = 0;
    for (uint32_t k = 0; k < program->n; k++) {
        const Instr *instr = &program->instr[k];
        if (instr->kind != INSTR_COMPUTE || instr->group != group)
            continue;
        const Op *op = graph_get_op(evaluation->graph, instr->op);
        if (op->pass != PASS_FORWARD)
            continue;
        first = MIN(first, op->layer);
        last = MAX(last, op->layer);
    }
    if (first == UINT32_MAX)
        return g_strdup("");
    const char *from = graph_layer_name(evaluation->graph, first),
               *to = graph_layer_name(evaluation->graph, last);
    return first == last ? g_strdup(from) : g_strdup_printf("%s to %s", from, to);
}

static void add_stage(const Drawing *drawing, uint32_t g)
{
    const Evaluation *evaluation = drawing->evaluation;
    const DeviceGroup *group = &evaluation->plan->program->group[g];
    const uint32_t n = group->n_devices * group->n_replicas;
    g_autofree char *layers = layers_of(evaluation, g);
    double busy_s = 0;
    for (uint32_t i = 0; i < n; i++)
        busy_s += evaluation->report->busy_s[group->device[i]] / n;
    page_row(drawing->page);
    page_number(drawing->page, g, "%.0f");
    page_cell(drawing->page, layers);
    page_cell(drawing->page, evaluation->view->device[group->device[0]].name);
    page_number(drawing->page, group->n_replicas, "%.0f");
    page_number(drawing->page, group->n_devices, "%.0f");
    page_number(drawing->page, 100 * busy_s / evaluation->report->iteration_time_s,
                "%.1f");
    page_row_end(drawing->page);
}

static void add_stages(const Drawing *drawing)
{
    static const char *const COLUMNS[] = {"#stage",    "layers",           "first device",
                                          "#replicas", "#devices of each", "#busy %",
                                          NULL};
    const Program *program = drawing->evaluation->plan->program;
    if (program->n_groups < 2)
        return;
    page_table(drawing->page, "Stages", COLUMNS);
    for (uint32_t g = 0; g < MIN(program->n_groups, (uint32_t)MAX_STAGES); g++)
        add_stage(drawing, g);
    page_table_end(drawing->page);
}

void drawing_add_cluster(const Drawing *drawing)
{
    const Evaluation *evaluation = drawing->evaluation;
    g_autofree uint32_t *stage = stages_of(evaluation);
    uint32_t gpus = 0;
    for (uint32_t j = 0; j < evaluation->view->n_devices; j++)
        gpus += evaluation->view->device[j].gpus;
    page_heading(drawing->page, "h2", "cluster", "Cluster");
    page_add(drawing->page, "p", "%u GPUs in their machines, %s.%s", gpus,
             evaluation->plan->program->n_groups > 1
                 ? "with the number of the stage that each is in"
                 : "coloured by type; all run the same program",
             gpus > MAX_GPUS ? " The first of them are drawn." : "");
    g_string_append_printf(drawing->page,
                           "<div class=\"scroll\">\n<svg class=\"cluster\" viewBox=\"0 0 "
                           "%d %.0f\" role=\"img\" "
                           "aria-label=\"Machines and GPUs\">\n",
                           DRAWING_WIDTH, draw_machines(drawing, stage, true));
    draw_machines(drawing, stage, false);
    g_string_append(drawing->page, "</svg>\n</div>\n");
    add_stages(drawing);
}
