/* Runs of computations of one layer (sim/tasks/buffers.h). */
#include "data/base/free.h"
#include "sim/tasks/buffers.h"

bool sim_gathers(const Instr *instr, const Graph *graph)
{
    const FormAxis axis = instr_axis(instr);
    return instr->kind == INSTR_COLLECTIVE &&
           graph_tensor(graph, instr->tensor)->role == ROLE_PARAMETER &&
           form_is_gather(form_on(axis, instr->from)) &&
           !form_is_gather(form_on(axis, instr->to));
}

/* [group]: the first group of the same devices. The caller frees it. */
static uint16_t *group_homes(const Program *program)
{
    uint16_t *home = g_new0(uint16_t, MAX(program->n_groups, 1));
    for (uint16_t g = 0; g < program->n_groups; g++)
        while (!group_is_alike(&program->group[home[g]], &program->group[g]))
            home[g]++;
    return home;
}

/* Numbers runs, and says which differentiate. */
static void number_runs(SimRuns *runs, const Program *program, const Graph *graph)
{
    const uint32_t n_groups = MAX(program->n_groups, 1);
    g_autofree uint32_t *now = g_new0(uint32_t, n_groups); /* run 0 has no computations */
    g_autofree const Instr **last = g_new0(const Instr *, n_groups);
    items_at (const Instr, instr, i, program->instr, program->n) {
        const uint32_t group = runs->home[instr->group];
        const Instr *other = last[group];
        if (instr->kind != INSTR_COMPUTE)
            continue;
        const Op *op = graph_get_op(graph, instr->op);
        const Op *before = other ? graph_get_op(graph, other->op) : NULL;
        if (!other || before->layer != op->layer ||
            (other->microbatch != instr->microbatch && before->pass != op->pass)) {
            runs->before[runs->n] = now[group];
            now[group] = runs->n++;
        }
        runs->of[i] = now[group];
        runs->again[runs->of[i]] |= op->pass != PASS_FORWARD;
        last[group] = instr;
    }
}

SimRuns sim_runs(const Program *program, const Graph *graph, const uint32_t *layer)
{
    const uint32_t n_groups = MAX(program->n_groups, 1), n_layers = graph_n_layers(graph);
    SimRuns runs = {.n = 1,
                    .of = g_new0(uint32_t, program->n + 1),
                    .home = group_homes(program),
                    .before = g_new0(uint32_t, program->n + 1),
                    .again = g_new0(bool, program->n + 1)};
    g_autofree uint32_t *next = g_new0(uint32_t, n_groups),
                        *of = g_new0(uint32_t, (size_t)n_groups * n_layers + 1);
    number_runs(&runs, program, graph);
    for (uint32_t i = program->n; i-- > 0;) {
        const Instr *instr = &program->instr[i];
        const uint32_t group = runs.home[instr->group];
        uint32_t *of_group = &of[(size_t)group * n_layers];
        if (instr->kind == INSTR_COMPUTE)
            next[group] = of_group[graph_get_op(graph, instr->op)->layer] = runs.of[i];
        else
            runs.of[i] =
                sim_gathers(instr, graph) ? of_group[layer[instr->tensor]] : next[group];
    }
    return runs;
}

CLEAR_DEFINE(sim_runs_clear, SimRuns, runs,
             free_each(runs->of, runs->home, runs->before, runs->again));
