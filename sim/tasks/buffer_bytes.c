/* Bytes of buffers on a device, and their peak. */
#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "data/program/blocks.h"
#include "sim/tasks/buffers.h"

double sim_buffer_bytes(const SimCase *sim, const PlanBuffer *buffer, uint32_t i)
{
    KILTER_ASSERT(i < sim->parts->layout.group[buffer->group].n_replicas *
                          sim->parts->layout.group[buffer->group].n_devices);
    const uint32_t device = sim->parts->layout.group[buffer->group].device[i];
    return plan_buffer_whole_bytes(sim->graph, buffer) *
           sim_part_of(sim->parts, buffer->group, buffer->tensor, buffer->form, i) /
           (buffer->held ? 1 : sim->view->device[device].gpus);
}

uint32_t *sim_group_places(const SimCase *sim, uint32_t device)
{
    g_assert(device < sim->view->n_devices);
    const SimParts *parts = sim->parts;
    uint32_t *place = g_new(uint32_t, parts->layout.n_groups);
    items_at (const DeviceGroup, group, g, parts->layout.group, parts->layout.n_groups) {
        place[g] = SIM_NOT_THERE;
        for (uint32_t i = 0; i < group->n_replicas * group->n_devices; i++)
            if (group->device[i] == device)
                place[g] = i;
    }
    return place;
}

/* Tables for several devices, and the changes of bytes on one of them. A cell is an instruction, or
 * the end of a block. */
typedef struct {
    const SimCase *sim;
    const PlanBuffers *buffers;
    const ProgramBlocks *blocks; /* NULL: all of the program is one */
    uint32_t *cell;              /* [instr]: its cell; NULL: these are the same */
    /* [group + 1]: its first place in `of`, which has its buffers in order */
    uint32_t *first, *of;
    double loaded;      /* bytes of what was loaded for microbatches */
    double *change;     /* [cell]: of the bytes there */
    uint64_t *changes;  /* bits [cell]: whether they change there */
    double *last_bytes; /* [tensor]: of its last buffer */
    const PlanBuffer **last;
} Peaks;

/* Puts the buffers of each group one after another. */
static void peaks_by_group(Peaks *p)
{
    const uint32_t n_groups = p->sim->parts->layout.n_groups;
    p->first = g_new0(uint32_t, n_groups + 2);
    p->of = g_new(uint32_t, p->buffers->n + 1);
    items_each (const PlanBuffer, buffer, p->buffers->buffer, p->buffers->n)
        p->first[buffer->group + 2]++;
    for (uint32_t g = 0; g < n_groups; g++)
        p->first[g + 2] += p->first[g + 1];
    for (uint32_t i = 0; i < p->buffers->n; i++)
        p->of[p->first[p->buffers->buffer[i].group + 1]++] = i;
}

/* Whether buffers of a tensor, such as those of several microbatches, have the same bytes. */
static bool bytes_are_alike(const PlanBuffer *a, const PlanBuffer *b)
{
    return a->group == b->group && a->form == b->form && a->held == b->held &&
           a->element_bytes == b->element_bytes;
}

/* Adds a buffer at the device's place in its group. */
static void peaks_add(Peaks *p, const PlanBuffer *buffer, uint32_t place)
{
    const PlanBuffer **of = &p->last[buffer->tensor];
    double *bytes = &p->last_bytes[buffer->tensor];
    if (!*of || !bytes_are_alike(*of, buffer))
        *bytes = sim_buffer_bytes(p->sim, buffer, place);
    *of = buffer;
    const Program *program = p->sim->plan->program;
    uint32_t at[] = {plan_buffer_first(buffer), plan_buffer_last(program, buffer)};
    if (program->instr[at[0]].kind == INSTR_LOAD &&
        program->instr[at[1]].microbatch != PROGRAM_WHOLE)
        p->loaded += *bytes;
    for (uint32_t k = 0; p->cell && k < 2; k++)
        at[k] = p->cell[at[k]];
    at[1]++; /* the end of its block, if it is the last one there */
    for (uint32_t k = 0; k < 2; k++) {
        p->change[at[k]] += k ? -*bytes : *bytes;
        p->changes[at[k] / 64] |= UINT64_C(1) << at[k] % 64;
    }
}

/* Adds the changes of the cells from *from to below `end`, which are 0 again then: returns their
 * sum. *top: the largest sum up to a cell, and *at: the cell. */
static double peaks_take(Peaks *p, uint32_t from, uint32_t end, double *top, uint32_t *at)
{
    double live = 0;
    *top = -INFINITY;
    *at = from;
    for (uint32_t w = from / 64; w <= (end - 1) / 64; w++)
        for (uint64_t left = p->changes[w]; left; left &= left - 1) {
            const uint32_t i = 64 * w + (uint32_t)__builtin_ctzll(left);
            if (i < from || i >= end)
                continue;
            p->changes[w] &= ~(UINT64_C(1) << i % 64);
            live += p->change[i];
            p->change[i] = 0;
            if (live > *top && i + 1 < end) {
                *top = live;
                *at = i;
            }
        }
    return live;
}

/* The peak over all blocks of a program, of which the case has the part; NAN: what is made is not
 * what is dropped. What is loaded for microbatches that the part has not is there before. */
static double peaks_of_blocks(Peaks *p, uint32_t *instr)
{
    const ProgramBlocks *blocks = p->blocks;
    g_autofree double *sum = g_new(double, blocks->n_of),
                      *top = g_new(double, blocks->n_of);
    g_autofree uint32_t *at = g_new(uint32_t, blocks->n_of);
    double all = 0, peak = 0;
    for (uint32_t k = 0; k < blocks->n_of; k++) {
        const uint32_t begin = p->cell[blocks->first[k]],
                       end = p->cell[blocks->first[k + 1] - 1] + 2;
        sum[k] = peaks_take(p, begin, end, &top[k], &at[k]);
        at[k] -= begin;
    }
    items_each (const ProgramBlock, block, blocks->block, blocks->n)
        all += sum[block->of];
    if (all > 1 || -all > p->loaded * blocks->n_microbatches + 1)
        return NAN;
    double live = -all;
    items_each (const ProgramBlock, block, blocks->block, blocks->n) {
        if (live + top[block->of] > peak) {
            peak = live + top[block->of];
            *instr = block->first + at[block->of];
        }
        live += sum[block->of];
    }
    return peak;
}

/* The cells of instructions: a block has one more than instructions. */
static uint32_t *peaks_cells(const ProgramBlocks *blocks)
{
    uint32_t *cell = g_new(uint32_t, blocks->part->n + 1);
    for (uint32_t k = 0; k < blocks->n_of; k++)
        for (uint32_t i = blocks->first[k]; i < blocks->first[k + 1]; i++)
            cell[i] = i + k;
    return cell;
}

bool sim_buffers_peaks(const SimCase *sim, const PlanBuffers *buffers,
                       const uint32_t *device, uint32_t n, double *peak, uint32_t *instr)
{
    const ProgramBlocks *blocks = sim->options ? sim->options->blocks : NULL;
    const uint32_t n_tensors = graph_n_tensors(sim->graph),
                   end = sim->plan->program->n + (blocks ? blocks->n_of : 1);
    g_autofree uint32_t *cell = blocks ? peaks_cells(blocks) : NULL;
    g_autofree double *change = g_new0(double, end),
                      *last_bytes = g_new(double, n_tensors);
    g_autofree uint64_t *changes = g_new0(uint64_t, end / 64 + 1);
    g_autofree const PlanBuffer **last = g_new(const PlanBuffer *, n_tensors);
    bool known = true;
    Peaks p = {.sim = sim,
               .buffers = buffers,
               .blocks = blocks,
               .cell = cell,
               .change = change,
               .changes = changes,
               .last_bytes = last_bytes,
               .last = last};
    peaks_by_group(&p);
    for (uint32_t k = 0; k < n; k++) {
        g_autofree uint32_t *place = sim_group_places(sim, device[k]);
        memset(last, 0, n_tensors * sizeof *last);
        p.loaded = 0;
        for (uint32_t g = 0; g < sim->parts->layout.n_groups; g++)
            for (uint32_t i = p.first[g]; place[g] != SIM_NOT_THERE && i < p.first[g + 1];
                 i++)
                peaks_add(&p, &buffers->buffer[p.of[i]], place[g]);
        instr[k] = 0;
        if (blocks)
            peak[k] = peaks_of_blocks(&p, &instr[k]);
        else
            peaks_take(&p, 0, end, &peak[k], &instr[k]);
        known = known && !isnan(peak[k]);
        peak[k] = fmax(peak[k], 0);
    }
    free_each(p.first, p.of);
    return known;
}
