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
#include <string.h>

/* Spans in the order of their instructions; first: [instruction + 1], where its spans begin. */
static uint32_t *steady_spans(const SimTimeline *t, uint32_t *first)
{
    uint32_t *span = g_new(uint32_t, t->n_spans);
    for (uint32_t i = 0; i < t->n_spans; i++)
        first[t->span[i].instr + 2]++;
    for (uint32_t i = 1; i < t->n_instrs + 2; i++)
        first[i] += first[i - 1];
    for (uint32_t i = 0; i < t->n_spans; i++)
        span[first[t->span[i].instr + 1]++] = i;
    return span;
}

/* Whether each of the last repetitions is later than the one c before it, all by the same time,
 * *later_s. */
static bool steady_by(const SimTimeline *t, const ProgramPeriod *p, uint32_t c,
                      const uint32_t *first, const uint32_t *span, double *later_s)
{
    const uint32_t end = p->first + p->repeats * p->n, back = c * p->n;
    const double about = 1e-12 * sim_timeline_end_s(t);
    *later_s = NAN;
    for (uint32_t i = end - (p->depth + 1) * p->n; i < end; i++) {
        const uint32_t *now = &span[first[i]], *before = &span[first[i - back]],
                       n = first[i + 1] - first[i];
        if (n != first[i - back + 1] - first[i - back])
            return false;
        for (uint32_t k = 0; k < n; k++) {
            const double s = t->span[now[k]].end_s - t->span[before[k]].end_s;
            *later_s = isnan(*later_s) ? s : *later_s;
            if (fabs(s - *later_s) > about)
                return false;
        }
    }
    return true;
}

/* After how many repetitions all is as before, but later by *later_s; 0: not yet. */
static uint32_t steady_cycle(const SimTimeline *t, const ProgramPeriod *p,
                             double *later_s)
{
    g_autofree uint32_t *first = g_new0(uint32_t, t->n_instrs + 2),
                        *span = steady_spans(t, first);
    for (uint32_t c = 1; c + p->depth + 1 <= p->repeats; c++)
        if (steady_by(t, p, c, first, span, later_s))
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

/* Adds what n further repetitions do, each as much as `more` has more than `less`. */
static void steady_add(SimReport *more, const SimReport *less, double n)
{
    double *time[] = {&more->iteration_time_s, &more->comm_s, &more->comp_s, &more->toll,
                      &more->launch_s};
    const double *base[] = {&less->iteration_time_s, &less->comm_s, &less->comp_s,
                            &less->toll, &less->launch_s};
    double *of[] = {more->busy_s, more->comm_busy_s, more->idle_s, more->hidden_s};
    const double *to[] = {less->busy_s, less->comm_busy_s, less->idle_s, less->hidden_s};
    for (uint32_t k = 0; k < G_N_ELEMENTS(time); k++)
        *time[k] += n * (*time[k] - *base[k]);
    for (uint32_t k = 0; k < G_N_ELEMENTS(of); k++)
        for (uint32_t j = 0; j < more->n_devices; j++)
            of[k][j] += n * (of[k][j] - to[k][j]);
    for (uint32_t j = 0; j < more->n_devices; j++)
        more->memory_bytes[j] = (uint64_t)((double)more->memory_bytes[j] +
                                           n * ((double)more->memory_bytes[j] -
                                                (double)less->memory_bytes[j]));
    for (uint32_t i = 0; i < more->n_stages; i++) {
        SimStageReport *a = &more->stage[i];
        const SimStageReport *b = &less->stage[i];
        a->start_s += n * (a->start_s - b->start_s);
        a->comm_s += n * (a->comm_s - b->comm_s);
        a->comp_s += n * (a->comp_s - b->comp_s);
    }
    g_clear_pointer(&more->timeline, sim_timeline_free);
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

/* Leaves memory out of a report, in which it then fits. */
static void steady_forget_memory(SimReport *report)
{
    memset(report->memory_bytes, 0, report->n_devices * sizeof *report->memory_bytes);
    g_clear_pointer(&report->worst_instr, g_free);
    report->feasible = true;
    report->missing_bytes = 0;
}

/* The report of the whole program from n repetitions; *again: it takes more of them. A plan that
 * takes long enough is told by its first part, without the rest of its report. */
static SimReport *steady_try(const Plan *plan, const ProgramPeriod *period, uint32_t n,
                             const Graph *graph, const ClusterView *view,
                             const SimOptions *options, bool *again, GError **error)
{
    const uint32_t n_all = program_all_repeats(plan->program, period);
    ProgramPeriod now = *period;
    SimOptions all = *options;
    double later_s = 0;
    all.enough_s = 0;
    all.time_only |= options->enough_s > 0;
    now.repeats = n;
    g_autoptr(SimReport) more = steady_report(plan, period, n, graph, view, &all, error);
    const uint32_t cycle = more ? steady_cycle(more->timeline, &now, &later_s) : 1,
                   beside = cycle ? (n_all - n) % cycle : 0;
    *again = cycle == 0;
    if (*again)
        return NULL;
    const double whole_s =
        more ? more->iteration_time_s + (n_all - n) / cycle * later_s : 0;
    if (options->enough_s > 0 && beside == 0 && whole_s >= options->enough_s) {
        more->iteration_time_s = whole_s;
        steady_place(more, plan, period, n);
        g_clear_pointer(&more->timeline, sim_timeline_free);
        return g_steal_pointer(&more);
    }
    if (more && (beside > 0 || all.time_only != options->time_only)) {
        all.time_only = options->time_only;
        sim_report_free(more);
        more = steady_report(plan, period, n += beside, graph, view, &all, error);
    }
    g_autoptr(SimReport) less =
        more ? steady_report(plan, period, n - cycle, graph, view, &all, error) : NULL;
    if (!less)
        return NULL;
    steady_add(more, less, (n_all - n) / cycle);
    steady_place(more, plan, period, n);
    if (all.time_only ||
        (options->enough_s > 0 && more->iteration_time_s >= options->enough_s))
        steady_forget_memory(more);
    else
        sim_report_fit(more, plan->program, graph, view);
    return g_steal_pointer(&more);
}

SimReport *sim_evaluate_shortly(const Plan *plan, const Graph *graph,
                                const ClusterView *view, const char *fidelity,
                                const SimOptions *options, GError **error)
{
    ProgramPeriod period;
    if (g_strcmp0(fidelity, fidelity_name(FIDELITY_STAGE)) != 0 ||
        !program_find_period(plan->program, &period))
        return sim_evaluate_with(plan, graph, view, fidelity, options, error);
    const uint32_t n_all = program_all_repeats(plan->program, &period);
    bool again = true;
    const uint32_t few =
        plan->strategy.offload ? 0 : program_few_repeats(plan->program, &period);
    enum { CYCLE = 4 }; /* the longest that is common: no part of it is left beside */
    for (uint32_t n = few ? few + (n_all - few) % CYCLE : 0;
         n > 0 && n <= n_all / PERIOD_FEWER; n *= 2) {
        SimReport *report =
            steady_try(plan, &period, n, graph, view, options, &again, error);
        if (!again)
            return report;
    }
    return steady_report(plan, &period, n_all, graph, view, options, error);
}
