/* The groups of devices that a stage of the joint search may have. */
#include "data/base/free.h"
#include "synth/joint/menu.h"

/* Groups of several kinds: each is one more choice at every layer of the search. */
enum { MOST_UNIONS = 64 };

static uint32_t machines_of(const JointKind *kind, uint32_t units)
{
    KILTER_ASSERT(kind->unit > 0 && kind->gpus > 0);
    return (units * kind->unit + kind->gpus - 1) / kind->gpus;
}

static void add_group(JointMenu *menu, GArray *groups, const uint32_t *use)
{
    JointGroup group = {.use = g_memdup2(use, menu->kind->len * sizeof *use)};
    array_at (const JointKind, kind, k, menu->kind) {
        group.n_devices += use[k] * kind->unit;
        group.kinds |= use[k] > 0 && k < 32 ? 1U << k : 0;
        group.n_machines += machines_of(kind, use[k]);
        if (use[k] == 0 || use[k] * kind->unit >= kind->gpus)
            continue;
        group.piece = k + 1;
        group.room = kind->gpus / kind->unit;
        group.inner = menu->view->device[kind->first].inner;
    }
    group.n_machines = MIN(group.n_machines, menu->view->cluster->n_machines);
    g_array_append_val(groups, group);
}

/* Whether a group may have this number of units: a GPU, a piece of a machine made by halving, or
 * whole machines: beyond eight of them 2 or 1.5 times a power of two, or all. */
static bool is_size(const JointKind *kind, uint32_t units)
{
    const uint32_t gpus = units * kind->unit;
    if (gpus < kind->gpus && kind->gpus % gpus == 0) {
        const uint32_t pieces = kind->gpus / gpus;
        return gpus == 1 || (pieces & (pieces - 1)) == 0;
    }
    if (gpus % kind->gpus != 0)
        return false;
    const uint32_t n = MAX(kind->gpus / kind->unit, 1), size = units / n, most = 8;
    uint32_t odd = size;
    while (odd % 2 == 0)
        odd /= 2;
    return size <= most || odd == 1 || odd == 3 || units == kind->n_units;
}

static void add_single_groups(JointMenu *menu, GArray *groups)
{
    g_autofree uint32_t *use = g_new0(uint32_t, menu->kind->len);
    array_at (const JointKind, kind, k, menu->kind) {
        for (use[k] = 1; use[k] <= kind->n_units; use[k]++)
            if (is_size(kind, use[k]))
                add_group(menu, groups, use);
        use[k] = 0;
    }
}

/* Adds groups of whole machines of several kinds: any numbers of machines if there are few, else
 * all or none of a kind. */
static void groups_add_unions(JointMenu *menu, GArray *groups)
{
    const uint32_t n_kinds = menu->kind->len;
    g_autofree uint32_t *use = g_new0(uint32_t, n_kinds), *n = g_new(uint32_t, n_kinds),
                        *step = g_new(uint32_t, n_kinds);
    double all = 1, total = 1;
    array_at (const JointKind, kind, k, menu->kind) {
        step[k] = MAX(kind->gpus / kind->unit, 1);
        n[k] = kind->n_units / step[k];
        all *= n[k] + 1;
    }
    for (uint32_t k = 0; k < n_kinds; k++) {
        if (all > MOST_UNIONS) {
            step[k] *= n[k];
            n[k] = 1;
        }
        total *= n[k] + 1;
    }
    for (uint32_t c = 1; c < total && total <= MOST_UNIONS; c++) {
        uint32_t rest = c, several = 0;
        for (uint32_t k = 0; k < n_kinds; k++) {
            use[k] = rest % (n[k] + 1) * step[k];
            rest /= n[k] + 1;
            several += use[k] > 0;
        }
        if (several > 1)
            add_group(menu, groups, use);
    }
}

JointDevices synth_joint_devices(const JointMenu *menu, const JointGroup *group)
{
    const uint32_t most = menu->place->len;
    JointDevices devices = {0, g_new(uint32_t, most), g_new(uint32_t, most)};
    array_at (const JointKind, kind, k, menu->kind) {
        uint32_t left = group->use[k] * kind->unit;
        for (uint32_t i = 0; left > 0; i++) {
            devices.machine[devices.n] = kind->machine[i];
            devices.gpus[devices.n] = MIN(left, kind->gpus);
            left -= devices.gpus[devices.n++];
        }
    }
    return devices;
}

CLEAR_DEFINE(synth_joint_devices_clear, JointDevices, devices,
             let_go(devices->machine, g_free), let_go(devices->gpus, g_free));

void joint_add_groups(JointMenu *menu, GArray *groups)
{
    add_single_groups(menu, groups);
    groups_add_unions(menu, groups);
}
