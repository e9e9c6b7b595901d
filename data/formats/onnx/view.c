/* Views: lists of atoms. */
#include "data/formats/onnx/view.h"

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
    uint64_t size = 1;
    for (uint32_t i = 0; i < view->dim[dim].n; i++)
        size *= view->atom[view->dim[dim].atom[i]].size;
    return size;
}

bool view_is_shared(const View *view)
{
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
    bool plain = view->rotary == 0 && view->norm == ONNX_NONE;
    for (uint32_t a = 0; a < view->n_atoms; a++)
        plain &= !view->atom[a].repeats;
    return plain;
}

bool view_split_atom(View *view, uint8_t atom, uint64_t outer)
{
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
    ViewDim all = {.n = 0};
    for (uint32_t d = 0; d < view->rank; d++)
        for (uint32_t i = 0; i < view->dim[d].n; i++)
            all.atom[all.n++] = view->dim[d].atom[i];
    return all;
}

bool view_reshape(View *view, uint32_t rank, const uint64_t *dim)
{
    View out = *view;
    const ViewDim all = flat(view);
    out.rank = 1;
    out.dim[0] = all;
    uint32_t next = 0; /* atoms that are gone */
    uint8_t count[ONNX_MAX_RANK] = {0};
    if (rank > ONNX_MAX_RANK)
        return false;
    values_at (uint64_t, need, d, dim, rank) {
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
    const View old = *view;
    for (uint32_t d = 0; d < view->rank; d++)
        view->dim[d] = old.dim[from[d]];
    return true;
}

bool view_take(View *view, uint32_t dim, uint64_t first, uint64_t n)
{
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
    for (uint32_t d = dim; d + 1 < view->rank; d++)
        view->dim[d] = view->dim[d + 1];
    view->rank--;
}

/* Atoms that lie behind one another in both become one. */
static View joined(const View *view)
{
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
        items_each (ViewDim, dim, out.dim, out.rank) {
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
        x.rotary != y.rotary || x.norm != y.norm)
        return false;
    for (uint32_t i = 0; i < x.n_atoms; i++)
        if (x.atom[i].size != y.atom[i].size || x.atom[i].dim != y.atom[i].dim ||
            x.atom[i].batch != y.atom[i].batch || x.atom[i].fixed || y.atom[i].fixed)
            return false;
    return !any_of(d, x.rank,
                   x.dim[d].n != y.dim[d].n ||
                       memcmp(x.dim[d].atom, y.dim[d].atom, x.dim[d].n) != 0);
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
