/* Groups of ops for placement: by METIS over all of them, or by layers. */
#include <string.h>

#include "balance/balance.h"
#include "balance/mesh.h"

/* Numbers parts by their first ops; returns how many are not empty. */
static uint32_t number_parts(uint32_t n, const uint32_t *part, uint32_t n_parts,
                             uint16_t *group)
{
    KILTER_ASSERT(n_parts > 0);
    g_autofree uint32_t *number = g_new0(uint32_t, n_parts + 1);
    uint32_t n_groups = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (number[part[i]] == 0)
            number[part[i]] = ++n_groups;
        group[i] = (uint16_t)(number[part[i]] - 1);
    }
    return n_groups;
}

/* Bytes from op to op. A tensor that no op makes binds its readers to one another: a parameter lies
 * where its update runs, and is sent to the other readers. */
static void groups_add_flows(Mesh *mesh, const Graph *graph)
{
    g_autofree OpId *first = g_new(OpId, graph_n_tensors(graph) + 1);
    memset(first, 0xff, graph_n_tensors(graph) * sizeof *first);
    ops_each (op, id, graph) {
        for (uint32_t i = 0; i < op->n_in; i++) {
            const Tensor *tensor = graph_tensor(graph, op->in[i]);
            const OpId from =
                tensor->producer != GRAPH_NONE ? tensor->producer : first[op->in[i]];
            if (from == GRAPH_NONE)
                first[op->in[i]] = id;
            else if (tensor->role != ROLE_INPUT)
                mesh_edge(mesh, from, id, (double)tensor_bytes(tensor));
        }
    }
}

uint32_t balance_groups_metis(const Graph *graph, const double *time_s, uint32_t n_groups,
                              double imbalance, uint16_t *group, GError **error)
{
    const uint32_t n = graph_n_ops(graph);
    enum { OPS_A_PART = 2 }; /* groups of single ops are no groups */
    n_groups = MIN(n_groups, MAX(1, n / OPS_A_PART));
    g_autoptr(Mesh) mesh = mesh_new(n);
    g_autofree uint32_t *part = g_new0(uint32_t, n + 1);
    groups_add_flows(mesh, graph);
    if (n_groups > 1 && !mesh_bisect(mesh, time_s, n_groups, imbalance, part, error))
        return 0;
    return number_parts(n, part, n_groups, group);
}

uint32_t balance_groups_layers(const Graph *graph, const double *time_s,
                               uint32_t n_groups, uint16_t *group)
{
    const uint32_t n = graph_n_ops(graph), n_layers = graph_n_layers(graph);
    g_autofree double *layer_s = g_new0(double, n_layers + 1);
    g_autofree uint32_t *run = g_new0(uint32_t, n_layers + 1);
    g_autofree uint32_t *part = g_new0(uint32_t, n + 1);
    double all_s = 0, before_s = 0;
    for (OpId id = 0; id < n; id++) {
        const Op *op = graph_get_op(graph, id);
        layer_s[op->pass == PASS_UPDATE ? op->layer
                                        : graph_get_op(graph, op->of)->layer] +=
            time_s[id];
        all_s += time_s[id];
    }
    for (uint32_t l = 0; l < n_layers; l++) {
        const double middle = before_s + layer_s[l] / 2;
        run[l] = n_layers <= n_groups
                     ? l
                     : MIN(n_groups - 1, all_s > 0 ? (uint32_t)(middle / all_s * n_groups)
                                                   : l % n_groups);
        before_s += layer_s[l];
    }
    for (OpId id = 0; id < n; id++)
        group[id] = (uint16_t)run[graph_get_op(graph, id)->layer];
    balance_segments_follow(graph, group);
    for (OpId id = 0; id < n; id++)
        part[id] = group[id];
    return number_parts(n, part, MAX(n_layers, n_groups), group);
}
