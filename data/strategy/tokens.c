/* Tokens of experts: how unevenly the dropless experts of each layer are chosen. */
#include "data/base/error.h"
#include "data/strategy/strategy.h"

/* Whether the op hands tokens out to experts without a limit. */
static bool is_dropless(const Op *op)
{
    return op->kind == OP_ROUTE && op->attr.dropless;
}

/* The tokens of experts up to each one over those of an even expert: of a list of counts, or with
 * `imbalance` of a first expert that has so many times the mean. */
static double *sums_of(const Strategy *s, const char *list, uint32_t experts)
{
    g_auto(GStrv) item = g_strsplit(list ? list : "", " ", -1);
    double *sum = g_new0(double, experts + 1);
    const double other = experts > 1 ? (experts - s->imbalance) / (experts - 1) : 1;
    for (uint32_t e = 0; e < experts; e++)
        sum[e + 1] = sum[e] + (list     ? g_ascii_strtod(item[e], NULL)
                               : e == 0 ? s->imbalance
                                        : other);
    const double mean = sum[experts] / experts;
    for (uint32_t e = 1; e <= experts; e++)
        sum[e] /= mean;
    return sum;
}

/* Sums of the layer of an op, if they can be: each token chooses an expert at most once. */
static bool add_layer(const Strategy *s, const Graph *graph, const Op *op,
                      const char *list, GPtrArray *tokens, GError **error)
{
    const uint32_t experts = graph_tensor(graph, op->out[0])->dim[1];
    const double most = (double)graph_tensor(graph, op->in[1])->dim[1] /
                        graph_tensor(graph, op->out[0])->dim[2];
    const char *key = list ? "expert_tokens" : "imbalance";
    g_auto(GStrv) item = g_strsplit(list ? list : "", " ", -1);
    if (list && g_strv_length(item) != experts)
        return refuse(error,
                      "expert_tokens: expected %u numbers for the experts of %s, got %u",
                      experts, graph_layer_name(graph, op->layer), g_strv_length(item));
    double *sum = sums_of(s, list, experts), fullest = 0;
    put_block(tokens->pdata[op->layer], sum);
    for (uint32_t e = 0; e < experts; e++)
        fullest = MAX(fullest, sum[e + 1] - sum[e]);
    return fullest <= most * (1 + 1e-9) ||
           refuse(error,
                  "%s: expected a fullest expert with at most %g times the mean, where "
                  "each token chooses it, got %g",
                  key, most, fullest);
}

bool strategy_expert_tokens(const Strategy *s, const Graph *graph, GPtrArray **tokens,
                            GError **error)
{
    uint32_t n = 0, at = 0;
    g_auto(GStrv) list = g_strsplit(s->expert_tokens ? s->expert_tokens : "", "; ", -1);
    const uint32_t n_lists = g_strv_length(list);
    *tokens = NULL;
    if (s->imbalance <= 1 && !s->expert_tokens)
        return true;
    if (s->imbalance > 1 && s->expert_tokens)
        return refuse(error, "expected imbalance or expert_tokens, got both");
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        n += is_dropless(graph_get_op(graph, id));
    if (n == 0)
        return refuse(
            error,
            "%s: expected a model with capacity_factor=0 (dropless experts), as "
            "a capacity gives all experts the same slots",
            s->expert_tokens ? "expert_tokens" : "imbalance");
    if (n_lists > 1 && n_lists != n)
        return refuse(error,
                      "expert_tokens: expected a list for all layers or one for each of "
                      "%u with experts, got %u",
                      n, n_lists);
    *tokens = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_set_size(*tokens, (int)graph_n_layers(graph));
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        if (is_dropless(graph_get_op(graph, id)) &&
            !add_layer(s, graph, graph_get_op(graph, id),
                       n_lists ? list[n_lists > 1 ? at++ : 0] : NULL, *tokens, error)) {
            g_clear_pointer(tokens, g_ptr_array_unref);
            return false;
        }
    return true;
}
