/* Charges for memory: seconds per byte held at each point of an iteration, in a box of ratios, and
 * the forward op that pays for a tensor that the backward reads. */
#include "synth/spmd/backward.h"
#include "synth/spmd/price_parts.h"

#include <math.h>

/* Places of weights, the least weight first. */
static int weight_order(const void *a, const void *b, void *weight)
{
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const double *w = weight;
    return w[i] < w[j] || (w[i] == w[j] && i < j) ? -1 : 1;
}

/* The least sum_j weight_j B_j in the box: the free share goes to the devices of least weight. */
static double least_mean(const ClusterView *view, const double *lo, const double *hi,
                         const double *weight)
{
    double sum = 0, rest = 1;
    g_autofree uint32_t *order = g_new(uint32_t, view->n_devices);
    for (uint32_t j = 0; j < view->n_devices; j++) {
        sum += weight[j] * lo[j];
        rest -= lo[j];
        order[j] = j;
    }
    g_qsort_with_data(order, (gint)view->n_devices, sizeof *order, weight_order,
                      (gpointer)weight);
    for (uint32_t k = 0; k < view->n_devices && rest > 0; k++) {
        const double more = fmin(rest, hi[order[k]] - lo[order[k]]);
        rest -= more;
        sum += weight[order[k]] * more;
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

/* Marks `op` as the payer of `tensor` if its backward reads the tensor and the tensor's buffer is
 * not paid for yet. */
static void find_saver(Pricer *pricer, OpId op, uint32_t n, const OpId *backward,
                       TensorId tensor, bool *paid)
{
    KILTER_ASSERT(n <= MAX_BACKWARD);
    const Graph *graph = pricer->graph;
    TensorId buffer = graph_viewed(graph, tensor);
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
    for (uint32_t o = 0; o < b->n_out && backward_makes_beside(graph, backward); o++)
        if (!graph_is_held(graph, graph_tensor(graph, b->out[o])))
            bytes += (double)tensor_bytes(graph_tensor(graph, b->out[o]));
    return bytes;
}

/* The op at which activations weigh most if all of them are whole. */
static OpId find_fullest(const Graph *graph, const OpId *saver)
{
    OpId fullest = 0;
    double most = -1, saved = 0;
    g_autofree double *paid = g_new0(double, graph_n_ops(graph));
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        if (saver[t] != GRAPH_NONE)
            paid[saver[t]] += (double)tensor_bytes(graph_tensor(graph, t));
    ops_each (op, id, graph) {
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
    ops_each (op, id, graph) {
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

void pricer_charge(Pricer *pricer, const double *lo, const double *hi,
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

double price_memory(const Pricer *pricer, SynthPoint point, TensorId tensor, Form form)
{
    KILTER_ASSERT(point < SYNTH_POINTS && form < FORM_MAX);
    if (!pricer->charges)
        return 0;
    const SynthBytes *c = &pricer->charge[point];
    const Tensor *t = graph_tensor(pricer->graph, tensor);
    bool held = graph_is_held(pricer->graph, t);
    double charge = form_is_gather(form) ? (held ? c->held_sharded : c->divided_sharded)
                                         : (held ? c->held : c->divided);
    return charge * (double)tensor_bytes(t);
}
