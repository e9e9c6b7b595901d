/* The parts of an answer. */
#include "synth/answer/answer.h"

#include "data/base/free.h"

CLEAR_DEFINE(answer_clear, Answer, answer, plan_free(answer->plan),
             cluster_view_free(answer->view), sim_report_free(answer->report),
             free_each(answer->memory_s, answer->misfit),
             let_go(answer->notes, g_ptr_array_unref));

FREE_DEFINE(answer_free, Answer, answer, answer_clear(answer),
            synth_space_free(answer->space));

Plan *answer_take_plan(Answer *answer)
{
    return g_steal_pointer(&answer->plan);
}

SimReport *answer_take_report(Answer *answer)
{
    return g_steal_pointer(&answer->report);
}

ClusterView *answer_take_view(Answer *answer)
{
    return g_steal_pointer(&answer->view);
}

GPtrArray *answer_take_notes(Answer *answer)
{
    return g_steal_pointer(&answer->notes);
}

bool answer_is_stopped(const Answer *answer)
{
    return answer->stopped;
}
