/* A plan as a page: its answer, the facts that the page adds, and the template. */
#include "data/plan/fidelity.h"
#include "experiments/report/page.h"
#include "experiments/report/plan_facts.h"
#include "experiments/report/report.h"

/* The report that the timeline is drawn from: the plan's own, or, where its fidelity has no
 * timeline, that of the fidelity that equals it. *again: to be freed. */
static const SimReport *drawn_of(const Evaluation *evaluation, SimReport **again)
{
    if (!evaluation->report->timeline)
        *again =
            sim_evaluate_with(evaluation->plan, evaluation->graph, evaluation->view,
                              fidelity_name(FIDELITY_DEFAULT), &evaluation->sim, NULL);
    return *again ? *again : evaluation->report;
}

bool report_plan_add(json_t *answer, const Evaluation *evaluation, const char *file,
                     GError **error)
{
    g_autoptr(SimReport) again = NULL;
    SimReport *drawn = (SimReport *)drawn_of(evaluation, &again);
    plan_facts_add(answer, evaluation, file);
    if (!drawn->timeline)
        return true;
    if (!sim_record_memory(evaluation->plan, evaluation->graph, evaluation->view, drawn,
                           error))
        return false;
    plan_drawn_add(answer, evaluation, drawn);
    if (again)
        json_object_set_new(answer, "drawn_other", json_true());
    return true;
}

char *report_plan(const json_t *answer, GError **error)
{
    g_autofree char *title =
        g_strdup_printf("%s by %s", json_string_value(json_object_get(answer, "heading")),
                        json_string_value(json_object_get(answer, "planner")));
    return page_of("plan.html", title, answer, error);
}
