/* Conversions of a tensor from form to form: the cheapest collective, or two in a row where they
 * cost less. Tensors of equal bytes, roles and forms share them. */
#include "synth/spmd/price_parts.h"

#include <string.h>

/* Units of the dim that `form` shards, or else of the dim that `other` shards; 0 if neither shards
 * one. */
static uint32_t units_in(const Tensor *tensor, Form form, Form other)
{
    const Form sharded = form_is_gather(form) ? form : other;
    return form_is_gather(sharded) ? tensor->units[form_dim(sharded)] : 0;
}

/* The cheapest collective from one form to another. */
static void find_conversion(const Pricer *pricer, TensorId tensor, Form from, Form to,
                            Conversion *best)
{
    KILTER_ASSERT(from != to && from < FORM_MAX && to < FORM_MAX);
    const Tensor *t = graph_tensor(pricer->graph, tensor);
    double bytes = (double)tensor_bytes(t);
    const uint32_t made = pricer->segments.n > 0 ? pricer->segments.made[tensor] : 0,
                   read = pricer->segments.n > 0 ? pricer->segments.read[tensor] : 0;
    if (!graph_is_held(pricer->graph, t))
        bytes *= pricer->part;
    for (Collective kind = 0; kind < COLLECTIVES; kind++) {
        if (!collective_converts(kind, from, to))
            continue;
        SimWork work;
        sim_work_collective(pricer->graph, kind, tensor, from, to, &work);
        Step step = {.closes = (int)kind < COLLECTIVES_PRICED,
                     .inner = price_work(pricer, &work, units_in(t, to, from),
                                         form_is_gather(to) ? read : made)};
        step.comm_s =
            sim_collective_s(pricer->view, kind, bytes,
                             price_max_share(pricer, units_in(t, from, to), made),
                             price_max_share(pricer, units_in(t, to, from), read));
        double total_s = step.comm_s + times_max(pricer, &step.inner);
        if (!best->can || total_s < best->total_s)
            *best = (Conversion){.can = true,
                                 .via = FORM_MAX,
                                 .kind = kind,
                                 .step = step,
                                 .total_s = total_s};
    }
}

/* Finds pairs of collectives that are cheaper than one. */
static void find_detours(const Pricer *pricer, Conversions *all)
{
    const Conversions direct = *all;
    Form form[FORM_MAX];
    uint32_t n = 0;
    for (Form f = 0; f < FORM_MAX; f++)
        if (all->key.forms >> f & 1u)
            form[n++] = f;
    for (uint32_t i = 0; i < n * n * n; i++) {
        Form from = form[i % n], via = form[i / n % n], to = form[i / n / n];
        const Conversion *a = &direct.from_to[from][via], *b = &direct.from_to[via][to];
        Conversion *best = &all->from_to[from][to];
        if (!a->can || !b->can || from == to)
            continue;
        if (best->can && a->step.comm_s + b->step.comm_s >= best->total_s)
            continue;
        Step step = a->step;
        step.closes |= b->step.closes;
        step.comm_s += b->step.comm_s;
        times_add(pricer, &step.inner, &b->step.inner);
        double total_s = step.comm_s + times_max(pricer, &step.inner);
        if (!best->can || total_s < best->total_s)
            *best = (Conversion){.can = true,
                                 .via = via,
                                 .kind = a->kind,
                                 .then = b->kind,
                                 .step = step,
                                 .total_s = total_s};
    }
}

/* The key of a tensor's conversions: everything that their prices depend on. */
static ConversionKey describe_conversions(const Pricer *pricer, TensorId id)
{
    const Graph *graph = pricer->graph;
    const Tensor *tensor = graph_tensor(graph, id);
    uint32_t of =
        tensor->of == GRAPH_NONE ? 0 : 1u + graph_tensor(graph, tensor->of)->role;
    ConversionKey key = {.bytes = tensor_bytes(tensor),
                         .roles = (uint32_t)tensor->role << 8 | of,
                         .forms = forms_of_tensor(graph, id)};
    if (pricer->n_units > 0)
        memcpy(key.units, tensor->units, sizeof key.units);
    if (pricer->segments.n > 0) {
        key.made = pricer->segments.made[id];
        key.read = pricer->segments.read[id];
    }
    return key;
}

static const Conversions *conversions_of(const Pricer *pricer, TensorId tensor)
{
    KILTER_ASSERT(tensor < graph_n_tensors(pricer->graph));
    if (pricer->conversions[tensor])
        return pricer->conversions[tensor];
    const ConversionKey key = describe_conversions(pricer, tensor);
    Conversions *all = g_hash_table_lookup(pricer->alike, &key);
    if (!all) {
        all = g_new0(Conversions, 1);
        all->key = key;
        for (Form from = 0; from < FORM_MAX; from++)
            for (Form to = 0; to < FORM_MAX; to++)
                if ((key.forms >> from & 1u) && (key.forms >> to & 1u) && from != to)
                    find_conversion(pricer, tensor, from, to, &all->from_to[from][to]);
        if (!pricer->direct)
            find_detours(pricer, all);
        g_hash_table_add(pricer->alike, all);
    }
    return pricer->conversions[tensor] = all;
}

/* The cheapest conversion from one of the `held` forms to `to`; NULL if there is none. */
static const Conversion *cheapest(const Conversions *all, FormSet held, Form to,
                                  Form *from)
{
    KILTER_ASSERT(to < FORM_MAX);
    const Conversion *best = NULL;
    for (FormSet rest = held & all->key.forms; rest; rest &= (FormSet)(rest - 1)) {
        Form source = (Form)__builtin_ctz(rest);
        const Conversion *one = &all->from_to[source][to];
        if (one->can && (!best || one->total_s < best->total_s)) {
            best = one;
            *from = source;
        }
    }
    return best;
}

bool price_reach_by(const Pricer *pricer, TensorId tensor, FormSet *held, FormSet wanted,
                    Step *step, PriceEach each, void *data)
{
    wanted &= (FormSet) ~*held;
    if (!wanted)
        return true;
    const Conversions *all = conversions_of(pricer, tensor);
    for (; wanted; wanted &= (FormSet)(wanted - 1)) {
        Form to = (Form)__builtin_ctz(wanted), from;
        const Conversion *one = cheapest(all, *held, to, &from);
        if (!one)
            return false;
        step->closes |= one->step.closes;
        step->comm_s += one->step.comm_s;
        times_add(pricer, &step->inner, &one->step.inner);
        if (each)
            each(one->kind, tensor, from, one->via == FORM_MAX ? to : one->via, data);
        if (each && one->via != FORM_MAX)
            each(one->then, tensor, one->via, to, data);
        *held |= (FormSet)(1u << to | (one->via == FORM_MAX ? 0 : 1u << one->via));
    }
    return true;
}
