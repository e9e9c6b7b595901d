/* Baechi's list schedulers: op groups on single devices, forward pass by forward pass, within the
 * memory. */
#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "data/base/order.h"
#include "synth/tag/tag.h"

/* --- op groups as list schedulers see them --- */

static void tag_add_op(TagList *list, const TagSpace *space, const TagWork *work,
                       SimQuick *quick, OpId id)
{
    const Op *op = graph_get_op(work->graph, id);
    const uint32_t group = work->group[id];
    /* the parameters that an op updates, with their gradients and states */
    for (uint32_t i = 0; op->pass == PASS_UPDATE && i < op->n_in; i++)
        list->bytes[group] += tensor_bytes(graph_tensor(work->graph, op->in[i]));
    if (op->pass != PASS_FORWARD)
        return;
    for (uint32_t o = 0; o < op->n_out; o++)
        list->bytes[group] += tensor_bytes(graph_tensor(work->graph, op->out[o]));
    for (uint32_t j = 0; j < list->n_devices; j++) {
        const double s = sim_quick_place_s(quick, space->single[j], id, 0);
        list->forward_s[(size_t)group * list->n_devices + j] += s;
        list->mean_s[group] += s / list->n_devices;
    }
}

static TagArc *arc_of(GArray *arcs, uint32_t from, uint32_t to, uint32_t n_devices)
{
    for (uint32_t a = arcs->len; a > 0; a--) {
        TagArc *arc = &g_array_index(arcs, TagArc, a - 1);
        if (arc->to == to && arc->from == from)
            return arc;
    }
    const TagArc arc = {
        .from = from, .to = to, .seconds = g_new0(double, (gsize)n_devices *n_devices)};
    g_array_append_val(arcs, arc);
    return &g_array_index(arcs, TagArc, arcs->len - 1);
}

/* Adds the arcs between groups; a tensor goes to a group once. */
static void add_arcs(GArray *arcs, const TagSpace *space, const TagWork *work,
                     SimQuick *quick, uint32_t *sent)
{
    const uint32_t n_devices = space->view->n_devices;
    ops_each (op, id, work->graph) {
        const uint32_t to = work->group[id];
        for (uint32_t i = 0; op->pass == PASS_FORWARD && i < op->n_in; i++) {
            const OpId by = graph_tensor(work->graph, op->in[i])->producer;
            if (by == GRAPH_NONE || work->group[by] == to || sent[op->in[i]] == to + 1)
                continue;
            sent[op->in[i]] = to + 1;
            TagArc *arc = arc_of(arcs, work->group[by], to, n_devices);
            for (uint32_t j = 0; j < n_devices; j++)
                for (uint32_t k = 0; k < n_devices; k++)
                    if (k != j)
                        arc->seconds[j * n_devices + k] += sim_quick_transfer_s(
                            quick, space->single[j], space->single[k], op->in[i]);
        }
    }
}

static ORDER_DEFINE(compare_arcs, TagArc, ASCENDING(to), ASCENDING(from));

TagList *synth_tag_list(const TagSpace *space, const TagWork *work, SimQuick *quick)
{
    TagList *list = g_new0(TagList, 1);
    g_autoptr(GArray) arcs = g_array_new(FALSE, FALSE, sizeof(TagArc));
    g_autofree uint32_t *sent = g_new0(uint32_t, graph_n_tensors(work->graph) + 1);
    list->n = work->n_groups;
    list->n_devices = space->view->n_devices;
    list->forward_s = g_new0(double, (gsize)list->n * list->n_devices + 1);
    list->mean_s = g_new0(double, list->n + 1);
    list->bytes = g_new0(uint64_t, list->n + 1);
    for (OpId id = 0; id < graph_n_ops(work->graph); id++)
        tag_add_op(list, space, work, quick, id);
    add_arcs(arcs, space, work, quick, sent);
    g_array_sort(arcs, compare_arcs);
    list->n_arcs = arcs->len;
    list->arc = g_memdup2(arcs->data, arcs->len * sizeof(TagArc));
    list->first_arc = g_new0(uint32_t, list->n + 1);
    for (uint32_t a = 0; a < list->n_arcs; a++)
        list->first_arc[list->arc[a].to + 1] = a + 1;
    for (uint32_t g = 0; g < list->n; g++) /* for groups without any */
        list->first_arc[g + 1] = MAX(list->first_arc[g], list->first_arc[g + 1]);
    for (uint32_t a = 0; a < list->n_arcs; a++)
        for (uint32_t p = 0; p < list->n_devices * list->n_devices; p++)
            list->arc[a].longest_s =
                fmax(list->arc[a].longest_s, list->arc[a].seconds[p]);
    return list;
}

FREE_DEFINE(synth_tag_list_free, TagList, list,
            free_column(list->arc, list->n_arcs, seconds),
            free_each(list->forward_s, list->mean_s, list->bytes, list->arc,
                      list->first_arc));

/* --- schedules --- */

enum { NOTHING = UINT32_MAX };

typedef struct {
    const TagList *list;
    const uint32_t *favourite;
    uint32_t *device; /* [group]: its device, NOTHING until it is placed */
    double *end_s;    /* [group] */
    double *free_s;   /* [device] */
    uint32_t *last;   /* [device]: its last group, or NOTHING */
    double *left;     /* [device]: bytes left */
} ListState;

/* When a group's inputs are on the device; INFINITY if one of them is not placed. *urgent_s: when
 * they could be on any device. */
static double ready_s(const ListState *s, uint32_t group, uint32_t device,
                      double *urgent_s)
{
    const TagList *list = s->list;
    double ready = 0;
    *urgent_s = 0;
    for (uint32_t a = list->first_arc[group]; a < list->first_arc[group + 1]; a++) {
        const TagArc *arc = &list->arc[a];
        if (s->device[arc->from] == NOTHING)
            return INFINITY;
        ready = fmax(ready,
                     s->end_s[arc->from] +
                         arc->seconds[s->device[arc->from] * list->n_devices + device]);
        *urgent_s = fmax(*urgent_s, s->end_s[arc->from] + arc->longest_s);
    }
    return ready;
}

/* The time at which a group could start on a device. */
static double start_s(const ListState *s, uint32_t group, uint32_t device)
{
    double urgent;
    const double ready = ready_s(s, group, device, &urgent);
    const uint32_t last = s->last[device];
    const uint32_t awaited =
        s->favourite && last != NOTHING ? s->favourite[last] : NOTHING;
    if (awaited != NOTHING && awaited != group && s->device[awaited] == NOTHING &&
        isfinite(ready))
        return fmax(fmax(ready, urgent), s->free_s[device]);
    return fmax(ready, s->free_s[device]);
}

static void tag_put(ListState *s, uint32_t group, uint32_t device, double start)
{
    KILTER_ASSERT(s->device[group] == NOTHING);
    s->device[group] = device;
    s->end_s[group] =
        start + s->list->forward_s[(size_t)group * s->list->n_devices + device];
    s->free_s[device] = s->end_s[group];
    s->last[device] = group;
    s->left[device] -= (double)s->list->bytes[group];
}

/* Places the pair of group and device that can start first; of several, the one that ends first. */
static void put_first(ListState *s)
{
    const TagList *list = s->list;
    uint32_t best_group = NOTHING, best_device = NOTHING;
    double best_start = INFINITY, best_end = INFINITY;
    bool fits = false;
    for (uint32_t g = 0; g < list->n; g++)
        for (uint32_t j = 0; s->device[g] == NOTHING && j < list->n_devices; j++) {
            const double start = start_s(s, g, j);
            const double end = start + list->forward_s[(size_t)g * list->n_devices + j];
            const bool room = s->left[j] >= (double)list->bytes[g];
            if (!isfinite(start) || (fits && !room))
                continue;
            const bool most_left =
                !room && (best_group == NOTHING || s->left[j] > s->left[best_device]);
            const bool sooner = room && (!fits || start < best_start ||
                                         (start == best_start && end < best_end));
            if (!most_left && !sooner)
                continue;
            best_group = g;
            best_device = j;
            best_start = start;
            best_end = end;
            fits = room;
        }
    g_assert(best_group != NOTHING); /* the first group in order waits for no group */
    tag_put(s, best_group, best_device, best_start);
}

/* Fills the devices in order of speed, fastest first; equal devices by number. */
static void fill_in_order(ListState *s)
{
    const TagList *list = s->list;
    uint64_t all = 0;
    g_autofree bool *full = g_new0(bool, list->n_devices);
    uint32_t j = NOTHING;
    double room = 0;
    for (uint32_t g = 0; g < list->n; g++)
        all += list->bytes[g];
    const double part = (double)all / list->n_devices;
    for (uint32_t g = 0; g < list->n; g++) {
        if (j == NOTHING || room <= 0) {
            uint32_t next = NOTHING;
            for (uint32_t k = 0; k < list->n_devices; k++)
                if (!full[k] &&
                    (next == NOTHING || list->forward_s[k] < list->forward_s[next]))
                    next = k;
            j = next == NOTHING ? j : next;
            full[j] = true;
            room = fmin(part, s->left[j]);
        }
        room -= (double)list->bytes[g];
        tag_put(s, g, j, 0);
    }
}

void synth_tag_list_place(const TagList *list, const ClusterView *view, TagListRule rule,
                          const uint32_t *favourite, uint32_t *device)
{
    g_assert((rule == TAG_SCT) == (favourite != NULL));
    g_autofree double *end = g_new0(double, list->n + 1);
    g_autofree double *free_s = g_new0(double, list->n_devices);
    g_autofree uint32_t *last = g_new(uint32_t, list->n_devices);
    g_autofree double *left = g_new(double, list->n_devices);
    memset(last, 0xff, list->n_devices * sizeof *last);
    memset(device, 0xff, list->n * sizeof *device);
    for (uint32_t j = 0; j < list->n_devices; j++)
        left[j] = (double)view->device[j].memory_bytes;
    ListState s = {list, favourite, device, end, free_s, last, left};
    if (rule == TAG_TOPO)
        fill_in_order(&s);
    for (uint32_t g = 0; rule != TAG_TOPO && g < list->n; g++)
        put_first(&s);
}
