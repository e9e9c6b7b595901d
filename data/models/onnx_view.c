/* Views: lists of atoms, and the search for the steps to an order. */
#include "data/models/onnx_view.h"

#include <string.h>

View view_of(TensorId base, uint32_t rank, const uint64_t *dim, bool batch)
{
    View view = {.known = true,
                 .base = base,
                 .product = VIEW_NO_PRODUCT,
                 .base_rank = rank,
                 .rank = rank,
                 .scale = 1};
    for (uint32_t d = 0; d < rank; d++) {
        if (dim[d] == 1 && !(batch && d == 0))
            continue;
        const uint8_t atom = (uint8_t)view.n_atoms++;
        view.atom[atom] =
            (Atom){.size = dim[d], .dim = (uint8_t)d, .batch = batch && d == 0};
        view.dim[d] = (ViewDim){.n = 1, .atom = {atom}};
    }
    return view;
}

uint64_t view_size(const View *view, uint32_t dim)
{
    g_assert(view);
    uint64_t size = 1;
    for (uint32_t i = 0; i < view->dim[dim].n; i++)
        size *= view->atom[view->dim[dim].atom[i]].size;
    return size;
}

bool view_is_shared(const View *view)
{
    g_assert(view);
    bool batch = false, there = false;
    for (uint32_t a = 0; a < view->n_atoms; a++)
        batch |= view->atom[a].batch;
    for (uint32_t d = 0; d < view->rank; d++)
        for (uint32_t i = 0; i < view->dim[d].n; i++)
            there |= view->atom[view->dim[d].atom[i]].batch;
    return batch && !there;
}

bool view_set_batch(View *view)
{
    g_assert(view);
    uint8_t batch = 0;
    if (!view_is_shared(view) || view->rank == 0 || view->dim[0].n > 0)
        return false;
    while (!view->atom[batch].batch)
        batch++;
    view->dim[0] = (ViewDim){.n = 1, .atom = {batch}};
    return true;
}

bool view_repeat(View *view, uint32_t dim, uint64_t size)
{
    g_assert(view && dim < view->rank);
    if (view_size(view, dim) != 1 || view->n_atoms == VIEW_ATOMS ||
        view->dim[dim].n == VIEW_ATOMS)
        return false;
    const uint8_t atom = (uint8_t)view->n_atoms++;
    view->atom[atom] =
        (Atom){.size = size, .dim = (uint8_t)view->base_rank, .repeats = true};
    view->dim[dim].atom[view->dim[dim].n++] = atom;
    return true;
}

bool view_is_plain(const View *view)
{
    g_assert(view);
    bool plain = view->rotary == 0;
    for (uint32_t a = 0; a < view->n_atoms; a++)
        plain &= !view->atom[a].repeats;
    return plain;
}

bool view_split_atom(View *view, uint8_t atom, uint64_t outer)
{
    g_assert(view);
    if (view->n_atoms >= VIEW_ATOMS || view->atom[atom].batch)
        return false;
    for (uint32_t a = view->n_atoms++; a > atom; a--)
        view->atom[a] = view->atom[a - 1];
    view->atom[atom].size = outer;
    view->atom[atom + 1].size /= outer;
    for (uint32_t d = 0; d < view->rank; d++) {
        ViewDim old = view->dim[d], *dim = &view->dim[d];
        dim->n = 0;
        for (uint32_t i = 0; i < old.n && dim->n < VIEW_ATOMS; i++) {
            dim->atom[dim->n++] = (uint8_t)(old.atom[i] + (old.atom[i] > atom));
            if (old.atom[i] == atom && dim->n < VIEW_ATOMS)
                dim->atom[dim->n++] = (uint8_t)(atom + 1);
        }
    }
    return true;
}

/* All dims as one, of which parts are taken off the front. */
static ViewDim flat(const View *view)
{
    g_assert(view);
    ViewDim all = {.n = 0};
    for (uint32_t d = 0; d < view->rank; d++)
        for (uint32_t i = 0; i < view->dim[d].n; i++)
            all.atom[all.n++] = view->dim[d].atom[i];
    return all;
}

bool view_reshape(View *view, uint32_t rank, const uint64_t *dim)
{
    g_assert(view);
    View out = *view;
    const ViewDim all = flat(view);
    out.rank = 1;
    out.dim[0] = all;
    uint32_t next = 0; /* atoms that are gone */
    uint8_t count[ONNX_MAX_RANK] = {0};
    if (rank > ONNX_MAX_RANK)
        return false;
    for (uint32_t d = 0; d < rank; d++) {
        uint64_t need = dim[d];
        while (need > 1 || (next < out.dim[0].n && count[d] == 0 &&
                            out.atom[out.dim[0].atom[next]].batch &&
                            out.atom[out.dim[0].atom[next]].size == 1)) {
            if (next == out.dim[0].n || need == 0)
                return false;
            const uint8_t atom = out.dim[0].atom[next];
            const uint64_t size = out.atom[atom].size;
            if (need % size != 0 &&
                (size % need != 0 || !view_split_atom(&out, atom, need)))
                return false;
            need /= out.atom[atom].size;
            count[d]++;
            next++;
        }
    }
    if (next != out.dim[0].n)
        return false;
    const ViewDim list = out.dim[0];
    out.rank = rank;
    for (uint32_t d = 0, at = 0; d < rank; d++) {
        out.dim[d].n = count[d];
        for (uint32_t i = 0; i < count[d]; i++)
            out.dim[d].atom[i] = list.atom[at++];
    }
    *view = out;
    return true;
}

bool view_permute(View *view, const uint32_t *from)
{
    g_assert(view);
    const View old = *view;
    for (uint32_t d = 0; d < view->rank; d++)
        view->dim[d] = old.dim[from[d]];
    return true;
}

bool view_take(View *view, uint32_t dim, uint64_t first, uint64_t n)
{
    g_assert(view);
    const uint64_t size = view_size(view, dim);
    if (n == size)
        return first == 0;
    if (n == 0 || size % n != 0 || first % n != 0 || first >= size)
        return false;
    View out = *view;
    uint64_t wanted[ONNX_MAX_RANK + 1];
    if (view->rank == ONNX_MAX_RANK)
        return false;
    for (uint32_t d = 0, to = 0; d < view->rank; d++) {
        wanted[to++] = d == dim ? size / n : view_size(view, d);
        if (d == dim)
            wanted[to++] = n;
    }
    if (!view_reshape(&out, view->rank + 1, wanted) || out.dim[dim].n != 1 ||
        out.atom[out.dim[dim].atom[0]].batch)
        return false;
    Atom *part = &out.atom[out.dim[dim].atom[0]];
    part->fixed = true;
    part->at = (uint32_t)(first / n);
    out.dim[dim].n = 0;
    view_drop(&out, dim);
    *view = out;
    return true;
}

void view_drop(View *view, uint32_t dim)
{
    g_assert(view);
    for (uint32_t d = dim; d + 1 < view->rank; d++)
        view->dim[d] = view->dim[d + 1];
    view->rank--;
}

/* Atoms that lie behind one another in both become one. */
static View joined(const View *view)
{
    g_assert(view);
    View out = *view;
    for (uint32_t a = out.n_atoms; a-- > 1;) {
        const Atom *x = &out.atom[a - 1], *y = &out.atom[a];
        bool behind = false;
        for (uint32_t d = 0; d < out.rank; d++)
            for (uint32_t i = 0; i + 1 < out.dim[d].n; i++)
                behind |= out.dim[d].atom[i] == a - 1 && out.dim[d].atom[i + 1] == a;
        if (!behind || x->dim != y->dim || x->batch || y->batch)
            continue;
        out.atom[a - 1].size *= y->size;
        out.n_atoms--;
        for (uint32_t k = a; k < out.n_atoms; k++)
            out.atom[k] = out.atom[k + 1];
        for (uint32_t d = 0; d < out.rank; d++) {
            ViewDim *dim = &out.dim[d];
            uint8_t n = 0;
            for (uint32_t i = 0; i < dim->n; i++)
                if (dim->atom[i] != a)
                    dim->atom[n++] = (uint8_t)(dim->atom[i] - (dim->atom[i] > a));
            dim->n = n;
        }
    }
    return out;
}

bool view_same(const View *a, const View *b)
{
    const View x = joined(a), y = joined(b);
    if (x.rank != y.rank || x.n_atoms != y.n_atoms || x.base_rank != y.base_rank ||
        x.rotary != y.rotary)
        return false;
    for (uint32_t i = 0; i < x.n_atoms; i++)
        if (x.atom[i].size != y.atom[i].size || x.atom[i].dim != y.atom[i].dim ||
            x.atom[i].batch != y.atom[i].batch || x.atom[i].fixed || y.atom[i].fixed)
            return false;
    for (uint32_t d = 0; d < x.rank; d++)
        if (x.dim[d].n != y.dim[d].n ||
            memcmp(x.dim[d].atom, y.dim[d].atom, x.dim[d].n) != 0)
            return false;
    return true;
}

bool view_other_half(const View *a, const View *b)
{
    View x = *a, y = *b;
    bool half = false;
    if (x.n_atoms != y.n_atoms)
        return false;
    for (uint32_t i = 0; i < x.n_atoms; i++) {
        if (x.atom[i].fixed != y.atom[i].fixed)
            return false;
        if (!x.atom[i].fixed)
            continue;
        if (half || x.atom[i].size != 2 || x.atom[i].at == y.atom[i].at)
            return false;
        half = true;
    }
    view_drop_fixed(&x);
    view_drop_fixed(&y);
    return half && view_same(&x, &y);
}

void view_drop_fixed(View *view)
{
    g_assert(view);
    uint8_t place[VIEW_ATOMS] = {0}, n = 0;
    for (uint32_t a = 0; a < view->n_atoms; a++) {
        place[a] = n;
        if (!view->atom[a].fixed)
            view->atom[n++] = view->atom[a];
    }
    view->n_atoms = n;
    for (uint32_t d = 0; d < view->rank; d++)
        for (uint32_t i = 0; i < view->dim[d].n; i++)
            view->dim[d].atom[i] = place[view->dim[d].atom[i]];
}

bool view_ends_like_base(const View *view, uint32_t n)
{
    g_assert(view);
    if (view->rank == 0 || view->base_rank < n)
        return false;
    const ViewDim *last = &view->dim[view->rank - 1];
    uint32_t i = 0;
    for (uint32_t a = 0; a < view->n_atoms; a++) {
        const bool inside = view->atom[a].dim >= view->base_rank - n;
        if (inside && (i == last->n || last->atom[i++] != a || view->atom[a].fixed))
            return false;
    }
    return i == last->n;
}

/* --- the search --- */

/* Dims of a tensor as lists of atoms, for the search: a string of atoms + 1, a SEPARATOR before each dim. */
enum { SEPARATOR = 127, TEXT = VIEW_ATOMS + TENSOR_MAX_RANK + 2, MOST_STATES = 4000 };

typedef struct {
    char text[TEXT];
    uint32_t before;
    ViewStep step;
    uint32_t depth;
} State;

typedef struct {
    uint32_t rank;
    ViewDim dim[TENSOR_MAX_RANK + 1];
} Dims;

static void write_text(const Dims *dims, char *text)
{
    for (uint32_t d = 0; d < dims->rank; d++) {
        *text++ = SEPARATOR;
        for (uint32_t i = 0; i < dims->dim[d].n; i++)
            *text++ = (char)(dims->dim[d].atom[i] + 1);
    }
    *text = 0;
}

static Dims read_text(const char *text)
{
    Dims dims = {.rank = 0};
    for (; *text; text++)
        if (*text == SEPARATOR)
            dims.dim[dims.rank++].n = 0;
        else {
            ViewDim *dim = &dims.dim[dims.rank - 1];
            dim->atom[dim->n++] = (uint8_t)(*text - 1);
        }
    return dims;
}

static Dims base_dims(const View *view)
{
    g_assert(view);
    Dims dims = {.rank = view->base_rank};
    for (uint32_t a = 0; a < view->n_atoms; a++) {
        ViewDim *dim = &dims.dim[view->atom[a].dim];
        dim->atom[dim->n++] = (uint8_t)a;
    }
    return dims;
}

static void merge(Dims *dims, uint32_t d)
{
    ViewDim *to = &dims->dim[d];
    const ViewDim *from = &dims->dim[d + 1];
    for (uint32_t i = 0; i < from->n; i++)
        to->atom[to->n++] = from->atom[i];
    for (uint32_t k = d + 1; k + 1 < dims->rank; k++)
        dims->dim[k] = dims->dim[k + 1];
    dims->rank--;
}

static void split(Dims *dims, uint32_t d, uint32_t cut)
{
    const ViewDim whole = dims->dim[d];
    for (uint32_t k = dims->rank++; k > d; k--)
        dims->dim[k] = dims->dim[k - 1];
    dims->dim[d].n = (uint8_t)cut;
    dims->dim[d + 1].n = (uint8_t)(whole.n - cut);
    for (uint32_t i = cut; i < whole.n; i++)
        dims->dim[d + 1].atom[i - cut] = whole.atom[i];
}

/* Does a step where it is allowed; none touches the samples, dim 0. */
static bool apply(Dims *dims, ViewStep step)
{
    const uint32_t last = dims->rank - 1;
    switch (step.kind) {
    case OP_MERGE:
        if (dims->rank < 3)
            return false;
        merge(dims, last - 1);
        return true;
    case OP_SPLIT:
        if (dims->rank < 2 || dims->rank == TENSOR_MAX_RANK ||
            step.cut > dims->dim[last].n)
            return false;
        split(dims, last, step.cut);
        return true;
    case OP_MERGE_CHANNELS:
        if (dims->rank < 4)
            return false;
        merge(dims, 1);
        return true;
    case OP_SPLIT_CHANNELS:
        if (dims->rank < 3 || dims->rank == TENSOR_MAX_RANK || step.cut > dims->dim[1].n)
            return false;
        split(dims, 1, step.cut);
        return true;
    default:
        if (dims->rank < 3)
            return false;
        const ViewDim swap = dims->dim[last];
        dims->dim[last] = dims->dim[last - 1];
        dims->dim[last - 1] = swap;
        return true;
    }
}

static bool is_goal(const View *view, const Dims *dims, bool last)
{
    g_assert(view);
    if (!last && dims->rank != view->rank)
        return false;
    for (uint32_t d = last ? dims->rank - 1 : 0; d < dims->rank; d++) {
        const ViewDim *have = &dims->dim[d],
                      *want = &view->dim[last ? view->rank - 1 : d];
        if (have->n != want->n || memcmp(have->atom, want->atom, have->n) != 0)
            return false;
    }
    return true;
}

/* Appends what one step makes of a state, unless it was there. */
static void visit(GArray *states, GHashTable *seen, uint32_t at, ViewStep step)
{
    const State *from = &g_array_index(states, State, at);
    Dims dims = read_text(from->text);
    State state = {.before = at, .step = step, .depth = from->depth + 1};
    if (states->len == MOST_STATES || !apply(&dims, step))
        return;
    write_text(&dims, state.text);
    if (g_hash_table_add(seen, g_strdup(state.text)))
        g_array_append_val(states, state);
}

int view_steps(const View *view, bool last, ViewStep step[VIEW_MOST_STEPS])
{
    g_assert(view);
    g_autoptr(GArray) states = g_array_new(false, true, sizeof(State));
    g_autoptr(GHashTable) seen =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    State first = {.depth = 0};
    const Dims base = base_dims(view);
    write_text(&base, first.text);
    g_array_append_val(states, first);
    if (view->rank == 0 || view->base_rank == 0)
        return -1;
    for (uint32_t at = 0; at < states->len; at++) {
        const State state = g_array_index(states, State, at);
        const Dims dims = read_text(state.text);
        if (is_goal(view, &dims, last)) {
            for (uint32_t i = at, k = state.depth; k > 0; k--) {
                step[k - 1] = g_array_index(states, State, i).step;
                i = g_array_index(states, State, i).before;
            }
            return (int)state.depth;
        }
        if (state.depth == VIEW_MOST_STEPS)
            continue;
        visit(states, seen, at, (ViewStep){.kind = OP_MERGE});
        visit(states, seen, at, (ViewStep){.kind = OP_MERGE_CHANNELS});
        for (uint32_t cut = 0; cut <= dims.dim[dims.rank - 1].n; cut++)
            visit(states, seen, at, (ViewStep){.kind = OP_SPLIT, .cut = cut});
        for (uint32_t cut = 1; dims.rank > 1 && cut < dims.dim[1].n; cut++)
            visit(states, seen, at, (ViewStep){.kind = OP_SPLIT_CHANNELS, .cut = cut});
        visit(states, seen, at, (ViewStep){.kind = OP_TRANSPOSE});
    }
    return -1;
}

void view_step(View *view, ViewStep step, TensorId base)
{
    g_assert(view);
    Dims dims = base_dims(view);
    const View old = *view;
    uint8_t place[VIEW_ATOMS] = {0}, n = 0;
    const bool allowed = apply(&dims, step);
    g_assert(allowed);
    view->base = base;
    view->base_rank = dims.rank;
    for (uint32_t d = 0; d < dims.rank; d++)
        for (uint32_t i = 0; i < dims.dim[d].n; i++) {
            place[dims.dim[d].atom[i]] = n;
            view->atom[n] = old.atom[dims.dim[d].atom[i]];
            view->atom[n++].dim = (uint8_t)d;
        }
    g_assert(n == old.n_atoms);
    for (uint32_t d = 0; d < view->rank; d++)
        for (uint32_t i = 0; i < view->dim[d].n; i++)
            view->dim[d].atom[i] = place[old.dim[d].atom[i]];
}
