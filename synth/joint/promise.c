/* The least that any SPMD program of a group needs (synth/joint/menu.h).
 *
 * A device of kind k takes t_k(op) seconds for an op on a whole microbatch, and at least a part x
 * of that for a part x of the op. With T_k the sum of t_k over all ops, and s(op) = min over k of
 * t_k(op) / T_k, a device takes at least x T_k s(op), so a group of n_k devices of each kind takes
 * at least
 *
 *     sum of s(op) / sum over k of n_k / T_k
 *
 * for some ops, whichever devices do more of which op. Where kinds differ by a factor that is the
 * same for all ops, that is the time of perfectly balanced devices that do not communicate. */
#include <math.h>

#include "synth/joint/menu.h"

typedef struct {
    const JointMenu *menu;
    const JointProblem *problem;
    double *whole_s; /* [kind]: T */
    double *part;    /* [row * (n_layers + 1) + layer]: sums of s */
} Parts;

/* Seconds of a step on a whole microbatch of `batch` samples. Measured times may be less per sample
 * where there are fewer. */
static double step_s(const JointMenu *menu, uint32_t kind, uint32_t batch, uint32_t step)
{
    const AmpModel *model = menu->model;
    const uint32_t first = g_array_index(menu->kind, JointKind, kind).first;
    const uint32_t type = menu->cluster->type[first], one = amp_degree(model, 1);
    double least = amp_step_s(model, one, batch, type, step);
    for (uint32_t i = 0; graph_has_times(menu->graph) && i < model->n_sizes; i++)
        if (model->size[i] < batch)
            least = fmin(
                least, batch / model->size[i] *
                           amp_step_s(model, one, (uint32_t)model->size[i], type, step));
    return least;
}

/* Adds the steps of a layer in a pass. */
static void add_layer(Parts *t, uint32_t pass, uint32_t l)
{
    const AmpModel *model = t->menu->model;
    const AmpSteps *steps = model->steps;
    const uint32_t n = t->problem->n_layers, at = pass * n + l;
    const uint32_t batch = model->global_batch / t->problem->n_microbatches;
    double *all = &t->part[pass * (n + 1) + l],
           *late = &t->part[JOINT_WEIGHTS * (n + 1) + l];
    all[1] = all[0];
    if (pass == AMP_BACKWARD)
        late[1] = late[0];
    for (uint32_t i = steps->first[at]; i < steps->first[at + 1]; i++) {
        const AmpStep *step = &g_array_index(steps->step, AmpStep, i);
        double least = INFINITY;
        for (uint32_t k = 0; !step->is_message && k < t->problem->n_kinds; k++)
            least = fmin(least, step_s(t->menu, k, batch, i) / t->whole_s[k]);
        if (!isfinite(least))
            continue;
        all[1] += least;
        if (pass == AMP_BACKWARD && step->waits)
            late[1] += least;
    }
}

static void sum_up(Parts *t)
{
    const AmpModel *model = t->menu->model;
    const AmpSteps *steps = model->steps;
    const uint32_t n = t->problem->n_layers;
    const uint32_t batch = model->global_batch / t->problem->n_microbatches;
    for (uint32_t k = 0; k < t->problem->n_kinds; k++)
        for (uint32_t i = 0; i < steps->first[AMP_UPDATE * n]; i++)
            if (!g_array_index(steps->step, AmpStep, i).is_message)
                t->whole_s[k] += step_s(t->menu, k, batch, i);
    for (uint32_t pass = AMP_FORWARD; pass < AMP_UPDATE; pass++)
        for (uint32_t l = 0; l < n; l++)
            add_layer(t, pass, l);
}

/* The memory of all devices holds the parameters, gradients and states once, and of each microbatch
 * in flight what comes over the border. */
static void promise_memory(const Parts *t, const JointGroup *group, JointEntry *e)
{
    const AmpModel *model = t->menu->model;
    const uint32_t n = t->problem->n_layers;
    const size_t row = (size_t)amp_degree(model, 1) * n;
    for (uint32_t l = 0; l < n; l++)
        e->held[l + 1] = e->held[l] + model->held[row + l];
    e->capacity = 0;
    array_at (const JointKind, kind, k, t->menu->kind) {
        e->capacity += t->problem->headroom * group->use[k] * kind->unit *
                       (double)t->menu->view->device[kind->first].memory_bytes;
    }
}

static void promise_group(const Parts *t, JointGroup *group)
{
    const JointProblem *p = t->problem;
    const uint32_t n = p->n_layers;
    JointEntry e = joint_entry_new(n, 1, 1);
    const double rate = sum_over(
        double, k, p->n_kinds,
        group->use[k] * g_array_index(t->menu->kind, JointKind, k).unit / t->whole_s[k]);
    e.promised = true;
    e.faster = UINT32_MAX;
    e.share = 1.0 / group->n_machines;
    e.samples[0] = t->menu->model->global_batch / p->n_microbatches;
    for (uint32_t l = 0; l <= n; l++) {
        e.forward_s[l] = t->part[AMP_FORWARD * (n + 1) + l] / rate;
        e.backward_s[l] = t->part[AMP_BACKWARD * (n + 1) + l] / rate;
        e.weights_s[l] = t->part[JOINT_WEIGHTS * (n + 1) + l] / rate;
    }
    promise_memory(t, group, &e);
    group->entry[group->n_entries++] = e;
}

static void lower_least(const Parts *t, JointProblem *p)
{
    const uint32_t n = p->n_layers;
    for (uint32_t k = 0; k < p->n_kinds; k++)
        for (uint32_t l = 0; l < n; l++) {
            const double *f = &t->part[AMP_FORWARD * (n + 1) + l],
                         *b = &t->part[AMP_BACKWARD * (n + 1) + l];
            double *least = &p->least_s[k * n + l];
            *least = fmin(*least, t->whole_s[k] * (f[1] - f[0] + b[1] - b[0]) /
                                      g_array_index(t->menu->kind, JointKind, k).unit);
        }
}

static bool has_experts(const Graph *graph)
{
    const bool any =
        any_in(ops_each (op, id, graph), op_experts_of_token(op->kind, &op->attr) > 0);
    return any;
}

/* Whether a group is promised programs: one of unlike devices; whole machines that may divide
 * experts. */
static bool is_promising(const Parts *t, const JointGroup *group, bool experts)
{
    uint32_t kinds = 0;
    bool whole = true;
    array_at (const JointKind, kind, k, t->menu->kind) {
        kinds += group->use[k] > 0;
        whole &= group->use[k] * kind->unit % kind->gpus == 0;
    }
    return group->n_devices > 1 && (kinds > 1 || (experts && whole));
}

void joint_promise(const JointMenu *menu, JointProblem *p)
{
    g_autofree double *whole_s = g_new0(double, p->n_kinds),
                      *part = g_new0(double, (size_t)JOINT_ROWS *(p->n_layers + 1));
    Parts t = {menu, p, whole_s, part};
    const bool experts = has_experts(menu->graph);
    sum_up(&t);
    const bool possible = all_of(k, p->n_kinds, whole_s[k] > 0 && isfinite(whole_s[k]));
    if (!possible)
        return;
    for (uint32_t g = 0; g < p->n_groups; g++)
        if (is_promising(&t, &p->group[g], experts))
            promise_group(&t, &p->group[g]);
    lower_least(&t, p);
}
