/* Kinds of equal machines, and the units in which groups take them. */
#include "synth/joint/menu.h"

/* States (layers left, units used): beyond, units are coarser. */
enum { MOST_STATES = 64000, COARSE_STATES = 8000 };

static uint32_t first_gpu(const ClusterView *view, uint32_t machine)
{
    uint32_t device = 0;
    while (view->device[device].machine != machine)
        device++;
    return device;
}

static bool alike(const ClusterView *view, uint32_t a, uint32_t b)
{
    const Machine *x = &view->cluster->machine[a], *y = &view->cluster->machine[b];
    return x->gpus == y->gpus && x->inner.bandwidth == y->inner.bandwidth &&
           x->inner.latency_s == y->inner.latency_s &&
           device_compare(&view->device[first_gpu(view, a)],
                          &view->device[first_gpu(view, b)]) == 0;
}

static void find_kinds(JointMenu *menu)
{
    const ClusterView *view = menu->view;
    for (uint32_t i = 0; i < view->cluster->n_machines; i++) {
        uint32_t k = 0;
        while (k < menu->kind->len &&
               !alike(view, g_array_index(menu->kind, JointKind, k).machine[0], i))
            k++;
        if (k == menu->kind->len) {
            const JointKind kind = {.machine = g_new(uint32_t, view->cluster->n_machines),
                                    .gpus = view->cluster->machine[i].gpus,
                                    .first = first_gpu(view, i)};
            g_array_append_val(menu->kind, kind);
        }
        JointKind *kind = &g_array_index(menu->kind, JointKind, k);
        kind->machine[kind->n_machines++] = i;
    }
}

/* Finds the smallest units that keep the number of states small: a machine, halved repeatedly, or
 * several machines. */
static void find_units(JointMenu *menu, bool coarse)
{
    const double most_states = coarse ? COARSE_STATES : MOST_STATES;
    double states = 1;
    for (uint32_t k = 0; k < menu->kind->len; k++) {
        JointKind *kind = &g_array_index(menu->kind, JointKind, k);
        kind->unit = kind->gpus;
        while (kind->unit % 2 == 0)
            kind->unit /= 2;
    }
    do {
        JointKind *most = &g_array_index(menu->kind, JointKind, 0);
        states = 1;
        for (uint32_t k = 0; k < menu->kind->len; k++) {
            JointKind *kind = &g_array_index(menu->kind, JointKind, k);
            kind->n_units = kind->n_machines * kind->gpus / kind->unit;
            states *= kind->n_units + 1;
            most = kind->n_units > most->n_units ? kind : most;
        }
        states *= menu->model->n_layers + 1;
        if (states > most_states)
            most->unit *= 2;
    } while (states > most_states);
}

void joint_find_kinds(JointMenu *menu, bool coarse)
{
    find_kinds(menu);
    find_units(menu, coarse);
}

LinkCost synth_joint_line(const JointMenu *menu, const JointGroup *group, uint32_t dp,
                          uint32_t tp, double bytes)
{
    KILTER_ASSERT(dp > 1 && tp > 0 && bytes >= 0);
    uint32_t k = 0;
    while (group->use[k] == 0)
        k++;
    const JointKind *kind = &g_array_index(menu->kind, JointKind, k);
    const Device *device = &menu->view->device[kind->first];
    const CurvePlace place = {device->type_name, dp, MIN(dp, group->n_machines)};
    LinkCost line =
        cluster_view_set_line(menu->view, device, place, COLLECTIVE_ALL_REDUCE, bytes);
    line.bandwidth /= group->n_machines > 1 ? tp : 1;
    return line;
}
