/* Sums over replicas that strategies cannot avoid: those of parameters' gradients, and those that
 * ops wait for. */
#include "synth/tag/rows.h"

bool tag_rows_is_summed(const TagBound *b, OpId op, TensorId out)
{
    const Graph *graph = b->work->graph;
    return b->work->batch->loop[op] >= 0 && b->work->batch->form[out] == FORM_REDUCE &&
           graph_is_parameter_gradient(graph, out) &&
           graph_gradient(graph, graph_tensor(graph, out)->of) == out;
}

bool *tag_rows_find_waited(const TagBound *b)
{
    const Graph *graph = b->work->graph;
    const BatchForms *batch = b->work->batch;
    bool *waited = g_new0(bool, graph_n_tensors(graph) + 1);
    ops_each (op, id, graph) {
        for (uint32_t i = 0; batch->loop[id] >= 0 && i < op->n_in; i++) {
            const OpId by = graph_tensor(graph, op->in[i])->producer;
            waited[op->in[i]] |= by != GRAPH_NONE && batch->loop[by] >= 0 &&
                                 batch->form[op->in[i]] == FORM_REDUCE &&
                                 !tag_rows_is_summed(b, by, op->in[i]);
        }
    }
    return waited;
}

double tag_rows_wait(const TagBound *b, TensorId tensor, uint16_t group, uint32_t action)
{
    const bool served = b->space->action[action].option == TAG_PS &&
                        graph_tensor(b->work->graph, tensor)->role == ROLE_GRADIENT;
    if (!b->waited || !b->waited[tensor] || b->space->group[group].n_replicas == 1)
        return 0;
    return served ? sim_quick_served_s(b->quick, group, tensor)
                  : sim_quick_sum_s(b->quick, group, tensor);
}
