/* Factors from modelled to measured times of layers. */
#include "sim/tasks/layer_times.h"

#include "data/base/free.h"
#include "data/formats/measured/layer_profile.h"
#include "sim/cost/split.h"

enum { PASSES = 2 }; /* forward and backward */
enum { ANY_PLACE = UINT32_MAX };

/* Work of the layers in one pass, [pass * n_layers + layer]. */
typedef struct {
    double *flops, *seconds;
} LayerWork;

struct SimLayerTimes {
    const SimParts *parts;
    const ClusterView *view;
    uint32_t n_layers, n_types;
    LayerProfile *profile;
    double *whole;  /* FLOPs [pass * n_layers + layer] of all groups */
    double *factor; /* [((group * n_types + type) * PASSES + pass) * n_layers + layer] */
};

/* The index of the op's pass and layer; false for an update. */
static bool index_of(const SimLayerTimes *times, OpId id, uint32_t *index)
{
    const Op *op = graph_get_op(times->parts->layout.graph, id);
    *index = (op->pass == PASS_BACKWARD) * times->n_layers + op->layer;
    return op->pass != PASS_UPDATE;
}

/* Adds the FLOPs of the ops, and their seconds at place `place` of the group (ANY_PLACE: of all
 * groups, and no seconds); an op that is computed more than once counts once. */
static void add_work(const SimLayerTimes *times, uint32_t group, uint32_t place,
                     LayerWork *work)
{
    const Graph *graph = times->parts->layout.graph;
    const Program *program = times->parts->layout.plan->program;
    g_autofree bool *seen = g_new0(bool, graph_n_ops(graph));
    const bool all = place == ANY_PLACE;
    items_each (const Instr, instr, program->instr, program->n) {
        uint32_t index;
        if (instr->kind != INSTR_COMPUTE || (!all && instr->group != group) ||
            seen[instr->op] || !index_of(times, instr->op, &index))
            continue;
        seen[instr->op] = true;
        const Rule rule = sim_split_rule(graph, instr);
        work->flops[index] += rule.flops_replicated + rule.flops_sharded;
        if (!all)
            work->seconds[index] +=
                sim_part_s(times->parts, times->view, instr, &rule, place, true);
    }
}

static LayerWork work_new(const SimLayerTimes *times)
{
    const size_t n = (size_t)PASSES * times->n_layers;
    return (LayerWork){g_new0(double, n), g_new0(double, n)};
}

static CLEAR_DEFINE(work_clear, LayerWork, work, free_each(work->flops, work->seconds));

/* Samples of a microbatch at a place. */
static double samples_at(const SimLayerTimes *times, uint32_t group, uint32_t place)
{
    const PlanLayout *layout = &times->parts->layout;
    const double *part = sim_part_replicas(times->parts, group);
    const double batch = graph_batch(layout->graph);
    return !part ? batch
                 : batch * part[place / layout->group[group].n_devices] /
                       program_parts(layout->plan->program);
}

/* Sets the factors of a group's devices of the type that place `place` has. A layer in several
 * groups has its time divided by FLOPs. */
static bool set_factors(SimLayerTimes *times, uint32_t group, uint32_t place,
                        double *factor, GError **error)
{
    const PlanLayout *layout = &times->parts->layout;
    const DeviceGroup *of = &layout->group[group];
    g_autofree double *forward_s = g_new(double, times->n_layers);
    LayerWork work = work_new(times);
    if (!layer_profile_forward(times->profile, layout->graph,
                               times->view->device[of->device[place]].type_name,
                               of->n_devices, 1, forward_s, error)) {
        work_clear(&work);
        return false;
    }
    add_work(times, group, place, &work);
    const double samples = samples_at(times, group, place);
    for (uint32_t i = 0; i < PASSES * times->n_layers; i++) {
        const double pass = i < times->n_layers ? 1 : LAYER_PASSES_OF_FORWARD - 1;
        const double here = times->whole[i] > 0 ? work.flops[i] / times->whole[i] : 1;
        if (work.seconds[i] > 0)
            factor[i] =
                pass * samples * forward_s[i % times->n_layers] * here / work.seconds[i];
    }
    work_clear(&work);
    return true;
}

static bool fill(SimLayerTimes *times, GError **error)
{
    const PlanLayout *layout = &times->parts->layout;
    const size_t n = (size_t)PASSES * times->n_layers;
    g_autofree bool *known = g_new0(bool, layout->n_groups * times->n_types);
    LayerWork whole = work_new(times);
    add_work(times, 0, ANY_PLACE, &whole);
    times->whole = g_steal_pointer(&whole.flops);
    work_clear(&whole);
    items_at (const DeviceGroup, group, g, layout->group, layout->n_groups) {
        for (uint32_t i = 0; i < group->n_devices * group->n_replicas; i++) {
            const uint32_t type = times->view->device[group->device[i]].type;
            const size_t at = (size_t)g * times->n_types + type;
            if (known[at])
                continue;
            known[at] = true;
            if (!set_factors(times, g, i, times->factor + at * n, error))
                return false;
        }
    }
    return true;
}

SimLayerTimes *sim_layer_times_new(const char *file, const SimParts *parts,
                                   const ClusterView *view, GError **error)
{
    g_autoptr(LayerProfile) profile = layer_profile_read(file, error);
    if (!profile)
        return NULL;
    g_autoptr(SimLayerTimes) times = g_new0(SimLayerTimes, 1);
    times->parts = parts;
    times->view = view;
    times->n_layers = graph_n_layers(parts->layout.graph);
    times->n_types = view->cluster->n_types;
    times->profile = g_steal_pointer(&profile);
    const size_t n =
        (size_t)parts->layout.n_groups * times->n_types * PASSES * times->n_layers;
    times->factor = g_new(double, n);
    for (size_t i = 0; i < n; i++)
        times->factor[i] = 1;
    return fill(times, error) ? g_steal_pointer(&times) : NULL;
}

FREE_DEFINE(sim_layer_times_free, SimLayerTimes, times,
            layer_profile_free(times->profile), free_each(times->whole, times->factor));

double sim_layer_factor(const SimLayerTimes *times, const Instr *instr, uint32_t i)
{
    uint32_t index;
    if (!times || !index_of(times, instr->op, &index))
        return 1;
    const DeviceGroup *group = &times->parts->layout.group[instr->group];
    const uint32_t type = times->view->device[group->device[i]].type;
    const size_t at = (size_t)instr->group * times->n_types + type;
    return times->factor[at * PASSES * times->n_layers + index];
}
