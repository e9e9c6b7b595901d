/* SPMD programs of groups: when they are found, and by whom (synth/joint/joint.h). */
#include "synth/joint/menu.h"

void synth_joint_menu_promise(JointMenu *menu, JointFinder find, void *data)
{
    menu->find = find;
    menu->find_data = data;
}

/* Adds the entries of a program that the finder finds. */
static void add_found(JointMenu *menu, JointProblem *p, JointGroup *group, JointFind find)
{
    g_autofree uint32_t *machine = g_new(uint32_t, menu->view->cluster->n_machines),
                        *gpus = g_new(uint32_t, menu->view->cluster->n_machines);
    JointDevices devices = {0, machine, gpus};
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        const JointKind *kind = &g_array_index(menu->kind, JointKind, k);
        uint32_t left = group->use[k] * kind->unit;
        for (uint32_t i = 0; left > 0; i++) {
            machine[devices.n] = kind->machine[i];
            gpus[devices.n] = MIN(left, kind->gpus);
            left -= gpus[devices.n++];
        }
    }
    JointInside *inside = g_new0(JointInside, 1);
    g_ptr_array_add(menu->inside, inside);
    if (menu->find(menu->find_data, &devices, find, p->n_microbatches, inside))
        joint_add_inside(menu, p, group, inside);
}

static void settle(void *data, JointProblem *p, uint32_t g)
{
    p->group[g].settled = true;
    add_found(data, p, &p->group[g], JOINT_FREE);
    add_found(data, p, &p->group[g], JOINT_UNCUT);
}

JointOracle synth_joint_oracle(JointMenu *menu)
{
    return (JointOracle){settle, menu};
}

uint32_t synth_joint_polish(JointMenu *menu, JointProblem *p, uint32_t g)
{
    JointGroup *group = &p->group[g];
    g_assert(group->settled);
    if (group->polished == 0) {
        group->polished = group->n_entries;
        add_found(menu, p, group, JOINT_ROUNDED);
    }
    return group->polished;
}
