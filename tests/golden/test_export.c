/* Plans for frameworks: layouts add up, schedules are the simulated ones, and unsupported features
 * are refused by name. */
#include <glib/gstdio.h>
#include <jansson.h>

#include "data/data.h"
#include "data/formats/export/case.h"
#include "sim/sim.h"
#include "tests/support/exported.h"

/* --- layer sums --- */

/* The number of layers of "Et*3|tt|t*4L", and of its stages. */
static uint32_t count_layers(const char *layout, uint32_t *stages)
{
    uint32_t layers = 0;
    *stages = 1;
    assert_int_equal(layout[0], 'E');
    for (const char *p = layout + 1; *p != 'L';)
        if (*p == '|') {
            (*stages)++;
            p++;
        } else {
            assert_int_equal(*p, 't');
            const bool times = p[1] == '*';
            char *end = (char *)p + 1;
            layers += times ? (uint32_t)strtoul(p + 2, &end, 10) : 1;
            p = end;
        }
    return layers;
}

static uint32_t sum_of(const json_t *list)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        sum += (uint32_t)json_integer_value(json_array_get(list, i));
    return sum;
}

static void check_layers(uint32_t layers, uint32_t pp)
{
    g_autofree char *model = g_strdup_printf(
        "gpt2:layers=%u,hidden=8,heads=4,ffn=16,seq=8,vocab=16,dropout=0,global_batch=%u",
        layers, pp);
    g_autofree char *cluster = g_strdup_printf("star:hosts=%u,bandwidth=10Gb/s", pp);
    g_autofree char *set = g_strdup_printf("pp=%u micro_batch=1", pp);
    g_auto(Made) made = made_plan("manual", model, cluster, set);
    g_autoptr(GArray) megatron = export(&made, "megatron");
    const char *flag = "--pipeline-model-parallel-layout '";
    const char *layout = strstr(file_text(megatron, 0), flag);
    assert_non_null(layout);
    uint32_t stages;
    assert_int_equal(count_layers(layout + strlen(flag), &stages), layers);
    assert_int_equal(stages, pp);
    g_autoptr(GArray) flagscale = export(&made, "flagscale");
    const char *split = strstr(file_text(flagscale, 0), "layer_split: ");
    assert_non_null(split);
    json_t *list =
        json_loads(split + strlen("layer_split: "), JSON_DISABLE_EOF_CHECK, NULL);
    assert_int_equal(json_array_size(list), pp);
    assert_int_equal(sum_of(list), layers);
    json_decref(list);
}

/* All layers are in one stage, with the numbers of layers that the strategy has. */
static void check_layout(const Graph *graph, uint32_t layers, uint32_t pp,
                         uint32_t virtual_stages)
{
    g_autoptr(GError) error = NULL;
    ExportCase c = {.graph = graph};
    Strategy strategy;
    uint32_t stages, sum = 0;
    strategy_init(&strategy);
    strategy.pp = pp;
    strategy.microbatches = pp;
    strategy.schedule = virtual_stages > 1 ? SCHEDULE_INTERLEAVED : SCHEDULE_1F1B;
    strategy.virtual_stages = virtual_stages;
    assert_true(strategy_lay_out(&strategy, graph, pp, &c.layout, &error));
    g_autofree char *text = export_layers_text(&c);
    assert_int_equal(count_layers(text, &stages), layers);
    assert_int_equal(stages, pp * virtual_stages);
    for (uint32_t s = 0; s < stages; s++)
        sum += export_inner_layers(&c, s);
    assert_int_equal(sum, layers);
    strategy_layout_clear(&c.layout);
}

static void test_all_layouts_add_up(void **state)
{
    (void)state;
    for (uint32_t layers = 12; layers <= 96; layers++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *model = g_strdup_printf(
            "gpt2:layers=%u,hidden=8,heads=4,ffn=16,seq=8,vocab=16,dropout=0", layers);
        g_autoptr(Graph) graph = model_build(model, 1, NULL, &error);
        assert_no_error(error);
        for (uint32_t pp = 2; pp <= 16; pp++)
            for (uint32_t v = 1; v <= 3; v++)
                if (pp * v <= layers + 2)
                    check_layout(graph, layers, pp, v);
    }
}

static void test_layers_add_up(void **state)
{
    (void)state;
    for (uint32_t layers = 12; layers <= 96; layers += 12)
        for (uint32_t pp = 2; pp <= 16; pp += pp < 4 ? 1 : 4)
            if (pp <= layers)
                check_layers(layers, pp);
}

/* --- schedules --- */

static int by_start(gconstpointer a, gconstpointer b)
{
    const SimSpan *x = *(SimSpan *const *)a, *y = *(SimSpan *const *)b;
    return x->start_s < y->start_s ? -1 : x->start_s > y->start_s ? 1 : 0;
}

/* The steps of a group, "0F0,0B0,...", in the order in which its computations begin in the
 * simulation. parts: a backward that goes on after other steps is listed again. */
static char *simulated(const Made *made, const SimReport *report, uint32_t group,
                       const uint32_t *first, bool parts)
{
    const SimTimeline *timeline = report->timeline;
    g_autoptr(GPtrArray) spans = g_ptr_array_new();
    g_autoptr(GHashTable) seen =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GString *text = g_string_new(NULL);
    for (uint32_t i = 0; i < timeline->n_spans; i++)
        if (timeline->span[i].lane != SIM_TEAM && !timeline->span[i].launch)
            g_ptr_array_add(spans, &timeline->span[i]);
    g_ptr_array_sort(spans, by_start);
    for (guint i = 0; i < spans->len; i++) {
        const SimSpan *span = spans->pdata[i];
        const Instr *instr = &made->plan->program->instr[span->instr];
        if (instr->kind != INSTR_COMPUTE || instr->group != group ||
            instr->microbatch == PROGRAM_WHOLE)
            continue;
        const Op *op = graph_get_op(made->graph, instr->op);
        uint32_t stage = 0;
        while (first[stage + 1] <= graph_get_op(made->graph, op->of)->layer)
            stage++;
        char *step = g_strdup_printf(
            "%u%c%u", stage, op->pass == PASS_BACKWARD ? 'B' : 'F', instr->microbatch);
        const char *at = strrchr(text->str, ',');
        const bool known = g_hash_table_contains(seen, step);
        const bool again = parts && op->pass == PASS_BACKWARD &&
                           strcmp(at ? at + 1 : text->str, step) != 0;
        if (op->pass != PASS_UPDATE && (!known || again))
            g_string_append_printf(text, "%s%s", text->len ? "," : "", step);
        if (known || op->pass == PASS_UPDATE)
            g_free(step);
        else
            g_hash_table_add(seen, step);
    }
    return g_string_free(text, FALSE);
}

/* Turns the steps of a backward that runs in two parts, 1B0 and again 1B0, to 1I0 and 1W0. */
static char *split(const char *steps)
{
    g_auto(GStrv) step = g_strsplit(steps, ",", -1);
    for (uint32_t i = 0; step[i]; i++)
        for (uint32_t k = i + 1; step[k]; k++)
            if (strchr(step[i], 'B') && strcmp(step[i], step[k]) == 0) {
                *strchr(step[i], 'B') = 'I';
                *strchr(step[k], 'B') = 'W';
            }
    return g_strjoinv(",", step);
}

static void check_schedule(const char *set)
{
    g_autoptr(GError) error = NULL;
    g_auto(Made) made = made_plan("manual", GPT("8", "global_batch=8"),
                                  "star:hosts=4,bandwidth=10Gb/s", set);
    g_autoptr(SimReport) report =
        sim_evaluate(made.plan, made.graph, made.view, "stage", &error);
    assert_no_error(error);
    assert_non_null(report->timeline);
    g_autoptr(GArray) files = export(&made, "torchtitan");
    g_auto(GStrv) row = g_strsplit(file_text(files, 1), "\n", -1);
    g_auto(StrategyLayout) layout = {0};
    assert_true(strategy_lay_out(&made.plan->strategy, made.graph, 4, &layout, &error));
    for (uint32_t p = 0; p < layout.pp; p++) {
        g_autofree char *steps =
            simulated(&made, report, p, layout.first, schedule_splits(layout.schedule));
        g_autofree char *want = split(steps);
        assert_string_equal(row[p], want);
        assert_int_equal(strlen(row[p]) > 30, layout.n_microbatches > 3);
        assert_true(!strchr(row[p], 'W') == !(schedule_splits(layout.schedule) && p > 0));
    }
}

static void test_schedules_are_the_simulated_ones(void **state)
{
    (void)state;
    check_schedule("pp=4 micro_batch=1");
    check_schedule("pp=4 micro_batch=1 recompute=full");
    check_schedule("pp=4 micro_batch=1 schedule=gpipe");
    check_schedule("pp=4 micro_batch=1 schedule=interleaved virtual_stages=2");
    check_schedule("pp=2 tp=2 microbatches=8 schedule=interleaved virtual_stages=3");
    check_schedule("pp=2 dp=2 microbatches=4 schedule=gpipe");
    check_schedule("pp=2 cp=2 microbatches=8 zero=3");
    check_schedule("pp=4 microbatches=2 schedule=gpipe");
    check_schedule("pp=4 microbatches=2");
    check_schedule("pp=4 micro_batch=1 cuts=1,2,9");
    check_schedule("pp=4 micro_batch=1 schedule=zb-h1");
    check_schedule("pp=4 micro_batch=1 schedule=zb-h2");
}

/* Interleaved plans are taken only if their steps are in Megatron-LM's order. */
static void test_interleaved_is_megatrons(void **state)
{
    (void)state;
    static const char *const SET[] = {
        "pp=4 microbatches=8 schedule=interleaved virtual_stages=2",
        "pp=2 dp=2 microbatches=4 schedule=interleaved virtual_stages=5",
        "pp=2 tp=2 microbatches=8 schedule=interleaved virtual_stages=3",
    };
    const uint32_t stages[] = {8, 10, 6};
    for (uint32_t i = 0; i < G_N_ELEMENTS(SET); i++) {
        g_auto(Made) made = made_plan("manual", GPT("8", "global_batch=8"),
                                      "star:hosts=4,bandwidth=10Gb/s", SET[i]);
        g_autoptr(GArray) files = export(&made, "megatron");
        uint32_t n;
        assert_int_equal(count_layers(strstr(file_text(files, 0), "'E") + 1, &n), 8);
        assert_int_equal(n, stages[i]);
        refuses(&made, "flagscale", "virtual stages");
    }
    /* With as many microbatches as ranks, all forwards come first, as in versions before
     * layouts. */
    g_auto(Made) few =
        made_plan("manual", GPT("8", "global_batch=8"), "star:hosts=4,bandwidth=10Gb/s",
                  "pp=4 microbatches=4 schedule=interleaved virtual_stages=2");
    refuses(&few, "megatron", "as in interleaved 1f1b");
}

/* --- padding --- */

/* Megatron-LM and what shares its code pad the vocabulary until tp divides it: shards that differ
 * by a row are equal there, and the plan has counted the largest. */
static void test_vocabulary_is_padded(void **state)
{
    (void)state;
    static const char TWO[] = "star:hosts=2,bandwidth=10Gb/s",
                      ODD[] = "gpt2:layers=2,hidden=8,heads=4,ffn=16,seq=8,vocab=17,"
                              "dropout=0,global_batch=4",
                      EVEN[] = "gpt2:layers=2,hidden=8,heads=4,ffn=16,seq=8,vocab=18,"
                               "dropout=0,global_batch=4";
    g_auto(Made) odd = made_plan("manual", ODD, TWO, "tp=2"),
                 even = made_plan("manual", EVEN, TWO, "tp=2");
    const uint64_t *bytes = odd.plan->memory_bytes;
    assert_int_equal(MAX(bytes[0], bytes[1]), even.plan->memory_bytes[0]);
    static const char *const TARGET[] = {"megatron", "flagscale"};
    for (uint32_t t = 0; t < G_N_ELEMENTS(TARGET); t++) {
        g_autoptr(GArray) a = export(&odd, TARGET[t]), b = export(&even, TARGET[t]);
        assert_non_null(strstr(file_text(a, 0), "# vocabulary: 17 rows, padded to 18"));
        assert_null(strstr(file_text(b, 0), "padded to"));
    }
    refuses(&odd, "torchtitan", "a vocabulary that tp does not divide");
}

/* Experts that the ranks of tp share are said, as they are not Megatron-LM's default. These ranks
 * count among those that divide the experts. Dropless experts have no capacity. */
static void test_whole_experts(void **state)
{
    (void)state;
    static const char MODEL[] =
        "mixtral:layers=2,hidden=16,heads=4,kv_heads=2,ffn=16,seq=8,vocab=16,experts=4,"
        "global_batch=8,capacity_factor=0";
    static const char FOUR[] = "star:hosts=4,bandwidth=10Gb/s";
    g_auto(Made) made =
        made_plan("manual", MODEL, FOUR, "tp=2 ep=4 etp=1 sequence_parallel=on");
    g_auto(Made) two =
        made_plan("manual", MODEL, FOUR, "tp=2 ep=2 etp=1 sequence_parallel=on");
    g_auto(Made) bare = made_plan("manual", MODEL, FOUR, "tp=2 ep=2 etp=1");
    g_autoptr(GArray) files = export(&made, "megatron");
    g_autoptr(GArray) files_of_two = export(&two, "megatron");
    assert_non_null(strstr(file_text(files, 0), "--expert-tensor-parallel-size 1 "));
    assert_non_null(strstr(file_text(files, 0), "--expert-model-parallel-size 4 "));
    assert_null(strstr(file_text(files, 0), "--moe-expert-capacity"));
    assert_non_null(
        strstr(file_text(files_of_two, 0), "--expert-model-parallel-size 2 "));
    refuses(&bare, "megatron", "ep=2 with tp=2 without sequence_parallel");
    refuses(&made, "torchtitan", "etp=1");
    refuses(&made, "flagscale", "etp=1");
    g_auto(Made) unlike =
        made_plan("manual", GPT("4", "global_batch=12"), "star:hosts=4,bandwidth=10Gb/s",
                  "pp=2 dp=2 stage_zero=0,1");
    refuses(&unlike, "megatron", "stages with degrees of their own");
    refuses(&unlike, "flagscale", "stages with degrees of their own");
}

/* --- refusals --- */

static void test_refusals(void **state)
{
    (void)state;
    static const char FOUR[] = "star:hosts=4,bandwidth=10Gb/s";
    g_auto(Made) heads = made_plan("manual", GPT("3", "global_batch=12"),
                                   "star:hosts=3,bandwidth=10Gb/s", "tp=3");
    refuses(&heads, "megatron",
            "uneven shards of tensor layers.0.attention.qkv.weight (2, 1, 1 units)");
    refuses(&heads, "flagscale", "uneven shards of tensor");
    refuses(&heads, "torchtitan", "a vocabulary that tp does not divide");
    refuses(&heads, "deepspeed", "tensor parallelism");
    g_auto(Made) gpipe = made_plan("manual", GPT("4", "global_batch=8"), FOUR,
                                   "pp=4 micro_batch=1 schedule=gpipe");
    refuses(
        &gpipe, "megatron",
        "schedule: expected the whole backward of stage 0 and microbatch 0, as in 1f1b");
    refuses(&gpipe, "deepspeed", "pipelines");
    refuses(&gpipe, "ddp", "pipelines");
    refuses(&gpipe, "jax", "unknown target 'jax'; expected one of megatron, flagscale");
    g_auto(Made) shares =
        made_plan("manual", GPT("4", "global_batch=12"), FOUR, "dp=4 shares=1,1,2,2");
    refuses(&shares, "megatron", "replicas have unequal parts of the batch");
    refuses(&shares, "deepspeed", "replicas have unequal parts of the batch");
    g_auto(Made) some = made_plan("manual", GPT("8", "global_batch=8"), FOUR,
                                  "pp=2 recompute=full@2-3 micro_batch=1");
    refuses(&some, "megatron", "recomputation that is not of a stage's first layers");
    static const char *const ENDS[] = {"recompute=full@0-4", "recompute=full@1-5"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(ENDS); i++) {
        g_auto(Made) ends =
            made_plan("manual", GPT("4", "global_batch=8"), FOUR, ENDS[i]);
        refuses(&ends, "megatron", "recomputation of the embedding or the head");
        refuses(&ends, "deepspeed", "recomputation of the embedding or the head");
        g_array_unref(export(&ends, "pytorch"));
    }
    g_auto(Made) kept = made_plan("manual", GPT("4", "global_batch=8"), FOUR,
                                  "pp=4 schedule=zb-h1 recompute=full@0");
    refuses(&kept, "pytorch", "where gradients of weights are computed apart");
    g_auto(Made) zero =
        made_plan("manual", GPT("4", "global_batch=8"), FOUR, "pp=2 dp=2 zero=3");
    refuses(&zero, "megatron", "zero=3 with pipelines");
    g_auto(Made) hap =
        made_plan("hap", "vgg19:width=8,fc=64,global_batch=64", "hap-8", "");
    refuses(&hap, "torchtitan",
            "torchtitan cannot run this plan: uneven shards of tensor ");
}

/* A script of Megatron-LM trains all parameters; a configuration of DeepSpeed or FSDP is for the
 * user's own program, which says what it trains. */
static void test_trained_parts(void **state)
{
    (void)state;
    static const char FOUR[] = "star:hosts=4,bandwidth=10Gb/s";
    static const char *const PROGRAMS[] = {"megatron", "flagscale", "torchtitan"};
    g_auto(Made) made =
        made_plan("manual", GPT("4", "global_batch=8,train=lora:2"), FOUR, "dp=4 zero=2");
    g_auto(Made) all = made_plan("manual", GPT("4", "global_batch=8"), FOUR, "dp=4");
    g_autoptr(GArray) deepspeed = export(&made, "deepspeed"),
                      fsdp = export(&made, "fsdp"), megatron = export(&all, "megatron");
    assert_true(deepspeed->len > 0 && fsdp->len > 0 && megatron->len > 0);
    for (uint32_t i = 0; i < G_N_ELEMENTS(PROGRAMS); i++)
        refuses(&made, PROGRAMS[i], "parameters that are not trained (train=)");
}

/* accelerate's configuration has the keys of its own version 2 and precision, and no others. */
static void test_fsdp_keys(void **state)
{
    (void)state;
    static const char *const HAS[] = {"\nfsdp_config:\n  fsdp_version: 2\n",
                                      "\n  fsdp_reshard_after_forward: true\n",
                                      "\nmixed_precision: 'bf16'\n"};
    g_auto(Made) made = made_plan("manual", GPT("4", "global_batch=8,precision=bf16"),
                                  "4xa100-80g", "dp=4 zero=3");
    g_autoptr(GArray) files = export(&made, "fsdp");
    for (uint32_t i = 0; i < G_N_ELEMENTS(HAS); i++)
        assert_non_null(strstr(file_text(files, 0), HAS[i]));
    assert_null(strstr(file_text(files, 0), "megatron_lm"));
    assert_null(strstr(file_text(files, 0), "policy"));
    /* where torchtitan's own recipes are (b5bcd76c6) */
    g_autoptr(GArray) titan = export(&made, "torchtitan");
    assert_non_null(strstr(file_text(titan, 0),
                           "\nfrom torchtitan.models.llama3.config_registry import "));
}

/* --- everything, as JSON --- */

/* Every layer is in one stage, in order, with a mode; every device is in one group; a group has
 * as many steps as any other. */
static void check_strategy(const char *set, uint32_t pp, uint32_t n_stages)
{
    g_auto(Made) made = made_plan("manual", GPT("8", "global_batch=16"),
                                  "star:hosts=4,bandwidth=10Gb/s", set);
    g_autoptr(GArray) files = export(&made, "json");
    json_t *root = json_loads(file_text(files, 0), 0, NULL);
    const json_t *stages = json_object_get(root, "stages"),
                 *groups = json_object_get(root, "groups");
    assert_int_equal(json_array_size(stages), n_stages);
    assert_int_equal(json_array_size(groups), pp);
    uint32_t layer = 0, devices = 0;
    for (uint32_t s = 0; s < n_stages; s++) {
        const json_t *stage = json_array_get(stages, s);
        const json_t *layers = json_object_get(stage, "layers");
        assert_int_equal(json_integer_value(json_object_get(stage, "group")), s % pp);
        assert_int_equal(json_array_size(json_object_get(stage, "recompute")),
                         json_array_size(layers));
        assert_true(json_array_size(layers) > 0);
        for (size_t l = 0; l < json_array_size(layers); l++)
            assert_string_equal(json_string_value(json_array_get(layers, l)),
                                graph_layer_name(made.graph, layer++));
    }
    assert_int_equal(layer, graph_n_layers(made.graph));
    bool seen[4] = {false};
    const size_t steps =
        json_array_size(json_object_get(json_array_get(groups, 0), "steps"));
    assert_true(steps > 0);
    for (uint32_t p = 0; p < pp; p++) {
        const json_t *group = json_array_get(groups, p);
        const json_t *list = json_object_get(group, "devices");
        assert_int_equal(json_array_size(json_object_get(group, "steps")), steps);
        for (size_t k = 0; k < json_array_size(list); k++, devices++) {
            const json_int_t device = json_integer_value(json_array_get(list, k));
            assert_true(device >= 0 && device < 4 && !seen[device]);
            seen[device] = true;
        }
    }
    assert_int_equal(devices, 4);
    json_decref(root);
}

static void test_json_has_every_layer(void **state)
{
    (void)state;
    check_strategy("dp=4", 1, 1);
    check_strategy("pp=2 dp=2 micro_batch=2", 2, 2);
    check_strategy("pp=4 micro_batch=2 recompute=full", 4, 4);
    check_strategy("pp=2 tp=2 micro_batch=2 schedule=interleaved chunks=2", 2, 4);
}

/* --- tables --- */

/* The numbers of "NAME = [1, 2]" in a script. */
static json_t *list_in(const char *text, const char *name)
{
    g_autofree char *start = g_strdup_printf("\n%s = ", name);
    const char *found = strstr(text, start);
    assert_non_null(found);
    json_t *list = json_loads(found + strlen(start), JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(list);
    return list;
}

static void test_ddp_has_all_samples(void **state)
{
    (void)state;
    g_auto(Made) shares =
        made_plan("manual", GPT("4", "global_batch=12"), "star:hosts=4,bandwidth=10Gb/s",
                  "dp=4 shares=1,1,2,2");
    g_auto(Made) uneven =
        made_plan("dp-cp", "vgg19:width=8,fc=64,global_batch=61", "hap-8", "");
    const Made *made[] = {&shares, &uneven};
    const uint32_t batch[] = {12, 61};
    for (uint32_t i = 0; i < 2; i++) {
        g_autoptr(GArray) files = export(made[i], "ddp");
        json_t *list = list_in(file_text(files, 0), "BATCH");
        assert_int_equal(json_array_size(list), made[i]->view->n_devices);
        assert_int_equal(sum_of(list), batch[i]);
        json_decref(list);
    }
    g_autoptr(GArray) files = export(&shares, "ddp");
    json_t *list = list_in(file_text(files, 0), "OFFSET");
    assert_int_equal(json_integer_value(json_array_get(list, 3)), 8);
    json_decref(list);
}

/* PyTorch's pipelines: each replica's part of a microbatch, the layers of the stages, and the steps
 * of the program; the script is Python. */
/* The first op of a tied model reads its parameter, not samples. */
static void test_tied_models_have_samples(void **state)
{
    (void)state;
    static const char *const target[] = {"ddp", "pytorch"};
    g_auto(Made) made =
        made_plan("manual", "llama-3.2-1b:seq=16,global_batch=16,precision=single",
                  "star:hosts=4,bandwidth=10Gb/s", "dp=4");
    for (uint32_t i = 0; i < G_N_ELEMENTS(target); i++) {
        g_autoptr(GArray) files = export(&made, target[i]);
        json_t *list = list_in(file_text(files, 0), "BATCH");
        assert_int_equal(sum_of(list), 16);
        json_decref(list);
    }
}

static void test_pytorch_has_stages(void **state)
{
    (void)state;
    g_auto(Made) made =
        made_plan("manual", GPT("6", "global_batch=16"), "star:hosts=8,bandwidth=10Gb/s",
                  "pp=4 dp=2 microbatches=4 shares=1,3 schedule=zb-h1 "
                  "zero=1 layers=2,2,2,2");
    g_autoptr(GArray) files = export(&made, "pytorch");
    const char *text = file_text(files, 0);
    static const struct {
        const char *name, *list;
    } HAS[] = {{"BATCH", "[1,3]"}, {"FIRST", "[0,2,4,6,8]"}, {"AGAIN", "[]"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(HAS); i++) {
        json_t *list = list_in(text, HAS[i].name);
        char *got = json_dumps(list, JSON_COMPACT);
        assert_string_equal(got, HAS[i].list);
        free(got);
        json_decref(list);
    }
    assert_non_null(strstr(text, "PIPELINE = 4\nMICROBATCHES = 4\nZERO = True\n"));
    assert_non_null(strstr(file_text(files, 1), "\n3F0,3"));
    assert_non_null(strstr(file_text(files, 1), "W3\n"));
    g_auto(Made) again =
        made_plan("manual", GPT("6", "global_batch=16"), "star:hosts=4,bandwidth=10Gb/s",
                  "pp=4 microbatches=4 recompute=full");
    g_autoptr(GArray) full = export(&again, "pytorch");
    assert_non_null(strstr(file_text(full, 0), "AGAIN = [1, 2, 3, 4, 5, 6]"));
    static const struct {
        const char *model, *set, *why;
    } NOT[] = {
        {GPT("6", "global_batch=16"), "pp=4 microbatches=4 recompute=full schedule=zb-h1",
         "recomputation where gradients of weights are computed apart"},
        {GPT("6", "global_batch=16"), "pp=2 tp=2 microbatches=4", "tensor parallelism"},
        {"llama-3.2-1b:seq=16,global_batch=16,precision=single", "pp=4 microbatches=4",
         "parameters that stages share"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(NOT); i++) {
        g_auto(Made) other = made_plan("manual", NOT[i].model,
                                       "star:hosts=4,bandwidth=10Gb/s", NOT[i].set);
        refuses(&other, "pytorch", NOT[i].why);
    }
    g_auto(Made) titan =
        made_plan("manual", "llama:layers=8,seq=128,global_batch=8,precision=bf16",
                  "dgx-a100", "pp=8 microbatches=8 schedule=zb-h1 recompute=alternate");
    refuses(&titan, "torchtitan", NOT[0].why);
    if (!g_find_program_in_path("python3"))
        return;
    g_autofree char *folder = g_dir_make_tmp("kilter-XXXXXX", NULL),
                    *file = g_build_filename(folder, "plan.py", NULL);
    assert_true(g_file_set_contents(file, text, -1, NULL));
    g_autofree char *line =
        g_strdup_printf("python3 -c \"import ast; ast.parse(open('%s').read())\"", file);
    int status = 1;
    assert_true(g_spawn_command_line_sync(line, NULL, NULL, &status, NULL));
    assert_int_equal(status, 0);
    g_unlink(file);
    g_rmdir(folder);
}

/* Different device types get separate meshes. */
static void test_flagscale_has_meshes(void **state)
{
    (void)state;
    g_auto(Made) made = made_plan("manual", "gpt2:layers=4,global_batch=16",
                                  "amp-het-cluster", "pp=4 micro_batch=1");
    g_autoptr(GArray) files = export(&made, "flagscale");
    const char *text = file_text(files, 0);
    assert_non_null(strstr(text, "enable_hetero: true"));
    g_autofree char *types = g_strdup(strstr(text, "hetero_device_types: "));
    *strchr(types, '\n') = '\0';
    assert_non_null(strstr(types, "\", \""));
    json_t *list =
        json_loads(strstr(text, "process_meshes: ") + strlen("process_meshes: "),
                   JSON_DISABLE_EOF_CHECK, NULL);
    uint32_t ranks = 0, stages = 0;
    assert_true(json_array_size(list) >= 10 && json_array_size(list) % 5 == 0);
    for (size_t m = 0; m < json_array_size(list); m += 5) {
        uint32_t product = 1;
        for (size_t k = 0; k < 5; k++)
            product *= (uint32_t)json_integer_value(json_array_get(list, m + k));
        ranks += product;
        stages += (uint32_t)json_integer_value(json_array_get(list, m + 4));
    }
    assert_int_equal(ranks, made.view->n_devices);
    assert_int_equal(stages, 4);
    json_decref(list);
}

/* FlagScale sorts ranks by the first place of their device's type in the list: where a type comes
 * back, all have one name, or the third stage's rank would be before the second's. */
static void test_types_that_come_back(void **state)
{
    (void)state;
    static const char TEXT[] =
        "hetero_process_meshes: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
        "    hetero_device_types: [\"any\", \"any\", \"any\"]\n"
        "    hetero_current_device_type: \"any\"\n";
    g_auto(Made) made = made_plan("manual", "gpt2:layers=3,global_batch=16",
                                  "1x1xv100-16g@1xeth-100+1x1xt4@1xeth-100+"
                                  "1x1xv100-16g@1xeth-100",
                                  "pp=3 micro_batch=1");
    g_autoptr(GArray) files = export(&made, "flagscale");
    assert_non_null(strstr(file_text(files, 0), TEXT));
}

/* Facts that are written twice agree, and all JSON is valid. */
static void test_json_and_deepspeed(void **state)
{
    (void)state;
    g_auto(Made) made = made_plan("manual", GPT("4", "global_batch=32,precision=bf16"),
                                  "dgx-a100", "dp=8 zero=2 micro_batch=2");
    g_autoptr(GArray) deepspeed = export(&made, "deepspeed");
    json_t *config = json_loads(file_text(deepspeed, 0), 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(config, "train_batch_size")), 32);
    assert_int_equal(
        json_integer_value(json_object_get(config, "gradient_accumulation_steps")), 2);
    assert_int_equal(json_integer_value(json_object_get(
                         json_object_get(config, "zero_optimization"), "stage")),
                     2);
    json_decref(config);
    g_autoptr(GArray) whole = export(&made, "json");
    json_t *root = json_loads(file_text(whole, 0), 0, NULL);
    assert_int_equal(json_array_size(json_object_get(root, "devices")), 8);
    assert_true(json_array_size(json_object_get(root, "parameters")) > 10);
    json_decref(root);
}

/* Ranks are listed with the number that their GPU has on its machine. */
static void test_ranks(void **state)
{
    (void)state;
    g_auto(Made) made = made_plan("manual", GPT("4", "global_batch=12"),
                                  "1x2xa100-80g@ib-hdr+1x4xa100-80g@ib-hdr", "dp=6");
    static const char *const TARGET[] = {"megatron", "ddp"};
    for (uint32_t t = 0; t < G_N_ELEMENTS(TARGET); t++) {
        g_autoptr(GArray) files = export(&made, TARGET[t]);
        g_autofree char *text = g_strdup("");
        for (uint32_t i = 0; i < files->len; i++) {
            g_autofree char *before = g_steal_pointer(&text);
            text = g_strconcat(before, file_text(files, i), NULL);
        }
        for (uint32_t r = 0; r < 6; r++) {
            g_autofree char *line =
                g_strdup_printf("%u,%s,%u,a100-80g", r,
                                made.cluster->machine[made.view->device[r].machine].name,
                                r < 2 ? r : r - 2);
            assert_non_null(strstr(text, line));
        }
    }
}

/* A model of one layer or two has no embedding and head beside others: each of its layers may
 * compute again, and one that does not is not said to. */
static void test_models_without_ends(void **state)
{
    (void)state;
    g_autofree char *name = NULL;
    const int file = g_file_open_tmp("kilter-XXXXXX", &name, NULL);
    assert_true(file >= 0 && close(file) == 0);
    for (uint32_t layers = 1; layers <= 3; layers++)
        for (uint32_t full = 0; full < 2; full++) {
            g_autoptr(GString) nodes = g_string_new("{\"layer\": \"l0\"}");
            for (uint32_t l = 1; l < layers; l++)
                g_string_append_printf(nodes,
                                       ", {\"op\": \"r%u\", \"kind\": \"relu\", \"in\": "
                                       "[\"%s\"]}, {\"layer\": \"l%u\"}",
                                       l, l > 1 ? "r1" : "x", l);
            g_autofree char *text =
                g_strdup_printf("{\"format\": {\"name\": \"kilter-graph\", \"version\": "
                                "1}, \"name\": \"g\", \"precision\": \"single\", "
                                "\"optimizer\": \"adam\", \"nodes\": [{\"input\": \"x\", "
                                "\"dtype\": \"f32\", \"shape\": [8, 6]}, "
                                "{\"input\": \"l\", \"dtype\": \"i64\", \"shape\": [8]}, "
                                "{\"parameter\": \"k\", \"shape\": [5, 6]}, %s, "
                                "{\"op\": \"c\", \"kind\": \"linear\", \"in\": "
                                "[\"%s%.0u\", \"k\"]}, {\"op\": \"s\", \"kind\": "
                                "\"log_softmax\", \"in\": [\"c\"]}, {\"op\": \"loss\", "
                                "\"kind\": \"nll_sum\", \"in\": [\"s\", \"l\"]}]}",
                                nodes->str, layers > 1 ? "r" : "x", layers - 1);
            assert_true(g_file_set_contents(name, text, -1, NULL));
            g_auto(Made) made = made_plan("manual", name, "star:hosts=4",
                                          full ? "zero=2 recompute=full" : "zero=2");
            g_autoptr(GArray) files = export(&made, "deepspeed");
            assert_int_equal(strstr(file_text(files, 0), "_comment") != NULL, full);
            g_autofree char *known = plan_exports(made.plan, made.graph, made.view);
            assert_true(strstr(known, "deepspeed") && !strstr(known, "megatron"));
        }
    g_unlink(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models_without_ends),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_all_layouts_add_up),
        cmocka_unit_test(test_layers_add_up),
        cmocka_unit_test(test_schedules_are_the_simulated_ones),
        cmocka_unit_test(test_interleaved_is_megatrons),
        cmocka_unit_test(test_vocabulary_is_padded),
        cmocka_unit_test(test_whole_experts),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_trained_parts),
        cmocka_unit_test(test_ddp_has_all_samples),
        cmocka_unit_test(test_tied_models_have_samples),
        cmocka_unit_test(test_pytorch_has_stages),
        cmocka_unit_test(test_flagscale_has_meshes),
        cmocka_unit_test(test_types_that_come_back),
        cmocka_unit_test(test_json_and_deepspeed),
        cmocka_unit_test(test_fsdp_keys),
        cmocka_unit_test(test_json_has_every_layer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
