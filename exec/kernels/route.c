/* Routing to the best `top` of E experts by a weight for each token and expert (Shazeer et al.
 * 2017; with sigmoid scores and groups DeepSeek-AI 2024, Eq. 12 to 15 and Sec. 2.1.2), and the
 * copies of tokens that experts work on. An expert has C slots per group of S tokens, which it
 * gives out in their order; a token that finds no free slot is dropped by that expert. */
#include <math.h>

#include "exec/kernels/kernels.h"
#include "exec/kernels/vector.h"

/* --- weights --- */

/* Scores of one token: score [n]. */
static void scores_of(const OpAttr *attr, const double *logit, uint64_t n, double *score)
{
    if (!attr->sigmoid)
        softmax(logit, score, n);
    for (uint64_t e = 0; attr->sigmoid && e < n; e++)
        score[e] = sigmoid_of(logit[e]).value;
}

/* The sum of the two best of n scores. */
static double best_two(const double *score, uint64_t n)
{
    double best = 0, second = 0;
    for (uint64_t e = 0; e < n; e++) {
        second = fmax(second, fmin(best, score[e]));
        best = fmax(best, score[e]);
    }
    return best + second;
}

/* Whether number e is among the best: fewer than `top` are more, or as much and come before it. */
static bool is_chosen(const double *score, uint64_t n, uint64_t e, uint32_t top)
{
    KILTER_ASSERT(e < n);
    uint32_t better = 0;
    for (uint64_t i = 0; i < n; i++)
        better += score[i] > score[e] || (score[i] == score[e] && i < e);
    return better < top;
}

/* The scores of experts in the groups of a token, -1 of the others: open [n]. */
static void open_groups(const OpAttr *attr, const double *score, uint64_t n, double *open)
{
    const uint64_t groups = MAX(attr->groups, 1), size = n / groups;
    double sum[MOST_EXPERT_GROUPS];
    for (uint64_t g = 0; g < groups; g++)
        sum[g] = best_two(&score[g * size], size);
    for (uint64_t e = 0; e < n; e++)
        open[e] = groups == 1 || is_chosen(sum, groups, e / size, attr->top_groups)
                      ? score[e]
                      : -1;
}

/* The factor from a score to its weight: scale, divided by the sum of the chosen scores if weights
 * are normalised. */
static double unit_of(const OpAttr *attr, const double *open, uint64_t n)
{
    double sum = 0;
    for (uint64_t e = 0; e < n; e++)
        sum += is_chosen(open, n, e, attr->top) ? open[e] : 0;
    return attr->normalised ? attr->scale / sum : attr->scale;
}

/* In: logit[*,E]. Out: weight[*,E], 0 where the expert is not chosen. */
void kernel_gate_topk(const KernelCall *call)
{
    const OpAttr *attr = &call->op->attr;
    const uint64_t n = call->in[0].dim[call->in[0].rank - 1],
                   tokens = kernel_rows(&call->in[0]);
    g_autofree double *score = g_new(double, n + 1), *open = g_new(double, n + 1);
    for (uint64_t s = 0; s < tokens; s++) {
        scores_of(attr, call->in[0].data + s * n, n, score);
        open_groups(attr, score, n, open);
        const double unit = unit_of(attr, open, n);
        for (uint64_t e = 0; e < n; e++)
            call->out[0].data[s * n + e] =
                is_chosen(open, n, e, attr->top) ? unit * score[e] : 0;
    }
}

/* With the choice held fixed, p the scores, u the unit, over the chosen: dp = u (dw - sum dw p /
 * sum p) if normalised, u dw if not; dlogit = p (dp - sum p dp), or p (1 - p) dp of sigmoids. In:
 * dweight, logit [*,E]. */
void kernel_gate_topk_dx(const KernelCall *call)
{
    const OpAttr *attr = &call->op->attr;
    const uint64_t n = call->in[1].dim[call->in[1].rank - 1],
                   tokens = kernel_rows(&call->in[1]);
    g_autofree double *score = g_new(double, n + 1), *open = g_new(double, n + 1),
                      *dp = g_new(double, n + 1);
    for (uint64_t s = 0; s < tokens; s++) {
        const double *dw = call->in[0].data + s * n;
        double sum = 0, dot = 0, mean = 0;
        scores_of(attr, call->in[1].data + s * n, n, score);
        open_groups(attr, score, n, open);
        const double unit = unit_of(attr, open, n);
        for (uint64_t e = 0; e < n; e++) {
            dp[e] = is_chosen(open, n, e, attr->top) ? 1 : 0;
            sum += dp[e] * score[e];
            dot += dp[e] * score[e] * dw[e];
        }
        for (uint64_t e = 0; e < n; e++) {
            dp[e] *= unit * (dw[e] - (attr->normalised ? dot / sum : 0));
            mean += score[e] * dp[e];
        }
        for (uint64_t e = 0; e < n; e++)
            call->out[0].data[s * n + e] =
                score[e] * dp[e] * (attr->sigmoid ? 1 - score[e] : 1) -
                (attr->sigmoid ? 0 : score[e] * mean);
    }
}

/* --- copies --- */

/* A token in a slot: the indices of the first elements of both, and of the weight. */
typedef struct {
    uint64_t token, slot, weight;
} Copy;

typedef struct {
    const ExecTensor *weight, *slots; /* [b,S,e], [b,e,C,d] */
} Routing;

/* The next copy after `copy` in the order of group, expert and token; *used: slots given out by the
 * expert. False after the last. */
static bool next_copy(const Routing *r, uint64_t *at, uint64_t *used, Copy *copy)
{
    const uint64_t seq = r->weight->dim[1], experts = r->weight->dim[2];
    const uint64_t slots = r->slots->dim[2], all = r->weight->dim[0] * experts * seq;
    for (; *at < all; ++*at) {
        const uint64_t s = *at % seq, expert = *at / seq; /* counted over all groups */
        const uint64_t token = expert / experts * seq + s;
        *used = s == 0 ? 0 : *used;
        copy->weight = token * experts + expert % experts;
        if (r->weight->data[copy->weight] > 0 && *used < slots) {
            copy->token = token * r->slots->dim[3];
            copy->slot = (expert * slots + (*used)++) * r->slots->dim[3];
            ++*at;
            return true;
        }
    }
    return false;
}

/* A kernel that takes a step for each element i of each copy. choices, room: the tensors of the
 * routing. */
#define COPIES_EACH(name, choices, room, step)                                   \
    void kernel_##name(const KernelCall *call)                                   \
    {                                                                            \
        const ExecTensor *const in = call->in, *const out = call->out;           \
        const Routing routing = {&choices, &room};                               \
        Copy copy;                                                               \
        for (uint64_t at = 0, used = 0; next_copy(&routing, &at, &used, &copy);) \
            for (uint64_t i = 0; i < routing.slots->dim[3]; i++) {               \
                step;                                                            \
            }                                                                    \
    }

/* In: weight[b,S,e], x[b,S,d]. Out: slots[b,e,C,d]; slots without a token are 0. */
COPIES_EACH(route, in[0], out[0], out->data[copy.slot + i] = in[1].data[copy.token + i])

/* In: slots[b,e,C,d], weight[b,S,e]. Out: y[b,S,d], the sum of a token's slots. */
COPIES_EACH(unroute, in[1], in[0], out->data[copy.token + i] += in[0].data[copy.slot + i])

/* In: slots[b,e,C,d], weight[b,S,e]. Out: y[b,e,C,d], 0 in slots without a token. */
COPIES_EACH(route_weigh, in[1], in[0],
            out->data[copy.slot + i] = in[1].data[copy.weight] *
                                       in[0].data[copy.slot + i])

/* dweight = sum dy x = sum dy y / weight: y is kept for the product that reads it, x need not be.
 * In: dy, y [b,e,C,d], weight[b,S,e]. Out: dweight[b,S,e]. */
COPIES_EACH(route_weigh_dw, in[2], in[1],
            out->data[copy.weight] += in[0].data[copy.slot + i] *
                                      in[1].data[copy.slot + i] / in[2].data[copy.weight])

/* In: x[b,e,c,*], bias[e,*]. */
void kernel_expert_bias(const KernelCall *call)
{
    const ExecTensor *x = &call->in[0];
    const uint64_t inner = kernel_inner(x, 3), slots = x->dim[2] * inner,
                   all = exec_tensor_elements(x);
    for (uint64_t i = 0; i < all; i++)
        call->out[0].data[i] =
            x->data[i] + call->in[1].data[i / slots % x->dim[1] * inner + i % inner];
}
