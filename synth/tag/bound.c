/* The bound over strategies: loads of devices under the best weights found, and the longest path of
 * mean times (synth/tag/search.h). */
#include <math.h>
#include <string.h>

#include "synth/tag/search.h"

enum { ROUNDS = 400, PATHS = 3 };

/* So that rounding never lifts the bound above a time. */
static const double SAFE = 1 - 1e-9;

struct TagBound {
    const TagSpace *space;
    const TagWork *work;
    uint32_t n_rows;  /* of devices, then of paths */
    double *load;     /* [(op group * n_actions + action) * n_rows + row] */
    double *mean;     /* [op * n_actions + action] */
    double *least;    /* [op]: of the actions */
    double *weight;   /* [row], sums to 1 */
    double *cheapest; /* [op group]: min over actions of the weighted load */
    double *until;    /* [op]: scratch */
};

static double *load_of(const TagBound *b, uint32_t group, uint32_t action)
{
    return &b->load[((size_t)group * b->space->n_actions + action) * b->n_rows];
}

static double *mean_of(const TagBound *b, OpId op, uint32_t action)
{
    return &b->mean[(size_t)op * b->space->n_actions + action];
}

/* An op's times on its group's devices, into load; returns its mean. */
static double add_op(TagBound *b, SimQuick *quick, OpId id, uint16_t group, double *load)
{
    const DeviceGroup *of = &b->space->group[group];
    const bool cut = b->work->batch->loop[id] >= 0 && of->n_replicas > 1;
    double mean = 0, least = INFINITY;
    for (uint32_t r = 0; r < of->n_replicas * of->n_devices; r++) {
        const double s = sim_quick_place_s(quick, group, id, r);
        load[of->device[r]] += s;
        mean += sim_quick_share(quick, group, r) * s;
        least = fmin(least, s);
    }
    return cut ? mean : least;
}

/* Whether replicas sum the tensor as soon as the op has made it: the gradient of a parameter. */
static bool is_summed(const TagBound *b, OpId op, TensorId out)
{
    const Graph *graph = b->work->graph;
    const Tensor *tensor = graph_tensor(graph, out);
    return b->work->batch->loop[op] >= 0 && b->work->batch->form[out] == FORM_REDUCE &&
           tensor->role == ROLE_GRADIENT && tensor->of != GRAPH_NONE &&
           graph_tensor(graph, tensor->of)->role == ROLE_PARAMETER &&
           graph_gradient(graph, tensor->of) == out;
}

/* What an op's gradients take to be summed, in the rows of the devices where collectives stand. */
static double add_sums(TagBound *b, SimQuick *quick, OpId id, uint16_t group, bool served,
                       double *rows)
{
    const DeviceGroup *of = &b->space->group[group];
    const Op *op = graph_get_op(b->work->graph, id);
    double sum = 0;
    for (uint32_t o = 0; of->n_replicas > 1 && o < op->n_out; o++)
        if (is_summed(b, id, op->out[o]))
            sum += served ? sim_quick_served_s(quick, group, op->out[o])
                          : sim_quick_sum_s(quick, group, op->out[o]);
    for (uint32_t r = 0; r < of->n_replicas; r++)
        rows[of->device[r]] += sum;
    return op->n_out == 1 ? sum : 0;
}

static void fill(TagBound *b, SimQuick *quick, TagObjective objective)
{
    const uint32_t n = b->space->view->n_devices;
    const uint32_t comm = objective == TAG_BY_FLOW ? n : 0;
    g_autoptr(TagPlacement) placement = synth_tag_placement_new(b->work->graph);
    g_autofree uint16_t *action = g_new(uint16_t, b->work->n_groups);
    for (uint32_t s = 0; s < b->space->n_actions; s++) {
        const bool served = b->space->action[s].option == TAG_PS;
        /* Where a group's ops run does not depend on other groups. */
        for (uint32_t i = 0; i < b->work->n_groups; i++)
            action[i] = (uint16_t)s;
        synth_tag_place(b->space, b->work, action, placement);
        for (OpId id = 0; id < graph_n_ops(b->work->graph); id++) {
            double *load = load_of(b, b->work->group[id], s);
            const uint16_t group = placement->group[id];
            *mean_of(b, id, s) = add_op(b, quick, id, group, load) +
                                 add_sums(b, quick, id, group, served, &load[comm]);
        }
    }
    for (OpId id = 0; id < graph_n_ops(b->work->graph); id++) {
        b->least[id] = INFINITY;
        for (uint32_t s = 0; s < b->space->n_actions; s++)
            b->least[id] = fmin(b->least[id], *mean_of(b, id, s));
    }
}

/* --- paths as rows --- */

/* The last op of the longest path if an op takes s[op]; before: out, [op]. */
static OpId longest_path(TagBound *b, const double *s, OpId *before)
{
    const Graph *graph = b->work->graph;
    OpId last = 0;
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const Op *op = graph_get_op(graph, id);
        double start = 0;
        before[id] = GRAPH_NONE;
        for (uint32_t i = 0; i < op->n_in; i++) {
            const OpId by = graph_tensor(graph, op->in[i])->producer;
            if (by == GRAPH_NONE || (before[id] != GRAPH_NONE && b->until[by] <= start))
                continue;
            start = b->until[by];
            before[id] = by;
        }
        b->until[id] = start + s[id];
        last = b->until[id] > b->until[last] ? id : last;
    }
    return last;
}

/* The longest path by the least times, by the mean over the actions, and by the last action's, which has the
 * fewest devices. */
static void add_paths(TagBound *b)
{
    const Graph *graph = b->work->graph;
    const uint32_t n_actions = b->space->n_actions;
    g_autofree double *s = g_new(double, graph_n_ops(graph) + 1);
    g_autofree OpId *before = g_new(OpId, graph_n_ops(graph) + 1);
    for (uint32_t p = 0; p < PATHS; p++) {
        for (OpId id = 0; id < graph_n_ops(graph); id++) {
            double sum = 0;
            for (uint32_t a = 0; a < n_actions; a++)
                sum += *mean_of(b, id, a) / n_actions;
            s[id] = p == 0 ? b->least[id] : p == 1 ? sum : *mean_of(b, id, n_actions - 1);
        }
        for (OpId id = longest_path(b, s, before); id != GRAPH_NONE; id = before[id])
            for (uint32_t a = 0; a < n_actions; a++)
                load_of(b, b->work->group[id], a)[b->n_rows - PATHS + p] +=
                    *mean_of(b, id, a);
    }
}

/* --- weights --- */

static double weighted(const TagBound *b, uint32_t group, uint32_t action)
{
    const double *load = load_of(b, group, action);
    double sum = 0;
    for (uint32_t r = 0; r < b->n_rows; r++)
        sum += b->weight[r] * load[r];
    return sum;
}

/* The cheapest action of each group under the weights; returns their sum, *load gets the rows'. */
static double price(TagBound *b, double *load)
{
    double sum = 0;
    memset(load, 0, b->n_rows * sizeof *load);
    for (uint32_t i = 0; i < b->work->n_groups; i++) {
        uint32_t best = 0;
        double least = INFINITY;
        for (uint32_t s = 0; s < b->space->n_actions; s++) {
            const double cost = weighted(b, i, s);
            if (cost < least) {
                least = cost;
                best = s;
            }
        }
        b->cheapest[i] = least;
        sum += least;
        for (uint32_t r = 0; r < b->n_rows; r++)
            load[r] += load_of(b, i, best)[r];
    }
    return sum;
}

/* Multiplicative weights: rows with more to do weigh more. The best ones are kept. */
static void find_weights(TagBound *b)
{
    const uint32_t n = b->n_rows;
    g_autofree double *load = g_new0(double, n);
    g_autofree double *best = g_new(double, n);
    double bound = -1;
    for (uint32_t r = 0; r < n; r++)
        b->weight[r] = 1.0 / n;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const double sum = price(b, load);
        double most = 0, total = 0;
        if (sum > bound) {
            bound = sum;
            memcpy(best, b->weight, n * sizeof *best);
        }
        for (uint32_t r = 0; r < n; r++)
            most = fmax(most, load[r]);
        for (uint32_t r = 0; r < n; r++) {
            if (most > 0)
                b->weight[r] *= exp(load[r] / most / sqrt(1 + round));
            total += b->weight[r];
        }
        for (uint32_t r = 0; r < n; r++)
            b->weight[r] /= total;
    }
    memcpy(b->weight, best, n * sizeof *best);
    price(b, load);
}

TagBound *tag_bound_new(const TagSpace *space, const TagWork *work, SimQuick *quick,
                        TagObjective objective)
{
    TagBound *b = g_new0(TagBound, 1);
    const size_t n_ops = graph_n_ops(work->graph);
    b->space = space;
    b->work = work;
    b->n_rows = space->view->n_devices * (objective == TAG_BY_FLOW ? 2 : 1) + PATHS;
    b->load = g_new0(double, (gsize)work->n_groups * space->n_actions * b->n_rows + 1);
    b->mean = g_new0(double, n_ops * space->n_actions + 1);
    b->least = g_new0(double, n_ops + 1);
    b->weight = g_new0(double, b->n_rows);
    b->cheapest = g_new0(double, work->n_groups + 1);
    b->until = g_new0(double, n_ops + 1);
    fill(b, quick, objective);
    add_paths(b);
    find_weights(b);
    return b;
}

void tag_bound_free(TagBound *b)
{
    if (!b)
        return;
    g_free(b->load);
    g_free(b->mean);
    g_free(b->least);
    g_free(b->weight);
    g_free(b->cheapest);
    g_free(b->until);
    g_free(b);
}

static double load_bound(const TagBound *b, const uint16_t *action)
{
    double sum = 0, most = 0;
    for (uint32_t i = 0; i < b->work->n_groups; i++)
        sum += action[i] == TAG_UNDECIDED ? b->cheapest[i] : weighted(b, i, action[i]);
    for (uint32_t r = 0; r < b->n_rows; r++) {
        double load = 0;
        for (uint32_t i = 0; i < b->work->n_groups; i++)
            if (action[i] != TAG_UNDECIDED)
                load += load_of(b, i, action[i])[r];
        most = fmax(most, load);
    }
    return fmax(sum, most);
}

static double path_bound(TagBound *b, const uint16_t *action)
{
    const Graph *graph = b->work->graph;
    double longest = 0;
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const Op *op = graph_get_op(graph, id);
        const uint16_t a = action[b->work->group[id]];
        double start = 0;
        for (uint32_t i = 0; i < op->n_in; i++) {
            const OpId by = graph_tensor(graph, op->in[i])->producer;
            if (by != GRAPH_NONE)
                start = fmax(start, b->until[by]);
        }
        b->until[id] =
            start + (a == TAG_UNDECIDED ? b->least[id]
                                        : b->mean[(size_t)id * b->space->n_actions + a]);
        longest = fmax(longest, b->until[id]);
    }
    return longest;
}

double tag_bound(TagBound *b, const uint16_t *action)
{
    return SAFE * fmax(load_bound(b, action), path_bound(b, action));
}
