/* Whether a plan stays within the measured sizes of a calibrated cluster. */
#include "experiments/calibration/calibrated.h"

/* Sizes are measured in steps: half of the smallest and twice the largest are still known. */
static bool is_outside(double bytes, double smallest, double largest)
{
    const double step = 2;
    return largest > 0 && (bytes < smallest / step || bytes > largest * step);
}

static double share_of(const Plan *plan, uint32_t segment, uint32_t units,
                       uint32_t device)
{
    const Split *split =
        plan_find_split(plan, &(Split){.segment = segment, .units = units});
    return split ? (double)split->count[device] / units
                 : plan->ratio[(size_t)segment * plan->n_devices + device];
}

/* Bytes of a computation's operands on one device. */
static double bytes_on(const Plan *plan, const Graph *graph, const Instr *instr,
                       uint32_t device)
{
    const Op *op = graph_get_op(graph, instr->op);
    double bytes = 0;
    for (uint32_t i = 0; i < op->n_in + op->n_out; i++) {
        const uint32_t cut = op_cut_with(op, instr->form, i);
        const Tensor *t =
            graph_tensor(graph, cut < op->n_in ? op->in[cut] : op->out[cut - op->n_in]);
        const Form form = instr->form[cut];
        bytes += (double)graph_op_bytes(graph, instr->op, i) *
                 (form_is_gather(form) ? share_of(plan, plan->segment[instr->op],
                                                  t->units[form_dim(form)], device)
                                       : 1);
    }
    return bytes;
}

static bool compute_outside(const Plan *plan, const Graph *graph, const ClusterView *view,
                            const Instr *instr)
{
    items_at (const Device, device, j, view->device, view->n_devices) {
        /* A type counts as fitted, without any op, if its half-precision rate is given. */
        const DeviceType *type = device->fitted ? view->fitted[device->fitted - 1] : NULL;
        if (!type || !type->op)
            continue;
        const OpCost *cost = &type->op[graph_get_op(graph, instr->op)->kind];
        if (is_outside(bytes_on(plan, graph, instr, j), cost->smallest, cost->largest))
            return true;
    }
    return false;
}

uint32_t calibrated_outside(const Plan *plan, const Graph *graph, const ClusterView *view)
{
    uint32_t n = 0;
    items_each (const Instr, instr, plan->program->instr, plan->program->n) {
        if (instr->kind == INSTR_COMPUTE) {
            n += compute_outside(plan, graph, view, instr);
        } else if (instr->kind == INSTR_COLLECTIVE &&
                   instr->collective < (Collective)COLLECTIVES_PRICED) {
            const CollectivePieces *pieces = &view->pieces[instr->collective];
            n += is_outside((double)tensor_bytes(graph_tensor(graph, instr->tensor)),
                            pieces->smallest, pieces->largest);
        }
    }
    return n;
}
