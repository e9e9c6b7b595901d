/* Models from configuration files: parameters compared with published counts, refusals, and all
 * configurations of the shared samples. */
#include <glib/gstdio.h>
#include <time.h>
#include <unistd.h>

#include "data/data.h"
#include "tests/test.h"

/* The graph of a configuration, or NULL. `list` follows the colon. */
static Graph *graph_of(const char *json, const char *list, GError **error)
{
    g_autofree char *path =
        g_strdup_printf("%s/kilter-config-%d.json", g_get_tmp_dir(), (int)getpid());
    g_autofree char *spec = g_strdup_printf("%s%s%s", path, *list ? ":" : "", list);
    g_file_set_contents(path, json, -1, NULL);
    Graph *graph = model_build(spec, 1, NULL, error);
    g_unlink(path);
    return graph;
}

/* Published counts: model cards, indexes of checkpoints, or papers. */
static void test_published_counts(void **state)
{
    (void)state;
    static const struct {
        uint64_t parameters;
        const char *json;
    } known[] = {
        /* 4 H^2 + 4 H + 2 H I + I + H + 2 H, V H + V and 2 H: a tied head keeps its bias */
        {4 * 32 * 32 + 4 * 32 + 2 * 32 * 100 + 100 + 3 * 32 + 97 * 32 + 97 + 2 * 32,
         "{'model_type':'phi','hidden_size':32,'num_attention_heads':4,"
         "'num_hidden_layers':1,'intermediate_size':100,'vocab_size':97,"
         "'tie_word_embeddings':true}"},
        /* 4 H^2 + 3 H I + 2 H, 2 V H and H; no window */
        {4 * 32 * 32 + 3 * 32 * 100 + 2 * 32 + 2 * 97 * 32 + 32,
         "{'model_type':'mistral','hidden_size':32,'num_attention_heads':4,"
         "'num_key_value_heads':4,'num_hidden_layers':1,'intermediate_size':100,"
         "'vocab_size':97,'sliding_window':0}"},
        {124439808, "{'model_type':'gpt2'}"},
        {108891648, "{'model_type':'bert'}"}, /* without its pooler, 590,592 */
        {86567656, "{'model_type':'vit','num_labels':1000}"},
        {6738415616, "{'architectures':['LlamaForCausalLM']}"},
        {7241732096, "{'model_type':'mistral'}"},
        {46702792704, "{'model_type':'mixtral'}"},
        {8537680896, "{'model_type':'gemma'}"},
        {3821079552, "{'model_type':'phi3'}"},
        {1418270720, "{'model_type':'phi'}"},
        {6921720704, "{'model_type':'falcon'}"},
        {671026419200, "{'model_type':'deepseek_v3'}"},
        {116829156672, "{'model_type':'gpt_oss'}"},
        {20914757184,
         "{'model_type':'gpt_oss','num_hidden_layers':24,'num_local_experts':32}"},
        {20554567680, "{'model_type':'gpt_neox'}"},
        {7615616512, "{'model_type':'qwen2','hidden_size':3584,'intermediate_size':18944,"
                     "'num_hidden_layers':28,'num_attention_heads':28,"
                     "'num_key_value_heads':4,'vocab_size':152064}"},
        {30532122624, "{'model_type':'qwen3_moe','num_hidden_layers':48,'head_dim':128}"},
        /* post-norm, and a table narrower than the model */
        {331196416, "{'model_type':'opt','word_embed_proj_dim':512,"
                    "'do_layer_norm_before':false,'hidden_size':1024,"
                    "'num_hidden_layers':24,'num_attention_heads':16,'ffn_dim':4096}"},
        /* one after the other, with slopes and biases */
        {1311625216, "{'model_type':'falcon','alibi':true,'bias':true,'hidden_size':2048,"
                     "'multi_query':false,'num_attention_heads':32,'parallel_attn':false,"
                     "'num_hidden_layers':24,'vocab_size':50304}"},
        /* queries of full rank, no bias of the router */
        {15706484224, "{'model_type':'deepseek_v3','q_lora_rank':null,'hidden_size':2048,"
                      "'num_hidden_layers':27,'num_attention_heads':16,"
                      "'num_key_value_heads':16,'first_k_dense_replace':1,"
                      "'intermediate_size':10944,'moe_intermediate_size':1408,"
                      "'n_routed_experts':64,'n_shared_experts':2,"
                      "'num_experts_per_tok':6,'topk_method':'greedy',"
                      "'vocab_size':102400}"},
        /* 3 H I, attention (queries, keys with values and their norm, both halves, output), 2 H,
         * 2 V H and H: null stands for no experts */
        {3 * 8 * 12 + (8 * 8 + 8 * 4 + 2 + 2 * 8 + 4 * 8) + 2 * 8 + 2 * 97 * 8 + 8,
         "{'model_type':'deepseek_v3','hidden_size':8,'num_attention_heads':2,"
         "'num_key_value_heads':2,'num_hidden_layers':1,'intermediate_size':12,"
         "'vocab_size':97,'first_k_dense_replace':0,'n_routed_experts':null,"
         "'n_shared_experts':null,'q_lora_rank':null,'kv_lora_rank':2,"
         "'qk_nope_head_dim':2,'qk_rope_head_dim':2,'v_head_dim':2}"},
        /* no shared expert beside two of 3 H I and a router of 2 H + 2 */
        {2 * 3 * 8 * 5 + 2 * 8 + 2 + (8 * 8 + 8 * 4 + 2 + 2 * 8 + 4 * 8) + 2 * 8 +
             2 * 97 * 8 + 8,
         "{'model_type':'deepseek_v3','hidden_size':8,'num_attention_heads':2,"
         "'num_key_value_heads':2,'num_hidden_layers':1,'intermediate_size':12,"
         "'vocab_size':97,'first_k_dense_replace':0,'n_routed_experts':2,"
         "'num_experts_per_tok':1,'moe_intermediate_size':5,"
         "'n_shared_experts':null,'q_lora_rank':null,'kv_lora_rank':2,"
         "'qk_nope_head_dim':2,'qk_rope_head_dim':2,'v_head_dim':2}"},
        /* 4 H^2 + 2 d + 3 H I + 2 H, 2 V H and H: no experts at all */
        {4 * 8 * 8 + 2 * 4 + 3 * 8 * 12 + 2 * 8 + 2 * 97 * 8 + 8,
         "{'model_type':'qwen3_moe','hidden_size':8,'num_attention_heads':2,"
         "'num_key_value_heads':2,'num_hidden_layers':1,'intermediate_size':12,"
         "'vocab_size':97,'num_experts':0}"},
        /* heads need not divide the width where the family has a size of its own */
        {2 * 10 * 3 * 8 + 2 * 10 * 3 * 8 + 2 * 8 + 3 * 10 * 12 + 2 * 10 + 2 * 97 * 10 +
             10,
         "{'model_type':'qwen3','hidden_size':10,'num_attention_heads':3,'head_dim':8,"
         "'num_key_value_heads':3,'num_hidden_layers':1,'intermediate_size':12,"
         "'vocab_size':97}"},
        {4 * 10 * 3 * 256 + 3 * 10 * 12 + 2 * 10 + 97 * 10 + 10,
         "{'model_type':'gemma','hidden_size':10,'num_attention_heads':3,"
         "'num_key_value_heads':3,'num_hidden_layers':1,'intermediate_size':12,"
         "'vocab_size':97}"},
        /* 12 H^2 + 13 H, V H and 4 H: bloom's widths are those of n_embed */
        {12 * 8 * 8 + 13 * 8 + 97 * 8 + 4 * 8,
         "{'model_type':'bloom','n_embed':8,'hidden_size':64,'n_inner':8,'n_head':2,"
         "'n_layer':1,'vocab_size':97}"},
        /* the first name of phi-2, and the classes of files without a model_type */
        {2779683840, "{'model_type':'phi-msft','n_embd':2560,'n_head':32,'n_inner':null,"
                     "'n_head_kv':null,'n_layer':32,'rotary_dim':32}"},
        {6921720704, "{'architectures':['RWForCausalLM'],'n_head':71,'n_layer':32}"},
        {30532122624, "{'architectures':['Qwen3MoeForCausalLM'],'head_dim':128,"
                      "'num_hidden_layers':48}"},
        /* 4 H^2 + 3 H I + 2 H, V H and H: said of the whole model, the head is tied */
        {4 * 8 * 8 + 3 * 8 * 12 + 2 * 8 + 97 * 8 + 8,
         "{'model_type':'mistral3','tie_word_embeddings':true,'text_config':"
         "{'model_type':'mistral','hidden_size':8,'num_attention_heads':2,"
         "'num_key_value_heads':2,'num_hidden_layers':1,'intermediate_size':12,"
         "'vocab_size':97}}"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(known); i++) {
        g_autofree char *json = g_strdelimit(g_strdup(known[i].json), "'", '"');
        g_autoptr(GError) error = NULL;
        g_autoptr(Graph) graph = graph_of(json, "", &error);
        assert_no_error(error);
        if (graph_parameter_count(graph) != known[i].parameters)
            fail_msg("%s: %" G_GUINT64_FORMAT " parameters, expected %" G_GUINT64_FORMAT,
                     known[i].json, graph_parameter_count(graph), known[i].parameters);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *json, *list, *named;
    } wrong[] = {
        {"{'hidden_size':4}", "", "model_type"},
        {"{'model_type':'tapas'}", "", "\"tapas\""},
        {"{'model_type':'llama','num_hidden_layers':1000000}", "", "num_hidden_layers"},
        {"{'model_type':'llama','hidden_size':'wide'}", "", "hidden_size"},
        {"{'model_type':'llama','hidden_size':100,'num_attention_heads':3}", "",
         "num_attention_heads"},
        {"{'model_type':'llama','num_key_value_heads':5}", "", "num_key_value_heads"},
        {"{'model_type':'llama','hidden_act':'mish'}", "", "hidden_act"},
        {"{'model_type':'phi','qk_layernorm':true}", "", "qk_layernorm"},
        {"{'model_type':'qwen3_moe','mlp_only_layers':'x'}", "", "mlp_only_layers"},
        {"{'model_type':'qwen3_moe','mlp_only_layers':[0,'x']}", "", "mlp_only_layers"},
        {"{'model_type':'gemma3','text_config':{'head_dim':0}}", "",
         "text_config.head_dim"},
        {"{'model_type':'gemma3','text_config':[]}", "", "text_config"},
        {"{'model_type':'mixtral','num_experts_per_tok':9}", "", "num_experts_per_tok"},
        {"{'model_type':'deepseek_v3','num_key_value_heads':8}", "",
         "num_key_value_heads"},
        {"{'model_type':'vit','patch_size':15}", "", "patch_size"},
        {"{'model_type':'mixtral','num_hidden_layers':4096,'hidden_size':16777216,"
         "'num_attention_heads':4096,'intermediate_size':16777216}",
         "", "elements together"},
        {"{'model_type':'gpt2'}", "seq=4096", "seq"},
        {"{'model_type':'roberta','max_position_embeddings':514}", "seq=513", "seq"},
        {"{'model_type':'opt'}", "seq=2049", "seq"},
        {"{'architectures':['LlamacppForCausalLM']}", "", "LlamacppForCausalLM"},
        {"{'model_type':'gpt2'}", "attention=flash", "attention"},
        {"{'model_type':'gpt2'}", "sequence=12", "sequence"},
        {"{'model_type':'gpt_oss'}", "attention=materialized", "sinks"},
        {"{'model_type':'deepseek_v4','hc_mult':4}", "", "hc_mult"},
        {"{'model_type':'llama','layer_types':['full_attention']}", "", "layer_types"},
        {"{'model_type':'llama'}", "mtp=1", "mtp"},
        {"{'model_type':'vit','image_size':0}", "", "image"},
        {"{'model_type':'vit','patch_size':0}", "", "patch_size"},
        {"{'model_type':'gpt2',", "", ":1:"},
        {"[]", "", "object"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autofree char *json = g_strdelimit(g_strdup(wrong[i].json), "'", '"');
        g_autoptr(GError) error = NULL;
        g_autoptr(Graph) graph = graph_of(json, wrong[i].list, &error);
        assert_null(graph);
        assert_int_equal(error->code, KILTER_ERROR_INPUT);
        if (!strstr(error->message, wrong[i].named))
            fail_msg("%s: %s", wrong[i].json, error->message);
    }
}

/* The bytes of attention's scores are kept, or not at all. */
static void test_attention_kinds(void **state)
{
    (void)state;
    static const char llama[] = "{\"model_type\":\"llama\",\"num_hidden_layers\":1}";
    enum { SEQ = 64, HEADS = 32 };
    const char *const list[] = {"seq=64", "seq=64,attention=materialized"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(list); i++) {
        g_autoptr(Graph) graph = graph_of(llama, list[i], NULL);
        const TensorId y = graph_find(graph, "layers.0.attention");
        const Op *op = graph_get_op(graph, graph_tensor(graph, y)->producer);
        assert_int_equal(op->kind, i ? OP_GROUPED_ATTENTION : OP_FUSED_ATTENTION);
        assert_int_equal(tensor_elements(graph_tensor(graph, op->out[1])),
                         (i ? SEQ : 1) * SEQ * HEADS);
    }
}

/* DeepSeek-V3 is read and its graph of 61 layers built in at most 0.2 s of one core. */
static void test_large_is_quick(void **state)
{
    (void)state;
    static const double MOST_S = 0.2;
    g_autoptr(GError) error = NULL;
    const clock_t begin = clock();
    g_autoptr(Graph) graph = graph_of("{\"model_type\":\"deepseek_v3\"}", "", &error);
    const double took_s = (double)(clock() - begin) / CLOCKS_PER_SEC;
    assert_no_error(error);
    assert_true(graph_n_ops(graph) > 5000);
    assert_at_most(took_s, MOST_S);
}

static void test_shared_samples(void **state)
{
    (void)state;
    const char *list = test_shared("samples/expected.csv");
    if (!list)
        skip();
    g_autofree char *text = NULL, *root = g_path_get_dirname(list);
    assert_true(g_file_get_contents(list, &text, NULL, NULL));
    g_auto(GStrv) line = g_strsplit(text, "\n", -1);
    uint32_t checked = 0;
    for (uint32_t i = 0; line[i]; i++) {
        g_auto(GStrv) cell = g_strsplit(line[i], ",", 5);
        const bool active =
            g_strv_length(cell) > 3 && !strcmp(cell[2], "active_parameters_oracle");
        if (g_strv_length(cell) < 4 || strcmp(cell[1], "hf_config") != 0 ||
            (strcmp(cell[2], "parameters_oracle") != 0 && !active) ||
            strstr(cell[0], "t5-small")) /* an encoder and a decoder */
            continue;
        g_autofree char *path = g_build_filename(root, cell[0], NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(Graph) graph = model_build(path, 1, NULL, &error);
        assert_no_error(error);
        const GraphFacts facts = graph_facts(graph);
        const uint64_t want = g_ascii_strtoull(cell[3], NULL, 10);
        if ((active ? facts.active_parameters : facts.parameters) != want)
            fail_msg("%s: %s: got %" G_GUINT64_FORMAT, cell[0], cell[2],
                     active ? facts.active_parameters : facts.parameters);
        checked++;
    }
    assert_true(checked >= 20);
}

/* Totals of today's families, by the file of shared cases. */
static void test_shared_cases(void **state)
{
    (void)state;
    const char *list = test_shared("cases/models/expected.csv");
    if (!list)
        skip();
    g_autofree char *text = NULL, *root = g_path_get_dirname(list);
    assert_true(g_file_get_contents(list, &text, NULL, NULL));
    g_auto(GStrv) line = g_strsplit(text, "\n", -1);
    uint32_t checked = 0;
    for (uint32_t i = 1; line[i] && *line[i]; i++) {
        g_auto(GStrv) cell = g_strsplit(line[i], ",", 4);
        g_autofree char *path = g_build_filename(root, cell[0], NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(Graph) graph = model_build(path, 1, NULL, &error);
        assert_no_error(error);
        const GraphFacts facts = graph_facts(graph);
        if (facts.parameters != g_ascii_strtoull(cell[1], NULL, 10) ||
            facts.active_parameters != g_ascii_strtoull(cell[2], NULL, 10))
            fail_msg("%s: %" G_GUINT64_FORMAT " parameters, %" G_GUINT64_FORMAT " active",
                     cell[0], facts.parameters, facts.active_parameters);
        checked++;
    }
    assert_true(checked >= 10);
}

static uint64_t parameters_of(const char *json, const char *list)
{
    g_autofree char *text = g_strdelimit(g_strdup(json), "'", '"');
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = graph_of(text, list, &error);
    assert_no_error(error);
    return graph_parameter_count(graph);
}

/* An unknown type is read as the family that is named, NaN and Infinity are read, and modules for
 * further tokens are counted if asked for: norms of both, the projection and the norm of the
 * result, and one more layer. */
static void test_files_as_they_are(void **state)
{
    (void)state;
    enum { H = 8, V = 97, LAYER = 4 * H * H + 3 * H * 12 + 2 * H };
    static const char sizes[] =
        "'hidden_size':8,'num_attention_heads':2,'num_hidden_layers':1,"
        "'intermediate_size':12,'vocab_size':97";
    g_autofree char *unknown =
        g_strdup_printf("{'model_type':'llama9',%s,'time_step_limit':[0.0,Infinity],"
                        "'note':'\\'Infinity\\'','least':-Infinity,'none':NaN}",
                        sizes);
    char *escaped = strstr(unknown, "'note'");
    memset(escaped, ' ', (size_t)(strstr(escaped, "'least'") - escaped));
    assert_int_equal(parameters_of(unknown, "like=llama"), 2 * V * H + H + LAYER);
    g_autofree char *further = g_strdup_printf(
        "{'model_type':'glm4_moe','num_nextn_predict_layers':1,'first_k_dense_replace':1,"
        "'n_routed_experts':2,'num_experts_per_tok':1,'moe_intermediate_size':5,"
        "'num_key_value_heads':2,%s}",
        sizes);
    assert_int_equal(parameters_of(further, "mtp=1") - parameters_of(further, ""),
                     LAYER + 2 * H * H + 3 * H);
}

/* A model of one's own: a family's facts, some of them replaced, by layer or not. */
static void test_own_models(void **state)
{
    (void)state;
    static const struct {
        const char *text, *named; /* NULL: it is read */
        uint64_t parameters;
    } cases[] = {
        {"like: llama\nlayers: 4\nhidden: 8\nvocab: 97\nheads: 2\nkv_heads: 1\n"
         "ffn: if $layer < 2 then 12 else 6\nqk_norm: head\n",
         NULL,
         2 * 97 * 8 + 8 + 4 * (3 * 8 * 8 + 2 * 8 + 2 * 4) + 3 * 8 * (2 * 12 + 2 * 6)},
        {"like: qwen3_next\nlayers: 2\nhidden: 8\nvocab: 97\nnetwork: none\n"
         "mixer: delta\nscan_groups: 1\nscan_heads: 2\nscan_keys: 4\nscan_values: 4\n",
         NULL,
         2 * 97 * 8 + 8 +
             2 * (8 * (2 * 4 + 2 * 8 + 2 * 2) + 4 * (2 * 4 + 8) + 2 + 2 + 4 + 8 * 8 + 8)},
        {"like: llama\nmixer: delto\n", "mixer", 0},
        {"like: lama\n", "lama", 0},
        {"like: llama\nhiden: 12\n", "hiden", 0},
        {"like: llama\nhidden: 12 +\n", "hidden", 0},
        {"like: llama\nhidden: $width\n", "width", 0},
        {"like: [1]\n", "like", 0},
        {"- 1\n", "object", 0},
        {"like: &a llama\nname: *a\n", ":2:", 0},
    };
    g_autofree char *path =
        g_strdup_printf("%s/kilter-own-%d.yaml", g_get_tmp_dir(), (int)getpid());
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_file_set_contents(path, cases[i].text, -1, NULL);
        g_autofree char *canonical = NULL;
        g_autoptr(Graph) graph = model_build(path, 1, &canonical, &error);
        if (cases[i].named) {
            assert_null(graph);
            if (!strstr(error->message, cases[i].named))
                fail_msg("%s: %s", cases[i].text, error->message);
            continue;
        }
        assert_no_error(error);
        if (graph_parameter_count(graph) != cases[i].parameters)
            fail_msg("%s: %" G_GUINT64_FORMAT " parameters, expected %" G_GUINT64_FORMAT,
                     cases[i].text, graph_parameter_count(graph), cases[i].parameters);
        g_autofree char *content = NULL;
        assert_true(model_content(path, &content, &error));
        g_autoptr(Graph) again = model_build_from(canonical, content, 1, NULL, &error);
        assert_no_error(error);
        assert_int_equal(graph_n_ops(again), graph_n_ops(graph));
    }
    g_unlink(path);
}

/* Keys that nothing was read from are named; those without effect are not. */
static void test_unread_keys(void **state)
{
    (void)state;
    g_autofree char *path =
        g_strdup_printf("%s/kilter-unread-%d.json", g_get_tmp_dir(), (int)getpid());
    g_file_set_contents(path,
                        "{\"model_type\":\"llama\",\"vision_config\":{\"depth\":2},"
                        "\"wide_layers\":3,\"rope_theta\":1e4,\"no\":false}",
                        -1, NULL);
    g_autofree char *facts = model_architecture(path, NULL);
    assert_non_null(strstr(facts, "\"vision_config, wide_layers\""));
    g_unlink(path);
}

/* A damaged row of families.yaml is named by file and line, wherever rows lead to it. */
static void test_damaged_rows(void **state)
{
    (void)state;
    g_autofree char *folder = g_dir_make_tmp("kilter-families-XXXXXX", NULL),
                    *path = g_build_filename(folder, "families.yaml", NULL);
    static const char *const rows[] = {
        "decoder:\n  layers: [\nllama: {like: decoder}\n",
        "decoder:\n  layers: 2\nllama:\n  like: decoder\n  like: decoder\n"};
    static const char *const line[] = {"families.yaml:4", "families.yaml:5"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        g_file_set_contents(path, rows[i], -1, NULL);
        g_setenv("KILTER_PATH", folder, TRUE);
        Graph *graph = graph_of("{\"model_type\":\"llama\"}", "", &error);
        g_unsetenv("KILTER_PATH");
        assert_null(graph);
        if (!strstr(error->message, line[i]))
            fail_msg("%s lacks %s", error->message, line[i]);
    }
    g_unlink(path);
    g_rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_counts),  cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_attention_kinds),   cmocka_unit_test(test_large_is_quick),
        cmocka_unit_test(test_shared_samples),    cmocka_unit_test(test_shared_cases),
        cmocka_unit_test(test_files_as_they_are), cmocka_unit_test(test_own_models),
        cmocka_unit_test(test_unread_keys),       cmocka_unit_test(test_damaged_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
