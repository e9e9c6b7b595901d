/* Random instances of the ratio LP, made without a graph: devices of a few classes,
 * stages with fixed and sharded work, terms within and between segments, memory points.
 * The same seed gives the same instance. */
#ifndef KILTER_TESTS_RANDOM_LINEAR_H
#define KILTER_TESTS_RANDOM_LINEAR_H

#include <math.h>

#include "sim/sim.h"

typedef struct {
    uint32_t n_devices, n_classes, n_stages, n_segments;
    double replicated; /* fraction of stages with work that every device does */
    bool inner;        /* some devices are machines of several GPUs */
} RandomShape;

static inline double random_log(GRand *random, double low, double high)
{
    return low * pow(high / low, g_rand_double(random));
}

static inline ClusterView *random_view(GRand *random, const RandomShape *shape)
{
    static const char *const name[] = {"d0",  "d1",  "d2",  "d3", "d4",  "d5",
                                       "d6",  "d7",  "d8",  "d9", "d10", "d11",
                                       "d12", "d13", "d14", "d15"};
    ClusterView *view = g_new0(ClusterView, 1);
    view->n_devices = shape->n_devices;
    view->device = g_new0(Device, shape->n_devices);
    g_autofree Device *class = g_new0(Device, shape->n_classes);
    for (uint32_t c = 0; c < shape->n_classes; c++) {
        Device *new = &class[c];
        new->gpus = shape->inner ? 1u << g_rand_int_range(random, 0, 4) : 1;
        new->rate = random_log(random, 2e12, 2e13) * new->gpus;
        new->inner =
            (LinkCost){random_log(random, 1e-6, 1e-4), random_log(random, 1e10, 1e11)};
        /* Some classes differ only in memory. */
        if (c > 0 && g_rand_double(random) < 0.3)
            *new = class[c - 1];
        new->type = c;
        new->type_name = name[c % 16];
        new->memory_bytes = (uint64_t)g_rand_int_range(random, 8, 33) << 30;
    }
    for (uint32_t j = 0; j < shape->n_devices; j++) {
        view->device[j] =
            class[j < shape->n_classes
                      ? j
                      : (uint32_t)g_rand_int_range(random, 0, (int)shape->n_classes)];
        view->device[j].name = name[j % 16];
    }
    return view;
}

static inline void random_view_free(ClusterView *view)
{
    g_free(view->device);
    g_free(view);
}

/* Gives every segment one split. */
static inline SimLinear *random_linear(GRand *random, const RandomShape *shape)
{
    SimLinear *linear = g_new0(SimLinear, 1);
    uint32_t n_splits = shape->n_segments, n = shape->n_stages;
    linear->n_stages = n;
    linear->n_splits = n_splits;
    linear->stage = g_new0(SimStage, n);
    linear->split = g_new0(SimSplit, n_splits);
    linear->flops = g_new0(double, (size_t)n *n_splits);
    linear->inner_bytes = g_new0(double, (size_t)n *n_splits);
    linear->term = g_new0(SimTerm, n);
    for (uint32_t s = 0; s < n_splits; s++)
        linear->split[s] = (SimSplit){s, 64};
    for (uint32_t i = 0; i < n; i++) {
        SimStage *stage = &linear->stage[i];
        uint32_t s = (uint32_t)((uint64_t)i * n_splits / n);
        stage->comm_s = random_log(random, 1e-5, 1e-2);
        linear->flops[i * n_splits + s] = random_log(random, 1e9, 1e12);
        if (n_splits > 1 && g_rand_double(random) < 0.3)
            linear->flops[i * n_splits + (s + 1) % n_splits] =
                random_log(random, 1e9, 1e12);
        if (g_rand_double(random) < shape->replicated)
            stage->fixed.flops = random_log(random, 1e9, 3e11);
        if (shape->inner) {
            stage->fixed.inner_messages = (uint32_t)g_rand_int_range(random, 1, 5);
            stage->fixed.inner_bytes = random_log(random, 1e5, 1e9);
            linear->inner_bytes[i * n_splits + s] = random_log(random, 1e5, 1e9);
        }
        if (g_rand_double(random) < 0.5) {
            uint32_t to = n_splits > 1 && g_rand_boolean(random) ? (s + 1) % n_splits : s;
            linear->term[linear->n_terms++] =
                (SimTerm){i, s, to, random_log(random, 1e-3, 1e-1)};
        }
    }
    return linear;
}

/* Memory points that bind for some devices at some ratios: `tight` near 1 leaves room for few
 * ratios, far above 1 for none. */
static inline SimMemory *random_memory(GRand *random, const SimLinear *linear,
                                       const ClusterView *view, uint32_t n_points,
                                       double tight)
{
    SimMemory *memory = g_new0(SimMemory, 1);
    double least = INFINITY, all = 0;
    for (uint32_t j = 0; j < view->n_devices; j++) {
        least = fmin(least, (double)view->device[j].memory_bytes);
        all += (double)view->device[j].memory_bytes;
    }
    memory->n_points = n_points;
    memory->n_splits = linear->n_splits;
    memory->instr = g_new0(uint32_t, n_points);
    memory->held = g_new0(double, n_points);
    memory->divided = g_new0(double, n_points);
    memory->held_sharded = g_new0(double, (size_t)n_points * linear->n_splits);
    memory->divided_sharded = g_new0(double, (size_t)n_points * linear->n_splits);
    for (uint32_t p = 0; p < n_points; p++) {
        memory->instr[p] = 10 * p;
        memory->held[p] = floor(least * 0.3 * g_rand_double(random));
        memory->divided[p] = floor(least * 0.1 * g_rand_double(random));
        double rest = (all - view->n_devices * (memory->held[p] + memory->divided[p])) /
                      linear->n_splits;
        for (uint32_t s = 0; s < linear->n_splits; s++) {
            size_t at = (size_t)p * linear->n_splits + s;
            double whole = tight * rest * g_rand_double_range(random, 0.8, 1);
            double divided = g_rand_double(random) * 0.5;
            memory->held_sharded[at] = floor((1 - divided) * whole);
            memory->divided_sharded[at] = floor(divided * whole);
        }
    }
    return memory;
}

#endif
