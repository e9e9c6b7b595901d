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

static void test_mutants(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(13);
    for (uint32_t i = 0; i < MUTANTS; i++) {
        g_autoptr(GString) text = g_string_new(WHOLE[i % G_N_ELEMENTS(WHOLE)]);
        for (uint32_t d = below(rand, DAMAGES); d > 0; d--)
            damage(text, rand);
        LLVMFuzzerTestOneInput((const uint8_t *)text->str, text->len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
