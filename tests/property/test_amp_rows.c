/* The rows of AMP's costs by their definitions, computed one by one from the steps of the layers
 * and from messages alone on the network, in both readings; and the walk over them by plain sums, where devices do not
 * share layers. */
#include <math.h>

#include "synth/amp/cost.h"
#include "tests/support/amp_setup.h"

typedef struct {
    AmpSetup setup;
    AmpOptions options;
    const AmpStrategy *s;
    AmpRows *rows;
    uint32_t degree;
} Case;

static const char *const MODE[] = {NULL, "full", "selective", "alternate", NULL, "mlp"};
#define MODEL "gpt2:layers=4,hidden=256,heads=8,ffn=512,seq=64,vocab=128,global_batch=24"

static const uint32_t *group_of(const AmpStrategy *s, uint32_t stage, uint32_t replica)
{
    return &s->device[(stage % s->pp * s->dp + replica) * s->tmp];
}

static bool is_apart(const AmpCluster *cluster, const uint32_t *device, uint32_t n)
{
    bool apart = false;
    for (uint32_t i = 1; i < n; i++)
        apart |= cluster->machine[device[i]] != cluster->machine[device[0]];
    return apart;
}

/* --- rows --- */

/* A message of `bytes` goes from each device of a replica to that at the same place of the other
 * stage. Where its first device sends to another machine all replicas send at once. */
static double message_s(const Case *c, double bytes, uint32_t from, uint32_t to,
                        uint32_t replica)
{
    enum { MOST = 64 };
    const AmpStrategy *s = c->s;
    uint32_t pair[MOST], n = 0;
    const uint32_t first[] = {group_of(s, from, replica)[0], group_of(s, to, replica)[0]};
    const bool all = is_apart(c->setup.devices, first, 2);
    if (bytes == 0 || from % s->pp == to % s->pp)
        return 0;
    for (uint32_t r = all ? 0 : replica; r < (all ? s->dp : replica + 1); r++)
        for (uint32_t t = 0; t < s->tmp; t++) {
            pair[n++] = group_of(s, from, r)[t];
            pair[n++] = group_of(s, to, r)[t];
        }
    return sim_alone_send_s(c->setup.devices->alone, bytes, n / 2, pair);
}

static uint32_t check_messages(const Case *c)
{
    const AmpModel *model = c->setup.model;
    const uint32_t n = model->n_layers, stages = c->s->pp * c->s->chunks;
    uint32_t sent = 0;
    for (uint32_t stage = 0; stage + 1 < stages; stage++)
        for (uint32_t l = 0; l < n; l += 1 + l % 3) {
            double most_s = 0;
            for (uint32_t r = 0; r < c->s->dp; r++) {
                const size_t at = ((size_t)stage * c->s->dp + r) * n + l;
                const double mbs = c->s->mbs, *sends = model->steps->sent,
                             *returns = model->steps->returned,
                             send = message_s(c, mbs * sends[l], stage, stage + 1, r),
                             back = message_s(c, mbs * returns[l], stage + 1, stage, r);
                assert_close(c->rows->send_s[at], send, 1e-12);
                assert_close(c->rows->return_s[at], back, 1e-12);
                most_s = fmax(most_s, send + back);
                sent += send > 0;
            }
            assert_close(c->rows->transfer[(size_t)stage * n + l], most_s, 1e-12);
        }
    return sent;
}

/* [kind]: seconds of the all-reduces of a gradient, of all places of a group at once. */
static double *reduce_s(const Case *c, uint32_t group)
{
    const AmpStrategy *s = c->s;
    const GArray *kind = c->setup.model->steps->gradient_kind;
    double *seconds = g_new0(double, kind->len + 1);
    g_autofree uint32_t *device = g_new(uint32_t, s->dp * s->tmp);
    for (uint32_t r = 0; r < s->dp; r++)
        for (uint32_t t = 0; t < s->tmp; t++)
            device[t * s->dp + r] = group_of(s, group, r)[t];
    array_at (const AmpGradientKind, k, i, kind)
        if (s->dp > 1)
            seconds[i] =
                sim_alone_collective_s(c->setup.devices->alone, COLLECTIVE_ALL_REDUCE,
                                       k->whole + k->cut / s->tmp, s->dp, s->tmp, device);
    return seconds;
}

/* Each layer's gradients are all-reduced once by its stage; each transfer is launched by the host
 * of the slowest device of its replica. */
static void check_sums(const Case *c, uint32_t stage)
{
    const AmpSteps *steps = c->setup.model->steps;
    const uint32_t n = c->setup.model->n_layers, group = stage % c->s->pp;
    g_autofree double *price_s = reduce_s(c, group), *sum_s = g_new0(double, n);
    array_each (const AmpGradient, g, steps->gradient)
        sum_s[g_array_index(steps->step, AmpStep, g->step).layer] += price_s[g->kind];
    for (uint32_t l = 0; l < n; l++)
        assert_close(c->rows->sync[stage * n + l], sum_s[l], 1e-12);
    for (uint32_t r = 0; r < c->s->dp; r++) {
        double launch_s = 0;
        for (uint32_t t = 0; t < c->s->tmp; t++)
            launch_s =
                fmax(launch_s,
                     steps->transfer_launch_s[c->setup.devices
                                                  ->type[group_of(c->s, group, r)[t]]]);
        assert_true(c->rows->launch_s[group * c->s->dp + r] == launch_s);
    }
}

static void assert_alike(uint32_t n, const AmpDelay *got, const AmpDelay *want)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < CLOCKS * CLOCKS; k++)
            assert_true(got[i].s[k / CLOCKS][k % CLOCKS] ==
                        want[i].s[k / CLOCKS][k % CLOCKS]);
}

/* A replica that shares layers between machines does so at the same time as all others. The time of
 * a stage's layer is that of the slowest replica, with what its mode runs again. */
static void check_delays(const Case *c, uint32_t group, AmpLayers *layers, double *time_s)
{
    const AmpStrategy *s = c->s;
    const uint32_t n = c->setup.model->n_layers, dp = s->dp;
    g_autofree double *price_s = reduce_s(c, group);
    for (uint32_t r = 0; r < dp; r++) {
        const uint32_t at = group * dp + r, *own = group_of(s, group, r);
        const bool all = is_apart(c->setup.devices, own, s->tmp);
        AmpWhere where = {
            c->degree, s->mbs, s->tmp, all ? dp : 1, all ? group_of(s, group, 0) : own,
            NULL};
        const AmpDelay *delay = amp_layers_delays(layers, &where, NULL);
        assert_alike(AMP_PASSES * n, c->rows->delay[at], delay);
        for (uint32_t m = 0; m < c->rows->n_modes; m++)
            assert_alike(AMP_AGAIN_PARTS * n, c->rows->again[m * s->pp * dp + at],
                         amp_layers_delays(layers, &where, c->rows->mode[m]));
        where.gradient_s = dp > 1 ? price_s : NULL;
        assert_alike(AMP_PASSES * n, c->rows->last[at],
                     amp_layers_delays(layers, &where, NULL));
        for (uint32_t l = 0; l < n; l++) {
            double again_s = 0;
            for (uint32_t m = 0; m < c->rows->n_modes; m++)
                for (AmpWhen part = 0; part < AMP_AGAIN_PARTS; part++)
                    if (c->rows->mode_at[group * n + l] == m + 1)
                        again_s += amp_delay_pace(
                            &c->rows->again[m * s->pp * dp + at][part * n + l]);
            time_s[l] = fmax(time_s[l], amp_delay_pace(&delay[l]) +
                                            amp_delay_pace(&delay[n + l]) + again_s);
        }
    }
}

/* The forwards of a group that wait for their backward at the worst time, by the schedule. */
static uint32_t most_waiting(const Case *c, uint32_t group)
{
    uint32_t now = 0, most = 0;
    g_autoptr(GArray) order =
        synth_schedule_order(c->options.schedule, c->s->pp * c->s->chunks, c->s->pp,
                             c->rows->n_microbatches, NULL, NULL);
    array_each (const SynthStep, step, order)
        if (step->stage % c->s->pp == group) {
            now += step->backward ? -1 : 1;
            most = MAX(most, now);
        }
    return most;
}

/* A stage has its layers' states, and what it keeps of each microbatch that waits; the capacity is
 * that of its smallest device, less what one layer computes again. */
static void check_memory(const Case *c, uint32_t stage)
{
    const AmpModel *model = c->setup.model;
    const uint32_t n = model->n_layers, group = stage % c->s->pp, chunks = c->s->chunks;
    const double kept = (most_waiting(c, group) + chunks - 1) / chunks;
    double least = INFINITY, again = 0, keeps = 0;
    for (uint32_t i = 0; i < c->s->dp * c->s->tmp; i++)
        least = fmin(least, c->setup.devices->memory[group_of(c->s, group, 0)[i]]);
    for (uint32_t l = 0; l < n; l++) {
        const uint32_t m = c->rows->mode_at[stage * n + l];
        const double all = c->s->mbs * model->activation[c->degree * n + l],
                     less = m ? c->s->mbs * c->rows->mode[m - 1]->less[c->degree * n + l]
                              : 0;
        keeps = all - less;
        again = fmax(again, less);
        if (chunks == 1 || (c->rows->n_microbatches % c->s->pp == 0 &&
                            c->rows->n_microbatches > c->s->pp))
            assert_close(c->rows->memory[stage * n + l],
                         model->held[c->degree * n + l] + kept * keeps, 1e-12);
    }
    if (stage + 1 == c->s->pp * chunks)
        again = fmax(0, again - keeps);
    assert_close(c->rows->capacity[stage], least - again, 1e-12);
}

/* --- the paper's reading --- */

/* The least bandwidth between two devices of some, or INFINITY. */
static double least_bandwidth(const Case *c, uint32_t n, const uint32_t *device)
{
    const AmpCluster *cluster = c->setup.devices;
    double least = INFINITY;
    for (uint32_t i = 0; i < n * n; i++)
        if (i / n < i % n)
            least = fmin(
                least,
                cluster->bandwidth[cluster->machine[device[i / n]] * cluster->n_machines +
                                   cluster->machine[device[i % n]]]);
    return least;
}

/* Seconds per byte: among the devices of the slowest replica, from its devices to those of the next
 * stage, and of a ring among replicas, Eq. (3). */
static void find_paths(const Case *c, uint32_t stage, double *inside, double *across,
                       double *among)
{
    const AmpStrategy *s = c->s;
    const double n = s->dp;
    g_autofree uint32_t *ring = g_new(uint32_t, s->dp);
    *inside = *across = *among = 0;
    for (uint32_t r = 0; r < s->dp; r++)
        *inside = fmax(*inside, 1 / least_bandwidth(c, s->tmp, group_of(s, stage, r)));
    for (uint32_t t = 0; t < s->tmp; t++) {
        for (uint32_t r = 0; r < s->dp; r++) {
            const uint32_t pair[] = {group_of(s, stage, r)[t],
                                     group_of(s, stage + 1, r)[t]};
            ring[r] = pair[0];
            if (stage + 1 < s->pp * s->chunks)
                *across = fmax(*across, 1 / least_bandwidth(c, 2, pair));
        }
        *among = fmax(*among, 2 * (n - 1) / n / least_bandwidth(c, s->dp, ring));
    }
}

/* A layer takes its average over all devices, and its messages their bytes over the bandwidth. The
 * time is Eq. (4) and (5), where stages do not take turns. */
static void check_faithful(Case *c)
{
    const AmpModel *model = c->setup.model;
    const uint32_t n = model->n_layers, stages = c->s->pp * c->s->chunks,
                   devices = c->setup.devices->n_devices;
    AmpOptions options = c->options;
    options.faithful = true;
    g_autoptr(AmpRows) rows =
        amp_rows_new(model, c->setup.devices, &options, NULL, c->s, false);
    double most_s = 0, sum_s = 0, sent_s = 0, reduced_s = 0;
    for (uint32_t stage = 0; stage < stages; stage++) {
        double inside, across, among, time_s = 0, sync_s = 0;
        find_paths(c, stage, &inside, &across, &among);
        for (uint32_t l = 0; l < n; l++) {
            const size_t at = (size_t)stage * n + l, row = (size_t)c->degree * n + l;
            double mean_s = 0;
            for (uint32_t d = 0; d < devices; d++)
                mean_s +=
                    synth_amp_times(model, c->setup.devices->type[d], c->degree, 0)[l] /
                    devices / model->size[0] * c->s->mbs;
            assert_close(rows->time[at],
                         mean_s + c->s->mbs * inside * model->exchange[row], 1e-9);
            assert_close(rows->transfer[at], c->s->mbs * across * model->output[row],
                         1e-9);
            assert_close(rows->sync[at], among * model->gradient[row], 1e-9);
            if (l < c->s->first[stage] || l >= c->s->first[stage + 1])
                continue;
            time_s += rows->time[at];
            sync_s += rows->sync[at];
            sent_s += l + 1 == c->s->first[stage + 1] ? rows->transfer[at] : 0;
        }
        most_s = fmax(most_s, time_s);
        sum_s += time_s;
        reduced_s = fmax(reduced_s, sync_s);
    }
    const double m = rows->n_microbatches - 1.0;
    if (c->s->chunks == 1)
        assert_close(amp_rows_cost(rows, c->s->first).total_s,
                     m * most_s + sum_s + sent_s + reduced_s, 1e-9);
}

/* --- the walk --- */

/* Seconds of a pass of a layer on a replica's only device: all of it, or a part of what it runs
 * again. With `stream` the gradients of replicas are all-reduced in order as steps make them. */
static double pass_s(const Case *c, uint32_t stage, uint32_t r, AmpPass pass, uint32_t l,
                     AmpWhen part)
{
    const AmpModel *model = c->setup.model;
    const uint32_t n = model->n_layers, m = c->rows->mode_at[stage * n + l];
    const uint32_t *first = &model->steps->first[pass * n + l];
    double sum = 0;
    for (uint32_t i = first[0]; i < first[1]; i++)
        if (!g_array_index(model->steps->step, AmpStep, i).is_message &&
            (part == AMP_NEVER || (m && c->rows->mode[m - 1]->when[i] == part)))
            sum += amp_step_s(model, c->degree, c->s->mbs,
                              c->setup.devices->type[*group_of(c->s, stage, r)], i);
    return sum;
}

/* Both parts that a layer of the forward runs again. */
static double again_s(const Case *c, uint32_t stage, uint32_t r, uint32_t l, AmpWhen part)
{
    return pass_s(c, stage, r, AMP_FORWARD, l, part);
}

typedef struct {
    const Case *c;
    double *device_s;  /* [group * dp + replica] */
    double *stream_s;  /* likewise: of all-reduces */
    double *link_s;    /* [(group * pp + group) * dp + replica] */
    double *input_s;   /* [backward][(stage * M + microbatch) * dp + replica] */
    double *reduced_s; /* [layer] */
} Plain;

static double *input_at(const Plain *p, SynthStep step, uint32_t r)
{
    const AmpStrategy *s = p->c->s;
    const uint32_t m = p->c->rows->n_microbatches;
    return &p->input_s[((step.backward * s->pp * s->chunks + step.stage) * m +
                        step.microbatch) *
                           s->dp +
                       r];
}

/* All-reduces what a layer's backward makes, from `now` on. */
static void plain_reduce(Plain *p, uint32_t stage, uint32_t r, uint32_t l, double now)
{
    const Case *c = p->c;
    const AmpModel *model = c->setup.model;
    const uint32_t *first = &model->steps->first[AMP_BACKWARD * model->n_layers + l],
                   *of = model->steps->first_gradient,
                   type = c->setup.devices->type[*group_of(c->s, stage, r)];
    g_autofree double *price_s = reduce_s(c, stage % c->s->pp);
    double *stream = &p->stream_s[stage % c->s->pp * c->s->dp + r];
    for (uint32_t i = first[0]; c->s->dp > 1 && i < first[1]; i++) {
        if (!g_array_index(model->steps->step, AmpStep, i).is_message)
            now += amp_step_s(model, c->degree, c->s->mbs, type, i);
        for (uint32_t k = of[i]; k < of[i + 1]; k++)
            *stream = fmax(*stream, now) +
                      price_s[g_array_index(model->steps->gradient, AmpGradient, k).kind];
    }
}

/* The computations of a step on all replicas, from when their inputs are there. */
static void plain_compute(Plain *p, SynthStep step)
{
    const Case *c = p->c;
    const AmpStrategy *s = c->s;
    const uint32_t begin = s->first[step.stage], end = s->first[step.stage + 1],
                   at = step.stage % s->pp * s->dp;
    const bool last = step.backward && step.microbatch + 1 == c->rows->n_microbatches;
    double *now = &p->device_s[at], *stream = &p->stream_s[at];
    for (uint32_t r = 0; r < s->dp; r++) {
        if (step.backward)
            now[r] += again_s(c, step.stage, r, end - 1, AMP_EARLY);
        now[r] = fmax(now[r], *input_at(p, step, r));
        for (uint32_t l = begin; !step.backward && l < end; l++)
            now[r] += pass_s(c, step.stage, r, AMP_FORWARD, l, AMP_NEVER);
    }
    for (uint32_t l = end; step.backward && l-- > begin;) {
        double latest = 0;
        for (uint32_t r = 0; r < s->dp; r++) {
            if (l + 1 < end)
                now[r] += again_s(c, step.stage, r, l, AMP_EARLY);
            now[r] += again_s(c, step.stage, r, l, AMP_LATE);
            if (last)
                plain_reduce(p, step.stage, r, l, now[r]);
            now[r] += pass_s(c, step.stage, r, AMP_BACKWARD, l, AMP_NEVER);
            latest = fmax(latest, stream[r]);
        }
        for (uint32_t r = 0; last && r < s->dp; r++)
            stream[r] = latest;
        p->reduced_s[l] = latest;
    }
}

static void plain_send(Plain *p, SynthStep step)
{
    const AmpStrategy *s = p->c->s;
    const uint32_t n = p->c->setup.model->n_layers, from = step.stage % s->pp;
    SynthStep next = step;
    if (step.backward ? step.stage == 0 : step.stage + 1 == s->pp * s->chunks)
        return;
    next.stage += step.backward ? -1 : 1;
    const uint32_t to = next.stage % s->pp, border = MIN(step.stage, next.stage),
                   l = s->first[border + 1] - 1;
    for (uint32_t r = 0; r < s->dp; r++) {
        const size_t row = ((size_t)border * s->dp + r) * n + l;
        double *link = &p->link_s[(from * s->pp + to) * s->dp + r];
        const double made = p->device_s[from * s->dp + r];
        *link = fmax(*link, made) +
                (step.backward ? p->c->rows->return_s : p->c->rows->send_s)[row];
        *input_at(p, next, r) = from == to ? made : *link;
    }
}

/* Updates run from the last layer to the first, each when its gradients are reduced; a group's
 * first layer waits for all of the group's. */
static double plain_update(const Plain *p, uint32_t group, uint32_t r)
{
    const AmpStrategy *s = p->c->s;
    double now = p->device_s[group * s->dp + r], all = 0;
    for (uint32_t stage = group; stage < s->pp * s->chunks; stage += s->pp)
        for (uint32_t l = s->first[stage]; l < s->first[stage + 1]; l++)
            all = fmax(all, p->reduced_s[l]);
    for (uint32_t stage = s->pp * s->chunks; stage-- > 0;)
        for (uint32_t l = s->first[stage + 1];
             stage % s->pp == group && l-- > s->first[stage];)
            now = fmax(now, l == s->first[group] ? all : p->reduced_s[l]) +
                  pass_s(p->c, stage, r, AMP_UPDATE, l, AMP_NEVER);
    return now;
}

static double plain_s(const Case *c)
{
    const AmpStrategy *s = c->s;
    const uint32_t stages = s->pp * s->chunks;
    const size_t n = s->pp * s->dp;
    g_autofree double *device_s = g_new0(double, n), *stream_s = g_new0(double, n),
                      *link_s = g_new0(double, n * s->pp),
                      *input_s = g_new0(double, 2 * (size_t)stages *
                                                    c->rows->n_microbatches * s->dp),
                      *reduced_s = g_new0(double, c->setup.model->n_layers);
    Plain p = {c, device_s, stream_s, link_s, input_s, reduced_s};
    g_autoptr(GArray) order = synth_schedule_order(c->options.schedule, stages, s->pp,
                                                   c->rows->n_microbatches, NULL, NULL);
    array_each (const SynthStep, step, order) {
        plain_compute(&p, *step);
        plain_send(&p, *step);
    }
    double end_s = 0;
    for (uint32_t g = 0; g < s->pp; g++)
        for (uint32_t r = 0; r < s->dp; r++)
            end_s = fmax(end_s, plain_update(&p, g, r));
    return end_s;
}

/* Whether all-reduces of two groups share a machine. */
static bool has_meetings(const Case *c)
{
    bool meets = false;
    for (uint32_t i = 0; i < c->s->pp * c->s->pp; i++)
        meets |= i / c->s->pp != i % c->s->pp && c->rows->meet[i];
    return meets;
}

/* --- cases --- */

typedef struct {
    uint32_t sent, walked, replicas, again;
} Tally;

static void check_strategy(Case *c, Tally *tally)
{
    const AmpSetup *on = &c->setup;
    const uint32_t n = on->model->n_layers, stages = c->s->pp * c->s->chunks;
    g_autoptr(AmpLayers) layers = amp_layers_new(on->model, on->devices),
                         fresh = amp_layers_new(on->model, on->devices);
    g_autofree double *time_s = g_new(double, n);
    c->degree = amp_degree(on->model, c->s->tmp);
    g_autoptr(AmpRows) rows = c->rows =
        amp_rows_new(on->model, on->devices, &c->options, layers, c->s, false);
    tally->sent += check_messages(c);
    check_faithful(c);
    for (uint32_t stage = 0; stage < stages; stage++) {
        check_sums(c, stage);
        check_memory(c, stage);
        memset(time_s, 0, n * sizeof *time_s);
        if (stage < c->s->pp)
            check_delays(c, stage, fresh, time_s);
        for (uint32_t l = 0; stage < c->s->pp && l < n; l++)
            assert_close(rows->time[stage * n + l], time_s[l], 1e-12);
    }
    if (c->s->tmp == 1 && rows->launch_s[0] == 0 && !has_meetings(c)) {
        assert_close(amp_rows_walk(rows, c->s->first), plain_s(c), 1e-9);
        tally->walked++;
        tally->replicas += c->s->dp > 1 && c->s->pp > 1;
        tally->again += rows->n_modes > 0 && c->s->pp > 1;
    }
}

/* Lets two of a strategy's devices change places. */
static void change_places(GRand *rand, uint32_t n, uint32_t *device)
{
    const uint32_t a = (uint32_t)g_rand_int_range(rand, 0, (gint32)n),
                   b = (uint32_t)g_rand_int_range(rand, 0, (gint32)n), was = device[a];
    device[a] = device[b];
    device[b] = was;
}

static void check_cluster(const char *cluster, Tally *tally)
{
    enum { EACH = 2 };
    g_autoptr(GRand) rand = g_rand_new_with_seed(39);
    Case c = {.setup = amp_setup_new(MODEL, cluster)};
    const uint32_t n = c.setup.devices->n_devices;
    for (uint32_t d = 0; d < n; d++)
        c.setup.devices->memory[d] = 1e12 * g_rand_double_range(rand, 1, 2);
    for (uint32_t i = 0; i < 2 * G_N_ELEMENTS(MODE); i++) {
        c.options = (AmpOptions){.schedule = (SynthSchedule)(i % 3),
                                 .chunks = 2,
                                 .recompute = MODE[i % G_N_ELEMENTS(MODE)]};
        GError *error = NULL;
        g_autoptr(GArray) found = synth_amp_search(c.setup.model, c.setup.devices,
                                                   &c.options, AMP_SEARCH, NULL, &error);
        assert_no_error(error);
        for (guint k = i % EACH; k < found->len; k += EACH) {
            c.s = &g_array_index(found, AmpCandidate, k).strategy;
            for (uint32_t j = 0; j < k % 3; j++)
                change_places(rand, n, c.s->device);
            check_strategy(&c, tally);
        }
    }
    amp_setup_clear(&c.setup);
}

static void test_rows(void **state)
{
    (void)state;
    Tally tally = {0};
    check_cluster("2x6xa100-80g@ib-hdr", &tally);
    check_cluster("amp-het-cluster", &tally);
    check_cluster("2x2xh100-sxm@ib-ndr+2x2xa100-80g@ib-hdr+2x2xa100-80g@eth-25", &tally);
    print_message("%u messages; %u walks, %u of replicas of stages, %u run again\n",
                  tally.sent, tally.walked, tally.replicas, tally.again);
    assert_true(tally.sent > 1000 && tally.replicas > 20 && tally.again > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
