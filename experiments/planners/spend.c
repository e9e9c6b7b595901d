/* Spending spare memory on faster programs. */
#include "experiments/planners/spend.h"

#include <math.h>
#include <string.h>

#include "experiments/planners/ration.h"
#include "experiments/planners/ratios.h"

/* The same charge for every byte. Caller frees. */
static double *even_charge(const ClusterView *view, double charge)
{
    double *memory_s = g_new(double, SYNTH_POINTS * view->n_devices);
    for (uint32_t i = 0; i < SYNTH_POINTS * view->n_devices; i++)
        memory_s[i] = charge;
    return memory_s;
}

/* The programs of least memory, at ratios by speed, by GPUs and by memory. `charge`: one at which
 * memory already decides. */
static bool spare(Alternation *a, double charge, GError **error)
{
    /* Not infinite, as the faster of two programs that take the same memory is wanted: a million times what all
     * memory should cost leaves seconds six digits. */
    static const double OUTWEIGHS = 1e6;
    g_autofree double *memory_s = even_charge(a->view, OUTWEIGHS * charge);
    for (uint32_t i = 0; i < 3; i++) {
        g_autofree double *ratio = i == 0   ? ratios_proportional(a->view)
                                   : i == 1 ? ratios_even(a->view)
                                            : ratios_by_memory(a->view);
        bool feasible;
        if (!a->pinned && !alternation_round(a, ratio, memory_s, &feasible, error))
            return false;
    }
    return true;
}

/* The fastest programs whose memory is limited, not only charged for, at these ratios, and again at
 * those that come out. One charge saves memory in all of the layers that are alike or in none;
 * among these are those that save it in some. */
static bool ration(Alternation *a, const double *start, uint64_t effort, GError **error)
{
    /* Ratios settle in a few rounds. Rounding can turn programs around that are close to one another, so
     * a dozen are rounded; a certificate that was asked for affords more labels. */
    enum { ROUNDS = 3, PROGRAMS = 12, LABELS = 800, LABELS_TO_CERTIFY = 3000 };
    static const double guess =
        4; /* times the fastest program: enough for any that fits */
    double tolerance =
        0.008; /* below 1 %, which is what is asked for; finer every round */
    uint32_t n = a->view->n_devices;
    g_autofree double *ratio = g_memdup2(start, n * sizeof *start);
    g_autofree double *memory_s = g_new(double, SYNTH_POINTS *n);
    for (uint32_t round = 0; round < ROUNDS && !planning_is_late(a->planning); round++) {
        double before_s = alternation_fits(a) ? a->best->iteration_time_s : INFINITY;
        SynthBox box = {.lo = ratio,
                        .hi = ratio,
                        .upper_s = alternation_fits(a)
                                       ? a->best->iteration_time_s
                                       : guess * a->best->iteration_time_s,
                        .deadline_us = a->planning->deadline_us};
        g_auto(SynthBound) bound = {0};
        gint64 begin = g_get_monotonic_time();
        if (round == 0 &&
            !ration_multipliers(a->planning->space, a->view, &box, memory_s, error))
            return false;
        box.memory_s = memory_s;
        box.rationed = true;
        box.labels = a->options->certify > 0 ? LABELS_TO_CERTIFY : LABELS;
        box.effort = effort;
        box.tolerance = tolerance;
        tolerance /= 2;
        box.n_programs = PROGRAMS;
        bool done = synth_bound(a->planning->space, a->view, &box, &bound, error);
        a->search_s += (double)(g_get_monotonic_time() - begin) / G_USEC_PER_SEC;
        if (!done || !alternation_consider_all(a, bound.programs, ratio, error))
            return false;
        if (!alternation_fits(a) || a->best->iteration_time_s >= before_s)
            break;
        g_free(a->planning->done->memory_s);
        a->planning->done->memory_s =
            g_memdup2(memory_s, SYNTH_POINTS * n * sizeof *memory_s);
        memcpy(ratio, a->best->ratio, n * sizeof *ratio);
    }
    return true;
}

/* From both ratios with the effort that the options say; with a budget of time, ever more until it
 * is spent or makes nothing better. */
static bool ration_both(Alternation *a, const double *proportional, const double *even,
                        GError **error)
{
    enum { MORE = 8 };
    uint64_t effort = a->options->effort;
    double before_s;
    do {
        before_s = alternation_fits(a) ? a->best->iteration_time_s : INFINITY;
        if (!ration(a, proportional, effort, error) || !ration(a, even, effort, error))
            return false;
        effort *= MORE;
    } while (a->planning->deadline_us > 0 && effort > 0 &&
             !planning_is_late(a->planning) && alternation_fits(a) &&
             a->best->iteration_time_s < before_s);
    return true;
}

/* Raises the charge until a program fits, then narrows it down to the least one that still does.
 * The scale: all memory of the GPUs costs as much as the fastest iteration, of `time_s`. */
static bool save_memory(Alternation *a, const double *start, double time_s,
                        GError **error)
{
    /* From a 32nd, four times more each: to thirty times what all memory should cost. Two bisections leave the charge
     * within a factor of 1.75. */
    enum { FIRST_PART = 32, RAISES = 6, RAISE = 4, BISECTIONS = 2 };
    uint32_t n = a->view->n_devices;
    double capacity = 0, low = 0, high = 0;
    for (uint32_t j = 0; j < n; j++)
        capacity += (double)a->view->device[j].memory_bytes;
    double charge = time_s / capacity / FIRST_PART;
    for (uint32_t i = 0; i < RAISES + BISECTIONS && (i < RAISES || high > 0) &&
                         !planning_is_late(a->planning);
         i++) {
        g_autofree double *ratio = g_memdup2(start, n * sizeof *start);
        g_autofree double *memory_s = even_charge(a->view, charge);
        bool feasible;
        if (!alternation_round(a, ratio, memory_s, &feasible, error))
            return false;
        if (feasible)
            high = charge;
        else
            low = charge;
        if (high > 0 && i < RAISES)
            i = RAISES;
        charge = high > 0 ? (low + high) / 2 : RAISE * charge;
    }
    if (high == 0 && !planning_is_late(a->planning))
        return alternation_fits(a) || spare(a, charge, error);
    g_autofree double *memory_s = even_charge(a->view, high);
    g_autoptr(GPtrArray) history = g_ptr_array_new_with_free_func(g_free);
    return high == 0 || alternation_run(a, start, memory_s, history, error);
}

bool spend_memory(Alternation *a, const double *proportional, const double *even,
                  double time_s, double fractional_s, GError **error)
{
    double before_s = alternation_fits(a) ? a->best->iteration_time_s : INFINITY;
    a->planning->done->misfit_s = fractional_s;
    if (!ration_both(a, proportional, even, error))
        return false;
    const bool better = alternation_fits(a) && a->best->iteration_time_s < before_s;
    return better || save_memory(a, proportional, time_s, error);
}
