/* The words of exports (data/formats/launch/names.h): those of the strategy, and the facts of
 * the model as far as its layers are alike. */
#include <string.h>

#include "data/base/json.h"
#include "data/formats/export/case.h"
#include "data/formats/huggingface/config.h"
#include "data/formats/huggingface/family.h"
#include "data/models/model.h"

static void put_number(char **value, LaunchWord word, uint32_t number)
{
    put_block(value[word], g_strdup_printf("%u", number));
}

static void put_text(char **value, LaunchWord word, const char *text)
{
    put_block(value[word], g_strdup(text));
}

/* --- the strategy --- */

static void put_recompute(const ExportCase *c, char **value)
{
    const Recompute *inner = &c->layout.recompute[c->ends], mode = *inner;
    uint32_t full = 0, alike = 0, most = 0;
    for (uint32_t l = 0; l < c->inner; l++) {
        full += inner[l] == RECOMPUTE_FULL;
        alike += inner[l] == mode;
    }
    if (alike == c->inner && mode == RECOMPUTE_NONE)
        return;
    if (alike == c->inner && mode == RECOMPUTE_ALTERNATE)
        put_text(value, WORD_RECOMPUTE, "alternate");
    else
        put_text(value, WORD_RECOMPUTE, full ? "full" : "selective");
    if (!full && mode != RECOMPUTE_SELECTIVE && mode != RECOMPUTE_ALTERNATE) {
        g_autofree char *words = recompute_words(mode);
        put_text(value, WORD_AGAIN, g_strdelimit(words, "+", ' '));
    }
    if (!full)
        return;
    for (uint32_t s = 0, n; s < c->layout.n_stages; s++)
        most = export_block(c, s, &n) ? MAX(most, n) : most;
    put_text(value, WORD_METHOD, full == c->inner ? "uniform" : "block");
    put_number(value, WORD_RECOMPUTE_LAYERS, full == c->inner ? 1 : most);
}

static void put_numbers(const ExportCase *c, char **value)
{
    const Precision precision = graph_precision(c->graph);
    const Numbers numbers = precision_numbers(precision);
    const DType sums = precision_states(precision).of[STATE_GRADIENTS];
    put_text(value, WORD_NUMBERS,
             numbers == NUMBERS_BF16  ? "bf16"
             : numbers == NUMBERS_F16 ? "fp16"
                                      : "fp32");
    if (precision_least_numbers(precision) == NUMBERS_F8)
        put_text(value, WORD_FP8, "on");
    if (numbers == NUMBERS_BF16 && sums == DTYPE_F16)
        put_text(value, WORD_GRADIENTS, "bf16");
}

char **export_words(const ExportCase *c)
{
    const StrategyLayout *l = &c->layout;
    char **value = g_new0(char *, WORDS + 1);
    put_number(value, WORD_TP, l->tp);
    put_number(value, WORD_PP, l->pp);
    if (l->cp > 1) {
        put_number(value, WORD_CP, l->cp);
        static const char *const CP_COMM[] = {"allgather", "a2a", "p2p", "a2a+p2p"};
        put_text(value, WORD_CP_COMM, CP_COMM[l->cp_comm]);
        if (l->a2a_ranks)
            value[WORD_CP_SIZES] =
                g_strdup_printf("%u %u", l->a2a_ranks, l->cp / l->a2a_ranks);
    }
    if (l->ep > 1 || l->experts) /* with etp=1 the ranks of tp count, too */
        put_number(value, WORD_EP, l->ep * (l->experts ? l->tp : 1));
    if (l->experts)
        put_number(value, WORD_ETP, 1);
    if (l->tp > 1)
        put_text(value, WORD_SEQUENCE, l->sequence[0] ? "on" : "off");
    put_numbers(c, value);
    put_recompute(c, value);
    if (l->zero)
        put_number(value, WORD_ZERO, l->zero);
    if (l->zero && l->zero_ranks < l->dp * l->cp) {
        put_number(value, WORD_INSTANCES, l->dp * l->cp / l->zero_ranks);
        put_number(value, WORD_ZERO_RANKS, l->zero_ranks);
    }
    put_number(value, WORD_MICRO_BATCH, c->micro_batch);
    put_number(value, WORD_GLOBAL_BATCH, c->batch);
    put_number(value, WORD_MICROBATCHES, l->n_microbatches);
    put_number(value, WORD_LAYERS, graph_n_layers(c->graph) - 2);
    if (c->seq > 0) {
        put_number(value, WORD_SEQ, c->seq);
        put_number(value, WORD_POSITIONS, c->seq);
    }
    return value;
}

void export_words_free(char **value)
{
    for (uint32_t i = 0; i < WORDS; i++)
        g_free(value[i]);
    g_free(value);
}

/* --- the model --- */

/* Copies keys of the spec, which has all parameters: "gpt2:layers=24,hidden=1024". */
static void put_spec(const char *spec, char **value)
{
    static const struct {
        const char *key;
        LaunchWord word;
    } KEY[] = {{"hidden", WORD_HIDDEN},
               {"ffn", WORD_FFN},
               {"heads", WORD_HEADS},
               {"kv_heads", WORD_KV_HEADS},
               {"vocab", WORD_VOCAB},
               {"experts", WORD_EXPERTS},
               {"top", WORD_TOP},
               {"dropout", WORD_DROPOUT},
               {"dropout", WORD_ATTENTION_DROPOUT}};
    g_auto(GStrv) pair = g_strsplit(model_spec_list(spec), ",", -1);
    for (uint32_t i = 0; pair[i]; i++)
        for (uint32_t k = 0; k < G_N_ELEMENTS(KEY); k++) {
            const size_t n = strlen(KEY[k].key);
            if (strncmp(pair[i], KEY[k].key, n) == 0 && pair[i][n] == '=')
                put_text(value, KEY[k].word, pair[i] + n + 1);
        }
}

/* Experts' slots; none are said of dropless experts. */
static void put_capacity(const char *spec, char **value)
{
    static const char KEY[] = "capacity_factor=";
    const char *at = strstr(model_spec_list(spec), KEY);
    g_autofree char *text = at ? g_strdup(at + strlen(KEY)) : g_strdup("0");
    text[strcspn(text, ",")] = '\0';
    if (strcmp(text, "0") != 0) {
        put_text(value, WORD_CAPACITY, text);
        put_text(value, WORD_PADDED, "on");
    }
}

/* Facts that the named models have by their kind. */
static void put_named(const ExportCase *c, char **value)
{
    const bool llama = g_str_has_prefix(c->plan->model, "llama:") ||
                       g_str_has_prefix(c->plan->model, "mixtral:");
    if (!llama && !g_str_has_prefix(c->plan->model, "gpt2:"))
        return;
    put_spec(c->plan->model, value);
    put_text(value, WORD_UNTIED, "on");
    put_text(value, WORD_NORM, llama ? "rms" : "layer");
    put_text(value, WORD_POSITION, llama ? "rope" : "learned");
    if (!llama)
        return;
    put_text(value, WORD_ACTIVATION, "swiglu");
    put_text(value, WORD_NO_BIAS, "on");
    put_text(value, WORD_DROPOUT, "0");
    put_text(value, WORD_ATTENTION_DROPOUT, "0");
    put_text(value, WORD_EXPERT_FFN, value[WORD_EXPERTS] ? value[WORD_FFN] : NULL);
}

/* Settings that cost nothing, but make another model. */
static void put_settings(const json_t *config, char **value)
{
    const double epsilon = json_number_value(json_object_get(config, "rms_norm_eps"));
    if (epsilon > 0)
        value[WORD_NORM_EPSILON] = g_strdup_printf("%g", epsilon);
    const json_t *base = json_object_get(config, "rope_theta"),
                 *scaling = json_object_get(config, "rope_scaling");
    const char *kind = json_string_value(json_object_get(scaling, "rope_type"));
    if (json_is_number(base))
        value[WORD_ROPE_BASE] = g_strdup_printf("%.0f", json_number_value(base));
    if (g_strcmp0(kind, "llama3") == 0) {
        put_text(value, WORD_ROPE_SCALING, kind);
        value[WORD_ROPE_FACTOR] =
            g_strdup_printf("%g", json_number_value(json_object_get(scaling, "factor")));
    }
}

/* Facts that Megatron-LM's GPTModel has flags for, alike in all layers, or that change none of its
 * ops. */
static const char SAID[] =
    " layers hidden vocab limit embedding_size positions norm=rms norm=layer "
    "arrangement=pre gated activation=gelu activation=silu activation=relu2 qkv_bias "
    "out_bias ffn_bias tied final_norm causal qk_norm=none qk_norm=head output_gate=none "
    "q_rank kv_rank shared_key experts top expert_groups top_groups expert_ffn "
    "shared_ffn shared_gate sigmoid normalised router_bias scale scan_norm mtp dropout "
    "attention_dropout fused mixer=attention mixer=latent network=dense "
    "network=experts heads kv_heads head_size value_size rotary ffn ";

/* Whether facts that have flags are none that these can say together. */
static const char *facts_that_clash(const Architecture *a)
{
    const LayerFacts *l = a->layer;
    return !a->causal || !a->final_norm || a->encoder || a->spans      ? "causal"
           : a->embedding_size != a->hidden                            ? "embedding_size"
           : a->gated != (a->activation == ACTIVATION_SILU)            ? "activation"
           : a->out_bias != a->ffn_bias || a->out_bias > a->qkv_bias   ? "qkv_bias"
           : l->mixer != MIXER_LATENT && l->value_size != l->head_size ? "value_size"
                                                                       : NULL;
}

/* The name of a fact that there is no flag for; NULL: none. Caller frees. */
static char *fact_without_flag(const Architecture *a)
{
    const char *text, *missing = facts_that_clash(a);
    json_auto_t *facts = family_facts(a);
    members_each (name, fact, facts) {
        text = json_string_value(fact);
        g_autofree char *word =
            g_strdup_printf(" %s%s%s ", name, text ? "=" : "", text ? text : "");
        const char *mixed = strstr(word, "network=dense x ");
        mixed = mixed ? strstr(mixed, ", experts x ") : NULL;
        if (!missing && !strstr(SAID, word) && (!mixed || strchr(mixed + 1, ',')))
            missing = name;
    }
    return g_strdup(missing);
}

/* Runs of dense layers and layers of experts, "[0]*3+[1]*58"; none if all have experts. */
static void put_expert_layers(const Architecture *a, char **value)
{
    g_autoptr(GString) text = g_string_new("(");
    for (uint32_t i = 0, n; i < a->layers; i += n) {
        const Network network = a->layer[i].network;
        for (n = 1; i + n < a->layers && a->layer[i + n].network == network;)
            n++;
        if (n == a->layers)
            return;
        g_string_append_printf(text, "%s[%d]*%u", i ? "+" : "",
                               network == NETWORK_EXPERTS, n);
    }
    g_string_append_c(text, ')');
    put_text(value, WORD_EXPERT_LAYERS, text->str);
}

static void put_experts(const Architecture *a, char **value)
{
    put_number(value, WORD_EXPERTS, a->experts);
    put_number(value, WORD_TOP, a->top);
    put_number(value, WORD_EXPERT_FFN, a->expert_ffn);
    put_expert_layers(a, value);
    if (a->shared_ffn)
        put_number(value, WORD_SHARED_FFN, a->shared_ffn);
    put_text(value, WORD_SHARED_GATE, a->shared_gate ? "on" : NULL);
    if (a->sigmoid)
        put_text(value, WORD_SCORE, "sigmoid");
    if (a->expert_groups > 1) {
        put_number(value, WORD_EXPERT_GROUPS, a->expert_groups);
        put_number(value, WORD_TOP_GROUPS, a->top_groups);
    }
}

/* Low-rank attention (DeepSeek-AI 2024, Sec. 2.1): ranks, and a key's own and shared elements. */
static void put_latent(const Architecture *a, char **value)
{
    put_text(value, WORD_LATENT, "on");
    if (a->q_rank)
        put_number(value, WORD_Q_RANK, a->q_rank);
    put_number(value, WORD_KV_RANK, a->kv_rank);
    put_number(value, WORD_OWN_KEY, a->layer->head_size - a->shared_key);
    put_number(value, WORD_SHARED_KEY, a->shared_key);
    put_number(value, WORD_VALUE_SIZE, a->layer->value_size);
}

static void put_heads(const Architecture *a, char **value)
{
    const LayerFacts *layer = a->layer;
    put_number(value, WORD_HEADS, layer->heads);
    put_text(value, WORD_QK_NORM, a->qk_norm == QK_NORM_HEAD ? "on" : NULL);
    if (layer->mixer == MIXER_LATENT) {
        put_latent(a, value);
        return;
    }
    put_number(value, WORD_KV_HEADS, layer->kv_heads);
    put_number(value, WORD_HEAD_SIZE, layer->head_size);
    if (layer->rotary && layer->rotary != layer->head_size)
        value[WORD_ROTARY_PART] =
            g_strdup_printf("%g", (double)layer->rotary / layer->head_size);
}

static void put_architecture(const Architecture *a, char **value)
{
    const LayerFacts *layer = a->layer;
    put_number(value, WORD_HIDDEN, a->hidden);
    put_number(value, WORD_FFN, layer->ffn);
    put_heads(a, value);
    put_number(value, WORD_VOCAB, a->vocab);
    put_text(value, WORD_NORM, a->norm == NORM_RMS ? "rms" : "layer");
    put_text(value, WORD_POSITION,
             layer->rotary  ? "rope"
             : a->positions ? "learned"
                            : "none");
    put_text(value, WORD_ACTIVATION,
             a->gated && a->activation == ACTIVATION_SILU ? "swiglu"
             : a->activation == ACTIVATION_RELU2          ? "relu2"
                                                          : NULL);
    put_text(value, WORD_UNTIED, a->tied ? NULL : "on");
    put_text(value, WORD_NO_BIAS, a->out_bias || a->ffn_bias ? NULL : "on");
    put_text(value, WORD_QKV_BIAS, a->qkv_bias && !a->out_bias ? "on" : NULL);
    put_text(value, WORD_DROPOUT, a->dropout > 0 ? NULL : "0");
    put_text(value, WORD_ATTENTION_DROPOUT, a->attention_dropout > 0 ? NULL : "0");
    if (a->experts)
        put_experts(a, value);
}

char *export_model_words(const ExportCase *c, char **value)
{
    char *missing = NULL;
    json_t *config = c->plan->content ? json_loads(c->plan->content, 0, NULL) : NULL;
    Architecture *a = config && json_object_get(config, "model_type")
                          ? config_read(c->plan->model, config, "", NULL)
                          : NULL;
    if (a) {
        missing = fact_without_flag(a);
        if (!missing) {
            put_architecture(a, value);
            put_settings(config, value);
        }
        architecture_clear(a);
        g_free(a);
    } else if (!config)
        put_named(c, value);
    json_decref(config);
    const uint32_t heads = launch_number(value, WORD_HEADS),
                   groups = launch_number(value, WORD_KV_HEADS);
    if (groups && groups < heads)
        put_text(value, WORD_GROUPED, "on");
    else
        put_text(value, WORD_KV_HEADS, NULL);
    if (value[WORD_VOCAB]) /* the plan's table, not a padded one */
        put_number(value, WORD_VOCAB_MULTIPLE, 1);
    if (launch_number(value, WORD_EXPERTS)) {
        put_text(value, WORD_DISPATCHER, "alltoall");
        put_capacity(c->plan->model, value);
    }
    return missing;
}
