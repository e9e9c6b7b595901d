/* Brute force: walks all assignments of a graph and keeps the fastest. */
#include "tests/support/brute_force.h"

#include <math.h>
#include <string.h>

/* --- trying everything --- */

/* Whether a backward op of the unit is deferred; without a step in between, deferring gives the
 * same program. */
static bool defers(const Brute *b, OpId id)
{
    bool any = false;
    for (uint32_t k = 0; k < b->unit[id].n_back; k++)
        any |= b->deferred[b->unit[id].back[k]];
    return any;
}

/* Tries all forms for the gradients of the outputs from `o` on. */
static void each_sum(Brute *b, OpId id, uint32_t o, const Forms saved[MAX_IN],
                     const Run *run, BruteVisit visit, void *data)
{
    const Op *op = graph_get_op(b->graph, id);
    if (o >= op->n_out || o >= OP_MAX_OUT) {
        Run all = *run;
        Forms dy[OP_MAX_OUT];
        b->steps++;
        if (brute_backward(b, id, saved, dy, &all.early) &&
            brute_sums(b, id, dy, &all.late) && (all.late.closes || !defers(b, id)))
            visit(b, id, &all, data);
        return;
    }
    TensorId gradient = brute_gradient(b, op->out[o]);
    for (Form form = 0; form < FORM_MAX; form++) {
        b->sum[op->out[o]] = form;
        if (gradient == GRAPH_NONE ? form == 0 : brute_can_hold(b->graph, gradient, form))
            each_sum(b, id, o + 1, saved, run, visit, data);
    }
}

static void each_backward(Brute *b, OpId id, uint32_t k, const Forms saved[MAX_IN],
                          const Run *run, BruteVisit visit, void *data)
{
    if (k >= b->unit[id].n_back || k >= MAX_BACK) {
        each_sum(b, id, 0, saved, run, visit, data);
        return;
    }
    OpId back = b->unit[id].back[k];
    for (b->rule[back] = 0; b->rule[back] < b->n_rules[back]; b->rule[back]++)
        for (uint32_t wait = 0; wait <= b->unit[id].can_wait[k]; wait++) {
            b->deferred[back] = wait;
            each_backward(b, id, k + 1, saved, run, visit, data);
        }
}

/* Whether a forward op after `id` reads a tensor. */
static bool read_later(const Brute *b, OpId id, TensorId tensor)
{
    bool later = false;
    for (OpId k = id + 1; k < b->n_ops; k++)
        for (uint32_t i = 0; i < graph_get_op(b->graph, k)->n_in; i++)
            later |= graph_get_op(b->graph, k)->in[i] == tensor;
    return later;
}

/* Moves to the next choice of inputs whose forms before the op are kept; false after the last one,
 * when none are. */
static bool next_keeps(Brute *b, OpId id)
{
    for (uint32_t i = 0; i < b->unit[id].n_in; i++) {
        TensorId tensor = graph_get_op(b->graph, id)->in[b->unit[id].in[i]];
        if ((b->keeps[id][i] = !b->keeps[id][i] && read_later(b, id, tensor)))
            return true;
    }
    return false;
}

void brute_each_run(Brute *b, OpId id, BruteVisit visit, void *data)
{
    const Op *op = graph_get_op(b->graph, id);
    Form held[OP_MAX_IN];
    for (uint32_t i = 0; i < op->n_in; i++)
        held[i] = b->held[op->in[i]];
    for (b->rule[id] = 0; b->rule[id] < b->n_rules[id] && b->steps < b->max_steps;
         b->rule[id]++)
        do {
            Run run = {.forward.comm_s = 0};
            Forms saved[MAX_IN];
            uint32_t rule = b->rule[id];
            if (brute_forward(b, id, saved, &run.forward))
                each_backward(b, id, 0, saved, &run, visit, data);
            b->rule[id] = rule;
            for (uint32_t i = 0; i < op->n_in; i++)
                b->held[op->in[i]] = held[i];
        } while (next_keeps(b, id));
}

uint64_t brute_state(const Brute *b, OpId id)
{
    uint64_t state = 1;
    for (TensorId t = 0; t < graph_n_tensors(b->graph); t++) {
        const Tensor *tensor = graph_tensor(b->graph, t);
        bool live = false;
        for (OpId k = id; k < b->n_ops && tensor->role == ROLE_ACTIVATION; k++)
            for (uint32_t i = 0; i < graph_get_op(b->graph, k)->n_in; i++)
                live |= graph_get_op(b->graph, k)->in[i] == t && tensor->producer < id;
        if (live)
            state = (state << 6) | (uint64_t)b->held[t] << 3 | b->sum[t];
    }
    return state;
}

static const double *rest_at(Brute *b, OpId id);

/* The least seconds of the unit's parameters on device j. */
static double least_places_s(Brute *b, OpId id, uint32_t j)
{
    double sum_s = 0;
    for (uint32_t p = 0; p < b->unit[id].n_parameters; p++) {
        const GArray *places = brute_places(b, id, p);
        double least_s = INFINITY;
        for (uint32_t i = 0; i < places->len; i++) {
            const Place *place = &g_array_index(places, Place, i);
            least_s =
                fmin(least_s, place->comm_s + place->initial_s[j] + place->final_s[j]);
        }
        sum_s += least_s;
    }
    return sum_s;
}

static void relax(Brute *b, OpId id, const Run *run, void *data)
{
    double *least_s = data;
    const double *rest = rest_at(b, id + 1);
    for (uint32_t j = 0; j < b->m; j++)
        least_s[j] = fmin(least_s[j], run->forward.comm_s + run->forward.work_s[j] +
                                          run->early.comm_s + run->early.work_s[j] +
                                          run->late.comm_s + run->late.work_s[j] +
                                          least_places_s(b, id, j) + rest[j]);
}

/* The least seconds of the ops from `id` on, for each device alone. */
static const double *rest_at(Brute *b, OpId id)
{
    uint64_t state = brute_state(b, id);
    double *least_s = g_hash_table_lookup(b->unit[id].rest, &state);
    if (least_s)
        return least_s;
    least_s = g_new(double, MAX_DEVICES);
    for (uint32_t j = 0; j < MAX_DEVICES; j++)
        least_s[j] = id == b->n_ops ? 0 : INFINITY;
    if (id < b->n_ops) {
        uint32_t rules[MAX_OPS];
        Form sums[MAX_TENSORS], helds[MAX_TENSORS];
        memcpy(rules, b->rule, sizeof rules);
        memcpy(sums, b->sum, sizeof sums);
        memcpy(helds, b->held, sizeof helds);
        brute_each_run(b, id, relax, least_s);
        memcpy(b->rule, rules, sizeof rules);
        memcpy(b->sum, sums, sizeof sums);
        memcpy(b->held, helds, sizeof helds);
    }
    g_hash_table_insert(b->unit[id].rest, g_memdup2(&state, sizeof state), least_s);
    return least_s;
}

/* --- stages --- */

static void close_stage(const Brute *b, bool *outermost, double *kept_s, double *open_s,
                        double *sum_s)
{
    double max_s = 0;
    for (uint32_t j = 0; j < b->m; j++)
        max_s = fmax(max_s, open_s[j]);
    if (*outermost)
        *sum_s += max_s;
    else
        memcpy(kept_s, open_s, MAX_DEVICES * sizeof *kept_s);
    *outermost = true;
    memset(open_s, 0, MAX_DEVICES * sizeof *open_s);
}

void brute_add_seconds(const Brute *b, double *sum_s, const double *more_s)
{
    for (uint32_t j = 0; j < b->m; j++)
        sum_s[j] += more_s[j];
}

/* A step comes before its portion: in the forward pass, a stage ends and another begins; in the
 * backward pass, seen from the end, the portion completes a stage. */
Stages brute_after(const Brute *b, const Stages *before, const Run *run)
{
    Stages s = *before;
    s.s += run->forward.comm_s + run->early.comm_s + run->late.comm_s;
    if (run->forward.closes)
        close_stage(b, &s.begun, s.first_s, s.forward_s, &s.s);
    brute_add_seconds(b, s.forward_s, run->forward.work_s);
    brute_add_seconds(b, s.backward_s, run->late.work_s);
    if (run->late.closes)
        close_stage(b, &s.ended, s.last_s, s.backward_s, &s.s);
    brute_add_seconds(b, s.backward_s, run->early.work_s);
    if (run->early.closes)
        close_stage(b, &s.ended, s.last_s, s.backward_s, &s.s);
    return s;
}

static double at_least_s(const Brute *b, const Stages *s, const double *rest_s)
{
    double bound_s = 0;
    for (uint32_t j = 0; j < b->m; j++)
        bound_s = fmax(bound_s, s->first_s[j] + s->forward_s[j] + s->backward_s[j] +
                                    s->last_s[j] + rest_s[j]);
    return s->s + bound_s;
}

static void walk(Brute *b, OpId id, const Stages *stages);

static void each_place(Brute *b, OpId id, uint32_t p, const Stages *stages)
{
    if (at_least_s(b, stages, rest_at(b, id + 1)) >= b->below_s)
        return;
    if (p == b->unit[id].n_parameters) {
        walk(b, id + 1, stages);
        return;
    }
    const GArray *places = brute_places(b, id, p);
    for (uint32_t i = 0; i < places->len; i++) {
        const Place *place = &g_array_index(places, Place, i);
        Stages next = *stages;
        next.s += place->comm_s;
        brute_add_seconds(b, next.first_s, place->initial_s);
        brute_add_seconds(b, next.last_s, place->final_s);
        b->place[graph_get_op(b->graph, id)->in[b->unit[id].parameter[p]]] = *place;
        each_place(b, id, p + 1, &next);
    }
}

static void try_run(Brute *b, OpId id, const Run *run, void *data)
{
    Stages stages = brute_after(b, data, run);
    double rest_s[MAX_DEVICES];
    const double *rest = rest_at(b, id + 1);
    for (uint32_t j = 0; j < b->m; j++)
        rest_s[j] = rest[j] + least_places_s(b, id, j);
    if (at_least_s(b, &stages, rest_s) >= b->below_s)
        return;
    uint32_t rules[MAX_OPS];
    memcpy(rules, b->rule, sizeof rules);
    each_place(b, id, 0, &stages);
    memcpy(b->rule, rules, sizeof rules);
}

static void walk(Brute *b, OpId id, const Stages *stages)
{
    if (id < b->n_ops) {
        brute_each_run(b, id, try_run, (void *)stages);
        return;
    }
    Form held[MAX_TENSORS];
    memcpy(held, b->held, sizeof held);
    double time_s = brute_program_s(b);
    memcpy(b->held, held, sizeof held);
    b->steps += 50; /* counts for about as many steps */
    if (time_s < b->below_s)
        b->best_s = b->below_s = time_s;
}

/* --- preparation --- */

static bool allowed(const Brute *b, const Op *op, const Rule *rule)
{
    bool may = true;
    for (uint32_t i = 0; i < op->n_in; i++) {
        bool update = op->pass == PASS_UPDATE &&
                      graph_tensor(b->graph, op->in[i])->role == ROLE_PARAMETER;
        may &= brute_can_hold(b->graph, op->in[i], rule->form[i]);
        may &= op->in[i] != b->pinned || update || (b->pin_read >> rule->form[i] & 1u);
    }
    for (uint32_t o = 0; o < op->n_out; o++)
        may &= op->out[o] != b->pinned || (b->pin_made >> rule->form[op->n_in + o] & 1u);
    return may;
}

static void prepare_rules(Brute *b)
{
    for (OpId id = 0; id < graph_n_ops(b->graph); id++) {
        Rule all[OP_MAX_RULES];
        uint32_t n = op_rules(b->graph, id, all);
        for (uint32_t r = 0; r < n; r++) {
            if (!allowed(b, graph_get_op(b->graph, id), &all[r]))
                continue;
            SimWork work = {0};
            sim_work_op(NULL, b->graph, b->view, id, &all[r], &work);
            for (uint32_t j = 0; j < b->m; j++)
                b->work_s[id][b->n_rules[id]][j] =
                    sim_work_s(&work, &b->view->device[j], b->ratio[j]);
            b->all[id][b->n_rules[id]++] = all[r];
        }
    }
}

static void prepare_unit(Brute *b, OpId id)
{
    const Op *op = graph_get_op(b->graph, id);
    Unit *unit = &b->unit[id];
    for (uint32_t i = 0; i < op->n_in; i++) {
        Role role = graph_tensor(b->graph, op->in[i])->role;
        if (role == ROLE_ACTIVATION)
            unit->in[unit->n_in++] = i;
        if (role == ROLE_PARAMETER)
            unit->parameter[unit->n_parameters++] = i;
    }
    for (OpId k = 0; k < graph_n_ops(b->graph); k++) {
        const Op *back = graph_get_op(b->graph, k);
        bool ours = back->pass == PASS_BACKWARD && back->of == id;
        for (uint32_t i = 0; i < op->n_in; i++)
            ours &= graph_accumulation(b->graph, id, i) != k;
        if (!ours)
            continue;
        unit->can_wait[unit->n_back] = true;
        for (uint32_t i = 0; i < unit->n_in; i++) {
            TensorId made = graph_contribution(b->graph, id, unit->in[i]);
            unit->can_wait[unit->n_back] &=
                made == GRAPH_NONE || graph_tensor(b->graph, made)->producer != k;
        }
        unit->back[unit->n_back++] = k;
    }
}

Brute *brute_new(const Graph *graph, const ClusterView *view, const double *ratio)
{
    Brute *b = g_new0(Brute, 1);
    b->graph = graph;
    b->view = view;
    b->ratio = ratio;
    b->m = view->n_devices;
    b->n_ops = graph_tensor(graph, graph_loss(graph))->producer + 1;
    b->pinned = GRAPH_NONE;
    b->places = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)g_array_unref);
    for (uint32_t j = 0; j < b->m; j++)
        b->max_share = fmax(b->max_share, ratio[j]);
    brute_find_ways(b);
    for (OpId id = 0; id <= b->n_ops; id++)
        b->unit[id].rest =
            g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    for (OpId id = 0; id < b->n_ops; id++)
        prepare_unit(b, id);
    return b;
}

void brute_free(Brute *b)
{
    for (OpId id = 0; id <= b->n_ops; id++)
        g_hash_table_destroy(b->unit[id].rest);
    g_hash_table_destroy(b->places);
    g_free(b);
}
void brute_pin(Brute *b, TensorId tensor, Forms made, Forms read)
{
    b->pinned = tensor;
    b->pin_made = made;
    b->pin_read = read;
}

void brute_prepare(Brute *b)
{
    if (!b->prepared)
        prepare_rules(b);
    b->prepared = true;
}

double brute_least(Brute *b, double below_s, uint64_t max_steps)
{
    const Stages none = {0};
    brute_prepare(b);
    b->below_s = below_s;
    b->best_s = INFINITY;
    b->steps = 0;
    b->max_steps = max_steps;
    walk(b, 0, &none);
    return b->steps < max_steps ? b->best_s : NAN;
}
