/* The property of tests/fuzz/fuzz_model.c on files with random damage (fixed seeds): it aborts where
 * it is broken. Damage is to values and keys, since most damaged bytes are just no JSON. */
#include "tests/test.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifndef MUTANTS
enum { MUTANTS = 600 };
#endif
enum { DAMAGES = 4 };

static const char *const WHOLE[] = {
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": 8, "
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"vocab_size\": 11, "
    "\"attention_bias\": true, \"max_position_embeddings\": 16}",
    "{\"model_type\": \"deepseek_v3\", \"num_hidden_layers\": 2, \"q_lora_rank\": null, "
    "\"first_k_dense_replace\": 1, \"n_routed_experts\": 8, \"topk_method\": "
    "\"noaux_tc\"}",
    "{\"model_type\": \"gemma3\", \"text_config\": {\"num_hidden_layers\": 2, "
    "\"layer_types\": [\"sliding_attention\", \"full_attention\"], \"head_dim\": 4, "
    "\"sliding_window\": 3}}",
    "{\"model_type\": \"qwen3_moe\", \"num_hidden_layers\": 2, \"mlp_only_layers\": [0], "
    "\"num_experts\": 4, \"num_experts_per_tok\": 2, \"norm_topk_prob\": true}",
    "{\"architectures\": [\"ViTModel\"], \"num_hidden_layers\": 1, \"image_size\": 32, "
    "\"id2label\": {\"0\": \"a\", \"1\": \"b\"}, \"hidden_act\": \"gelu\"}",
    "{\"format\": {\"name\": \"kilter-graph\", \"version\": 1}, \"name\": \"g\", "
    "\"precision\": \"single\", \"optimizer\": \"adam\", \"nodes\": [{\"layer\": \"a\"}, "
    "{\"input\": \"x\", \"dtype\": \"f32\", \"shape\": [4, 6, 3, 3]}, "
    "{\"input\": \"l\", \"dtype\": \"i64\", \"shape\": [4]}, "
    "{\"parameter\": \"k\", \"shape\": [5, 6, 2, 2], \"whole\": [1]}, "
    "{\"op\": \"c\", \"kind\": \"conv2d\", \"in\": [\"x\", \"k\"], \"extents\": "
    "\"P=2,Q=2\", \"stride\": 1}, "
    "{\"op\": \"p\", \"kind\": \"max_pool2d\", \"in\": [\"c\"], \"extents\": "
    "\"P=1,Q=1\", \"stride\": 1, \"window\": 2}, "
    "{\"op\": \"m\", \"kind\": \"merge\", \"in\": [\"p\"], \"extents\": \"n=1\"}, "
    "{\"op\": \"f\", \"kind\": \"merge\", \"in\": [\"m\"], \"extents\": \"n=5\"}, "
    "{\"op\": \"s\", \"kind\": \"log_softmax\", \"in\": [\"f\"]}, "
    "{\"op\": \"loss\", \"kind\": \"nll_sum\", \"in\": [\"s\", \"l\"]}], "
    "\"seconds\": {\"c\": 0.5, \"c.dw\": 1}}",
    "{\"format\": {\"name\": \"kilter-graph\", \"version\": 1}, \"name\": \"h\", "
    "\"precision\": \"mixed\", \"optimizer\": \"sgd\", \"nodes\": ["
    "{\"input\": \"i\", \"dtype\": \"i64\", \"shape\": [4, 2]}, "
    "{\"parameter\": \"t\", \"shape\": [6, 4]}, {\"parameter\": \"q\", \"shape\": [1, 2, "
    "2, "
    "4]}, {\"parameter\": \"kv\", \"shape\": [1, 4, 4]}, "
    "{\"op\": \"e\", \"kind\": \"embedding\", \"in\": [\"i\", \"t\"]}, "
    "{\"op\": \"a\", \"kind\": \"q_proj\", \"in\": [\"e\", \"q\"]}, "
    "{\"op\": \"r\", \"kind\": \"rotary\", \"in\": [\"a\"], \"first\": 0, \"span\": 2}, "
    "{\"op\": \"b\", \"kind\": \"kv_proj\", \"in\": [\"e\", \"kv\"]}, "
    "{\"op\": \"y\", \"kind\": \"fused_attention\", \"in\": [\"r\", \"b\"], \"extents\": "
    "\"V=2\", \"causal\": true}, "
    "{\"op\": \"g\", \"kind\": \"merge\", \"in\": [\"y\"], \"extents\": \"n=4\"}, "
    "{\"op\": \"o\", \"kind\": \"merge\", \"in\": [\"g\"], \"extents\": \"n=4\"}, "
    "{\"op\": \"u\", \"kind\": \"label_logit\", \"in\": [\"o\", \"i\"]}, "
    "{\"op\": \"v\", \"kind\": \"sum_exp\", \"in\": [\"o\", \"u\"]}, "
    "{\"op\": \"z\", \"kind\": \"log_sum_exp\", \"in\": [\"v\", \"u\"]}, "
    "{\"op\": \"loss\", \"kind\": \"cross_entropy\", \"in\": [\"o\", \"i\", \"z\"]}]}",
    "{\"model_type\": \"opt\", \"num_hidden_layers\": 1, \"word_embed_proj_dim\": 8, "
    "\"do_layer_norm_before\": false, \"dropout\": 0.1}",
};

static const char *const PIECE[] = {"0",
                                    "1",
                                    "-1",
                                    "0.5",
                                    "1e400",
                                    "4294967296",
                                    "65536",
                                    "null",
                                    "[]",
                                    "true",
                                    "\"silu\"",
                                    "{}",
                                    "9999999999999999999",
                                    "\"\"",
                                    "3",
                                    "17",
                                    "[1, null]",
                                    "\"\\u0000\"",
                                    "\"gelu\"",
                                    "false",
                                    "\"conv2d\"",
                                    "\"merge\"",
                                    "\"x\"",
                                    "\"k\"",
                                    "\"sum_exp\"",
                                    "\"add\"",
                                    "\"tied\"",
                                    "\"c.1\"",
                                    "\"y.1\"",
                                    "\"n=2\"",
                                    "\"split\"",
                                    "\"gelu\"",
                                    "\"c.dw\"",
                                    "\"falcon\"",
                                    "\"bert\"",
                                    "\"gpt_oss\"",
                                    "\"phi\"",
                                    "\"gpt2\"",
                                    "\"bloom\""};

static uint32_t below(GRand *rand, uint32_t n)
{
    return (uint32_t)g_rand_int_range(rand, 0, (gint32)n);
}

/* A token is a string or a number. Returns its length, *at its place. */
static gsize random_token(const GString *text, GRand *rand, gsize *at)
{
    static const char outside[] = "[]{}:, \n";
    *at = below(rand, (uint32_t)text->len);
    while (*at > 0 && !strchr(outside, text->str[*at - 1]))
        --*at;
    return strcspn(text->str + *at, outside);
}

static void damage(GString *text, GRand *rand)
{
    gsize at = 0, from = 0;
    const gsize n = random_token(text, rand, &at), m = random_token(text, rand, &from);
    g_autofree char *by = below(rand, 3) == 0
                              ? g_strndup(text->str + from, m)
                              : g_strdup(PIECE[below(rand, G_N_ELEMENTS(PIECE))]);
    if (below(rand, 8) == 0) {
        text->str[below(rand, (uint32_t)text->len)] = (char)(1 + below(rand, 255));
        return;
    }
    g_string_erase(text, (gssize)at, (gssize)n);
    g_string_insert(text, (gssize)at, by);
}

/* MUTANTS of the configurations, or of the graphs, for they have a reader each. */
static void read_mutants(bool graphs)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(13);
    for (uint32_t i = 0, n = 0; n < MUTANTS; i++) {
        const char *whole = WHOLE[i % G_N_ELEMENTS(WHOLE)];
        if ((strstr(whole, "kilter-graph") != NULL) != graphs)
            continue;
        n++;
        g_autoptr(GString) text = g_string_new(whole);
        for (uint32_t d = below(rand, DAMAGES); d > 0; d--)
            damage(text, rand);
        LLVMFuzzerTestOneInput((const uint8_t *)text->str, text->len);
    }
}

static void test_configurations(void **state)
{
    (void)state;
    read_mutants(false);
}

static void test_graphs(void **state)
{
    (void)state;
    read_mutants(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_configurations),
        cmocka_unit_test(test_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
