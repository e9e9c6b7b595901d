/* Partitions of a mesh by METIS (G. Karypis, V. Kumar, SIAM J. Sci. Comput. 20(1), 1998). */
#include "balance/mesh.h"

#include <float.h>
#include <math.h>

#include <metis.h>

#include <stdlib.h>

#include "data/base/assert.h"
#include "data/base/each.h"
#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/order.h"

struct Mesh {
    uint32_t n;
    GHashTable *edges; /* a << 32 | b -> double, both ways */
};

/* In METIS's own layout. */
typedef struct {
    GArray *first, *neighbour, *edge, *vertex; /* idx_t */
} Layout;

/* METIS takes integers: the largest weight becomes a million. */
static const double resolution = 1e6;

Mesh *mesh_new(uint32_t n_vertices)
{
    Mesh *mesh = g_new(Mesh, 1);
    *mesh = (Mesh){n_vertices,
                   g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free)};
    return mesh;
}

FREE_DEFINE(mesh_free, Mesh, mesh, g_hash_table_unref(mesh->edges));

static void add_half(Mesh *mesh, uint32_t a, uint32_t b, double weight)
{
    g_assert(a != b && weight >= 0);
    gint64 key = (gint64)((guint64)a << 32 | b);
    double *sum = g_hash_table_lookup(mesh->edges, &key);
    if (!sum) {
        sum = g_new0(double, 1);
        g_hash_table_insert(mesh->edges, g_memdup2(&key, sizeof key), sum);
    }
    *sum += weight;
}

void mesh_edge(Mesh *mesh, uint32_t a, uint32_t b, double weight)
{
    g_assert(a < mesh->n && b < mesh->n);
    if (a == b)
        return;
    add_half(mesh, a, b, weight);
    add_half(mesh, b, a, weight);
}

static idx_t scaled(double value, double unit)
{
    return (idx_t)(value / unit) + 1;
}

static ORDER_POINTERS(compare_keys, gint64, (*x > *y) - (*x < *y));

static double largest(const double *value, uint32_t n)
{
    double most = DBL_MIN; /* it divides */
    for (uint32_t i = 0; i < n; i++)
        most = MAX(most, value[i]);
    return most;
}

static Layout lay_out(const Mesh *mesh, const double *weight)
{
    Layout l = {g_array_new(FALSE, FALSE, sizeof(idx_t)),
                g_array_new(FALSE, FALSE, sizeof(idx_t)),
                g_array_new(FALSE, FALSE, sizeof(idx_t)),
                g_array_new(FALSE, FALSE, sizeof(idx_t))};
    guint n_keys, e = 0;
    g_autofree gint64 **key =
        (gint64 **)g_hash_table_get_keys_as_array(mesh->edges, &n_keys);
    qsort(key, n_keys, sizeof *key, compare_keys);
    double most_edge = 1;
    for (guint i = 0; i < n_keys; i++)
        most_edge = MAX(most_edge, *(double *)g_hash_table_lookup(mesh->edges, key[i]));
    const double most_vertex = largest(weight, mesh->n);
    for (uint32_t v = 0; v < mesh->n; v++) {
        const idx_t at = (idx_t)l.neighbour->len;
        const idx_t own = scaled(weight[v], most_vertex / resolution);
        g_array_append_val(l.first, at);
        g_array_append_val(l.vertex, own);
        for (; e < n_keys && *key[e] >> 32 == (gint64)v; e++) {
            const idx_t other = (idx_t)(*key[e] & G_MAXUINT32);
            const idx_t edge = scaled(*(double *)g_hash_table_lookup(mesh->edges, key[e]),
                                      most_edge / resolution);
            g_array_append_val(l.neighbour, other);
            g_array_append_val(l.edge, edge);
        }
    }
    const idx_t end = (idx_t)l.neighbour->len;
    g_array_append_val(l.first, end);
    return l;
}

static CLEAR_DEFINE(layout_clear, Layout, l,
                    unref_arrays(l->first, l->neighbour, l->edge, l->vertex));

/* METIS draws from rand(), which all threads share, and seeds it by srand(): one call at a time, or
 * the parts would depend on what other threads do. The library's only state, since it is
 * METIS's. */
G_LOCK_DEFINE_STATIC(metis);

/* fraction: of the weight, [n_parts]; NULL: equal ones. */
static bool partition(const Mesh *mesh, const double *weight, uint32_t n_parts,
                      real_t *fraction, double imbalance, uint32_t *part, GError **error)
{
    Layout l = lay_out(mesh, weight);
    g_autofree idx_t *of = g_new0(idx_t, mesh->n + 1);
    idx_t options[METIS_NOPTIONS], vertices = (idx_t)mesh->n, constraints = 1,
                                   parts = (idx_t)n_parts, cut = 0;
    real_t tolerance = (real_t)imbalance;
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = 1;
    G_LOCK(metis);
    const int code = METIS_PartGraphKway(
        &vertices, &constraints, (idx_t *)(void *)l.first->data,
        (idx_t *)(void *)l.neighbour->data, (idx_t *)(void *)l.vertex->data, NULL,
        (idx_t *)(void *)l.edge->data, &parts, fraction,
        imbalance > 0 ? &tolerance : NULL, options, &cut, of);
    G_UNLOCK(metis);
    layout_clear(&l);
    for (uint32_t v = 0; v < mesh->n; v++)
        part[v] = (uint32_t)of[v];
    return code == METIS_OK ||
           kilter_fail(error, KILTER_ERROR_FAILED, "METIS finds no %u segments (code %d)",
                       n_parts, code);
}

bool mesh_partition(const Mesh *mesh, const double *weight, uint32_t n_parts,
                    double imbalance, uint32_t *part, GError **error)
{
    return partition(mesh, weight, n_parts, NULL, imbalance, part, error);
}

/* --- bisections --- */

/* Vertices that get the parts from `first` on. */
typedef struct {
    uint32_t n, *vertex, first, n_parts;
} Piece;

/* The mesh between the piece's vertices, which are numbered by their places in it. */
static Mesh *mesh_of(const Mesh *mesh, const Piece *piece)
{
    Mesh *own = mesh_new(piece->n);
    g_autofree uint32_t *place = g_new0(uint32_t, mesh->n + 1);
    for (uint32_t i = 0; i < piece->n; i++)
        place[piece->vertex[i]] = i + 1;
    table_each (key, weight, mesh->edges) {
        const uint32_t a = place[*(gint64 *)key >> 32],
                       b = place[*(gint64 *)key & G_MAXUINT32];
        if (a > 0 && b > 0)
            add_half(own, a - 1, b - 1, *(double *)weight);
    }
    return own;
}

/* Halves the piece: side[i] is 0 or 1, and neither side is empty. */
static bool halve(const Mesh *mesh, const double *weight, const Piece *piece,
                  double imbalance, uint32_t *side, GError **error)
{
    g_autoptr(Mesh) own = mesh_of(mesh, piece);
    g_autofree double *of = g_new(double, piece->n);
    const uint32_t half = piece->n_parts / 2;
    real_t fraction[] = {(real_t)half / (real_t)piece->n_parts,
                         (real_t)(piece->n_parts - half) / (real_t)piece->n_parts};
    uint32_t n = 0, heaviest = 0;
    for (uint32_t i = 0; i < piece->n; i++) {
        of[i] = weight[piece->vertex[i]];
        heaviest = of[i] > of[heaviest] ? i : heaviest;
    }
    if (!partition(own, of, 2, fraction, imbalance, side, error))
        return false;
    for (uint32_t i = 0; i < piece->n; i++)
        n += side[i];
    if (n == 0 || n == piece->n)
        side[heaviest] = !side[heaviest];
    return true;
}

/* Gives the sides their vertices, and each at most as many parts as it has of them. */
static void divide(const Piece *piece, const uint32_t *side, Piece child[2])
{
    for (uint32_t s = 0; s < 2; s++)
        child[s] = (Piece){.vertex = g_new(uint32_t, piece->n)};
    for (uint32_t i = 0; i < piece->n; i++)
        child[side[i]].vertex[child[side[i]].n++] = piece->vertex[i];
    const uint32_t least = piece->n_parts > child[1].n ? piece->n_parts - child[1].n : 1;
    child[0].n_parts = MIN(MAX(piece->n_parts / 2, least), child[0].n);
    child[1].n_parts = piece->n_parts - child[0].n_parts;
    child[0].first = piece->first;
    child[1].first = piece->first + child[0].n_parts;
    KILTER_ASSERT(child[1].n_parts > 0 && child[1].n_parts <= child[1].n);
}

bool mesh_bisect(const Mesh *mesh, const double *weight, uint32_t n_parts,
                 double imbalance, uint32_t *part, GError **error)
{
    g_assert(n_parts > 0 && n_parts <= mesh->n && imbalance >= 1);
    /* of one bisection, so that all of them together have the tolerance */
    const double each = pow(imbalance, 1 / ceil(log2(MAX(n_parts, 2))));
    g_autoptr(GArray) open = g_array_new(FALSE, FALSE, sizeof(Piece));
    Piece piece = {mesh->n, g_new(uint32_t, mesh->n), 0, n_parts};
    bool good = true;
    for (uint32_t v = 0; v < mesh->n; v++)
        piece.vertex[v] = v;
    g_array_append_val(open, piece);
    while (open->len > 0) {
        piece = g_array_index(open, Piece, open->len - 1);
        g_array_set_size(open, open->len - 1);
        g_autofree uint32_t *side = g_new0(uint32_t, piece.n);
        for (uint32_t i = 0; piece.n_parts == 1 && i < piece.n; i++)
            part[piece.vertex[i]] = piece.first;
        if (good && piece.n_parts > 1 &&
            (good = halve(mesh, weight, &piece, each, side, error))) {
            Piece child[2];
            divide(&piece, side, child);
            g_array_append_vals(open, child, 2);
        }
        g_free(piece.vertex);
    }
    return good;
}
