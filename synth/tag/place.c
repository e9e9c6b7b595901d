/* From a strategy to the device group of each op and the server of each gradient. */
#include <string.h>

#include "data/base/free.h"
#include "synth/tag/tag.h"

TagPlacement *synth_tag_placement_new(const Graph *graph)
{
    TagPlacement *placement = g_new(TagPlacement, 1);
    placement->group = g_new0(uint16_t, graph_n_ops(graph) + 1);
    placement->server = g_new0(uint16_t, graph_n_tensors(graph) + 1);
    return placement;
}

FREE_DEFINE(synth_tag_placement_free, TagPlacement, placement,
            free_each(placement->group, placement->server));

/* The progress of a group's runs of ops over the devices of a subset. */
typedef struct {
    double all_s, before_s; /* seconds of the group's ops: in all, and placed so far */
} Runs;

/* The device of the next op: the device into whose part the middle of the op's time falls. */
static uint16_t next_in_run(const TagSpace *space, uint32_t subset, Runs *run, double s)
{
    const DeviceGroup *of = &space->group[space->replicas[subset]];
    const double middle = run->before_s + s / 2;
    uint32_t k = run->all_s > 0 ? (uint32_t)(middle / run->all_s * of->n_replicas) : 0;
    run->before_s += s;
    k = MIN(k, of->n_replicas - 1);
    return space->single[of->device[k]];
}

static bool is_summed(const TagWork *work, const TagSpace *space,
                      const TagPlacement *placement, OpId id, TensorId out)
{
    return work->batch->loop[id] >= 0 && work->batch->form[out] == FORM_REDUCE &&
           graph_tensor(work->graph, out)->role == ROLE_GRADIENT &&
           space->group[placement->group[id]].n_replicas > 1;
}

/* The replica with the fewest bytes to serve, which gets these bytes too. */
static uint16_t choose_server(const TagSpace *space, uint16_t group, uint64_t bytes,
                              uint64_t *load)
{
    const DeviceGroup *of = &space->group[group];
    uint32_t least = 0;
    for (uint32_t r = 1; r < of->n_replicas; r++)
        if (load[of->device[r]] < load[of->device[least]])
            least = r;
    load[of->device[least]] += bytes;
    return (uint16_t)(least + 1);
}

void synth_tag_place(const TagSpace *space, const TagWork *work, const uint16_t *action,
                     TagPlacement *placement)
{
    const Graph *graph = work->graph;
    g_autofree Runs *runs = g_new0(Runs, work->n_groups);
    g_autofree uint64_t *load = g_new0(uint64_t, space->view->n_devices);
    memset(placement->server, 0, graph_n_tensors(graph) * sizeof *placement->server);
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        runs[work->group[id]].all_s += work->time_s[id];
    ops_each (op, id, graph) {
        const TagAction *a = &space->action[action[work->group[id]]];
        uint16_t *group = &placement->group[id];
        if (a->option == TAG_ONE)
            *group = space->single[a->subset];
        else if (a->option == TAG_MP)
            *group =
                next_in_run(space, a->subset, &runs[work->group[id]], work->time_s[id]);
        else
            *group =
                (a->option == TAG_DUPLICATE ? space->whole : space->replicas)[a->subset];
        for (uint32_t o = 0; a->option == TAG_PS && o < op->n_out; o++)
            if (is_summed(work, space, placement, id, op->out[o]))
                placement->server[op->out[o]] = choose_server(
                    space, *group, tensor_bytes(graph_tensor(graph, op->out[o])), load);
    }
}
