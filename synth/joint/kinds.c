/* Kinds of equal machines, and the units in which groups take them. */
#include <math.h>

#include "synth/joint/menu.h"

/* States (layers left, units used): beyond, units are coarser. */
enum { MOST_STATES = 64000, COARSE_STATES = 8000 };

static uint32_t first_of(const JointMenu *menu, uint32_t place)
{
    return g_array_index(menu->place, uint32_t, place);
}

/* A place begins at the first GPU of a machine, and where a GPU is unlike the one before. */
static void find_places(JointMenu *menu)
{
    const ClusterView *view = menu->view;
    for (uint32_t d = 0; d <= view->n_devices; d++)
        if (d == 0 || d == view->n_devices ||
            view->device[d].machine != view->device[d - 1].machine ||
            device_compare(&view->device[d], &view->device[d - 1]) != 0)
            g_array_append_val(menu->place, d);
}

static bool alike(const JointMenu *menu, uint32_t a, uint32_t b)
{
    const Device *x = &menu->view->device[first_of(menu, a)],
                 *y = &menu->view->device[first_of(menu, b)];
    const ClusterView *view = menu->view;
    const Port *p = &view->cluster->machine[x->machine].port,
               *q = &view->cluster->machine[y->machine].port;
    if (p->bandwidth != q->bandwidth || p->gpu != q->gpu ||
        (view->n_sites > 1 && view->site[x->machine] != view->site[y->machine]))
        return false;
    return first_of(menu, a + 1) - first_of(menu, a) ==
               first_of(menu, b + 1) - first_of(menu, b) &&
           x->inner.bandwidth == y->inner.bandwidth &&
           x->inner.latency_s == y->inner.latency_s && device_compare(x, y) == 0;
}

static void kinds_find_kinds(JointMenu *menu)
{
    find_places(menu);
    for (uint32_t i = 0; i + 1 < menu->place->len; i++) {
        uint32_t k = 0;
        while (k < menu->kind->len &&
               !alike(menu, g_array_index(menu->kind, JointKind, k).machine[0], i))
            k++;
        if (k == menu->kind->len) {
            const JointKind kind = {.machine = g_new(uint32_t, menu->place->len),
                                    .gpus = first_of(menu, i + 1) - first_of(menu, i),
                                    .first = first_of(menu, i)};
            g_array_append_val(menu->kind, kind);
        }
        JointKind *kind = &g_array_index(menu->kind, JointKind, k);
        kind->machine[kind->n_machines++] = i;
    }
}

/* Starts with the smallest units, single GPUs, or with machines. */
static void start_units(JointMenu *menu, bool whole)
{
    array_each (JointKind, kind, menu->kind)
        kind->unit = whole ? kind->gpus : 1;
}

/* The next size of units: what halving a machine repeatedly leaves, or twice as many GPUs. */
static uint32_t next_unit(const JointKind *kind)
{
    const uint32_t odd = kind->gpus / (kind->gpus & -kind->gpus);
    return kind->unit < odd ? odd : 2 * kind->unit;
}

/* The number of states with these units, and the kind with most of them. */
static double count_states(JointMenu *menu, JointKind **most)
{
    double all = 1, sum = 0;
    *most = &g_array_index(menu->kind, JointKind, 0);
    array_each (JointKind, kind, menu->kind) {
        kind->n_units = kind->n_machines * kind->gpus / kind->unit;
        all *= kind->n_units + 1;
        sum += kind->n_units + 1;
        *most = kind->n_units > (*most)->n_units ? kind : *most;
    }
    return (menu->in_order ? sum : all) * (menu->model->n_layers + 1);
}

/* Finds the smallest units that keep the number of states small: a GPU, a machine halved again and
 * again, or several machines, at most all of a kind. Where all combinations of machines are too
 * many, kinds are to be in an order. */
static void kinds_find_units(JointMenu *menu, bool coarse)
{
    const double most_states = coarse ? COARSE_STATES : MOST_STATES;
    JointKind *most;
    start_units(menu, true);
    menu->in_order = menu->kind->len > 1 && count_states(menu, &most) > MOST_STATES;
    start_units(menu, menu->in_order);
    while (count_states(menu, &most) > most_states && most->n_units > 1)
        most->unit = next_unit(most);
}

void joint_find_kinds(JointMenu *menu, bool coarse)
{
    kinds_find_kinds(menu);
    kinds_find_units(menu, coarse);
}

/* The line of a set that has GPUs of two kinds, by what lies between them. */
static void pass_border(const JointMenu *menu, const JointKind *kind,
                        const JointKind *other, uint32_t tp, LinkCost *line)
{
    const ClusterView *view = menu->view;
    const uint32_t a = view->device[kind->first].machine,
                   b = view->device[other->first].machine;
    if (view->n_sites < 2 || view->site[a] == view->site[b])
        return;
    const LinkCost *between =
        &view->between[view->site[a] * view->n_sites + view->site[b]];
    line->latency_s += 2 * between->latency_s;
    line->bandwidth = fmin(line->bandwidth, between->bandwidth / tp);
}

LinkCost synth_joint_line(const JointMenu *menu, const JointGroup *group, uint32_t dp,
                          uint32_t tp, double bytes)
{
    KILTER_ASSERT(dp > 1 && tp > 0 && bytes >= 0);
    const JointKind *first = NULL;
    LinkCost line = {0, INFINITY};
    for (uint32_t k = 0; k < menu->kind->len; k++) {
        if (group->use[k] == 0 || (first && !menu->view->cluster->wired))
            continue;
        const JointKind *kind = &g_array_index(menu->kind, JointKind, k);
        const Device *device = &menu->view->device[kind->first];
        const CurvePlace place = {device->type_name, dp, MIN(dp, group->n_machines)};
        const LinkCost own = cluster_view_set_line(menu->view, device, place,
                                                   group->n_machines > 1 ? tp : 1,
                                                   COLLECTIVE_ALL_REDUCE, bytes);
        line.latency_s = fmax(line.latency_s, own.latency_s);
        line.bandwidth = fmin(line.bandwidth, own.bandwidth);
        if (group->n_machines > 1 &&
            menu->view->cable) /* it may be narrower than ports */
            line.bandwidth =
                fmin(line.bandwidth, menu->view->cable[device->machine] / tp);
        if (first)
            pass_border(menu, first, kind, tp, &line);
        first = first ? first : kind;
    }
    return line;
}
