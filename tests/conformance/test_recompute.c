/* Classes of ops that the backward computes again: numbers stay, the repeated FLOPs are those of
 * the class, and the memory that each saves is what its tensors take. */
#include "exec/exec.h"
#include "sim/sim.h"
#include "tests/support/made_plan.h"

#define SIZES "hidden=64,heads=4,seq=32,vocab=64,global_batch=8"
#define LLAMA "llama:kv_heads=2,ffn=96," SIZES
#define GPT   "gpt2:ffn=128,dropout=0.1," SIZES
#define MOE   "mixtral:kv_heads=2,ffn=32,experts=4,top=2," SIZES
#define STAR  "star:hosts=4,bandwidth=1Gb/s,latency=5us"

static const char *const CLASSES[] = {"selective",
                                      "core_attn",
                                      "layernorm",
                                      "moe_act",
                                      "mlp",
                                      "alternate",
                                      "moe",
                                      "shared_experts+moe_act",
                                      "core_attn+layernorm+mlp",
                                      "layernorm@1-2 mlp+core_attn@3 full@4"};

/* --- numbers --- */

static void check_numbers(const char *model, const char *set)
{
    g_auto(Made) made = made_plan("manual", model, STAR, set);
    g_autoptr(ExecBackend) backend = exec_reference_new(made.plan->n_devices);
    g_autoptr(GError) error = NULL;
    g_auto(ExecVerdict) verdict = {0};
    exec_verify(backend, made.plan, made.graph, 3, EXEC_TOLERANCE, &verdict, &error);
    assert_no_error(error);
    if (!verdict.right)
        fail_msg("%s, %s: error %g of %s", model, set, verdict.error, verdict.where);
}

static void test_numbers(void **state)
{
    (void)state;
    static const char *const model[] = {LLAMA ",layers=4", GPT ",layers=4",
                                        GPT ",layers=4,attention=fused", MOE ",layers=4"};
    static const char *const set[] = {
        "tp=2 microbatches=2", "pp=2 tp=2 microbatches=2 sequence_parallel=on",
        "zero=3 microbatches=2", "cp=2 tp=2", "pp=2 schedule=zb-h1 microbatches=4"};
    for (uint32_t c = 0; c < G_N_ELEMENTS(CLASSES); c++)
        for (uint32_t k = 0; k < G_N_ELEMENTS(model); k++) {
            g_autofree char *all = g_strdup_printf(
                "%s recompute=%s", set[(c + k) % G_N_ELEMENTS(set)], CLASSES[c]);
            g_strdelimit(all + strlen(all) - strlen(CLASSES[c]), " ", ',');
            check_numbers(model[k], all);
        }
}

/* --- work --- */

/* FLOPs of all computations of a plan on one device, and of those of forward ops whose name ends
 * so. */
static double flops_of(const Made *made, const char *suffix)
{
    double flops = 0;
    for (uint32_t i = 0; i < made->plan->program->n; i++) {
        const Instr *instr = &made->plan->program->instr[i];
        if (instr->kind != INSTR_COMPUTE)
            continue;
        const Op *op = graph_get_op(made->graph, instr->op);
        if (!suffix || (op->pass == PASS_FORWARD && g_str_has_suffix(op->name, suffix)))
            flops += graph_op_flops(made->graph, instr->op);
    }
    return flops;
}

/* The ops that run twice, by the ends of their names. */
static void check_work(const char *model, const char *class, const char *const *suffix)
{
    g_autofree char *set = g_strdup_printf("recompute=%s", class);
    g_auto(Made) plain =
        made_plan("manual", model, "star:hosts=1,bandwidth=1Gb/s,latency=5us", "");
    g_auto(Made) again =
        made_plan("manual", model, "star:hosts=1,bandwidth=1Gb/s,latency=5us", set);
    double more = 0;
    for (; *suffix; suffix++)
        more += flops_of(&plain, *suffix);
    assert_close(flops_of(&again, NULL), flops_of(&plain, NULL) + more, 1e-9);
    assert_true(again.plan->iteration_time_s > plain.plan->iteration_time_s);
}

static void test_work(void **state)
{
    (void)state;
    check_work(LLAMA ",layers=4", "core_attn", (const char *const[]){".attention", NULL});
    check_work(LLAMA ",layers=4", "selective", (const char *const[]){".attention", NULL});
    check_work(GPT ",layers=4", "selective", (const char *const[]){".attention", NULL});
    check_work(GPT ",layers=4", "mlp",
               (const char *const[]){".ffn.up", ".ffn.gelu", ".ffn.down", NULL});
    check_work(GPT ",layers=4", "layernorm",
               (const char *const[]){".norm1", ".norm2", NULL});
}

/* --- memory --- */

static double activations_of(const char *model, const char *set)
{
    g_autofree char *all = g_strdup_printf("runtime=none %s", set);
    g_auto(Made) made =
        made_plan("manual", model, "star:hosts=1,bandwidth=1Gb/s,latency=5us", all);
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) rows = sim_memory_table(made.plan, made.graph, made.view, "", false,
                                              made.plan->memory_bytes, &error);
    assert_no_error(error);
    return (double)g_array_index(rows, SimMemoryRow, 0).bytes[MEMORY_ACTIVATIONS];
}

/* Bytes of a layer and sample that a class saves, in units of seq * 2 bytes, by hand; of twelve
 * layers the ones whose values are there again at the peak may be missing. */
static void test_memory(void **state)
{
    (void)state;
    enum { LAYERS = 12, SEQ = 32, BATCH = 8, HIDDEN = 64, LLAMA_FFN = 96, GPT_FFN = 128 };
    static const struct {
        const char *model, *class;
        double numbers;
    } known[] = {
        /* both projections and their product; up and gelu */
        {LLAMA, "mlp", 3 * LLAMA_FFN},
        {GPT, "mlp", 2 * GPT_FFN},
        {LLAMA, "layernorm", 2 * HIDDEN},
        /* at least two norms and the gated product */
        {LLAMA, "alternate", 2 * HIDDEN + LLAMA_FFN},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(known); i++) {
        g_autofree char *model =
            g_strdup_printf("%s,precision=mixed,layers=%d", known[i].model, LAYERS);
        g_autofree char *set = g_strdup_printf("recompute=%s", known[i].class);
        const double saved = activations_of(model, "") - activations_of(model, set),
                     layer = known[i].numbers * 2 * SEQ * BATCH;
        if (saved < (LAYERS - 2) * layer)
            fail_msg("%s of %s saves %g bytes, expected %g for each of %d layers",
                     known[i].class, model, saved, layer, LAYERS);
        if (strcmp(known[i].class, "alternate") != 0)
            assert_at_most(saved, LAYERS * layer * 1.001);
    }
}

/* Layers of experts that run again repeat their exchanges, and nothing beside them does. */
static void test_experts(void **state)
{
    (void)state;
    static const char *const set[] = {"ep=4", "ep=2 tp=2 sequence_parallel=on",
                                      "ep=4 tp=2 etp=1", "cp=2 ep=2"};
    for (uint32_t s = 0; s < G_N_ELEMENTS(set); s++) {
        uint32_t exchanges[2] = {0};
        for (uint32_t k = 0; k < 2; k++) {
            g_autofree char *all =
                g_strdup_printf("%s recompute=%s", set[s], k ? "moe" : "none");
            g_auto(Made) made = made_plan("manual", MOE ",layers=4", STAR, all);
            const Program *program = made.plan->program;
            for (uint32_t i = 0; i < program->n; i++)
                exchanges[k] += program->instr[i].kind == INSTR_COLLECTIVE &&
                                program->instr[i].collective == COLLECTIVE_ALL_TO_ALL;
        }
        assert_true(exchanges[0] > 0);
        assert_int_equal(2 * exchanges[1], 3 * exchanges[0]);
    }
}

/* --- words --- */

static void test_words(void **state)
{
    (void)state;
    static const char *const good[] = {"none",
                                       "full",
                                       "selective",
                                       "core_attn+mlp",
                                       "layernorm+moe_act+mla_up_proj",
                                       "shared_experts+moe"};
    static const char *const bad[] = {"all", "full+mlp", "core_attn+", "mlp+some", ""};
    for (uint32_t i = 0; i < G_N_ELEMENTS(good); i++) {
        const Recompute mode = recompute_read(good[i]);
        g_autofree char *words = recompute_words(mode);
        assert_true(recompute_read(words) == mode && mode != RECOMPUTE_UNKNOWN);
        assert_true(i > 0 || mode == RECOMPUTE_NONE);
    }
    for (uint32_t i = 0; i < G_N_ELEMENTS(bad); i++)
        assert_true(recompute_read(bad[i]) == RECOMPUTE_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_work),
        cmocka_unit_test(test_memory),  cmocka_unit_test(test_experts),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
