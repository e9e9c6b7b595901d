/* A model as AMP's cost model sees it: times and bytes of its layers. */
#include "data/base/free.h"
#include "synth/amp/steps.h"
#include "synth/spmd/spmd.h"

#include <string.h>

AmpModel *synth_amp_model_new(uint32_t n_layers, uint32_t n_types, uint32_t n_degrees,
                              uint32_t n_sizes)
{
    g_assert(n_layers > 0 && n_degrees > 0 && n_sizes > 0);
    const size_t n = (size_t)n_degrees * n_layers;
    AmpModel *model = g_new(AmpModel, 1);
    *model = (AmpModel){
        .n_layers = n_layers,
        .n_types = n_types,
        .n_degrees = n_degrees,
        .n_sizes = n_sizes,
        .degree = g_new0(uint32_t, n_degrees),
        .size = g_new0(double, n_sizes),
        .time_s = g_new0(double, n *n_types *n_sizes),
        .held = g_new0(double, n),
        .states = g_new0(double, n),
        .gradient = g_new0(double, n),
        .activation = g_new0(double, n),
        .kept = g_array_new(FALSE, FALSE, sizeof(AmpKept)),
        .again = amp_agains_new(),
        .late = g_new0(double, n),
        .output = g_new0(double, n),
        .exchange = g_new0(double, n),
        .parameters = g_new0(double, n_layers),
    };
    return model;
}

FREE_DEFINE(synth_amp_model_free, AmpModel, model,
            free_each(model->late, model->size, model->time_s, model->held, model->states,
                      model->gradient, model->activation, model->output, model->exchange,
                      model->parameters, model->degree),
            g_array_unref(model->kept), g_hash_table_unref(model->again),
            amp_steps_free(model->steps));

/* --- bytes of each layer, from the tensor-parallel program --- */

typedef struct {
    const Graph *graph;
    const Program *program;
    AmpModel *model;
    double batch;
    const uint32_t *layer; /* [tensor] */
} Reading;

/* Adds `whole` + `cut` / degree to the layer's row of every degree. */
static void model_add(const AmpModel *model, double *row, uint32_t layer, double whole,
                      double cut)
{
    KILTER_ASSERT(layer < model->n_layers);
    for (uint32_t g = 0; g < model->n_degrees; g++)
        row[(size_t)g * model->n_layers + layer] += whole + cut / model->degree[g];
}

static void add_form(const AmpModel *model, double *row, uint32_t layer, Form form,
                     double amount)
{
    const bool cut = form_is_gather(form);
    model_add(model, row, layer, cut ? 0 : amount, cut ? amount : 0);
}

/* Counts a parameter at rest and its gradient, or an optimizer state. */
static void read_load(Reading *r, const Instr *instr)
{
    const Tensor *tensor = graph_tensor(r->graph, instr->tensor);
    const double bytes = (double)tensor_bytes(tensor);
    if (tensor->role != ROLE_PARAMETER && tensor->role != ROLE_OPTIMIZER)
        return;
    const uint32_t layer = r->layer[instr->tensor];
    add_form(r->model, r->model->held, layer, instr->to, bytes);
    if (tensor->role == ROLE_OPTIMIZER)
        add_form(r->model, r->model->states, layer, instr->to, bytes);
    if (tensor->role != ROLE_PARAMETER)
        return;
    const double gradient = tensor->frozen
                                ? 0
                                : (double)tensor_bytes(graph_tensor(
                                      r->graph, graph_gradient(r->graph, instr->tensor)));
    add_form(r->model, r->model->held, layer, instr->to, gradient);
    add_form(r->model, r->model->gradient, layer, instr->to, gradient);
    r->model->parameters[layer] += (double)tensor_elements(tensor);
}

/* Bytes that each of n devices with equal shares sends per byte of the tensor. */
static double sent(Collective kind, uint32_t n)
{
    KILTER_ASSERT(kind < (Collective)COLLECTIVES_PRICED && n > 0);
    const double others = (double)(n - 1) / n;
    switch (kind) {
    case COLLECTIVE_ALL_REDUCE:
        return 2 * others;
    case COLLECTIVE_ALL_TO_ALL:
        return others / n;
    default:
        return others;
    }
}

/* Counts the messages of activations and their gradients. */
static void amp_read_collective(Reading *r, const Instr *instr)
{
    if (instr->collective >= (Collective)COLLECTIVES_PRICED)
        return;
    const double bytes =
        (double)tensor_bytes(graph_tensor(r->graph, instr->tensor)) / r->batch;
    const uint32_t layer = r->layer[instr->tensor];
    values_at (const uint32_t, n, g, r->model->degree, r->model->n_degrees) {
        const size_t at = (size_t)g * r->model->n_layers + layer;
        r->model->exchange[at] += bytes * sent(instr->collective, n);
    }
}

static bool is_made_forward(const Graph *graph, TensorId tensor)
{
    const OpId producer = graph_tensor(graph, tensor)->producer;
    return producer != GRAPH_NONE && graph_get_op(graph, producer)->pass == PASS_FORWARD;
}

static void amp_add_kept(Reading *r, AmpKept kept, Form form, double bytes)
{
    *(form_is_gather(form) ? &kept.cut : &kept.whole) = bytes;
    g_array_append_val(r->model->kept, kept);
    add_form(r->model, r->model->activation, kept.layer, form, bytes);
}

/* Reads the bytes that a forward op keeps beside tensors. */
static void read_beside(Reading *r, const Instr *instr)
{
    const Op *op = graph_get_op(r->graph, instr->op);
    TensorId of;
    const uint32_t bytes = graph_op_kept_bytes(r->graph, instr->op, &of);
    if (bytes > 0)
        amp_add_kept(r, (AmpKept){.by = instr->op, .beside = true, .layer = op->layer},
                     instr->form[op->n_in + op->n_out - 1],
                     (double)(tensor_elements(graph_tensor(r->graph, of)) * bytes) /
                         r->batch);
}

/* Counts kept tensors: every forward tensor that backward ops read, in each form in which they read
 * it. */
static void read_kept(Reading *r)
{
    g_autofree uint8_t *seen = g_new0(uint8_t, graph_n_tensors(r->graph));
    items_each (const Instr, instr, r->program->instr, r->program->n) {
        if (instr->kind != INSTR_COMPUTE)
            continue;
        read_beside(r, instr);
        if (graph_get_op(r->graph, instr->op)->pass != PASS_BACKWARD)
            continue;
        const Op *op = graph_get_op(r->graph, instr->op);
        for (uint32_t i = 0; i < op->n_in; i++) {
            const TensorId tensor = graph_viewed(r->graph, op->in[i]);
            const uint8_t bit = (uint8_t)(1u << instr->form[i]);
            if (!is_made_forward(r->graph, tensor) || (seen[tensor] & bit))
                continue;
            seen[tensor] |= bit;
            const double bytes =
                (double)tensor_bytes(graph_tensor(r->graph, tensor)) / r->batch;
            amp_add_kept(r,
                         (AmpKept){.by = graph_tensor(r->graph, tensor)->producer,
                                   .tensor = tensor,
                                   .layer = r->layer[tensor]},
                         instr->form[i], bytes);
        }
    }
}

/* Counts the outputs: a tensor that a later layer's forward reads passes every boundary up to that
 * layer, whole. */
static void read_outputs(Reading *r)
{
    const Graph *graph = r->graph;
    g_autofree uint32_t *last = g_new0(uint32_t, graph_n_tensors(graph));
    ops_each (op, id, graph) {
        for (uint32_t i = 0; op->pass == PASS_FORWARD && i < op->n_in; i++)
            last[op->in[i]] = MAX(last[op->in[i]], op->layer);
    }
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        if (is_made_forward(graph, t))
            for (uint32_t l = r->layer[t]; l < last[t]; l++)
                model_add(r->model, r->model->output, l,
                          (double)tensor_bytes(graph_tensor(graph, t)) / r->batch, 0);
}

/* Counts what the runtime holds beside the plan: all the time, or for each sample. */
static void read_runtime(Reading *r, const Runtime *runtime)
{
    if (!runtime)
        return;
    g_autoptr(PlanBuffers) buffers = sim_runtime_buffers(r->program, r->graph, runtime);
    items_each (const PlanBuffer, buffer, buffers->buffer, buffers->n) {
        const double bytes = plan_buffer_whole_bytes(r->graph, buffer);
        if (buffer->beside)
            add_form(r->model, buffer->stands ? r->model->held : r->model->activation,
                     r->layer[buffer->tensor], buffer->form,
                     buffer->stands ? bytes : bytes / r->batch);
    }
}

static void amp_read_program(Reading *r, const Runtime *runtime)
{
    items_each (const Instr, instr, r->program->instr, r->program->n) {
        if (instr->kind == INSTR_LOAD)
            read_load(r, instr);
        else if (instr->kind == INSTR_COLLECTIVE)
            amp_read_collective(r, instr);
    }
    read_kept(r);
    read_runtime(r, runtime);
    read_outputs(r);
}

/* --- times --- */

static void add_value(GArray *values, uint32_t value)
{
    guint at = 0;
    while (at < values->len && g_array_index(values, uint32_t, at) < value)
        at++;
    if (at == values->len || g_array_index(values, uint32_t, at) != value)
        g_array_insert_val(values, at, value);
}

/* Distinct degrees and microbatch sizes of the model in the profile, increasing. */
static void profiled_values(const LayerProfile *profile, const char *model,
                            uint32_t n_devices, GArray *degrees, GArray *sizes)
{
    array_each (const LayerTime, time, profile->times) {
        if (strcmp(time->model, model) == 0 && n_devices % time->tmp == 0) {
            add_value(degrees, time->tmp);
            add_value(sizes, time->mbs);
        }
    }
}

static bool time_by_profile(AmpModel *model, const Graph *graph, const ClusterView *view,
                            const LayerProfile *profile, GError **error)
{
    const size_t n = (size_t)model->n_degrees * model->n_layers;
    memset(model->time_s, 0, n * model->n_types * model->n_sizes * sizeof *model->time_s);
    g_auto(DeviceKinds) kinds = amp_kinds(view);
    for (uint32_t type = 0; type < model->n_types; type++)
        for (uint32_t g = 0; g < model->n_degrees; g++)
            for (uint32_t s = 0; s < model->n_sizes; s++) {
                const char *name = view->device[kinds.first[type]].type_name;
                double *row = synth_amp_times(model, type, g, s);
                if (!layer_profile_forward(profile, graph, name, model->degree[g],
                                           (uint32_t)model->size[s], row, error))
                    return false;
                for (uint32_t l = 0; l < model->n_layers; l++)
                    row[l] *= LAYER_PASSES_OF_FORWARD * model->size[s];
            }
    memset(model->exchange, 0, n * sizeof *model->exchange);
    return true;
}

double *synth_amp_times(const AmpModel *model, uint32_t type, uint32_t degree,
                        uint32_t size)
{
    KILTER_ASSERT(type < model->n_types && degree < model->n_degrees &&
                  size < model->n_sizes);
    return model->time_s +
           (((size_t)type * model->n_degrees + degree) * model->n_sizes + size) *
               model->n_layers;
}

/* A model without times, with the degrees and sizes that will have times. */
static AmpModel *empty_model(const Graph *graph, const ClusterView *view,
                             const LayerProfile *profile, GError **error)
{
    g_autoptr(GArray) degrees = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
                      sizes = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    if (profile)
        profiled_values(profile, graph_name(graph), view->n_devices, degrees, sizes);
    else {
        for (uint32_t t = 1; t <= view->n_devices; t++)
            if (view->n_devices % t == 0)
                add_value(degrees, t);
        for (uint32_t size = 1; size <= graph_batch(graph); size++)
            if (graph_batch(graph) % size == 0)
                add_value(sizes, size);
    }
    if (degrees->len == 0)
        return refused(error, "profile %s: expected rows of model %s", profile->file,
                       graph_name(graph));
    g_auto(DeviceKinds) kinds = amp_kinds(view);
    AmpModel *model =
        synth_amp_model_new(graph_n_layers(graph), kinds.n, degrees->len, sizes->len);
    for (guint g = 0; g < degrees->len; g++)
        model->degree[g] = g_array_index(degrees, uint32_t, g);
    for (guint s = 0; s < sizes->len; s++)
        model->size[s] = g_array_index(sizes, uint32_t, s);
    return model;
}

/* The model of a program over all devices. */
static AmpModel *amp_model_of(const Graph *graph, const ClusterView *view,
                              const Program *program, const LayerProfile *profile,
                              GError **error)
{
    g_autoptr(AmpModel) model = empty_model(graph, view, profile, error);
    if (!model)
        return NULL;
    model->graph = graph;
    model->global_batch = graph_batch(graph);
    g_autofree uint32_t *layer = graph_tensor_layers(graph);
    Reading reading = {graph, program, model, model->global_batch, layer};
    amp_read_program(&reading, view->runtime);
    model->steps = amp_steps_read(model, graph, view, program, error);
    if (!model->steps)
        return NULL;
    amp_steps_sum(model->steps, model);
    if (!profile)
        return g_steal_pointer(&model);
    if (!time_by_profile(model, graph, view, profile, error))
        return NULL;
    model->measured = true;
    amp_steps_measured(model, model->steps);
    return g_steal_pointer(&model);
}

AmpModel *synth_amp_model(const Graph *graph, const ClusterView *view,
                          const LayerProfile *profile, GError **error)
{
    g_autofree double *even = g_new(double, view->n_devices);
    for (uint32_t j = 0; j < view->n_devices; j++)
        even[j] = 1.0 / view->n_devices;
    g_auto(SynthResult) shared = {0};
    return synth_baseline(graph, view, even, BASELINE_MEGATRON, &shared, error)
               ? amp_model_of(graph, view, shared.program, profile, error)
               : NULL;
}

AmpModel *synth_amp_model_along_sequence(const Graph *graph, const ClusterView *view,
                                         GError **error)
{
    const uint32_t n = graph_n_layers(graph);
    g_autofree bool *sequence = g_new(bool, n);
    for (uint32_t l = 0; l < n; l++)
        sequence[l] = true;
    g_autoptr(Program) program =
        synth_megatron(graph, view, view->n_devices, sequence, false, error);
    return program ? amp_model_of(graph, view, program, NULL, error) : NULL;
}
