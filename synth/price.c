#include "synth/assignment.h"

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

/* The least sum_j weight_j B_j in the box: what is free goes where it weighs least. */
static double least_mean(const ClusterView *view, const double *lo, const double *hi,
                         const double *weight)
{
    double sum = 0, rest = 1, least = 0;
    g_autofree bool *full = g_new0(bool, view->n_devices);
    for (uint32_t j = 0; j < view->n_devices; j++) {
        sum += weight[j] * lo[j];
        rest -= lo[j];
    }
    while (rest > 0) {
        uint32_t best = view->n_devices;
        for (uint32_t j = 0; j < view->n_devices; j++)
            if (!full[j] && (best == view->n_devices || weight[j] < least)) {
                best = j;
                least = weight[j];
            }
        if (best == view->n_devices)
            break;
        double more = fmin(rest, hi[best] - lo[best]);
        full[best] = true;
        rest -= more;
        sum += weight[best] * more;
    }
    return sum;
}

static SynthBytes charge_of(const ClusterView *view, const double *lo, const double *hi,
                            const double *memory_s)
{
    SynthBytes charge = {0};
    g_autofree double *divided = g_new(double, view->n_devices);
    for (uint32_t j = 0; j < view->n_devices; j++) {
        divided[j] = memory_s[j] / view->device[j].gpus;
        charge.held += memory_s[j];
        charge.divided += divided[j];
    }
    charge.held_sharded = least_mean(view, lo, hi, memory_s);
    charge.divided_sharded = least_mean(view, lo, hi, divided);
    return charge;
}

/* The tensor whose buffer a tensor shares as a view. */
static TensorId buffer_of(const Graph *graph, TensorId tensor)
{
    OpId producer = graph_tensor(graph, tensor)->producer;
    while (producer != GRAPH_NONE &&
           op_kind_is_view(graph_get_op(graph, producer)->kind)) {
        tensor = graph_get_op(graph, producer)->in[0];
        producer = graph_tensor(graph, tensor)->producer;
    }
    return tensor;
}

/* Marks `op` as the one that pays for `tensor` if its backward reads it and its buffer is not paid
 * for yet. */
static void find_saver(Pricer *pricer, OpId op, uint32_t n, const OpId *backward,
                       TensorId tensor, bool *paid)
{
    const Graph *graph = pricer->graph;
    TensorId buffer = buffer_of(graph, tensor);
    if (paid[buffer] || graph_tensor(graph, tensor)->role != ROLE_ACTIVATION)
        return;
    for (uint32_t k = 0; k < n; k++) {
        const Op *b = graph_get_op(graph, backward[k]);
        for (uint32_t i = 0; i < b->n_in; i++)
            if (b->in[i] == tensor) {
                pricer->saver[tensor] = op;
                paid[buffer] = true;
            }
    }
}

bool price_makes_beside(const Graph *graph, OpId backward)
{
    const Op *op = graph_get_op(graph, backward);
    return !op_kind_is_view(op->kind) &&
           !(op_kind_is_elementwise(op->kind) && op->n_out == 1);
}

/* Bytes of activations' gradients while the first backward op of `op` runs. */
static double bytes_beside(const Graph *graph, const Op *op, OpId backward)
{
    const Op *b = graph_get_op(graph, backward);
    double bytes = 0;
    for (uint32_t o = 0; o < op->n_out; o++)
        for (uint32_t i = 0; i < b->n_in; i++)
            if (b->in[i] == graph_gradient(graph, op->out[o]) &&
                graph_tensor(graph, b->in[i])->role == ROLE_GRADIENT)
                bytes += (double)tensor_bytes(graph_tensor(graph, b->in[i]));
    for (uint32_t o = 0; o < b->n_out && price_makes_beside(graph, backward); o++)
        if (!sim_is_held(graph, graph_tensor(graph, b->out[o])))
            bytes += (double)tensor_bytes(graph_tensor(graph, b->out[o]));
    return bytes;
}

/* Where activations weigh most if all of them are whole. */
static OpId find_fullest(const Graph *graph, const OpId *saver)
{
    OpId fullest = 0;
    double most = -1, saved = 0;
    g_autofree double *paid = g_new0(double, graph_n_ops(graph));
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        if (saver[t] != GRAPH_NONE)
            paid[saver[t]] += (double)tensor_bytes(graph_tensor(graph, t));
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const Op *op = graph_get_op(graph, id);
        if (op->pass != PASS_FORWARD)
            continue;
        OpId backward[MAX_BACKWARD];
        TensorId of;
        const double kept = graph_op_kept_bytes(graph, id, &of);
        saved += paid[id];
        if (kept > 0)
            saved += kept * (double)tensor_elements(graph_tensor(graph, of));
        double bytes = saved;
        if (backward_ops(graph, id, backward) > 0)
            bytes += bytes_beside(graph, op, backward[0]);
        if (bytes >= most) {
            most = bytes;
            fullest = id;
        }
    }
    return fullest;
}

static void find_savers(Pricer *pricer)
{
    const Graph *graph = pricer->graph;
    g_autofree bool *paid = g_new0(bool, graph_n_tensors(graph));
    pricer->saver = g_new(OpId, graph_n_tensors(graph));
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        pricer->saver[t] = GRAPH_NONE;
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const Op *op = graph_get_op(graph, id);
        if (op->pass != PASS_FORWARD)
            continue;
        OpId backward[MAX_BACKWARD];
        uint32_t n = backward_ops(graph, id, backward);
        for (uint32_t o = 0; o < op->n_out; o++)
            find_saver(pricer, id, n, backward, op->out[o], paid);
        for (uint32_t i = 0; i < op->n_in; i++)
            find_saver(pricer, id, n, backward, op->in[i], paid);
    }
    pricer->fullest = find_fullest(graph, pricer->saver);
}

/* memory_s: as in SynthOptions. */
static void charge_memory(Pricer *pricer, const double *lo, const double *hi,
                          const double *memory_s)
{
    pricer->charges = memory_s != NULL;
    if (!pricer->charges)
        return;
    for (SynthPoint point = 0; point < SYNTH_POINTS; point++)
        pricer->charge[point] =
            charge_of(pricer->view, lo, hi, memory_s + point * pricer->view->n_devices);
    find_savers(pricer);
}

static guint hash_conversions(gconstpointer data)
{
    const ConversionKey *key = data;
    return (guint)((key->bytes ^ (uint64_t)key->roles << 56) *
                       UINT64_C(0x9e3779b97f4a7c15) >>
                   32);
}

static gboolean same_conversions(gconstpointer a, gconstpointer b)
{
    const ConversionKey *x = a, *y = b;
    return x->bytes == y->bytes && x->roles == y->roles && x->forms == y->forms;
}

void pricer_init(Pricer *pricer, const Graph *graph, const ClusterView *view,
                 const double *ratio, const double *memory_s)
{
    *pricer = (Pricer){
        .graph = graph,
        .view = view,
        .conversions = g_new0(const Conversions *, graph_n_tensors(graph)),
        .alike = g_hash_table_new_full(hash_conversions, same_conversions, g_free, NULL),
        .part = 1,
        .exact = true};
    charge_memory(pricer, ratio, ratio, memory_s);
    for (uint32_t j = 0; j < view->n_devices; j++) {
        pricer->max_share = fmax(pricer->max_share, ratio[j]);
        pricer->inner |= view->device[j].gpus > 1;
        if (j > 0 && ratio[j] == ratio[j - 1] &&
            device_compare(&view->device[j], &view->device[j - 1]) == 0)
            continue; /* equal devices are mostly neighbours */
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

/* The mean over the union's devices, weighted by speed, of what one of them takes; never more than
 * the slowest takes. */
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
                     const double *lo, const double *hi, const double *memory_s)
{
    enum { MAX_KINDS = 5 }; /* unions of more are left out: the bound is only looser */
    g_autofree Kind *kind = g_new(Kind, view->n_devices);
    uint32_t n = find_kinds(view, lo, hi, kind);
    pricer_init(pricer, graph, view, lo, NULL);
    charge_memory(pricer, lo, hi, memory_s);
    pricer->max_share = fmax(pricer->max_share, 1.0 / view->n_devices);
    uint32_t all = n <= MAX_KINDS ? 1u << n : 2;
    for (uint32_t members = 1; members < all; members++)
        if (counts_alike(kind, n, members))
            add_class(pricer, union_class(kind, n, members));
}

void pricer_clear(Pricer *pricer)
{
    g_free(pricer->conversions);
    g_free(pricer->saver);
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

double price_memory(const Pricer *pricer, SynthPoint point, TensorId tensor, Form form)
{
    if (!pricer->charges)
        return 0;
    const SynthBytes *c = &pricer->charge[point];
    const Tensor *t = graph_tensor(pricer->graph, tensor);
    bool held = sim_is_held(pricer->graph, t);
    double charge = form_is_gather(form) ? (held ? c->held_sharded : c->divided_sharded)
                                         : (held ? c->held : c->divided);
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
            *best = (Conversion){.can = true,
                                 .via = FORM_MAX,
                                 .kind = kind,
                                 .step = step,
                                 .total_s = total_s};
    }
}

/* Two collectives where they are cheaper than one. */
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

/* Of a tensor, with what their prices depend on. */
static ConversionKey describe_conversions(const Graph *graph, TensorId id)
{
    const Tensor *tensor = graph_tensor(graph, id);
    uint32_t of =
        tensor->of == GRAPH_NONE ? 0 : 1u + graph_tensor(graph, tensor->of)->role;
    return (ConversionKey){.bytes = tensor_bytes(tensor),
                           .roles = (uint32_t)tensor->role << 8 | of,
                           .forms = price_forms(graph, id)};
}

static const Conversions *conversions_of(const Pricer *pricer, TensorId tensor)
{
    if (pricer->conversions[tensor])
        return pricer->conversions[tensor];
    const ConversionKey key = describe_conversions(pricer->graph, tensor);
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
            each(one->kind, tensor, from, one->via == FORM_MAX ? to : one->via, data);
        if (each && one->via != FORM_MAX)
            each(one->then, tensor, one->via, to, data);
        *held |= (FormSet)(1u << to | (one->via == FORM_MAX ? 0 : 1u << one->via));
    }
    return true;
}
