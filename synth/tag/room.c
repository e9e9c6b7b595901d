/* Memory in the bound. Parameters and optimizer states rest on the devices that update them, and
 * before the first update all gradients are somewhere, too: a strategy that leaves no room for this
 * does not fit, however fast it is. */
#include <string.h>

#include "data/base/free.h"
#include "synth/tag/rows.h"

static double resting_bytes(const Graph *graph, const Op *op)
{
    double bytes = 0;
    for (uint32_t i = 0; i < op->n_in; i++) {
        const Tensor *tensor = graph_tensor(graph, op->in[i]);
        if (tensor->role == ROLE_PARAMETER || tensor->role == ROLE_OPTIMIZER)
            bytes += (double)tensor_bytes(tensor);
    }
    return bytes;
}

static void add_gradients(TagRoom *room, const Graph *graph, OpId update)
{
    const Op *op = graph_get_op(graph, update);
    g_assert(op->pass == PASS_UPDATE);
    for (uint32_t i = 0; i < op->n_in; i++) {
        const Tensor *tensor = graph_tensor(graph, op->in[i]);
        if (tensor->role != ROLE_GRADIENT || tensor->producer == GRAPH_NONE)
            continue;
        const TagGradient gradient = {tensor->producer, update,
                                      (double)tensor_bytes(tensor)};
        g_array_append_val(room->gradient, gradient);
        room->gradients += gradient.bytes;
    }
}

static double *resting(const TagRoom *room, uint32_t group, uint32_t action)
{
    KILTER_ASSERT(action < room->n_actions);
    return &room->bytes[((size_t)group * room->n_actions + action) * room->n_devices];
}

/* The least bytes of each op group, on each device and altogether. */
static void tag_find_least(TagRoom *room, uint32_t n_groups)
{
    for (uint32_t i = 0; i < n_groups; i++) {
        double *least = &room->least[(size_t)i * (room->n_devices + 1)];
        for (uint32_t s = 0; s < room->n_actions; s++) {
            const double *bytes = resting(room, i, s);
            double all = 0;
            for (uint32_t j = 0; j < room->n_devices; j++) {
                all += bytes[j];
                least[j] = s == 0 ? bytes[j] : MIN(least[j], bytes[j]);
            }
            least[room->n_devices] = s == 0 ? all : MIN(least[room->n_devices], all);
        }
    }
}

TagRoom *tag_room_new(const TagBound *b)
{
    const Graph *graph = b->work->graph;
    const uint32_t n = b->space->view->n_devices, n_groups = b->work->n_groups;
    TagRoom *room = g_new0(TagRoom, 1);
    room->bound = b;
    room->gradient = g_array_new(FALSE, FALSE, sizeof(TagGradient));
    room->n_devices = n;
    room->n_actions = b->space->n_actions;
    room->bytes = g_new0(double, (gsize)n_groups * room->n_actions * n + 1);
    room->least = g_new0(double, (gsize)n_groups *(n + 1) + 1);
    room->has = g_new0(double, n + 1);
    room->needs = g_new0(double, n + 1);
    for (uint32_t j = 0; j < n; j++) {
        room->has[j] = (double)b->space->view->device[j].memory_bytes;
        room->has[n] += room->has[j];
    }
    ops_each (op, id, graph) {
        if (op->pass != PASS_UPDATE)
            continue;
        const double bytes = resting_bytes(graph, op);
        add_gradients(room, graph, id);
        for (uint32_t s = 0; s < room->n_actions; s++) {
            const DeviceGroup *on = &b->space->group[tag_rows_part(b, id, s)->group];
            for (uint32_t r = 0; r < on->n_replicas * on->n_devices; r++) {
                g_assert(on->device[r] < n);
                resting(room, b->work->group[id], s)[on->device[r]] += bytes;
            }
        }
    }
    tag_find_least(room, n_groups);
    return room;
}

FREE_DEFINE(tag_room_free, TagRoom, room, g_array_unref(room->gradient),
            free_each(room->bytes, room->least, room->has, room->needs));

/* A device that makes a gradient and updates with it has it until its first update. */
static void tag_add_kept(const TagRoom *room, const uint16_t *action)
{
    const TagBound *b = room->bound;
    array_each (const TagGradient, g, room->gradient) {
        const uint16_t from = action[b->work->group[g->maker]],
                       to = action[b->work->group[g->update]];
        if (from == TAG_UNDECIDED || to == TAG_UNDECIDED)
            continue;
        const DeviceGroup *made =
                              &b->space->group[tag_rows_part(b, g->maker, from)->group],
                          *used =
                              &b->space->group[tag_rows_part(b, g->update, to)->group];
        for (uint32_t r = 0; r < made->n_replicas * made->n_devices; r++)
            if (group_has(used, made->device[r]))
                room->needs[made->device[r]] += g->bytes;
    }
}

const double *tag_room_needs(const TagRoom *room, const uint16_t *action,
                             uint32_t n_groups)
{
    const uint32_t n = room->n_devices;
    memset(room->needs, 0, n * sizeof *room->needs);
    room->needs[n] = room->gradients;
    for (uint32_t i = 0; i < n_groups; i++) {
        const bool open = action[i] == TAG_UNDECIDED;
        const double *bytes =
            open ? &room->least[(size_t)i * (n + 1)] : resting(room, i, action[i]);
        for (uint32_t j = 0; j < n; j++) {
            room->needs[j] += bytes[j];
            room->needs[n] += open ? 0 : bytes[j];
        }
        room->needs[n] += open ? bytes[n] : 0;
    }
    tag_add_kept(room, action);
    return room->needs;
}

bool tag_room_fits(const TagRoom *room, const uint16_t *action, uint32_t n_groups)
{
    const double *needs = tag_room_needs(room, action, n_groups);
    for (uint32_t j = 0; j <= room->n_devices; j++)
        if (needs[j] > room->has[j])
            return false;
    return true;
}
