/* Instructions of the inner program on groups with shards, and the conversions that their operands
 * need.
 *
 * A conversion is made right before the first instruction of a stage's pass on a microbatch that
 * needs it, and again in the backward: gathered tensors are not kept. Results of an all-to-all are
 * kept, unless their layer is computed again. */
#include "synth/pipeline/build.h"

uint32_t pipeline_view(const Builder *b, uint32_t group, uint8_t view)
{
    return view == VIEW_EXPERTS ? b->experts[group] : group;
}

Collective pipeline_conversion(Form from, Form to)
{
    return from == FORM_IDENTITY                        ? COLLECTIVE_SLICE
           : from == FORM_REDUCE && to == FORM_IDENTITY ? COLLECTIVE_ALL_REDUCE
           : from == FORM_REDUCE                        ? COLLECTIVE_REDUCE_SCATTER
           : to == FORM_IDENTITY                        ? COLLECTIVE_ALL_GATHER
                                                        : COLLECTIVE_ALL_TO_ALL;
}

void pipeline_convert(Builder *b, uint32_t group, TensorId tensor, Form inside, Form from,
                      Form to, uint32_t microbatch)
{
    const Collective kind = pipeline_conversion(from, to);
    if (from != to)
        pipeline_append(b,
                        (Instr){.kind = INSTR_COLLECTIVE,
                                .stream = kind < (Collective)COLLECTIVES_PRICED,
                                .collective = kind,
                                .tensor = tensor,
                                .from = form_over(inside, from, FORM_IDENTITY),
                                .to = form_over(inside, to, FORM_IDENTITY)},
                        group, microbatch);
}

void pipeline_regroup(Builder *b, uint32_t from_group, uint32_t to_group, TensorId tensor,
                      Form from, Form to, uint32_t microbatch)
{
    pipeline_append(b,
                    (Instr){.kind = INSTR_TRANSFER,
                            .tensor = tensor,
                            .to_group = (uint16_t)to_group,
                            .from = from,
                            .to = to},
                    from_group, microbatch);
}

/* A tensor on its way between views of a stage's devices. */
typedef struct {
    uint32_t alone,
        microbatch; /* alone: the group whose devices have samples of their own */
    TensorId tensor;
    Form inside;
} Crossing;

/* Takes the tensor from its form over the shards of a group to devices alone, or back. */
static void convert_take(Builder *b, const Crossing *c, uint32_t group, Form form,
                         bool back)
{
    const Form batch = b->batch->form[c->tensor],
               own = form_is_gather(batch) ? batch : FORM_IDENTITY,
               at = form_over(c->inside, own, FORM_IDENTITY);
    if (group == c->alone)
        return;
    if (back)
        pipeline_regroup(b, c->alone, group, c->tensor, c->inside, at, c->microbatch);
    pipeline_convert(b, group, c->tensor, c->inside, back ? own : form, back ? form : own,
                     c->microbatch);
    if (!back)
        pipeline_regroup(b, group, c->alone, c->tensor, at, c->inside, c->microbatch);
}

/* Moves a tensor from the group of a pipeline's stage to the group of its experts, or back. */
static void cross(Builder *b, Crossing crossing, uint32_t from, Form have, uint32_t to,
                  Form want)
{
    crossing.alone = program_add_shards(b->program, (uint16_t)from, 1);
    convert_take(b, &crossing, from, have, false);
    convert_take(b, &crossing, to, want, true);
}

/* Converts operand k of a computation to the form that it needs over the shards. */
static void convert_prepare(Builder *b, uint32_t i, uint32_t k, uint32_t microbatch)
{
    const Instr *instr = &b->inner->instr[i];
    const TensorId t = graph_get_op(b->graph, instr->op)->in[k];
    const uint8_t view = b->view[instr->op];
    const uint32_t group = group_at(b, i), home = pipeline_view(b, group, b->home[t]),
                   at = pipeline_view(b, group, view),
                   part = form_is_gather(b->batch->form[t]) ? microbatch
                                                            : (uint32_t)PROGRAM_WHOLE;
    const Form from = pipeline_held(b, home, t),
               to = pipeline_over(b, at, b->need[instr->op * OP_MAX_IN + k]);
    if (from == to && home == at)
        return;
    const gint64 key = ((((gint64)t * b->pipeline->n_groups + group) << 16 | part) << 8) |
                       form_inside(instr->form[k]) << 4 | to << 1 | view;
    const guint done = GPOINTER_TO_UINT(g_hash_table_lookup(b->converted, &key));
    /* The backward keeps what went through an all-to-all, unless it is made again. */
    const bool kept =
        done && (home != at || (form_is_gather(from) && form_is_gather(to))) &&
        !pipeline_exchanged_again(b, t, b->place[pipeline_maker(b, i, k)].layer);
    if (kept || (done && done == b->pass + 1))
        return;
    g_hash_table_insert(b->converted, g_memdup2(&key, sizeof key),
                        GUINT_TO_POINTER(b->pass + 1));
    if (home == at)
        pipeline_convert(b, at, t, form_inside(instr->form[k]), from, to, part);
    else
        cross(b, (Crossing){0, part, t, form_inside(instr->form[k])}, home, from, at, to);
}

void pipeline_run(Builder *b, uint32_t i, uint32_t microbatch)
{
    Instr instr = b->inner->instr[i];
    const uint32_t group = group_at(b, i);
    if (!b->made) {
        pipeline_append(b, instr, group, microbatch);
        return;
    }
    if (instr.kind != INSTR_COMPUTE) {
        const uint32_t home = pipeline_view(b, group, b->home[instr.tensor]);
        const Form held = pipeline_held(b, home, instr.tensor);
        instr.from = form_over(instr.from, held, 0);
        instr.to = form_over(instr.to, held, 0);
        pipeline_append(b, instr, home, microbatch);
        return;
    }
    const Op *op = graph_get_op(b->graph, instr.op);
    const uint32_t at = pipeline_view(b, group, b->view[instr.op]);
    for (uint32_t k = 0; k < op->n_in; k++) {
        if (op->pass != PASS_UPDATE) /* an update's gradient was summed for it */
            convert_prepare(b, i, k, microbatch);
        instr.form[k] = form_over(
            instr.form[k], pipeline_over(b, at, b->need[instr.op * OP_MAX_IN + k]), 0);
    }
    for (uint32_t o = 0; o < op->n_out; o++)
        instr.form[op->n_in + o] =
            form_over(instr.form[op->n_in + o],
                      pipeline_over(b, at, b->gives[instr.op * OP_MAX_OUT + o]), 0);
    pipeline_append(b, instr, at, microbatch);
    values_at (const TensorId, t, o, op->out, op->n_out) {
        const uint32_t home = pipeline_view(b, group, b->home[t]);
        const Form inside = b->inner->instr[i].form[op->n_in + o],
                   gives = pipeline_over(b, at, b->gives[instr.op * OP_MAX_OUT + o]),
                   held = pipeline_held(b, home, t);
        if (home != at)
            cross(b, (Crossing){0, microbatch, t, inside}, at, gives, home, held);
        else if (b->batch->form[t] != FORM_REDUCE) /* a sum is complete after the last */
            pipeline_convert(b, at, t, inside, gives, held, microbatch);
    }
}
