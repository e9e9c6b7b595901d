/* The costs of a stage whose devices run an SPMD program, layer by layer (synth/joint/menu.h).
 *
 * Shares are rounded to the pieces of a microbatch, as the plan's are. Between two collectives of a
 * layer, the device that computes longest counts; collectives take the place of computation, as in
 * the fidelity `stage`. Memory counts per byte that a device may keep: the device counts that is
 * the fullest. */
#include <math.h>

#include "synth/joint/menu.h"
#include "synth/pipeline/build.h"

typedef struct {
    const JointMenu *menu;
    const JointProblem *problem;
    const JointGroup *group;
    const JointInside *inside;
    Builder places; /* every layer is a stage of its own */
    uint32_t n;     /* devices */
    const Device **device;
    double *fill;      /* [device]: the least memory of all, as a part of its own */
    double capacity;   /* the least memory of all */
    GHashTable *share; /* number of pieces -> share of each device */
    double part;       /* of the batch in a microbatch */
    double port;       /* the largest part of a microbatch that a machine has */
    /* copies with which a machine's port counts what all its devices need */
    double whole;
    /* [phase * n_layers + layer] */
    double *seconds, *launch_s;
    const SynthAgain *modes; /* [mode]: what runs again, beside none and full; */
    double *again, *less;    /* [mode * n_layers + layer]: its seconds, and its bytes */
    double *busy;            /* [phase * n + device]: since the phase's last collective */
    uint32_t *layer;         /* [phase]: the layer that it is in */
    double *held, *kept, *late;  /* [layer]: bytes, per microbatch all but `held` */
    double *copies;              /* [layer] */
    bool *seen_kept, *seen_late; /* [tensor * FORM_MAX + form]: it was counted */
    SimMemo *memo;
} Costing;

static const Program *program_of(const Costing *c)
{
    return c->inside->program;
}

static const BatchForms *batch_of(const Costing *c)
{
    return c->places.batch;
}

static double *inside_cell(const Costing *c, double *of, uint32_t i)
{
    const Place *place = &c->places.place[i];
    KILTER_ASSERT(place->phase <= LATE && place->stage < c->problem->n_layers);
    return &of[place->phase * c->problem->n_layers + place->stage];
}

/* --- shares --- */

/* [device]: shares of a dim of so many pieces. */
static const double *shares_of(const Costing *c, uint32_t units)
{
    double *share = g_hash_table_lookup(c->share, GUINT_TO_POINTER(units));
    if (share)
        return share;
    g_autofree uint32_t *count = g_new(uint32_t, c->n);
    share = g_new(double, c->n);
    split_round(c->inside->ratio, c->n, units, count);
    for (uint32_t d = 0; d < c->n; d++)
        share[d] = (double)count[d] / units;
    g_hash_table_insert(c->share, GUINT_TO_POINTER(units), share);
    return share;
}

static uint32_t batch_units(const Costing *c)
{
    return batch_of(c)->units / c->problem->n_microbatches;
}

/* The shares by which a tensor is cut; NULL: it is not cut. */
static const double *shares_in(const Costing *c, TensorId tensor, Form form)
{
    if (!form_is_gather(form))
        return NULL;
    if (form_inside(form) == batch_of(c)->form[tensor])
        return shares_of(c, batch_units(c));
    return shares_of(c, graph_tensor(c->menu->graph, tensor)->units[form_dim(form)]);
}

static double largest(const Costing *c, const double *share, const double *weight)
{
    double most = share ? 0 : 1;
    for (uint32_t d = 0; share && d < c->n; d++)
        most = fmax(most, share[d] * (weight ? weight[d] : 1));
    return most;
}

/* Bytes of a tensor, of one microbatch if it has parts. */
static double bytes_of(const Costing *c, TensorId tensor)
{
    const bool parts = form_is_gather(batch_of(c)->form[tensor]);
    return (double)tensor_bytes(graph_tensor(c->menu->graph, tensor)) *
           (parts ? c->part : 1);
}

/* The same of the part that the fullest device has. */
static double bytes_in(const Costing *c, TensorId tensor, Form form)
{
    return bytes_of(c, tensor) * largest(c, shares_in(c, tensor, form), c->fill);
}

/* --- seconds --- */

/* Adds to a layer the computation of the device that computed longest since the last collective. */
static void join(Costing *c, Phase phase)
{
    double *busy = &c->busy[phase * c->n], most = 0;
    for (uint32_t d = 0; d < c->n; d++) {
        most = fmax(most, busy[d]);
        busy[d] = 0;
    }
    c->seconds[phase * c->problem->n_layers + c->layer[phase]] += most;
}

static void come_to(Costing *c, Phase phase, uint32_t layer)
{
    if (c->layer[phase] != layer)
        join(c, phase);
    c->layer[phase] = layer;
}

/* Seconds of an op on a device. */
static double op_s(const Costing *c, const Instr *instr, const Rule *rule,
                   const Device *device, double share)
{
    const BatchForms *batch = batch_of(c);
    const int8_t loop = batch->loop[instr->op];
    const bool by_batch = loop >= 0 && rule->loop == loop;
    return rule->loop >= 0 && share == 0
               ? 0
               : sim_op_s(c->memo, c->menu->graph, c->menu->view, instr->op, rule,
                          (SimOpShare){loop >= 0 ? batch->form : NULL,
                                       c->part * (by_batch ? share : 1),
                                       by_batch ? 1 : share},
                          device);
}

static void inside_compute(Costing *c, uint32_t i)
{
    const Instr *instr = &program_of(c)->instr[i];
    const Graph *graph = c->menu->graph;
    const Place *place = &c->places.place[i];
    const BatchForms *batch = batch_of(c);
    Rule rule = {.loop = -1};
    if (!op_rule_find(graph, instr->op, instr->form, &rule))
        return;
    const bool by_batch =
        batch->loop[instr->op] >= 0 && rule.loop == batch->loop[instr->op];
    const double *share = by_batch         ? shares_of(c, batch_units(c))
                          : rule.loop >= 0 ? shares_of(c, rule.units)
                                           : NULL;
    double last = 0, most = 0, launch = 0;
    come_to(c, place->phase, place->stage);
    for (uint32_t d = 0; d < c->n; d++) {
        const double own = share ? share[d] : 0;
        if (d == 0 || c->device[d] != c->device[d - 1] || (share && own != share[d - 1]))
            last = op_s(c, instr, &rule, c->device[d], own);
        c->busy[place->phase * c->n + d] += last;
        most = fmax(most, last);
        launch = fmax(launch,
                      d > 0 && c->device[d] == c->device[d - 1]
                          ? 0
                          : cluster_view_launch_s(c->menu->view, c->device[d],
                                                  graph_get_op(graph, instr->op)->kind));
    }
    *inside_cell(c, c->launch_s, i) += launch;
    for (uint32_t m = 1; m < JOINT_MODES; m++)
        if (place->phase == FORWARD && c->modes[m].op[instr->op])
            c->again[m * c->problem->n_layers + place->stage] += most;
}

static void communicate(Costing *c, uint32_t i)
{
    const Instr *instr = &program_of(c)->instr[i];
    const Place *place = &c->places.place[i];
    if (instr->collective >= (Collective)COLLECTIVES_PRICED)
        return;
    const double bytes = bytes_of(c, instr->tensor);
    const CurvePlace at = {c->device[0]->type_name, c->n, c->group->n_machines};
    const LinkCost line = cluster_view_set_line(c->menu->view, c->device[0], at, 1,
                                                instr->collective, bytes);
    come_to(c, place->phase, place->stage);
    join(c, place->phase);
    *inside_cell(c, c->seconds, i) +=
        (1 - sim_overlap_part(c->device[0], instr->collective, c->n)) *
        sim_collective_over(line, c->n, instr->collective, bytes,
                            largest(c, shares_in(c, instr->tensor, instr->from), NULL),
                            largest(c, shares_in(c, instr->tensor, instr->to), NULL));
    *inside_cell(c, c->launch_s, i) += c->device[0]->launch_s;
}

/* --- memory --- */

/* Parameters and states at rest, and in the forms into which they are converted beforehand; and
 * gradients as updates read them. */
static void hold(Costing *c, uint32_t i)
{
    const Instr *instr = &program_of(c)->instr[i];
    const Graph *graph = c->menu->graph;
    double *held = &c->held[c->places.place[i].stage];
    if (instr->kind == INSTR_COMPUTE) {
        const Op *op = graph_get_op(graph, instr->op);
        for (uint32_t k = 0; op->pass == PASS_UPDATE && k < op->n_in; k++)
            if (graph_tensor(graph, op->in[k])->role == ROLE_GRADIENT)
                *held += bytes_in(c, op->in[k], instr->form[k]);
        return;
    }
    const Role role = graph_tensor(graph, instr->tensor)->role;
    if ((role == ROLE_PARAMETER || role == ROLE_OPTIMIZER) &&
        (instr->kind == INSTR_LOAD || c->places.place[i].phase == EARLY))
        *held += bytes_in(c, instr->tensor, instr->to);
}

/* Counts bytes that an op keeps, of a tensor or beside them (GRAPH_NONE), unless it runs again. */
static void keep_bytes(Costing *c, uint32_t layer, OpId by, TensorId tensor, double bytes)
{
    c->kept[layer] += bytes;
    for (uint32_t m = 1; m < JOINT_MODES; m++)
        if (tensor == GRAPH_NONE ? c->modes[m].op[by] : c->modes[m].drop[tensor])
            c->less[m * c->problem->n_layers + layer] += bytes;
}

static void keep_beside(Costing *c, uint32_t i)
{
    const Instr *instr = &program_of(c)->instr[i];
    const Op *op = graph_get_op(c->menu->graph, instr->op);
    TensorId of;
    const uint32_t bytes = graph_op_kept_bytes(c->menu->graph, instr->op, &of);
    if (bytes > 0)
        keep_bytes(c, c->places.place[i].stage, instr->op, GRAPH_NONE,
                   bytes_in(c, of, instr->form[op->n_in + op->n_out - 1]) /
                       (double)tensor_bytes(graph_tensor(c->menu->graph, of)) * bytes *
                       (double)tensor_elements(graph_tensor(c->menu->graph, of)));
}

/* Counts the tensors that an op of the backward reads, kept since the forward or until it runs. */
static void inside_keep(Costing *c, uint32_t i)
{
    const Instr *instr = &program_of(c)->instr[i];
    const Graph *graph = c->menu->graph;
    const Op *op = graph_get_op(graph, instr->op);
    const Phase phase = c->places.place[i].phase;
    if (phase == FORWARD)
        keep_beside(c, i);
    for (uint32_t k = 0; (phase == BACKWARD || phase == WEIGHTS) && k < op->n_in; k++) {
        const TensorId tensor = graph_viewed(graph, op->in[k]);
        const OpId by = graph_tensor(graph, tensor)->producer;
        const size_t at = (size_t)tensor * FORM_MAX + form_inside(instr->form[k]);
        if (by == GRAPH_NONE || !form_is_gather(batch_of(c)->form[tensor]))
            continue;
        const Op *maker = graph_get_op(graph, by);
        const double bytes = bytes_in(c, tensor, instr->form[k]);
        if (phase == WEIGHTS && !c->seen_late[at])
            c->late[c->places.place[i].stage] += bytes;
        c->seen_late[at] |= phase == WEIGHTS;
        if (maker->pass != PASS_FORWARD || c->seen_kept[at])
            continue;
        c->seen_kept[at] = true;
        keep_bytes(c, maker->layer, by, tensor, bytes);
    }
}

/* Counts what the runtime holds beside the plan. */
static void hold_beside(Costing *c)
{
    const Runtime *runtime = c->menu->view->runtime;
    if (!runtime)
        return;
    const Graph *graph = c->menu->graph;
    g_autofree uint32_t *layer = graph_tensor_layers(graph);
    g_autoptr(PlanBuffers) buffers = sim_runtime_buffers(program_of(c), graph, runtime);
    items_each (const PlanBuffer, buffer, buffers->buffer, buffers->n)
        if (buffer->beside)
            (buffer->stands ? c->held : c->kept)[layer[buffer->tensor]] +=
                bytes_in(c, buffer->tensor, buffer->form) *
                plan_buffer_whole_bytes(graph, buffer) /
                (double)tensor_bytes(graph_tensor(graph, buffer->tensor));
}

/* Counts the devices that need what an instruction reads from another layer: all of them, unless it
 * is cut there or here. */
static void count_copies(Costing *c, uint32_t i)
{
    const Instr *instr = &program_of(c)->instr[i];
    const uint32_t here = c->places.place[i].stage;
    if (instr->kind == INSTR_COLLECTIVE) /* it cuts what another layer made whole */
        return;
    uses_each (use, &c->places, i) {
        const uint32_t there = c->places.place[use->maker].stage;
        if (there != here && program_of(c)->instr[use->maker].kind != INSTR_LOAD &&
            form_is_gather(batch_of(c)->form[use->of.tensor]) &&
            !form_is_gather(use->of.form))
            c->copies[MAX(here, there)] = c->whole;
    }
}

static void read_program(Costing *c)
{
    const Program *program = program_of(c);
    const size_t n = (size_t)graph_n_tensors(c->menu->graph) * FORM_MAX;
    g_autofree bool *kept = g_new0(bool, n), *late = g_new0(bool, n);
    c->seen_kept = kept;
    c->seen_late = late;
    for (uint32_t i = 0; i < program->n; i++) {
        if (program->instr[i].kind == INSTR_COMPUTE) {
            inside_compute(c, i);
            inside_keep(c, i);
        } else if (program->instr[i].kind == INSTR_COLLECTIVE)
            communicate(c, i);
        hold(c, i);
        count_copies(c, i);
    }
    hold_beside(c);
    for (Phase phase = EARLY; phase <= LATE; phase++)
        join(c, phase);
    for (uint32_t at = 0; at < (LATE + 1) * c->problem->n_layers; at++)
        c->seconds[at] = fmax(c->seconds[at], c->launch_s[at]);
}

static double phase_s(const Costing *c, Phase phase, uint32_t l)
{
    return c->seconds[phase * c->problem->n_layers + l];
}

static void add_entry(const Costing *c, JointGroup *group, uint32_t m)
{
    const uint32_t n = c->problem->n_layers;
    const Recompute mode = c->menu->mode[m];
    JointEntry e = joint_entry_new(n, c->n, 1);
    const double *share = shares_of(c, batch_units(c));
    const double batch = c->menu->model->global_batch * c->part;
    e.inside = c->inside;
    e.faster = UINT32_MAX;
    e.share = c->port;
    e.recompute = mode;
    e.capacity = c->problem->headroom * c->capacity;
    e.copies = g_memdup2(c->copies, n * sizeof *e.copies);
    for (uint32_t d = 0; d < c->n; d++)
        e.samples[d] = (uint32_t)lround(share[d] * batch);
    for (uint32_t l = 0; l < n; l++) {
        const double again =
            mode == RECOMPUTE_FULL ? phase_s(c, FORWARD, l) : c->again[m * n + l];
        const double border = l > 0 ? c->problem->sent[l] * c->port * c->copies[l] : 0;
        const double less =
            mode == RECOMPUTE_FULL ? fmax(0, c->kept[l] - border) : c->less[m * n + l];
        e.forward_s[l + 1] = e.forward_s[l] + phase_s(c, FORWARD, l);
        e.backward_s[l + 1] =
            e.backward_s[l] + phase_s(c, BACKWARD, l) + phase_s(c, WEIGHTS, l) + again;
        e.weights_s[l + 1] = e.weights_s[l] + phase_s(c, WEIGHTS, l);
        e.sync_s[l + 1] = e.sync_s[l] + phase_s(c, LATE, l) + phase_s(c, EARLY, l);
        e.held[l + 1] = e.held[l] + c->held[l];
        e.kept[l + 1] = e.kept[l] + c->kept[l] - less;
        e.late[l + 1] = e.late[l] + c->late[l];
        e.work = fmax(e.work, less > 0 ? fmin(less + border, c->kept[l]) : 0);
    }
    group->entry[group->n_entries++] = e;
}

static void find_devices(Costing *c)
{
    array_at (const JointKind, kind, k, c->menu->kind) {
        for (uint32_t i = 0; i < c->group->use[k] * kind->unit; i++)
            c->device[c->n++] = &c->menu->view->device[kind->first];
    }
    g_assert(c->n == c->group->n_devices);
    c->capacity = INFINITY;
    for (uint32_t d = 0; d < c->n; d++)
        c->capacity = fmin(c->capacity, (double)c->device[d]->memory_bytes);
    for (uint32_t d = 0; d < c->n; d++)
        c->fill[d] = c->capacity / (double)c->device[d]->memory_bytes;
}

/* Finds the largest part of a microbatch on a machine, and how much more of it crosses its port
 * where each of its devices needs all. */
static void find_ports(Costing *c)
{
    const double *share = shares_of(c, batch_units(c));
    uint32_t at = 0, most = 1;
    array_at (const JointKind, kind, k, c->menu->kind) {
        const uint32_t end = at + c->group->use[k] * kind->unit;
        while (at < end) {
            const uint32_t n = MIN(kind->gpus, end - at);
            double part = 0;
            for (uint32_t d = at; d < at + n; d++)
                part += share[d];
            c->port = fmax(c->port, part);
            most = MAX(most, n);
            at += n;
        }
    }
    c->whole = most / c->port;
}

/* Finds phases and layers of all instructions, as in a pipeline with a stage for each layer. */
static void inside_find_places(Costing *c, const SynthPipeline *pipeline)
{
    const Graph *graph = c->menu->graph;
    c->places = (Builder){
        .inner = program_of(c),
        .graph = graph,
        .pipeline = pipeline,
        .batch = batch_forms_of_microbatches(graph, NULL),
        .place = g_new0(Place, program_of(c)->n),
        .partial = g_new0(uint8_t, (size_t)pipeline->n_groups * graph_n_tensors(graph))};
    g_assert(c->places.batch); /* the menu's model was read with it */
    pipeline_find_places(&c->places);
}

void synth_joint_add_inside(JointMenu *menu, JointProblem *p, JointGroup *group,
                            const JointInside *found)
{
    JointInside *inside = g_memdup2(found, sizeof *found);
    g_ptr_array_add(menu->inside, inside);
    const Graph *graph = menu->graph;
    const uint32_t n = p->n_layers, n_devices = group->n_devices;
    g_autofree uint16_t *stage = g_new(uint16_t, graph_n_ops(graph));
    g_autofree DeviceGroup *one = g_new0(DeviceGroup, n);
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        stage[id] = (uint16_t)graph_get_op(graph, id)->layer;
    for (uint32_t l = 0; l < n; l++)
        one[l] = (DeviceGroup){.n_replicas = 1, .n_devices = n_devices};
    const SynthPipeline pipeline = {.n_stages = n,
                                    .n_microbatches = p->n_microbatches,
                                    .stage = stage,
                                    .n_groups = n,
                                    .group = one,
                                    .schedule = SCHEDULE_ZB_H1};
    g_autofree const Device **device = g_new0(const Device *, n_devices);
    enum { ROWS = 2 * (LATE + 1) + 2 * JOINT_MODES + 3 };
    g_autofree double *row = g_new0(double, (size_t)ROWS *n),
                      *busy = g_new0(double, (size_t)(LATE + 1) * n_devices),
                      *fill = g_new(double, n_devices), *copies = g_new(double, n);
    g_autofree uint32_t *layer = g_new0(uint32_t, LATE + 1);
    g_autoptr(GHashTable) share = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    double *rows = row + (size_t)2 * (LATE + 1) * n;
    g_autoptr(SimMemo) memo = sim_memo_new();
    Costing c = {.menu = menu,
                 .memo = memo,
                 .problem = p,
                 .group = group,
                 .inside = inside,
                 .device = device,
                 .fill = fill,
                 .share = share,
                 .part = 1.0 / p->n_microbatches,
                 .seconds = row,
                 .launch_s = row + (size_t)(LATE + 1) * n,
                 .modes = menu->again,
                 .held = rows,
                 .kept = rows + n,
                 .late = rows + (size_t)2 * n,
                 .again = rows + (size_t)3 * n,
                 .less = rows + (size_t)(3 + JOINT_MODES) * n,
                 .busy = busy,
                 .layer = layer,
                 .copies = copies};
    for (uint32_t l = 0; l < n; l++)
        copies[l] = 1;
    inside_find_places(&c, &pipeline);
    find_devices(&c);
    find_ports(&c);
    read_program(&c);
    for (uint32_t m = 0, first = group->n_entries; m < JOINT_MODES; m++)
        if (joint_may_recompute(menu, m, p->recompute) &&
            !(m > 0 && joint_is_ample(p, &group->entry[first])))
            add_entry(&c, group, m);
    pipeline_builder_clear(&c.places);
}
