/* Memory by category at the peak of each type of devices. */
#include <math.h>

#include "data/base/free.h"
#include "data/base/order.h"
#include "data/formats/measured/memory_snapshot.h"
#include "sim/tasks/buffers.h"

/* Adds the bytes that are alive at the row's instruction. */
static void add_buffers(const SimCase *sim, const PlanBuffers *buffers, SimMemoryRow *row)
{
    const Program *program = sim->plan->program;
    g_autofree uint32_t *place = sim_group_places(sim, row->device);
    const ProgramBlocks *blocks = sim->options->blocks;
    const uint32_t here = blocks ? program_blocks_place(blocks, row->instr) : row->instr;
    g_autofree uint32_t *left = program_left(program, blocks, row->instr);
    double bytes[MEMORY_CATEGORIES] = {0};
    items_each (const PlanBuffer, buffer, buffers->buffer, buffers->n) {
        if (place[buffer->group] == SIM_NOT_THERE)
            continue;
        const uint32_t first = plan_buffer_first(buffer),
                       last = plan_buffer_last(program, buffer);
        /* of a part all together: some are dropped more often than they are made */
        const int64_t n = (int64_t)left[last] + (last == here) - left[first];
        if (n != 0)
            bytes[plan_buffer_category(sim->graph, buffer)] +=
                (double)n * sim_buffer_bytes(sim, buffer, place[buffer->group]);
    }
    for (uint32_t c = 0; c < MEMORY_RUNTIME; c++)
        row->bytes[c] = sim_whole_bytes(bytes[c]);
}

/* Adds what the runtime holds beside the buffers. */
static void finish_row(const SimCase *sim, SimMemoryRow *row)
{
    const Device *device = &sim->view->device[row->device];
    double bytes = 0;
    for (uint32_t c = 0; c < MEMORY_RUNTIME; c++)
        bytes += (double)row->bytes[c];
    row->bytes[MEMORY_RUNTIME] =
        device->runtime_bytes +
        (uint64_t)ceil(sim_runtime_bytes(sim->runtime, sim->plan, device, bytes));
    row->capacity_bytes =
        cluster_view_capacity(sim->view, row->device) + device->runtime_bytes;
    for (uint32_t c = 0; c < MEMORY_CATEGORIES; c++)
        row->total_bytes += row->bytes[c];
}

/* [device]: the first group that it is in. The caller frees it. */
static uint16_t *first_groups(const PlanLayout *layout, uint32_t n)
{
    uint16_t *group = g_new0(uint16_t, n + 1);
    for (uint32_t g = layout->n_groups; g-- > 0;)
        for (uint32_t i = 0; i < layout->group[g].n_replicas * layout->group[g].n_devices;
             i++)
            group[layout->group[g].device[i]] = (uint16_t)g;
    return group;
}

/* Makes a row for the fullest device of each type, or of each type and group. */
static GArray *find_rows(const ClusterView *view, const uint16_t *group, bool by_group,
                         const uint64_t *memory_bytes)
{
    GArray *rows = g_array_new(false, false, sizeof(SimMemoryRow));
    for (uint32_t j = 0; j < view->n_devices; j++) {
        SimMemoryRow *row = (SimMemoryRow *)(void *)rows->data;
        uint32_t k = 0;
        while (k < rows->len &&
               (view->device[row[k].device].type != view->device[j].type ||
                (by_group && row[k].group != group[j])))
            k++;
        if (k == rows->len) {
            const SimMemoryRow fresh = {.device = j, .group = group[j]};
            g_array_append_val(rows, fresh);
            row = (SimMemoryRow *)(void *)rows->data;
        }
        row[k].n_alike++;
        if (memory_bytes[j] > memory_bytes[row[k].device]) {
            row[k].device = j;
            row[k].group = group[j];
        }
    }
    return rows;
}

static ORDER_DEFINE(memory_row_compare, SimMemoryRow, ASCENDING(group),
                    ASCENDING(device));

/* A plan's buffers with those of its runtime. */
typedef struct {
    Runtime *runtime;
    ProgramBlocks *blocks;
    Plan part;
    SimOptions options;
    SimParts *parts;
    PlanBuffers *buffers;
    SimCase sim;
} Held;

OWN_CLEAR_DEFINE(held_clear, Held, held, plan_buffers_free(held->buffers),
                 sim_parts_free(held->parts), runtime_free(held->runtime),
                 program_blocks_free(held->blocks));

static bool held_open(const Plan *plan, const Graph *graph, const ClusterView *view,
                      const char *runtime, Held *held, GError **error)
{
    held->runtime = *runtime ? runtime_load(runtime, error) : NULL;
    if ((*runtime && !held->runtime) ||
        !sim_check_plan(plan, graph, view, &held->options, error))
        return false;
    held->parts = sim_parts_new(plan, graph, error);
    if (!held->parts)
        return false;
    held->sim = (SimCase){.plan = plan,
                          .graph = graph,
                          .view = view,
                          .parts = held->parts,
                          .options = &held->options,
                          .runtime = held->runtime};
    held->buffers = sim_held_buffers(&held->sim);
    return true;
}

/* The rows without the runtime; NULL: the part of a long pipeline does not tell. */
static GArray *buffer_rows(const Held *held, bool by_group, const uint64_t *memory_bytes)
{
    const ClusterView *view = held->sim.view;
    g_autofree uint16_t *group = first_groups(&held->parts->layout, view->n_devices);
    GArray *rows = find_rows(view, group, by_group, memory_bytes);
    array_each (SimMemoryRow, row, rows) {
        double peak;
        if (!sim_buffers_peaks(&held->sim, held->buffers, &row->device, 1, &peak,
                               &row->instr)) {
            g_array_unref(rows);
            return NULL;
        }
        add_buffers(&held->sim, held->buffers, row);
    }
    return rows;
}

bool sim_memory_blocks(const Plan *plan, const Graph *graph, const ClusterView *view,
                       const char *runtime, uint32_t device, GArray *block,
                       GError **error)
{
    g_auto(Held) held = {0};
    if (!held_open(plan, graph, view, runtime, &held, error))
        return false;
    g_autofree uint32_t *place = sim_group_places(&held.sim, device);
    items_each (const PlanBuffer, buffer, held.buffers->buffer, held.buffers->n) {
        if (place[buffer->group] == SIM_NOT_THERE)
            continue;
        const uint32_t last = plan_buffer_last(plan->program, buffer);
        const SnapshotBlock of = {
            .device = device,
            .first = plan_buffer_first(buffer),
            .last = last + 1 >= plan->program->n ? UINT32_MAX : last,
            .bytes =
                (uint64_t)ceil(sim_buffer_bytes(&held.sim, buffer, place[buffer->group])),
            .name = graph_tensor(graph, buffer->tensor)->name,
            .category = memory_category(plan_buffer_category(graph, buffer))};
        if (of.bytes > 0)
            g_array_append_val(block, of);
    }
    return true;
}

GArray *sim_memory_table(const Plan *plan, const Graph *graph, const ClusterView *view,
                         const char *runtime, bool by_stage, const uint64_t *memory_bytes,
                         GError **error)
{
    g_auto(Held) held = {0}, whole = {0};
    held.blocks = sim_shorten(plan, graph, &held.part, &held.options);
    if (!held_open(held.blocks ? &held.part : plan, graph, view, runtime, &held, error))
        return NULL;
    GArray *rows = buffer_rows(&held, by_stage, memory_bytes);
    if (!rows && held_open(plan, graph, view, runtime, &whole, NULL))
        rows = buffer_rows(&whole, by_stage, memory_bytes);
    array_each (SimMemoryRow, row, rows)
        finish_row(&held.sim, row);
    if (by_stage)
        g_array_sort(rows, memory_row_compare);
    return rows;
}
