/* Segments of a model: which ops may have ratios of their own. */
#include <string.h>

#include "balance/balance.h"
#include "balance/mesh.h"

#include "data/base/sets.h"

/* Bytes that flow between forward ops. */
static void add_flows(const Graph *graph, uint32_t n, Mesh *mesh)
{
    for (OpId id = 0; id < n; id++) {
        const Op *op = graph_get_op(graph, id);
        for (uint32_t i = 0; i < op->n_in; i++) {
            const Tensor *tensor = graph_tensor(graph, op->in[i]);
            if (tensor->producer != GRAPH_NONE)
                mesh_edge(mesh, tensor->producer, id, (double)tensor_bytes(tensor));
        }
    }
}

static bool segments_partition(const Graph *graph, uint32_t n, uint32_t n_parts,
                               uint32_t *part, GError **error)
{
    g_autoptr(Mesh) mesh = mesh_new(n);
    g_autofree double *flops = g_new(double, n);
    for (OpId id = 0; id < n; id++)
        flops[id] = graph_op_flops(graph, id);
    add_flows(graph, n, mesh);
    return mesh_partition(mesh, flops, n_parts, 0, part, error);
}

/* Consecutive ops of about equal FLOPs, at least one per part: METIS, asked for so few ops a part,
 * leaves parts empty and prints. */
static void cut_in_runs(const Graph *graph, uint32_t n, uint32_t n_parts, uint16_t *part)
{
    g_assert(n_parts > 0);
    double left = 0, run = 0;
    uint32_t at = 0;
    for (OpId id = 0; id < n; id++)
        left += graph_op_flops(graph, id);
    for (OpId id = 0; id < n; id++) {
        double flops = graph_op_flops(graph, id), share = (run + left) / (n_parts - at);
        bool full = run + flops / 2 > share || n - id <= n_parts - at - 1;
        if (id > 0 && at + 1 < n_parts && full) {
            at++;
            run = 0;
        }
        part[id] = (uint16_t)at;
        run += flops;
        left -= flops;
    }
}

/* --- all ops --- */

/* The forward op that an op serves: for a backward op the op that it belongs to, for an update the
 * first op that reads the parameter. */
static OpId served(const Graph *graph, const OpId *reader, OpId id)
{
    const Op *op = graph_get_op(graph, id);
    OpId of = op->pass == PASS_FORWARD    ? id
              : op->pass == PASS_BACKWARD ? op->of
                                          : reader[op->in[0]];
    return of == GRAPH_NONE ? 0 : of;
}

void balance_segments_follow(const Graph *graph, uint16_t *segment)
{
    g_autofree OpId *reader = g_new(OpId, graph_n_tensors(graph));
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        reader[t] = GRAPH_NONE;
    for (OpId id = graph_n_ops(graph); id-- > 0;) {
        const Op *op = graph_get_op(graph, id);
        for (uint32_t i = 0; op->pass == PASS_FORWARD && i < op->n_in; i++)
            reader[op->in[i]] = id;
    }
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        if (graph_get_op(graph, id)->pass != PASS_FORWARD)
            segment[id] = segment[served(graph, reader, id)];
}

bool balance_segments_metis(const Graph *graph, uint32_t n_parts, uint16_t *segment,
                            GError **error)
{
    uint32_t n = 0;
    while (n < graph_n_ops(graph) && graph_get_op(graph, n)->pass == PASS_FORWARD)
        n++;
    memset(segment, 0, graph_n_ops(graph) * sizeof *segment);
    if (n_parts > n)
        return refuse(error, "expected at most %u segments, one a forward op, got %u", n,
                      n_parts);
    enum { OPS_A_PART = 16 }; /* METIS balances smaller parts badly */
    if (n_parts > n / OPS_A_PART) {
        cut_in_runs(graph, n, n_parts, segment);
    } else if (n_parts > 1) {
        g_autofree uint32_t *part = g_new0(uint32_t, n);
        if (!segments_partition(graph, n, n_parts, part, error))
            return false;
        for (OpId id = 0; id < n; id++)
            segment[id] = (uint16_t)part[id];
    }
    balance_segments_follow(graph, segment);
    return true;
}

uint32_t balance_segments_join(const Program *program, const Graph *graph,
                               const uint16_t *segment, uint16_t *joined)
{
    uint32_t n = graph_n_ops(graph), n_joined = 0;
    g_autofree OpId *tie = plan_ties(program, graph);
    /* sets of segments and of ops, which follow them */
    g_autofree uint32_t *above = g_new(uint32_t, (gsize)G_MAXUINT16 + 1 + n);
    g_autofree bool *sharded = plan_sharded_ops(program, graph);
    for (uint32_t i = 0; i < (uint32_t)G_MAXUINT16 + 1 + n; i++)
        above[i] = i;
    for (OpId id = 0; id < n; id++) {
        if (!sharded[id])
            continue;
        uint32_t a = set_find(above, segment[id]);
        uint32_t b = set_find(above, (uint32_t)G_MAXUINT16 + 1 + tie[id]);
        above[MAX(a, b)] = MIN(a, b);
    }
    g_autofree uint32_t *number = g_new0(uint32_t, (gsize)G_MAXUINT16 + 1 + n);
    for (OpId id = 0; id < n; id++) {
        uint32_t *own = &number[set_find(above, segment[id])];
        if (sharded[id] && *own == 0)
            *own = ++n_joined;
        joined[id] = sharded[id] ? (uint16_t)(*own - 1) : 0;
    }
    return MAX(n_joined, 1);
}
