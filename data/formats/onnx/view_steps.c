/* The search for the steps that bring the elements of a view's base into the view's order. */
#include "data/formats/onnx/view.h"

#include <string.h>

/* Dims of a tensor as lists of atoms, for the search: a string of atoms + 1, a SEPARATOR before
 * each dim. */
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
    Dims dims = {.rank = view->base_rank};
    for (uint32_t a = 0; a < view->n_atoms; a++) {
        ViewDim *dim = &dims.dim[view->atom[a].dim];
        dim->atom[dim->n++] = (uint8_t)a;
    }
    return dims;
}

static void view_steps_merge(Dims *dims, uint32_t d)
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
        view_steps_merge(dims, last - 1);
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
        view_steps_merge(dims, 1);
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
    g_autoptr(GArray) states = g_array_new(false, true, sizeof(State));
    g_autoptr(GHashTable) seen = text_table(NULL);
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
