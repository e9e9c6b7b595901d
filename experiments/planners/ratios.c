/* Ratios that are pinned or start an alternation. */
#include "experiments/planners/ratios.h"

#include <math.h>

#include "experiments/planners/planner_options.h"

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

static double memory_of(const Device *device)
{
    return (double)device->memory_bytes;
}

double *ratios_by_memory(const ClusterView *view)
{
    return normalised(view, memory_of);
}

double *ratios_proportional(const ClusterView *view)
{
    return normalised(view, rate_of);
}

double *ratios_pinned(const ClusterView *view, uint32_t choice)
{
    return choice == RATIOS_EVEN           ? ratios_even(view)
           : choice == RATIOS_PROPORTIONAL ? ratios_proportional(view)
                                           : NULL;
}

bool ratios_same(const double *a, const double *b, uint32_t n)
{
    for (uint32_t j = 0; j < n; j++)
        if (fabs(a[j] - b[j]) > 1e-9)
            return false;
    return true;
}
