/* Buckets of gradients' all-reduces and reduce-scatters. */
#include "data/base/order.h"
#include "sim/cost/step.h"
#include "sim/tasks/task_lower.h"

#include <stdlib.h>

/* A gradient's collective that waits for its bucket. */
typedef struct {
    uint32_t instr, stage;
    Collective kind;
    uint32_t team;  /* its first team */
    uint32_t to;    /* the shares of that team's ranks in the sum */
    uint32_t ready; /* 1 + the last task that it waits for; 0: none */
} Held;

void task_bucket_init(Lower *lower)
{
    lower->held = g_array_new(false, false, sizeof(Held));
    lower->is_held =
        g_new0(bool, (size_t)lower->sim->parts->layout.instances->n_places *FORM_MAX);
}

static ORDER_DEFINE(compare_held, Held, ASCENDING(team), ASCENDING(kind), ASCENDING(to),
                    ASCENDING(ready), ASCENDING(instr));

/* Whether both can be in one bucket: the same ranks get the same shares. */
static bool held_are_alike(const Held *x, const Held *y)
{
    return x->team == y->team && x->kind == y->kind && x->to == y->to;
}

static const Held *held_at(const Lower *lower, uint32_t i)
{
    return &g_array_index(lower->held, Held, i);
}

static bool *bucket_is_held_at(const Lower *lower, uint32_t i)
{
    const Instr *instr = task_instr(lower, i);
    return &lower->is_held[task_instance(lower, instr->group, instr->microbatch,
                                         instr->tensor, instr->to)];
}

/* One task per team for held[first] to held[end - 1]. */
static void lower_bucket(Lower *lower, uint32_t first, uint32_t end)
{
    g_assert(first < end);
    const Instr *instr = task_instr(lower, held_at(lower, first)->instr);
    const Made made = {lower->task->len, SIM_NO_TASK, instr->group, instr_axis(instr),
                       false};
    SimTask task = {.kind = TASK_COLLECTIVE,
                    .collective = instr->collective,
                    .from = SIM_NO_SHARE,
                    .n_fused = end - first,
                    .gradient = true,
                    .microbatch = instr->microbatch,
                    .instr = held_at(lower, first)->instr,
                    .stage = held_at(lower, first)->stage};
    uint32_t team, n;
    task_teams(lower, instr, &team, &n);
    for (n += team; team < n; team++) {
        const SimTeam *of = &lower->tasks->teams->team[team];
        const uint32_t first_dep = lower->dep->len;
        task.team = team;
        task.bytes = 0;
        for (uint32_t i = first; i < end; i++) {
            task_add_sources(lower, task_instr(lower, held_at(lower, i)->instr), of);
            task.bytes +=
                task_bytes(lower, task_instr(lower, held_at(lower, i)->instr), of);
        }
        double largest;
        task.to = task_shares_of(lower, instr, of, instr->to, &largest);
        const LinkCost line =
            sim_team_line(lower->sim->view, of, task.collective, task.bytes, NULL);
        task.duration_s =
            sim_collective_over(line, of->n, task.collective, task.bytes, 0, largest);
        task_add(lower, task, first_dep);
    }
    for (uint32_t i = first; i < end; i++) {
        instr = task_instr(lower, held_at(lower, i)->instr);
        *task_maker(lower, instr, instr->tensor, instr->to) = made;
        lower->tasks->bucket[held_at(lower, i)->instr] = made.communicate;
        task_ahead_reduce(lower, instr, made.communicate,
                          lower->task->len - made.communicate);
    }
}

/* Closes buckets of what is held, in the order in which it is ready: all, or full ones of
 * reduce-scatters. Whoever uses these closes all. */
static void close_buckets(Lower *lower, bool all)
{
    const uint64_t limit = lower->sim->plan->bucket_bytes;
    const uint32_t n = lower->held->len;
    uint32_t first = 0, kept = 0;
    double bytes = 0;
    qsort(lower->held->data, n, sizeof(Held), compare_held);
    for (uint32_t i = 0; i < n; i++) {
        const Instr *instr = task_instr(lower, held_at(lower, i)->instr);
        const uint64_t limited =
            lower->any_bucket ? limit : MIN(limit, lower->how->first_bucket_bytes);
        bytes += (double)tensor_bytes(graph_tensor(lower->sim->graph, instr->tensor));
        const bool full = bytes >= (double)limited;
        if (!full && i + 1 < n &&
            held_are_alike(held_at(lower, i), held_at(lower, i + 1)))
            continue;
        const bool closes =
            all || (full && instr->collective == COLLECTIVE_REDUCE_SCATTER);
        if (closes)
            lower_bucket(lower, first, i + 1);
        for (; first <= i; first++)
            if (closes)
                *bucket_is_held_at(lower, held_at(lower, first)->instr) = !all;
            else
                g_array_index(lower->held, Held, kept++) = *held_at(lower, first);
        lower->any_bucket |= closes;
        bytes = 0;
    }
    g_array_set_size(lower->held, kept);
}

void task_flush(Lower *lower)
{
    if (lower->held->len > 0)
        close_buckets(lower, true);
}

void task_close_full(Lower *lower)
{
    const uint32_t n = lower->held->len;
    if (n > 0 && held_at(lower, n - 1)->kind == COLLECTIVE_REDUCE_SCATTER)
        close_buckets(lower, false);
}

bool task_hold(Lower *lower, const Instr *instr, const SimTask *task)
{
    if (!lower->overlap || lower->sim->plan->bucket_bytes == 0 ||
        !sim_bucket_takes(instr->collective) || instr->server ||
        !task_reduces_gradient(lower->sim->graph, instr))
        return false;
    const uint32_t n_deps = lower->dep->len;
    Held held = {.instr = task->instr, .stage = task->stage, .kind = instr->collective};
    uint32_t team, n;
    double largest;
    task_teams(lower, instr, &team, &n);
    held.team = team;
    held.to = task_shares_of(lower, instr, &lower->tasks->teams->team[team], instr->to,
                             &largest);
    for (n += team; team < n; team++)
        held.ready = MAX(
            held.ready, task_add_sources(lower, instr, &lower->tasks->teams->team[team]));
    /* the dependencies are added again with the bucket */
    g_array_set_size(lower->dep, n_deps);
    g_array_append_val(lower->held, held);
    *bucket_is_held_at(lower, task->instr) = true;
    return true;
}

static bool is_held(const Lower *lower, const Instr *instr, TensorId tensor, Form form)
{
    return lower
        ->is_held[task_instance(lower, instr->group, instr->microbatch, tensor, form)];
}

bool task_uses_held(const Lower *lower, const Instr *instr)
{
    if (instr->kind == INSTR_LOAD || lower->held->len == 0)
        return false;
    if (instr->kind != INSTR_COMPUTE)
        return is_held(lower, instr, instr->tensor, instr->from);
    const Op *op = graph_get_op(lower->sim->graph, instr->op);
    /* the next microbatch begins, and sums so far are divided */
    if (op->pass == PASS_FORWARD && lower->sim->plan->strategy.pp <= 1 &&
        task_instr(lower, held_at(lower, 0)->instr)->moves)
        return true;
    return any_of(i, op->n_in, is_held(lower, instr, op->in[i], instr->form[i]));
}
