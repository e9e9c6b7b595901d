/* Unlike replicas (synth/pipeline/pipeline.h): the programs of several pipelines become one
 * program. */
#include "data/base/free.h"
#include "synth/pipeline/build.h"

#include <string.h>

#include "data/program/period.h"

/* Where a pipeline makes a sum over the batch. */
typedef struct {
    uint32_t group; /* of the joined program; UINT32_MAX: nowhere */
    Form form;
} Sum;

typedef struct {
    const SynthReplica *replica;
    const Graph *graph;
    uint32_t n;
    Builder *builder; /* [n] */
    uint32_t *first;  /* [n + 1]: the first group of each pipeline */
    Sum *sum;         /* [pipeline * n_tensors + tensor] */
    uint32_t *all; /* [tensor]: the group of all pipelines' replicas; UINT32_MAX: none */
    Program *program;
    /* two alike, in opposite directions on the same devices: they take turns, and so do their
     * microbatches */
    bool both_ways;
} Joining;

static Sum *sum_of(const Joining *j, uint32_t k, TensorId tensor)
{
    KILTER_ASSERT(k < j->n && tensor < graph_n_tensors(j->graph));
    return &j->sum[(size_t)k * graph_n_tensors(j->graph) + tensor];
}

static void find_sums(Joining *j, uint32_t k)
{
    const Builder *b = &j->builder[k];
    for (TensorId t = 0; t < graph_n_tensors(j->graph); t++)
        sum_of(j, k, t)->group = UINT32_MAX;
    items_at (const Instr, instr, i, b->inner->instr, b->inner->n) {
        if (!makes_sums(b, instr))
            continue;
        const Op *op = graph_get_op(j->graph, instr->op);
        for (uint32_t o = 0; o < op->n_out; o++)
            if (b->batch->form[op->out[o]] == FORM_REDUCE) {
                const uint32_t at = pipeline_view(b, group_at(b, i), b->view[instr->op]);
                const Form over =
                    b->made ? pipeline_over(b, at, b->gives[instr->op * OP_MAX_OUT + o])
                            : FORM_IDENTITY;
                *sum_of(j, k, op->out[o]) = (Sum){
                    j->first[k] + at, form_over(instr->form[op->n_in + o], over, 0)};
            }
    }
}

static uint32_t joining_step(const Joining *j, uint32_t k, uint32_t i)
{
    KILTER_ASSERT(i < j->builder[k].step->len);
    return g_array_index(j->builder[k].step, uint32_t, i);
}

/* Appends instructions of a pipeline's program, on its groups and its microbatches. */
static void copy(Joining *j, uint32_t k, uint32_t first, uint32_t end)
{
    const Program *from = j->builder[k].program;
    uint32_t before = 0;
    for (uint32_t i = 0; i < k && !j->both_ways; i++)
        before += j->replica[i].pipeline.n_microbatches;
    KILTER_ASSERT(end <= from->n);
    for (uint32_t i = first; i < end; i++) {
        Instr instr = from->instr[i];
        instr.group = (uint16_t)(instr.group + j->first[k]);
        if (instr.kind == INSTR_TRANSFER)
            instr.to_group = (uint16_t)(instr.to_group + j->first[k]);
        if (instr.microbatch != PROGRAM_WHOLE)
            instr.microbatch = (uint16_t)(j->both_ways ? 2 * instr.microbatch + k
                                                       : instr.microbatch + before);
        program_append(j->program, instr);
    }
}

/* The group of the replicas of all pipelines' groups that make the tensor, new or existing. */
static uint32_t group_of_all(Joining *j, TensorId tensor)
{
    const DeviceGroup *of = &j->program->group[sum_of(j, 0, tensor)->group];
    const uint32_t n_devices = of->n_devices, n_shards = group_shards(of);
    g_autoptr(GArray) device = g_array_new(false, false, sizeof(uint32_t));
    for (uint32_t k = 0; k < j->n; k++) {
        const DeviceGroup *group = &j->program->group[sum_of(j, k, tensor)->group];
        g_array_append_vals(device, group->device, group->n_replicas * n_devices);
    }
    for (uint32_t g = j->first[j->n]; g < j->program->n_groups; g++) {
        const DeviceGroup *group = &j->program->group[g];
        if (group->n_devices == n_devices && group_shards(group) == n_shards &&
            group->n_replicas * n_devices == device->len &&
            memcmp(group->device, device->data, device->len * sizeof(uint32_t)) == 0)
            return g;
    }
    const uint16_t all = program_add_group(j->program, device->len / n_devices, n_devices,
                                           (const uint32_t *)(const void *)device->data);
    j->program->group[all].n_shards = n_shards;
    return all;
}

static bool check_alike(const Joining *j, TensorId tensor, GError **error)
{
    const Sum *first = sum_of(j, 0, tensor);
    for (uint32_t k = 1; k < j->n; k++) {
        const Sum *sum = sum_of(j, k, tensor);
        g_assert(sum->group != UINT32_MAX);
        if (j->program->group[sum->group].n_devices !=
                j->program->group[first->group].n_devices ||
            sum->form != first->form)
            return refuse(error,
                          "pipelines that are replicas of each other divide %s in "
                          "unlike ways: expected the same tp",
                          graph_tensor(j->graph, tensor)->name);
    }
    return true;
}

static Instr join_instr(const Joining *j, uint32_t k, TensorId tensor, bool leaves)
{
    const Sum *sum = sum_of(j, k, tensor);
    const uint16_t group = (uint16_t)sum->group, all = (uint16_t)j->all[tensor];
    return (Instr){.kind = INSTR_TRANSFER,
                   .group = leaves ? all : group,
                   .to_group = leaves ? group : all,
                   .microbatch = PROGRAM_WHOLE,
                   .across = true,
                   .moves = !leaves,
                   .tensor = tensor,
                   .from = sum->form,
                   .to = sum->form};
}

/* Sums the tensor over the replicas of all pipelines. The loss may stay partial. */
static bool replicas_exchange(Joining *j, TensorId tensor, GError **error)
{
    if (sum_of(j, 0, tensor)->group == UINT32_MAX)
        return true;
    if (!check_alike(j, tensor, error))
        return false;
    const Form form = sum_of(j, 0, tensor)->form;
    j->all[tensor] = group_of_all(j, tensor);
    for (uint32_t k = 0; k < j->n; k++)
        program_append(j->program, join_instr(j, k, tensor, false));
    if (graph_tensor(j->graph, tensor)->role != ROLE_LOSS)
        program_append(j->program, (Instr){.kind = INSTR_COLLECTIVE,
                                           .group = (uint16_t)j->all[tensor],
                                           .microbatch = PROGRAM_WHOLE,
                                           .stream = 1,
                                           .across = true,
                                           .collective = COLLECTIVE_ALL_REDUCE,
                                           .tensor = tensor,
                                           .from = form,
                                           .to = form});
    return true;
}

static bool exchange_all(Joining *j, GError **error)
{
    const Graph *graph = j->graph;
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        for (uint32_t o = 0; o < graph_get_op(graph, id)->n_out; o++)
            if (!replicas_exchange(j, graph_get_op(graph, id)->out[o], error))
                return false;
    for (uint32_t k = 0; k < j->n; k++)
        for (TensorId t = 0; t < graph_n_tensors(graph); t++)
            if (j->all[t] != UINT32_MAX && graph_tensor(graph, t)->role != ROLE_LOSS)
                program_append(j->program, join_instr(j, k, t, true));
    return true;
}

OWN_CLEAR_DEFINE(joining_clear, Joining, j,
                 clear_items(j->builder, j->n, pipeline_builder_clear),
                 free_each(j->builder, j->first, j->sum, j->all),
                 program_free(j->program));

/* Writes each pipeline's own program, and gives the joined one its groups. */
static bool build_all(Joining *j, GError **error)
{
    uint64_t n_microbatches = 0, n_groups = 0;
    for (uint32_t k = 0; k < j->n; k++) {
        n_microbatches += j->replica[k].pipeline.n_microbatches;
        j->program->left_out += j->replica[k].pipeline.left_out;
    }
    if (n_microbatches >= PROGRAM_WHOLE)
        return refuse(error, "expected less than %d microbatches", PROGRAM_WHOLE);
    j->program->n_microbatches = (uint32_t)n_microbatches - j->program->left_out;
    items_at (Builder, b, k, j->builder, j->n) {
        *b = (Builder){.inner = j->replica[k].inner,
                       .graph = j->graph,
                       .pipeline = &j->replica[k].pipeline};
        g_assert(b->pipeline->zero <= 1);
        if (!pipeline_build(b, (uint32_t)n_microbatches, true, error))
            return false;
        n_groups += b->program->n_groups;
        j->program->successive |= b->program->successive;
        if (n_groups > UINT16_MAX / 2)
            return refuse(error, "expected at most %d stages in all pipelines",
                          UINT16_MAX / 2);
        items_each (const DeviceGroup, group, b->program->group, b->program->n_groups) {
            const uint16_t added = program_add_group(j->program, group->n_replicas,
                                                     group->n_devices, group->device);
            j->program->group[added].n_shards = group->n_shards;
        }
        j->first[k + 1] = (uint32_t)n_groups;
        find_sums(j, k);
    }
    return true;
}

Program *synth_pipelines(SynthReplica *replica, uint32_t n, const Graph *graph,
                         GError **error)
{
    g_assert(n > 0);
    if (n == 1)
        return synth_pipeline(replica->inner, graph, &replica->pipeline, error);
    const uint32_t n_tensors = graph_n_tensors(graph);
    g_auto(Joining) j = {.replica = replica,
                         .graph = graph,
                         .n = n,
                         .builder = g_new0(Builder, n),
                         .first = g_new0(uint32_t, n + 1),
                         .sum = g_new0(Sum, (size_t)n * n_tensors),
                         .all = g_new(uint32_t, n_tensors),
                         .program = program_new(),
                         .both_ways = replica->pipeline.schedule == SCHEDULE_DUALPIPE};
    memset(j.all, 0xff, n_tensors * sizeof *j.all);
    if (!build_all(&j, error))
        return NULL;
    for (uint32_t k = 0; k < n; k++)
        copy(&j, k, 0, joining_step(&j, k, 0));
    for (uint32_t i = 0; j.both_ways && i < n * (j.builder->step->len - 1); i++)
        copy(&j, i % n, joining_step(&j, i % n, i / n),
             joining_step(&j, i % n, i / n + 1));
    for (uint32_t k = 0; k < n && !j.both_ways; k++)
        copy(&j, k, joining_step(&j, k, 0),
             joining_step(&j, k, j.builder[k].step->len - 1));
    if (!exchange_all(&j, error))
        return NULL;
    for (uint32_t k = 0; k < n; k++)
        copy(&j, k, joining_step(&j, k, j.builder[k].step->len - 1),
             j.builder[k].program->n);
    if (!pipeline_check_program(j.program, graph, error))
        return NULL;
    return g_steal_pointer(&j.program);
}

/* Microbatches that may be left out, of chunks whole rounds. The rest fills the pipeline, repeats
 * its middle often enough to be found, and empties it; `more`: in any schedule. */
static uint32_t pipeline_spared(const SynthPipeline *p, bool more)
{
    enum { ROUNDS = 2, ROUNDS_OF_CHUNKS = 8, BEYOND = 10 };
    const ScheduleRow *row = schedule_row(p->schedule);
    const uint32_t n = p->n_groups, round = row->v || p->n_stages == n ? 1 : n,
                   pieces = MAX(p->pieces, 1), n_steps = p->n_microbatches / pieces;
    uint32_t least =
        round > 1 ? n * ROUNDS_OF_CHUNKS : ROUNDS * p->n_stages + row->splits * n;
    for (uint32_t g = 0; p->depth && g < n; g++)
        least = MAX(least, 2 * (p->depth[g].ahead + p->depth[g].lag));
    least += BEYOND + more * (4 * n + BEYOND);
    const bool spares = p->schedule != SCHEDULE_GPIPE && n_steps - n_steps / 4 > least &&
                        p->schedule != SCHEDULE_BREADTH_FIRST;
    return spares ? (n_steps - least) / round * round * pieces : 0;
}

Program *synth_pipelines_briefly(SynthReplica *replica, uint32_t n, const Graph *graph,
                                 GError **error)
{
    ProgramPeriod period;
    const bool even = n == 1 || replica->pipeline.schedule == SCHEDULE_DUALPIPE;
    for (uint32_t pass = 0;; pass++) {
        const bool spares = even && pass < 2;
        const uint32_t spared = spares ? pipeline_spared(&replica->pipeline, pass) : 0;
        for (uint32_t k = 0; k < n; k++)
            replica[k].pipeline.left_out = spared;
        Program *program = synth_pipelines(replica, n, graph, error);
        if (!program || spared == 0 ||
            (program_find_period(program, &period) &&
             program->left_out % period.microbatches == 0))
            return program;
        program_free(program);
    }
}
