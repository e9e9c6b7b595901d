/* Which forward ops run again, and when. */
#include "synth/tag/again.h"

#include "data/base/free.h"
#include "synth/pipeline/pipeline.h"

struct TagAgain {
    const Graph *graph;
    const TagWork *work;
    const TagPlacement *placement;
    bool *read; /* [tensor]: a forward op reads it */
    bool *done; /* [op]: it ran again, or is to */
    GArray *ops;
};

TagAgain *tag_again_new(const TagWork *work, const TagPlacement *placement)
{
    g_assert(work->recompute);
    TagAgain *again = g_new0(TagAgain, 1);
    again->graph = work->graph;
    again->work = work;
    again->placement = placement;
    again->read = synth_forward_reads(work->graph);
    again->done = g_new0(bool, graph_n_ops(work->graph) + 1);
    again->ops = g_array_new(FALSE, FALSE, sizeof(OpId));
    return again;
}

FREE_DEFINE(tag_again_free, TagAgain, again, free_each(again->read, again->done),
            g_array_unref(again->ops));

/* Whether an op may run again for an op of the backward pass: on the same devices, on the batch,
 * and without a sum over it. */
static bool repeats(const TagAgain *again, OpId id, OpId reader)
{
    const Op *op = graph_get_op(again->graph, id);
    const BatchForms *batch = again->work->batch;
    if (op->pass != PASS_FORWARD || again->done[id] || batch->loop[id] < 0 ||
        again->placement->group[id] != again->placement->group[reader])
        return false;
    for (uint32_t o = 0; o < op->n_out; o++)
        if (batch->form[op->out[o]] == FORM_REDUCE ||
            graph_tensor(again->graph, op->out[o])->role == ROLE_LOSS)
            return false;
    return true;
}

/* Adds an op after those of its layer that it reads. */
static void add_full(TagAgain *again, OpId id)
{
    const Op *op = graph_get_op(again->graph, id);
    again->done[id] = true;
    for (uint32_t i = 0; i < op->n_in; i++) {
        const OpId by = graph_tensor(again->graph, op->in[i])->producer;
        if (by != GRAPH_NONE && graph_get_op(again->graph, by)->layer == op->layer &&
            repeats(again, by, id))
            add_full(again, by);
    }
    g_array_append_val(again->ops, id);
}

const GArray *tag_again_before(TagAgain *again, OpId reader)
{
    const Op *op = graph_get_op(again->graph, reader);
    g_array_set_size(again->ops, 0);
    for (uint32_t i = 0; op->pass == PASS_BACKWARD && i < op->n_in; i++) {
        const OpId by = graph_tensor(again->graph, op->in[i])->producer;
        if (by == GRAPH_NONE || !repeats(again, by, reader))
            continue;
        const uint32_t layer = graph_get_op(again->graph, by)->layer;
        const Recompute mode = again->work->recompute[layer];
        if (mode == RECOMPUTE_FULL && layer == op->layer) {
            add_full(again, by);
        } else if (mode == RECOMPUTE_SELECTIVE && !again->read[op->in[i]] &&
                   synth_makes_inner(again->graph, again->read, by)) {
            again->done[by] = true;
            g_array_append_val(again->ops, by);
        }
    }
    return again->ops;
}
