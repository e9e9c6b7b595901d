/* A strategy laid out over a graph's layers and a cluster's devices. */
#include <string.h>

#include "data/base/assert.h"
#include "data/base/error.h"
#include "data/base/free.h"
#include "data/strategy/strategy.h"

/* The numbers of a list, which has been checked; NULL: none. The caller frees them. */
static uint32_t *numbers_of(const char *text, uint32_t *n)
{
    g_auto(GStrv) item = g_strsplit(text ? text : "", " ", -1);
    uint32_t *number = g_new0(uint32_t, g_strv_length(item) + 1);
    *n = 0;
    for (uint32_t i = 0; item[i]; i++)
        if (*item[i])
            number[(*n)++] = (uint32_t)g_ascii_strtoull(item[i], NULL, 10);
    return number;
}

/* --- degrees --- */

/* Checks that the divisors of states and experts divide the number of replicas. */
static bool check_divisors(const Strategy *s, const StrategyLayout *l, GError **error)
{
    KILTER_ASSERT(l->zero_ranks > 0 && l->cp > 0);
    if (l->dp * l->cp % l->zero_ranks != 0 ||
        (l->zero && l->zero_ranks > 1 && l->zero_ranks % l->cp != 0))
        return refuse(error, "zero_ranks=%u: expected a divisor of dp=%u%s",
                      l->zero_ranks, l->dp,
                      l->cp > 1 ? " times cp, and a multiple of cp" : "");
    if (l->dp * l->cp % l->ep != 0)
        return refuse(error, "ep=%u: expected a divisor of dp%s%s=%u", s->ep,
                      l->cp > 1 ? " times cp" : "", l->experts ? " times tp" : "",
                      l->dp * l->cp * (l->experts ? l->tp : 1));
    return l->ep == 1 || !s->shares ||
           refuse(error, "ep=%u: expected equal shares of the batch", l->ep);
}

/* Without tensor parallelism in experts the devices of a replica divide them, too. */
static bool find_experts(const Strategy *s, StrategyLayout *l, GError **error)
{
    const uint32_t etp = s->etp ? s->etp : l->tp;
    l->experts = l->tp > 1 && etp == 1;
    if (etp != l->tp && etp != 1)
        return refuse(error, "etp=%u: expected 1 or tp=%u", etp, l->tp);
    if (l->experts && l->ep % l->tp != 0)
        return refuse(error,
                      "ep=%u: expected a multiple of tp=%u with etp=1, as the devices "
                      "that tp joins share the experts",
                      l->ep, l->tp);
    l->ep /= l->experts ? l->tp : 1;
    return true;
}

/* The first list of degrees by device group; NULL: none, and groups are alike. */
static const char *stage_list(const Strategy *s)
{
    const char *const list[] = {s->stage_tp, s->stage_dp,   s->stage_cp,
                                s->stage_ep, s->stage_zero, s->stage_micro_batch};
    uint32_t i = 0;
    while (i + 1 < G_N_ELEMENTS(list) && !list[i])
        i++;
    return list[i];
}

/* Takes the degrees that lists say, or the keys for all groups; 0: neither. */
static bool take_degrees(const Strategy *s, StrategyLayout *l, GError **error)
{
    const struct {
        const char *key, *list;
        uint32_t all, none; /* the key for all groups; none: it is not given */
        size_t of;
    } row[] = {
        {"stage_tp", s->stage_tp, s->tp, 0, offsetof(StageDegrees, tp)},
        {"stage_dp", s->stage_dp, s->dp, 0, offsetof(StageDegrees, dp)},
        {"stage_cp", s->stage_cp, s->cp, 1, offsetof(StageDegrees, cp)},
        {"stage_ep", s->stage_ep, s->ep, 1, offsetof(StageDegrees, ep)},
        {"stage_zero", s->stage_zero, s->zero, 0, offsetof(StageDegrees, zero)},
    };
    l->stage = g_new0(StageDegrees, l->pp + 1);
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++) {
        uint32_t n;
        g_autofree uint32_t *number = numbers_of(row[i].list, &n);
        if (row[i].list && (n != l->pp || row[i].all != row[i].none))
            return refuse(error, "%s: expected pp=%u numbers, and none for all stages",
                          row[i].key, l->pp);
        for (uint32_t p = 0; p < l->pp; p++)
            G_STRUCT_MEMBER(uint32_t, &l->stage[p], row[i].of) =
                row[i].list ? number[p] : row[i].all;
    }
    return true;
}

/* Where tp or dp is not given, groups have equally many devices. */
static bool complete_degrees(const Strategy *s, uint32_t n_devices, StrategyLayout *l,
                             GError **error)
{
    const bool tp = s->tp || s->stage_tp, dp = s->dp || s->stage_dp;
    uint64_t sum = 0;
    items_at (StageDegrees, of, p, l->stage, l->pp) {
        const uint32_t each = n_devices / l->pp / MAX(of->cp, 1);
        of->tp = tp ? of->tp : dp ? MAX(each / MAX(of->dp, 1), 1) : 1;
        of->dp = dp ? of->dp : MAX(each / MAX(of->tp, 1), 1);
        sum += (uint64_t)of->tp * of->dp * of->cp;
        if (!of->tp || !of->dp || !of->cp || !of->ep || of->zero > 3 ||
            (uint64_t)of->dp * of->cp % of->ep != 0)
            return refuse(error,
                          "stage %u, tp=%u dp=%u cp=%u ep=%u zero=%u: expected numbers "
                          "above 0, ep a divisor of dp times cp, and zero from 0 to 3",
                          p, of->tp, of->dp, of->cp, of->ep, of->zero);
        if (s->sequence_parallel &&
            (of->tp != l->stage[0].tp || of->cp != l->stage[0].cp))
            return refuse(error,
                          "sequence_parallel: expected stages with the same tp and cp");
        l->cp = MAX(l->cp, of->cp);
        l->ep = MAX(l->ep, of->ep);
        l->zero = MAX(l->zero, of->zero);
    }
    l->tp = l->stage[0].tp;
    l->dp = l->stage[0].dp;
    return sum == n_devices ||
           refuse(error, "stages: expected degrees for %u GPUs, got %" G_GUINT64_FORMAT,
                  n_devices, sum);
}

static bool find_unlike(const Strategy *s, uint32_t n_devices, StrategyLayout *l,
                        GError **error)
{
    g_free(numbers_of(stage_list(s), &l->pp));
    l->pp = s->pp ? s->pp : l->pp;
    if (!take_degrees(s, l, error) || !complete_degrees(s, n_devices, l, error))
        return false;
    l->cp_comm = s->cp_comm;
    l->zero_ranks = 1;
    return true;
}

static bool find_stages(const Strategy *s, StrategyLayout *l, GError **error)
{
    const ScheduleRow *row = schedule_row((Schedule)s->schedule);
    const uint32_t chunks = s->virtual_stages ? s->virtual_stages : row->chunks;
    if (chunks < row->least_chunks || chunks > row->most_chunks)
        return refuse(error, "virtual_stages=%u: expected %u with schedule=%s%s", chunks,
                      row->least_chunks, row->name,
                      row->most_chunks == 1 ? "; interleaved takes more" : "");
    if ((uint64_t)l->pp * chunks > UINT16_MAX)
        return refuse(error, "pp=%u, virtual_stages=%u: expected at most %d stages",
                      l->pp, chunks, UINT16_MAX);
    l->n_stages = l->pp * chunks;
    l->schedule = (Schedule)s->schedule;
    return true;
}

static bool find_degrees(const Strategy *s, uint32_t n_devices, StrategyLayout *l,
                         GError **error)
{
    l->pp = MAX(s->pp, 1);
    l->tp = MAX(s->tp, 1);
    l->cp = MAX(s->cp, 1);
    const uint64_t shared = (uint64_t)l->pp * l->tp * l->cp;
    g_autofree char *cp = l->cp > 1 ? g_strdup_printf("cp=%u, ", l->cp) : g_strdup("");
    l->dp = s->dp ? s->dp : (uint32_t)MAX(n_devices / shared, 1);
    if (shared * l->dp != n_devices)
        return refuse(error,
                      "pp=%u, dp=%u, %stp=%u: expected a product of %u, the cluster's "
                      "GPUs, got %" G_GUINT64_FORMAT,
                      l->pp, l->dp, cp, l->tp, n_devices, shared * l->dp);
    l->ep = MAX(s->ep, 1);
    if (!find_experts(s, l, error))
        return false;
    l->cp_comm = s->cp_comm;
    l->a2a_ranks = s->a2a_ranks;
    if (l->a2a_ranks &&
        (l->a2a_ranks == 1 || l->a2a_ranks >= l->cp || l->cp % l->a2a_ranks))
        return refuse(error, "a2a_ranks=%u: expected a divisor of cp=%u between 1 and it",
                      l->a2a_ranks, l->cp);
    l->zero = s->zero;
    l->zero_ranks = s->zero_ranks ? s->zero_ranks : l->dp * l->cp;
    return check_divisors(s, l, error);
}

/* --- microbatches --- */

/* samples: of a microbatch on a replica; 0: not said. */
static bool check_pieces(const StrategyLayout *l, uint32_t samples, GError **error)
{
    const uint64_t n = (uint64_t)l->n_microbatches * l->pieces;
    if (samples % l->pieces != 0)
        return refuse(error, "pieces=%u: expected a divisor of micro_batch=%u", l->pieces,
                      samples);
    return n < UINT16_MAX ||
           refuse(error,
                  "micro_batch, pieces: expected less than %d microbatches times pieces, "
                  "got %" G_GUINT64_FORMAT,
                  UINT16_MAX, n);
}

/* All stages have the same samples at a time. */
static bool find_microbatches(const Strategy *s, const Graph *graph, StrategyLayout *l,
                              GError **error)
{
    uint32_t n;
    g_autofree uint32_t *size = numbers_of(s->stage_micro_batch, &n);
    const uint32_t batch = graph_batch(graph), first = n ? size[0] : s->micro_batch;
    const uint64_t at_once = (uint64_t)l->dp * first;
    l->n_microbatches = s->microbatches ? s->microbatches : 1;
    l->pieces = MAX(s->pieces, 1);
    if (first == 0 && n == 0)
        return check_pieces(l, first, error);
    for (uint32_t p = 0; l->stage && p < l->pp; p++)
        if ((n && n != l->pp) ||
            (uint64_t)l->stage[p].dp * (n ? size[p] : first) != at_once)
            return refuse(
                error, "micro-batches: expected pp=%u whose products with dp are equal",
                l->pp);
    if (at_once == 0 || batch % at_once != 0)
        return refuse(
            error,
            "micro_batch=%u: expected %u replicas of it to divide the global batch, %u",
            first, l->dp, batch);
    l->n_microbatches = (uint32_t)(batch / at_once);
    return check_pieces(l, first, error);
}

/* --- layers of the stages --- */

/* Sets the stages' first layers from their numbers of layers. */
static bool count_layers(const Strategy *s, uint32_t n_layers, StrategyLayout *l,
                         GError **error)
{
    KILTER_ASSERT(l->n_stages > 0);
    uint32_t n;
    g_autofree uint32_t *count = numbers_of(s->layers, &n);
    const uint64_t sum = sum_over(uint64_t, i, n, count[i]);
    const bool inner = n_layers > 2 && sum == n_layers - 2;
    if (n != l->n_stages || !(inner || sum == n_layers))
        return refuse(error,
                      "layers: expected %u numbers that add up to %u, or to %u without "
                      "the first and the last layer, got '%s'",
                      l->n_stages, n_layers, n_layers > 2 ? n_layers - 2 : n_layers,
                      s->layers);
    for (uint32_t i = 0; i + 1 < n; i++)
        l->first[i + 1] = l->first[i] + count[i] + (inner && i == 0);
    return true;
}

/* Divides n layers after the first `before` ones over the stages: equally, and what is left over by
 * one to a stage here and there; where groups have several stages, from group to group, so that
 * none gets a second one before all have one. */
static void divide_layers(StrategyLayout *l, uint32_t n, uint32_t before)
{
    const uint32_t each = n / l->n_stages, left = n % l->n_stages;
    g_autofree bool *more = g_new0(bool, l->n_stages);
    for (uint32_t i = 0; l->pp == l->n_stages && i < l->n_stages; i++)
        more[i] =
            (uint64_t)(i + 1) * left / l->n_stages != (uint64_t)i * left / l->n_stages;
    for (uint32_t k = 0; l->pp < l->n_stages && k < left; k++)
        more[schedule_stage(l->schedule, k / l->pp, (k + 1) % l->pp, l->pp)] = true;
    for (uint32_t i = 1; i < l->n_stages; i++)
        l->first[i] = (i > 1 ? l->first[i - 1] : before) + each + more[i - 1];
}

static bool find_layers(const Strategy *s, const Graph *graph, StrategyLayout *l,
                        GError **error)
{
    const uint32_t n_layers = graph_n_layers(graph);
    uint32_t n;
    g_autofree uint32_t *cut = numbers_of(s->cuts, &n);
    l->first = g_new0(uint32_t, l->n_stages + 1);
    l->first[l->n_stages] = n_layers;
    if (s->cuts && n != l->n_stages - 1)
        return refuse(error,
                      "cuts: expected %u layers, the first one of each stage but the "
                      "first, got '%s'",
                      l->n_stages - 1, s->cuts);
    /* Layers between the first and the last are divided equally, unless there are too few, or all
     * layers can be and these cannot. */
    const bool whole = n_layers % l->n_stages == 0 && (n_layers - 2) % l->n_stages != 0;
    const uint32_t ends = n_layers > l->n_stages + 1 && !whole ? 2 : 0;
    divide_layers(l, n_layers - ends, ends / 2);
    for (uint32_t i = 1; s->cuts && i < l->n_stages; i++)
        l->first[i] = cut[i - 1];
    if (s->layers && !count_layers(s, n_layers, l, error))
        return false;
    for (uint32_t i = 0; i < l->n_stages; i++)
        if (l->first[i] >= l->first[i + 1])
            return refuse(error, "stage %u has no layer: the model has %u for %u stages",
                          i, n_layers, l->n_stages);
    return true;
}

/* --- ranks and shares --- */

bool strategy_take_ranks(const char *ranks, uint32_t n_devices, bool *seen,
                         uint32_t *device, uint32_t *n, GError **error)
{
    g_autofree uint32_t *rank = numbers_of(ranks, n);
    for (uint32_t i = 0; i < *n; i++) {
        if (rank[i] >= n_devices || seen[rank[i]])
            return refuse(error, "ranks: expected each GPU from 0 to %u once, got %u%s",
                          n_devices - 1, rank[i], rank[i] < n_devices ? " again" : "");
        seen[rank[i]] = true;
        device[i] = rank[i];
    }
    return true;
}

const char *strategy_ranks_text(const uint32_t *device, size_t stride, uint32_t n_stages,
                                uint32_t of_stage)
{
    g_autoptr(GString) text = g_string_new("");
    bool in_order = true;
    for (uint32_t s = 0; s < n_stages; s++)
        for (uint32_t i = 0; i < of_stage; i++) {
            const uint32_t at = device[s * stride + i];
            in_order &= at == s * of_stage + i;
            g_string_append_printf(text, "%s%u", i ? " " : s ? "; " : "", at);
        }
    return in_order ? NULL : g_intern_string(text->str);
}

static bool layout_take_ranks(const Strategy *s, StrategyLayout *l, uint32_t n_devices,
                              GError **error)
{
    uint32_t first = 0, n;
    g_auto(GStrv) stage = g_strsplit(s->ranks, "; ", -1);
    g_autofree bool *seen = g_new0(bool, n_devices);
    if (g_strv_length(stage) != l->pp)
        return refuse(error, "ranks: expected %u lists, one per stage, got %u", l->pp,
                      g_strv_length(stage));
    for (uint32_t p = 0; p < l->pp; p++) {
        const uint32_t of_stage = layout_devices(l, p);
        KILTER_ASSERT(first + of_stage <= n_devices);
        if (!strategy_take_ranks(stage[p], n_devices, seen, l->device + first, &n, error))
            return false;
        if (n != of_stage)
            return refuse(
                error, "ranks: expected dp x cp x tp = %u of them for stage %u, got %u",
                of_stage, p, n);
        first += of_stage;
    }
    return true;
}

static bool take_shares(const Strategy *s, StrategyLayout *l, GError **error)
{
    KILTER_ASSERT(l->dp > 0);
    g_auto(GStrv) item = g_strsplit(s->shares, " ", -1);
    double sum = 0;
    if (g_strv_length(item) != l->dp)
        return refuse(error, "shares: expected %u numbers, one per replica, got %u",
                      l->dp, g_strv_length(item));
    for (uint32_t r = 0; r < l->dp; r++)
        sum += l->share[r] = g_ascii_strtod(item[r], NULL);
    for (uint32_t r = 0; r < l->dp; r++)
        l->share[r] /= sum;
    return true;
}

static bool find_devices(const Strategy *s, uint32_t n_devices, StrategyLayout *l,
                         GError **error)
{
    l->device = g_new(uint32_t, n_devices);
    l->share = g_new(double, l->dp);
    for (uint32_t j = 0; j < n_devices; j++)
        l->device[j] = j;
    for (uint32_t r = 0; r < l->dp; r++)
        l->share[r] = 1.0 / l->dp;
    return (!s->ranks || layout_take_ranks(s, l, n_devices, error)) &&
           (!s->shares || take_shares(s, l, error));
}

/* --- by layer --- */

static uint32_t stage_of(const uint32_t *first, uint32_t layer)
{
    KILTER_ASSERT(first[0] == 0);
    uint32_t stage = 0;
    while (first[stage + 1] <= layer)
        stage++;
    return stage;
}

static Recompute mode_of(const char *item)
{
    g_autofree char *words = g_strndup(item, strcspn(item, "@"));
    return recompute_read(words);
}

/* Reads MODE@FIRST-LAST, or MODE@LAYER. */
static bool set_range(const char *item, const Graph *graph, Recompute *mode,
                      GError **error)
{
    char *end;
    const uint64_t first = g_ascii_strtoull(strchr(item, '@') + 1, &end, 10);
    const uint64_t last = *end == '-' ? g_ascii_strtoull(end + 1, NULL, 10) : first;
    if (first > last || last >= graph_n_layers(graph))
        return refuse(error, "recompute: expected layers from 0 to %u, got '%s'",
                      graph_n_layers(graph) - 1, item);
    for (uint64_t i = first; i <= last; i++)
        mode[i] = mode_of(item);
    return true;
}

bool strategy_layer_modes(const Strategy *s, const Graph *graph, uint32_t n_stages,
                          const uint32_t *first, Recompute **modes, GError **error)
{
    KILTER_ASSERT(n_stages > 0);
    const uint32_t n_layers = graph_n_layers(graph), ends = n_layers > 2;
    g_auto(GStrv) item = g_strsplit(s->recompute ? s->recompute : "none", " ", -1);
    const uint32_t n = g_strv_length(item);
    const bool ranges = strchr(s->recompute ? s->recompute : "", '@') != NULL;
    Recompute *mode = *modes = g_new0(Recompute, n_layers);
    if (strcmp(item[0], "auto") == 0)
        return refuse(error, "recompute=auto: expected a planner without pipelines");
    if (!ranges && n != 1 && n != n_stages)
        return refuse(
            error, "recompute: expected a word for all or for each of %u stages, got %u",
            n_stages, n);
    for (uint32_t k = 0; ranges && k < n; k++) {
        if (!strchr(item[k], '@'))
            return refuse(
                error,
                "recompute: expected layers with every mode, as in full@1-14, got '%s'",
                item[k]);
        if (!set_range(item[k], graph, mode, error))
            return false;
    }
    for (uint32_t i = ends; !ranges && i + ends < n_layers; i++)
        mode[i] = mode_of(item[n == 1 ? 0 : stage_of(first, i)]);
    return true;
}

static bool find_sequence(const Strategy *s, const Graph *graph, StrategyLayout *l,
                          GError **error)
{
    g_auto(GStrv) item =
        g_strsplit(s->sequence_parallel ? s->sequence_parallel : "off", " ", -1);
    const uint32_t n = g_strv_length(item);
    l->sequence = g_new0(bool, graph_n_layers(graph));
    if (n != 1 && n != l->n_stages)
        return refuse(
            error,
            "sequence_parallel: expected a word for all or for each of %u stages, got %u",
            l->n_stages, n);
    for (uint32_t i = 0; i < graph_n_layers(graph); i++)
        l->sequence[i] = strcmp(item[n == 1 ? 0 : stage_of(l->first, i)], "on") == 0;
    return true;
}

bool strategy_takes_rings(const Graph *graph)
{
    bool any = false, all = true;
    ops_each (op, id, graph) {
        if (op->pass != PASS_FORWARD || !op_kind_is_attention(op->kind))
            continue;
        any = true;
        all &= op_kind_divides_queries(op->kind);
    }
    return any && all;
}

/* The invariants of a layout: every stage has layers, every device one place, and the replicas'
 * shares make up the batch. */
static void walk_layout(const StrategyLayout *l, uint32_t n_layers, uint32_t n_devices)
{
    g_autofree bool *seen = g_new0(bool, n_devices);
    uint32_t n = 0;
    double share = 0;
    for (uint32_t p = 0; p < l->pp; p++)
        n += layout_devices(l, p);
    g_assert(l->first[0] == 0 && l->first[l->n_stages] == n_layers);
    for (uint32_t p = 0; p < l->n_stages; p++)
        g_assert(l->first[p] <= l->first[p + 1]);
    g_assert(n <= n_devices);
    for (uint32_t i = 0; i < n; i++) {
        g_assert(l->device[i] < n_devices && !seen[l->device[i]]);
        seen[l->device[i]] = true;
    }
    for (uint32_t r = 0; r < l->dp; r++)
        share += l->share[r];
    g_assert(share > 1 - 1e-9 && share < 1 + 1e-9);
}

bool strategy_lay_out(const Strategy *s, const Graph *graph, uint32_t n_devices,
                      StrategyLayout *layout, GError **error)
{
    const bool unlike = stage_list(s) != NULL;
    g_autoptr(GPtrArray) tokens = NULL;
    *layout = (StrategyLayout){0};
    const bool own =
        s->etp || s->zero_ranks || s->a2a_ranks || s->shares || s->sync_every > 1;
    const OptionRule rule[] = {
        {s->pipeline_layers, "pipeline_layers", "replicas with the same stages here",
         NULL},
        {s->pipeline_shares, "pipeline_shares", "pipeline_layers beside it", NULL},
        {unlike && own, "stages with degrees of their own",
         "no etp, zero_ranks, a2a_ranks, shares or sync_every beside them", NULL},
        {s->offload && s->stage_zero, "offload", "zero for all stages, not stage_zero",
         NULL},
        {s->microbatches > 1 && (s->micro_batch || s->stage_micro_batch), "micro_batch",
         "micro_batch or microbatches, got both", NULL},
        {s->micro_batch && s->stage_micro_batch, "micro_batch",
         "micro_batch or stage_micro_batch, got both", NULL},
        {s->layers && s->cuts, "layers", "layers or cuts, got both", NULL},
        {(s->cp_comm == CP_COMM_A2A_P2P) != (s->a2a_ranks > 0), "a2a_ranks",
         "it with cp_comm=a2a+p2p, and there only", NULL},
        {strategy_has_rings(s) && !strategy_takes_rings(graph), "cp_comm",
         "allgather or a2a", "since the model's attention does not divide queries"},
    };
    if (!options_obey(rule, G_N_ELEMENTS(rule), "", "", error) ||
        !strategy_expert_tokens(s, graph, &tokens, error) ||
        !(unlike ? find_unlike : find_degrees)(s, n_devices, layout, error) ||
        !find_stages(s, layout, error) || !find_microbatches(s, graph, layout, error) ||
        !find_layers(s, graph, layout, error) ||
        !find_devices(s, n_devices, layout, error) ||
        !strategy_layer_modes(s, graph, layout->n_stages, layout->first,
                              &layout->recompute, error) ||
        !find_sequence(s, graph, layout, error))
        return false;
    KILTER_WALK(walk_layout(layout, graph_n_layers(graph), n_devices));
    return true;
}

CLEAR_DEFINE(strategy_layout_clear, StrategyLayout, layout,
             free_each(layout->first, layout->device, layout->share, layout->recompute,
                       layout->sequence, layout->stage),
             *layout = (StrategyLayout){0});
