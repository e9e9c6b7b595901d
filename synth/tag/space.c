/* A cluster as TAG sees it: device sets, subsets of them, and the device groups that these make. */
#include "data/base/free.h"
#include "synth/tag/tag.h"

/* Whether two devices are in one set. */
static bool tag_together(const ClusterView *view, uint32_t i, uint32_t j, bool merged)
{
    const Device *a = &view->device[i], *b = &view->device[j];
    return (a->machine == b->machine && device_compare(a, b) == 0) ||
           (merged && a->gpus == b->gpus && device_compare(a, b) == 0 &&
            view->cluster->machine[a->machine].gpus ==
                view->cluster->machine[b->machine].gpus);
}

/* Numbers the sets by their first devices. */
static uint32_t find_sets(const ClusterView *view, bool merged, uint32_t *set)
{
    uint32_t n = 0;
    for (uint32_t j = 0; j < view->n_devices; j++) {
        uint32_t first = 0;
        while (!tag_together(view, first, j, merged))
            first++;
        set[j] = first == j ? n++ : set[first];
    }
    return n;
}

static uint16_t tag_add_group(TagSpace *space, uint32_t n_replicas, uint32_t n_devices,
                              const uint32_t *device)
{
    space->group = g_renew(DeviceGroup, space->group, space->n_groups + 1);
    space->group[space->n_groups] = (DeviceGroup){
        n_replicas, n_devices,
        g_memdup2(device, (gsize)n_replicas * n_devices * sizeof *device), 1, 0};
    return (uint16_t)space->n_groups++;
}

static void add_groups(TagSpace *space)
{
    const uint32_t n_devices = space->view->n_devices;
    g_autofree uint32_t *device = g_new(uint32_t, n_devices);
    for (uint32_t j = 0; j < n_devices; j++)
        space->single[j] = tag_add_group(space, 1, 1, &j);
    for (uint32_t subset = 1; subset < 1u << space->n_sets; subset++) {
        uint32_t n = 0;
        for (uint32_t j = 0; j < n_devices; j++)
            if (subset >> space->set[j] & 1u)
                device[n++] = j;
        const bool one = n == 1;
        space->replicas[subset] =
            one ? space->single[device[0]] : tag_add_group(space, n, 1, device);
        space->whole[subset] =
            one ? space->single[device[0]] : tag_add_group(space, 1, n, device);
    }
}

static uint32_t subset_devices(const TagSpace *space, uint32_t subset)
{
    const DeviceGroup *group = &space->group[space->replicas[subset]];
    return group->n_replicas * group->n_devices;
}

static void add_actions(TagSpace *space)
{
    space->action = g_new(TagAction, (gsize)TAG_OPTIONS << space->n_sets);
    for (uint32_t n = space->view->n_devices; n > 0; n--)
        for (uint32_t option = 0; option < TAG_ONE; option++)
            for (uint32_t subset = 1; subset < 1u << space->n_sets; subset++)
                if (subset_devices(space, subset) == n && (n > 1 || option == TAG_AR))
                    space->action[space->n_actions++] =
                        (TagAction){(uint16_t)subset, (TagOption)option};
}

void synth_tag_all_or_one(TagSpace *space)
{
    const uint16_t all = (uint16_t)((1u << space->n_sets) - 1);
    space->action = g_renew(TagAction, space->action, 2);
    space->n_actions = 0;
    space->action[space->n_actions++] = (TagAction){all, TAG_AR};
    if (space->view->n_devices > 1)
        space->action[space->n_actions++] = (TagAction){all, TAG_PS};
    synth_tag_add_ones(space);
}

void synth_tag_add_ones(TagSpace *space)
{
    const uint32_t n_devices = space->view->n_devices;
    space->action = g_renew(TagAction, space->action, space->n_actions + n_devices);
    for (uint32_t j = 0; n_devices > 1 && j < n_devices; j++)
        space->action[space->n_actions++] = (TagAction){(uint16_t)j, TAG_ONE};
}

void synth_tag_all_reduced(TagSpace *space)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < space->n_actions; s++)
        if (space->action[s].option == TAG_AR)
            space->action[n++] = space->action[s];
    space->n_actions = n;
}

TagSpace *synth_tag_space(const ClusterView *view, bool merged, GError **error)
{
    g_autoptr(TagSpace) space = g_new0(TagSpace, 1);
    space->view = view;
    space->set = g_new(uint32_t, view->n_devices);
    space->n_sets = find_sets(view, merged, space->set);
    if (space->n_sets > TAG_MOST_SETS)
        space->n_sets = find_sets(view, true, space->set);
    if (space->n_sets > TAG_MOST_SETS)
        return refused(error, "expected at most %d kinds of machines, got %u",
                       TAG_MOST_SETS, space->n_sets);
    space->replicas = g_new0(uint16_t, (gsize)1 << space->n_sets);
    space->whole = g_new0(uint16_t, (gsize)1 << space->n_sets);
    space->single = g_new0(uint16_t, view->n_devices);
    add_groups(space);
    add_actions(space);
    return g_steal_pointer(&space);
}

FREE_DEFINE(synth_tag_space_free, TagSpace, space,
            free_column(space->group, space->n_groups, device),
            free_each(space->group, space->set, space->action, space->replicas,
                      space->whole, space->single));

uint32_t tag_data_parallel(const TagSpace *space)
{
    /* the subset of all devices comes first */
    g_assert(space->action[0].option == TAG_AR);
    return 0;
}
