/* Work of one instruction: FLOPs (equation 2) and inner communication (equation 3) of
 * sim/sim.h. */
#include "sim/step.h"

/* One inner message of the bytes of `tensor` that a device holds in `form`. */
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

void sim_work_op(const Graph *graph, OpId op, const Rule *rule, SimWork *work)
{
    const Op *o = graph_get_op(graph, op);

    if (graph_is_timed(graph))
        *work = (SimWork){.seconds = o->seconds};
    else
        *work = (SimWork){.flops = rule->flops_replicated,
                          .flops_sharded = rule->flops_sharded};
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

void sim_work_collective(const Graph *graph, Collective kind, TensorId tensor, Form from,
                         Form to, SimWork *work)
{
    const Tensor *t = graph_tensor(graph, tensor);

    *work = (SimWork){0};
    if (!sim_is_priced(kind) || is_parameter_gradient(graph, t))
        return;
    if (t->role != ROLE_PARAMETER && t->role != ROLE_OPTIMIZER && t->role != ROLE_UPDATED)
        add_message(work, t, from);
    add_message(work, t, to);
}

double sim_work_s(const SimWork *work, const Device *device, double share)
{
    const double flops = work->flops + work->flops_sharded * share;
    /* A device of rate 0 may have nothing to compute. */
    double seconds = work->seconds + (flops == 0 ? 0 : flops / device->rate);

    if (device->gpus > 1) {
        const double g = device->gpus;
        const double bytes = work->inner_bytes + work->inner_bytes_sharded * share;
        seconds += work->inner_messages * device->inner.latency_s +
                   (g - 1) / g * bytes / device->inner.bandwidth;
    }
    return seconds;
}
