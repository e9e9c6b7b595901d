/* How far what layers need runs ahead of the layers that compute (SimOptions.prefetch).
 *
 * A group's computations come in runs (sim/tasks/buffers.h). The parameters that are gathered for a
 * run wait for the end of the run that lies `prefetch` + 1 before it, of those for which some are
 * gathered, and of the reduction of that layer's gradients, as far as the program has come: as in
 * PyTorch's FSDP, which gathers at most one layer beside the one that computes.
 * A layer's gradients are made again once those before them are reduced, as they lie in one buffer,
 * and where replicas divide them (zero=2), once those of the run so far before are reduced.
 * What comes back from the host for a run waits for the end of the run so far before it, and a run
 * starts when the activations of that one are on the host. */
#include <string.h>

#include "data/base/free.h"
#include "data/base/order.h"
#include "sim/tasks/buffers.h"
#include "sim/tasks/task_lower.h"

/* A buffer goes to the host after an instruction, or comes back before it. */
typedef struct {
    uint32_t at, buffer;
    SimCopy copies;
} Move;

/* The first tasks of a run's last computation, of the last reduction of its layer's gradients, of
 * what it last sent to the host and of what came back for it; SIM_NO_TASK: none. */
typedef struct {
    uint32_t ended, reduced, n_reduced, stored, fetched;
    uint32_t divided, n_divided; /* the last of these of which each rank keeps a part */
    uint32_t gathered;           /* 0: parameters were gathered for it */
} RunTasks;

struct TaskAhead {
    SimRuns runs;
    RunTasks *run;
    uint32_t *layer;      /* [tensor] */
    uint32_t *last;       /* [group * n_layers + layer]: its last run so far */
    uint32_t *sums;       /* likewise: the last with reductions */
    uint32_t *latest;     /* [group]: the last reductions that leave a part of each */
    PlanBuffers *buffers; /* NULL: nothing is copied to hosts or back */
    GArray *moves;        /* Move, in program order */
    uint32_t next;        /* the first of them that is still to be made */
};

static ORDER_DEFINE(move_compare, Move, ASCENDING(at), DESCENDING(copies));

static void find_moves(TaskAhead *a, const SimCase *sim)
{
    a->buffers = sim_held_buffers(sim);
    a->moves = g_array_new(false, false, sizeof(Move));
    items_at (const PlanBuffer, buffer, b, a->buffers->buffer, a->buffers->n) {
        const Move move = {buffer->leaves ? buffer->leaves - 1 : buffer->birth, b,
                           buffer->leaves ? SIM_TO_HOST : SIM_FROM_HOST};
        if (buffer->leaves || buffer->returns)
            g_array_append_val(a->moves, move);
    }
    g_array_sort(a->moves, move_compare);
}

void task_ahead_init(Lower *lower)
{
    const SimCase *sim = lower->sim;
    const Strategy *strategy = &sim->plan->strategy;
    const bool copies = strategy_offloads(strategy, OFFLOAD_PARAMETERS) ||
                        strategy_offloads(strategy, OFFLOAD_ACTIVATIONS);
    lower->ahead = NULL;
    if (lower->how->ahead == 0 && !copies)
        return;
    TaskAhead *a = lower->ahead = g_new0(TaskAhead, 1);
    a->layer = graph_tensor_layers(sim->graph);
    a->runs = sim_runs(sim->plan->program, sim->graph, a->layer);
    a->run = g_new(RunTasks, a->runs.n);
    memset(a->run, 0xff, a->runs.n * sizeof *a->run);
    const size_t n =
        (size_t)sim->parts->layout.n_groups * MAX(graph_n_layers(sim->graph), 1);
    a->last = g_new0(uint32_t, n);
    a->sums = g_new0(uint32_t, n);
    a->latest = g_new0(uint32_t, sim->parts->layout.n_groups + 1);
    if (copies)
        find_moves(a, sim);
}

void task_ahead_clear(Lower *lower)
{
    TaskAhead *a = lower->ahead;
    if (!a)
        return;
    sim_runs_clear(&a->runs);
    plan_buffers_free(a->buffers);
    g_clear_pointer(&a->moves, g_array_unref);
    free_each(a->run, a->layer, a->last, a->sums, a->latest, a);
}

/* The tasks of the run that lies so far before the instruction's. */
static const RunTasks *run_behind(const Lower *lower, uint32_t i)
{
    const SimRuns *runs = &lower->ahead->runs;
    uint32_t run = lower->how->ahead ? runs->of[i] : 0;
    for (uint32_t k = 0; k < lower->how->ahead; k++)
        run = runs->before[run];
    return &lower->ahead->run[run];
}

/* The place of a layer among `last` and `sums`. */
static size_t place_of(const Lower *lower, uint32_t group, uint32_t layer)
{
    return (size_t)lower->ahead->runs.home[group] * graph_n_layers(lower->sim->graph) +
           layer;
}

static void add_row(Lower *lower, uint32_t first, uint32_t n)
{
    for (uint32_t k = 0; first != SIM_NO_TASK && k < n; k++)
        task_add_dep(lower, first + k);
}

void task_ahead_gather(Lower *lower, const Instr *instr, uint32_t i)
{
    TaskAhead *a = lower->ahead;
    if (!a || !sim_gathers(instr, lower->sim->graph))
        return;
    uint32_t at = lower->how->ahead ? a->runs.of[i] : 0;
    a->run[at].gathered = 0;
    for (uint32_t k = 0; k < lower->how->ahead; k++)
        do
            at = a->runs.before[at];
        while (at > 0 && a->run[at].gathered != 0);
    const RunTasks *run = &a->run[at];
    add_row(lower, run->ended, task_group_lanes(lower, instr)->n_lanes);
    add_row(lower, run->reduced, run->n_reduced);
}

void task_ahead_reduce(Lower *lower, const Instr *instr, uint32_t first, uint32_t n)
{
    TaskAhead *a = lower->ahead;
    if (!a || !task_reduces_gradient(lower->sim->graph, instr))
        return;
    const size_t place = place_of(lower, instr->group, a->layer[instr->tensor]);
    const uint32_t run = a->sums[place] = a->last[place];
    a->run[run].reduced = run ? first : SIM_NO_TASK;
    a->run[run].n_reduced = n;
    if (instr->collective != COLLECTIVE_REDUCE_SCATTER)
        return;
    a->latest[a->runs.home[instr->group]] = a->run[run].divided = a->run[run].reduced;
    a->run[run].n_divided = n;
}

/* --- copies --- */

/* Adds a task per lane that waits for the one in the row `after`; the first, or SIM_NO_TASK if
 * nothing is copied. */
static uint32_t add_copies(Lower *lower, SimTask task, SimCopy copies, uint32_t after)
{
    TaskAhead *a = lower->ahead;
    const SimCase *sim = lower->sim;
    const SimGroupTeams *lanes = task_group_lanes(lower, task_instr(lower, task.instr));
    const uint32_t first = lower->task->len, from = a->next;
    const Move *move = (const Move *)(void *)a->moves->data;
    for (; a->next < a->moves->len && move[a->next].at == task.instr; a->next++)
        if (move[a->next].copies != copies)
            break;
    task.kind = TASK_COMPUTE;
    task.copies = copies;
    for (uint32_t k = 0; a->next > from && k < lanes->n_lanes; k++) {
        const uint32_t first_dep = lower->dep->len;
        const Device *device =
            &sim->view->device[lower->tasks->teams->device[lanes->lane[k]]];
        double bytes = 0;
        for (uint32_t m = from; m < a->next; m++)
            bytes +=
                device->gpus * sim_buffer_bytes(sim, &a->buffers->buffer[move[m].buffer],
                                                lanes->place[k]);
        add_row(lower, after == SIM_NO_TASK ? after : after + k, 1);
        task.lane = lanes->lane[k];
        task.duration_s = sim_link_s(sim->view, device, bytes);
        task_add(lower, task, first_dep);
    }
    return a->next > from ? first : SIM_NO_TASK;
}

uint32_t task_ahead_return(Lower *lower, SimTask task)
{
    TaskAhead *a = lower->ahead;
    if (!a || !a->buffers)
        return SIM_NO_TASK;
    const uint32_t first =
        add_copies(lower, task, SIM_FROM_HOST, run_behind(lower, task.instr)->ended);
    if (first != SIM_NO_TASK)
        a->run[a->runs.of[task.instr]].fetched = first;
    return first;
}

/* A parameter's gradient waits for the reductions of its layer's before, and for those so many runs
 * before that leave a part of each, but for the latest: a bucket fills while one is on its way. */
static void wait_for_sums(Lower *lower, uint32_t i)
{
    const TaskAhead *a = lower->ahead;
    const Instr *instr = task_instr(lower, i);
    if (instr->kind != INSTR_COMPUTE)
        return;
    const Op *op = graph_get_op(lower->sim->graph, instr->op);
    const uint32_t run = a->sums[place_of(lower, instr->group, op->layer)];
    if (!graph_is_parameter_gradient(lower->sim->graph, op->out[0]))
        return;
    if (run != a->runs.of[i])
        add_row(lower, a->run[run].reduced, a->run[run].n_reduced);
    const RunTasks *behind = run_behind(lower, i);
    if (lower->sim->plan->strategy.zero > 1 &&
        behind->divided != a->latest[a->runs.home[instr->group]])
        add_row(lower, behind->divided, behind->n_divided);
}

void task_ahead_wait(Lower *lower, uint32_t i, uint32_t k)
{
    const TaskAhead *a = lower->ahead;
    if (a)
        wait_for_sums(lower, i);
    if (!a || !a->buffers)
        return;
    const uint32_t fetched = a->run[a->runs.of[i]].fetched,
                   stored = run_behind(lower, i)->stored;
    add_row(lower, fetched == SIM_NO_TASK ? fetched : fetched + k, 1);
    add_row(lower, stored == SIM_NO_TASK ? stored : stored + k, 1);
}

void task_ahead_end(Lower *lower, const Instr *instr, SimTask task, uint32_t first)
{
    TaskAhead *a = lower->ahead;
    if (!a)
        return;
    const uint32_t run = a->runs.of[task.instr];
    a->run[run].ended = first;
    a->last[place_of(lower, instr->group,
                     graph_get_op(lower->sim->graph, instr->op)->layer)] = run;
    if (!a->buffers)
        return;
    const uint32_t stored = add_copies(lower, task, SIM_TO_HOST, first);
    a->run[run].stored = stored == SIM_NO_TASK ? a->run[run].stored : stored;
}
