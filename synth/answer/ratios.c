/* Ratios that options pin or an alternation starts from. */
#include "synth/answer/ratios.h"

#include <math.h>

#include "balance/balance.h"

static double *normalised(const ClusterView *view, double (*weight)(const Device *device))
{
    double *ratio = g_new(double, view->n_devices), sum = 0;
    for (uint32_t j = 0; j < view->n_devices; j++)
        sum += ratio[j] = weight(&view->device[j]);
    for (uint32_t j = 0; j < view->n_devices; j++)
        ratio[j] /= sum;
    return ratio;
}

static double gpus_of(const Device *device)
{
    return device->gpus;
}

static double rate_of(const Device *device)
{
    return device->rate;
}

double *ratios_even(const ClusterView *view)
{
    return normalised(view, gpus_of);
}

static double ratios_memory_of(const Device *device)
{
    return (double)device->memory_bytes;
}

double *ratios_by_memory(const ClusterView *view)
{
    return normalised(view, ratios_memory_of);
}

double *ratios_proportional(const ClusterView *view)
{
    return normalised(view, rate_of);
}

static double *ratios_mix(const ClusterView *view, double part)
{
    double *ratio = ratios_even(view);
    g_autofree double *speed = ratios_proportional(view);
    for (uint32_t j = 0; j < view->n_devices; j++)
        ratio[j] = (1 - part) * ratio[j] + part * speed[j];
    return ratio;
}

double *ratios_pinned(const ClusterView *view, const PlannerOptions *options)
{
    switch (planner_ratios(options)) {
    case RATIOS_EVEN:
        return ratios_even(view);
    case RATIOS_PROPORTIONAL:
        return ratios_proportional(view);
    case RATIOS_MIX:
        return ratios_mix(view, g_ascii_strtod(options->mix, NULL));
    case RATIOS_GIVEN:
        return given_ratios(options->ratios, view, NULL); /* the question was checked */
    case RATIOS_OWN:
    case RATIOS_BEST:
        return NULL;
    }
    g_assert_not_reached();
}

/* Sums of the same shares in another order differ by less. */
static const double SAME = 1e-9;

bool ratios_same(const double *a, const double *b, uint32_t n)
{
    return !any_of(j, n, fabs(a[j] - b[j]) > SAME);
}

const double RATIOS_ROOM[] = {1, 0.98, 0.95, 0.9};

bool ratios_balance(const SimLinear *linear, const SimMemory *memory,
                    const ClusterView *view, uint32_t n_segments, double part,
                    double *ratio, GError **error)
{
    g_assert(part > 0 && part <= 1);
    ClusterView less = *view;
    g_autofree Device *device = g_memdup2(view->device, view->n_devices * sizeof *device);
    for (uint32_t j = 0; j < view->n_devices; j++)
        device[j].memory_bytes = (uint64_t)(part * (double)device[j].memory_bytes);
    less.device = device;
    BalanceReport report;
    return balance_ratios(linear, memory, &less, n_segments, ratio, &report, error);
}
