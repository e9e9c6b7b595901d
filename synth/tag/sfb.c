/* Sufficient factor broadcasting as a minimum cut. Costs become integers, so that the cut is exact;
 * its value is added up again in doubles. */
#include "synth/tag/sfb.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "synth/tag/cut.h"

/* The sum of all possible savings, as an integer. */
static const double RESOLUTION = 0x1p58;

enum { SOURCE, SINK, FIRST_OP };

static bool worth_anything(const SfbProblem *problem, double *sum)
{
    *sum = 0;
    for (uint32_t i = 0; i < problem->n_ops; i++)
        *sum += problem->saved[i];
    return *sum > 0;
}

/* An edge that costs more than all savings is never cut. */
static int64_t scaled(double cost, double scale)
{
    return cost * scale > RESOLUTION ? CUT_INFINITE : (int64_t)(cost * scale + 0.5);
}

static Cut *make_cut(const SfbProblem *problem, double scale)
{
    const uint32_t first_tensor = FIRST_OP + problem->n_ops;
    Cut *cut = cut_new(first_tensor + problem->n_tensors);
    for (uint32_t i = 0; i < problem->n_ops; i++) {
        if (problem->saved[i] > 0)
            cut_arc(cut, SOURCE, FIRST_OP + i, scaled(problem->saved[i], scale));
        if (problem->compute[i] > 0)
            cut_arc(cut, FIRST_OP + i, SINK, scaled(problem->compute[i], scale));
    }
    for (uint32_t k = 0; k < problem->n_reads; k++) {
        const SfbRead *read = &problem->read[k];
        const uint32_t producer = problem->producer[read->tensor];
        const int64_t broadcast = scaled(problem->broadcast[read->tensor], scale);
        if (producer != SFB_NO_OP)
            cut_arc(cut, FIRST_OP + read->op,
                    problem->each_reader ? FIRST_OP + producer
                                         : first_tensor + read->tensor,
                    problem->each_reader ? broadcast : CUT_INFINITE);
    }
    for (uint32_t t = 0; t < problem->n_tensors && !problem->each_reader; t++)
        if (problem->producer[t] != SFB_NO_OP)
            cut_arc(cut, first_tensor + t, FIRST_OP + problem->producer[t],
                    scaled(problem->broadcast[t], scale));
    return cut;
}

double synth_sfb_value(const SfbProblem *problem, const bool *duplicated)
{
    g_autofree bool *sent = g_new0(bool, problem->n_tensors + 1);
    double value = 0;
    for (uint32_t i = 0; i < problem->n_ops; i++)
        value += duplicated[i] ? problem->compute[i] - problem->saved[i] : 0;
    for (uint32_t k = 0; k < problem->n_reads; k++) {
        const SfbRead *read = &problem->read[k];
        const uint32_t producer = problem->producer[read->tensor];
        if (!duplicated[read->op] || producer == SFB_NO_OP || duplicated[producer] ||
            (!problem->each_reader && sent[read->tensor]))
            continue;
        sent[read->tensor] = true;
        value += problem->broadcast[read->tensor];
    }
    return value;
}

double synth_sfb(const SfbProblem *problem, bool *duplicated)
{
    double sum;
    memset(duplicated, 0, problem->n_ops * sizeof *duplicated);
    if (!worth_anything(problem, &sum))
        return 0;
    /* Savings of almost nothing would make it infinite, and nothing times that a NaN. */
    g_autoptr(Cut) cut = make_cut(problem, fmin(RESOLUTION / sum, DBL_MAX));
    g_autofree bool *side = g_new(bool, FIRST_OP + problem->n_ops + problem->n_tensors);
    cut_solve(cut, side);
    memcpy(duplicated, side + FIRST_OP, problem->n_ops * sizeof *duplicated);
    const double value = synth_sfb_value(problem, duplicated);
    if (value <= 0)
        return value;
    memset(duplicated, 0,
           problem->n_ops * sizeof *duplicated); /* the gain is below rounding */
    return 0;
}
