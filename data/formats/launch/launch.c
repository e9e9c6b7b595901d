/* From the words of a launch to a strategy and the keys of a model. */
#include "data/formats/launch/launch.h"

#include <string.h>

#include "data/base/error.h"
#include "data/formats/launch/names.h"

static bool has_megatron_flags(const Launch *launch)
{
    return strcmp(launch->flags, "megatron") == 0;
}

static uint32_t said_number(const Launch *launch, LaunchWord word)
{
    return launch_number(launch->value, word);
}

/* The product, or the largest number where it is larger. */
static uint32_t launch_product(uint32_t a, uint32_t b)
{
    return (uint32_t)MIN((uint64_t)a * b, UINT32_MAX);
}

static bool says(const Launch *launch, LaunchWord word, const char *text)
{
    return g_strcmp0(launch->value[word], text) == 0;
}

static bool launch_is(const Launch *launch, const char *framework)
{
    return strcmp(launch->framework, framework) == 0;
}

static bool is_titan(const Launch *launch)
{
    return launch_is(launch, "torchtitan");
}

/* --- the model's keys --- */

/* The GPUs that the launch asks for; 0: it does not say. */
static uint32_t world_of(const Launch *launch)
{
    const uint32_t world = said_number(launch, WORD_WORLD);
    return launch->rank->len ? launch->rank->len
           : world           ? world
                             : launch_product(
                                   launch->value[WORD_NODES] ? said_number(launch, WORD_NODES) : 1,
                         said_number(launch, WORD_PER_NODE));
}

static uint32_t shared_by(const Launch *launch)
{
    return launch_product(launch_product(MAX(said_number(launch, WORD_PP), 1),
                                         MAX(said_number(launch, WORD_TP), 1)),
                          MAX(said_number(launch, WORD_CP), 1));
}

/* Defaults of frameworks (docs/launches.md has the versions): torchtitan's local_batch_size and
 * seq_len, and per_device_train_batch_size of Hugging Face's Trainer. */
enum { TITAN_BATCH = 8, TITAN_SEQ = 2048, TRAINER_BATCH = 8 };

static uint32_t local_batch_of(const Launch *launch)
{
    const uint32_t local = said_number(launch, WORD_LOCAL_BATCH);
    const bool by_tokens =
        launch->value[WORD_TOKENS_MICRO] || launch->value[WORD_TOKENS_STEP];
    return !local && is_titan(launch) && !by_tokens ? TITAN_BATCH : local;
}

static uint32_t seq_of(const Launch *launch)
{
    const uint32_t seq = said_number(launch, WORD_SEQ);
    return seq ? seq : is_titan(launch) ? TITAN_SEQ : said_number(launch, WORD_USUAL_SEQ);
}

/* Samples of a microbatch on a replica; 0: not said. Without pipelines torchtitan's local batch
 * is one. */
static uint32_t micro_batch_of(const Launch *launch)
{
    const uint32_t seq = seq_of(launch), local = local_batch_of(launch),
                   tokens = said_number(launch, WORD_TOKENS_MICRO),
                   micro = said_number(launch, WORD_MICRO_BATCH);
    if (local)
        return said_number(launch, WORD_PP) > 1 ? MAX(micro, 1) : local;
    return tokens && seq                                ? tokens / seq
           : !micro && says(launch, WORD_TRAINER, "on") ? TRAINER_BATCH
                                                        : micro;
}

/* Samples of an iteration on so many GPUs; 0: not said. */
static uint32_t batch_of(const Launch *launch, uint32_t n_devices)
{
    const uint32_t batch = said_number(launch, WORD_GLOBAL_BATCH),
                   tokens = said_number(launch, WORD_TOKENS_STEP), seq = seq_of(launch),
                   world = n_devices / shared_by(launch),
                   steps = MAX(said_number(launch, WORD_MICROBATCHES), 1);
    const bool unsaid = /* how many prompts have how many samples */
        launch_is(launch, "verl") && !launch->value[WORD_MICROBATCHES];
    return batch || unsaid ? batch
           : tokens && seq ? tokens / seq
           : is_titan(launch)
               ? launch_product(world, local_batch_of(launch))
               : launch_product(launch_product(world, steps), micro_batch_of(launch));
}

/* Kilter's word for the numbers that a framework computes and adds up in; NULL: not said. */
static const char *launch_precision(const Launch *launch)
{
    const bool megatron = has_megatron_flags(launch),
               short_sums = !megatron || says(launch, WORD_GRADIENTS, "bf16");
    if (says(launch, WORD_FP8, "on"))
        return short_sums ? "fp8" : "fp8-fp32-grads";
    if (says(launch, WORD_NUMBERS, "fp16"))
        return "mixed";
    if (says(launch, WORD_NUMBERS, "fp32"))
        return "single";
    return !launch->value[WORD_NUMBERS] && !is_titan(launch) ? NULL
           : megatron && !short_sums                         ? "bf16-fp32-grads"
           : is_titan(launch) || launch_is(launch, "accelerate") ||
                   launch_is(launch, "LLM Foundry")
               ? "bf16-fsdp"
               : "bf16";
}

char *launch_model_keys(const Launch *launch, uint32_t n_devices)
{
    GString *text = g_string_new(NULL);
    const uint32_t batch = batch_of(launch, n_devices), seq = seq_of(launch);
    const char *precision = launch_precision(launch);
    if (batch)
        g_string_append_printf(text, "global_batch=%u", batch);
    if (seq)
        g_string_append_printf(text, "%sseq=%u", text->len ? "," : "", seq);
    if (precision)
        g_string_append_printf(text, "%sprecision=%s", text->len ? "," : "", precision);
    if (says(launch, WORD_ADAPTER, "lora")) { /* 8 is PEFT's own */
        const uint32_t rank = said_number(launch, WORD_ADAPTER_RANK);
        const char *target = launch->value[WORD_TARGET],
                   *weights = launch->value[WORD_WEIGHTS];
        g_string_append_printf(text, "%strain=lora:%u", text->len ? "," : "",
                               rank ? rank : 8);
        g_string_append_printf(text, target ? ",target=%s" : "", target);
        g_string_append_printf(text, weights ? ",weights=%s" : "", weights);
    }
    return g_string_free(text, FALSE);
}

/* --- layers of stages --- */

/* Writes a layout without repetitions: "t*3" as "ttt", "(tt|)*2" as "tt|tt|". */
static bool unfold(const char **at, GString *out, uint32_t depth)
{
    enum { MOST = 1 << 16, MOST_DEPTH = 8 };
    while (**at && **at != ')') {
        g_autoptr(GString) part = g_string_new(NULL);
        if (**at == '(') {
            (*at)++;
            if (depth == MOST_DEPTH || !unfold(at, part, depth + 1) || **at != ')')
                return false;
        } else
            g_string_append_c(part, **at);
        (*at)++;
        uint64_t times = 1;
        if (**at == '*') {
            char *end;
            times = g_ascii_strtoull(*at + 1, &end, 10);
            if (end == *at + 1)
                return false;
            *at = end;
        }
        if (times > MOST || times * part->len + out->len > MOST)
            return false;
        while (times-- > 0)
            g_string_append(out, part->str);
    }
    return true;
}

/* "Et*3|tt|ttL" as "3 2 2". NULL if it is none. */
static char *layers_of_layout(const char *layout)
{
    g_autoptr(GString) flat = g_string_new(NULL), text = g_string_new(NULL);
    const char *at = layout;
    uint32_t n = 0;
    if (!unfold(&at, flat, 0) || *at)
        return NULL;
    for (const char *p = flat->str;; p++) {
        if (*p == '|' || *p == '\0') {
            g_string_append_printf(text, "%s%u", text->len ? " " : "", n);
            n = 0;
        } else if (*p == 't')
            n++;
        else if (!strchr("EL, ", *p))
            return NULL;
        if (*p == '\0')
            return g_strdup(text->str);
    }
}

/* "[['tok_embeddings', 'layers.0'], ['layers.1']]" as "1 1". */
static char *layers_of_modules(const char *modules)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (const char *part = strchr(modules, '[');
         part && (part = strchr(part + 1, '['));) {
        const char *end = strchr(part, ']');
        uint32_t n = 0;
        for (const char *p = part; end && (p = strstr(p, "layers.")) && p < end; p++)
            n++;
        g_string_append_printf(text, "%s%u", text->len ? " " : "", n);
    }
    return g_strdup(text->str);
}

/* Megatron-LM's division: equal stages but the first and the last one, where these are given, or
 * where embedding or head count as a layer. */
static char *layers_by_ends(const Launch *launch, uint32_t layers, uint32_t stages)
{
    const bool counts[2] = {says(launch, WORD_COUNT_FIRST, "on"),
                            says(launch, WORD_COUNT_LAST, "on")};
    const uint32_t each_of = (layers + counts[0] + counts[1]) / stages,
                   first =
                       counts[0] ? each_of - 1 : said_number(launch, WORD_FIRST_LAYERS),
                   last = counts[1] ? each_of - 1 : said_number(launch, WORD_LAST_LAYERS),
                   inner = stages - (first > 0) - (last > 0);
    if (inner == 0 || stages > layers + 2 || (uint64_t)first + last > layers ||
        (layers - first - last) % inner != 0)
        return NULL;
    const uint32_t each = (layers - first - last) / inner;
    g_autoptr(GString) text = g_string_new(NULL);
    for (uint32_t s = 0; s < stages; s++)
        g_string_append_printf(text, "%s%u", s ? " " : "",
                               s == 0 && first           ? first
                               : s + 1 == stages && last ? last
                                                         : each);
    return g_strdup(text->str);
}

static bool set_layers(const Launch *launch, uint32_t layers, Strategy *s, GError **error)
{
    const uint32_t per = said_number(launch, WORD_PER_VIRTUAL), pp = MAX(s->pp, 1);
    /* torchtitan's schedules of several stages have two on each rank where nothing is said */
    const uint32_t usual =
        is_titan(launch) && pp > 1 && says(launch, WORD_SCHEDULE, "interleaved") ? 2 : 1;
    uint32_t chunks = per > 0 ? MAX(layers / pp / per, 1)
                              : MAX(said_number(launch, WORD_VIRTUAL), usual);
    const uint32_t stages = launch_product(pp, chunks);
    const char *layout = launch->value[WORD_LAYOUT], *split = launch->value[WORD_SPLIT],
               *modules = launch->value[WORD_MODULES];
    g_autofree char *text = layout    ? layers_of_layout(layout)
                            : modules ? layers_of_modules(modules)
                            : split   ? g_strdup(split)
                            : stages > 1 && !is_titan(launch)
                                ? layers_by_ends(launch, layers, stages)
                                : g_strdup("");
    if (!text)
        return refuse(error,
                      "%u layers on %u stages%s: expected a division into whole layers",
                      layers, stages, layout ? " by the layout" : "");
    if (layout || modules) {
        g_auto(GStrv) stage = g_strsplit(text, " ", -1);
        const uint32_t n = g_strv_length(stage);
        if (n % pp != 0)
            return refuse(error, "a layout of %u stages on %u ranks: expected a multiple",
                          n, pp);
        chunks = n / pp;
    }
    if (chunks > 1) {
        s->schedule = SCHEDULE_INTERLEAVED;
        s->virtual_stages = chunks;
    }
    return !*text || pp * chunks == 1 || strategy_list(text, &s->layers, error);
}

/* --- states, recomputation, schedule --- */

static void set_states(const Launch *launch, Strategy *s, uint32_t replicas)
{
    const uint32_t instances = said_number(launch, WORD_INSTANCES),
                   copies = MAX(said_number(launch, WORD_REPLICATE), 1);
    s->zero = said_number(launch, WORD_ZERO);
    if (s->zero == 3 && says(launch, WORD_RESHARD, "off"))
        s->zero = 2;
    s->zero_ranks =
        says(launch, WORD_ZERO_RANKS, "node")
            ? world_of(launch) / MAX(said_number(launch, WORD_NODES), 1)
            : launch_product(said_number(launch, WORD_ZERO_RANKS),
                             /* of all ranks of a sequence, and with experts */
                             launch_is(launch, "accelerate") ? s->cp * s->ep : 1);
    if (is_titan(launch)) {
        const uint32_t shard = said_number(launch, WORD_SHARD); /* -1 and none: all */
        s->zero_ranks = shard ? launch_product(shard, MAX(s->cp, 1)) : replicas / copies;
        s->zero = s->zero_ranks == 1 ? 0 : s->zero ? s->zero : s->pp > 1 ? 2 : 3;
    }
    if (instances > 1)
        s->zero_ranks = replicas / instances;
    s->zero = replicas > 1 || (s->offload && s->zero > 1) ? s->zero : 0;
    if (s->zero_ranks >= replicas || s->zero == 0)
        s->zero_ranks = 0;
}

/* Recomputation of the first N layers of each stage, as ranges of layers. */
static bool set_blocks(const Launch *launch, const Graph *graph, uint32_t n_devices,
                       Strategy *s, GError **error)
{
    const uint32_t n = said_number(launch, WORD_RECOMPUTE_LAYERS),
                   last = graph_n_layers(graph) - 1;
    g_auto(StrategyLayout) l = {0};
    if (says(launch, WORD_RECOMPUTE, "selective") && launch->value[WORD_AGAIN]) {
        g_autofree char *words =
            g_strdelimit(g_strdup(launch->value[WORD_AGAIN]), " ,", '+');
        return strategy_recompute(words, &s->recompute, error);
    }
    if (!says(launch, WORD_RECOMPUTE, "full") || !says(launch, WORD_METHOD, "block"))
        return !launch->value[WORD_RECOMPUTE] ||
               strategy_recompute(launch->value[WORD_RECOMPUTE], &s->recompute, error);
    if (!strategy_lay_out(s, graph, n_devices, &l, error))
        return false;
    g_autoptr(GString) text = g_string_new(NULL);
    for (uint32_t k = 0; n > 0 && k < l.n_stages; k++) {
        const uint32_t first = MAX(l.first[k], 1u),
                       end = MIN(first + n, MIN(l.first[k + 1], last));
        if (end > first)
            g_string_append_printf(text, "%sfull@%u-%u", text->len ? " " : "", first,
                                   end - 1);
    }
    return !text->len || strategy_recompute(text->str, &s->recompute, error);
}

static void set_schedule(const Launch *launch, Strategy *s)
{
    for (Schedule k = 0; k < SCHEDULES; k++)
        if (says(launch, WORD_SCHEDULE, schedule_name(k)) && k != SCHEDULE_INTERLEAVED)
            s->schedule = k;
    if (s->pp <= 1 && s->schedule != SCHEDULE_INTERLEAVED)
        s->schedule = SCHEDULE_1F1B;
}

/* --- batches --- */

static bool set_batches(const Launch *launch, uint32_t batch, uint32_t dp, Strategy *s,
                        GError **error)
{
    const uint32_t
        n = said_number(launch, WORD_MICROBATCHES),
        said = micro_batch_of(launch),
        /* Megatron-LM divides batches; its forks do so by the tokens that fit */
        micro = !said && !n && has_megatron_flags(launch) ? 1 : said,
        asked = batch_of(launch, world_of(launch));
    if (asked && asked != batch)
        return refuse(
            error,
            "a global batch of %u, and the model's is %u: expected global_batch=%u",
            asked, batch, asked);
    if (micro && (uint64_t)batch % ((uint64_t)micro * dp) != 0)
        return refuse(error,
                      "a global batch of %u on %u replicas in microbatches of %u: "
                      "expected a multiple of %" G_GUINT64_FORMAT,
                      batch, dp, micro, (uint64_t)micro * dp);
    if (micro && n && (uint64_t)micro * dp * n != batch)
        return refuse(error,
                      "%u microbatches of %u on %u replicas: expected a global batch of "
                      "%" G_GUINT64_FORMAT ", got %u",
                      n, micro, dp, (uint64_t)micro * dp * n, batch);
    s->micro_batch = micro;
    s->microbatches = micro ? 1 : MAX(n, 1);
    return true;
}

/* --- all --- */

/* How shards of sequences exchange, as said or else as the framework does it. */
static uint32_t cp_comm_of(const Launch *launch, const Graph *graph)
{
    const bool said = launch->value[WORD_CP_COMM] != NULL;
    if (says(launch, WORD_CP_COMM, "a2a") || (!said && launch_is(launch, "DeepSpeed")))
        return CP_COMM_A2A;
    if (says(launch, WORD_CP_COMM, "a2a+p2p"))
        return CP_COMM_A2A_P2P;
    return says(launch, WORD_CP_COMM, "p2p") ||
                   (!said && has_megatron_flags(launch) && strategy_takes_rings(graph))
               ? CP_COMM_P2P
               : CP_COMM_ALLGATHER;
}

static bool check_model(const Launch *launch, const Graph *graph, uint32_t *layers,
                        GError **error)
{
    const uint32_t asked = said_number(launch, WORD_LAYERS), n = graph_n_layers(graph);
    *layers = n > 2 ? n - 2 : n;
    return !asked || asked == *layers ||
           refuse(error,
                  "%u layers, and the model has %u: expected the launch of this model",
                  asked, *layers);
}

bool launch_strategy(const Launch *launch, const Graph *graph, uint32_t n_devices,
                     Strategy *strategy, GError **error)
{
    const uint32_t world = world_of(launch), shared = shared_by(launch);
    uint32_t layers;
    Strategy s;
    strategy_init(&s);
    if (world && world != n_devices)
        return refuse(error, "a world of %u GPUs, and the cluster has %u", world,
                      n_devices);
    if (n_devices % shared != 0)
        return refuse(error,
                      "degrees of pipelines, tensors and contexts with a product of %u: "
                      "expected a divisor of %u GPUs",
                      shared, n_devices);
    const uint32_t pp = said_number(launch, WORD_PP), tp = said_number(launch, WORD_TP);
    s.pp = pp > 1 ? pp : 0;
    s.tp = tp > 1 ? tp : 0;
    s.cp = MAX(said_number(launch, WORD_CP), 1);
    s.ep = MAX(said_number(launch, WORD_EP), 1);
    s.etp = s.ep > 1 && tp > 1 && said_number(launch, WORD_ETP) == 1;
    s.dp = n_devices / shared;
    s.offload =
        !launch->value[WORD_OFFLOAD] ? NULL
        : says(launch, WORD_PARAMETERS, "on") && said_number(launch, WORD_ZERO) == 3
            ? g_intern_static_string("optimizer+parameters")
            : g_intern_static_string("optimizer");
    s.cp_comm = s.cp > 1 ? cp_comm_of(launch, graph) : CP_COMM_ALLGATHER;
    if (s.cp_comm == CP_COMM_A2A_P2P && launch->value[WORD_CP_SIZES])
        s.a2a_ranks =
            (uint32_t)g_ascii_strtoull(launch->value[WORD_CP_SIZES], NULL, 10) & 0xffff;
    if (s.tp > 1 && (says(launch, WORD_SEQUENCE, "on") ||
                     (is_titan(launch) && !says(launch, WORD_SEQUENCE, "off"))))
        s.sequence_parallel = g_intern_static_string("on");
    if (!check_model(launch, graph, &layers, error) ||
        !set_batches(launch, graph_batch(graph), s.dp, &s, error) ||
        !set_layers(launch, layers, &s, error))
        return false;
    set_schedule(launch, &s);
    set_states(launch, &s, s.dp * s.cp);
    if (!set_blocks(launch, graph, n_devices, &s, error))
        return false;
    g_auto(StrategyLayout) layout = {0};
    *strategy = s;
    return strategy_lay_out(&s, graph, n_devices, &layout, error);
}

const char *launch_dispatcher(const Launch *launch)
{
    const bool once =
        says(launch, WORD_DISPATCHER, "flex") && says(launch, WORD_ONCE, "on");
    if (said_number(launch, WORD_EP) < 2)
        return NULL;
    if (says(launch, WORD_BESIDE, "on"))
        return once ? "overlapped" : "alltoall-overlapped";
    return once ? "once" : NULL;
}

void launch_place(const Launch *launch, const ClusterView *view, Strategy *strategy)
{
    const uint32_t n = launch->rank->len, pp = MAX(strategy->pp, 1);
    g_autofree uint32_t *device = g_new0(uint32_t, n + 1);
    for (uint32_t r = 0; r < n; r++) {
        const char *name = launch->rank->pdata[r];
        while (device[r] < view->n_devices &&
               strcmp(view->device[device[r]].name, name) != 0)
            device[r]++;
        if (device[r] == view->n_devices) {
            g_ptr_array_add(launch->unknown, g_strdup_printf("rank %u on %s", r, name));
            return;
        }
    }
    strategy->ranks = strategy_ranks_text(device, n / pp, pp, n / pp);
}
