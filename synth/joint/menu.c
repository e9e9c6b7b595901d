/* The menu of the joint search: the costs of groups of devices for runs of layers. */
#include <math.h>
#include <string.h>

#include "synth/joint/menu.h"

#include "data/base/each.h"
#include "data/base/free.h"
#include "data/cluster/price.h"
#include "data/cluster/runtime.h"

/* Costs of a group: each is one more choice at every layer of the search. */
enum { MOST_ENTRIES = 64 };

static CLEAR_DEFINE(clear_kind, JointKind, data, g_free(data->machine));

static FREE_DEFINE(free_inside, JointInside, inside, program_free(inside->program),
                   free_each(inside->ratio, inside->view_ratio));

FREE_DEFINE(synth_joint_menu_free, JointMenu, menu,
            clear_items(menu->again, JOINT_MODES, synth_again_clear),
            g_hash_table_unref(menu->passes), g_ptr_array_unref(menu->inside),
            unref_arrays(menu->kind, menu->place), synth_amp_model_free(menu->model),
            synth_amp_cluster_free(menu->cluster));

/* --- seconds of layers --- */

/* GPUs of a machine that share layers, and the samples that they have. */
typedef struct {
    const JointKind *kind;
    uint32_t tp, samples;
} Sharing;

/* Seconds of a pass over a layer, by computation: messages take the place of it, as in the fidelity
 * `stage`; the host launches ahead. *slower: by how much launches take longer. */
static double menu_pass_s(const JointMenu *menu, const Sharing *s, uint32_t at,
                          double *slower)
{
    const AmpModel *model = menu->model;
    const AmpSteps *steps = model->steps;
    const Device *device = &menu->view->device[s->kind->first];
    const uint32_t type = menu->cluster->type[s->kind->first];
    double seconds = 0, launches = 0;
    for (uint32_t i = steps->first[at]; i < steps->first[at + 1]; i++) {
        const AmpStep *step = &g_array_index(steps->step, AmpStep, i);
        launches += steps->launch_s[(size_t)type * steps->step->len + i];
        if (!step->is_message) {
            seconds += amp_step_s(model, amp_degree(model, s->tp), s->samples, type, i);
            continue;
        }
        const AmpMessage *m = &g_array_index(steps->message, AmpMessage, step->message);
        const double bytes = m->bytes + s->samples * m->sample_bytes, part = 1.0 / s->tp;
        const LinkCost line = cluster_view_set_line(
            menu->view, device, (CurvePlace){device->type_name, s->tp, 1}, 1,
            m->collective, bytes);
        seconds += (1 - sim_overlap_part(device, m->collective, s->tp)) *
                   sim_collective_over(line, s->tp, m->collective, bytes, part, part);
    }
    *slower = launches > seconds && seconds > 0 ? launches / seconds : 1;
    return fmax(seconds, launches);
}

/* Seconds of the ops of a pass over a layer that the backward runs again (NULL: that wait). */
static double part_s(const JointMenu *menu, const Sharing *s, uint32_t at,
                     const AmpAgain *again)
{
    const AmpModel *model = menu->model;
    const uint32_t type = menu->cluster->type[s->kind->first];
    double seconds = 0;
    for (uint32_t i = model->steps->first[at]; i < model->steps->first[at + 1]; i++) {
        const AmpStep *step = &g_array_index(model->steps->step, AmpStep, i);
        if (!step->is_message && (again ? again->when[i] != AMP_NEVER : step->waits))
            seconds += amp_step_s(model, amp_degree(model, s->tp), s->samples, type, i);
    }
    return seconds;
}

/* --- modes of recomputation --- */

void joint_find_worth(const double *again_s, const double *less, bool *is_worth)
{
    static const double least = 1.0 / 16;
    const double most = most_over(double, m, JOINT_MODES, 0, less[m]);
    for (uint32_t m = 0; m < JOINT_MODES; m++) {
        is_worth[m] = m == 0 || less[m] > least * most;
        for (uint32_t a = 0; a < JOINT_MODES; a++)
            for (uint32_t b = 0; b < JOINT_MODES; b++) {
                const double part = (less[m] - less[a]) / (less[b] - less[a]);
                if (a != m && b != m && less[a] <= less[m] && less[m] < less[b] &&
                    again_s[a] + (again_s[b] - again_s[a]) * part < again_s[m])
                    is_worth[m] = false;
            }
    }
}

/* Of a mode on the first kind of devices, for one sample: the seconds that it takes again, and
 * the bytes that it saves. */
static void mode_costs(const JointMenu *menu, Recompute mode, double *again_s,
                       double *less)
{
    const Sharing s = {&g_array_index(menu->kind, JointKind, 0), 1, 1};
    const AmpAgain *again = mode ? amp_again(menu->model, mode) : NULL;
    *again_s = *less = 0;
    for (uint32_t l = 0; again && l < menu->model->n_layers; l++) {
        *again_s += part_s(menu, &s, l, again);
        *less += again->less[l];
    }
}

/* Norms and other ops whose outputs are cheap to make again, attention that is not fused, every
 * second product, and all. */
static void find_modes(JointMenu *menu)
{
    static const Recompute all[JOINT_MODES] = {
        RECOMPUTE_NONE, RECOMPUTE_LAYERNORM | RECOMPUTE_MOE_ACT | RECOMPUTE_MLA_UP_PROJ,
        RECOMPUTE_SELECTIVE, RECOMPUTE_ALTERNATE, RECOMPUTE_FULL};
    double again_s[JOINT_MODES], less[JOINT_MODES], of;
    for (uint32_t m = 0; m < JOINT_MODES; m++) {
        menu->mode[m] = all[m];
        for (uint32_t bit = 1; bit < RECOMPUTE_UNKNOWN && all[m] & (all[m] - 1);
             bit *= 2) {
            mode_costs(menu, (Recompute)(all[m] & bit), &of, &less[m]);
            if (less[m] <= 0)
                menu->mode[m] = (Recompute)(menu->mode[m] & ~bit);
        }
        mode_costs(menu, menu->mode[m], &again_s[m], &less[m]);
        menu->again[m] = synth_again(menu->graph, menu->mode[m]);
    }
    joint_find_worth(again_s, less, menu->is_worth);
}

/* Adds the seconds of the n-th layer's step to a row of prefix sums. */
static void add_to(double *row, uint32_t l, double seconds)
{
    row[l + 1] = row[l] + seconds;
}

/* Adds the rows of what modes run again. */
static void add_modes(const JointMenu *menu, const Sharing *s, const double *slower,
                      double *sum)
{
    const uint32_t n = menu->model->n_layers;
    for (uint32_t m = 1; m < JOINT_MODES; m++) {
        double *row = &sum[(JOINT_AGAIN + m) * (n + 1)];
        const AmpAgain *again = menu->mode[m] == RECOMPUTE_FULL
                                    ? NULL
                                    : amp_again(menu->model, menu->mode[m]);
        for (uint32_t l = 0; l < n; l++)
            add_to(row, l,
                   !again               ? sum[l + 1] - sum[l]
                   : again->like[l] < l ? row[again->like[l] + 1] - row[again->like[l]]
                                        : slower[l] * part_s(menu, s, l, again));
    }
}

/* Seconds of `samples` on tp GPUs of a kind, as prefix sums over the layers: [row * (n_layers +
 * 1) + layer]. */
static const double *passes_of(JointMenu *menu, uint32_t kind, uint32_t tp,
                               uint32_t samples)
{
    const uint32_t n = menu->model->n_layers, *like = menu->model->steps->like;
    g_autofree char *key = g_strdup_printf("%u %u %u", kind, tp, samples);
    double *sum = g_hash_table_lookup(menu->passes, key);
    if (sum)
        return sum;
    const Sharing s = {&g_array_index(menu->kind, JointKind, kind), tp, samples};
    g_autofree double *one = g_new(double, (size_t)AMP_PASSES *n),
                      *slower = g_new(double, (size_t)AMP_PASSES *n),
                      *late = g_new(double, (size_t)AMP_PASSES *n);
    sum = g_new0(double, (size_t)JOINT_ROWS *(n + 1));
    for (uint32_t at = 0; at < AMP_PASSES * n; at++) {
        const uint32_t pass = at / n, l = at % n, as = like[at];
        one[at] = as < at ? one[as] : menu_pass_s(menu, &s, at, &slower[at]);
        slower[at] = slower[as];
        add_to(&sum[pass * (n + 1)], l, one[at]);
        if (pass != AMP_BACKWARD)
            continue;
        late[at] = as < at ? late[as] : slower[at] * part_s(menu, &s, at, NULL);
        add_to(&sum[JOINT_WEIGHTS * (n + 1)], l, late[at]);
    }
    add_modes(menu, &s, slower, sum);
    g_hash_table_insert(menu->passes, g_steal_pointer(&key), sum);
    return sum;
}

static double whole_s(JointMenu *menu, uint32_t kind, uint32_t tp, uint32_t samples)
{
    const uint32_t n = menu->model->n_layers;
    const double *sum = passes_of(menu, kind, tp, samples);
    return sum[n] + sum[AMP_BACKWARD * (n + 1) + n];
}

/* --- entries --- */

/* The kind of each replica. The caller frees it. */
static uint32_t *replica_kinds(const JointMenu *menu, const JointGroup *group,
                               uint32_t tp, uint32_t *dp)
{
    uint32_t *kind = g_new(uint32_t, group->n_devices / tp);
    *dp = 0;
    for (uint32_t k = 0; k < menu->kind->len; k++) {
        const uint32_t gpus =
            group->use[k] * g_array_index(menu->kind, JointKind, k).unit;
        for (uint32_t i = 0; i < gpus / tp; i++)
            kind[(*dp)++] = k;
    }
    return kind;
}

/* Replicas of one kind, which stand side by side. */
typedef struct {
    uint32_t first, end, next; /* the next one to get a sample */
    double rate;               /* seconds per sample */
} Alike;

/* The replicas of each kind, with one sample each; where all of them get some more than that, with
 * one less than a part of the batch by speed is, which each of them gets. *left: the other samples.
 * Free with g_array_unref. */
static GArray *share_first(JointMenu *menu, const uint32_t *kind, uint32_t dp,
                           uint32_t tp, uint32_t batch, uint32_t *samples, uint32_t *left)
{
    GArray *alike = g_array_new(FALSE, FALSE, sizeof(Alike));
    const uint32_t mean = (batch + dp - 1) / dp;
    double speed = 0, slowest = 0;
    for (uint32_t r = 0, end; r < dp; r = end) {
        for (end = r + 1; end < dp && kind[end] == kind[r];)
            end++;
        const Alike of = {r, end, r, whole_s(menu, kind[r], tp, mean) / mean};
        g_array_append_val(alike, of);
        speed += (end - r) / of.rate;
        slowest = fmax(slowest, of.rate);
    }
    *left = batch;
    array_each (const Alike, of, alike)
        for (uint32_t r = of->first; r < of->end; *left -= samples[r++])
            samples[r] = slowest * speed < batch
                             ? MAX((uint32_t)(batch / speed / of->rate), 2) - 1
                             : 1;
    return alike;
}

/* Shares the samples out to the replicas, one by one to the replica that would finish first. */
static void share_out(JointMenu *menu, const uint32_t *kind, uint32_t dp, uint32_t tp,
                      uint32_t batch, uint32_t *samples)
{
    uint32_t left;
    g_autoptr(GArray) alike = share_first(menu, kind, dp, tp, batch, samples, &left);
    for (; left > 0; left--) {
        Alike *next = &g_array_index(alike, Alike, 0);
        array_each (Alike, of, alike)
            if ((samples[of->next] + 1) * of->rate <
                (samples[next->next] + 1) * next->rate)
                next = of;
        samples[next->next++]++;
        if (next->next == next->end)
            next->next = next->first;
    }
}

/* Gradients that share an all-reduce pay its latency together, once per bucket between machines;
 * inside a machine, where it is microseconds, once. Where replicas divide the states, a gradient
 * is scattered before its update and the parameter is gathered after it: as many bytes together. */
static void fill_sync(JointMenu *menu, const JointGroup *group, JointEntry *e,
                      const double *update)
{
    const AmpSteps *steps = menu->model->steps;
    const uint32_t n = menu->model->n_layers;
    g_autofree double *layer = g_new0(double, n);
    g_autofree LinkCost *priced = g_new0(LinkCost, steps->gradient_kind->len);
    for (uint32_t i = 0; e->dp > 1 && i < steps->gradient->len; i++) {
        const AmpGradient *g = &g_array_index(steps->gradient, AmpGradient, i);
        const AmpGradientKind *bytes =
            &g_array_index(steps->gradient_kind, AmpGradientKind, g->kind);
        const double all = bytes->whole + bytes->cut / e->tp;
        if (priced[g->kind].bandwidth == 0)
            priced[g->kind] = synth_joint_line(menu, group, e->dp, e->tp, all);
        const LinkCost line = priced[g->kind];
        const double pieces = group->n_machines > 1 ? fmin(1, all / RUNTIME_BUCKET) : 0;
        layer[g_array_index(steps->step, AmpStep, g->step).layer] +=
            2.0 * (e->dp - 1) / e->dp * all / line.bandwidth +
            (e->divides ? 2 * line.latency_s : pieces * line.latency_s);
        e->start_s = e->divides ? 0 : fmax(e->start_s, line.latency_s);
    }
    const double part = e->divides ? 1.0 / e->dp : 1;
    for (uint32_t l = 0; l < n; l++)
        e->sync_s[l + 1] = e->sync_s[l] + layer[l] + part * (update[l + 1] - update[l]);
}

/* Seconds, as prefix sums over the layers, in which hosts update a device's states: gradients go
 * there, parameters come back, and the host's memory passes gradients once and states twice, as in
 * sim/tasks/offload.c. Caller frees. */
static double *host_updates(const JointMenu *menu, uint32_t tp, const uint32_t *kind,
                            uint32_t dp)
{
    const AmpModel *model = menu->model;
    const size_t row = (size_t)amp_degree(model, tp) * model->n_layers;
    double *sum = g_new0(double, model->n_layers + 1), link = INFINITY, memory = INFINITY;
    for (uint32_t r = 0; r < dp; r++) {
        const uint32_t device = g_array_index(menu->kind, JointKind, kind[r]).first;
        memory = fmin(memory, menu->cluster->host_memory[device]);
        link = fmin(link, fmin(memory, menu->cluster->host_link[device]));
    }
    for (uint32_t l = 0; l < model->n_layers; l++) {
        const double states = model->states[row + l], gradient = model->gradient[row + l];
        add_to(sum, l,
               (model->held[row + l] - states) / link + (gradient + 2 * states) / memory);
    }
    return sum;
}

/* The largest part of a microbatch on one machine. */
static double largest_share(const JointMenu *menu, const JointEntry *e,
                            const uint32_t *kind)
{
    uint32_t most = 0, all = 0, here = 0, n = 0;
    for (uint32_t r = 0; r < e->dp; r++) {
        const bool other = r > 0 && kind[r] != kind[r - 1];
        const uint32_t per =
            MAX(g_array_index(menu->kind, JointKind, kind[r]).gpus / e->tp, 1);
        here = other || n == per ? e->samples[r] : here + e->samples[r];
        n = other || n == per ? 1 : n + 1;
        most = MAX(most, here);
        all += e->samples[r];
    }
    return (double)most / all;
}

static void fill_memory(const JointMenu *menu, JointEntry *e, uint32_t samples)
{
    const AmpModel *model = menu->model;
    const uint32_t n = model->n_layers;
    const size_t row = (size_t)amp_degree(model, e->tp) * n;
    const AmpAgain *again = e->recompute ? amp_again(model, e->recompute) : NULL;
    for (uint32_t l = 0; l < n; l++) {
        const double all = model->activation[row + l] * samples;
        const double border = l > 0 ? model->steps->sent[l - 1] * samples : 0;
        const double states = model->states[row + l];
        const double left = menu->hosts ? 0 : e->divides ? ceil(states / e->dp) : states;
        e->held[l + 1] = e->held[l] + model->held[row + l] - states + left;
        const double less = again ? again->less[row + l] * samples : 0;
        e->kept[l + 1] = e->kept[l] + all - less;
        e->late[l + 1] = e->late[l] + model->late[row + l] * samples;
        e->work = fmax(e->work, less > 0 ? MIN(less + border, all) : 0);
    }
}

/* The ways of a stage to need less memory: recompute, or divide the optimizer's states, or both. */
typedef struct {
    uint32_t mode; /* of the menu */
    bool divides;
} Way;

enum { MOST_WAYS = 2 * JOINT_MODES };

/* The times are those of the slowest replica, the memory that of the replica with the least for its
 * samples. */
static JointEntry fill_entry(JointMenu *menu, const JointProblem *p,
                             const JointGroup *group, uint32_t tp, const uint32_t *kind,
                             const uint32_t *samples, uint32_t dp, const Way *way,
                             double headroom)
{
    const uint32_t n = p->n_layers;
    JointEntry e = joint_entry_new(n, dp, tp);
    e.recompute = menu->mode[way->mode];
    e.divides = way->divides;
    uint32_t slowest = 0, most = 0;
    memcpy(e.samples, samples, dp * sizeof *samples);
    e.capacity = INFINITY;
    for (uint32_t r = 0; r < dp; r++) {
        const JointKind *at = &g_array_index(menu->kind, JointKind, kind[r]);
        const uint32_t last = r > 0 ? r - 1 : 0;
        most = MAX(most, samples[r]);
        e.capacity = fmin(e.capacity,
                          headroom * (double)menu->view->device[at->first].memory_bytes);
        if ((kind[r] != kind[last] || samples[r] != samples[last]) &&
            whole_s(menu, kind[r], tp, samples[r]) >
                whole_s(menu, kind[slowest], tp, samples[slowest]))
            slowest = r;
    }
    const double *sum = passes_of(menu, kind[slowest], tp, samples[slowest]);
    for (uint32_t l = 0; l <= n; l++) {
        e.forward_s[l] = sum[l];
        e.backward_s[l] = sum[AMP_BACKWARD * (n + 1) + l] +
                          sum[(JOINT_AGAIN + way->mode) * (n + 1) + l];
        e.weights_s[l] = sum[JOINT_WEIGHTS * (n + 1) + l];
    }
    e.share = largest_share(menu, &e, kind);
    g_autofree double *there = menu->hosts ? host_updates(menu, tp, kind, dp) : NULL;
    fill_sync(menu, group, &e, there ? there : &sum[AMP_UPDATE * (n + 1)]);
    fill_memory(menu, &e, most);
    return e;
}

/* Lowers the least unit-seconds that a kind takes for a microbatch. */
static void note_least(JointMenu *menu, JointProblem *p, uint32_t kind, uint32_t tp,
                       uint32_t samples, uint32_t batch)
{
    const uint32_t n = p->n_layers;
    const double *sum = passes_of(menu, kind, tp, samples);
    const double part =
        (double)batch / samples * tp / g_array_index(menu->kind, JointKind, kind).unit;
    for (uint32_t l = 0; l < n; l++) {
        const double *b = &sum[AMP_BACKWARD * (n + 1)];
        double *least = &p->least_s[kind * n + l];
        *least = fmin(*least, (sum[l + 1] - sum[l] + b[l + 1] - b[l]) * part);
    }
}

bool joint_may_recompute(const JointMenu *menu, uint32_t mode, bool recompute)
{
    return mode == 0 || (recompute && menu->is_worth[mode]);
}

bool joint_is_ample(const JointProblem *p, const JointEntry *e)
{
    const uint32_t n = p->n_layers;
    return e->held[n] + e->work + p->n_microbatches * (e->kept[n] + e->late[n]) <=
           e->capacity;
}

static void add_entries(JointMenu *menu, JointProblem *p, JointGroup *group,
                        double headroom, bool recompute)
{
    const uint32_t batch = menu->model->global_batch / p->n_microbatches;
    group->entry = g_new0(JointEntry, MOST_ENTRIES + JOINT_MOST_INSIDE);
    values_at (const uint32_t, tp, d, menu->model->degree, menu->model->n_degrees) {
        bool possible = group->n_entries + MOST_WAYS <= MOST_ENTRIES;
        array_at (const JointKind, kind, k, menu->kind) {
            possible &= group->use[k] == 0 ||
                        MIN(group->use[k] * kind->unit, kind->gpus) % tp == 0;
        }
        uint32_t dp = group->n_devices / tp;
        const JointKeep *keep = p->keep;
        if (!possible || dp > batch ||
            (keep &&
             (tp != keep->tp || dp != keep->dp || (keep->even && batch % dp != 0))))
            continue;
        g_autofree uint32_t *kind = replica_kinds(menu, group, tp, &dp);
        g_autofree uint32_t *samples = g_new(uint32_t, dp);
        share_out(menu, kind, dp, tp, batch, samples);
        for (uint32_t r = 0; keep && keep->even && r < dp; r++)
            samples[r] = batch / dp;
        for (uint32_t r = 0; r < dp; r++)
            if (r == 0 || kind[r] != kind[r - 1] || samples[r] != samples[r - 1])
                note_least(menu, p, kind[r], tp, samples[r], batch);
        bool ample = false; /* so that no mode is of use */
        for (uint32_t w = 0; w < MOST_WAYS && !(ample && w > 1); w++) {
            const Way way = {w / 2, w % 2 == 1};
            const Recompute mode = menu->mode[way.mode];
            if (joint_may_recompute(menu, way.mode, recompute) &&
                (dp > 1 || !way.divides) &&
                (!keep || (way.divides == keep->divides && mode == keep->recompute)))
                group->entry[group->n_entries++] =
                    fill_entry(menu, p, group, tp, kind, samples, dp, &way, headroom);
            ample |=
                w == 0 && !keep && joint_is_ample(p, &group->entry[group->n_entries - 1]);
        }
    }
}

/* --- menus --- */

JointMenu *synth_joint_menu_new(const Graph *graph, const ClusterView *view, bool coarse,
                                GError **error)
{
    g_autoptr(AmpCluster) cluster = synth_amp_cluster(view, error);
    g_autoptr(AmpModel) model =
        cluster ? synth_amp_model(graph, view, NULL, error) : NULL;
    if (!model)
        return NULL;
    JointMenu *menu = g_new0(JointMenu, 1);
    menu->graph = graph;
    menu->view = view;
    menu->cluster = g_steal_pointer(&cluster);
    menu->model = g_steal_pointer(&model);
    menu->place = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    menu->kind = array_owning(JointKind, clear_kind);
    menu->passes = text_table(g_free);
    menu->inside = g_ptr_array_new_with_free_func((GDestroyNotify)free_inside);
    joint_find_kinds(menu, coarse);
    find_modes(menu);
    return menu;
}

/* --- problems --- */

/* The network between machines of two kinds of a wired cluster; NULL: all have the same. Caller
 * frees. */
static LinkCost *border_lines(const JointMenu *menu, JointProblem *p)
{
    const uint32_t n = menu->kind->len;
    const ClusterView *view = menu->view;
    bool alike = true;
    if (!view->cluster->wired || n > 32)
        return NULL;
    LinkCost *border = g_new(LinkCost, (size_t)n * n);
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n; b++) {
            const JointKind *x = &g_array_index(menu->kind, JointKind, a),
                            *y = &g_array_index(menu->kind, JointKind, b);
            const uint32_t last = a == b ? y->machine[y->n_machines - 1] : y->machine[0];
            const Device *from = &view->device[x->first],
                         *to = &view->device[g_array_index(menu->place, uint32_t, last)];
            border[a * n + b] = from->machine == to->machine
                                    ? from->inner
                                    : price_between(view, from->machine, to->machine);
            alike = alike && border[a * n + b].bandwidth == border[0].bandwidth &&
                    border[a * n + b].latency_s == border[0].latency_s;
        }
    if (alike) { /* a cable may be narrower than ports */
        p->bandwidth = fmin(p->bandwidth, border[0].bandwidth);
        g_clear_pointer(&border, g_free);
    }
    return border;
}

static void fill_network(const JointMenu *menu, JointProblem *p)
{
    const Cluster *cluster = menu->view->cluster;
    const LinkCost *line = cluster->n_machines == 1
                               ? &cluster->machine[0].inner
                               : &cluster->collective[COLLECTIVE_GROUPED_ALL_GATHER];
    const uint32_t batch = menu->model->global_batch / p->n_microbatches;
    p->latency_s = line->latency_s;
    p->bandwidth = line->bandwidth;
    p->border = border_lines(menu, p);
    for (uint32_t l = 1; l < p->n_layers; l++) {
        p->sent[l] = menu->model->steps->sent[l - 1] * batch;
        p->returned[l] = menu->model->steps->returned[l - 1] * batch;
    }
}

JointProblem *synth_joint_problem(JointMenu *menu, uint32_t n_microbatches,
                                  double headroom, bool recompute)
{
    g_assert(n_microbatches > 0 && menu->model->global_batch % n_microbatches == 0);
    const uint32_t n = menu->model->n_layers, n_kinds = menu->kind->len;
    g_autoptr(GArray) groups = g_array_new(FALSE, FALSE, sizeof(JointGroup));
    JointProblem *p = g_new0(JointProblem, 1);
    p->keep = menu->keep;
    p->n_layers = n;
    p->n_microbatches = n_microbatches;
    p->samples = menu->model->global_batch / n_microbatches;
    p->n_kinds = n_kinds;
    p->headroom = headroom;
    p->recompute = recompute;
    p->units = g_new0(uint32_t, n_kinds);
    p->sent = g_new0(double, n + 1);
    p->returned = g_new0(double, n + 1);
    p->least_s = g_new(double, (size_t)n_kinds *n);
    for (uint32_t k = 0; k < n_kinds; k++)
        p->units[k] = g_array_index(menu->kind, JointKind, k).n_units;
    for (uint32_t i = 0; i < n_kinds * n; i++)
        p->least_s[i] = INFINITY;
    fill_network(menu, p);
    joint_add_groups(menu, groups);
    for (guint g = groups->len; menu->keep && g-- > 0;)
        if (g_array_index(groups, JointGroup, g).n_devices !=
            menu->keep->dp * menu->keep->tp) {
            g_free(g_array_index(groups, JointGroup, g).use);
            g_array_remove_index(groups, g);
        }
    p->n_groups = groups->len;
    p->group = (JointGroup *)(void *)g_array_free(g_steal_pointer(&groups), FALSE);
    uint32_t n_entries = 0;
    for (uint32_t g = 0; g < p->n_groups; g++) {
        add_entries(menu, p, &p->group[g], headroom, recompute);
        n_entries += p->group[g].n_entries;
    }
    synth_joint_rank(p);
    if (menu->promises)
        joint_promise(menu, p);
    if (n_entries > 0)
        return p;
    synth_joint_problem_free(p);
    return NULL;
}

static CLEAR_DEFINE(entry_clear, JointEntry, e,
                    free_each(e->forward_s, e->backward_s, e->weights_s, e->sync_s,
                              e->held, e->kept, e->late, e->copies, e->samples));

static CLEAR_DEFINE(group_clear, JointGroup, group,
                    clear_items(group->entry, group->n_entries, entry_clear),
                    free_each(group->entry, group->use));

FREE_DEFINE(synth_joint_problem_free, JointProblem, p,
            clear_items(p->group, p->n_groups, group_clear),
            free_each(p->group, p->units, p->sent, p->border, p->returned, p->least_s));
