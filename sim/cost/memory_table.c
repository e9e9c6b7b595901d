/* Memory by category at the peak of each type of devices. */
#include <math.h>
#include <string.h>

#include "sim/tasks/buffers.h"

/* Adds the bytes that are alive at the row's instruction. */
static void add_buffers(const SimCase *sim, const PlanBuffers *buffers, SimMemoryRow *row)
{
    g_autofree uint32_t *place = sim_group_places(sim, row->device);
    double bytes[MEMORY_CATEGORIES] = {0};

    for (uint32_t b = 0; b < buffers->n; b++) {
        const PlanBuffer *buffer = &buffers->buffer[b];
        if (place[buffer->group] != SIM_NOT_THERE &&
            plan_buffer_first(buffer) <= row->instr &&
            plan_buffer_last(sim->plan->program, buffer) >= row->instr)
            bytes[plan_buffer_category(sim->graph, buffer)] +=
                sim_buffer_bytes(sim, buffer, place[buffer->group]);
    }
    for (uint32_t c = 0; c < MEMORY_RUNTIME; c++)
        row->bytes[c] = (uint64_t)ceil(bytes[c]);
}

static void fill_row(const SimCase *sim, const PlanBuffers *buffers, SimMemoryRow *row)
{
    const Device *device = &sim->view->device[row->device];

    sim_buffers_peak(sim, buffers, row->device, &row->instr);
    add_buffers(sim, buffers, row);
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

/* Makes a row for the fullest device of each type. */
static GArray *find_rows(const ClusterView *view, const uint64_t *memory_bytes)
{
    GArray *rows = g_array_new(false, false, sizeof(SimMemoryRow));

    for (uint32_t j = 0; j < view->n_devices; j++) {
        SimMemoryRow *row = (SimMemoryRow *)(void *)rows->data;
        uint32_t k = 0;
        while (k < rows->len && view->device[row[k].device].type != view->device[j].type)
            k++;
        if (k == rows->len) {
            const SimMemoryRow fresh = {.device = j};
            g_array_append_val(rows, fresh);
            row = (SimMemoryRow *)(void *)rows->data;
        }
        row[k].n_alike++;
        if (memory_bytes[j] > memory_bytes[row[k].device])
            row[k].device = j;
    }
    return rows;
}

GArray *sim_memory_table(const Plan *plan, const Graph *graph, const ClusterView *view,
                         const char *runtime, const uint64_t *memory_bytes,
                         GError **error)
{
    g_autoptr(Runtime) held = *runtime ? runtime_load(runtime, error) : NULL;
    if (*runtime && !held)
        return NULL;
    if (!sim_check_plan(plan, graph, view, error))
        return NULL;
    g_autoptr(SimParts) parts = sim_parts_new(plan, graph, error);
    if (!parts)
        return NULL;
    const SimCase sim = {
        .plan = plan, .graph = graph, .view = view, .parts = parts, .runtime = held};
    g_autoptr(PlanBuffers) buffers = plan_buffers(
        plan->program, graph, parts->layout.instances, parts->layout.segment);
    sim_buffers_add_runtime(buffers, held, plan->program, graph, true);
    GArray *rows = find_rows(view, memory_bytes);
    for (uint32_t k = 0; k < rows->len; k++)
        fill_row(&sim, buffers, &g_array_index(rows, SimMemoryRow, k));
    return rows;
}
