/* Work of one instruction: FLOPs (equation 2) and inner communication (equation 3) of
 * sim/sim.h. */
#include <math.h>

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

static bool is_parameter_gradient(const Graph *graph, const Tensor *tensor)
{
    return tensor->role == ROLE_GRADIENT && tensor->of != GRAPH_NONE &&
           graph_tensor(graph, tensor->of)->role == ROLE_PARAMETER;
}

/* Bytes of the op's operands in their forms; only the part `part` of operands that `batch` cuts. */
static void operand_bytes(const Graph *graph, OpId id, const Rule *rule,
                          const Form *batch, double part, double *whole, double *sharded)
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

/* Adds the time in which an output's tiles are filled and written (data/cluster/cluster.h): that of a sharded output is
 * sharded, too; a device that sums over its share has whole tiles. */
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

/* Fills in the work in the costs of each fitted device type. */
static void fit_work(const Graph *graph, const ClusterView *view, OpId id,
                     const Rule *rule, const Form *batch, double part, SimWork *work)
{
    const Op *op = graph_get_op(graph, id);
    const Numbers numbers = graph_op_numbers(graph, id);
    double whole, sharded;

    operand_bytes(graph, id, rule, batch, part, &whole, &sharded);
    for (uint32_t f = 0; f < view->n_fitted; f++) {
        const DeviceType *type = view->fitted[f];
        const OpCost *cost = device_type_cost(type, op->kind);
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

/* The same of an op with measured times: of each type the line below its curve that is best where all devices have as
 * much; on single GPUs what is not sharded takes its time exactly. A device of several GPUs gives each an even part. */
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

void sim_work_op(const Graph *graph, const ClusterView *view, OpId op, const Rule *rule,
                 SimWork *work)
{
    sim_work_part(graph, view, op, rule, NULL, 1, work);
}

void sim_work_part(const Graph *graph, const ClusterView *view, OpId op, const Rule *rule,
                   const Form *batch, double part, SimWork *work)
{
    const Op *o = graph_get_op(graph, op);

    if (graph_is_timed(graph)) {
        *work = (SimWork){.seconds = o->seconds};
    } else if (graph_op_times(graph, op)) {
        time_work(graph, view, op, rule, batch ? part : 1, work);
    } else {
        const double all = batch ? part : 1;
        *work = (SimWork){.flops = rule->flops_replicated * all,
                          .flops_sharded = rule->flops_sharded * all};
        if (view->n_fitted > 0)
            fit_work(graph, view, op, rule, batch, part, work);
    }
    for (uint32_t i = 0; i < o->n_out; i++) {
        const Tensor *tensor = graph_tensor(graph, o->out[i]);
        if (is_parameter_gradient(graph, tensor) &&
            graph_gradient(graph, tensor->of) == o->out[i])
            add_message(work, tensor, rule->form[o->n_in + i]);
    }
    if (o->pass != PASS_UPDATE)
        return;
    for (uint32_t i = 0; i < o->n_in; i++) {
        const Tensor *tensor = graph_tensor(graph, o->in[i]);
        if (is_parameter_gradient(graph, tensor))
            add_message(work, tensor, rule->form[i]);
    }
}

void sim_work_scale(SimWork *work, const ClusterView *view, double factor)
{
    KILTER_ASSERT(factor >= 0 && factor <= 1);
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
    if (!sim_is_priced(kind) || is_parameter_gradient(graph, t))
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

double sim_work_s(const SimWork *work, const Device *device, double share)
{
    KILTER_ASSERT(share >= 0 && device->gpus > 0);
    const SimFitted plain = {0, work->flops, work->flops_sharded};
    const SimFitted *own = device->fitted ? &work->fitted[device->fitted - 1] : &plain;
    const double flops = own->flops + own->flops_sharded * share;
    /* A device of rate 0 may have nothing to compute. */
    double seconds = work->times ? measured_s(work, device, share)
                                 : work->seconds + own->overhead_s * device->stretch +
                                       (flops == 0 ? 0 : flops / device->rate);

    if (device->gpus > 1) {
        const double g = device->gpus;
        const double bytes = work->inner_bytes + work->inner_bytes_sharded * share;
        seconds += work->inner_messages * device->inner.latency_s +
                   (g - 1) / g * bytes / device->inner.bandwidth;
    }
    return seconds;
}
