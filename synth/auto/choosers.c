/* The planners that choose among the plans of others, and the list of all planners: these call the
 * table of makers, which knows nothing of them. */
#include <jansson.h>

#include "data/base/names.h"
#include "synth/auto/make.h"

static const Planner chooser[] = {
    {"auto",
     PLANNER_RATIOS | PLANNER_GROUPS | PLANNER_CHOOSES | PLANNER_ZERO | PLANNER_STRATEGY,
     auto_make, 0, 0, 0, 0, 0, 0},
};

uint32_t planner_count(void)
{
    uint32_t n_makers;
    planner_makers(&n_makers);
    return n_makers + G_N_ELEMENTS(chooser);
}

const Planner *planner_at(uint32_t index)
{
    uint32_t n_makers;
    const Planner *maker = planner_makers(&n_makers);
    g_assert(index < n_makers + G_N_ELEMENTS(chooser));
    return index < n_makers ? &maker[index] : &chooser[index - n_makers];
}

json_t *planners_json(void)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < planner_count(); i++) {
        g_auto(GStrv) about = planner_about(planner_at(i));
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s}", "name", planner_at(i)->name,
                                        "description", about[0], "source", about[1]));
    }
    return list;
}

const Planner *planner_find(const char *name, GError **error)
{
    const uint32_t n = planner_count();
    g_autofree const char **known = g_new0(const char *, n + 1);
    uint32_t index;
    for (uint32_t i = 0; i < n; i++)
        known[i] = planner_at(i)->name;
    return names_find("planner", name, known, &index, error) ? planner_at(index) : NULL;
}
