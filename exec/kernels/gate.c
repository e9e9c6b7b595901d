/* Gating with capacity: which experts a token goes to, and with which weight.
 *
 *   gate_top2   GShard (Lepikhin et al. 2021, Algorithm 1, without its random dispatch of
 *               the second expert and its auxiliary loss): the best and the second best
 *               expert by probability, with weights p1/(p1+p2) and p2/(p1+p2)
 *   gate_top1   Switch Transformer (Fedus et al. 2021, Sec. 2.1, without its auxiliary
 *               loss): the best expert, with weight p1
 *
 * In each group b every token s chooses among E experts. An expert has C slots per group,
 * given out in order of s, first choices before second ones; a choice that finds no
 * slot is dropped. */
#include "exec/kernels/kernels.h"
#include "exec/kernels/vector.h"

enum { CHOICES = 2 };
static const uint32_t NO_SLOT = UINT32_MAX;

/* Where one token goes. Top-2 with a single expert is one choice of weight 1. */
typedef struct {
    uint32_t n_choices;
    uint32_t expert[CHOICES];
    uint32_t slot[CHOICES]; /* NO_SLOT: dropped */
    double weight[CHOICES];
} Route;

/* The first of the largest numbers, not counting index `except`. */
static uint32_t argmax(const double *p, uint32_t n, uint32_t except)
{
    uint32_t best = except == 0 ? 1 : 0;
    for (uint32_t i = best + 1; i < n; i++)
        if (i != except && p[i] > p[best])
            best = i;
    return best;
}

static Route choose(const double *p, uint32_t experts, uint32_t top)
{
    Route route = {.n_choices = MIN(experts, top), .slot = {NO_SLOT, NO_SLOT}};
    if (route.n_choices == 0)
        return route;
    route.expert[0] = argmax(p, experts, UINT32_MAX);
    route.weight[0] = top == 1 ? p[route.expert[0]] : 1;
    if (route.n_choices == CHOICES) {
        route.expert[1] = argmax(p, experts, route.expert[0]);
        const double p1 = p[route.expert[0]], p2 = p[route.expert[1]];
        route.weight[0] = p1 / (p1 + p2);
        route.weight[1] = p2 / (p1 + p2);
    }
    return route;
}

/* Routes of the tokens of one group: logit[S,E], probability p[S,E] (computed here). */
static void route_group(const double *logit, uint32_t seq, uint32_t experts,
                        uint32_t capacity, uint32_t top, double *p, Route *route)
{
    g_autofree uint32_t *used = g_new0(uint32_t, experts);
    for (uint32_t s = 0; s < seq; s++) {
        softmax(logit + (uint64_t)s * experts, p + (uint64_t)s * experts, experts);
        route[s] = choose(p + (uint64_t)s * experts, experts, top);
    }
    for (uint32_t c = 0; c < CHOICES; c++)
        for (uint32_t s = 0; s < seq; s++)
            if (c < route[s].n_choices && used[route[s].expert[c]] < capacity)
                route[s].slot[c] = used[route[s].expert[c]]++;
}

/* Routes of all tokens, [b,S]; *p: their probabilities [b,S,E]. Caller frees both. NULL where there
 * is no token or no expert. */
static Route *routes_of(const ExecTensor *logit, uint32_t capacity, uint32_t top,
                        double **p)
{
    const uint32_t seq = logit->dim[1], experts = logit->dim[2];
    const uint64_t tokens = (uint64_t)logit->dim[0] * seq;
    if (tokens == 0 || experts == 0)
        return NULL;
    Route *route = g_new(Route, tokens);
    *p = g_new(double, tokens *experts);
    for (uint64_t s = 0; s < tokens; s += seq)
        route_group(logit->data + s * experts, seq, experts, capacity, top,
                    *p + s * experts, route + s);
    return route;
}

/* In: logit[b,S,E]. Out: combine[b,S,E,C], the weights; dispatch[b,S,E,C], 1 where
 * they are positive. */
static void gate(const KernelCall *call, uint32_t top)
{
    g_assert(top <= CHOICES);
    const ExecTensor *logit = &call->in[0], *combine = &call->out[0];
    const uint32_t experts = logit->dim[2], capacity = combine->dim[3];
    g_autofree double *p = NULL;
    g_autofree Route *route = routes_of(logit, capacity, top, &p);
    const uint64_t tokens = route ? (uint64_t)logit->dim[0] * logit->dim[1] : 0;
    for (uint64_t s = 0; s < tokens; s++)
        for (uint32_t c = 0; c < route[s].n_choices; c++) {
            if (route[s].slot[c] == NO_SLOT)
                continue;
            const uint64_t at =
                (s * experts + route[s].expert[c]) * capacity + route[s].slot[c];
            combine->data[at] = route[s].weight[c];
            call->out[1].data[at] = route[s].weight[c] > 0;
        }
}

/* d logit of one token from the gradients dw of its weights:
 *
 *     top-2: dp1 = p2 (dw1 - dw2) / (p1+p2)^2, dp2 = p1 (dw2 - dw1) / (p1+p2)^2
 *     top-1: dp1 = dw1
 *     dlogit = p (dp - sum p dp) */
static void token_dx(const Route *route, uint32_t top, const double dw[CHOICES],
                     const double *p, uint32_t experts, double *dlogit)
{
    if (route->n_choices < top)
        return;
    double dp[CHOICES] = {dw[0]}, mean = 0;
    if (top == CHOICES) {
        const double p1 = p[route->expert[0]], p2 = p[route->expert[1]];
        const double slope = (dw[0] - dw[1]) / ((p1 + p2) * (p1 + p2));
        dp[0] = p2 * slope;
        dp[1] = -p1 * slope;
    }
    for (uint32_t c = 0; c < top; c++)
        mean += p[route->expert[c]] * dp[c];
    for (uint32_t e = 0; e < experts; e++)
        dlogit[e] = -p[e] * mean;
    for (uint32_t c = 0; c < top; c++)
        dlogit[route->expert[c]] += p[route->expert[c]] * dp[c];
}

/* The gradient with the routing held fixed. In: dcombine[b,S,E,C], logit[b,S,E]. Out:
 * dlogit[b,S,E]. */
static void gate_dx(const KernelCall *call, uint32_t top)
{
    g_assert(top <= CHOICES);
    const ExecTensor *dcombine = &call->in[0], *logit = &call->in[1];
    const uint32_t experts = logit->dim[2], capacity = dcombine->dim[3];
    g_autofree double *p = NULL;
    g_autofree Route *route = routes_of(logit, capacity, top, &p);
    const uint64_t tokens = route ? (uint64_t)logit->dim[0] * logit->dim[1] : 0;
    for (uint64_t s = 0; s < tokens; s++) {
        double dw[CHOICES] = {0};
        for (uint32_t c = 0; c < route[s].n_choices; c++)
            if (route[s].slot[c] != NO_SLOT)
                dw[c] = dcombine->data[(s * experts + route[s].expert[c]) * capacity +
                                       route[s].slot[c]];
        token_dx(&route[s], top, dw, p + s * experts, experts,
                 call->out[0].data + s * experts);
    }
}

KERNEL(gate_top1, gate(call, 1))
KERNEL(gate_top1_dx, gate_dx(call, 1))
KERNEL(gate_top2, gate(call, CHOICES))
KERNEL(gate_top2_dx, gate_dx(call, CHOICES))
