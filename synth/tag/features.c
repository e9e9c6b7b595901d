/* Features of op groups, device sets, actions, and the edges between them. */
#include "synth/tag/features.h"

#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "synth/tag/feedback.h"
#include "synth/tag/rows.h"

struct NetCase {
    const TagSpace *space;
    const TagWork *work;
    SimQuick *quick;
    TagBound *rows; /* for the times of actions */
    double dp_s;
    double *time_s;             /* [group] */
    double *parameters, *bytes; /* [group]: parts of the totals */
    GArray *from, *to, *flow;   /* uint32_t, uint32_t, double */
    double *set;                /* as in NetView, but without the feedback */
    double *link;               /* [from * sets + to]: bandwidth as in NetView */
};

static void add_flow(NetCase *c, uint32_t from, uint32_t to, double bytes)
{
    for (uint32_t e = 0; e < c->from->len; e++)
        if (g_array_index(c->from, uint32_t, e) == from &&
            g_array_index(c->to, uint32_t, e) == to) {
            g_array_index(c->flow, double, e) += bytes;
            return;
        }
    g_array_append_val(c->from, from);
    g_array_append_val(c->to, to);
    g_array_append_val(c->flow, bytes);
}

static void divide_by_sum(double *value, uint32_t n)
{
    const double sum = sum_over(double, i, n, value[i]);
    for (uint32_t i = 0; i < n && sum > 0; i++)
        value[i] /= sum;
}

static void features_find_groups(NetCase *c)
{
    const Graph *graph = c->work->graph;
    ops_each (op, id, graph) {
        const uint32_t to = c->work->group[id];
        c->time_s[to] += c->work->time_s[id];
        for (uint32_t i = 0; i < op->n_in; i++) {
            const Tensor *tensor = graph_tensor(graph, op->in[i]);
            const double bytes = (double)tensor_bytes(tensor);
            if (op->pass == PASS_UPDATE && tensor->role == ROLE_PARAMETER)
                c->parameters[to] += bytes;
            if (op->pass != PASS_FORWARD || tensor->producer == GRAPH_NONE)
                continue;
            const uint32_t from = c->work->group[tensor->producer];
            if (from == to)
                continue;
            c->bytes[from] += bytes;
            add_flow(c, from, to, bytes);
        }
    }
    if (c->from->len == 0)
        add_flow(c, 0, 0, 1);
    divide_by_sum(c->parameters, c->work->n_groups);
    divide_by_sum(c->bytes, c->work->n_groups);
    divide_by_sum((double *)c->flow->data, c->flow->len);
}

/* The largest tensor that data parallelism cuts. */
static TensorId largest_tensor(const NetCase *c)
{
    const Graph *graph = c->work->graph;
    TensorId most = 0;
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        if (graph_tensor(graph, t)->role == ROLE_ACTIVATION &&
            tensor_bytes(graph_tensor(graph, t)) >
                tensor_bytes(graph_tensor(graph, most)))
            most = t;
    return most;
}

/* Finds a device in each of two sets, or two devices of one set; GRAPH_NONE if it has only one. */
static void find_ends(const NetCase *c, uint32_t a, uint32_t b, uint32_t *from,
                      uint32_t *to)
{
    *from = *to = GRAPH_NONE;
    for (uint32_t j = 0; j < c->space->view->n_devices; j++) {
        if (c->space->set[j] == a && *from == GRAPH_NONE)
            *from = j;
        else if (c->space->set[j] == b)
            *to = j;
    }
}

static void find_links(NetCase *c)
{
    const uint32_t n = c->space->n_sets;
    const TensorId tensor = largest_tensor(c);
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n; b++) {
            uint32_t from, to;
            find_ends(c, a, b, &from, &to);
            c->link[a * n + b] =
                to == GRAPH_NONE
                    ? 0
                    : fmin(1, sim_quick_transfer_s(c->quick, c->space->single[from],
                                                   c->space->single[to], tensor) /
                                  c->dp_s);
        }
}

static void features_find_sets(NetCase *c)
{
    enum { MANY = 8 }; /* devices, as a unit: features are near one */
    const ClusterView *view = c->space->view;
    double speed = 0, memory = 0;
    for (uint32_t j = 0; j < view->n_devices; j++) {
        speed = fmax(speed, view->device[j].rate);
        memory = fmax(memory, (double)view->device[j].memory_bytes);
    }
    for (uint32_t j = 0; j < view->n_devices; j++) {
        double *set = &c->set[c->space->set[j] * NET_SET];
        const uint32_t s = c->space->set[j];
        set[0] += 1.0 / MANY;
        set[1] = view->device[j].rate / speed;
        set[2] = (double)view->device[j].memory_bytes / memory;
        set[3] = c->link[s * c->space->n_sets + s];
        set[5] = 1;
    }
    for (uint32_t a = 0; a < c->space->n_sets; a++)
        for (uint32_t b = 0; b < c->space->n_sets; b++)
            c->set[a * NET_SET + 4] =
                fmax(c->set[a * NET_SET + 4], c->link[a * c->space->n_sets + b]);
}

NetCase *net_case_new(const TagSpace *space, const TagWork *work, SimQuick *quick,
                      TagObjective objective, double dp_s)
{
    NetCase *c = g_new0(NetCase, 1);
    c->space = space;
    c->work = work;
    c->quick = quick;
    c->rows = tag_rows_new(space, work, quick, objective, false);
    c->dp_s = dp_s;
    c->time_s = g_new0(double, work->n_groups);
    c->parameters = g_new0(double, work->n_groups);
    c->bytes = g_new0(double, work->n_groups);
    c->from = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    c->to = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    c->flow = g_array_new(FALSE, FALSE, sizeof(double));
    c->set = g_new0(double, space->n_sets *NET_SET);
    c->link = g_new0(double, (gsize)space->n_sets * space->n_sets);
    features_find_groups(c);
    find_links(c);
    features_find_sets(c);
    return c;
}

FREE_DEFINE(net_case_free, NetCase, c, tag_bound_free(c->rows),
            free_each(c->time_s, c->parameters, c->bytes),
            unref_arrays(c->from, c->to, c->flow), free_each(c->set, c->link));

/* --- a vertex --- */

/* A logarithmic scale for parts of a whole, so that small parts differ, too: 0 for e^-8 and below,
 * 1 for the whole. */
static double log_part(double part)
{
    return part > 0 ? fmax(0, 1 + log(part) / 8) : 0;
}

static void view_groups(const NetCase *c, NetView *v, const uint16_t *action,
                        const bool *decided)
{
    const double all_s = sum_over(double, i, v->n_groups, c->time_s[i]);
    for (uint32_t i = 0; i < v->n_groups; i++) {
        double *x = &v->group[i * NET_GROUP];
        const TagAction *a = &c->space->action[action[i]];
        x[0] = log_part(c->time_s[i] / all_s);
        x[1] = log_part(c->parameters[i]);
        x[2] = log_part(c->bytes[i]);
        x[3] = decided[i];
        x[4] = i == v->next;
        x[5] = a->option == TAG_AR;
        x[6] = a->option == TAG_PS;
        x[7] = a->option > TAG_PS;
        for (uint32_t s = 0; s < v->n_sets; s++) {
            const uint32_t e = i * v->n_sets + s;
            v->of_group[e] = i;
            v->of_set[e] = s;
            v->placed[e * NET_PLACED] = a->subset >> s & 1u;
            v->placed[e * NET_PLACED + 1] =
                c->time_s[i] / all_s / (c->set[s * NET_SET] * c->set[s * NET_SET + 1]);
        }
    }
}

static void view_sets(const NetCase *c, NetView *v)
{
    memcpy(v->set, c->set, v->n_sets * NET_SET * sizeof *v->set);
    for (uint32_t a = 0; a < v->n_sets; a++)
        for (uint32_t b = 0; b < v->n_sets; b++) {
            const uint32_t e = a * v->n_sets + b;
            v->link[e * NET_LINK] = c->link[e];
            v->link_from[e] = a;
            v->link_to[e] = b;
        }
}

static void view_feedback(const NetCase *c, NetView *v, TagEvaluator *evaluator,
                          const uint16_t *action)
{
    g_autoptr(Program) program = tag_program(evaluator, action);
    g_autoptr(TagFeedback) feedback =
        tag_feedback_new(c->space, c->work, c->quick, program);
    for (uint32_t i = 0; i < v->n_groups; i++) {
        v->group[i * NET_GROUP + NET_GROUP_MAKESPAN] = feedback->makespan[i];
        v->group[i * NET_GROUP + NET_GROUP_WAIT] = feedback->wait[i];
    }
    for (uint32_t s = 0; s < v->n_sets; s++) {
        v->set[s * NET_SET + NET_SET_BUSY] = feedback->busy[s];
        v->set[s * NET_SET + NET_SET_MEMORY] = feedback->memory[s];
    }
    for (uint32_t e = 0; e < v->n_sets * v->n_sets; e++)
        v->link[e * NET_LINK + NET_LINK_BUSY] = feedback->link[e];
}

static void view_actions(const NetCase *c, NetView *v)
{
    const uint32_t all = c->space->view->n_devices;
    items_at (const TagAction, a, s, c->space->action, v->n_actions) {
        double *x = &v->action[s * NET_ACTION];
        const size_t at = (size_t)v->next * v->n_actions + s;
        const uint32_t n = sum_over(uint32_t, k, v->n_sets, a->subset >> k & 1u);
        for (uint32_t k = 0; k < v->n_sets; k++)
            v->member[s * v->n_sets + k] = (a->subset >> k & 1u) / (double)n;
        x[a->option] = 1;
        const DeviceGroup *of = &c->space->group[c->space->replicas[a->subset]];
        x[4] = of->n_replicas * of->n_devices / (double)all;
        x[5] = log_part(c->rows->slow[at] / c->dp_s);
        x[6] = log_part(c->rows->sums[at] / c->dp_s);
    }
}

NetView *net_case_view(const NetCase *c, TagEvaluator *evaluator, const uint16_t *action,
                       const bool *decided, uint32_t next)
{
    NetView *v = g_new0(NetView, 1);
    v->n_groups = c->work->n_groups;
    v->n_sets = c->space->n_sets;
    v->n_actions = c->space->n_actions;
    v->n_flows = c->from->len;
    v->next = next;
    const gsize n_places = (gsize)v->n_groups * v->n_sets;
    v->group = g_new0(double, v->n_groups *NET_GROUP);
    v->set = g_new0(double, v->n_sets *NET_SET);
    v->action = g_new0(double, v->n_actions *NET_ACTION);
    v->member = g_new0(double, (gsize)v->n_actions * v->n_sets);
    v->from = g_memdup2(c->from->data, v->n_flows * sizeof *v->from);
    v->to = g_memdup2(c->to->data, v->n_flows * sizeof *v->to);
    v->flow = g_memdup2(c->flow->data, v->n_flows * sizeof *v->flow);
    v->of_group = g_new(uint32_t, n_places);
    v->of_set = g_new(uint32_t, n_places);
    v->placed = g_new0(double, n_places *NET_PLACED);
    v->link_from = g_new(uint32_t, (gsize)v->n_sets * v->n_sets);
    v->link_to = g_new(uint32_t, (gsize)v->n_sets * v->n_sets);
    v->link = g_new0(double, (gsize)v->n_sets * v->n_sets * NET_LINK);
    view_groups(c, v, action, decided);
    view_sets(c, v);
    view_actions(c, v);
    view_feedback(c, v, evaluator, action);
    return v;
}
