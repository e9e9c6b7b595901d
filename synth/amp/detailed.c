/* The default reading of the cost: the times of each stage on its own devices. */
#include <math.h>

#include "synth/amp/costing.h"

/* The number of groups of n devices, from the `at`-th on, that may do the same at the same time:
 * all of them if they share ports of machines, otherwise 1. */
static uint32_t together(const AmpCosting *c, const uint32_t *device, uint32_t n,
                         uint32_t n_groups, uint32_t at)
{
    return n > 1 && amp_find_machines(c->cluster, device + (size_t)at * n, n, 1,
                                      c->member) > 1
               ? n_groups
               : 1;
}

/* [kind]: seconds of a gradient's all-reduce; NULL if there is one replica. The caller frees it. */
static double *detailed_price_gradients(const AmpCosting *c, uint32_t group)
{
    const GArray *kind = c->model->steps->gradient_kind;
    const uint32_t tmp = c->s->tmp, dp = c->s->dp;
    if (dp == 1)
        return NULL;
    double *price_s = g_new(double, MAX(kind->len, 1));
    g_autofree uint32_t *device = g_new(uint32_t, (size_t)dp * tmp);
    for (uint32_t i = 0; i < dp * tmp; i++)
        device[i] = amp_group_at(c, group, i % dp)[i / dp];
    array_at (const AmpGradientKind, g, k, kind) {
        price_s[k] = sim_alone_collective_s(c->cluster->alone, COLLECTIVE_ALL_REDUCE,
                                            g->whole + g->cut / tmp, dp, tmp, device);
    }
    return price_s;
}

static void fill_delays(const AmpCosting *c, AmpRows *rows, AmpWhere where,
                        const double *gradient_s, uint32_t at)
{
    rows->delay[at] = amp_layers_delays(c->layers, &where, NULL);
    for (uint32_t m = 0; m < rows->n_modes; m++)
        rows->again[m * c->s->pp * c->s->dp + at] =
            amp_layers_delays(c->layers, &where, rows->mode[m]);
    where.gradient_s = gradient_s;
    rows->last[at] =
        gradient_s ? amp_layers_delays(c->layers, &where, NULL) : rows->delay[at];
}

static void copy_delays(const AmpCosting *c, AmpRows *rows, uint32_t from, uint32_t to)
{
    const uint32_t row = c->s->pp * c->s->dp;
    for (uint32_t m = 0; m < rows->n_modes; m++)
        rows->again[m * row + to] = rows->again[m * row + from];
    rows->delay[to] = rows->delay[from];
    rows->last[to] = rows->last[from];
}

/* Whether the devices of a group and of those behind it, `n` in all, are in places like those of
 * the group before and as many behind that. */
static bool is_as_before(const AmpCosting *c, uint32_t group, uint32_t n)
{
    const uint32_t size = c->s->dp * c->s->tmp;
    return group > 0 && group + n <= c->s->pp &&
           amp_is_same(c->cluster, n * size, amp_group_at(c, group, 0),
                       amp_group_at(c, group - 1, 0));
}

/* Copies a stage's row of `n` times the layers. */
static void copy_row(const AmpCosting *c, double *row, uint32_t from, uint32_t to,
                     uint32_t n)
{
    const size_t size = (size_t)n * c->model->n_layers;
    memcpy(row + to * size, row + from * size, size * sizeof *row);
}

static void fill_group(const AmpCosting *c, AmpRows *rows, uint32_t group)
{
    const uint32_t dp = c->s->dp, tmp = c->s->tmp;
    if (is_as_before(c, group, 1)) {
        for (uint32_t at = group * dp; at < (group + 1) * dp; at++) {
            copy_delays(c, rows, at - dp, at);
            rows->launch_s[at] = rows->launch_s[at - dp];
        }
        copy_row(c, rows->sync, group - 1, group, 1);
        return;
    }
    g_autofree double *gradient_s = detailed_price_gradients(c, group);
    uint32_t shared = dp; /* the first of the replicas whose messages are sent together */
    for (uint32_t r = 0; r < dp; r++) {
        const uint32_t *all = amp_group_at(c, group, 0), *own = amp_group_at(c, group, r);
        const uint32_t n_groups = together(c, all, tmp, dp, r), at = group * dp + r;
        const AmpWhere where = {
            c->degree, c->s->mbs, tmp, n_groups, n_groups > 1 ? all : own, NULL};
        if (n_groups > 1 && shared < r)
            copy_delays(c, rows, group * dp + shared, at);
        else
            fill_delays(c, rows, where, gradient_s, at);
        shared = n_groups > 1 ? MIN(shared, r) : shared;
        for (uint32_t t = 0; t < tmp; t++)
            rows->launch_s[at] =
                fmax(rows->launch_s[at],
                     c->model->steps->transfer_launch_s[c->cluster->type[own[t]]]);
    }
    for (uint32_t k = 0; gradient_s && k < c->model->steps->gradient->len; k++) {
        const AmpGradient *g = &g_array_index(c->model->steps->gradient, AmpGradient, k);
        rows->sync[(size_t)group * c->model->n_layers +
                   g_array_index(c->model->steps->step, AmpStep, g->step).layer] +=
            gradient_s[g->kind];
    }
}

static void fill_times(const AmpCosting *c, AmpRows *rows, uint32_t stage)
{
    const uint32_t n_layers = c->model->n_layers;
    for (uint32_t r = 0; r < c->s->dp; r++) {
        const uint32_t at = stage % c->s->pp * c->s->dp + r, row = c->s->pp * c->s->dp;
        const AmpDelay *delay = rows->delay[at];
        bool alike = r > 0 && rows->delay[at - 1] == delay;
        for (uint32_t m = 0; m < rows->n_modes; m++)
            alike = alike && rows->again[m * row + at] == rows->again[m * row + at - 1];
        if (alike)
            continue;
        for (uint32_t l = 0; l < n_layers; l++) {
            double *time = &rows->time[(size_t)stage * n_layers + l];
            double again_s = 0;
            for (AmpWhen part = 0; part < AMP_AGAIN_PARTS; part++) {
                const AmpDelay *again = amp_again_of(rows, stage, r, l, part);
                again_s += again ? amp_delay_pace(again) : 0;
            }
            *time = fmax(*time, amp_delay_pace(&delay[l]) + again_s +
                                    amp_delay_pace(&delay[n_layers + l]));
        }
    }
}

/* Whether a replica sends between machines, as others then do at the same time. */
static bool crosses(const AmpCosting *c, uint32_t from, uint32_t to, uint32_t replica)
{
    const uint32_t pair[] = {amp_group_at(c, from, replica)[0],
                             amp_group_at(c, to, replica)[0]};
    return together(c, pair, 2, 2, 0) > 1;
}

static double send_s(const AmpCosting *c, double bytes, uint32_t from, uint32_t to,
                     uint32_t replica)
{
    g_assert(bytes >= 0);
    if (bytes == 0 || from % c->s->pp == to % c->s->pp)
        return 0;
    const bool all = crosses(c, from, to, replica);
    const uint32_t n = all ? c->s->dp * c->s->tmp : c->s->tmp, first = all ? 0 : replica;
    g_autofree uint32_t *pair = g_new(uint32_t, 2 * (size_t)n);
    for (uint32_t i = 0; i < n; i++) {
        pair[2 * i] = amp_group_at(c, from, first)[i];
        pair[2 * i + 1] = amp_group_at(c, to, first)[i];
    }
    return sim_alone_send_s(c->cluster->alone, bytes, n, pair);
}

static void fill_transfers(const AmpCosting *c, AmpRows *rows, uint32_t stage)
{
    const AmpSteps *steps = c->model->steps;
    const uint32_t n_layers = c->model->n_layers;
    uint32_t shared = c->s->dp; /* the first replica that sends between machines */
    for (uint32_t r = 0; r < c->s->dp; r++) {
        const size_t row = (size_t)stage * c->s->dp * n_layers;
        double *there = rows->send_s + row + (size_t)r * n_layers;
        double *back = rows->return_s + row + (size_t)r * n_layers;
        const bool far = crosses(c, stage, stage + 1, r), like_shared = far && shared < r;
        shared = far ? MIN(shared, r) : shared;
        for (uint32_t l = 0; l < n_layers; l++) {
            const bool same = l > 0 && steps->sent[l] == steps->sent[l - 1] &&
                              steps->returned[l] == steps->returned[l - 1];
            const size_t known = row + (size_t)shared * n_layers + l;
            there[l] = like_shared ? rows->send_s[known]
                       : same
                           ? there[l - 1]
                           : send_s(c, c->s->mbs * steps->sent[l], stage, stage + 1, r);
            back[l] =
                like_shared ? rows->return_s[known]
                : same      ? back[l - 1]
                       : send_s(c, c->s->mbs * steps->returned[l], stage + 1, stage, r);
            double *both = &rows->transfer[(size_t)stage * n_layers + l];
            *both = fmax(*both, there[l] + back[l]);
        }
    }
}

/* Finds the groups whose all-reduces leave machines that they share. */
void amp_find_meetings(const AmpCosting *c, AmpRows *rows)
{
    const uint32_t pp = c->s->pp, n = c->s->dp * c->s->tmp;
    const uint32_t n_machines = c->cluster->n_machines;
    g_autofree bool *passes = g_new0(bool, (size_t)pp *n_machines);
    for (uint32_t g = 0; g < pp; g++) {
        const bool leaves =
            any_of(t, c->s->tmp,
                   amp_find_machines(c->cluster, amp_group_at(c, g, 0) + t, c->s->dp,
                                     c->s->tmp, c->member) > 1);
        for (uint32_t i = 0; leaves && i < n; i++)
            passes[g * n_machines + c->cluster->machine[amp_group_at(c, g, 0)[i]]] = true;
    }
    for (uint32_t g = 0; g < pp; g++)
        for (uint32_t h = 0; h < pp; h++)
            for (uint32_t m = 0; m < n_machines; m++)
                rows->meet[g * pp + h] |=
                    passes[g * n_machines + m] && passes[h * n_machines + m];
}

void amp_fill_detailed(const AmpCosting *c, AmpRows *rows, uint32_t stage)
{
    const uint32_t pp = c->s->pp, before = stage >= pp ? stage - pp : stage - 1;
    if (stage < pp)
        fill_group(c, rows, stage);
    else
        copy_row(c, rows->sync, before, stage, 1);
    fill_times(c, rows, stage);
    if (stage + 1 == pp * c->s->chunks)
        return;
    if (stage >= pp || is_as_before(c, stage, 2)) {
        copy_row(c, rows->send_s, before, stage, c->s->dp);
        copy_row(c, rows->return_s, before, stage, c->s->dp);
        copy_row(c, rows->transfer, before, stage, 1);
    } else
        fill_transfers(c, rows, stage);
}
