/* Sealing: finds the dims that must be cut alike, and their number of pieces. */
#include "data/base/assert.h"
#include "data/base/sets.h"
#include "data/graph/build.h"

#include <string.h>

static uint32_t gcd(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* Cuts the op's loops like the dims that they drive, once the tensors' units are known. */
static void cut_op(Graph *graph, OpId id)
{
    const Op *op = graph_get_op(graph, id);
    const OpClass *plain = graph_op_class(graph, id);
    KILTER_ASSERT(plain->space.n_loops <= OP_MAX_LOOPS && !graph->sealed);
    uint32_t units[OP_MAX_LOOPS];
    for (uint32_t l = 0; l < plain->space.n_loops; l++)
        units[l] = 1;
    for (uint32_t operand = 0; operand < op->n_in + op->n_out; operand++) {
        const Tensor *tensor = graph_tensor(
            graph, operand < op->n_in ? op->in[operand] : op->out[operand - op->n_in]);
        for (uint32_t d = 0; d < tensor->rank; d++) {
            int l = plain->space.dim_loop[operand][d];
            if (plain->space.loop[l].shardable || plain->space.loop[l].divided)
                units[l] = tensor->units[d];
        }
    }
    g_array_index(graph->op_class, const OpClass *, id) =
        op_classes_cut(graph->classes, plain, units);
}

/* The invariant of a sealed graph: every dim can be cut into its units. */
static void walk_units(const Graph *graph)
{
    for (TensorId t = 0; t < graph->tensors->len; t++) {
        const Tensor *tensor = graph_tensor(graph, t);
        for (uint32_t d = 0; d < tensor->rank; d++)
            g_assert(tensor->units[d] > 0 && tensor->dim[d] % tensor->units[d] == 0);
    }
}

/* --- ops that take equally long --- */

/* An op as far as its time follows from it, beside its forms. */
typedef struct {
    uint64_t class;
    double rate;
    uint32_t pass, span, causal, stride, numbers, kept_bytes;
    uint32_t itself; /* 1 + its number where it has a time of its own */
    struct {
        uint32_t dtype, role,
            final; /* final: it is the whole gradient of what it is of */
    } operand[OP_MAX_OPERANDS];
} OpLook;

static OpLook look_at(const Graph *graph, OpId id)
{
    const Op *op = graph_get_op(graph, id);
    OpLook look;
    TensorId of;
    memset(&look, 0, sizeof look); /* it is compared including its padding */
    look.class = graph_op_class_index(graph, id);
    look.rate = op->attr.rate;
    look.pass = op->pass;
    look.span = op->attr.span;
    look.causal = op->attr.causal;
    look.stride = op->attr.stride;
    look.numbers = graph_op_numbers(graph, id);
    look.kept_bytes = graph_op_kept_bytes(graph, id, &of);
    look.itself = graph->timed || graph_op_times(graph, id) ? 1 + id : 0;
    for (uint32_t i = 0; i < op->n_in + op->n_out; i++) {
        const TensorId t = i < op->n_in ? op->in[i] : op->out[i - op->n_in];
        const Tensor *tensor = graph_tensor(graph, t);
        look.operand[i].dtype = tensor->dtype;
        look.operand[i].role = tensor->role;
        look.operand[i].final = graph_is_parameter_gradient(graph, t)
                                    ? 1 + (graph_gradient(graph, tensor->of) == t)
                                    : 0;
    }
    return look;
}

static void seal_find_alike(Graph *graph)
{
    g_autoptr(GHashTable) first = g_hash_table_new_full(
        g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, NULL);
    graph->alike = g_new(OpId, graph->ops->len + 1);
    for (OpId id = 0; id < graph->ops->len; id++) {
        const OpLook look = look_at(graph, id);
        GBytes *key = g_bytes_new(&look, sizeof look);
        gpointer known;
        if (g_hash_table_lookup_extended(first, key, NULL, &known)) {
            graph->alike[id] = GPOINTER_TO_UINT(known);
            g_bytes_unref(key);
        } else {
            graph->alike[id] = id;
            g_hash_table_insert(first, key, GUINT_TO_POINTER(id));
        }
    }
}

/* Dims driven by one shardable loop of some op form a class; all of its members are cut into
 * gcd(extents) pieces, or not at all if one of them has to stay whole. */
void graph_seal(Graph *graph)
{
    g_assert(!graph->sealed);
    uint32_t n = graph->tensors->len * TENSOR_MAX_RANK;
    g_autofree uint32_t *parent = g_new(uint32_t, n), *units = g_new0(uint32_t, n);
    /* [dim]: a loop that can be sharded drives it */
    g_autofree bool *driven = g_new0(bool, n);
    for (uint32_t i = 0; i < n; i++)
        parent[i] = i;
    for (OpId id = 0; id < graph->ops->len; id++) {
        const Op *op = graph_get_op(graph, id);
        const OpSpace *space = &graph_op_class(graph, id)->space;
        uint32_t first[OP_MAX_LOOPS];
        memset(first, 0xff, sizeof first);
        for (uint32_t operand = 0; operand < op->n_in + op->n_out; operand++) {
            TensorId t =
                operand < op->n_in ? op->in[operand] : op->out[operand - op->n_in];
            for (uint32_t d = 0; d < graph_tensor(graph, t)->rank; d++) {
                int l = space->dim_loop[operand][d];
                if (!space->loop[l].shardable && !space->loop[l].divided)
                    continue;
                uint32_t node = set_find(parent, t * TENSOR_MAX_RANK + d);
                driven[t * TENSOR_MAX_RANK + d] = true;
                if (first[l] == GRAPH_NONE)
                    first[l] = node;
                else
                    parent[node] = set_find(parent, first[l]);
            }
        }
    }
    for (int set = 0; set < 2; set++)
        for (TensorId t = 0; t < graph->tensors->len; t++) {
            Tensor *tensor = &g_array_index(graph->tensors, Tensor, t);
            for (uint32_t d = 0; d < tensor->rank; d++) {
                uint32_t root = set_find(parent, t * TENSOR_MAX_RANK + d);
                if (set)
                    tensor->units[d] = driven[t * TENSOR_MAX_RANK + d] ? units[root] : 1;
                else
                    units[root] = gcd(units[root], tensor->units[d]);
            }
        }
    for (OpId id = 0; id < graph->ops->len; id++)
        cut_op(graph, id);
    KILTER_WALK(walk_units(graph));
    seal_find_alike(graph);
    static gint sealed;
    graph->serial = 1 + (uint32_t)g_atomic_int_add(&sealed, 1);
    graph->sealed = true;
}
