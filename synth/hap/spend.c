/* Spending spare memory on faster programs. */
#include "synth/hap/spend.h"

#include <math.h>
#include <string.h>

#include "synth/answer/ratios.h"
#include "synth/hap/ration.h"

/* The same charge for every byte. Caller frees. */
static double *even_charge(const ClusterView *view, double charge)
{
    double *memory_s = g_new(double, SYNTH_POINTS * view->n_devices);
    for (uint32_t i = 0; i < SYNTH_POINTS * view->n_devices; i++)
        memory_s[i] = charge;
    return memory_s;
}

/* Finds the programs of least memory, at ratios by speed, by GPUs and by memory. `charge`: a charge
 * at which memory decides. */
static bool spare(Alternation *a, double charge, GError **error)
{
    /* Not infinite, since the faster of two programs with equal memory is wanted: a million times
     * the price of all memory leaves six digits for seconds. */
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

/* Finds the fastest programs with limited memory, not only charged memory, at these ratios, and
 * again at the ratios that follow. A charge saves memory in all equal layers or in none; these
 * programs can save it in some of them. */
static bool ration(Alternation *a, const double *start, uint64_t effort, GError **error)
{
    /* Ratios settle in a few rounds. Rounding can turn programs around that are close to one
     * another, so several are rounded; a certificate that was asked for affords more labels. */
    enum { ROUNDS = 3, LABELS_TO_CERTIFY = 3000 };
    static const double guess =
        4;                    /* times the fastest program: enough for any that fits */
    double tolerance = 0.008; /* below the usual target of 1 %; finer in every round */
    uint32_t n = a->view->n_devices;
    g_autofree double *ratio = g_memdup2(start, n * sizeof *start);
    g_autofree double *memory_s = g_new(double, SYNTH_POINTS *n);
    for (uint32_t round = 0; round < ROUNDS && !answer_is_late(a->answer); round++) {
        double before_s = alternation_fits(a) ? a->best->iteration_time_s : INFINITY;
        SynthBox box = {.lo = ratio,
                        .hi = ratio,
                        .upper_s = alternation_fits(a)
                                       ? a->best->iteration_time_s
                                       : guess * a->best->iteration_time_s,
                        .deadline_us = a->answer->deadline_us};
        g_auto(SynthBound) bound = {0};
        gint64 begin = g_get_monotonic_time();
        if (round == 0 &&
            !ration_multipliers(a->answer->space, a->view, &box, memory_s, error))
            return false;
        box.memory_s = memory_s;
        box.rationed = true;
        box.labels = a->options->certify > 0 ? MAX(LABELS_TO_CERTIFY, a->options->labels)
                                             : a->options->labels;
        box.effort = effort;
        box.tolerance = tolerance;
        tolerance /= 2;
        box.n_programs = a->options->programs;
        bool done = synth_bound(a->answer->space, a->view, &box, &bound, error);
        a->search_s += (double)(g_get_monotonic_time() - begin) / G_USEC_PER_SEC;
        if (!done || !alternation_consider_all(a, bound.programs, ratio, error))
            return false;
        if (!alternation_fits(a) || a->best->iteration_time_s >= before_s)
            break;
        g_free(a->answer->memory_s);
        a->answer->memory_s = g_memdup2(memory_s, SYNTH_POINTS * n * sizeof *memory_s);
        memcpy(ratio, a->best->ratio, n * sizeof *ratio);
    }
    return true;
}

/* Searches from both ratios with the effort of the options; with a budget of time, with more and
 * more effort until the budget is spent or nothing improves. */
static bool ration_both(Alternation *a, const double *proportional, const double *even,
                        GError **error)
{
    enum {
        MORE = 8
    }; /* each search takes the most of the time, so that few are made for nothing */
    uint64_t effort = a->options->effort;
    double before_s;
    do {
        before_s = alternation_fits(a) ? a->best->iteration_time_s : INFINITY;
        if (!ration(a, proportional, effort, error) || !ration(a, even, effort, error))
            return false;
        effort *= MORE;
    } while (a->answer->deadline_us > 0 && effort > 0 && !answer_is_late(a->answer) &&
             alternation_fits(a) && a->best->iteration_time_s < before_s);
    return true;
}

/* Raises the charge until a program fits, then lowers it to the least charge at which one still
 * does. At the unit of the scale, all memory of the GPUs costs as much as the fastest iteration,
 * `time_s`. */
static bool save_memory(Alternation *a, const double *start, double time_s,
                        GError **error)
{
    /* Starts from a 32nd of the unit and multiplies by four, up to thirty times the unit. Two
     * bisections then leave the charge within a factor of 1.75. */
    enum { FIRST_PART = 32, RAISES = 6, RAISE = 4, BISECTIONS = 2 };
    uint32_t n = a->view->n_devices;
    double capacity = 0, low = 0, high = 0;
    for (uint32_t j = 0; j < n; j++)
        capacity += (double)a->view->device[j].memory_bytes;
    double charge = time_s / capacity / FIRST_PART;
    for (uint32_t i = 0; i < RAISES + BISECTIONS && (i < RAISES || high > 0) &&
                         !answer_is_late(a->answer);
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
    if (high == 0 && !answer_is_late(a->answer))
        return alternation_fits(a) || spare(a, charge, error);
    g_autofree double *memory_s = even_charge(a->view, high);
    g_autoptr(GPtrArray) history = g_ptr_array_new_with_free_func(g_free);
    return high == 0 || alternation_run(a, start, memory_s, history, error);
}

bool spend_memory(Alternation *a, const double *proportional, const double *even,
                  double time_s, double fractional_s, GError **error)
{
    double before_s = alternation_fits(a) ? a->best->iteration_time_s : INFINITY;
    a->answer->misfit_s = fractional_s;
    if (!ration_both(a, proportional, even, error))
        return false;
    const bool better = alternation_fits(a) && a->best->iteration_time_s < before_s;
    return better || save_memory(a, proportional, time_s, error);
}
