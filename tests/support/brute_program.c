/* Brute force: the cheapest conversions, and an op's instructions forward and backward. */
#include "tests/support/brute_force.h"

#include <math.h>
#include <string.h>

/* --- conversions --- */

bool brute_can_hold(const Graph *graph, TensorId tensor, Form form)
{
    const Tensor *t = graph_tensor(graph, tensor);
    if (form_is_gather(form))
        return form_dim(form) < t->rank && t->units[form_dim(form)] > 1;
    return form != FORM_REDUCE || t->dtype != DTYPE_I64;
}

static void find_way(Brute *b, TensorId tensor, Form from, Form to)
{
    Way *best = &b->way[tensor][from][to];
    double bytes = (double)tensor_bytes(graph_tensor(b->graph, tensor)),
           best_s = INFINITY;
    for (Collective kind = 0; kind < COLLECTIVES; kind++) {
        if (!collective_converts(kind, from, to))
            continue;
        SimWork work = {0};
        sim_work_collective(b->graph, kind, tensor, from, to, &work);
        Way way = {.can = true,
                   .closes = (int)kind < COLLECTIVES_PRICED,
                   .via = FORM_MAX,
                   .kind = kind};
        way.comm_s = sim_collective_s(b->view, kind, bytes, b->max_share, b->max_share);
        double slowest_s = 0;
        for (uint32_t j = 0; j < b->m; j++) {
            way.inner_s[j] = sim_work_s(&work, &b->view->device[j], b->ratio[j]);
            slowest_s = fmax(slowest_s, way.inner_s[j]);
        }
        if (way.comm_s + slowest_s < best_s) {
            best_s = way.comm_s + slowest_s;
            *best = way;
        }
    }
}

static double total_s(const Brute *b, const Way *way)
{
    double slowest_s = 0;
    for (uint32_t j = 0; j < b->m; j++)
        slowest_s = fmax(slowest_s, way->inner_s[j]);
    return way->comm_s + slowest_s;
}

/* Finds two collectives that take less time than one. */
static void find_detours(Brute *b, TensorId tensor)
{
    Way direct[FORM_MAX][FORM_MAX];
    memcpy(direct, b->way[tensor], sizeof direct);
    for (Form from = 0; from < FORM_MAX; from++)
        for (Form to = 0; to < FORM_MAX; to++)
            for (Form via = 0; via < FORM_MAX && from != to; via++) {
                const Way *first = &direct[from][via], *second = &direct[via][to];
                Way *best = &b->way[tensor][from][to], two = *first;
                two.via = via;
                two.then = second->kind;
                two.closes |= second->closes;
                two.comm_s += second->comm_s;
                for (uint32_t j = 0; j < b->m; j++)
                    two.inner_s[j] += second->inner_s[j];
                if (first->can && second->can &&
                    (!best->can || total_s(b, &two) < total_s(b, best)))
                    *best = two;
            }
}

void brute_find_ways(Brute *b)
{
    for (TensorId t = 0; t < graph_n_tensors(b->graph); t++) {
        for (Form from = 0; from < FORM_MAX; from++)
            for (Form to = 0; to < FORM_MAX; to++)
                if (from != to && brute_can_hold(b->graph, t, from) &&
                    brute_can_hold(b->graph, t, to))
                    find_way(b, t, from, to);
        find_detours(b, t);
    }
}

/* Adds conversions until all of `wanted` are held, in the order of forms, each from the cheapest
 * form. */
static bool convert(Brute *b, TensorId tensor, Forms *held, Forms wanted,
                    Portion *portion)
{
    for (Form to = 0; to < FORM_MAX; to++) {
        const Way *best = NULL;
        Form source = 0;
        if (!(wanted >> to & 1u) || (*held >> to & 1u))
            continue;
        for (Form from = 0; from < FORM_MAX; from++) {
            const Way *way = &b->way[tensor][from][to];
            if ((*held >> from & 1u) && way->can &&
                (!best || total_s(b, way) < total_s(b, best))) {
                best = way;
                source = from;
            }
        }
        if (!best)
            return false;
        if (b->program)
            program_collective(b->program, best->kind, tensor, source,
                               best->via == FORM_MAX ? to : best->via);
        portion->closes |= best->closes;
        portion->comm_s += best->comm_s;
        for (uint32_t j = 0; j < b->m; j++)
            portion->work_s[j] += best->inner_s[j];
        if (b->program && best->via != FORM_MAX)
            program_collective(b->program, best->then, tensor, best->via, to);
        *held |= 1u << to | (best->via == FORM_MAX ? 0 : 1u << best->via);
    }
    return true;
}

static const Form *forms_of(const Brute *b, OpId op)
{
    return b->all[op][b->rule[op]].form;
}

static void compute(Brute *b, OpId id, Portion *portion)
{
    const Op *op = graph_get_op(b->graph, id);
    for (uint32_t j = 0; j < b->m; j++)
        portion->work_s[j] += b->work_s[id][b->rule[id]][j];
    if (b->program)
        program_compute(b->program, id, forms_of(b, id), op->n_in + op->n_out);
}

/* Chooses the rule of an op all of whose operands are in one form. */
static bool choose_uniform(Brute *b, OpId id, Form form)
{
    const Op *op = graph_get_op(b->graph, id);
    for (uint32_t r = 0; r < b->n_rules[id]; r++) {
        bool match = true;
        for (uint32_t i = 0; i < op->n_in + op->n_out; i++)
            match &= b->all[id][r].form[i] == form;
        if (match) {
            b->rule[id] = r;
            return true;
        }
    }
    return false;
}

/* The forms in which the backward ops of a unit, and optionally its forward op, read a tensor. */
static Forms reads(const Brute *b, OpId id, TensorId tensor, bool forward)
{
    const Unit *unit = &b->unit[id];
    Forms forms = 0;
    for (uint32_t k = 0; k < unit->n_back + forward; k++) {
        OpId reader = k < unit->n_back ? unit->back[k] : id;
        const Op *op = graph_get_op(b->graph, reader);
        for (uint32_t i = 0; i < op->n_in; i++)
            if (op->in[i] == tensor)
                forms |= 1u << forms_of(b, reader)[i];
    }
    return forms;
}

/* The form in which a tensor is made. */
static Form made(const Brute *b, TensorId tensor)
{
    OpId id = graph_tensor(b->graph, tensor)->producer;
    const Op *op = graph_get_op(b->graph, id);
    uint32_t o = 0;
    while (op->out[o] != tensor)
        o++;
    return forms_of(b, id)[op->n_in + o];
}

TensorId brute_gradient(const Brute *b, TensorId output)
{
    TensorId dy = graph_gradient(b->graph, output);
    bool none = dy == GRAPH_NONE || graph_tensor(b->graph, dy)->role == ROLE_INPUT;
    return none ? GRAPH_NONE : dy;
}

bool brute_forward(Brute *b, OpId id, Forms saved[MAX_IN], Portion *portion)
{
    const Op *op = graph_get_op(b->graph, id);
    for (uint32_t i = 0; i < b->unit[id].n_in; i++) {
        TensorId x = op->in[b->unit[id].in[i]];
        Form form = forms_of(b, id)[b->unit[id].in[i]];
        Portion own = {0};
        saved[i] = 1u << b->held[x];
        if (!convert(b, x, &saved[i], 1u << form, &own))
            return false;
        if (own.closes && !b->keeps[id][i])
            b->held[x] = form;
        portion->closes |= own.closes;
        portion->comm_s += own.comm_s;
        for (uint32_t j = 0; j < b->m; j++)
            portion->work_s[j] += own.work_s[j];
    }
    compute(b, id, portion);
    for (uint32_t o = 0; o < op->n_out; o++)
        b->held[op->out[o]] = forms_of(b, id)[op->n_in + o];
    return true;
}

/* Runs the deferred backward ops, or the others. */
static void compute_back(Brute *b, OpId id, bool deferred, Portion *portion)
{
    for (uint32_t k = 0; k < b->unit[id].n_back; k++)
        if (b->deferred[b->unit[id].back[k]] == deferred)
            compute(b, b->unit[id].back[k], portion);
}

bool brute_backward(Brute *b, OpId id, const Forms saved[MAX_IN], Forms dy[OP_MAX_OUT],
                    Portion *portion)
{
    const Op *op = graph_get_op(b->graph, id);
    for (uint32_t o = 0; o < op->n_out; o++) {
        TensorId gradient = brute_gradient(b, op->out[o]);
        Forms y = 1u << forms_of(b, id)[op->n_in + o];
        dy[o] = 1u << b->sum[op->out[o]];
        if (!convert(b, op->out[o], &y, reads(b, id, op->out[o], false), portion) ||
            (gradient != GRAPH_NONE &&
             !convert(b, gradient, &dy[o], reads(b, id, gradient, false), portion)))
            return false;
    }
    for (uint32_t i = 0; i < b->unit[id].n_in; i++) {
        TensorId x = op->in[b->unit[id].in[i]];
        Forms held = saved[i];
        if (!convert(b, x, &held, reads(b, id, x, false), portion))
            return false;
    }
    compute_back(b, id, false, portion);
    return true;
}

bool brute_sums(Brute *b, OpId id, Forms dy[OP_MAX_OUT], Portion *portion)
{
    const Op *op = graph_get_op(b->graph, id);
    for (uint32_t i = 0; i < b->unit[id].n_in; i++) {
        uint32_t input = b->unit[id].in[i];
        TensorId contribution = graph_contribution(b->graph, id, input);
        if (contribution == GRAPH_NONE)
            continue;
        Forms own = 0, *held = &own;
        for (uint32_t o = 0; o < op->n_out; o++)
            if (graph_gradient(b->graph, op->out[o]) == contribution)
                held = &dy[o];
        if (held == &own)
            own = 1u << made(b, contribution);
        if (!convert(b, contribution, held, 1u << b->sum[op->in[input]], portion))
            return false;
    }
    compute_back(b, id, true, portion);
    for (uint32_t i = 0; i < b->unit[id].n_in; i++) {
        OpId add = graph_accumulation(b->graph, id, b->unit[id].in[i]);
        if (add == GRAPH_NONE)
            continue;
        if (!choose_uniform(b, add, b->sum[op->in[b->unit[id].in[i]]]))
            return false;
        compute(b, add, portion);
    }
    return true;
}

/* --- parameters --- */

static OpId update_of(const Brute *b, TensorId parameter)
{
    return graph_tensor(b->graph, graph_updated(b->graph, parameter))->producer;
}

enum {
    PLACE_INITIAL = 1,
    PLACE_GRADIENT = 2,
    PLACE_UPDATE = 4,
    PLACE_REST = 8,
    PLACE_ALL = 15
};

/* Runs some of the instructions of a parameter's place. */
static bool run_place(Brute *b, TensorId parameter, Forms read, Form gradient_made,
                      uint32_t what, Place *place)
{
    OpId update = update_of(b, parameter);
    Forms held = 1u << place->rest, gradient = 1u << gradient_made,
          next = 1u << place->update;
    Portion initial = {0}, final = {0};
    bool done = choose_uniform(b, update, place->update);
    if (done && (what & PLACE_INITIAL))
        done = convert(b, parameter, &held, read | 1u << place->update, &initial);
    if (done && (what & PLACE_GRADIENT))
        done = convert(b, graph_gradient(b->graph, parameter), &gradient,
                       1u << place->update, &final);
    if (done && (what & PLACE_UPDATE))
        compute(b, update, &final);
    if (done && (what & PLACE_REST))
        done = convert(b, graph_updated(b->graph, parameter), &next, 1u << place->rest,
                       &final);
    place->comm_s = initial.comm_s + final.comm_s;
    memcpy(place->initial_s, initial.work_s, sizeof initial.work_s);
    memcpy(place->final_s, final.work_s, sizeof final.work_s);
    return done;
}

static bool may_rest(const Brute *b, TensorId tensor, Form form)
{
    return b->pinned != tensor || (b->pin_made >> form & 1u);
}

/* Sharded or replicated with the update in place, or replicated with a sharded update. */
static const GArray *places_of(Brute *b, TensorId parameter, Forms read,
                               Form gradient_made)
{
    gpointer key =
        GUINT_TO_POINTER(((parameter << 7 | read) * FORM_MAX + gradient_made) + 1);
    GArray *places = g_hash_table_lookup(b->places, key);
    if (places)
        return places;
    places = g_array_new(FALSE, FALSE, sizeof(Place));
    const Op *update = graph_get_op(b->graph, update_of(b, parameter));
    for (Form form = 0; form < FORM_MAX; form++)
        for (uint32_t whole = 0; whole < 2; whole++) {
            Place place = {.rest = whole ? FORM_IDENTITY : form, .update = form};
            bool may = form != FORM_REDUCE && brute_can_hold(b->graph, parameter, form) &&
                       !(whole && form == FORM_IDENTITY) &&
                       may_rest(b, parameter, place.rest);
            for (uint32_t i = 2; i < update->n_in; i++)
                may = may && may_rest(b, update->in[i], form);
            if (may && run_place(b, parameter, read, gradient_made, PLACE_ALL, &place))
                g_array_append_val(places, place);
        }
    g_hash_table_insert(b->places, key, places);
    return places;
}

const GArray *brute_places(Brute *b, OpId id, uint32_t p)
{
    uint32_t input = b->unit[id].parameter[p];
    TensorId parameter = graph_get_op(b->graph, id)->in[input];
    return places_of(b, parameter, reads(b, id, parameter, true),
                     made(b, graph_contribution(b->graph, id, input)));
}

/* --- the whole program --- */

static void load_all(Brute *b)
{
    for (TensorId t = 0; t < graph_n_tensors(b->graph); t++) {
        const Tensor *tensor = graph_tensor(b->graph, t);
        TensorId of = tensor->role == ROLE_OPTIMIZER ? tensor->of : t;
        if (tensor->role == ROLE_PARAMETER || tensor->role == ROLE_OPTIMIZER)
            program_load(b->program, t,
                         of == t ? b->place[of].rest : b->place[of].update);
        for (Form form = 0; tensor->role == ROLE_INPUT && form < FORM_MAX; form++)
            if (brute_can_hold(b->graph, t, form) && form != FORM_REDUCE)
                program_load(b->program, t, form);
    }
}

static void run_places(Brute *b, uint32_t what)
{
    for (OpId id = 0; id < b->n_ops; id++)
        for (uint32_t p = 0; p < b->unit[id].n_parameters; p++) {
            uint32_t input = b->unit[id].parameter[p];
            TensorId parameter = graph_get_op(b->graph, id)->in[input];
            Place place = b->place[parameter];
            g_assert_true(run_place(b, parameter, reads(b, id, parameter, true),
                                    made(b, graph_contribution(b->graph, id, input)),
                                    what, &place));
        }
}

double brute_program_s(Brute *b)
{
    g_autoptr(Program) program = b->program = program_new();
    Forms saved[MAX_OPS][MAX_IN], dy[OP_MAX_OUT];
    Form held[MAX_TENSORS];
    Portion any = {0};
    memcpy(held, b->held, sizeof held);
    load_all(b);
    run_places(b, PLACE_INITIAL);
    for (OpId id = 0; id < b->n_ops; id++)
        g_assert_true(brute_forward(b, id, saved[id], &any));
    for (OpId id = b->n_ops; id-- > 0;)
        g_assert_true(brute_backward(b, id, saved[id], dy, &any) &&
                      brute_sums(b, id, dy, &any));
    run_places(b, PLACE_GRADIENT);
    run_places(b, PLACE_UPDATE);
    run_places(b, PLACE_REST);
    b->program = NULL;
    memcpy(b->held, held, sizeof held);
    g_autoptr(SimLinear) linear = sim_linear(program, b->graph, b->view, NULL, 0);
    g_autofree double *share = sim_shares(linear, b->view, b->ratio);
    return sim_linear_time(linear, b->view, share, NULL, NULL);
}
