/* The planner hidup: HiDup's search, its program made duplex: two microbatches that take turns.
 *
 * HiDup handles equal devices only. With the option ratios=best, search and linear program
 * alternate as in hap (HAP Sec. 3.1), from ratios by speed and from even ratios; the linear program
 * includes the overlap of the turns. */
#include <string.h>

#include "synth/answer/complete.h"
#include "synth/answer/ratios.h"
#include "synth/hidup/hidup.h"
#include "synth/hidup/make.h"

typedef struct {
    const Question *question;
    Answer *answer;
    const double *ratio;
    bool balanced; /* the program gets its best ratios */
    Plan *plan;
} Make;

/* The best plan with memory charged at `memory_s` seconds per byte (synth_hidup). */
static bool make_at(const Make *m, double memory_s, GError **error)
{
    const Question *question = m->question;
    const PlannerOptions *options = question->options;
    const SynthHidupOptions believed = {.memory_s = memory_s,
                                        .noise = options->noise,
                                        .communication = options->communication,
                                        .serial_back =
                                            options->backward == BACKWARD_SERIAL,
                                        .seed = options->seed};
    SynthResult result;
    if (!synth_hidup(question->graph, question->view, m->ratio, &believed, &result,
                     error))
        return false;
    plan_set(m->plan, question->graph, question->view, result.program, m->ratio);
    m->plan->search_time_s += result.search_s;
    m->plan->search_labels += result.labels;
    m->plan->optimal = result.optimal;
    return (options->duplex == DUPLEX_OFF || plan_duplex(m->plan, question, error)) &&
           answer_complete(m->answer, m->plan, question, error) &&
           (!m->balanced || answer_balance(m->answer, m->plan, question, error));
}

/* Whether the plan needs too much memory and is too slow already: with less memory it is slower. */
static bool is_hopeless(const Make *m)
{
    return !m->plan->feasible && answer_is_lost(m->answer, m->plan->iteration_time_s);
}

/* Raises the charge for memory until the plan fits, then lowers it as far as it still does. */
static bool make_fit(const Make *m, GError **error)
{
    /* The charge starts at a 16th of the price at which all memory costs as much as the plan's
     * time, and is multiplied by four each time, up to a quarter of a million times that price,
     * where memory is all that counts. Four halvings then leave the charge within 20 %. */
    enum { FIRST_PART = 16, RAISES = 12, RAISE = 4, HALVINGS = 4 };
    const double first = m->plan->iteration_time_s /
                         (double)m->question->view->device[0].memory_bytes /
                         m->question->view->n_devices / FIRST_PART;
    double fits = 0, misses = 0;
    for (uint32_t i = 0;
         i < RAISES && fits == 0 && !is_hopeless(m) && !answer_is_late(m->answer); i++) {
        const double memory_s = misses > 0 ? RAISE * misses : first;
        if (!make_at(m, memory_s, error))
            return false;
        *(m->plan->feasible ? &fits : &misses) = memory_s;
    }
    for (uint32_t i = 0;
         i < HALVINGS && fits > 0 && !is_hopeless(m) && !answer_is_late(m->answer); i++) {
        const double middle = (fits + misses) / 2;
        if (!make_at(m, middle, error))
            return false;
        *(m->plan->feasible ? &fits : &misses) = middle;
    }
    return fits == 0 || m->plan->feasible || make_at(m, fits, error);
}

/* Replaces the plan by another one; times of search and balancing add up. */
static bool hidup_take(const Make *m, Plan *from, GError **error)
{
    m->plan->optimal = from->optimal;
    plan_set(m->plan, m->question->graph, m->question->view,
             g_steal_pointer(&from->program), from->ratio);
    return answer_complete(m->answer, m->plan, m->question, error);
}

/* Search and linear program in turn from these ratios, as long as the plan gets better. */
static bool hidup_alternate(const Make *m, double *ratio, GError **error)
{
    bool better = true;
    for (uint32_t i = 0;
         i < m->question->options->max_rounds && better && !answer_is_late(m->answer);
         i++) {
        g_autoptr(Plan) plan = plan_new();
        plan->bucket_bytes = m->plan->bucket_bytes;
        const Make round = {m->question, m->answer, ratio, true, plan};
        if (!make_at(&round, 0, error))
            return false;
        m->plan->search_time_s += plan->search_time_s;
        m->plan->search_labels += plan->search_labels;
        m->plan->balance_time_s += plan->balance_time_s;
        better = !m->plan->program || plan_is_better(plan, m->plan);
        memcpy(ratio, plan->ratio, m->question->view->n_devices * sizeof *ratio);
        if (better && !hidup_take(m, plan, error))
            return false;
    }
    return true;
}

static bool make_balanced(Make *m, GError **error)
{
    for (uint32_t start = 0; start < 2; start++) {
        g_autofree double *ratio =
            (start ? ratios_even : ratios_proportional)(m->question->view);
        if (!hidup_alternate(m, ratio, error))
            return false;
    }
    if (m->plan->feasible)
        return true;
    g_autofree double *ratio =
        g_memdup2(m->plan->ratio, m->question->view->n_devices * sizeof *ratio);
    m->ratio = ratio;
    m->balanced = true;
    return make_fit(m, error);
}

bool hidup_make(const Question *question, Answer *answer, GError **error)
{
    Plan *plan = answer->plan;
    Make m = {question, answer, NULL, false, plan};
    if (planner_ratios(question->options) == RATIOS_BEST)
        return make_balanced(&m, error);
    g_autofree double *ratio = ratios_pinned(question->view, question->options);
    if (!ratio)
        ratio = ratios_even(question->view);
    m.ratio = ratio;
    return make_at(&m, 0, error) &&
           (plan->feasible || answer_is_lost(answer, plan->iteration_time_s) ||
            make_fit(&m, error));
}
