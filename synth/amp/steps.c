/* Reading the steps of layers off a program. */
#include "synth/amp/steps.h"

#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "data/base/order.h"
#include "sim/sim.h"

/* --- reading a program --- */

/* A step and the instruction it comes from. */
typedef struct {
    AmpStep step;
    uint32_t instr;
} Numbered;

typedef struct {
    const AmpModel *model;
    const Graph *graph;
    const ClusterView *view;
    const Program *program;
    const BatchForms *batch;
    const uint32_t *layer; /* [tensor] */
    AmpSteps *steps;
    GArray *found;   /* Numbered, in the order of the program */
    uint32_t *maker; /* [tensor * FORM_MAX + form]: the step that made it */
    bool backward;   /* the program has come to the backward pass */
    SimMemo *memo;
} Reading;

static uint32_t *amp_maker_of(const Reading *r, TensorId tensor, Form form)
{
    KILTER_ASSERT(tensor < graph_n_tensors(r->graph) && form < FORM_MAX);
    return &r->maker[(size_t)tensor * FORM_MAX + form];
}

static const AmpStep *amp_step_at(const Reading *r, uint32_t i)
{
    KILTER_ASSERT(i < r->found->len);
    return &g_array_index(r->found, Numbered, i).step;
}

static uint32_t amp_add_step(Reading *r, AmpStep step, uint32_t instr)
{
    const Numbered numbered = {step, instr};
    g_array_append_val(r->found, numbered);
    return r->found->len - 1;
}

static AmpPass pass_of(const Op *op)
{
    return op->pass == PASS_UPDATE     ? AMP_UPDATE
           : op->pass == PASS_BACKWARD ? AMP_BACKWARD
                                       : AMP_FORWARD;
}

/* Index of an equal element, added if there is none. */
static uint32_t find_kind(GArray *kinds, const void *kind, size_t size)
{
    for (uint32_t i = 0; i < kinds->len; i++)
        if (memcmp(kinds->data + i * size, kind, size) == 0)
            return i;
    g_array_append_vals(kinds, kind, 1);
    return kinds->len - 1;
}

/* Reads the gradients that replicas all-reduce: those that updates read. */
static void amp_read_gradients(Reading *r, const Instr *instr)
{
    const Op *op = graph_get_op(r->graph, instr->op);
    for (uint32_t i = 0; i < op->n_in; i++) {
        const Tensor *tensor = graph_tensor(r->graph, op->in[i]);
        if (tensor->role != ROLE_GRADIENT)
            continue;
        const double bytes = (double)tensor_bytes(tensor);
        const bool cut = form_is_gather(instr->form[i]);
        const uint32_t by = *amp_maker_of(r, op->in[i], instr->form[i]);
        const AmpGradientKind kind = {cut ? 0 : bytes, cut ? bytes : 0};
        const AmpGradient gradient = {
            by, find_kind(r->steps->gradient_kind, &kind, sizeof kind)};
        if (by != AMP_NO_STEP)
            g_array_append_val(r->steps->gradient, gradient);
    }
}

static void read_compute(Reading *r, uint32_t k)
{
    const Instr *instr = &r->program->instr[k];
    const Op *op = graph_get_op(r->graph, instr->op);
    AmpStep step = {
        .pass = pass_of(op), .layer = op->layer, .after = AMP_NO_STEP, .op = instr->op};
    for (uint32_t i = 0; i < op->n_in; i++) {
        const uint32_t by = *amp_maker_of(r, op->in[i], instr->form[i]);
        if (by != AMP_NO_STEP && amp_step_at(r, by)->is_message &&
            amp_step_at(r, by)->pass == step.pass)
            step.after = step.after == AMP_NO_STEP ? by : MAX(step.after, by);
    }
    if (step.pass == AMP_UPDATE) {
        step.layer = r->layer[op->in[0]];
        amp_read_gradients(r, instr);
    }
    r->backward |= step.pass == AMP_BACKWARD;
    const uint32_t made = amp_add_step(r, step, k);
    for (uint32_t i = 0; i < op->n_out; i++)
        *amp_maker_of(r, op->out[i], instr->form[op->n_in + i]) = made;
}

static void read_collective(Reading *r, uint32_t k)
{
    const Instr *instr = &r->program->instr[k];
    const uint32_t by = *amp_maker_of(r, instr->tensor, instr->from);
    uint32_t *made = amp_maker_of(r, instr->tensor, instr->to);
    if (instr->collective >= (Collective)COLLECTIVES_PRICED) {
        *made = by;
        return;
    }
    const double bytes = (double)tensor_bytes(graph_tensor(r->graph, instr->tensor));
    const bool has_parts = form_is_gather(r->batch->form[instr->tensor]);
    AmpMessage message;
    memset(&message, 0, sizeof message); /* it is compared including its padding */
    message.collective = instr->collective;
    *(has_parts ? &message.sample_bytes : &message.bytes) =
        has_parts ? bytes / r->model->global_batch : bytes;
    const AmpStep step = {.pass = !has_parts    ? AMP_UPDATE
                                  : r->backward ? AMP_BACKWARD
                                                : AMP_FORWARD,
                          .layer = r->layer[instr->tensor],
                          .is_message = true,
                          .message =
                              find_kind(r->steps->message, &message, sizeof message),
                          .after = by,
                          .op = GRAPH_NONE};
    *made = amp_add_step(r, step, k);
}

/* Marks the steps of the backward that no other layer needs, directly or for other steps that it
 * needs. */
static void find_waiting(Reading *r)
{
    const uint32_t n = r->found->len;
    g_autofree bool *needed = g_new0(bool, n);
    memset(r->maker, 0xff,
           (size_t)graph_n_tensors(r->graph) * FORM_MAX * sizeof *r->maker);
    g_autofree uint32_t *by = g_new(uint32_t, (size_t)n * OP_MAX_IN);
    memset(by, 0xff, (size_t)n * OP_MAX_IN * sizeof *by);
    for (uint32_t at = 0, i = 0; at < r->program->n; at++) {
        const Instr *instr = &r->program->instr[at];
        const bool is_step = i < n && g_array_index(r->found, Numbered, i).instr == at;
        Operand use[OP_MAX_IN], make[OP_MAX_OUT];
        if (!is_step && instr->kind == INSTR_COLLECTIVE)
            *amp_maker_of(r, instr->tensor, instr->to) =
                *amp_maker_of(r, instr->tensor, instr->from);
        if (!is_step)
            continue;
        const uint32_t n_uses = instr_uses(instr, r->graph, use);
        const uint32_t n_makes = instr_makes(instr, r->graph, make);
        for (uint32_t k = 0; k < n_uses; k++)
            by[i * OP_MAX_IN + k] = *amp_maker_of(r, use[k].tensor, use[k].form);
        for (uint32_t k = 0; k < n_makes; k++)
            *amp_maker_of(r, make[k].tensor, make[k].form) = i;
        i++;
    }
    for (uint32_t i = n; i-- > 0;) {
        AmpStep *step = &g_array_index(r->found, Numbered, i).step;
        step->waits = step->pass == AMP_BACKWARD && !needed[i];
        for (uint32_t k = 0; step->pass == AMP_BACKWARD && k < OP_MAX_IN; k++) {
            const uint32_t maker = by[i * OP_MAX_IN + k];
            if (maker != AMP_NO_STEP)
                needed[maker] |= needed[i] || amp_step_at(r, maker)->layer != step->layer;
        }
    }
}

/* Counts what the waiting steps read, each tensor once: activations, and gradients of outputs. */
static void count_late(const Reading *r)
{
    const AmpModel *model = r->model;
    g_autofree bool *seen = g_new0(bool, graph_n_tensors(r->graph));
    array_each (const Numbered, at, r->found) {
        const Instr *instr = &r->program->instr[at->instr];
        if (!at->step.waits || instr->kind != INSTR_COMPUTE)
            continue;
        const Op *op = graph_get_op(r->graph, instr->op);
        values_at (const TensorId, t, k, op->in, op->n_in) {
            if (seen[t] || !form_is_gather(r->batch->form[t]))
                continue;
            seen[t] = true;
            const double bytes =
                (double)tensor_bytes(graph_tensor(r->graph, t)) / model->global_batch;
            for (uint32_t g = 0; g < model->n_degrees; g++)
                model->late[(size_t)g * model->n_layers + at->step.layer] +=
                    form_is_gather(instr->form[k]) ? bytes / model->degree[g] : bytes;
        }
    }
}

/* --- order and times --- */

static ORDER_DEFINE(by_place, Numbered, ASCENDING(step.pass), ASCENDING(step.layer),
                    ASCENDING(instr));

static void sort_steps(Reading *r)
{
    const uint32_t n = r->found->len;
    g_autofree uint32_t *place = g_new(uint32_t, r->program->n);
    g_autofree uint32_t *instr = g_new(uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        instr[i] = g_array_index(r->found, Numbered, i).instr;
    g_array_sort(r->found, by_place);
    for (uint32_t i = 0; i < n; i++)
        place[g_array_index(r->found, Numbered, i).instr] = i;
    for (uint32_t i = 0; i < n; i++) {
        AmpStep step = *amp_step_at(r, i);
        if (step.after != AMP_NO_STEP)
            step.after = place[instr[step.after]];
        g_array_append_val(r->steps->step, step);
    }
    array_each (AmpGradient, gradient, r->steps->gradient)
        gradient->step = place[instr[gradient->step]];
}

static size_t row(const AmpModel *model, uint32_t n_steps, uint32_t type, uint32_t degree,
                  uint32_t size)
{
    KILTER_ASSERT(type < model->n_types && degree < model->n_degrees &&
                  size < model->n_sizes);
    return (((size_t)type * model->n_degrees + degree) * model->n_sizes + size) * n_steps;
}

/* The part of an op that is computed by the one of so many devices that has most units of what they
 * divide: 2 of 4 heads where 3 devices share them. Of fewer units than devices they would divide
 * something else. */
static double amp_largest_part(const Reading *r, const Instr *instr, double degree)
{
    const Op *op = graph_get_op(r->graph, instr->op);
    double units = degree;
    for (uint32_t k = 0; k < op->n_in + op->n_out; k++) {
        const TensorId t = k < op->n_in ? op->in[k] : op->out[k - op->n_in];
        if (form_is_gather(instr->form[k]))
            units = graph_tensor(r->graph, t)->units[form_dim(instr->form[k])];
    }
    return units < degree ? 1 / degree : ceil(units / degree) / units;
}

/* Sets an op's times on devices of all types: for a part of the batch or, if the op runs once, for
 * the whole op. */
static void time_step(Reading *r, uint32_t i, const Instr *instr, const Device **device)
{
    const AmpModel *model = r->model;
    const uint32_t n = r->found->len;
    const int8_t loop = r->batch->loop[instr->op];
    Rule rule;
    if (!op_rule_find(r->graph, instr->op, instr->form, &rule))
        return;
    const bool by_batch = loop >= 0 && rule.loop == loop;
    const Form *form = loop >= 0 ? r->batch->form : NULL;
    for (uint32_t s = 0; s < model->n_sizes; s++) {
        const double part = model->size[s] / model->global_batch;
        values_at (const double, degree, g, model->degree, model->n_degrees) {
            const SimOpShare share = {form, part / (by_batch ? degree : 1),
                                      by_batch ? 1 : amp_largest_part(r, instr, degree)};
            for (uint32_t t = 0; t < model->n_types; t++)
                r->steps->time_s[row(model, n, t, g, s) + i] = sim_op_s(
                    r->memo, r->graph, r->view, instr->op, &rule, share, device[t]);
        }
    }
}

bool amp_computes_alike(const Graph *graph, const BatchForms *batch, const Instr *a,
                        const Instr *b)
{
    const Op *x = graph_get_op(graph, a->op), *y = graph_get_op(graph, b->op);
    bool alike = batch->loop[a->op] == batch->loop[b->op] &&
                 memcmp(a->form, b->form, (x->n_in + x->n_out) * sizeof *a->form) == 0;
    for (uint32_t i = 0; i < x->n_in; i++)
        alike &= batch->form[x->in[i]] == batch->form[y->in[i]];
    for (uint32_t i = 0; i < x->n_out; i++)
        alike &= batch->form[x->out[i]] == batch->form[y->out[i]];
    return alike;
}

/* Sets an op's times, which are those of the last op like it where that has the same forms. known:
 * [op], 1 + the step of the last one like it. */
static void time_step_once(Reading *r, uint32_t i, const Instr *instr,
                           const Device **device, uint32_t *known)
{
    uint32_t *last = &known[graph_op_alike(r->graph, instr->op)];
    const uint32_t n = r->found->len;
    const size_t rows =
        (size_t)r->model->n_types * r->model->n_degrees * r->model->n_sizes;
    const Instr *before =
        *last ? &r->program->instr[g_array_index(r->found, Numbered, *last - 1).instr]
              : NULL;
    if (before && amp_computes_alike(r->graph, r->batch, before, instr))
        for (size_t k = 0; k < rows; k++)
            r->steps->time_s[k * n + i] = r->steps->time_s[k * n + *last - 1];
    else
        time_step(r, i, instr, device);
    *last = i + 1;
}

static void time_steps(Reading *r)
{
    const AmpModel *model = r->model;
    const uint32_t n = r->found->len;
    AmpSteps *steps = r->steps;
    g_auto(DeviceKinds) kinds = amp_kinds(r->view);
    g_autofree const Device **device = g_new(const Device *, model->n_types);
    g_autofree uint32_t *known = g_new0(uint32_t, graph_n_ops(r->graph));
    steps->time_s =
        g_new0(double, (size_t)n * model->n_types * model->n_degrees * model->n_sizes);
    steps->launch_s = g_new0(double, (size_t)n * model->n_types);
    steps->collective_launch_s = g_new0(double, model->n_types);
    steps->transfer_launch_s = g_new0(double, model->n_types);
    for (uint32_t t = 0; t < model->n_types; t++)
        device[t] = &r->view->device[kinds.first[t]];
    for (uint32_t i = 0; i < n; i++) {
        const Instr *instr =
            &r->program->instr[g_array_index(r->found, Numbered, i).instr];
        const bool is_op = instr->kind == INSTR_COMPUTE;
        if (is_op)
            time_step_once(r, i, instr, device, known);
        for (uint32_t t = 0; t < model->n_types; t++)
            steps->launch_s[(size_t)t * n + i] =
                is_op ? cluster_view_launch_s(r->view, device[t],
                                              graph_get_op(r->graph, instr->op)->kind)
                      : device[t]->launch_s;
    }
    for (uint32_t t = 0; t < model->n_types; t++) {
        steps->collective_launch_s[t] = device[t]->launch_s;
        steps->transfer_launch_s[t] = device[t]->launch_s + device[t]->handover_s;
    }
}

/* --- what passes from layer to layer --- */

/* A tensor that one layer makes and others read passes every boundary between them, once. */
static void read_boundaries(const Reading *r)
{
    const Graph *graph = r->graph;
    AmpSteps *steps = r->steps;
    const uint32_t n = graph_n_tensors(graph);
    g_autofree uint32_t *last = g_new0(uint32_t, n), *least = g_new(uint32_t, n);
    memset(least, 0xff, n * sizeof *least);
    ops_each (op, id, graph) {
        for (uint32_t i = 0; op->pass != PASS_UPDATE && i < op->n_in; i++) {
            last[op->in[i]] = MAX(last[op->in[i]], op->layer);
            least[op->in[i]] = MIN(least[op->in[i]], op->layer);
        }
    }
    for (TensorId t = 0; t < n; t++) {
        const OpId by = graph_tensor(graph, t)->producer;
        if (by == GRAPH_NONE || !form_is_gather(r->batch->form[t]))
            continue;
        const Op *op = graph_get_op(graph, by);
        const double bytes =
            (double)tensor_bytes(graph_tensor(graph, t)) / r->model->global_batch;
        for (uint32_t l = op->layer; op->pass == PASS_FORWARD && l < last[t]; l++)
            steps->sent[l] += bytes;
        for (uint32_t l = least[t]; op->pass == PASS_BACKWARD && l < op->layer; l++)
            steps->returned[l] += bytes;
    }
}

static AmpSteps *steps_new(uint32_t n_layers)
{
    AmpSteps *steps = g_new0(AmpSteps, 1);
    steps->step = g_array_new(FALSE, FALSE, sizeof(AmpStep));
    steps->message = g_array_new(FALSE, FALSE, sizeof(AmpMessage));
    steps->gradient = g_array_new(FALSE, FALSE, sizeof(AmpGradient));
    steps->gradient_kind = g_array_new(FALSE, FALSE, sizeof(AmpGradientKind));
    steps->sent = g_new0(double, n_layers);
    steps->returned = g_new0(double, n_layers);
    return steps;
}

AmpSteps *amp_steps_read(const AmpModel *model, const Graph *graph,
                         const ClusterView *view, const Program *program, GError **error)
{
    g_autoptr(BatchForms) batch = batch_forms_of_microbatches(graph, error);
    if (!batch)
        return NULL;
    const size_t n_instances = (size_t)graph_n_tensors(graph) * FORM_MAX;
    g_autofree uint32_t *maker = g_new(uint32_t, n_instances);
    g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(Numbered));
    g_autofree uint32_t *layer = graph_tensor_layers(graph);
    g_autoptr(SimMemo) memo = sim_memo_new();
    Reading r = {model, graph, view,  program, batch, layer, steps_new(model->n_layers),
                 found, maker, false, memo};
    memset(maker, 0xff, n_instances * sizeof *maker);
    items_at (const Instr, instr, k, program->instr, program->n) {
        if (instr->kind == INSTR_COMPUTE)
            read_compute(&r, k);
        else if (instr->kind == INSTR_COLLECTIVE)
            read_collective(&r, k);
    }
    find_waiting(&r);
    count_late(&r);
    sort_steps(&r);
    time_steps(&r);
    amp_steps_index(model, r.steps);
    read_boundaries(&r);
    return r.steps;
}

FREE_DEFINE(amp_steps_free, AmpSteps, steps,
            unref_arrays(steps->step, steps->message, steps->gradient,
                         steps->gradient_kind),
            free_each(steps->first, steps->like, steps->first_gradient, steps->time_s,
                      steps->launch_s, steps->transfer_launch_s,
                      steps->collective_launch_s, steps->sent, steps->returned));
