/* Chains of an ONNX model that are one op: activations are known by their curves, norms by the
 * moments that they divide by, attention by its softmax. */

#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "data/formats/onnx/onnx.h"
#include "data/formats/onnx/ops.h"

/* --- curves --- */

/* Numbers that functions are tried on; those from the first positive one on are positive. */
enum { ONNX_POINTS = 8, ONNX_FIRST_POSITIVE = 4, ONNX_SCALE_POINT = 7 };
static const double ONNX_POINT[ONNX_POINTS] = {-3, -1.3, -0.5, 0, 0.3, 1, 2, 5};

/* A value as a function of each element of another one: of itself where nothing else is known. */
typedef struct {
    uint32_t root;
    double y[ONNX_POINTS]; /* NAN: not known */
    uint32_t nodes;
} OnnxCurve;

/* Bounds are attributes until opset 10, and inputs since. */
static void clip_curve(const OnnxModel *model, const OnnxNode *node, const OnnxCurve *x,
                       OnnxCurve *y)
{
    double least = onnx_number(node, "min", -INFINITY),
           most = onnx_number(node, "max", INFINITY);
    onnx_scalar(model, onnx_in(model, node, 1), &least);
    onnx_scalar(model, onnx_in(model, node, 2), &most);
    for (uint32_t p = 0; p < ONNX_POINTS; p++)
        y->y[p] = fmin(fmax(x->y[p], least), most);
}

static void unary_curve(const OnnxModel *model, const OnnxCurve *curve,
                        const OnnxNode *node, OnnxCurve *y)
{
    const OnnxCurve *x = &curve[onnx_in(model, node, 0)];
    y->root = x->root;
    y->nodes = x->nodes + 1;
    if (onnx_op_is(node, "Clip")) {
        clip_curve(model, node, x, y);
        return;
    }
    const OnnxElement formula = onnx_op_of(node)->formula;
    for (uint32_t p = 0; p < ONNX_POINTS; p++)
        y->y[p] = formula(node, false, x->y[p], 0);
}

/* Of a number and a curve, or of two curves of one root. */
static void binary_curve(const OnnxModel *model, const OnnxCurve *curve,
                         const OnnxNode *node, OnnxCurve *y)
{
    const uint32_t a = onnx_in(model, node, 0), b = onnx_in(model, node, 1);
    double number = 0;
    const bool first = onnx_scalar(model, a, &number),
               second = !first && onnx_scalar(model, b, &number);
    const OnnxCurve *x = &curve[a], *z = &curve[b];
    if (!first && !second && (x->root != z->root || onnx_value(model, a)->constant))
        return;
    y->root = first ? z->root : x->root;
    y->nodes = 1 + (first ? 0 : x->nodes) + (second ? 0 : z->nodes);
    const OnnxElement formula = onnx_op_of(node)->formula;
    for (uint32_t p = 0; p < ONNX_POINTS; p++)
        y->y[p] =
            formula(node, false, first ? number : x->y[p], second ? number : z->y[p]);
}

/* The same elements in place, of the same size. */
static bool keeps_size(const OnnxModel *model, uint32_t a, uint32_t b)
{
    const OnnxValue *x = onnx_value(model, a), *y = onnx_value(model, b);
    return x->known && y->known && x->rank == y->rank &&
           memcmp(x->dim, y->dim, x->rank * sizeof *x->dim) == 0;
}

/* One for each value. Caller frees. */
static OnnxCurve *onnx_curves(const OnnxModel *model)
{
    OnnxCurve *curve = g_new0(OnnxCurve, model->value->len + 1);
    for (uint32_t v = 0; v < model->value->len; v++) {
        curve[v].root = v;
        memcpy(curve[v].y, ONNX_POINT, sizeof ONNX_POINT);
    }
    for (uint32_t n = 0; n < model->node->len; n++) {
        const OnnxNode *node = onnx_node(model, n);
        const uint32_t made = onnx_out(model, node, 0);
        OnnxCurve drawn = curve[made];
        const uint32_t operands = onnx_arithmetic(node);
        if (operands == 1)
            unary_curve(model, curve, node, &drawn);
        else if (operands == 2)
            binary_curve(model, curve, node, &drawn);
        if (drawn.root != made && keeps_size(model, made, drawn.root))
            curve[made] = drawn;
    }
    return curve;
}

/* Whether the curve is `factor` times a function, at some points. */
static bool follows(const OnnxCurve *curve, const double *function, double factor)
{
    static const double TOLERANCE = 0.03; /* approximations of GELU differ by 0.02 */
    return all_of(p, ONNX_POINTS,
                  fabs(curve->y[p] - factor * function[p]) <= TOLERANCE * fabs(factor));
}

/* The function that a curve is, times *scale. */
static OnnxFunction onnx_function_of(const OnnxCurve *curve, double *scale)
{
    static const OnnxFunction kind[] = {ONNX_SCALED, ONNX_RELU, ONNX_GELU, ONNX_SILU};
    for (uint32_t k = 0; k < G_N_ELEMENTS(kind); k++) {
        double function[ONNX_POINTS];
        values_at (const double, x, p, ONNX_POINT, ONNX_POINTS) {
            function[p] = kind[k] == ONNX_SCALED ? x
                          : kind[k] == ONNX_RELU ? fmax(x, 0)
                          : kind[k] == ONNX_GELU ? 0.5 * x * (1 + erf(x * M_SQRT1_2))
                                                 : x / (1 + exp(-x));
        }
        *scale = curve->y[ONNX_SCALE_POINT] / function[ONNX_SCALE_POINT];
        if (isfinite(*scale) && follows(curve, function, *scale))
            return kind[k];
    }
    *scale = 1;
    return ONNX_OTHER;
}

typedef struct {
    const OnnxModel *model;
    OnnxCurve *curve; /* of each value */
    GArray *user,
        *first; /* uint32_t: nodes that read value v are user[first[v]] to user[first[v + 1]] */
    OnnxGroup *group;
    int8_t *hides; /* of each value: hides_later, -1 or 1; 0: not looked at */
} Match;

static const OnnxNode *maker(const Match *m, uint32_t value, const char *op)
{
    const uint32_t producer = onnx_value(m->model, value)->producer;
    const OnnxNode *node =
        producer == ONNX_NO_NODE ? NULL : onnx_node(m->model, producer);
    return node && (!op || onnx_op_is(node, op)) ? node : NULL;
}

/* Operand `i` of the node of that op that makes a value; ONNX_NONE: none does. */
static uint32_t operand_of(const Match *m, uint32_t value, const char *op, uint32_t i)
{
    const OnnxNode *node = maker(m, value, op);
    return node ? onnx_in(m->model, node, i) : ONNX_NONE;
}

/* --- norms --- */

/* Whether d = (x + small)^power, for positive x, of the mean of squares; *squared: whose. */
static bool is_deviation(const Match *m, uint32_t d, double power, uint32_t *squared)
{
    const OnnxCurve *curve = &m->curve[d];
    const OnnxCurve *x2 = &m->curve[operand_of(m, curve->root, "ReduceMean", 0)];
    if (curve->nodes == 0)
        return false;
    for (uint32_t p = ONNX_FIRST_POSITIVE; p < ONNX_POINTS; p++)
        if (!(fabs(curve->y[p] / pow(ONNX_POINT[p], power) - 1) < 0.01))
            return false;
    for (uint32_t p = 0; p < ONNX_POINTS; p++)
        if (!(fabs(x2->y[p] - ONNX_POINT[p] * ONNX_POINT[p]) < 1e-6))
            return false;
    const OnnxValue *x = onnx_value(m->model, x2->root),
                    *all = onnx_value(m->model, curve->root);
    *squared = x2->root;
    return x->known && all->known && x->rank > 0 && onnx_elements(all) > 0 &&
           onnx_elements(x) / onnx_elements(all) == x->dim[x->rank - 1];
}

/* The value itself, behind copies and casts. */
static uint32_t itself(const Match *m, uint32_t value)
{
    const OnnxCurve *curve = &m->curve[value];
    return memcmp(curve->y, ONNX_POINT, sizeof ONNX_POINT) == 0 ? curve->root : value;
}

/* x, where s = x - mean(x); ONNX_NONE if it is something else. */
static uint32_t centred(const Match *m, uint32_t s)
{
    const uint32_t x = itself(m, operand_of(m, s, "Sub", 0)),
                   mean = itself(m, operand_of(m, s, "Sub", 1));
    return itself(m, operand_of(m, mean, "ReduceMean", 0)) == x ? x : ONNX_NONE;
}

/* Whether s, or what has the same inputs, is what was squared. */
static bool is_same(const Match *m, uint32_t s, uint32_t squared)
{
    s = itself(m, s);
    const uint32_t x = centred(m, s);
    return s == squared || (x != ONNX_NONE && x == centred(m, squared));
}

static bool match_norm(const Match *m, const OnnxNode *node, OnnxGroup *group)
{
    const uint32_t a = onnx_in(m->model, node, 0), b = onnx_in(m->model, node, 1);
    uint32_t squared, s;
    if (onnx_op_is(node, "Div") && is_deviation(m, b, 0.5, &squared))
        s = a;
    else if (onnx_op_is(node, "Mul") && is_deviation(m, b, -0.5, &squared))
        s = a;
    else if (onnx_op_is(node, "Mul") && is_deviation(m, a, -0.5, &squared))
        s = b;
    else
        return false;
    if (!is_same(m, s, squared))
        return false;
    const uint32_t x = centred(m, squared);
    *group = (OnnxGroup){.kind = x == ONNX_NONE ? ONNX_RMS_NORM : ONNX_LAYER_NORM,
                         .in = {x == ONNX_NONE ? squared : x},
                         .nodes = 1};
    return true;
}

/* The weight of a norm times it, or with it its bias. */
static bool match_affine(const Match *m, const OnnxNode *node, OnnxGroup *group)
{
    const bool times = onnx_op_is(node, "Mul"), plus = onnx_op_is(node, "Add");
    for (uint32_t i = 0; (times || plus) && i < 2; i++) {
        const uint32_t y = onnx_in(m->model, node, i), w = onnx_in(m->model, node, 1 - i);
        const OnnxValue *weight = onnx_value(m->model, w), *x = onnx_value(m->model, y);
        const OnnxNode *norm = maker(m, itself(m, y), NULL);
        const OnnxGroup *inner = norm ? &m->group[norm - onnx_node(m->model, 0)] : NULL;
        if (!inner || (inner->kind != ONNX_LAYER_NORM && inner->kind != ONNX_RMS_NORM) ||
            !weight->constant || weight->origin == ONNX_NONE || !weight->known ||
            !x->known || x->rank == 0 || onnx_elements(weight) != x->dim[x->rank - 1] ||
            inner->in[times ? 1 : 2] != ONNX_NONE || inner->in[2] != ONNX_NONE ||
            (plus && inner->in[1] == ONNX_NONE))
            continue;
        *group = *inner;
        group->in[times ? 1 : 2] = w;
        return true;
    }
    return false;
}

/* --- turns by place --- */

/* Which half of the elements of a value the other value is, behind copies: 0 or 1; -1: none. */
static int half_of(const Match *m, uint32_t part, uint32_t *whole)
{
    part = itself(m, part);
    const OnnxNode *node = maker(m, part, NULL);
    int64_t from[ONNX_MAX_RANK] = {0};
    if (!node || (!onnx_op_is(node, "Slice") && !onnx_op_is(node, "Split")))
        return -1;
    *whole = itself(m, onnx_in(m->model, node, 0));
    const OnnxValue *x = onnx_value(m->model, *whole), *y = onnx_value(m->model, part);
    if (!x->known || !y->known || x->rank == 0 || y->rank != x->rank ||
        x->dim[x->rank - 1] != 2 * y->dim[x->rank - 1] ||
        onnx_elements(x) != 2 * onnx_elements(y))
        return -1;
    if (onnx_op_is(node, "Split"))
        return onnx_out(m->model, node, 0) == part ? 0 : 1;
    if (onnx_ints_of(m->model, node, 1, "starts", from) != 1)
        return -1;
    return from[0] == 0 ? 0 : 1;
}

/* x, where the value is (-b, a) for x = (a, b); ONNX_NONE: it is something else. */
static uint32_t quarter_turn(const Match *m, uint32_t value)
{
    const OnnxNode *concat = maker(m, itself(m, value), "Concat");
    if (!concat || concat->n_in != 2)
        return ONNX_NONE;
    const uint32_t b = operand_of(m, onnx_in(m->model, concat, 0), "Neg", 0),
                   a = onnx_in(m->model, concat, 1);
    uint32_t x, y;
    return half_of(m, b, &x) == 1 && half_of(m, a, &y) == 0 && x == y ? x : ONNX_NONE;
}

/* The sum of x times something and of x, turned by a quarter, times something. */
static bool match_rotary(const Match *m, const OnnxNode *node, OnnxGroup *group)
{
    const OnnxNode *times[] = {maker(m, onnx_in(m->model, node, 0), "Mul"),
                               maker(m, onnx_in(m->model, node, 1), "Mul")};
    if (!onnx_op_is(node, "Add"))
        return false;
    for (uint32_t i = 0; times[0] && times[1] && i < 8; i++) {
        const uint32_t straight = onnx_in(m->model, times[i & 1], i >> 1 & 1),
                       turned = onnx_in(m->model, times[~i & 1], i >> 2 & 1);
        const uint32_t x = quarter_turn(m, turned);
        if (x == ONNX_NONE || itself(m, straight) != x ||
            !onnx_dtype_is_float(onnx_value(m->model, x)->dtype))
            continue;
        *group = (OnnxGroup){.kind = ONNX_ROTARY, .in = {x}, .nodes = 3};
        return true;
    }
    return false;
}

/* --- attention --- */

/* Whether a constant hides later keys. Where its numbers are not known, one of all queries and keys
 * does. */
static bool hides_later(const OnnxValue *mask)
{
    if (!mask->constant || !mask->known || mask->rank < 2)
        return false;
    const uint64_t rows = mask->dim[mask->rank - 2], columns = mask->dim[mask->rank - 1];
    if (mask->triangular || !mask->value)
        return mask->triangular || (rows > 1 && rows == columns);
    return onnx_is_triangular(mask->value, onnx_elements(mask), rows, columns);
}

/* Whether a mask is made with one that hides later keys. */
static bool is_causal(const Match *m, uint32_t value, uint32_t depth)
{
    const OnnxNode *node = maker(m, value, NULL);
    if (m->hides[value] == 0)
        m->hides[value] = hides_later(onnx_value(m->model, value)) ? 1 : -1;
    if (m->hides[value] > 0)
        return true;
    for (uint32_t i = 0; node && depth > 0 && i < MIN(node->n_in, 3); i++)
        if (is_causal(m, onnx_in(m->model, node, i), depth - 1))
            return true;
    return false;
}

/* The product of queries and keys that a softmax is of, behind masks and factors. */
static const OnnxNode *find_scores(const Match *m, uint32_t value, OnnxGroup *group,
                                   uint32_t depth)
{
    enum { MASK_DEPTH = 7 };
    const OnnxNode *node = maker(m, value, NULL);
    double number;
    if (!node || depth == 0 || onnx_value(m->model, value)->constant)
        return NULL;
    if (onnx_op_is(node, "MatMul"))
        return node;
    if (onnx_op_is(node, "Cast") || onnx_op_is(node, "Identity") ||
        onnx_op_is(node, "Reshape"))
        return find_scores(m, onnx_in(m->model, node, 0), group, depth - 1);
    for (uint32_t i = 0; i < 2 && onnx_arithmetic(node) == 2; i++)
        if (onnx_scalar(m->model, onnx_in(m->model, node, i), &number)) {
            return find_scores(m, onnx_in(m->model, node, 1 - i), group, depth - 1);
        }
    const bool where = onnx_op_is(node, "Where");
    for (uint32_t i = where ? 1 : 0;
         i < node->n_in && (where || onnx_arithmetic(node) == 2); i++) {
        const OnnxNode *scores =
            find_scores(m, onnx_in(m->model, node, i), group, depth - 1);
        if (!scores)
            continue;
        for (uint32_t k = 0; k < node->n_in; k++)
            if (k != i)
                group->causal |= is_causal(m, onnx_in(m->model, node, k), MASK_DEPTH);
        return scores;
    }
    return NULL;
}

/* The product of the probabilities that `value` is with values, behind dropout and guards against
 * rows of nothing. */
static const OnnxNode *find_product(const Match *m, uint32_t value, OnnxGroup *group,
                                    uint32_t depth)
{
    const uint32_t from = g_array_index(m->first, uint32_t, value),
                   to = g_array_index(m->first, uint32_t, value + 1);
    for (uint32_t u = from; u < to && depth > 0; u++) {
        const OnnxNode *node = onnx_node(m->model, g_array_index(m->user, uint32_t, u));
        const bool passes = onnx_op_is(node, "Cast") || onnx_op_is(node, "Identity") ||
                            onnx_op_is(node, "Dropout") || onnx_op_is(node, "Reshape") ||
                            onnx_op_is(node, "Where");
        if (onnx_op_is(node, "MatMul") && onnx_in(m->model, node, 0) == value)
            return node;
        const OnnxNode *found =
            passes ? find_product(m, onnx_out(m->model, node, 0), group, depth - 1)
                   : NULL;
        if (found)
            return found;
    }
    return NULL;
}

static void match_attention(const Match *m, const OnnxNode *softmax)
{
    enum { DEPTH = 7 };
    OnnxGroup group = {.kind = ONNX_ATTENTION, .nodes = 3};
    const OnnxNode *scores = find_scores(m, onnx_in(m->model, softmax, 0), &group, DEPTH);
    const OnnxNode *product =
        scores ? find_product(m, onnx_out(m->model, softmax, 0), &group, DEPTH) : NULL;
    if (!product)
        return;
    group.in[0] = onnx_in(m->model, scores, 0);
    group.in[1] = onnx_in(m->model, scores, 1);
    group.in[2] = onnx_in(m->model, product, 1);
    for (uint32_t i = 0; i < 3; i++)
        if (group.in[i] == ONNX_NONE || onnx_value(m->model, group.in[i])->constant)
            return;
    m->group[product - onnx_node(m->model, 0)] = group;
}

/* --- all of them --- */

static void index_users(Match *m)
{
    const uint32_t n_values = m->model->value->len;
    g_autofree uint32_t *at = g_new0(uint32_t, n_values + 2);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t n = 0; n < m->model->node->len; n++) {
            const OnnxNode *node = onnx_node(m->model, n);
            for (uint32_t i = 0; i < node->n_in; i++) {
                const uint32_t in = onnx_in(m->model, node, i);
                if (in == ONNX_NONE)
                    continue;
                if (pass == 0)
                    at[in + 1]++;
                else
                    g_array_index(m->user, uint32_t, at[in]++) = n;
            }
        }
        for (uint32_t v = 0; pass == 0 && v < n_values; v++)
            at[v + 1] += at[v];
        if (pass == 0) {
            g_array_append_vals(m->first, at, n_values + 1);
            g_array_set_size(m->user, at[n_values] + 1);
        }
    }
}

static void match_node(const Match *m, uint32_t n)
{
    const OnnxNode *node = onnx_node(m->model, n);
    const uint32_t made = onnx_out(m->model, node, 0);
    OnnxGroup *group = &m->group[n];
    if (group->kind == ONNX_ATTENTION || made == ONNX_NONE ||
        match_norm(m, node, group) || match_affine(m, node, group) ||
        match_rotary(m, node, group))
        return;
    const OnnxCurve *curve = &m->curve[made];
    if (curve->root == made || curve->nodes == 0)
        return;
    group->kind = ONNX_FUNCTION;
    group->in[0] = curve->root;
    group->nodes = curve->nodes;
    group->function = onnx_function_of(curve, &group->scale);
}

OnnxGroup *onnx_match(const OnnxModel *model)
{
    Match m = {.model = model,
               .curve = onnx_curves(model),
               .user = g_array_new(false, true, sizeof(uint32_t)),
               .first = g_array_new(false, true, sizeof(uint32_t)),
               .group = g_new0(OnnxGroup, model->node->len),
               .hides = g_new0(int8_t, model->value->len + 1)};
    index_users(&m);
    for (uint32_t n = 0; n < model->node->len; n++)
        if (onnx_op_is(onnx_node(model, n), "Softmax"))
            match_attention(&m, onnx_node(model, n));
    for (uint32_t n = 0; n < model->node->len; n++)
        match_node(&m, n);
    free_each(m.curve, m.hides);
    unref_arrays(m.user, m.first);
    return m.group;
}
