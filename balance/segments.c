/* Segments of a model: which ops may have ratios of their own. */
#include <metis.h>

#include <stdlib.h>
#include <string.h>

#include "balance/balance.h"

/* --- METIS --- */

/* The forward ops as vertices weighted by FLOPs, what flows between them as edges weighted by
 * bytes. */
typedef struct {
    GArray *first, *neighbour, *bytes, *flops; /* idx_t, in METIS's own layout */
} Mesh;

static idx_t scaled(double value, double unit)
{
    return (idx_t)(value / unit) + 1;
}

static void add_edge(GHashTable *edges, uint32_t a, uint32_t b, double bytes)
{
    g_assert(a != b && bytes >= 0);
    gint64 key = (gint64)((guint64)a << 32 | b);
    double *sum = g_hash_table_lookup(edges, &key);
    if (!sum) {
        sum = g_new0(double, 1);
        g_hash_table_insert(edges, g_memdup2(&key, sizeof key), sum);
    }
    *sum += bytes;
}

/* Bytes that flow from op to op, in both directions. */
static GHashTable *find_edges(const Graph *graph)
{
    GHashTable *edges =
        g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const Op *op = graph_get_op(graph, id);
        for (uint32_t i = 0; op->pass == PASS_FORWARD && i < op->n_in; i++) {
            const Tensor *tensor = graph_tensor(graph, op->in[i]);
            if (tensor->producer == GRAPH_NONE || tensor->producer == id)
                continue;
            add_edge(edges, tensor->producer, id, (double)tensor_bytes(tensor));
            add_edge(edges, id, tensor->producer, (double)tensor_bytes(tensor));
        }
    }
    return edges;
}

static int compare_keys(gconstpointer a, gconstpointer b)
{
    gint64 x = **(const gint64 *const *)a, y = **(const gint64 *const *)b;
    return (x > y) - (x < y);
}

/* METIS takes integers: the largest weight becomes a million. */
static const double resolution = 1e6;

static Mesh mesh_new(const Graph *graph, uint32_t n)
{
    g_assert(n <= graph_n_ops(graph));
    Mesh mesh = {g_array_new(FALSE, FALSE, sizeof(idx_t)),
                 g_array_new(FALSE, FALSE, sizeof(idx_t)),
                 g_array_new(FALSE, FALSE, sizeof(idx_t)),
                 g_array_new(FALSE, FALSE, sizeof(idx_t))};
    g_autoptr(GHashTable) edges = find_edges(graph);
    guint n_keys;
    g_autofree gint64 **key = (gint64 **)g_hash_table_get_keys_as_array(edges, &n_keys);
    qsort(key, n_keys, sizeof *key, compare_keys);
    double most_bytes = 1, most_flops = 1;
    for (guint i = 0; i < n_keys; i++)
        most_bytes = MAX(most_bytes, *(double *)g_hash_table_lookup(edges, key[i]));
    for (OpId id = 0; id < n; id++)
        most_flops = MAX(most_flops, graph_op_flops(graph, id));
    guint e = 0;
    for (OpId id = 0; id < n; id++) {
        idx_t at = (idx_t)mesh.neighbour->len;
        idx_t flops = scaled(graph_op_flops(graph, id), most_flops / resolution);
        g_array_append_val(mesh.first, at);
        g_array_append_val(mesh.flops, flops);
        for (; e < n_keys && *key[e] >> 32 == (gint64)id; e++) {
            idx_t other = (idx_t)(*key[e] & G_MAXUINT32);
            idx_t bytes = scaled(*(double *)g_hash_table_lookup(edges, key[e]),
                                 most_bytes / resolution);
            g_array_append_val(mesh.neighbour, other);
            g_array_append_val(mesh.bytes, bytes);
        }
    }
    idx_t end = (idx_t)mesh.neighbour->len;
    g_array_append_val(mesh.first, end);
    return mesh;
}

static void mesh_clear(Mesh *mesh)
{
    g_array_unref(mesh->first);
    g_array_unref(mesh->neighbour);
    g_array_unref(mesh->bytes);
    g_array_unref(mesh->flops);
}

static bool partition(const Graph *graph, uint32_t n, uint32_t n_parts, idx_t *part,
                      GError **error)
{
    Mesh mesh = mesh_new(graph, n);
    idx_t options[METIS_NOPTIONS], vertices = (idx_t)n, constraints = 1,
                                   parts = (idx_t)n_parts, cut = 0;
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = 1;
    int code = METIS_PartGraphKway(
        &vertices, &constraints, (idx_t *)(void *)mesh.first->data,
        (idx_t *)(void *)mesh.neighbour->data, (idx_t *)(void *)mesh.flops->data, NULL,
        (idx_t *)(void *)mesh.bytes->data, &parts, NULL, NULL, options, &cut, part);
    mesh_clear(&mesh);
    return code == METIS_OK ||
           kilter_fail(error, KILTER_ERROR_FAILED, "METIS finds no %u segments (code %d)",
                       n_parts, code);
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

/* The forward op that an op serves: a backward op's own, an update's the first that reads the
 * parameter. */
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
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "expected at most %u segments, one a forward op, got %u", n,
                           n_parts);
    enum { OPS_A_PART = 16 };
    if (n_parts > n / OPS_A_PART) {
        cut_in_runs(graph, n, n_parts, segment);
    } else if (n_parts > 1) {
        g_autofree idx_t *part = g_new0(idx_t, n);
        if (!partition(graph, n, n_parts, part, error))
            return false;
        for (OpId id = 0; id < n; id++)
            segment[id] = (uint16_t)part[id];
    }
    balance_segments_follow(graph, segment);
    return true;
}

static uint32_t root_of(uint32_t *above, uint32_t i)
{
    while (above[i] != i)
        i = above[i] = above[above[i]];
    return i;
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
        uint32_t a = root_of(above, segment[id]);
        uint32_t b = root_of(above, (uint32_t)G_MAXUINT16 + 1 + tie[id]);
        above[MAX(a, b)] = MIN(a, b);
    }
    g_autofree uint32_t *number = g_new0(uint32_t, (gsize)G_MAXUINT16 + 1 + n);
    for (OpId id = 0; id < n; id++) {
        uint32_t *own = &number[root_of(above, segment[id])];
        if (sharded[id] && *own == 0)
            *own = ++n_joined;
        joined[id] = sharded[id] ? (uint16_t)(*own - 1) : 0;
    }
    return MAX(n_joined, 1);
}
