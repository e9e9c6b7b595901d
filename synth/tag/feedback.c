/* Runtime feedback, gathered from the tasks of each instruction. */
#include "synth/tag/feedback.h"

#include "data/base/free.h"

#include <math.h>

typedef struct {
    const TagSpace *space;
    const TagWork *work;
    SimQuick *quick;
    const Program *program;
    TagFeedback *out;
    double *first_s, *last_s; /* [op group] */
    double *made_s;           /* [tensor]: when the last of its makers ended */
    uint32_t *n_waits;        /* [op group] */
} Gather;

/* Adds seconds to the links between the sets of two device groups. */
static void add_links(const Gather *g, uint32_t from, uint32_t to, double seconds)
{
    const DeviceGroup *a = &g->space->group[from], *b = &g->space->group[to];
    bool in[TAG_MOST_SETS] = {false}, out[TAG_MOST_SETS] = {false};
    for (uint32_t i = 0; i < a->n_replicas * a->n_devices; i++)
        in[g->space->set[a->device[i]]] = true;
    for (uint32_t i = 0; i < b->n_replicas * b->n_devices; i++)
        out[g->space->set[b->device[i]]] = true;
    for (uint32_t s = 0; s < g->space->n_sets; s++)
        for (uint32_t t = 0; t < g->space->n_sets; t++)
            if (in[s] && out[t])
                g->out->link[s * g->space->n_sets + t] += seconds;
}

static void add_compute(const Gather *g, const Instr *instr, double start_s, double end_s)
{
    const Op *op = graph_get_op(g->work->graph, instr->op);
    const uint32_t group = g->work->group[instr->op];
    g->first_s[group] = fmin(g->first_s[group], start_s);
    g->last_s[group] = fmax(g->last_s[group], end_s);
    for (uint32_t o = 0; o < op->n_out; o++)
        g->made_s[op->out[o]] = fmax(g->made_s[op->out[o]], end_s);
}

static void add_communication(const Gather *g, const Instr *instr, double start_s,
                              double end_s)
{
    const OpId by = graph_tensor(g->work->graph, instr->tensor)->producer;
    const bool moves = instr->kind == INSTR_TRANSFER;
    add_links(g, instr->group, moves ? instr->to_group : instr->group, end_s - start_s);
    if (by == GRAPH_NONE)
        return;
    g->out->wait[g->work->group[by]] += fmax(0, start_s - g->made_s[instr->tensor]);
    g->n_waits[g->work->group[by]]++;
    g->made_s[instr->tensor] = fmax(g->made_s[instr->tensor], end_s);
}

static void feedback_gather(const Gather *g)
{
    items_at (const Instr, instr, i, g->program->instr, g->program->n) {
        double start_s, end_s;
        if (!sim_quick_span(g->quick, i, &start_s, &end_s))
            continue;
        if (instr->kind == INSTR_COMPUTE)
            add_compute(g, instr, start_s, end_s);
        else
            add_communication(g, instr, start_s, end_s);
    }
}

/* Turns seconds into parts of the iteration. */
static void divide(const Gather *g, double iteration_s)
{
    TagFeedback *f = g->out;
    for (uint32_t i = 0; i < f->n_groups; i++) {
        f->makespan[i] = fmax(0, g->last_s[i] - g->first_s[i]) / iteration_s;
        f->wait[i] /= MAX(g->n_waits[i], 1) * iteration_s;
    }
    for (uint32_t l = 0; l < f->n_sets * f->n_sets; l++)
        f->link[l] = fmin(1, f->link[l] / iteration_s);
}

static void add_devices(const Gather *g, double iteration_s)
{
    const ClusterView *view = g->space->view;
    TagFeedback *f = g->out;
    g_autofree uint64_t *peak = g_new0(uint64_t, view->n_devices);
    g_autofree uint32_t *n = g_new0(uint32_t, f->n_sets);
    for (uint32_t j = 0; j < view->n_devices; j++)
        n[g->space->set[j]]++;
    sim_quick_memory(g->quick, g->program, peak);
    values_at (const uint32_t, set, j, g->space->set, view->n_devices) {
        f->busy[set] += sim_quick_busy_s(g->quick, j) / iteration_s / n[set];
        f->memory[set] =
            fmax(f->memory[set], (double)peak[j] / (double)view->device[j].memory_bytes);
    }
}

TagFeedback *tag_feedback_new(const TagSpace *space, const TagWork *work, SimQuick *quick,
                              const Program *program)
{
    TagFeedback *f = g_new0(TagFeedback, 1);
    const uint32_t n = work->n_groups, n_sets = space->n_sets;
    f->n_groups = n;
    f->n_sets = n_sets;
    f->makespan = g_new0(double, n + 1);
    f->wait = g_new0(double, n + 1);
    f->busy = g_new0(double, n_sets + 1);
    f->memory = g_new0(double, n_sets + 1);
    f->link = g_new0(double, (gsize)n_sets *n_sets + 1);
    g_autofree double *first_s = g_new(double, n + 1);
    g_autofree double *last_s = g_new0(double, n + 1);
    g_autofree double *made_s = g_new0(double, graph_n_tensors(work->graph) + 1);
    g_autofree uint32_t *n_waits = g_new0(uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        first_s[i] = INFINITY;
    const Gather g = {space, work, quick, program, f, first_s, last_s, made_s, n_waits};
    const double iteration_s = sim_quick_times(quick, program).flow_s;
    KILTER_ASSERT(iteration_s > 0);
    feedback_gather(&g);
    divide(&g, iteration_s);
    add_devices(&g, iteration_s);
    return f;
}

FREE_DEFINE(tag_feedback_free, TagFeedback, f,
            free_each(f->makespan, f->wait, f->busy, f->memory, f->link));
