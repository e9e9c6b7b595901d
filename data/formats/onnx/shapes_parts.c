/* Shapes of ONNX nodes that give the same elements in other dims, a part of them, or what shapes
 * alone say. */
#include "data/formats/onnx/ops.h"

#include <math.h>
#include <string.h>

bool onnx_transpose_shape(const Inference *s)
{
    int64_t perm[ONNX_MAX_RANK];
    uint64_t dim[ONNX_MAX_RANK];
    const OnnxValue *x = s->in[0];
    if (!x)
        return false;
    const uint32_t n = onnx_ints(s->node, "perm", ONNX_MAX_RANK, perm);
    for (uint32_t d = 0; d < x->rank; d++) {
        const uint32_t from =
            n == x->rank ? onnx_axis(perm[d], x->rank) : x->rank - 1 - d;
        if (from == x->rank)
            return false;
        dim[d] = x->dim[from];
    }
    return onnx_set_shape(s->out, x->rank, dim);
}

/* A Reshape's shape [n] in full: false if it does not fit as many elements as there are. */
static bool reshape(const OnnxValue *in, const int64_t *want, uint32_t n, bool keep_zeros,
                    uint64_t dim[ONNX_MAX_RANK])
{
    const uint64_t elements = onnx_elements(in);
    uint64_t known = 1;
    uint32_t open = n;
    for (uint32_t d = 0; d < n; d++) {
        if (want[d] < -1 || want[d] > INT32_MAX || (want[d] == -1 && open < n) ||
            (want[d] == 0 && !keep_zeros && d >= in->rank))
            return false;
        dim[d] = want[d] == 0 && !keep_zeros ? in->dim[d] : (uint64_t)MAX(want[d], 0);
        if (want[d] == -1)
            open = d;
        else if (dim[d] && known > ((uint64_t)1 << 53) / dim[d])
            return false;
        else
            known *= dim[d];
    }
    if (open < n)
        dim[open] = known ? elements / known : 0;
    return (open < n ? known * dim[open] : known) == elements;
}

bool onnx_reshape_shape(const Inference *s)
{
    int64_t want[ONNX_MAX_RANK];
    uint64_t dim[ONNX_MAX_RANK];
    const int n = onnx_ints_of(s->model, s->node, 1, "shape", want);
    return s->in[0] && n >= 0 &&
           reshape(s->in[0], want, (uint32_t)n, onnx_int(s->node, "allowzero", 0), dim) &&
           onnx_set_shape(s->out, (uint32_t)n, dim);
}

bool onnx_flatten_shape(const Inference *s)
{
    const OnnxValue *x = s->in[0];
    uint64_t dim[2] = {1, 1};
    if (!x)
        return false;
    const int64_t axis = onnx_int(s->node, "axis", 1);
    for (uint32_t d = 0; d < x->rank; d++)
        dim[d >= (axis < 0 ? axis + x->rank : axis)] *= x->dim[d];
    return onnx_set_shape(s->out, 2, dim);
}

bool onnx_unsqueeze_shape(const Inference *s)
{
    int64_t axes[ONNX_MAX_RANK];
    uint64_t dim[ONNX_MAX_RANK] = {0};
    const int n = onnx_ints_of(s->model, s->node, 1, "axes", axes);
    if (!s->in[0] || n < 1 || s->in[0]->rank + (uint32_t)n > ONNX_MAX_RANK)
        return false;
    const uint32_t rank = s->in[0]->rank + (uint32_t)n;
    for (int i = 0; i < n; i++) {
        const uint32_t axis = onnx_axis(axes[i], rank);
        if (axis == rank || dim[axis])
            return false;
        dim[axis] = UINT64_MAX;
    }
    for (uint32_t d = 0, from = 0; d < rank; d++)
        dim[d] = dim[d] ? 1 : s->in[0]->dim[from++];
    return onnx_set_shape(s->out, rank, dim);
}

/* The shape without axes, or with extents of 1 there. No axes: all, or those of extent 1. */
static bool without_axes(const Inference *s, bool keep, bool squeezes)
{
    const OnnxValue *x = s->in[0];
    int64_t axes[ONNX_MAX_RANK];
    uint64_t dim[ONNX_MAX_RANK];
    uint32_t rank = 0;
    const int n = onnx_ints_of(s->model, s->node, 1, "axes", axes);
    if (!x || n < 0)
        return false;
    for (uint32_t d = 0; d < x->rank; d++) {
        bool gone = n == 0 && (!squeezes || x->dim[d] == 1);
        for (int i = 0; i < n; i++)
            gone |= onnx_axis(axes[i], x->rank) == d;
        if (gone && squeezes && x->dim[d] != 1)
            return false;
        if (!gone || keep)
            dim[rank++] = gone ? 1 : x->dim[d];
    }
    return onnx_set_shape(s->out, rank, dim);
}

bool onnx_squeeze_shape(const Inference *s)
{
    return without_axes(s, false, true);
}

bool onnx_expand_shape(const Inference *s)
{
    int64_t want[ONNX_MAX_RANK];
    OnnxValue shape = {.known = true};
    const int n = onnx_constant_ints(s->model, onnx_in(s->model, s->node, 1), want);
    for (int d = 0; d < n; d++) {
        if (want[d] < 1 || want[d] > INT32_MAX)
            return false;
        shape.dim[shape.rank++] = (uint64_t)want[d];
    }
    return s->in[0] && n >= 0 && onnx_broadcast(s->out, s->in[0], &shape);
}

/* --- parts --- */

bool onnx_gather_shape(const Inference *s)
{
    const OnnxValue *x = s->in[0], *at = s->in[1];
    if (!x || !at || x->rank == 0 || x->rank - 1 + at->rank > ONNX_MAX_RANK)
        return false;
    const uint32_t axis = onnx_axis(onnx_int(s->node, "axis", 0), x->rank);
    uint64_t dim[ONNX_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < x->rank; d++) {
        for (uint32_t i = 0; d == axis && i < at->rank; i++)
            dim[rank++] = at->dim[i];
        if (d != axis)
            dim[rank++] = x->dim[d];
    }
    return axis < x->rank && onnx_set_shape(s->out, rank, dim);
}

bool onnx_concat_shape(const Inference *s)
{
    if (!s->in[0])
        return false;
    const uint32_t rank = s->in[0]->rank;
    const uint32_t axis = onnx_axis(onnx_int(s->node, "axis", 1), rank);
    uint64_t dim[ONNX_MAX_RANK];
    memcpy(dim, s->in[0]->dim, sizeof dim);
    if (axis == rank)
        return false;
    for (uint32_t i = 1; i < s->node->n_in; i++) {
        const OnnxValue *x = onnx_value(s->model, onnx_in(s->model, s->node, i));
        if (!x->known || x->rank != rank)
            return false;
        for (uint32_t d = 0; d < rank; d++)
            if (d != axis && x->dim[d] != dim[d])
                return false;
        dim[axis] += x->dim[axis];
    }
    return onnx_set_shape(s->out, rank, dim);
}

/* All outputs of a split along an axis. */
bool onnx_split_shape(const Inference *s)
{
    const OnnxValue *x = s->in[0];
    int64_t size[ONNX_MAX_RANK];
    const uint32_t parts = s->node->n_out;
    const uint32_t axis = x ? onnx_axis(onnx_int(s->node, "axis", 0), x->rank) : 0;
    if (!x || axis == x->rank || parts > ONNX_MAX_RANK)
        return false;
    int n = onnx_constant_ints(s->model, onnx_in(s->model, s->node, 1), size);
    n = n < 0 ? (int)onnx_ints(s->node, "split", ONNX_MAX_RANK, size) : n;
    if (n != 0 && n != (int)parts)
        return false;
    const uint64_t even = (x->dim[axis] + parts - 1) / parts;
    for (uint32_t i = 0; i < parts; i++) {
        const uint32_t index = onnx_out(s->model, s->node, i);
        const uint64_t before = MIN(even * i, x->dim[axis]);
        uint64_t dim[ONNX_MAX_RANK];
        memcpy(dim, x->dim, sizeof dim);
        dim[axis] = n ? (uint64_t)MAX(size[i], 0) : MIN(even, x->dim[axis] - before);
        if (index == ONNX_NONE)
            continue;
        onnx_value(s->model, index)->dtype = x->dtype;
        if (!onnx_set_shape(onnx_value(s->model, index), x->rank, dim))
            return false;
    }
    return true;
}

/* Starts, ends, axes and steps: attributes until opset 9, inputs since. */
bool onnx_slice_shape(const Inference *s)
{
    static const char *const key[] = {"", "starts", "ends", "axes", "steps"};
    int64_t list[5][ONNX_MAX_RANK];
    int n[5];
    const OnnxValue *x = s->in[0];
    uint64_t dim[ONNX_MAX_RANK];
    if (!x)
        return false;
    memcpy(dim, x->dim, sizeof dim);
    for (uint32_t i = 1; i < 5; i++) {
        n[i] = onnx_ints_of(s->model, s->node, i, key[i], list[i]);
        if (n[i] < 0)
            return false;
    }
    for (int i = 0; i < n[1]; i++) {
        const uint32_t axis = onnx_axis(n[3] ? list[3][i] : i, x->rank);
        const int64_t step = n[4] ? list[4][i] : 1;
        if (axis == x->rank || step < 1 || n[2] != n[1])
            return false;
        const int64_t size = (int64_t)x->dim[axis];
        int64_t from = list[1][i], to = list[2][i];
        from = CLAMP(from < 0 ? from + size : from, 0, size);
        to = CLAMP(to < 0 ? to + size : to, 0, size);
        dim[axis] = to > from ? (uint64_t)((to - from + step - 1) / step) : 0;
    }
    return onnx_set_shape(s->out, x->rank, dim);
}

/* --- sums, and what is made of shapes --- */

bool onnx_reduce_shape(const Inference *s)
{
    return without_axes(s, onnx_int(s->node, "keepdims", 1), false);
}

bool onnx_shape_shape(const Inference *s)
{
    s->out->dtype = ONNX_INT64;
    if (!s->in[0])
        return false;
    const int64_t rank = s->in[0]->rank, start = onnx_int(s->node, "start", 0),
                  end = onnx_int(s->node, "end", rank);
    const int64_t from = CLAMP(start < 0 ? start + rank : start, 0, rank),
                  to = CLAMP(end < 0 ? end + rank : end, 0, rank);
    return onnx_set_shape(s->out, 1, (uint64_t[]){to > from ? (uint64_t)(to - from) : 0});
}

bool onnx_filled_shape(const Inference *s)
{
    int64_t want[ONNX_MAX_RANK];
    uint64_t dim[ONNX_MAX_RANK];
    const json_t *value = json_object_get(s->node->attr, "value");
    const int n = onnx_constant_ints(s->model, onnx_in(s->model, s->node, 0), want);
    s->out->dtype = value ? (uint32_t)json_integer_value(json_object_get(value, "dtype"))
                          : ONNX_FLOAT;
    for (int d = 0; d < n; d++)
        if (want[d] < 0)
            return false;
        else
            dim[d] = (uint64_t)want[d];
    return n >= 0 && onnx_set_shape(s->out, (uint32_t)n, dim);
}

bool onnx_range_shape(const Inference *s)
{
    double at[3];
    for (uint32_t i = 0; i < 3; i++)
        if (!onnx_scalar(s->model, onnx_in(s->model, s->node, i), &at[i]))
            return false;
    const double n = at[2] != 0 ? ceil((at[1] - at[0]) / at[2]) : -1;
    return n >= 0 && n <= INT32_MAX &&
           onnx_set_shape(s->out, 1, (uint64_t[]){(uint64_t)n});
}

bool onnx_cast_shape(const Inference *s)
{
    s->out->dtype = (uint32_t)onnx_int(s->node, "to", 0);
    return onnx_same_shape(s);
}

bool onnx_cast_like_shape(const Inference *s)
{
    if (s->in[1])
        s->out->dtype = s->in[1]->dtype;
    return onnx_same_shape(s);
}

bool onnx_size_shape(const Inference *s)
{
    s->out->dtype = ONNX_INT64;
    return s->in[0] && onnx_set_shape(s->out, 0, NULL);
}

/* The elements that are added at the front and at the back of each dim, or of the axes: attributes
 * until opset 10, inputs since. */
bool onnx_pad_shape(const Inference *s)
{
    int64_t pad[2 * ONNX_MAX_RANK], axes[ONNX_MAX_RANK];
    uint64_t dim[ONNX_MAX_RANK];
    const OnnxValue *x = s->in[0], *pads = s->in[1];
    int n = (int)onnx_ints(s->node, "pads", 2 * ONNX_MAX_RANK, pad);
    const int n_axes = onnx_constant_ints(s->model, onnx_in(s->model, s->node, 3), axes);
    if (!x || (s->node->n_in > 1 && (!pads || !pads->value || pads->rank != 1 ||
                                     onnx_elements(pads) > G_N_ELEMENTS(pad))))
        return false;
    for (uint64_t i = 0; pads && i < onnx_elements(pads); i++, n = (int)i)
        pad[i] = (int64_t)CLAMP(pads->value[i], INT32_MIN, INT32_MAX);
    memcpy(dim, x->dim, sizeof dim);
    const int edges = n_axes >= 0 ? n_axes : (int)x->rank;
    if (n != 2 * edges)
        return false;
    for (int i = 0; i < edges; i++) {
        const uint32_t axis = onnx_axis(n_axes >= 0 ? axes[i] : i, x->rank);
        const double size = axis < x->rank ? (double)x->dim[axis] + (double)pad[i] +
                                                 (double)pad[i + edges]
                                           : -1;
        if (!(size >= 0) || size > INT32_MAX)
            return false;
        dim[axis] = (uint64_t)size;
    }
    return onnx_set_shape(s->out, x->rank, dim);
}

bool onnx_tile_shape(const Inference *s)
{
    int64_t times[ONNX_MAX_RANK];
    uint64_t dim[ONNX_MAX_RANK];
    const OnnxValue *x = s->in[0];
    const int n = onnx_constant_ints(s->model, onnx_in(s->model, s->node, 1), times);
    if (!x || n != (int)x->rank)
        return false;
    for (int d = 0; d < n; d++) {
        if (times[d] < 0 || times[d] > INT32_MAX)
            return false;
        dim[d] = x->dim[d] * (uint64_t)times[d];
    }
    return onnx_set_shape(s->out, x->rank, dim);
}

/* One column for each element that is not zero. */
bool onnx_nonzero_shape(const Inference *s)
{
    const OnnxValue *x = s->in[0];
    uint64_t n = 0;
    s->out->dtype = ONNX_INT64;
    if (!x || !x->value)
        return false;
    for (uint64_t i = 0; i < onnx_elements(x); i++)
        n += x->value[i] != 0;
    return onnx_set_shape(s->out, 2, (uint64_t[]){MAX(x->rank, 1), n});
}
