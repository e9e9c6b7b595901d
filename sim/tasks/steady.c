/* Long pipelines, shortly.
 *
 * A clock of `stage` is the latest of the clocks that it waits for, later by a constant. So once
 * everything in a repetition of the program's middle (data/program/period.h) ends by the same time
 * later than in the one some before it, a cycle, and this has been so for as many repetitions as a
 * later one waits for, it stays so (Baccelli et al., Synchronization and Linearity, 1992, Ch. 3):
 * every further cycle adds as much to a report as the last one did. Programs with two numbers of
 * repetitions then give the report of the whole one. */
#include "data/program/period.h"
#include "sim/evaluate.h"

#include <math.h>

/* The first span of an instruction, or of one behind it. */
static uint32_t steady_first(const SimTimeline *t, uint32_t instr)
{
    uint32_t i = 0;
    while (i < t->n_spans && t->span[i].instr < instr)
        i++;
    return i;
}

/* Whether each span of the last repetitions is later than the one c repetitions before it, all by
 * the same time. */
static bool steady_by(const SimTimeline *t, const ProgramPeriod *p, uint32_t c,
                      uint32_t from, uint32_t end)
{
    const uint32_t back = c * ((end - from) / (p->depth + 1));
    const double about = 1e-12 * sim_timeline_end_s(t);
    double later_s = NAN;
    for (uint32_t i = from; i < end; i++) {
        const SimSpan *now = &t->span[i], *before = &t->span[i - MIN(back, i)];
        const double s = now->end_s - before->end_s;
        later_s = isnan(later_s) ? s : later_s;
        if (now->instr != before->instr + c * p->n || fabs(s - later_s) > about)
            return false;
    }
    return true;
}

/* After how many repetitions all is as before, but later; 0: not yet. */
static uint32_t steady_cycle(const SimTimeline *t, const ProgramPeriod *p)
{
    const uint32_t behind = p->first + p->repeats * p->n,
                   from = steady_first(t, behind - (p->depth + 1) * p->n),
                   end = steady_first(t, behind);
    for (uint32_t c = 1; c + p->depth + 1 <= p->repeats; c++)
        if (steady_by(t, p, c, from, end))
            return c;
    return 0;
}

/* The report on a program with so many repetitions. */
static SimReport *steady_report(const Plan *plan, const ProgramPeriod *period, uint32_t n,
                                const Graph *graph, const ClusterView *view,
                                const SimOptions *options, GError **error)
{
    Plan shorter = *plan;
    g_autoptr(Program) program = shorter.program =
        program_repeat(plan->program, period, n);
    return sim_evaluate_with(&shorter, graph, view, fidelity_name(FIDELITY_STAGE),
                             options, error);
}

/* Adds what n further repetitions hold and send, each as much as `more` has more than `less`. */
static void steady_add_bytes(SimReport *more, const SimReport *less, double n)
{
    more->toll += n * (more->toll - less->toll);
    for (uint32_t j = 0; j < more->n_devices; j++)
        more->memory_bytes[j] = (uint64_t)((double)more->memory_bytes[j] +
                                           n * ((double)more->memory_bytes[j] -
                                                (double)less->memory_bytes[j]));
    g_clear_pointer(&more->timeline, sim_timeline_free);
}

/* Adds what n further repetitions do, each as much as `more` has more than `less`. */
static void steady_add(SimReport *more, const SimReport *less, double n)
{
    double *time[] = {&more->iteration_time_s, &more->comm_s, &more->comp_s,
                      &more->launch_s};
    const double *base[] = {&less->iteration_time_s, &less->comm_s, &less->comp_s,
                            &less->launch_s};
    double *of[] = {more->busy_s, more->comm_busy_s, more->idle_s, more->hidden_s};
    const double *to[] = {less->busy_s, less->comm_busy_s, less->idle_s, less->hidden_s};
    for (uint32_t k = 0; k < G_N_ELEMENTS(time); k++)
        *time[k] += n * (*time[k] - *base[k]);
    for (uint32_t k = 0; k < G_N_ELEMENTS(of); k++)
        for (uint32_t j = 0; j < more->n_devices; j++)
            of[k][j] += n * (of[k][j] - to[k][j]);
    items_at (SimStageReport, a, i, more->stage, more->n_stages) {
        const SimStageReport *b = &less->stage[i];
        a->start_s += n * (a->start_s - b->start_s);
        a->comm_s += n * (a->comm_s - b->comm_s);
        a->comp_s += n * (a->comp_s - b->comp_s);
    }
    steady_add_bytes(more, less, n);
}

/* Lets the report name instructions of the plan's program instead of one with n repetitions, which
 * may be more. */
static void steady_place(SimReport *report, const Plan *plan, const ProgramPeriod *p,
                         uint32_t n)
{
    for (uint32_t j = 0; j < report->n_devices; j++)
        report->memory_instr[j] =
            program_place(p, n, p->repeats, report->memory_instr[j]);
    for (uint32_t i = 0; i < report->n_stages; i++)
        report->stage[i].n = plan->program->n;
}

/* The report of the whole program from n repetitions; *again: it takes more of them. */
static SimReport *steady_try(const Plan *plan, const ProgramPeriod *period, uint32_t n,
                             const Graph *graph, const ClusterView *view,
                             const SimOptions *options, bool *again, GError **error)
{
    const uint32_t n_all = program_all_repeats(plan->program, period);
    ProgramPeriod now = *period;
    now.repeats = n;
    g_autoptr(SimReport) more =
        steady_report(plan, period, n, graph, view, options, error);
    const uint32_t cycle = more ? steady_cycle(more->timeline, &now) : 1;
    *again = cycle == 0 || (n_all - n) % cycle > 0;
    g_autoptr(SimReport) less =
        more && !*again
            ? steady_report(plan, period, n - cycle, graph, view, options, error)
            : NULL;
    if (!less)
        return NULL;
    steady_add(more, less, (n_all - n) / cycle);
    steady_place(more, plan, period, n);
    sim_report_fit(more, plan->program, graph, view);
    return g_steal_pointer(&more);
}

/* A report without what devices do when, from n repetitions: where the time alone is asked for, or
 * the plan takes long enough, without memory, or a brief one. NULL: all of the report is wanted, or
 * all of the program. */
static SimReport *steady_brief(const Plan *plan, const ProgramPeriod *period, uint32_t n,
                               const Graph *graph, const ClusterView *view,
                               const SimOptions *options)
{
    SimOptions alone = *options;
    alone.time_only = options->time_only || !options->brief;
    alone.further = program_all_repeats(plan->program, period) - n;
    if ((alone.time_only && !options->time_only && options->enough_s == 0) ||
        plan->program->successive || plan->program->n_groups == 0)
        return NULL;
    g_autoptr(SimReport) report =
        steady_report(plan, period, n, graph, view, &alone, NULL);
    if (!report || isnan(report->iteration_time_s))
        return NULL;
    const bool enough =
        options->time_only ||
        (options->enough_s > 0 && report->iteration_time_s >= options->enough_s);
    if (!enough && !options->brief)
        return NULL;
    if (!enough) {
        alone.further++;
        alone.enough_s = 0; /* its memory, too, though its time may be rounded up */
        g_autoptr(SimReport) less =
            steady_report(plan, period, n - 1, graph, view, &alone, NULL);
        if (!less)
            return NULL;
        steady_add_bytes(report, less, alone.further - 1);
    }
    g_clear_pointer(&report->timeline, sim_timeline_free);
    report->brief = true;
    steady_place(report, plan, period, n);
    if (!enough)
        sim_report_fit(report, plan->program, graph, view);
    return g_steal_pointer(&report);
}

SimReport *sim_evaluate_shortly(const Plan *plan, const Graph *graph,
                                const ClusterView *view, const char *fidelity,
                                const SimOptions *options, GError **error)
{
    enum { CYCLE = 4 }; /* the longest that is common: no part of it is left beside */
    ProgramPeriod period;
    if (g_strcmp0(fidelity, fidelity_name(FIDELITY_STAGE)) != 0 ||
        !program_find_period(plan->program, &period))
        return sim_evaluate_with(plan, graph, view, fidelity, options, error);
    const uint32_t n_all = program_all_repeats(plan->program, &period),
                   few = plan->strategy.offload
                             ? 0
                             : program_few_repeats(plan->program, &period);
    SimReport *report =
        few ? steady_brief(plan, &period, few, graph, view, options) : NULL;
    bool again = !report && few;
    for (uint32_t n = few; again && n <= n_all / PERIOD_FEWER; n *= 2) {
        n += (n_all - n) % CYCLE;
        report = steady_try(plan, &period, n, graph, view, options, &again, error);
    }
    return report || (few && !again)
               ? report
               : steady_report(plan, &period, n_all, graph, view, options, error);
}
