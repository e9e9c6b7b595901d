/* Exchanges of tokens with experts, where the software does more than an all-to-all of copies.
 *
 * To a machine once (`once` in data/cluster/stack.h; DeepEP; DeepSeek-AI 2024, Sec. 3.2.2): a token
 * whose experts lie on one machine goes there once and is copied by its inner links, and what they
 * make is added up there before it returns. Of `top` copies to E experts, evenly chosen, of which H
 * machines have x each, the port carries
 *
 *     H (1 - C(E - x, top) / C(E, top)) / (top H x / E)
 *
 * With K of G groups of experts to choose from, of which a machine has m, it is the mean over the j
 * of these among the K, with K / G of all experts and j / m of x. Inner links carry all copies, and
 * an exchange is not shorter than they take.
 *
 * Beside computation (`beside`; DualPipe, Sec. 3.2.1; Megatron-LM's overlap of two microbatches):
 * where a forward pass of a stage and a backward pass of another microbatch follow one another,
 * they make a pair: they take turns at each exchange, which runs beside what the other computes
 * up to its own next one. With s and t what they compute before, between and after their exchanges,
 *
 *     forward    s0      X0      s1      X1      ...    X(i) beside t(i+1)
 *     backward   Y0      t1      Y1      t2      ...    Y(i) beside s(i)
 *
 * Nothing waits for gradients of weights, which hide what is left. A pass is in one pair only. So
 * the first and last passes have no mate; on the last stage, and without stages, a backward's is
 * the next microbatch's forward, as in Megatron-LM. */
#include "data/base/free.h"
#include "sim/tasks/task_lower.h"

#include <math.h>

#include <gsl/gsl_randist.h>

typedef struct {
    uint32_t first, n; /* its tasks */
    double open_s;     /* what may run beside computations */
    double before_s;   /* computations since the exchange before */
} Exchange;

/* The work of a stage's devices for one microbatch, up to another one's turn. */
typedef struct {
    GArray *exchange; /* Exchange; NULL: no pass */
    double after_s;   /* computations since the last exchange */
    double weights_s; /* of weights' gradients */
    uint16_t microbatch;
    bool backward;
} StagePass;

struct TaskExperts {
    /* [tensor]: what chooses the experts whose slots it has; NULL: none */
    const Op **gate;
    uint32_t *home;       /* [group]: the first group of the same devices */
    StagePass (*pass)[2]; /* [home]: the present pass, and the one before */
    uint32_t n_groups;
};

/* The slots that an op hands tokens out to or collects them from, and the weights that choose. */
static bool slots_of(const Op *op, TensorId *slots, TensorId *weights)
{
    const bool out = op->kind == OP_ROUTE || op->kind == OP_MOE_DISPATCH;
    if (!out && op->kind != OP_UNROUTE && op->kind != OP_MOE_COMBINE)
        return false;
    *slots = out ? op->out[0] : op->in[0];
    *weights = op->in[out ? 0 : 1];
    return true;
}

static const Op **find_gates(const Graph *graph)
{
    const Op **of = g_new0(const Op *, graph_n_tensors(graph));
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        TensorId slots, weights;
        if (!slots_of(graph_get_op(graph, id), &slots, &weights))
            continue;
        const OpId gate = graph_tensor(graph, weights)->producer;
        const Op *op = gate != GRAPH_NONE ? graph_get_op(graph, gate) : NULL;
        of[slots] = op && op_experts_of_token(op->kind, &op->attr) ? op : NULL;
    }
    return of;
}

static uint32_t *find_homes(const PlanLayout *layout)
{
    uint32_t *home = g_new(uint32_t, layout->n_groups);
    for (uint32_t g = 0; g < layout->n_groups; g++)
        for (home[g] = 0; layout->group[home[g]].device[0] != layout->group[g].device[0];)
            home[g]++;
    return home;
}

TaskExperts *task_experts_new(const Lower *lower)
{
    const ClusterView *view = lower->sim->view;
    bool any = false;
    for (uint32_t d = 0; d < view->n_devices && !any; d++)
        any = view->device[d].kernels && (view->device[d].kernels->stack.once > 0 ||
                                          view->device[d].kernels->stack.beside > 0);
    if (!any)
        return NULL;
    TaskExperts *experts = g_new0(TaskExperts, 1);
    experts->n_groups = lower->sim->parts->layout.n_groups;
    experts->gate = find_gates(lower->sim->graph);
    experts->home = find_homes(&lower->sim->parts->layout);
    experts->pass = g_malloc0_n(experts->n_groups, sizeof *experts->pass);
    return experts;
}

void task_experts_free(TaskExperts *experts)
{
    if (!experts)
        return;
    for (uint32_t g = 0; g < experts->n_groups; g++)
        for (uint32_t k = 0; k < 2; k++)
            if (experts->pass[g][k].exchange)
                g_array_unref(experts->pass[g][k].exchange);
    free_each(experts->pass, experts->home, experts->gate, experts);
}

/* --- to a machine once --- */

/* The chance that none of `top` different experts of so many is among the x of a machine. */
static double chance_of_none(double experts, uint32_t top, double x)
{
    double none = 1;
    for (uint32_t i = 0; i < top; i++)
        none *= fmax(experts - x - i, 0) / (experts - i);
    return none;
}

/* Of an exchange's copies the part that its ports carry; see above. x: experts of a machine. */
static double part_once(const Op *gate, double experts, double x)
{
    const uint32_t top = op_experts_of_token(gate->kind, &gate->attr),
                   n_groups = MAX(gate->attr.groups, 1),
                   n_open = gate->attr.groups ? gate->attr.top_groups : 1;
    const double of_group = experts / n_groups;
    const uint32_t groups = MAX((uint32_t)(x / of_group), 1);
    double none = 0;
    for (uint32_t j = 0; j <= MIN(groups, n_open); j++)
        none += gsl_ran_hypergeometric_pdf(j, groups, n_groups - groups, n_open) *
                chance_of_none(n_open * of_group, top, j * x / groups);
    return fmin(1, experts * (1 - none) / (top * x));
}

double task_experts_part(const Lower *lower, const Instr *instr, const SimTeam *team)
{
    const TaskExperts *of = lower->experts;
    const PricePlace *place = &team->place;
    double once = 1;
    if (!of || !of->gate[instr->tensor] || instr->collective != COLLECTIVE_ALL_TO_ALL ||
        place->hosts < 2 || !place->own)
        return 1;
    for (uint32_t d = 0; d < team->n_sets * team->n; d++) {
        const Device *device = &lower->sim->view->device[team->device[d]];
        once = fmin(once, device->kernels ? device->kernels->stack.once : 0);
    }
    const double experts = graph_tensor(lower->sim->graph, instr->tensor)->dim[1];
    const SimPart slots =
        sim_part(lower->sim->parts, instr->group, instr->tensor, instr->from,
                 sim_set_place(&lower->sim->parts->layout.group[instr->group], team->axis,
                               team->first, 0));
    const double n = team->n, a = place->most,
                 inner = (n - 1) / (n - a) * place->exchange / place->inner.bandwidth,
                 part = part_once(of->gate[instr->tensor], experts,
                                  experts * slots.inside / place->hosts);
    return 1 - once * (1 - fmin(1, fmax(part, inner)));
}

/* --- beside computation --- */

/* Seconds that the pass computes before its exchange i. */
static double part_before(const StagePass *pass, uint32_t i)
{
    return i < pass->exchange->len ? g_array_index(pass->exchange, Exchange, i).before_s
           : i == pass->exchange->len ? pass->after_s
                                      : 0;
}

/* Makes a pass's exchanges shorter by what the other pass computes beside them, from its part
 * `from` on; *spare: seconds beside any. */
static void hide(Lower *lower, const StagePass *pass, const StagePass *other,
                 uint32_t from, double *spare)
{
    for (uint32_t i = 0; i < pass->exchange->len; i++) {
        const Exchange *e = &g_array_index(pass->exchange, Exchange, i);
        const double hidden = fmin(e->open_s, part_before(other, from + i)),
                     more = fmin(e->open_s - hidden, *spare);
        task_shorten(lower, e->first, e->n, hidden + more);
        *spare -= more;
    }
}

/* The present pass ends: it makes a pair with the one before, or waits for the next one. */
static void end_pass(Lower *lower, StagePass pass[2])
{
    StagePass *now = &pass[0], *before = &pass[1];
    const bool pair = before->exchange && now->exchange &&
                      before->backward != now->backward &&
                      before->microbatch != now->microbatch;
    if (pair) {
        const StagePass *back = now->backward ? now : before,
                        *ahead = now->backward ? before : now;
        double spare = back->weights_s;
        hide(lower, ahead, back, 1, &spare);
        hide(lower, back, ahead, 0, &spare);
    }
    if (before->exchange)
        g_array_unref(before->exchange);
    if (pair)
        g_array_unref(now->exchange);
    *before = pair ? (StagePass){0} : *now;
    *now = (StagePass){0};
}

/* turns: the microbatch's backward begins right after its forward. */
static StagePass *pass_of(Lower *lower, const Instr *instr, bool turns)
{
    StagePass *pass = lower->experts->pass[lower->experts->home[instr->group]];
    if (pass->exchange && (turns || pass->microbatch != instr->microbatch))
        end_pass(lower, pass);
    if (!pass->exchange)
        *pass = (StagePass){.exchange = g_array_new(false, false, sizeof(Exchange)),
                            .microbatch = instr->microbatch};
    return pass;
}

void task_experts_compute(Lower *lower, const Instr *instr, double seconds)
{
    if (!lower->experts || instr->microbatch == PROGRAM_WHOLE)
        return;
    const Graph *graph = lower->sim->graph;
    const Op *op = graph_get_op(graph, instr->op), *of = graph_get_op(graph, op->of);
    const bool backward = op->pass == PASS_BACKWARD,
               turns = backward && graph_tensor(graph, of->out[0])->role == ROLE_LOSS;
    StagePass *pass = pass_of(lower, instr, turns);
    *(op_kind_is_weights_gradient(op->kind) ? &pass->weights_s : &pass->after_s) +=
        seconds;
    pass->backward |= backward;
}

void task_experts_exchange(Lower *lower, const Instr *instr, uint32_t first, uint32_t n)
{
    if (!lower->experts || !lower->experts->gate[instr->tensor] ||
        instr->microbatch == PROGRAM_WHOLE)
        return;
    /* pieces that take turns hide their exchanges themselves */
    double part = lower->sim->plan->strategy.pieces <= 1, seconds = INFINITY;
    for (uint32_t t = 0; t < n; t++) {
        const SimTask *task = &g_array_index(lower->task, SimTask, first + t);
        const SimTeam *team = &lower->tasks->teams->team[task->team];
        const Device *device = &lower->sim->view->device[team->device[0]];
        part = fmin(part, device->kernels ? device->kernels->stack.beside : 0);
        seconds = fmin(seconds, task->duration_s);
    }
    if (part <= 0)
        return;
    StagePass *pass = pass_of(lower, instr, false);
    const Exchange exchange = {first, n, part * seconds, pass->after_s};
    g_array_append_val(pass->exchange, exchange);
    pass->after_s = 0;
}
