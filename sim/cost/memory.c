/* Live bytes of a program, as a linear function of the shares: the rules under "Memory"
 * in sim/sim.h. */
#include "data/base/free.h"
#include "sim/cost/split.h"
#include "sim/tasks/buffers.h"

#include <math.h>

typedef struct {
    const Program *program;
    const Graph *graph;
    const SimLinear *linear;
    const uint16_t *instance_segment;
    const Instances *instances;
    const PlanBuffers *buffers;
} Points;

/* A point is a row of 2 (1 + n_splits) numbers: held, held_sharded[], divided,
 * divided_sharded[]. Bytes are integers, so that sums and differences of them are exact.
 */
static double *live_bytes(const Points *l)
{
    const uint32_t half = 1 + l->linear->n_splits, width = 2 * half, n = l->program->n;
    double *row = g_new0(double, (size_t)(n + 1) * width);
    items_each (const PlanBuffer, buffer, l->buffers->buffer, l->buffers->n) {
        const double bytes = plan_buffer_whole_bytes(l->graph, buffer) /
                             (instances_has_parts(l->instances, buffer->tensor)
                                  ? l->program->n_microbatches
                                  : 1);
        const uint32_t split =
            sim_split_of_form(l->linear->split, l->linear->n_splits, l->graph,
                              l->instance_segment, buffer->tensor, buffer->form);
        const uint32_t column =
            (buffer->held ? 0 : half) + (split == SPLIT_NONE ? 0 : 1 + split);
        const uint32_t first = plan_buffer_first(buffer);
        const uint32_t last = plan_buffer_last(l->program, buffer);
        row[(size_t)first * width + column] += bytes;
        row[(size_t)(last + 1) * width + column] -= bytes;
    }
    for (size_t i = width; i < (size_t)n * width; i++)
        row[i] += row[i - width];
    return row;
}

/* Whether a >= b in every column. */
static bool covers(const double *a, const double *b, uint32_t width)
{
    return !any_of(i, width, a[i] < b[i]);
}

/* Whether the row before covers row `i`, or the one after does and is larger: as memory grows and
 * shrinks, mostly one of them does. */
static bool neighbour_covers(const double *row, uint32_t n, uint32_t width, uint32_t i)
{
    KILTER_ASSERT(i < n && width > 0);
    const double *at = &row[(size_t)i * width];
    if (i > 0 && covers(at - width, at, width))
        return true;
    return i + 1 < n && covers(at + width, at, width) && !covers(at, at + width, width);
}

/* The rows that their neighbours do not cover, and for every block of them the largest number in
 * each column. Rows of a block are alike, so few blocks have to be searched. */
typedef struct {
    const double *row;
    uint32_t width, n;
    uint32_t *index; /* [n] */
    double *top;     /* [block * width + column] */
} Front;

enum { FRONT_BLOCK = 32 };

static const double *front_row(const Front *front, uint32_t i)
{
    KILTER_ASSERT(i < front->n);
    return &front->row[(size_t)front->index[i] * front->width];
}

static Front front_new(const double *row, uint32_t n, uint32_t width)
{
    KILTER_ASSERT(row || n == 0);
    Front front = {.row = row, .width = width, .index = g_new(uint32_t, n)};
    for (uint32_t i = 0; i < n; i++)
        if (!neighbour_covers(row, n, width, i))
            front.index[front.n++] = i;
    front.top = g_new(double, (size_t)(front.n / FRONT_BLOCK + 1) * width);
    for (uint32_t i = 0; i < front.n; i++) {
        double *top = &front.top[(size_t)(i / FRONT_BLOCK) * width];
        const double *at = front_row(&front, i);
        for (uint32_t c = 0; c < width; c++)
            top[c] = i % FRONT_BLOCK == 0 ? at[c] : fmax(top[c], at[c]);
    }
    return front;
}

/* Whether another row covers row `i`; of equal rows the first counts. */
static bool front_covers(const Front *front, uint32_t i)
{
    const double *at = front_row(front, i);
    for (uint32_t first = 0; first < front->n; first += FRONT_BLOCK) {
        const uint32_t end = MIN(first + FRONT_BLOCK, front->n);
        const double *top = &front->top[(size_t)(first / FRONT_BLOCK) * front->width];
        for (uint32_t k = covers(top, at, front->width) ? first : end; k < end; k++)
            if (k != i && covers(front_row(front, k), at, front->width) &&
                (k < i || !covers(at, front_row(front, k), front->width)))
                return true;
    }
    return false;
}

/* Indices of the rows that no other row covers; of equal rows the first counts. The caller frees
 * them. */
static uint32_t *pareto(const double *row, uint32_t n, uint32_t width, uint32_t *n_kept)
{
    KILTER_ASSERT(n_kept && (row || n == 0));
    Front front = front_new(row, n, width);
    uint32_t *kept = g_new(uint32_t, n);
    *n_kept = 0;
    for (uint32_t i = 0; i < front.n; i++)
        if (!front_covers(&front, i))
            kept[(*n_kept)++] = front.index[i];
    free_each(front.index, front.top);
    return kept;
}

static SimMemory *collect_points(const Points *l)
{
    const uint32_t n_splits = l->linear->n_splits, half = 1 + n_splits;
    g_autofree double *row = live_bytes(l);
    SimMemory *memory = g_new0(SimMemory, 1);
    memory->instr = pareto(row, l->program->n, 2 * half, &memory->n_points);
    memory->n_splits = n_splits;
    memory->held = g_new(double, memory->n_points);
    memory->divided = g_new(double, memory->n_points);
    memory->held_sharded = g_new(double, (size_t)memory->n_points *n_splits);
    memory->divided_sharded = g_new(double, (size_t)memory->n_points *n_splits);
    for (uint32_t p = 0; p < memory->n_points; p++) {
        const double *point = &row[(size_t)memory->instr[p] * 2 * half];
        memory->held[p] = point[0];
        memory->divided[p] = point[half];
        for (uint32_t k = 0; k < n_splits; k++) {
            memory->held_sharded[p * n_splits + k] = point[1 + k];
            memory->divided_sharded[p * n_splits + k] = point[half + 1 + k];
        }
    }
    return memory;
}

SimMemory *sim_memory(const Program *program, const Graph *graph, const SimLinear *linear,
                      const uint16_t *segment, const Runtime *runtime)
{
    g_autoptr(BatchForms) batch =
        program->n_microbatches > 1 ? batch_forms_new(graph, NULL) : NULL;
    g_autoptr(Instances) instances = instances_new(program, graph, batch);
    g_autofree uint16_t *instance_segment = plan_segments(program, graph, segment);
    g_autoptr(PlanBuffers) buffers =
        plan_buffers(program, graph, instances, instance_segment);
    sim_buffers_add_runtime(buffers, runtime, program, graph);
    const Points points = {program, graph, linear, instance_segment, instances, buffers};
    return collect_points(&points);
}

SimMemory *sim_memory_of(const SimCase *sim)
{
    const Program *program = sim->plan->program;
    const PlanLayout *layout = &sim->parts->layout;
    g_autoptr(PlanBuffers) buffers = sim_held_buffers(sim);
    const Points points = {program,         sim->graph,        sim->linear,
                           layout->segment, layout->instances, buffers};
    return collect_points(&points);
}

FREE_DEFINE(sim_memory_free, SimMemory, memory,
            free_each(memory->instr, memory->held, memory->divided, memory->held_sharded,
                      memory->divided_sharded));

double sim_memory_peak(const SimMemory *memory, const ClusterView *view,
                       const double *share, uint32_t device, uint32_t *point)
{
    KILTER_ASSERT(device < view->n_devices && memory->n_points > 0);
    double peak = -1;
    uint32_t where = 0;
    for (uint32_t p = 0; p < memory->n_points; p++) {
        double held = memory->held[p], divided = memory->divided[p];
        for (uint32_t k = 0; k < memory->n_splits; k++) {
            const double part = share[k * view->n_devices + device];
            held += memory->held_sharded[p * memory->n_splits + k] * part;
            divided += memory->divided_sharded[p * memory->n_splits + k] * part;
        }
        const double bytes = held + divided / view->device[device].gpus;
        if (bytes > peak) {
            peak = bytes;
            where = p;
        }
    }
    if (point)
        *point = where;
    return fmax(peak, 0);
}

bool sim_memory_fits(const SimMemory *memory, const ClusterView *view,
                     const double *share)
{
    g_auto(SimKinds) kinds = sim_kinds(view, memory->n_splits, share);
    bool fits = true;
    for (uint32_t k = 0; k < kinds.n && fits; k++) {
        const uint32_t j = kinds.first[k];
        fits = ceil(sim_memory_peak(memory, view, share, j, NULL)) <=
               (double)view->device[j].memory_bytes;
    }
    return fits;
}
