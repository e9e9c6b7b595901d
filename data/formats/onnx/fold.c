/* Folding: what an ONNX model computes of constants and of shapes. Numbers are doubles, in which
 * integers up to 2^53 are exact; constants of more than MOST elements stay constants without
 * numbers, as do all that come when the model has folded as much as it may. */
#include "data/formats/onnx/fold.h"

#include <math.h>
#include <string.h>

#include "data/formats/onnx/ops.h"

enum { MOST = 1 << 20 };

/* Row-major steps of `value` along the dims of a result that it is spread over; 0: repeated. */
static void strides_of(const OnnxValue *value, uint32_t rank,
                       uint64_t step[ONNX_MAX_RANK])
{
    uint64_t all = 1;
    for (uint32_t d = rank; d-- > 0;) {
        const bool missing = d + value->rank < rank;
        const uint64_t size = missing ? 1 : value->dim[d + value->rank - rank];
        step[d] = size == 1 ? 0 : all;
        all *= size;
    }
}

/* The element of an operand with these steps that belongs to element i of a result. */
static uint64_t onnx_place(const OnnxValue *out, const uint64_t *step, uint64_t i)
{
    uint64_t at = 0;
    for (uint32_t d = out->rank; d-- > 0;) {
        at += i % out->dim[d] * step[d];
        i /= out->dim[d];
    }
    return at;
}

/* --- rules --- */

/* In the same order. */
bool onnx_fold_same(const Fold *f)
{
    const bool fits = onnx_elements(f->in[0]) == f->n;
    if (fits)
        memcpy(f->to, f->in[0]->value, f->n * sizeof *f->to);
    return fits;
}

/* One by one. */
bool onnx_fold_elements(const Fold *f)
{
    const OnnxElement formula = onnx_op_of(f->node)->formula;
    const bool fits = onnx_elements(f->in[0]) == f->n,
               whole = !onnx_dtype_is_float(f->out->dtype);
    for (uint64_t i = 0; fits && i < f->n; i++)
        f->to[i] = formula(f->node, whole, f->in[0]->value[i], 0);
    return fits;
}

/* Two or three by one another, by NumPy's rules. */
bool onnx_fold_spread(const Fold *f)
{
    const uint32_t n_in = MIN(f->node->n_in, 3);
    const bool choice = onnx_op_is(f->node, "Where");
    const bool whole = f->in[0] && !onnx_dtype_is_float(f->in[0]->dtype);
    const OnnxElement formula = onnx_op_of(f->node)->formula;
    uint64_t step[3][ONNX_MAX_RANK] = {{0}};
    for (uint32_t i = 0; i < n_in; i++) {
        if (!f->in[i] || !f->in[i]->value || (i == 2 && !choice))
            return false;
        strides_of(f->in[i], f->out->rank, step[i]);
    }
    if (n_in < (choice ? 3 : 2))
        return false;
    for (uint64_t i = 0; i < f->n; i++) {
        const double a = f->in[0]->value[onnx_place(f->out, step[0], i)],
                     b = f->in[1]->value[onnx_place(f->out, step[1], i)];
        f->to[i] = !choice  ? formula(f->node, whole, a, b)
                   : a != 0 ? b
                            : f->in[2]->value[onnx_place(f->out, step[2], i)];
    }
    return true;
}

bool onnx_fold_expand(const Fold *f)
{
    uint64_t step[ONNX_MAX_RANK];
    strides_of(f->in[0], f->out->rank, step);
    for (uint64_t i = 0; i < f->n; i++)
        f->to[i] = f->in[0]->value[onnx_place(f->out, step, i)];
    return true;
}

bool onnx_fold_transpose(const Fold *f)
{
    int64_t perm[ONNX_MAX_RANK];
    uint64_t step[ONNX_MAX_RANK], moved[ONNX_MAX_RANK];
    const uint32_t rank = f->in[0]->rank,
                   n = onnx_ints(f->node, "perm", ONNX_MAX_RANK, perm);
    strides_of(f->in[0], rank, step);
    for (uint32_t d = 0; d < rank; d++)
        moved[d] = step[n == rank ? onnx_axis(perm[d], rank) : rank - 1 - d];
    for (uint64_t i = 0; i < f->n; i++)
        f->to[i] = f->in[0]->value[onnx_place(f->out, moved, i)];
    return true;
}

bool onnx_fold_gather(const Fold *f)
{
    const OnnxValue *x = f->in[0], *at = f->in[1];
    if (!at || !at->value || f->n == 0)
        return false;
    const uint32_t axis = onnx_axis(onnx_int(f->node, "axis", 0), x->rank);
    uint64_t inner = 1;
    for (uint32_t d = axis + 1; d < x->rank; d++)
        inner *= x->dim[d];
    const uint64_t picked = onnx_elements(at), size = x->dim[axis];
    for (uint64_t i = 0; i < f->n; i++) {
        const double index = at->value[i / inner % picked];
        const double from = index < 0 ? index + (double)size : index;
        if (!(from >= 0 && from < (double)size))
            return false;
        f->to[i] =
            x->value[(i / inner / picked * size + (uint64_t)from) * inner + i % inner];
    }
    return true;
}

bool onnx_fold_concat(const Fold *f)
{
    const uint32_t axis = onnx_axis(onnx_int(f->node, "axis", 1), f->out->rank);
    uint64_t inner = 1, before = 0;
    for (uint32_t d = axis + 1; d < f->out->rank; d++)
        inner *= f->out->dim[d];
    const uint64_t row = inner * f->out->dim[axis];
    for (uint32_t i = 0; i < f->node->n_in; i++) {
        const OnnxValue *x = onnx_value(f->model, onnx_in(f->model, f->node, i));
        if (!x->value)
            return false;
        const uint64_t part = inner * x->dim[axis];
        for (uint64_t k = 0; k < onnx_elements(x); k++)
            f->to[k / part * row + before + k % part] = x->value[k];
        before += part;
    }
    return true;
}

/* Of one dim only, as the parts of shapes are. */
bool onnx_fold_slice(const Fold *f)
{
    int64_t from[ONNX_MAX_RANK] = {0}, step[ONNX_MAX_RANK] = {1};
    const int64_t size = (int64_t)f->in[0]->dim[0];
    if (f->in[0]->rank != 1)
        return false;
    onnx_ints_of(f->model, f->node, 1, "starts", from);
    onnx_constant_ints(f->model, onnx_in(f->model, f->node, 4), step);
    const int64_t first = CLAMP(from[0] < 0 ? from[0] + size : from[0], 0, size);
    for (uint64_t i = 0; i < f->n; i++)
        f->to[i] = f->in[0]->value[(uint64_t)first + i * (uint64_t)step[0]];
    return true;
}

/* All elements to one. */
bool onnx_fold_reduce(const Fold *f)
{
    const OnnxElement formula = onnx_op_of(f->node)->formula;
    double sum = f->in[0]->value[0];
    if (f->n != 1)
        return false;
    for (uint64_t i = 1; i < onnx_elements(f->in[0]); i++)
        sum = formula(f->node, false, sum, f->in[0]->value[i]);
    f->to[0] = sum;
    return !isnan(sum);
}

bool onnx_fold_triangle(const Fold *f)
{
    const OnnxValue *x = f->in[0];
    double shift = 0;
    if (x->rank < 2)
        return false;
    const uint64_t rows = x->dim[x->rank - 2], columns = x->dim[x->rank - 1];
    const bool upper = onnx_int(f->node, "upper", 1);
    if (f->in[1] && !onnx_scalar(f->model, onnx_in(f->model, f->node, 1), &shift))
        return false;
    for (uint64_t i = 0; i < f->n; i++) {
        const double over = (double)(i % columns) - (double)(i / columns % rows) - shift;
        f->to[i] = (upper ? over >= 0 : over <= 0) ? x->value[i] : 0;
    }
    return true;
}

/* The places of elements that are not zero, a row for each dim. */
bool onnx_fold_nonzero(const Fold *f)
{
    const OnnxValue *x = f->in[0];
    const uint64_t columns = f->out->dim[1];
    for (uint64_t i = 0, at = 0; i < onnx_elements(x) && at < columns; i++) {
        if (x->value[i] == 0)
            continue;
        uint64_t rest = i;
        for (uint32_t d = x->rank; d-- > 0; rest /= x->dim[d])
            f->to[d * columns + at] = (double)(rest % x->dim[d]);
        at++;
    }
    return true;
}

bool onnx_fold_tile(const Fold *f)
{
    uint64_t step[ONNX_MAX_RANK];
    const OnnxValue *x = f->in[0];
    strides_of(x, x->rank, step);
    for (uint64_t i = 0; i < f->n; i++) {
        uint64_t at = 0, rest = i;
        for (uint32_t d = x->rank; d-- > 0; rest /= f->out->dim[d])
            at += rest % f->out->dim[d] % x->dim[d] * step[d];
        f->to[i] = x->value[at];
    }
    return true;
}

/* Of shapes, or of numbers that are attributes. */
bool onnx_fold_sizes(const Fold *f)
{
    double first, last, step;
    const json_t *value = json_object_get(f->node->attr, "value");
    if (onnx_op_is(f->node, "Shape")) {
        const int64_t rank = f->in[0]->rank, start = onnx_int(f->node, "start", 0);
        const int64_t from = CLAMP(start < 0 ? start + rank : start, 0, rank);
        for (uint64_t i = 0; i < f->n; i++)
            f->to[i] = (double)f->in[0]->dim[(uint64_t)from + i];
    } else if (onnx_op_is(f->node, "Size"))
        f->to[0] = (double)onnx_elements(f->in[0]);
    else if (onnx_op_is(f->node, "ConstantOfShape"))
        for (uint64_t i = 0; i < f->n; i++)
            f->to[i] =
                json_number_value(json_array_get(json_object_get(value, "values"), 0));
    else if (onnx_op_is(f->node, "Range") &&
             onnx_scalar(f->model, onnx_in(f->model, f->node, 0), &first) &&
             onnx_scalar(f->model, onnx_in(f->model, f->node, 1), &last) &&
             onnx_scalar(f->model, onnx_in(f->model, f->node, 2), &step))
        for (uint64_t i = 0; i < f->n; i++)
            f->to[i] = first + (double)i * step;
    else
        return false;
    return true;
}

/* Whether all inputs are constants; *triangular: one of them is. */
static bool all_constant(const OnnxModel *model, const OnnxNode *node, bool *triangular)
{
    *triangular = false;
    for (uint32_t i = 0; i < node->n_in; i++) {
        const uint32_t in = onnx_in(model, node, i);
        if (in != ONNX_NONE && !onnx_value(model, in)->constant)
            return false;
        *triangular |= onnx_value(model, in)->triangular;
    }
    return true;
}

/* The weight that a constant made of constants is: of a view of one the same one. Through an
 * Identity exporters lead to weights that were equal when they wrote the file; those that really
 * are one they read directly. */
static uint32_t origin_of(const OnnxModel *model, const OnnxNode *node, uint32_t made)
{
    static const char *const view[] = {"Reshape", "Unsqueeze", "Squeeze",
                                       "Flatten", "Cast",      "Transpose",
                                       "Expand",  "Dropout",   NULL};
    const uint32_t in = onnx_in(model, node, 0);
    return in != ONNX_NONE && g_strv_contains(view, node->op)
               ? onnx_value(model, in)->origin
               : made;
}

/* Rows of a table of weights, which are trained where the table is. */
static bool looks_up(const OnnxModel *model, const OnnxNode *node)
{
    const OnnxValue *table = onnx_value(model, onnx_in(model, node, 0)),
                    *at = onnx_value(model, onnx_in(model, node, 1));
    return onnx_op_is(node, "Gather") && table->constant && table->rank == 2 &&
           onnx_dtype_is_float(table->dtype) && at->known && at->rank > 0 &&
           onnx_int(node, "axis", 0) == 0;
}

void onnx_fold(OnnxModel *model, const OnnxNode *node, OnnxFold rule)
{
    bool triangular;
    const uint32_t made = onnx_out(model, node, 0);
    OnnxValue *out = onnx_value(model, made);
    if (onnx_op_is(node, "Constant") || looks_up(model, node) ||
        (!all_constant(model, node, &triangular) &&
         !((onnx_op_is(node, "Shape") || onnx_op_is(node, "Size")) && out->known)))
        return;
    Fold f = {.model = model, .node = node, .out = out};
    for (uint32_t i = 0; i < G_N_ELEMENTS(f.in); i++) {
        const uint32_t in = onnx_in(model, node, i);
        f.in[i] = in == ONNX_NONE ? NULL : onnx_value(model, in);
    }
    for (uint32_t i = 0; i < node->n_out; i++) {
        const uint32_t other = onnx_out(model, node, i);
        if (other == ONNX_NONE)
            continue;
        onnx_value(model, other)->constant = true;
        onnx_value(model, other)->origin = i ? other : origin_of(model, node, made);
        onnx_value(model, other)->triangular = triangular;
    }
    for (uint32_t i = 0; i < G_N_ELEMENTS(f.in); i++)
        if (f.in[i] && !f.in[i]->known)
            return;
    const bool numbers = f.in[0] && f.in[0]->value && onnx_elements(f.in[0]) > 0;
    if (!rule || (!numbers && rule != onnx_fold_sizes) || !out->known ||
        onnx_elements(out) > MOST || onnx_elements(out) > model->budget)
        return;
    f.n = onnx_elements(out);
    f.to = g_new0(double, f.n + 1);
    model->budget -= f.n;
    if (rule(&f))
        out->value = f.to;
    else
        g_free(f.to);
    for (uint64_t i = 0; out->value && i < f.n; i++)
        if (!isfinite(out->value[i]))
            out->value[i] = isnan(out->value[i]) ? 0 : copysign(1e300, out->value[i]);
}
