/* Context parallelism by rings (the strategy's cp_comm=p2p; Liu et al. 2023, Ring Attention;
 * Megatron-LM's own way), and by heads and rings (a2a+p2p).
 *
 * Each shard's keys and values go around the shards, and their gradients with them, while attention
 * takes the part that is there. So what the program gathers before attention, and scatters after
 * its backward, takes the same bytes but runs beside all of attention but its first part: of N
 * shards,
 *
 *     min(the time of the exchanges, (1 - 1/N) that of attention)
 *
 * is hidden. Two parts lie on a device at a time, the one in use and the one that comes. Parts of
 * causal sequences are cut so that all take equally long (zigzag).
 *
 * With a2a+p2p (Fang and Zhao 2024, USP; Transformer Engine) neighbouring shards, a2a_ranks of
 * them, first exchange their parts of queries, keys and values for heads. Then keys and values of
 * these heads go around N / a2a_ranks shards, as above, and the result comes back. In the backward
 * its gradient goes there, and those of queries, keys and values come back. No exchange for heads
 * is hidden. Those of the forward are in the program's gather of keys and values before attention,
 * those of the backward in the scatter of their gradients. */
#include "sim/tasks/buffers.h"
#include "sim/tasks/task_lower.h"

#include <math.h>

#include "data/base/free.h"

typedef struct {
    uint32_t first, end; /* tasks with the next attention's exchanges; none if equal */
    double open_s;       /* of these exchanges */
    double left_s;       /* what the last attention may still hide */
} Ring;

struct TaskRing {
    /* [tensor]: of keys and values, and their gradients: 1 and the bytes of queries and results
     * over theirs; of others 0 */
    double *rings;
    Ring *group;
};

static double *ring_tensors(const Strategy *strategy, const Graph *graph)
{
    if (!strategy_has_rings(strategy))
        return NULL;
    double *rings = g_new0(double, graph_n_tensors(graph) + 1);
    ops_each (op, id, graph) {
        if (op->pass != PASS_FORWARD || !op_kind_is_attention(op->kind))
            continue;
        double around = 0;
        for (uint32_t i = 1; i < op->n_in; i++)
            around += (double)tensor_bytes(graph_tensor(graph, op->in[i]));
        const double ends = (double)tensor_bytes(graph_tensor(graph, op->in[0])) +
                            (double)tensor_bytes(graph_tensor(graph, op->out[0]));
        for (uint32_t i = 1; i < op->n_in; i++) {
            const TensorId gradient = graph_gradient(graph, op->in[i]);
            rings[op->in[i]] = 1 + ends / around;
            if (gradient != GRAPH_NONE)
                rings[gradient] = rings[op->in[i]];
        }
    }
    return rings;
}

/* Whether the instruction is an exchange of the ring. */
static bool is_exchange(const double *rings, const Instr *instr)
{
    return instr->kind == INSTR_COLLECTIVE && instr_axis(instr) == AXIS_SHARDS &&
           rings[instr->tensor] > 0 &&
           (instr->collective == COLLECTIVE_ALL_GATHER ||
            instr->collective == COLLECTIVE_REDUCE_SCATTER);
}

void sim_buffers_ring(PlanBuffers *buffers, const Strategy *strategy,
                      const Program *program, const Graph *graph)
{
    g_autofree double *rings = ring_tensors(strategy, graph);
    for (uint32_t b = 0; rings && b < buffers->n; b++) {
        PlanBuffer *buffer = &buffers->buffer[b];
        const uint32_t n = group_shards(&program->group[buffer->group]);
        if (n > 2 && rings[buffer->tensor] > 0 &&
            (is_exchange(rings, &program->instr[buffer->birth])
                 ? program->instr[buffer->birth].collective == COLLECTIVE_ALL_GATHER
                 : form_on(AXIS_SHARDS, buffer->form) == FORM_REDUCE))
            buffer->element_bytes *= 2.0 / n;
    }
}

TaskRing *task_ring_new(const SimCase *sim, uint32_t n_groups)
{
    double *rings = ring_tensors(&sim->plan->strategy, sim->graph);
    if (!rings)
        return NULL;
    TaskRing *ring = g_new(TaskRing, 1);
    *ring = (TaskRing){rings, g_new0(Ring, n_groups)};
    return ring;
}

FREE_DEFINE(task_ring_free, TaskRing, ring, free_each(ring->rings, ring->group));

/* Whether the instruction's result is next used in a forward, which may run again. */
static bool goes_forward(const Lower *lower, const Instr *instr)
{
    const Program *program = lower->sim->plan->program;
    for (const Instr *next = instr + 1; next < program->instr + program->n; next++) {
        if (next->kind != INSTR_COMPUTE || next->group != instr->group)
            continue;
        const Op *op = graph_get_op(lower->sim->graph, next->op);
        for (uint32_t i = 0; i < op->n_in; i++)
            if (op->in[i] == instr->tensor)
                return op->pass == PASS_FORWARD;
    }
    return false;
}

double task_ring_heads(const Lower *lower, const Instr *instr, bool *forward)
{
    const DeviceGroup *group = &lower->sim->parts->layout.group[instr->group];
    if (!lower->ring || !group->n_heads || !is_exchange(lower->ring->rings, instr))
        return 0;
    *forward = goes_forward(lower, instr);
    return lower->ring->rings[instr->tensor] / sim_axis_extent(group, AXIS_RINGS);
}

void task_ring_exchange(Lower *lower, const Instr *instr, uint32_t first, uint32_t n)
{
    if (!lower->ring || n == 0 || !is_exchange(lower->ring->rings, instr))
        return;
    Ring *of = &lower->ring->group[instr->group];
    double seconds = INFINITY;
    for (uint32_t t = first; t < first + n; t++)
        seconds = fmin(seconds, g_array_index(lower->task, SimTask, t).duration_s);
    if (instr->collective == COLLECTIVE_REDUCE_SCATTER) {
        const double hidden = fmin(of->left_s, seconds);
        task_shorten(lower, first, n, hidden);
        of->left_s -= hidden;
        return;
    }
    of->open_s += seconds;
    of->first = of->end > 0 ? of->first : first;
    of->end = first + n;
}

void task_ring_attention(Lower *lower, const Instr *instr, double seconds)
{
    if (!lower->ring)
        return;
    Ring *of = &lower->ring->group[instr->group];
    const Op *op = graph_get_op(lower->sim->graph, instr->op);
    const DeviceGroup *group = &lower->sim->parts->layout.group[instr->group];
    const uint32_t n = sim_axis_extent(group, group->n_heads ? AXIS_RINGS : AXIS_SHARDS);
    const bool reads =
        any_of(i, op->n_in,
               lower->ring->rings[op->in[i]] > 0 &&
                   graph_tensor(lower->sim->graph, op->in[i])->role != ROLE_GRADIENT);
    if (!reads || n == 1)
        return;
    const double most = seconds * (1 - 1.0 / n), hidden = fmin(most, of->open_s);
    for (uint32_t t = of->first; t < of->end && hidden > 0; t++) {
        const SimTask *task = &g_array_index(lower->task, SimTask, t);
        if (task->kind == TASK_COLLECTIVE &&
            lower->tasks->teams->team[task->team].axis != AXIS_HEADS &&
            is_exchange(lower->ring->rings, task_instr(lower, task->instr)))
            task_shorten(lower, t, 1, task->duration_s * hidden / of->open_s);
    }
    *of = (Ring){.left_s = most - hidden};
}
