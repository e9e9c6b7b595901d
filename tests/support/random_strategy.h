/* Random strategies for `manual`. */
#ifndef KILTER_TESTS_SUPPORT_RANDOM_STRATEGY_H
#define KILTER_TESTS_SUPPORT_RANDOM_STRATEGY_H

#include <glib.h>

static inline uint32_t pick(GRand *rand, uint32_t n)
{
    return (uint32_t)g_rand_int_range(rand, 0, (gint32)n);
}

static inline uint32_t random_divisor(GRand *rand, uint32_t n)
{
    uint32_t d;
    do
        d = 1 + pick(rand, MIN(n, 8));
    while (n % d != 0);
    return d;
}

/* Words for --set, with degrees that give all GPUs something to do. */
static inline char *random_keys(GRand *rand, uint32_t gpus, bool experts)
{
    enum { PP, TP, DP, ANY };
    static const struct {
        uint32_t needs; /* the degree without which the key has no effect */
        const char *key, *value[6];
    } key[] = {
        {PP, "schedule", {"gpipe", "1f1b", "1f1b", "1f1b", "zb-h1", "interleaved"}},
        {ANY, "micro_batch", {"1", "1", "1", "2", "2", "4"}},
        {DP, "zero", {"0", "0", "1", "1", "2", "3"}},
        {TP, "sequence_parallel", {"off", "off", "off", "on", "on", "on"}},
        {ANY, "recompute", {"none", "none", "none", "none", "selective", "full"}},
        {ANY, "bucket", {"0", "0", "1KiB", "25MiB", "25MiB", "25MiB"}},
    };
    const uint32_t pp = random_divisor(rand, gpus), tp = random_divisor(rand, gpus / pp);
    const uint32_t left = gpus / pp / tp, cp = random_divisor(rand, left),
                   ep = random_divisor(rand, left / cp);
    const uint32_t degree[] = {[PP] = pp, [TP] = tp, [DP] = left / cp, [ANY] = 2};
    GString *words = g_string_new("");
    g_string_printf(words, "pp=%u tp=%u cp=%u ep=%u dp=%u", pp, tp, cp, experts ? ep : 1,
                    left / cp);
    for (uint32_t i = 0; i < G_N_ELEMENTS(key); i++)
        if (degree[key[i].needs] > 1)
            g_string_append_printf(words, " %s=%s", key[i].key,
                                   key[i].value[pick(rand, 6)]);
    return g_string_free(words, FALSE);
}

/* A strategy for 8 devices and 24 samples. All are possible, except some with `all` degrees, which
 * also cut the context and, with `experts`, the experts. */
static inline char *random_strategy(GRand *rand, bool all, bool experts)
{
    static const char *const again[] = {
        "none",          "selective",           "full",    "full@1-2",
        "selective@1-4", "core_attn+layernorm", "mlp@1-3", "alternate"};
    static const char *const schedule[] = {"1f1b",          "gpipe",    "zb-h1",  "zb-h2",
                                           "interleaved",   "zb-v",     "v-half", "v-min",
                                           "breadth-first", "dualpipev"};
    static const uint32_t degree[] = {1, 2, 4};
    const uint32_t pp = degree[pick(rand, 3)], tp = degree[pick(rand, pp == 4 ? 2 : 3)];
    const uint32_t left = 8 / pp / tp, many = all ? degree[pick(rand, 3)] : 1;
    const uint32_t cp = all && pick(rand, 2) ? MIN(many, left) : 1, dp = left / cp;
    const uint32_t asked = degree[pick(rand, 3)], m = 24 % (asked * dp) ? 1 : asked;
    uint32_t at = pp == 1 ? 0 : pick(rand, pp == 2 ? 10 : 4);
    if ((at == 9 && m < 4) || (at == 1 && m == 1))
        at = 0;
    GString *set = g_string_new("");
    g_string_append_printf(set, "pp=%u tp=%u microbatches=%u recompute=%s", pp, tp, m,
                           again[pick(rand, G_N_ELEMENTS(again))]);
    if (tp > 1)
        g_string_append_printf(set, " sequence_parallel=%s",
                               pick(rand, 2) ? "on" : "off");
    g_string_append_printf(set, " schedule=%s", schedule[at]);
    if (cp > 1)
        g_string_append_printf(set, " cp=%u cp_comm=%s", cp,
                               pick(rand, 2) ? "a2a" : "allgather");
    const bool has_ep = experts && pick(rand, 3);
    if (has_ep) {
        const uint32_t ep = MIN(degree[pick(rand, 3)], dp * cp);
        const bool whole = tp > 1 && pick(rand, 2);
        g_string_append_printf(set, " ep=%u%s", whole ? ep * tp : ep,
                               whole ? " etp=1" : "");
    } else if (dp == 2 && pick(rand, 2))
        g_string_append(set, " shares=1,2");
    const uint32_t zero = dp * cp > 1 ? pick(rand, 4) : 0;
    g_string_append_printf(set, " zero=%u", zero);
    if (dp == 4 && zero && pick(rand, 2))
        g_string_append(set, " zero_ranks=2");
    return g_string_free(set, FALSE);
}

/* Adds random numbers of layers of n_stages stages, which add up to n_layers. */
static inline void add_layers(GRand *rand, uint32_t n_stages, uint32_t n_layers,
                              GString *set)
{
    for (uint32_t s = 0, left = n_layers; s < n_stages; s++) {
        const uint32_t rest = n_stages - s - 1,
                       n = rest ? 1 + pick(rand, left - rest) : left;
        g_string_append_printf(set, "%s%u", s ? "," : "", n);
        left -= n;
    }
}

/* A strategy of pipelines with unlike stages, for 8 devices, 24 samples and 4 layers. All are
 * possible, except where pipelines have too few samples for a microbatch's replicas, or the model
 * no experts. */
static inline char *random_pipelines(GRand *rand)
{
    static const char *const schedule[] = {"1f1b", "gpipe", "zb-h1", "zb-h2"};
    static const char *const again[] = {"none", "selective", "full", "full@1-2"};
    static const uint32_t stages[][3] = {{1, 2, 0}, {2, 1, 0}, {4, 2, 0}, {1, 4, 0},
                                         {2, 2, 0}, {2, 2, 1}, {2, 1, 1}, {4, 2, 2}};
    static const uint32_t microbatches[] = {3, 4, 6, 8};
    const uint32_t *of = stages[pick(rand, G_N_ELEMENTS(stages))], n = of[2] ? 3 : 2;
    const uint32_t tp = n == 2 && of[0] * of[1] < 8 ? 1 + pick(rand, 2) : 1;
    GString *set = g_string_new("pipeline_layers=");
    for (uint32_t k = 0; k < n; k++) {
        g_string_append(set, k ? ";" : "");
        add_layers(rand, of[k], 4, set);
    }
    g_string_append(set, " pipeline_shares=");
    for (uint32_t k = 0; k < n; k++)
        g_string_append_printf(set, "%s%u", k ? "," : "", 1 + pick(rand, 3));
    if (n ==
        3) { /* of 8 devices, in an order of their own, the first pipeline has half */
        g_string_append(set, " ranks=");
        for (uint32_t k = 0, left = 8; k < n; k++)
            for (uint32_t s = 0; s < of[k]; s++)
                for (uint32_t i = 0; i < (k ? 2 : 4) / of[k]; i++, left--)
                    g_string_append_printf(set, "%s%u",
                                           i          ? ","
                                           : left < 8 ? ";"
                                                      : "",
                                           left - 1);
    }
    g_string_append_printf(
        set,
        " microbatches=%u tp=%u schedule=%s recompute=%s zero=%u sequence_parallel=%s",
        microbatches[pick(rand, 4)], tp, schedule[pick(rand, 4)], again[pick(rand, 4)],
        pick(rand, 2), tp > 1 && pick(rand, 2) ? "on" : "off");
    if (n == 2 && MAX(of[0], of[1]) * tp <= 2)
        g_string_append(set, pick(rand, 2) ? " cp=2" : pick(rand, 2) ? " ep=2" : "");
    return g_string_free(set, FALSE);
}

/* A strategy of stages with unlike degrees, for 8 devices, 24 samples and 4 layers; some are
 * impossible. */
static inline char *random_stages(GRand *rand)
{
    static const char *const degrees[] = {"stage_tp=2,1 stage_dp=2,4",
                                          "stage_tp=4,2 stage_dp=1,2",
                                          "stage_tp=1,2,4 stage_dp=2,1,1",
                                          "stage_tp=2,2,1 stage_dp=1,2,2",
                                          "stage_tp=1,1,2,1 stage_dp=1,3,1,2",
                                          "stage_tp=4,1 stage_dp=1,4",
                                          "stage_tp=1,2 stage_dp=4,2",
                                          "stage_tp=1,1 stage_dp=6,2",
                                          "stage_dp=4,2 stage_cp=1,2",
                                          "stage_cp=4,2 tp=1",
                                          "stage_cp=2,1 stage_tp=1,2 stage_dp=2,2",
                                          "pp=2 tp=2",
                                          "stage_dp=2,4,2"};
    static const char *const schedule[] = {"1f1b",  "gpipe",       "zb-h1",
                                           "zb-h2", "interleaved", "v-min"};
    static const char *const again[] = {"none", "selective", "full", "full@1-2"};
    static const char *const zero[] = {"stage_zero=0,1", "stage_zero=3,2", "zero=1",
                                       "zero=3", "stage_zero=1,3"};
    static const char *const experts[] = {"ep=2", "stage_ep=1,2", "stage_ep=2,1",
                                          "stage_ep=4,2"};
    static const uint32_t microbatches[] = {2, 3, 4, 6};
    const uint32_t at = pick(rand, G_N_ELEMENTS(degrees));
    const bool two = at < 2 || (at > 4 && at < 12);
    GString *set = g_string_new(degrees[at]);
    g_string_append_printf(set, " microbatches=%u schedule=%s recompute=%s",
                           microbatches[pick(rand, 4)], schedule[pick(rand, two ? 6 : 4)],
                           again[pick(rand, 4)]);
    if (pick(rand, 2))
        g_string_append_printf(set, " %s", two ? zero[pick(rand, 5)] : "zero=2");
    if (two && pick(rand, 4) == 0)
        g_string_append_printf(set, " %s", experts[pick(rand, 4)]);
    return g_string_free(set, FALSE);
}

#endif
