/* SPMD programs in the stages of pipelines that were found (synth/joint/search.h). */
#include "synth/joint/search.h"

JointPipeline joint_copy(const JointPipeline *pipeline)
{
    JointPipeline copy = *pipeline;
    copy.stage = g_memdup2(pipeline->stage, pipeline->n_stages * sizeof *pipeline->stage);
    return copy;
}

bool joint_is_inside(const JointProblem *p, const JointPipeline *pipeline)
{
    const bool any =
        any_in(items_each (const JointStage, stage, pipeline->stage, pipeline->n_stages),
               joint_entry_of(p, stage)->inside != NULL);
    return any;
}

bool joint_has_inside(const JointSearch *j, const JointFound *found)
{
    return joint_is_inside(j->problems->pdata[found->problem], &found->pipeline);
}

/* Gives the stages of a pipeline with SPMD programs those for the pieces of its microbatches. False
 * if there are none. */
static bool polish_stages(JointHap *hap, JointMenu *menu, JointProblem *p,
                          JointPipeline *pipeline)
{
    bool any = false;
    items_each (JointStage, stage, pipeline->stage, pipeline->n_stages) {
        const JointGroup *group = &p->group[stage->group];
        const Recompute mode = group->entry[stage->entry].recompute;
        if (!group->entry[stage->entry].inside)
            continue;
        for (uint32_t at = joint_hap_polish(hap, menu, p, stage->group);
             at < group->n_entries; at++)
            if (group->entry[at].recompute == mode) {
                stage->entry = at;
                any = true;
            }
    }
    return any;
}

void joint_polish(JointSearch *j)
{
    enum { BEST = 3 };
    uint32_t n = 0;
    for (uint32_t i = 0, len = j->found->len; i < len && n < BEST; i++) {
        const JointFound found = g_array_index(j->found, JointFound, i);
        if (!joint_has_inside(j, &found))
            continue;
        JointMenu *menu = j->menus->pdata[found.problem];
        JointProblem *p = j->problems->pdata[found.problem];
        JointFound other = found;
        other.pipeline = joint_copy(&found.pipeline);
        n++;
        if (polish_stages(j->hap, menu, p, &other.pipeline) &&
            synth_joint_fits(p, &other.pipeline)) {
            other.walk_s = synth_joint_walk_s(menu, p, &other.pipeline);
            g_array_append_val(j->found, other);
        } else
            synth_joint_pipeline_clear(&other.pipeline);
    }
}
