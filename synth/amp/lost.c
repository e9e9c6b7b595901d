/* Whether a choice of degrees and microbatch size can keep a limit of time, by the fidelity
 * `stage`.
 *
 * With M microbatches stage p of a pipeline takes at least
 *
 *     the least seconds of a microbatch on the layers before p, forward and back  +  M m_p,
 *     less the gradients of weights that stages before need not wait for (synth/amp/least.c),
 *
 * with m_p the computations of its slowest device (synth/amp/least.c), of a type that is called the
 * stage's level, and the messages among the devices that share its layers. A level and those before
 * it take dp x tmp devices of their types per stage, so they have at most as many stages as these
 * devices make. Devices of more than one machine have the bandwidth between machines at most,
 * others that of the fastest link.
 *
 * Under a limit of time each stage takes as many layers as it can: since a stage that begins later
 * reaches no less far, the most layers that stages of given levels reach follow stage by stage. If
 * no stages reach the last layer, no strategy of the choice keeps the limit, whatever its devices
 * and cuts are. */
#include "synth/amp/search.h"

enum { MOST_STATES = 20000 };

typedef struct {
    const AmpSearch *search;
    const AmpDegrees *choice;
    double n_microbatches, upper_s;
    uint32_t n_levels;
    uint32_t *most; /* [level]: stages of this level and of those before it, */
    uint32_t *step; /* [level]: and the weight of one in a state's number */
    /* [level * (n_layers + 1) + layer]: seconds of all microbatches on the layers before */
    double *all_s;
    double *late_s; /* likewise, of a layer: what no stage waits for */
    double *once_s; /* [layer]: the first term */
} Reach;

/* The fastest line of n devices that belong together. */
static LinkCost line_of(const Reach *r, uint32_t n)
{
    const AmpCluster *cluster = r->search->cluster;
    return n > cluster->most_gpus ? cluster->fastest_between : cluster->fastest;
}

/* Adds a level whose types have no faster ones behind them in the list. */
static void add_level(Reach *r, uint32_t type, uint32_t devices)
{
    const AmpModel *model = r->search->model;
    const AmpDegrees *c = r->choice;
    const uint32_t n = model->n_layers, level = r->n_levels++,
                   degree = amp_degree(model, c->tmp);
    const uint32_t before = level > 0 ? r->most[level - 1] : 0;
    double *all_s = r->all_s + (size_t)level * (n + 1);
    g_autofree double *row = amp_computes(model, type, degree, c->mbs),
                      *moved = amp_exchanges(model, degree, c->mbs, line_of(r, c->tmp)),
                      *late = amp_late(model, type, degree, c->mbs);
    r->most[level] = devices / (c->dp * c->tmp);
    r->step[level] = level > 0 ? r->step[level - 1] * (before + 1) : 1;
    for (uint32_t l = 0; l < n; l++) {
        const double f = row[AMP_FORWARD * n + l] + moved[AMP_FORWARD * n + l],
                     b = row[AMP_BACKWARD * n + l] + moved[AMP_BACKWARD * n + l];
        all_s[l + 1] = all_s[l] + r->n_microbatches * (f + b);
        const double once = f + b - late[l];
        r->late_s[(size_t)level * (n + 1) + l] = late[l];
        r->once_s[l + 1] = level > 0 ? MIN(r->once_s[l + 1], once) : once;
    }
}

/* Whether a stage of the layers from `first` up to `end` keeps the limit. */
static bool is_in_time(const Reach *r, uint32_t level, uint32_t first, uint32_t end)
{
    const size_t row = (size_t)level * (r->search->model->n_layers + 1);
    const double *all_s = r->all_s + row;
    return r->once_s[first] + all_s[end] - all_s[first] - r->late_s[row + first] <
           r->upper_s;
}

/* The last layer with which the next stage can begin if this one begins with `first`. */
static uint32_t end_of(const Reach *r, uint32_t level, uint32_t first)
{
    const uint32_t n = r->search->model->n_layers;
    uint32_t low = first, high = n;
    while (low < high) {
        const uint32_t mid = (low + high + 1) / 2;
        if (is_in_time(r, level, first, mid))
            low = mid;
        else
            high = mid - 1;
    }
    return low;
}

/* Whether there are devices for a state's stages. */
static bool is_possible(const Reach *r, uint32_t state)
{
    uint32_t stages = 0;
    bool possible = true;
    for (uint32_t k = 0; k < r->n_levels; k++) {
        stages += state / r->step[k] % (r->most[k] + 1);
        possible &= stages <= r->most[k];
    }
    return possible;
}

/* Whether some stages take all layers. */
static bool reaches_end(const Reach *r)
{
    const uint32_t last = r->n_levels - 1;
    const uint32_t n_states = r->step[last] * (r->most[last] + 1);
    g_autofree uint32_t *reach = g_new0(uint32_t, n_states);
    for (uint32_t state = 1; state < n_states; state++) {
        if (!is_possible(r, state))
            continue;
        for (uint32_t k = 0; k < r->n_levels; k++)
            if (state / r->step[k] % (r->most[k] + 1) > 0)
                reach[state] = MAX(reach[state], end_of(r, k, reach[state - r->step[k]]));
        if (reach[state] == r->search->model->n_layers)
            return true;
    }
    return false;
}

bool amp_is_lost(const AmpSearch *search, const AmpDegrees *choice, double upper_s)
{
    const AmpModel *model = search->model;
    const AmpCluster *cluster = search->cluster;
    const uint32_t n = model->n_layers;
    g_assert(!search->options->faithful && model->steps->time_s);
    if (amp_chunks(search->options) > 1)
        return false; /* a device's layers are several runs */
    g_autofree uint32_t *most = g_new(uint32_t, model->n_types),
                        *step = g_new(uint32_t, model->n_types);
    g_autofree double *all_s = g_new0(double, (size_t)model->n_types *(n + 1)),
                      *late_s = g_new0(double, (size_t)model->n_types *(n + 1)),
                      *once_s = g_new0(double, n + 1);
    const double m = model->global_batch / choice->dp / choice->mbs;
    Reach r = {search, choice, m, upper_s, 0, most, step, all_s, late_s, once_s};
    uint32_t devices = 0;
    double n_states = 1;
    for (uint32_t t = 0; t < model->n_types; t++) {
        const uint32_t here =
            sum_over(uint32_t, d, cluster->n_devices, cluster->type[d] == t);
        devices += here;
        n_states *= here > 0 ? devices / (choice->dp * choice->tmp) + 1.0 : 1;
        if (n_states > MOST_STATES)
            return false;
        if (here > 0)
            add_level(&r, t, devices);
    }
    for (uint32_t l = 0; l < n; l++) /* whatever the device */
        once_s[l + 1] += once_s[l];
    return !reaches_end(&r);
}
