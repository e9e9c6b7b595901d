/* Models of random blocks: their parameters by a formula of each block and by the graph, and random
 * plans of them, proved by running them. */
#include <glib/gstdio.h>

#include "data/models/model.h"
#include "tests/support/proved.h"
#include "tests/support/random_strategy.h"

#ifndef MODELS
#define MODELS 20
#endif

enum { LAYERS = 4, VOCAB = 24, SEQ = 6 };
#define CLUSTER "star:hosts=8,bandwidth=1Gb/s,latency=5us"

static const char *const MIXER[] = {
    "attention",          "latent",    "mamba", "mamba-1", "delta",
    "kimi-delta",         "lightning", "conv",  "rwkv-6",  "rwkv-7",
    "attention-and-mamba"};
static const char *const NETWORK[] = {"dense", "experts", "rwkv-6", "rwkv-7", "none"};

typedef struct {
    uint32_t hidden, heads, kv_heads, head_size, ffn, q_rank, kv_rank, shared_key;
    uint32_t scan_heads, scan_groups, scan_keys, scan_values, conv, decay_rank, gate_rank,
        mix_rank, value_rank, experts, expert_ffn, shared_ffn;
    bool layer_norm, gated, qkv_bias, out_bias, ffn_bias, tied, scan_bias, conv_bias,
        scan_norm, qk_norm;
    const char *mixer[LAYERS], *network[LAYERS];
} Random;

static uint32_t between(GRand *rand, uint32_t low, uint32_t high)
{
    return (uint32_t)g_rand_int_range(rand, (gint32)low, (gint32)high + 1);
}

static Random draw(GRand *rand)
{
    Random r = {.hidden = 4 * between(rand, 2, 5),
                .kv_heads = between(rand, 1, 2),
                .head_size = 2 * between(rand, 2, 3),
                .ffn = between(rand, 5, 20),
                .q_rank = between(rand, 0, 1) * between(rand, 2, 5),
                .kv_rank = between(rand, 2, 5),
                .shared_key = 2,
                .scan_keys = between(rand, 2, 4),
                .scan_values = between(rand, 2, 4),
                .conv = between(rand, 1, 4),
                .decay_rank = between(rand, 1, 3),
                .gate_rank = between(rand, 1, 3),
                .mix_rank = between(rand, 1, 3),
                .value_rank = between(rand, 1, 3),
                .experts = between(rand, 2, 4),
                .expert_ffn = between(rand, 2, 6),
                .shared_ffn = between(rand, 0, 1) * between(rand, 2, 6)};
    bool *const flag[] = {&r.layer_norm, &r.gated,  &r.qkv_bias,  &r.out_bias,
                          &r.ffn_bias,   &r.tied,   &r.scan_bias, &r.conv_bias,
                          &r.scan_norm,  &r.qk_norm};
    for (uint32_t i = 0; i < G_N_ELEMENTS(flag); i++)
        *flag[i] = g_rand_boolean(rand);
    bool rwkv = false, latent = false;
    for (uint32_t l = 0; l < LAYERS; l++) {
        r.mixer[l] = MIXER[between(rand, 0, G_N_ELEMENTS(MIXER) - 1)];
        r.network[l] = NETWORK[between(rand, 0, G_N_ELEMENTS(NETWORK) - 1)];
        rwkv |= g_str_has_prefix(r.mixer[l], "rwkv");
        latent |= strcmp(r.mixer[l], "latent") == 0;
    }
    r.heads = r.kv_heads * (latent ? 1 : between(rand, 1, 2));
    r.scan_groups = between(rand, 1, 2);
    r.scan_heads = r.scan_groups * (rwkv ? 1 : between(rand, 1, 2));
    return r;
}

static void write_list(GString *text, const char *fact, const char *const word[LAYERS])
{
    g_string_append_printf(text, "%s: ", fact);
    for (uint32_t l = 0; l + 1 < LAYERS; l++)
        g_string_append_printf(text, "if $layer == %u then '%s' else (", l, word[l]);
    g_string_append_printf(text, "'%s')))\n", word[LAYERS - 1]);
}

static char *write_yaml(const Random *r)
{
    GString *text = g_string_new("like: llama\n");
    const struct {
        const char *fact;
        uint32_t value;
    } number[] = {{"layers", LAYERS},
                  {"vocab", VOCAB},
                  {"hidden", r->hidden},
                  {"heads", r->heads},
                  {"kv_heads", r->kv_heads},
                  {"head_size", r->head_size},
                  {"ffn", r->ffn},
                  {"rotary", r->shared_key},
                  {"q_rank", r->q_rank},
                  {"kv_rank", r->kv_rank},
                  {"shared_key", r->shared_key},
                  {"scan_heads", r->scan_heads},
                  {"scan_groups", r->scan_groups},
                  {"scan_keys", r->scan_keys},
                  {"scan_values", r->scan_values},
                  {"conv", r->conv},
                  {"decay_rank", r->decay_rank},
                  {"gate_rank", r->gate_rank},
                  {"mix_rank", r->mix_rank},
                  {"value_rank", r->value_rank},
                  {"experts", r->experts},
                  {"top", 1},
                  {"expert_ffn", r->expert_ffn},
                  {"shared_ffn", r->shared_ffn}};
    const struct {
        const char *fact;
        bool value;
    } flag[] = {{"gated", r->gated},         {"qkv_bias", r->qkv_bias},
                {"out_bias", r->out_bias},   {"ffn_bias", r->ffn_bias},
                {"tied", r->tied},           {"scan_bias", r->scan_bias},
                {"conv_bias", r->conv_bias}, {"scan_norm", r->scan_norm}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(number); i++)
        g_string_append_printf(text, "%s: %u\n", number[i].fact, number[i].value);
    for (uint32_t i = 0; i < G_N_ELEMENTS(flag); i++)
        g_string_append_printf(text, "%s: %s\n", flag[i].fact,
                               flag[i].value ? "true" : "false");
    g_string_append_printf(text, "norm: %s\nqk_norm: %s\n",
                           r->layer_norm ? "layer" : "rms", r->qk_norm ? "head" : "none");
    write_list(text, "mixer", r->mixer);
    write_list(text, "network", r->network);
    return g_string_free(text, FALSE);
}

/* --- parameters, block by block --- */

static uint64_t of_attention(const Random *r, bool latent)
{
    const uint64_t d = r->hidden, q = (uint64_t)r->heads * r->head_size,
                   kv = (uint64_t)r->kv_heads * 2 * r->head_size;
    const uint64_t out = q * d + (r->out_bias ? d : 0);
    const uint64_t source = r->q_rank ? r->q_rank : d;
    uint64_t n = out + source * q + (r->qkv_bias ? q : 0) +
                 (r->qk_norm ? r->head_size : 0) +
                 (r->q_rank ? d * r->q_rank + r->q_rank : 0);
    if (!latent)
        return n + d * kv + (r->qkv_bias ? kv : 0) + (r->qk_norm ? r->head_size : 0);
    return n + d * r->kv_rank + r->kv_rank + d * r->shared_key +
           (uint64_t)r->kv_rank * r->heads * (2 * r->head_size - r->shared_key);
}

static uint64_t of_scan(const Random *r, const char *mixer)
{
    const bool mamba = strcmp(mixer, "mamba") == 0,
               kimi = strcmp(mixer, "kimi-delta") == 0,
               lightning = strcmp(mixer, "lightning") == 0;
    const uint64_t d = r->hidden, h = r->scan_heads, v = h * r->scan_values,
                   qk = 2 * (uint64_t)r->scan_groups * r->scan_keys, b = r->scan_bias;
    uint64_t n = (d + b + r->conv + r->conv_bias) * (qk + v); /* and their convolutions */
    n += kimi ? d * r->gate_rank + r->gate_rank * v : d * v;
    n += b * v + v * d + b * d;
    if (mamba)
        return n + (d + b) * h + 3 * h + (r->scan_norm ? v : 0);
    if (lightning)
        return n + v;
    n += r->scan_values; /* the norm */
    return kimi ? n + d * r->decay_rank + r->decay_rank * h * r->scan_keys + d * h + h +
                      h * r->scan_keys
                : n + 2 * (d + b) * h + 2 * h;
}

static uint64_t of_selective(const Random *r)
{
    const uint64_t d = r->hidden, c = r->scan_heads, keys = r->scan_keys,
                   rank = r->decay_rank, b = r->scan_bias;
    return (d + b + r->conv + r->conv_bias) * c + 2 * c * keys + c * rank +
           (r->scan_norm ? r->scan_groups * (2 * keys + rank) : 0) + c * rank + c +
           c * keys + c + (d + b) * c + c * d + b * d;
}

static uint64_t of_rwkv(const Random *r, bool seven, bool first)
{
    const uint64_t d = r->hidden, k = (uint64_t)r->scan_heads * r->scan_keys,
                   v = (uint64_t)r->scan_heads * r->scan_values;
    const uint64_t both = 2 * d * k + d * v + d * r->decay_rank + r->decay_rank * k + k +
                          k + 2 * v + d * r->gate_rank + r->gate_rank * v + v * d;
    if (!seven)
        return both + d + 5 * (2 * d * r->mix_rank + d);
    return both + 6 * d + d * r->mix_rank + r->mix_rank * k + k + 2 * k +
           (first ? 0 : d * r->value_rank + r->value_rank * v + v);
}

static uint64_t of_dense(const Random *r, uint64_t ffn)
{
    const uint64_t up = (r->gated ? 2 : 1) * ffn;
    return r->hidden * (up + ffn) + (r->ffn_bias ? up + r->hidden : 0);
}

static uint64_t of_network(const Random *r, const char *network)
{
    const uint64_t d = r->hidden;
    if (strcmp(network, "rwkv-7") == 0)
        return d + 2 * d * r->ffn;
    if (strcmp(network, "rwkv-6") == 0)
        return 2 * d + 2 * d * r->ffn + d * d;
    if (strcmp(network, "dense") == 0)
        return of_dense(r, r->ffn);
    return d * r->experts +
           r->experts * d * ((r->gated ? 3 : 2) * (uint64_t)r->expert_ffn) +
           (r->shared_ffn ? of_dense(r, r->shared_ffn) : 0);
}

static uint64_t of_mixer(const Random *r, const char *mixer, bool first)
{
    const uint64_t d = r->hidden;
    if (strcmp(mixer, "attention") == 0 || strcmp(mixer, "latent") == 0)
        return of_attention(r, mixer[0] == 'l');
    if (strcmp(mixer, "attention-and-mamba") == 0)
        return of_attention(r, false) + of_scan(r, "mamba");
    if (strcmp(mixer, "mamba-1") == 0)
        return of_selective(r);
    if (g_str_has_prefix(mixer, "rwkv"))
        return of_rwkv(r, strcmp(mixer, "rwkv-7") == 0, first);
    if (strcmp(mixer, "conv") == 0)
        return 4 * d * (d + r->conv_bias) + d * (r->conv + r->conv_bias);
    return of_scan(r, mixer);
}

static uint64_t parameters_of(const Random *r)
{
    const uint64_t norm = r->hidden * (r->layer_norm ? 2 : 1);
    uint64_t n = (uint64_t)VOCAB * r->hidden * (r->tied ? 1 : 2) + norm;
    bool first = true;
    for (uint32_t l = 0; l < LAYERS; l++) {
        n += norm + of_mixer(r, r->mixer[l], first);
        first &= strcmp(r->mixer[l], "rwkv-7") != 0;
        if (strcmp(r->network[l], "none") != 0)
            n += norm + of_network(r, r->network[l]);
    }
    return n;
}

/* --- plans --- */

static void test_random_models(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(34);
    g_autofree char *folder = g_dir_make_tmp("kilter-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "random.yaml", NULL);
    g_autofree char *model = g_strdup_printf("%s:global_batch=24,seq=%d", path, SEQ);
    for (uint32_t i = 0; i < MODELS; i++) {
        g_autoptr(GError) error = NULL;
        const Random r = draw(rand);
        g_autofree char *text = write_yaml(&r);
        g_autofree char *set = random_strategy(rand, false, false);
        assert_true(g_file_set_contents(path, text, -1, NULL));
        g_autoptr(Graph) graph = model_build(model, 1, NULL, &error);
        if (error)
            fail_msg("%s\n%s", error->message, text);
        if (graph_parameter_count(graph) != parameters_of(&r))
            fail_msg("%" G_GUINT64_FORMAT " parameters, by the formula %" G_GUINT64_FORMAT
                     "\n%s",
                     graph_parameter_count(graph), parameters_of(&r), text);
        check_proved(i % 4 ? "manual" : "joint", model, CLUSTER, i % 4 ? set : "", text);
    }
    g_unlink(path);
    g_rmdir(folder);
}

/* A model that hap's exact search does not take gets a baseline's program, and no bound. */
static void test_baseline(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("kilter-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "mamba.json", NULL);
    g_autofree char *model = g_strdup_printf("%s:global_batch=24,seq=6", path);
    static const char text[] =
        "{\"model_type\":\"mamba\",\"hidden_size\":16,\"num_hidden_layers\":2,"
        "\"vocab_size\":24,\"state_size\":4,\"time_step_rank\":3}";
    assert_true(g_file_set_contents(path, text, -1, NULL));
    g_auto(Made) made = make("hap", model, CLUSTER, "", &error);
    g_unlink(path);
    g_rmdir(folder);
    assert_no_error(error);
    assert_false(made.plan->optimal);
    assert_true(made.plan->lower_bound_s == 0 && made.plan->iteration_time_s > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_models),
        cmocka_unit_test(test_baseline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
