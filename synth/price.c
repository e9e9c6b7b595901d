#include "synth/price.h"

#include <math.h>

static Coefficients coefficients_of(const Device *device, double share)
{
    static const SimWork unit[COEFFICIENTS] = {{.flops = 1},
                                               {.flops_sharded = 1},
                                               {.inner_bytes = 1},
                                               {.inner_bytes_sharded = 1},
                                               {.inner_messages = 1}};
    static const SimFitted fitted_unit[COEFFICIENTS] = {
        {.flops = 1}, {.flops_sharded = 1}, [COEFFICIENTS - 1] = {.overhead_s = 1}};
    Coefficients k = {.fitted = device->fitted};
    for (uint32_t i = 0; i < COEFFICIENTS; i++) {
        SimWork work = unit[i];
        if (device->fitted)
            work.fitted[device->fitted - 1] = fitted_unit[i];
        k.c[i] = sim_work_s(&work, device, share);
    }
    return k;
}

static bool covers(const Coefficients *a, const Coefficients *b)
{
    for (uint32_t i = 0; i < COEFFICIENTS; i++)
        if (a->c[i] < b->c[i])
            return false;
    return a->fitted == b->fitted;
}

/* Keeps a class unless one of those kept is never faster; drops those that it makes superfluous. */
static void add_class(Pricer *pricer, Coefficients class)
{
    uint32_t n = 0;
    for (uint32_t h = 0; h < pricer->n_classes; h++)
        if (covers(&pricer->class[h], &class))
            return;
    for (uint32_t h = 0; h < pricer->n_classes; h++)
        if (!covers(&class, &pricer->class[h]))
            pricer->class[n++] = pricer->class[h];
    if (n == PRICE_MAX_CLASSES) {
        pricer->exact = false;
        n--;
    }
    pricer->class[n++] = class;
    pricer->n_classes = n;
}

static void charge_memory(Pricer *pricer, const double *ratio, double memory_s)
{
    for (uint32_t j = 0; j < pricer->view->n_devices; j++) {
        double share = ratio[j], gpus = pricer->view->device[j].gpus;
        pricer->held_s += memory_s;
        pricer->held_sharded_s += memory_s * share;
        pricer->divided_s += memory_s / gpus;
        pricer->divided_sharded_s += memory_s * share / gpus;
    }
}

void pricer_init(Pricer *pricer, const Graph *graph, const ClusterView *view,
                 const double *ratio, double memory_s)
{
    *pricer =
        (Pricer){.graph = graph,
                 .view = view,
                 .conversions = g_new0(const Conversions *, graph_n_tensors(graph)),
                 .alike = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
                 .part = 1,
                 .exact = true};
    charge_memory(pricer, ratio, memory_s);
    for (uint32_t j = 0; j < view->n_devices; j++) {
        pricer->max_share = fmax(pricer->max_share, ratio[j]);
        pricer->inner |= view->device[j].gpus > 1;
        add_class(pricer, coefficients_of(&view->device[j], ratio[j]));
    }
}

/* Devices of one kind, which have the same bounds. */
typedef struct {
    const Device *device;
    double lo, hi;
    uint32_t n;
} Kind;

static uint32_t find_kinds(const ClusterView *view, const double *lo, const double *hi,
                           Kind *kind)
{
    uint32_t n = 0;
    for (uint32_t j = 0; j < view->n_devices; j++) {
        Coefficients a = coefficients_of(&view->device[j], 1);
        uint32_t k = 0;
        for (; k < n; k++) {
            Coefficients b = coefficients_of(kind[k].device, 1);
            if (covers(&a, &b) && covers(&b, &a) && kind[k].lo == lo[j] &&
                kind[k].hi == hi[j])
                break;
        }
        if (k == n)
            kind[n++] = (Kind){&view->device[j], lo[j], hi[j], 0};
        kind[k].n++;
    }
    return n;
}

/* Whether the union's devices count FLOPs alike, which a class needs. */
static bool counts_alike(const Kind *kind, uint32_t n, uint32_t members)
{
    const Device *first = NULL;
    for (uint32_t k = 0; k < n; k++) {
        if (!(members >> k & 1u))
            continue;
        first = first ? first : kind[k].device;
        if (kind[k].device->fitted != first->fitted)
            return false;
    }
    return true;
}

/* The mean over the union's devices, weighted by speed, of what one of them takes; never more than the slowest takes. */
static Coefficients union_class(const Kind *kind, uint32_t n, uint32_t members)
{
    Coefficients sum = {0};
    double rate = 0, share = 1;
    for (uint32_t k = 0; k < n; k++) {
        if (!(members >> k & 1u)) {
            share -= kind[k].n * kind[k].hi;
            continue;
        }
        double weight = kind[k].n * kind[k].device->rate;
        if (weight == 0)
            continue;
        Coefficients one = coefficients_of(kind[k].device, kind[k].lo);
        rate += weight;
        sum.fitted = one.fitted;
        for (uint32_t i = 0; i < COEFFICIENTS; i++)
            sum.c[i] += weight * one.c[i];
    }
    for (uint32_t i = 0; i < COEFFICIENTS; i++)
        sum.c[i] /= rate;
    sum.c[1] = fmax(sum.c[1], fmax(share, 0) / rate);
    return sum;
}

void pricer_init_box(Pricer *pricer, const Graph *graph, const ClusterView *view,
                     const double *lo, const double *hi)
{
    enum { MAX_KINDS = 5 }; /* unions of more are left out: the bound is only looser */
    g_autofree Kind *kind = g_new(Kind, view->n_devices);
    uint32_t n = find_kinds(view, lo, hi, kind);
    pricer_init(pricer, graph, view, lo, 0);
    pricer->max_share = fmax(pricer->max_share, 1.0 / view->n_devices);
    uint32_t all = n <= MAX_KINDS ? 1u << n : 2;
    for (uint32_t members = 1; members < all; members++)
        if (counts_alike(kind, n, members))
            add_class(pricer, union_class(kind, n, members));
}

void pricer_clear(Pricer *pricer)
{
    g_free(pricer->conversions);
    g_hash_table_destroy(pricer->alike);
}

Times price_work(const Pricer *pricer, const SimWork *work)
{
    Times times = {{0}};
    for (uint32_t h = 0; h < pricer->n_classes; h++) {
        const double *c = pricer->class[h].c;
        const SimFitted plain = {0, work->flops, work->flops_sharded};
        const SimFitted *own =
            pricer->class[h].fitted ? &work->fitted[pricer->class[h].fitted - 1] : &plain;
        times.s[h] = work->seconds + own->flops * c[0] + own->flops_sharded * c[1] +
                     work->inner_bytes * c[2] + work->inner_bytes_sharded * c[3] +
                     work->inner_messages * c[4] + own->overhead_s * c[5];
    }
    return times;
}

Times price_rule(const Pricer *pricer, OpId op, const Rule *rule)
{
    SimWork work = {0};
    sim_work_op(pricer->graph, pricer->view, op, rule, &work);
    return price_work(pricer, &work);
}

double price_memory(const Pricer *pricer, TensorId tensor, Form form)
{
    if (pricer->held_s == 0)
        return 0;
    const Tensor *t = graph_tensor(pricer->graph, tensor);
    bool held = sim_is_held(pricer->graph, t);
    double charge = form_is_gather(form)
                        ? (held ? pricer->held_sharded_s : pricer->divided_sharded_s)
                        : (held ? pricer->held_s : pricer->divided_s);
    return charge * (double)tensor_bytes(t);
}

bool price_can_hold(const Graph *graph, TensorId tensor, Form form)
{
    const Tensor *t = graph_tensor(graph, tensor);
    if (form_is_gather(form))
        return form_dim(form) < t->rank && t->units[form_dim(form)] > 1;
    return form != FORM_REDUCE || t->dtype != DTYPE_I64;
}

FormSet price_forms(const Graph *graph, TensorId tensor)
{
    FormSet forms = 0;
    for (Form form = 0; form < FORM_MAX; form++)
        if (price_can_hold(graph, tensor, form))
            forms |= (FormSet)(1u << form);
    return forms;
}

/* The cheapest collective from one form to another. */
static void find_conversion(const Pricer *pricer, TensorId tensor, Form from, Form to,
                            Conversion *best)
{
    const Tensor *t = graph_tensor(pricer->graph, tensor);
    double bytes = (double)tensor_bytes(t);
    if (!sim_is_held(pricer->graph, t))
        bytes *= pricer->part;
    for (Collective kind = 0; kind < COLLECTIVES; kind++) {
        if (!collective_converts(kind, from, to))
            continue;
        SimWork work = {0};
        sim_work_collective(pricer->graph, kind, tensor, from, to, &work);
        Step step = {.closes = (int)kind < COLLECTIVES_PRICED,
                     .inner = price_work(pricer, &work)};
        step.comm_s = sim_collective_s(pricer->view, kind, bytes, pricer->max_share,
                                       pricer->max_share);
        double total_s = step.comm_s + times_max(pricer, &step.inner);
        if (!best->can || total_s < best->total_s)
            *best =
                (Conversion){.can = true, .kind = kind, .step = step, .total_s = total_s};
    }
}

/* What the price of a conversion depends on. */
static char *describe_tensor(const Graph *graph, TensorId id, FormSet forms)
{
    const Tensor *tensor = graph_tensor(graph, id);
    int of = tensor->of == GRAPH_NONE ? -1 : (int)graph_tensor(graph, tensor->of)->role;
    return g_strdup_printf("%" G_GUINT64_FORMAT " %x %d %d", tensor_bytes(tensor), forms,
                           tensor->role, of);
}

static const Conversions *conversions_of(const Pricer *pricer, TensorId tensor)
{
    if (pricer->conversions[tensor])
        return pricer->conversions[tensor];
    FormSet forms = price_forms(pricer->graph, tensor);
    char *key = describe_tensor(pricer->graph, tensor, forms);
    Conversions *all = g_hash_table_lookup(pricer->alike, key);
    if (!all) {
        all = g_new0(Conversions, 1);
        all->forms = forms;
        for (Form from = 0; from < FORM_MAX; from++)
            for (Form to = 0; to < FORM_MAX; to++)
                if ((forms >> from & 1u) && (forms >> to & 1u) && from != to)
                    find_conversion(pricer, tensor, from, to, &all->from_to[from][to]);
        g_hash_table_insert(pricer->alike, g_steal_pointer(&key), all);
    }
    g_free(key);
    return pricer->conversions[tensor] = all;
}

/* The cheapest conversion from one of the `held` forms to `to`; NULL if there is none. */
static const Conversion *cheapest(const Conversions *all, FormSet held, Form to,
                                  Form *from)
{
    const Conversion *best = NULL;
    for (FormSet rest = held & all->forms; rest; rest &= (FormSet)(rest - 1)) {
        Form source = (Form)__builtin_ctz(rest);
        const Conversion *one = &all->from_to[source][to];
        if (one->can && (!best || one->total_s < best->total_s)) {
            best = one;
            *from = source;
        }
    }
    return best;
}

bool price_reach(const Pricer *pricer, TensorId tensor, FormSet *held, FormSet wanted,
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
            each(one->kind, tensor, from, to, data);
        *held |= (FormSet)(1u << to);
    }
    return true;
}
