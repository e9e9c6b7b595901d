/* Work of one instruction: FLOPs (equation 2) and inner communication (equation 3) of
 * sim/sim.h. */
#include <math.h>

#include <string.h>

#include "data/base/words.h"
#include "sim/cost/op_kernels.h"
#include "sim/cost/step.h"

/* Adds an inner message with the bytes of `tensor` that a device holds in `form`. */
static void add_message(SimWork *work, const Tensor *tensor, Form form)
{
    const double bytes = (double)tensor_bytes(tensor);
    work->inner_messages++;
    if (form_is_gather(form))
        work->inner_bytes_sharded += bytes;
    else
        work->inner_bytes += bytes;
}

/* Bytes of the op's operands in their forms; only the part `part` of operands that `batch` cuts. */
static void work_operand_bytes(const Graph *graph, OpId id, const Rule *rule,
                               const Form *batch, double part, double *whole,
                               double *sharded)
{
    KILTER_ASSERT(part >= 0 && part <= 1);
    const Op *op = graph_get_op(graph, id);
    Form cut[OP_MAX_OPERANDS] = {0};
    for (uint32_t i = 0; batch && i < op->n_in + op->n_out; i++)
        cut[i] = batch[i < op->n_in ? op->in[i] : op->out[i - op->n_in]];
    *whole = *sharded = 0;
    for (uint32_t i = 0; i < op->n_in + op->n_out; i++) {
        const bool has_parts = form_is_gather(cut[op_cut_with(op, cut, i)]);
        const bool is_sharded =
            form_is_gather(rule->form[op_cut_with(op, rule->form, i)]);
        *(is_sharded ? sharded : whole) +=
            (double)graph_op_bytes(graph, id, i) * (has_parts ? part : 1);
    }
}

/* Adds the empty part of the last wave (data/cluster/cluster.h). If the device sums over a part
 * only, the wave is shorter by that factor. */
static void add_wave(const Graph *graph, const DeviceType *type, const Op *op,
                     const Rule *rule, const Form *batch, double part, double rate,
                     const SimWork *work, SimFitted *fitted)
{
    const OpCost *cost = device_type_cost(type, op->kind);
    const bool has_parts = batch && form_is_gather(batch[op->out[0]]);
    const double elements =
        (double)tensor_elements(graph_tensor(graph, op->out[0])) * (has_parts ? part : 1);
    const double empty = fmin(cost->wave / 2.0, elements) / elements;
    if (cost->wave == 0 || elements == 0)
        return;
    fitted->overhead_s += empty * work->flops / rate;
    if (rule->form[op->n_in] == FORM_REDUCE)
        fitted->flops_sharded += empty * type->rate * work->flops_sharded / rate;
    else
        fitted->overhead_s += empty * work->flops_sharded / rate;
}

/* Adds the time in which an output's tiles are filled and written (data/cluster/cluster.h): that of
 * a sharded output is sharded, too; a device that sums over its share has whole tiles. */
static void add_fill(const Graph *graph, const DeviceType *type, const Op *op,
                     const Rule *rule, const Form *batch, double part, double rate,
                     SimFitted *fitted)
{
    const double fill = device_type_cost(type, op->kind)->fill;
    const bool has_parts = batch && form_is_gather(batch[op->out[0]]);
    const double elements =
        (double)tensor_elements(graph_tensor(graph, op->out[0])) * (has_parts ? part : 1);
    const double flops = 2 * elements * fill * type->rate / rate;
    *(form_is_gather(rule->form[op->n_in]) ? &fitted->flops_sharded : &fitted->flops) +=
        flops;
}

/* The loop that cuts the operands which `batch` cuts; -1: none is. */
static int8_t batch_loop(const Graph *graph, OpId id, const OpSpace *space,
                         const Form *batch)
{
    const Op *op = graph_get_op(graph, id);
    for (uint32_t i = 0; batch && i < op->n_in + op->n_out; i++) {
        const Form form = batch[i < op->n_in ? op->in[i] : op->out[i - op->n_in]];
        if (form_is_gather(form))
            return space->dim_loop[i][form_dim(form)];
    }
    return -1;
}

/* The parts of an op's loops on a device that has the part `part` of what `batch` cuts. Returns
 * whether it has anything. */
static bool parts_of(const Graph *graph, OpId id, const Form *batch, double part,
                     double of[OP_MAX_LOOPS])
{
    OpSpace space;
    graph_op_space(graph, id, &space);
    const int8_t loop = batch_loop(graph, id, &space, batch);
    for (uint32_t l = 0; l < OP_MAX_LOOPS; l++)
        of[l] = (int8_t)l == loop ? part : 1;
    return loop < 0 || part > 0;
}

/* --- times of kernels that were priced before --- */

typedef struct {
    uint64_t pricing; /* KernelPricing.key */
    uint32_t graph;   /* graph_serial */
    OpId op;          /* the first one like it */
    int64_t loop;     /* of a line; -1: a time */
    double of[OP_MAX_LOOPS];
} KernelKey;

typedef struct {
    KernelKey key;
    TimeLine line; /* of a time: `fixed` alone */
} KernelEntry;

/* Times that were computed, by a hash of what they depend on; one that takes the place of another
 * replaces it. They hold for all of the process: a memo that was freed is kept for who needs one
 * next. */
enum { MEMO_PLACES = 1 << 14, MEMOS_KEPT = 8 };
struct SimMemo {
    KernelEntry entry[MEMO_PLACES];
};
static GMutex memo_lock;
static SimMemo *memo_kept[MEMOS_KEPT];
static uint32_t memos_kept;

SimMemo *sim_memo_new(void)
{
    g_mutex_lock(&memo_lock);
    SimMemo *memo = memos_kept > 0 ? memo_kept[--memos_kept] : NULL;
    g_mutex_unlock(&memo_lock);
    return memo ? memo : g_new0(SimMemo, 1);
}

void sim_memo_free(SimMemo *memo)
{
    g_mutex_lock(&memo_lock);
    const bool keep = memo && memos_kept < MEMOS_KEPT;
    if (keep)
        memo_kept[memos_kept++] = memo;
    g_mutex_unlock(&memo_lock);
    g_free(keep ? NULL : memo);
}

/* The place of a price, and whether it is there; it is filled in otherwise. */
static KernelEntry *memo_find(SimMemo *memo, const KernelPricing *pricing,
                              const Graph *graph, OpId op, const double of[OP_MAX_LOOPS],
                              int32_t loop, bool *known)
{
    KernelKey key = {
        pricing->key, graph_serial(graph), graph_op_alike(graph, op), loop, {0}};
    memcpy(key.of, of, sizeof key.of);
    KernelEntry *kept =
        &memo->entry[(words_hash(0, &key, sizeof key) >> 40) % MEMO_PLACES];
    *known = memcmp(&kept->key, &key, sizeof key) == 0;
    kept->key = key;
    return kept;
}

static double memo_kernels_s(SimMemo *memo, const KernelPricing *pricing,
                             const Graph *graph, OpId op, const double of[OP_MAX_LOOPS])
{
    bool known;
    if (!memo || pricing->key == 0)
        return op_kernels_s(pricing, graph, op, of);
    KernelEntry *kept = memo_find(memo, pricing, graph, op, of, -1, &known);
    if (!known)
        kept->line.fixed = op_kernels_s(pricing, graph, op, of);
    return kept->line.fixed;
}

/* The line for searches: below the times of the op's kernels at shares around the working one, and
 * there the highest such. The times climb in waves of tiles, and a point alone says little. */
static TimeLine line_of_kernels(const KernelPricing *pricing, const Graph *graph, OpId id,
                                double of[OP_MAX_LOOPS], int8_t loop)
{
    static const double AROUND[] = {1.0 / 64, 1.0 / 32, 1.0 / 16, 1.0 / 8, 0.25, 0.5,
                                    0.75,     1,        1.5,      2,       4};
    enum { MOST = G_N_ELEMENTS(AROUND) + 1 };
    const double all = of[loop];
    TimePoint point[MOST];
    TimeCurve curve = {.point = point};
    for (uint32_t i = 0; i < MOST; i++) {
        const double share = i + 1 < MOST ? pricing->working * AROUND[i] : 1;
        if (share > 1 || (i > 0 && share <= point[curve.n - 1].samples))
            continue;
        of[loop] = all * share;
        point[curve.n++] = (TimePoint){share, op_kernels_s(pricing, graph, id, of)};
    }
    of[loop] = all;
    return time_curve_line(&curve, 1, fmin(pricing->working, 1));
}

static TimeLine memo_line(SimMemo *memo, const KernelPricing *pricing, const Graph *graph,
                          OpId op, double of[OP_MAX_LOOPS], int8_t loop)
{
    bool known;
    if (!memo || pricing->key == 0)
        return line_of_kernels(pricing, graph, op, of, loop);
    KernelEntry *kept = memo_find(memo, pricing, graph, op, of, loop, &known);
    if (!known)
        kept->line = line_of_kernels(pricing, graph, op, of, loop);
    return kept->line;
}

static SimFitted work_of_kernels(SimMemo *memo, const KernelPricing *pricing,
                                 const DeviceType *type, const Graph *graph, OpId id,
                                 const Rule *rule, const Form *batch, double part)
{
    double of[OP_MAX_LOOPS];
    if (!parts_of(graph, id, batch, part, of))
        return (SimFitted){0};
    if (rule->loop < 0)
        return (SimFitted){.flops =
                               type->rate * memo_kernels_s(memo, pricing, graph, id, of)};
    const TimeLine line = memo_line(memo, pricing, graph, id, of, rule->loop);
    return (SimFitted){.overhead_s = line.fixed,
                       .flops_sharded = type->rate * line.slope};
}

/* Fills in the work in the costs of each fitted device type. */
static void fit_work(SimMemo *memo, const Graph *graph, const ClusterView *view, OpId id,
                     const Rule *rule, const Form *batch, double part, SimWork *work)
{
    const Op *op = graph_get_op(graph, id);
    const Numbers numbers = graph_op_numbers(graph, id);
    double whole, sharded;
    work_operand_bytes(graph, id, rule, batch, part, &whole, &sharded);
    values_at (const DeviceType *, type, f, view->fitted, view->n_fitted) {
        const OpCost *cost = device_type_cost(type, op->kind);
        if (view->pricing[f].device) {
            work->fitted[f] = work_of_kernels(memo, &view->pricing[f], type, graph, id,
                                              rule, batch, part);
            continue;
        }
        const double faster =
            type->rates[numbers] > 0 ? type->rates[numbers] / type->rate : 1;
        if (!cost) {
            work->fitted[f] =
                (SimFitted){0, work->flops / faster, work->flops_sharded / faster};
            continue;
        }
        const double rate = cost->rate * faster;
        work->fitted[f] = (SimFitted){
            .overhead_s = cost->overhead_s,
            .flops = type->rate * (work->flops / rate + whole / cost->bandwidth),
            .flops_sharded =
                type->rate * (work->flops_sharded / rate + sharded / cost->bandwidth)};
        add_wave(graph, type, op, rule, batch, part, rate, work, &work->fitted[f]);
        if (cost->fill > 0 && isfinite(rate))
            add_fill(graph, type, op, rule, batch, part, rate, &work->fitted[f]);
    }
}

/* The same of an op with measured times: of each type the line below its curve that is best where
 * all devices have as much; on single GPUs what is not sharded takes its time exactly. A device of
 * several GPUs gives each an even part. */
static void time_work(const Graph *graph, const ClusterView *view, OpId id,
                      const Rule *rule, double part, SimWork *work)
{
    const OpTimes *times = graph_op_times(graph, id);
    const double samples = graph_op_samples(graph, id) * part;
    const bool sharded = rule->loop >= 0;
    *work = (SimWork){.times = times};
    *(sharded ? &work->samples_sharded : &work->samples) = samples;
    for (uint32_t f = 0; f < view->n_fitted; f++) {
        const TimeCurve *curve = op_times_of(times, view->fitted[f]->name);
        if (!curve)
            continue; /* of a type that no device is of */
        const TimeLine line = time_curve_line(
            curve, samples, samples / view->n_devices / view->device[0].gpus);
        const double flops = line.slope * samples * view->fitted[f]->rate;
        const bool exact = !sharded && view->granularity == GRANULARITY_GPU;
        const double above =
            exact ? time_curve_at(curve, samples) - line.fixed - line.slope * samples : 0;
        work->fitted[f] = (SimFitted){.overhead_s = line.fixed + above,
                                      .flops = sharded ? 0 : flops,
                                      .flops_sharded = sharded ? flops : 0};
    }
}

void sim_work_op(SimMemo *memo, const Graph *graph, const ClusterView *view, OpId op,
                 const Rule *rule, SimWork *work)
{
    sim_work_part(memo, graph, view, op, rule, (SimOpShare){NULL, 1, 1}, work);
}

void sim_work_part(SimMemo *memo, const Graph *graph, const ClusterView *view, OpId op,
                   const Rule *rule, SimOpShare has, SimWork *work)
{
    const Op *o = graph_get_op(graph, op);
    if (graph_is_timed(graph)) {
        *work = (SimWork){.seconds = o->seconds};
    } else if (graph_op_times(graph, op)) {
        time_work(graph, view, op, rule, has.form ? has.part : 1, work);
    } else {
        const double all = has.form ? has.part : 1;
        *work = (SimWork){.flops = rule->flops_replicated * all,
                          .flops_sharded = rule->flops_sharded * all};
        if (view->n_fitted > 0)
            fit_work(memo, graph, view, op, rule, has.form, has.part, work);
    }
    sim_work_inner(graph, op, rule, work);
}

void sim_work_inner(const Graph *graph, OpId op, const Rule *rule, SimWork *work)
{
    const Op *o = graph_get_op(graph, op);
    for (uint32_t i = 0; i < o->n_out; i++) {
        const Tensor *tensor = graph_tensor(graph, o->out[i]);
        if (graph_is_parameter_gradient(graph, o->out[i]) &&
            graph_gradient(graph, tensor->of) == o->out[i])
            add_message(work, tensor, rule->form[o->n_in + i]);
    }
    if (o->pass != PASS_UPDATE)
        return;
    for (uint32_t i = 0; i < o->n_in; i++) {
        const Tensor *tensor = graph_tensor(graph, o->in[i]);
        if (graph_is_parameter_gradient(graph, o->in[i]))
            add_message(work, tensor, rule->form[i]);
    }
}

void sim_work_scale(SimWork *work, const ClusterView *view, double factor)
{
    KILTER_ASSERT(factor >= 0 && isfinite(factor));
    if (factor == 1)
        return;
    work->flops *= factor;
    work->flops_sharded *= factor;
    work->samples *= factor;
    work->samples_sharded *= factor;
    for (uint32_t f = 0; f < view->n_fitted; f++) {
        work->fitted[f].flops *= factor;
        work->fitted[f].flops_sharded *= factor;
    }
}

void sim_work_collective(const Graph *graph, Collective kind, TensorId tensor, Form from,
                         Form to, SimWork *work)
{
    KILTER_ASSERT(form_inside(from) < FORM_MAX && form_inside(to) < FORM_MAX);
    const Tensor *t = graph_tensor(graph, tensor);
    *work = (SimWork){0};
    if (!sim_is_priced(kind) || graph_is_parameter_gradient(graph, tensor))
        return;
    if (t->role != ROLE_PARAMETER && t->role != ROLE_OPTIMIZER && t->role != ROLE_UPDATED)
        add_message(work, t, from);
    add_message(work, t, to);
}

static double measured_s(const SimWork *work, const Device *device, double share)
{
    const TimeCurve *curve = op_times_of(work->times, device->type_name);
    g_assert(curve); /* cluster_check_times */
    return device->stretch *
           time_curve_at(curve,
                         (work->samples + work->samples_sharded * share) / device->gpus);
}

static double inner_s(const SimWork *work, const Device *device, double share)
{
    const double g = device->gpus;
    const double bytes = work->inner_bytes + work->inner_bytes_sharded * share;
    return device->gpus == 1 ? 0
                             : work->inner_messages * device->inner.latency_s +
                                   (g - 1) / g * bytes / device->inner.bandwidth;
}

double sim_work_s(const SimWork *work, const Device *device, double share)
{
    KILTER_ASSERT(share >= 0 && device->gpus > 0);
    const SimFitted plain = {0, work->flops, work->flops_sharded};
    const SimFitted *own = device->fitted ? &work->fitted[device->fitted - 1] : &plain;
    const double flops = own->flops + own->flops_sharded * share;
    /* A device of rate 0 may have nothing to compute. */
    const double seconds = work->times
                               ? measured_s(work, device, share)
                               : work->seconds + own->overhead_s * device->stretch +
                                     (flops == 0 ? 0 : flops / device->rate);
    return seconds + inner_s(work, device, share);
}

/* --- exact times --- */

double sim_kernels_s(SimMemo *memo, const Graph *graph, OpId op, const Device *device,
                     const double of[OP_MAX_LOOPS])
{
    for (uint32_t l = 0; l < OP_MAX_LOOPS; l++)
        if (of[l] <= 0)
            return 0;
    return memo_kernels_s(memo, device->kernels, graph, op, of) * device->stretch;
}

double sim_op_s(SimMemo *memo, const Graph *graph, const ClusterView *view, OpId op,
                const Rule *rule, SimOpShare has, const Device *device)
{
    SimWork work = {0};
    double of[OP_MAX_LOOPS];
    if (!device->kernels || graph_is_timed(graph) || graph_op_times(graph, op)) {
        sim_work_part(memo, graph, view, op, rule, has, &work);
        return sim_work_s(&work, device, has.share);
    }
    sim_work_inner(graph, op, rule, &work);
    parts_of(graph, op, has.form, has.part, of);
    if (rule->loop >= 0)
        of[rule->loop] *= has.share / device->gpus;
    const double whole = rule->loop >= 0 ? 1 : 1.0 / device->gpus;
    return whole * sim_kernels_s(memo, graph, op, device, of) +
           inner_s(&work, device, has.share);
}
