/* The least time of a strategy by the fidelity `stage`, in which messages among devices that
 * share layers come in the place of computation.
 *
 * Stage p of a replica takes m_p = f_p + b_p seconds for a microbatch: the computations of its
 * slowest device, which runs one after another, and the all-reduces among the devices that share
 * layers inside a machine, at the link's bandwidth. Of M microbatches the first comes through the
 * stages before, forward, and the last goes back through them, so that an iteration takes
 *
 *     max over p of  sum over q < p of (m_q - w_q)  +  M m_p - w_p
 *     and  sum over q < p of f_q  +  M m_p  +  the update of p's layers
 *
 * with w_p the gradients of weights of p's first layer: stages before p go on without them, and
 * while p updates its layers.
 *
 * With 1f1b stage p has n_p = min(M, P - p) - 1 microbatches in flight beside one, and waits for
 * the rest: S_p + M m_p - n_p min(f_p, b_p) in the place of M m_p, with S_p = the sum of m - w
 * behind p, if that is more (synth/joint/joint.h). */
#include <math.h>

#include "synth/amp/search.h"

/* Seconds of a pass on a layer (by number in steps->first), or of the part that no other layer
 * waits for. */
static double layer_s(const AmpModel *model, uint32_t type, uint32_t degree, uint32_t mbs,
                      uint32_t layer, bool late)
{
    const AmpSteps *steps = model->steps;
    double seconds = 0;
    for (uint32_t k = steps->first[layer]; k < steps->first[layer + 1]; k++) {
        const AmpStep *step = &g_array_index(steps->step, AmpStep, k);
        if (!step->is_message && (step->waits || !late))
            seconds += amp_step_s(model, degree, mbs, type, k);
    }
    return seconds;
}

double *amp_computes(const AmpModel *model, uint32_t type, uint32_t degree, uint32_t mbs)
{
    const AmpSteps *steps = model->steps;
    const uint32_t n = AMP_PASSES * model->n_layers;
    double *seconds = g_new(double, n);
    for (uint32_t i = 0; i < n; i++)
        seconds[i] = steps->like[i] < i ? seconds[steps->like[i]]
                                        : layer_s(model, type, degree, mbs, i, false);
    return seconds;
}

double *amp_late(const AmpModel *model, uint32_t type, uint32_t degree, uint32_t mbs)
{
    const uint32_t n = model->n_layers;
    double *seconds = g_new(double, n);
    for (uint32_t l = 0; l < n; l++)
        seconds[l] = layer_s(model, type, degree, mbs, AMP_BACKWARD * n + l, true);
    return seconds;
}

double *amp_exchanges(const AmpModel *model, uint32_t degree, uint32_t mbs, LinkCost line)
{
    const AmpSteps *steps = model->steps;
    const uint32_t n = AMP_PASSES * model->n_layers, tmp = model->degree[degree];
    double *seconds = g_new0(double, n);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = steps->first[i]; k < steps->first[i + 1]; k++) {
            const AmpStep *step = &g_array_index(steps->step, AmpStep, k);
            const AmpMessage *m =
                step->is_message
                    ? &g_array_index(steps->message, AmpMessage, step->message)
                    : NULL;
            if (m && m->collective == COLLECTIVE_ALL_REDUCE)
                seconds[i] += sim_collective_over(line, tmp, m->collective,
                                                  m->bytes + mbs * m->sample_bytes, 1, 1);
        }
    return seconds;
}

typedef struct {
    const AmpSearch *search;
    const AmpStrategy *s;
    double **computes, **late; /* [type] */
    double *exchanges;         /* seconds of all-reduces times the bandwidth */
} Least;

static double sum(const Least *l, const double *row, AmpPass pass, uint32_t stage)
{
    const uint32_t n_layers = l->search->model->n_layers;
    double all = 0;
    for (uint32_t i = l->s->first[stage]; i < l->s->first[stage + 1]; i++)
        all += row[pass * n_layers + i];
    return all;
}

/* Seconds of a pass of a stage, of any number of chunks, on the devices of a group's replica. */
static double pass_s(const Least *l, const uint32_t *device, AmpPass pass, uint32_t stage)
{
    const AmpCluster *cluster = l->search->cluster;
    const uint32_t tmp = l->s->tmp, machine = cluster->machine[device[0]];
    double slowest = 0;
    bool inside = tmp > 1;
    for (uint32_t t = 0; t < tmp; t++) {
        const uint32_t type = cluster->type[device[t]];
        inside &= cluster->machine[device[t]] == machine;
        if (t == 0 || type != cluster->type[device[t - 1]])
            slowest = fmax(slowest, sum(l, l->computes[type], pass, stage));
    }
    const double bandwidth = cluster->inner[device[0]];
    return slowest + (inside && pass != AMP_UPDATE && bandwidth > 0
                          ? sum(l, l->exchanges, pass, stage) / bandwidth
                          : 0);
}

/* The part of a stage's backward that the stage before does not wait for, on any device; 0 for
 * the first one. */
static double late_s(const Least *l, const uint32_t *device, uint32_t stage)
{
    const uint32_t first = l->s->first[stage];
    double most = 0;
    for (uint32_t t = 0; t < l->s->tmp && stage > 0; t++)
        most = fmax(most, l->late[l->search->cluster->type[device[t]]][first]);
    return most;
}

/* Of one replica's stages, the last one first. */
static double replica_s(const Least *l, uint32_t r)
{
    const AmpStrategy *s = l->s;
    const uint32_t m = l->search->model->global_batch / s->dp / s->mbs;
    const bool lines_up = l->search->options->schedule == SCHEDULE_1F1B;
    const bool updates = l->search->options->zero == 0; /* else replicas divide them */
    /* from the stage's begin on: until its last message back, and until all updates */
    double behind = 0, ended = 0, least = 0;
    for (uint32_t p = s->pp; p-- > 0;) {
        const uint32_t *device = s->device + ((size_t)p * s->dp + r) * s->tmp;
        double f = 0, b = 0, u = 0;
        for (uint32_t stage = p; stage < s->pp * s->chunks; stage += s->pp) {
            f += pass_s(l, device, AMP_FORWARD, stage);
            b += pass_s(l, device, AMP_BACKWARD, stage);
            u += updates ? pass_s(l, device, AMP_UPDATE, stage) : 0;
        }
        const uint32_t in_flight = MIN(m, s->pp - p) - 1;
        const double waits = lines_up ? fmax(0, behind - in_flight * fmin(f, b)) : 0;
        const double through = s->chunks == 1 ? 1 : 0;
        const double w = late_s(l, device, p);
        ended = fmax(through * (f + b) + ended, m * (f + b) + waits) - w;
        least = fmax(through * f + least, ended + w + u);
        behind += f + b - w;
    }
    return least;
}

double amp_least_s(const AmpSearch *search, const AmpStrategy *strategy)
{
    const AmpModel *model = search->model;
    const uint32_t degree = amp_degree(model, strategy->tmp);
    g_autofree double **rows = g_new0(double *, model->n_types),
                      **late = g_new0(double *, model->n_types);
    g_autofree double *moved = amp_exchanges(model, degree, strategy->mbs,
                                             (LinkCost){0, 1}); /* times the bandwidth */
    const Least l = {search, strategy, rows, late, moved};
    double least = 0;
    g_assert(!search->options->faithful && model->steps->time_s);
    for (uint32_t type = 0; type < model->n_types; type++) {
        rows[type] = amp_computes(model, type, degree, strategy->mbs);
        late[type] = amp_late(model, type, degree, strategy->mbs);
    }
    for (uint32_t r = 0; r < strategy->dp; r++)
        least = fmax(least, replica_s(&l, r));
    for (uint32_t type = 0; type < model->n_types; type++) {
        g_free(rows[type]);
        g_free(late[type]);
    }
    return least;
}
