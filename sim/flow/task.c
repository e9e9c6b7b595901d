#include "sim/flow/task.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/split.h"
#include "sim/step.h"

/* Who communicated last to make an instance. */
typedef enum { NOBODY, INSIDE, ACROSS } Team;

/* Tasks that make an instance. */
typedef struct {
    Team team;
    /* of the group's first team, the others follow; unless NOBODY */
    uint32_t communicate;
    /* of the group's first lane, the others follow; SIM_NO_TASK if it is none */
    uint32_t compute;
} Made;

/* A gradient's all-reduce that waits for its bucket. */
typedef struct {
    uint32_t instr, stage;
    uint32_t team;  /* the first one that takes part */
    uint32_t ready; /* last task that it waits for + 1; 0: none */
} Held;

/* Inner communication that waits until the step's collectives are over, or a local conversion of
 * what it may make. */
typedef struct {
    uint32_t instr, stage;
} Inner;

typedef struct {
    const SimCase *sim;
    const SimLowering *how;
    SimTasks *tasks;
    GArray *task, *dep;
    Made *maker; /* [place * FORM_MAX + form]: tasks that make the instance */
    GArray *held;
    bool *is_held;   /* [place * FORM_MAX + form]: its all-reduce is in `held` */
    GArray **inner;  /* [group]: Inner */
    uint32_t *added; /* [op]: microbatches that have run */
    uint32_t *sent;  /* [group * n_groups + to_group]: first task of the last transfer */
    SimStep *step;   /* [group] */
    bool any_bucket;
} Lower;

/* --- instances --- */

static uint32_t instance(const Lower *lower, uint32_t group, uint32_t microbatch,
                         TensorId tensor, Form form)
{
    return instances_place(lower->sim->parts->instances, group, microbatch, tensor) *
               FORM_MAX +
           form;
}

static Made *maker_of(const Lower *lower, const Instr *instr, TensorId tensor, Form form)
{
    return &lower->maker[instance(lower, instr->group, instr->microbatch, tensor, form)];
}

static const Instr *instr_at(const Lower *lower, uint32_t i)
{
    return &lower->sim->plan->program->instr[i];
}

static const SimGroupTeams *lanes_of(const Lower *lower, const Instr *instr)
{
    return &lower->tasks->teams->group[instr->group];
}

/* --- tasks --- */

static void add_dep(Lower *lower, uint32_t dep)
{
    if (dep != SIM_NO_TASK)
        g_array_append_val(lower->dep, dep);
}

/* Appends a task whose dependencies were added since `first_dep`. */
static uint32_t add_task(Lower *lower, SimTask task, uint32_t first_dep)
{
    task.first_dep = first_dep;
    task.n_deps = lower->dep->len - first_dep;
    g_array_append_val(lower->task, task);
    return lower->task->len - 1;
}

/* The task that communicates what a lane (of the group, by index) waits for. */
static uint32_t communicated(const SimGroupTeams *lanes, const Made *made, uint32_t index)
{
    return made->communicate +
           (made->team == INSIDE ? lanes->inside : lanes->across)[index];
}

/* What a computation on a lane waits for, or SIM_NO_TASK; and what a collective does, which passes
 * over the inner communication of another. */
static uint32_t made_for_compute(const SimGroupTeams *lanes, const Made *made,
                                 uint32_t index)
{
    if (made->compute != SIM_NO_TASK)
        return made->compute + index;
    return made->team == NOBODY ? SIM_NO_TASK : communicated(lanes, made, index);
}

static uint32_t made_for_collective(const SimGroupTeams *lanes, const Made *made,
                                    uint32_t index)
{
    if (made->team != NOBODY)
        return communicated(lanes, made, index);
    return made->compute == SIM_NO_TASK ? SIM_NO_TASK : made->compute + index;
}

/* --- computations --- */

/* Whether an op on the batch still runs on other microbatches: only then does it not reduce a
 * parameter's gradient inside of machines. */
static bool adds_more(Lower *lower, const Instr *instr)
{
    const SimParts *parts = lower->sim->parts;

    return parts->batch && parts->batch->loop[instr->op] >= 0 &&
           ++lower->added[instr->op] % lower->sim->plan->program->n_microbatches != 0;
}

static void lower_inner(Lower *lower, uint32_t group);

static void lower_compute(Lower *lower, const Instr *instr, SimTask task)
{
    const SimCase *sim = lower->sim;
    const SimGroupTeams *lanes = lanes_of(lower, instr);
    const Op *op = graph_get_op(sim->graph, instr->op);
    const Rule rule = sim_split_rule(sim->graph, instr);
    const bool more = adds_more(lower, instr);

    lower_inner(lower, instr->group);
    const Made made = {NOBODY, SIM_NO_TASK, lower->task->len};
    task.kind = TASK_COMPUTE;
    for (uint32_t k = 0; k < lanes->n_lanes; k++) {
        const uint32_t first_dep = lower->dep->len, place = lanes->place[k];
        for (uint32_t i = 0; i < op->n_in; i++)
            add_dep(lower,
                    made_for_compute(
                        lanes, maker_of(lower, instr, op->in[i], instr->form[i]), k));
        task.lane = lanes->lane[k];
        task.duration_s = sim_part_s(sim->parts, sim->view, instr, &rule, place, more);
        add_task(lower, task, first_dep);
    }
    for (uint32_t i = 0; i < op->n_out; i++)
        *maker_of(lower, instr, op->out[i], instr->form[op->n_in + i]) = made;
}

/* --- inner communication of collectives --- */

/* A task a lane after a collective. */
static void lower_one_inner(Lower *lower, const Inner *inner)
{
    const SimCase *sim = lower->sim;
    const Instr *instr = instr_at(lower, inner->instr);
    const SimGroupTeams *lanes = lanes_of(lower, instr);
    const Form cut = form_is_gather(instr->to) ? instr->to : instr->from;
    Made *made = maker_of(lower, instr, instr->tensor, instr->to);
    SimTask task = {.kind = TASK_COMPUTE,
                    .microbatch = instr->microbatch,
                    .instr = inner->instr,
                    .stage = inner->stage};
    g_autofree double *duration_s = g_new(double, lanes->n_lanes);
    SimWork work;
    bool any = false;

    sim_work_collective(sim->graph, instr->collective, instr->tensor, instr->from,
                        instr->to, &work);
    for (uint32_t k = 0; k < lanes->n_lanes; k++) {
        const uint32_t place = lanes->place[k];
        const uint32_t n = sim->parts->group[instr->group].n_devices;
        const double part =
            sim_part_replica(sim->parts, instr->group, instr->tensor, place / n);
        SimWork own = work;
        own.inner_bytes *= part;
        own.inner_bytes_sharded *= part;
        duration_s[k] = sim_work_s(
            &own, &sim->view->device[lower->tasks->teams->device[lanes->lane[k]]],
            sim_part_inside(sim->parts, instr->group, instr->tensor, cut, place));
        any = any || duration_s[k] > 0;
    }
    if (!any)
        return;
    const uint32_t first = lower->task->len;
    for (uint32_t k = 0; k < lanes->n_lanes; k++) {
        const uint32_t first_dep = lower->dep->len;
        add_dep(lower, communicated(lanes, made, k));
        task.lane = lanes->lane[k];
        task.duration_s = duration_s[k];
        add_task(lower, task, first_dep);
    }
    made->compute = first;
}

/* What a local conversion makes is there when what it converts is. */
static void pass_on(Lower *lower, const Instr *instr)
{
    *maker_of(lower, instr, instr->tensor, instr->to) =
        *maker_of(lower, instr, instr->tensor, instr->from);
}

static void lower_inner(Lower *lower, uint32_t group)
{
    GArray *inner = lower->inner[group];

    for (uint32_t i = 0; i < inner->len; i++) {
        const Inner *one = &g_array_index(inner, Inner, i);
        const Instr *instr = instr_at(lower, one->instr);
        if (sim_is_priced(instr->collective))
            lower_one_inner(lower, one);
        else
            pass_on(lower, instr);
    }
    g_array_set_size(inner, 0);
}

/* --- collectives --- */

/* Adds the tasks that a team's collective on an instance waits for; returns the last one + 1, or 0. */
static uint32_t add_sources(Lower *lower, const Instr *instr, const SimTeam *team)
{
    const SimGroupTeams *lanes = lanes_of(lower, instr);
    const Made *made = maker_of(lower, instr, instr->tensor, instr->from);
    uint32_t last = SIM_NO_TASK, ready = 0;

    for (uint32_t k = 0; k < team->n_lanes; k++) {
        const uint32_t dep =
            made_for_collective(lanes, made, lanes->index[team->lane[k]]);
        if (dep != last)
            add_dep(lower, dep);
        if (dep != SIM_NO_TASK)
            ready = MAX(ready, dep + 1);
        last = dep;
    }
    return ready;
}

static bool reduces_gradient(const Graph *graph, const Instr *instr)
{
    const Tensor *tensor = graph_tensor(graph, instr->tensor);

    return (instr->from == FORM_REDUCE || instr->across) &&
           tensor->role == ROLE_GRADIENT && tensor->of != GRAPH_NONE &&
           graph_tensor(graph, tensor->of)->role == ROLE_PARAMETER;
}

/* Shares of a team's ranks in the form, kept once; *largest gets their largest. SIM_NO_SHARE if it
 * is not cut. */
static uint32_t shares_of(Lower *lower, const Instr *instr, const SimTeam *team,
                          Form form, double *largest)
{
    GArray *all = lower->tasks->share;
    const uint32_t n = team->n;
    g_autofree double *share = g_new(double, n);

    *largest = 0;
    if (!form_is_gather(form) || team->across)
        return SIM_NO_SHARE;
    for (uint32_t p = 0; p < n; p++) {
        share[p] = sim_part_inside(lower->sim->parts, instr->group, instr->tensor, form,
                                   team->first * n + p);
        *largest = fmax(*largest, share[p]);
    }
    for (uint32_t first = 0; first + n <= all->len; first++)
        if (memcmp(&g_array_index(all, double, first), share, n * sizeof *share) == 0)
            return first;
    g_array_append_vals(all, share, n);
    return all->len - n;
}

/* Bytes of one set's tensor: its replica's part, or what lies at its position. */
static double bytes_of(const Lower *lower, const Instr *instr, const SimTeam *team)
{
    const SimParts *parts = lower->sim->parts;
    const double bytes =
        (double)tensor_bytes(graph_tensor(lower->sim->graph, instr->tensor));

    return bytes * (team->across ? sim_part_inside(parts, instr->group, instr->tensor,
                                                   instr->from, team->first)
                                 : sim_part_replica(parts, instr->group, instr->tensor,
                                                    team->first));
}

static void team_range(const Lower *lower, const Instr *instr, uint32_t *first,
                       uint32_t *n)
{
    const SimGroupTeams *of = lanes_of(lower, instr);

    *first = instr->across ? of->first_across : of->first_inside;
    *n = instr->across ? of->n_across : of->n_inside;
}

static void lower_collective(Lower *lower, const Instr *instr, SimTask task,
                             bool pays_latency)
{
    const Made made = {instr->across ? ACROSS : INSIDE, lower->task->len, SIM_NO_TASK};
    uint32_t first, n;

    team_range(lower, instr, &first, &n);
    task.kind = TASK_COLLECTIVE;
    task.collective = instr->collective;
    task.n_fused = 1;
    task.gradient = reduces_gradient(lower->sim->graph, instr);
    for (uint32_t t = first; t < first + n; t++) {
        const SimTeam *team = &lower->tasks->teams->team[t];
        const uint32_t first_dep = lower->dep->len;
        double from, to;
        add_sources(lower, instr, team);
        task.team = t;
        task.bytes = bytes_of(lower, instr, team);
        task.from = shares_of(lower, instr, team, instr->from, &from);
        task.to = shares_of(lower, instr, team, instr->to, &to);
        const LinkCost line =
            sim_team_line(lower->sim->view, team, instr->collective, task.bytes);
        task.duration_s =
            sim_collective_over(line, team->n, instr->collective, task.bytes, from, to);
        task.joins = !pays_latency;
        if (!pays_latency && team->n > 1)
            task.duration_s -= line.latency_s;
        add_task(lower, task, first_dep);
    }
    *maker_of(lower, instr, instr->tensor, instr->to) = made;
    const Inner inner = {task.instr, task.stage};
    if (!instr->across)
        g_array_append_val(lower->inner[instr->group], inner);
    if (lower->how->overlap)
        lower_inner(lower, instr->group);
}

/* --- transfers --- */

/* Adds what a team of receivers waits for: what its senders make, and the transfer before. */
static void add_senders(Lower *lower, const Instr *instr, const SimTeam *team,
                        bool has_parts)
{
    const SimGroupTeams *lanes = lanes_of(lower, instr);
    const SimParts *parts = lower->sim->parts;
    const Made *made = maker_of(lower, instr, instr->tensor, instr->from);
    uint32_t first, end, last = SIM_NO_TASK;

    sim_transfer_sources(parts, instr->group, instr->to_group, has_parts, team->first,
                         &first, &end);
    for (; first < end; first++) {
        const SimTeam *senders =
            &lower->tasks->teams->team[lanes->first_inside + lanes->team_of[first]];
        for (uint32_t k = 0; k < senders->n_lanes; k++) {
            const uint32_t dep =
                made_for_collective(lanes, made, lanes->index[senders->lane[k]]);
            if (dep != last)
                add_dep(lower, dep);
            last = dep;
        }
    }
}

static void lower_transfer(Lower *lower, const Instr *instr, SimTask task)
{
    const SimCase *sim = lower->sim;
    const SimGroupTeams *to = &lower->tasks->teams->group[instr->to_group];
    const Made made = {INSIDE, lower->task->len, SIM_NO_TASK};
    uint32_t *sent = &lower->sent[instr->group * sim->parts->n_groups + instr->to_group];

    task.kind = TASK_TRANSFER;
    task.n_fused = 1;
    task.bytes = (double)tensor_bytes(graph_tensor(sim->graph, instr->tensor));
    task.transfer =
        sim_transfer_of(sim->parts, sim->view, instr, lower->tasks->transfers);
    task.duration_s = task.transfer->latency_s + task.transfer->byte_s * task.bytes;
    for (uint32_t t = 0; t < to->n_inside; t++) {
        const uint32_t first_dep = lower->dep->len;
        task.team = to->first_inside + t;
        add_senders(lower, instr, &lower->tasks->teams->team[task.team],
                    task.transfer->cut.has_parts);
        add_dep(lower, *sent == SIM_NO_TASK ? SIM_NO_TASK : *sent + t);
        add_task(lower, task, first_dep);
    }
    *sent = made.communicate;
    lower->maker[instance(lower, instr->to_group, instr->microbatch, instr->tensor,
                          instr->to)] = made;
}

/* --- buckets --- */

static int compare_held(const void *a, const void *b)
{
    const Held *x = a, *y = b;

    if (x->team != y->team)
        return x->team < y->team ? -1 : 1;
    if (x->ready != y->ready)
        return x->ready < y->ready ? -1 : 1;
    return (x->instr > y->instr) - (x->instr < y->instr);
}

static const Held *held_at(const Lower *lower, uint32_t i)
{
    return &g_array_index(lower->held, Held, i);
}

/* One task a team for held[first] to held[end - 1]. */
static void lower_bucket(Lower *lower, uint32_t first, uint32_t end)
{
    const Instr *instr = instr_at(lower, held_at(lower, first)->instr);
    const Made made = {instr->across ? ACROSS : INSIDE, lower->task->len, SIM_NO_TASK};
    SimTask task = {.kind = TASK_COLLECTIVE,
                    .collective = COLLECTIVE_ALL_REDUCE,
                    .from = SIM_NO_SHARE,
                    .to = SIM_NO_SHARE,
                    .n_fused = end - first,
                    .gradient = true,
                    .microbatch = instr->microbatch,
                    .instr = held_at(lower, first)->instr,
                    .stage = held_at(lower, first)->stage};
    uint32_t team, n;

    team_range(lower, instr, &team, &n);
    for (n += team; team < n; team++) {
        const SimTeam *of = &lower->tasks->teams->team[team];
        const uint32_t first_dep = lower->dep->len;
        task.team = team;
        task.bytes = 0;
        for (uint32_t i = first; i < end; i++) {
            add_sources(lower, instr_at(lower, held_at(lower, i)->instr), of);
            task.bytes += bytes_of(lower, instr_at(lower, held_at(lower, i)->instr), of);
        }
        const LinkCost line =
            sim_team_line(lower->sim->view, of, task.collective, task.bytes);
        task.duration_s =
            sim_collective_over(line, of->n, task.collective, task.bytes, 0, 0);
        add_task(lower, task, first_dep);
    }
    for (uint32_t i = first; i < end; i++) {
        instr = instr_at(lower, held_at(lower, i)->instr);
        *maker_of(lower, instr, instr->tensor, instr->to) = made;
        lower->is_held[instance(lower, instr->group, instr->microbatch, instr->tensor,
                                instr->to)] = false;
        lower->tasks->bucket[held_at(lower, i)->instr] = made.communicate;
    }
}

static void flush(Lower *lower)
{
    const uint64_t limit = lower->sim->plan->bucket_bytes;
    const uint32_t n = lower->held->len;
    uint32_t first = 0;
    double bytes = 0;

    if (n == 0)
        return;
    qsort(lower->held->data, n, sizeof(Held), compare_held);
    for (uint32_t i = 0; i < n; i++) {
        const Instr *instr = instr_at(lower, held_at(lower, i)->instr);
        const uint64_t full =
            lower->any_bucket ? limit : MIN(limit, lower->how->first_bucket_bytes);
        bytes += (double)tensor_bytes(graph_tensor(lower->sim->graph, instr->tensor));
        if (bytes < (double)full && i + 1 < n &&
            held_at(lower, i)->team == held_at(lower, i + 1)->team)
            continue;
        lower_bucket(lower, first, i + 1);
        lower->any_bucket = true;
        first = i + 1;
        bytes = 0;
    }
    g_array_set_size(lower->held, 0);
}

/* Whether the instruction is held back for a bucket. */
static bool hold(Lower *lower, const Instr *instr, const SimTask *task)
{
    if (!lower->how->overlap || lower->sim->plan->bucket_bytes == 0 ||
        instr->collective != COLLECTIVE_ALL_REDUCE ||
        !reduces_gradient(lower->sim->graph, instr))
        return false;
    const uint32_t n_deps = lower->dep->len;
    Held held = {task->instr, task->stage, 0, 0};
    uint32_t team, n;
    team_range(lower, instr, &team, &n);
    held.team = team;
    for (n += team; team < n; team++)
        held.ready =
            MAX(held.ready, add_sources(lower, instr, &lower->tasks->teams->team[team]));
    g_array_set_size(lower->dep, n_deps); /* they are added again with the bucket */
    g_array_append_val(lower->held, held);
    lower->is_held[instance(lower, instr->group, instr->microbatch, instr->tensor,
                            instr->to)] = true;
    return true;
}

static bool is_held(const Lower *lower, const Instr *instr, TensorId tensor, Form form)
{
    return lower->is_held[instance(lower, instr->group, instr->microbatch, tensor, form)];
}

static bool uses_held(const Lower *lower, const Instr *instr)
{
    if (instr->kind == INSTR_LOAD || lower->held->len == 0)
        return false;
    if (instr->kind != INSTR_COMPUTE)
        return is_held(lower, instr, instr->tensor, instr->from);
    const Op *op = graph_get_op(lower->sim->graph, instr->op);
    for (uint32_t i = 0; i < op->n_in; i++)
        if (is_held(lower, instr, op->in[i], instr->form[i]))
            return true;
    return false;
}

/* --- the program --- */

static void lower_local(Lower *lower, const Instr *instr, const SimTask *task)
{
    const Inner conversion = {task->instr, task->stage};

    pass_on(lower, instr);
    if (lower->inner[instr->group]->len > 0)
        g_array_append_val(lower->inner[instr->group], conversion);
}

static void lower_instr(Lower *lower, const Instr *instr, const SimTask *task,
                        bool pays_latency)
{
    if (uses_held(lower, instr))
        flush(lower);
    if (instr->kind == INSTR_COMPUTE)
        lower_compute(lower, instr, *task);
    else if (instr->kind == INSTR_TRANSFER)
        lower_transfer(lower, instr, *task);
    else if (instr->kind == INSTR_COLLECTIVE && !sim_is_priced(instr->collective))
        lower_local(lower, instr, task);
    else if (instr->kind == INSTR_COLLECTIVE && !hold(lower, instr, task))
        lower_collective(lower, instr, *task, lower->how->overlap || pays_latency);
}

static void lower_program(Lower *lower)
{
    const SimCase *sim = lower->sim;
    const Program *program = sim->plan->program;
    const bool spmd = program_is_spmd(program);

    for (uint32_t i = 0; i < program->n; i++) {
        const Instr *instr = &program->instr[i];
        SimStep *step = &lower->step[instr->group];
        const bool pays_latency = sim_step_next(step, sim->graph, instr);
        const SimTask task = {.microbatch = instr->microbatch,
                              .instr = i,
                              .stage = spmd ? step->stage : instr->group};
        lower_instr(lower, instr, &task, pays_latency);
    }
    flush(lower);
    for (uint32_t g = 0; g < sim->parts->n_groups; g++)
        lower_inner(lower, g);
}

static SimTasks *new_tasks(const SimCase *sim, const SimLowering *how)
{
    SimTasks *tasks = g_new0(SimTasks, 1);

    tasks->teams = sim_teams_new(sim, how->separate);
    tasks->transfers = g_ptr_array_new_with_free_func(sim_transfer_free);
    tasks->share = g_array_new(false, false, sizeof(double));
    tasks->bucket = g_new(uint32_t, sim->plan->program->n);
    for (uint32_t i = 0; i < sim->plan->program->n; i++)
        tasks->bucket[i] = SIM_NO_TASK;
    return tasks;
}

static void init_lower(Lower *lower)
{
    const SimCase *sim = lower->sim;
    const uint32_t n_groups = sim->parts->n_groups;
    const size_t n_instances = (size_t)sim->parts->instances->n_places * FORM_MAX;

    lower->task = g_array_new(false, false, sizeof(SimTask));
    lower->dep = g_array_new(false, false, sizeof(uint32_t));
    lower->maker = g_new(Made, n_instances);
    for (size_t i = 0; i < n_instances; i++)
        lower->maker[i] = (Made){NOBODY, SIM_NO_TASK, SIM_NO_TASK};
    lower->held = g_array_new(false, false, sizeof(Held));
    lower->is_held = g_new0(bool, n_instances);
    lower->inner = g_new(GArray *, n_groups);
    lower->added = g_new0(uint32_t, graph_n_ops(sim->graph));
    lower->sent = g_new(uint32_t, (size_t)n_groups * n_groups);
    for (size_t i = 0; i < (size_t)n_groups * n_groups; i++)
        lower->sent[i] = SIM_NO_TASK;
    lower->step = g_new0(SimStep, n_groups);
    for (uint32_t g = 0; g < n_groups; g++) {
        lower->step[g].bucket_bytes = sim->plan->bucket_bytes;
        lower->inner[g] = g_array_new(false, false, sizeof(Inner));
    }
}

SimTasks *sim_tasks_lower(const SimCase *sim, const SimLowering *how)
{
    SimTasks *tasks = new_tasks(sim, how);
    Lower lower = {.sim = sim, .how = how, .tasks = tasks};

    init_lower(&lower);
    lower_program(&lower);
    tasks->n_tasks = lower.task->len;
    tasks->n_deps = lower.dep->len;
    tasks->task = (SimTask *)(void *)g_array_free(lower.task, false);
    tasks->dep = (uint32_t *)(void *)g_array_free(lower.dep, false);
    sim_tasks_launch(tasks, sim);
    g_free(lower.maker);
    g_array_unref(lower.held);
    g_free(lower.is_held);
    for (uint32_t g = 0; g < sim->parts->n_groups; g++)
        g_array_unref(lower.inner[g]);
    g_free(lower.inner);
    g_free(lower.added);
    g_free(lower.sent);
    g_free(lower.step);
    return tasks;
}

void sim_tasks_free(SimTasks *tasks)
{
    if (!tasks)
        return;
    g_free(tasks->task);
    g_free(tasks->dep);
    sim_teams_free(tasks->teams);
    g_ptr_array_unref(tasks->transfers);
    g_array_unref(tasks->share);
    g_free(tasks->bucket);
    g_free(tasks);
}
