/* Memory compared with published formulas: Korthikanti et al. 2022 (arXiv:2205.05198) for four
 * models of Megatron, and Megatron-LM's own formula for Llama-3.1-8B. Our numbers come from
 * programs and lifetimes and do not use the formulas. */
#include "synth/planners/planner.h"
#include "tests/support/made_plan.h"

/* Bytes of the fullest device; `set`: "key=value" options, separated by spaces. */
static SimMemoryRow memory_of(const char *planner, const char *model,
                              const char *cluster_name, const char *set)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load(cluster_name, &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    PlannerOptions options;
    planner_options_init(&options);
    g_auto(GStrv) pair = g_strsplit(set, " ", -1);
    for (uint32_t i = 0; pair[i]; i++) {
        g_auto(GStrv) word = g_strsplit(pair[i], "=", 2);
        planner_options_set(&options, word[0], word[1], &error);
        assert_no_error(error);
    }
    g_autoptr(Graph) graph = NULL;
    g_autoptr(Plan) plan = planner_plan(planner_find(planner, NULL), model, cluster_name,
                                        view, &options, &graph, &error);
    assert_no_error(error);
    g_autoptr(GArray) rows = sim_memory_table(plan, graph, view, options.sim.runtime,
                                              false, plan->memory_bytes, &error);
    assert_no_error(error);
    return g_array_index(rows, SimMemoryRow, 0);
}

static double state_of(const SimMemoryRow *row)
{
    return (double)(row->bytes[MEMORY_WEIGHTS] + row->bytes[MEMORY_GRADIENTS] +
                    row->bytes[MEMORY_OPTIMIZER]);
}

/* Weights in bf16, gradients and Adam's states with a copy of the weights in float32: 18 bytes per
 * parameter (Megatron-LM's theoretical_memory_usage.py). */
static void test_llama(void **state)
{
    (void)state;
    enum { PARAMETERS = 18 };
    static const char one[] = "star:hosts=1,bandwidth=1Gb/s,latency=5us";
    static const char *const set[] = {"recompute=none", "recompute=selective"};
    static const char *const planner[] = {"manual", "dp-ev", "hap"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(set) * G_N_ELEMENTS(planner); i++) {
        const SimMemoryRow row =
            memory_of(planner[i / 2], "llama:batch=1,seq=4096,precision=mixed-fp32-grads",
                      one, set[i % 2]);
        assert_true(state_of(&row) == PARAMETERS * 8030261248.0);
        assert_close((double)row.bytes[MEMORY_ACTIVATIONS], 19365134336.0, 0.02);
    }
}

/* A model of the paper's Table 3: h, a, L, its degrees, and its stages per device. */
typedef struct {
    const char *name;
    double hidden, heads, layers, tp, pp, chunks, micro_batch;
} Published;

enum { SEQ = 2048, VOCAB = 51200 };

/* The growth of microbatches in flight by interleaving (Sec. 4.2.3). */
static double in_flight(const Published *m)
{
    return m->chunks > 1 ? 1 + (m->pp - 1) / (m->pp * m->chunks) : 1;
}

/* Tables 2 and Sec. 4.3: 18 bytes for each of 12 h^2 + 13 h parameters of a layer and of the
 * tables; sbh 34/t per layer with sequence parallelism and selective recomputation, 2sbh with full
 * recomputation; dropout after the embedding for each microbatch in flight, of which the first
 * chunk of an interleaved schedule has two per stage; the output layer where the first stage is the
 * last. */
static double published(const Published *m, bool full)
{
    const double sbh = SEQ * m->micro_batch * m->hidden, alone = m->pp == 1;
    const double layers = m->layers * 12 * m->hidden * m->hidden / m->tp / m->pp;
    const double tables = VOCAB * m->hidden * (1 + alone) / m->tp + SEQ * m->hidden;
    const double layer = full ? 2 * sbh : 34 * sbh / m->tp;
    return 18 * (layers + tables) + layer * m->layers * in_flight(m) +
           sbh * m->pp * (m->chunks > 1 ? 2 : 1) / (full ? 1 : m->tp) +
           alone * 4 * SEQ * m->micro_batch * (m->hidden + VOCAB) / m->tp;
}

static void check_published(const Published *m, bool full)
{
    /* as many microbatches as are in flight, and one more round if interleaved */
    const double batch = m->micro_batch * m->pp * (m->chunks > 1 ? 2 : 1);
    g_autofree char *model = g_strdup_printf(
        "gpt2:precision=mixed-fp32-grads,dropout=0.1,vocab=%d,layers=%g,hidden=%g,"
        "ffn=%g,heads=%g,seq=%d,global_batch=%g",
        VOCAB, m->layers, m->hidden, 4 * m->hidden, m->heads, SEQ, batch);
    g_autofree char *cluster =
        g_strdup_printf("star:hosts=%g,bandwidth=100Gb/s,latency=5us", m->tp * m->pp);
    g_autofree char *set = g_strdup_printf(
        "pp=%g tp=%g micro_batch=%g%s %s", m->pp, m->tp, m->micro_batch,
        m->chunks > 1 ? " schedule=interleaved virtual_stages=3" : "",
        full ? "recompute=full" : "recompute=selective sequence_parallel=on");
    const SimMemoryRow row = memory_of("manual", model, cluster, set);
    const double got = (double)(row.total_bytes - row.bytes[MEMORY_RUNTIME]);
    if (fabs(got / published(m, full) - 1) > 0.05)
        fail_msg("%s, %s: %.4g GiB, published %.4g", m->name, set, got / (1 << 30),
                 published(m, full) / (1 << 30));
}

static void test_korthikanti(void **state)
{
    (void)state;
    static const Published model[] = {
        {"22B", 6144, 64, 48, 8, 1, 1, 4},
        {"175B", 12288, 96, 96, 8, 8, 3, 1},
        {"530B", 20480, 128, 105, 8, 35, 3, 1},
        {"1T", 25600, 160, 128, 8, 64, 1, 1},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(model); i++) {
        check_published(&model[i], false);
        check_published(&model[i], true);
    }
}

/* The eight sums of activations of Korthikanti et al. (../shared/measured): without
 * recomputation, and with sequence parallelism and selective recomputation. */
static void test_korthikanti_activations(void **state)
{
    (void)state;
    static const Published model[] = {
        {"megatron-22B", 6144, 64, 48, 8, 1, 1, 4},
        {"gpt3-175B", 12288, 96, 96, 8, 8, 3, 1},
        {"turing-530B", 20480, 128, 105, 8, 35, 3, 1},
        {"megatron-1T", 25600, 160, 128, 8, 64, 1, 1},
    };
    const char *path = test_shared("measured/calculon/memory_gib.csv");
    g_autofree char *text = NULL;
    if (!path)
        skip();
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_auto(GStrv) line = g_strsplit(text, "\n", -1);
    double off = 0;
    uint32_t n = 0;
    for (uint32_t i = 1; line[i] && *line[i]; i++) {
        g_auto(GStrv) cell = g_strsplit(line[i], ",", 4);
        const Published *m = model;
        while (strcmp(m->name, cell[0]) != 0)
            m++;
        const bool none = strcmp(cell[1], "none") == 0;
        g_autofree char *of =
            g_strdup_printf("gpt2:precision=mixed-fp32-grads,dropout=0.1,vocab=%d,layers="
                            "%g,hidden=%g,ffn=%g,"
                            "heads=%g,seq=%d,global_batch=%g",
                            VOCAB, m->layers, m->hidden, 4 * m->hidden, m->heads, SEQ,
                            m->micro_batch * m->pp * (m->chunks > 1 ? 2 : 1));
        g_autofree char *cluster =
            g_strdup_printf("star:hosts=%g,bandwidth=100Gb/s,latency=5us", m->tp * m->pp);
        g_autofree char *set = g_strdup_printf(
            "pp=%g tp=%g micro_batch=%g%s%s", m->pp, m->tp, m->micro_batch,
            m->chunks > 1 ? " schedule=interleaved virtual_stages=3" : "",
            none ? "" : " recompute=selective sequence_parallel=on");
        const SimMemoryRow row = memory_of("manual", of, cluster, set);
        off += fabs((double)row.bytes[MEMORY_ACTIVATIONS] / (1 << 30) /
                        g_ascii_strtod(cell[3], NULL) -
                    1);
        n++;
    }
    print_message("%u sums of activations, MAPE %.1f %%\n", n, 100 * off / n);
    assert_int_equal(n, 8);
    assert_at_most(off / n, 0.03);
}

/* --- numbers that public reports and their formulas give --- */

#define LLAMA_2_7B \
    "llama:layers=32,hidden=4096,heads=32,kv_heads=32,ffn=11008,vocab=32000,"

static const double GB = 1e9;

/* Weights and gradients of 2 bytes each, no states (torchtune#389, where 27.8 GB were measured). */
static void test_pure_sgd(void **state)
{
    (void)state;
    const SimMemoryRow row =
        memory_of("manual", LLAMA_2_7B "precision=bf16-pure,optimizer=sgd", "1xa100-80g",
                  "recompute=full runtime=pytorch/allocated");
    assert_close((double)row.bytes[MEMORY_WEIGHTS], 2 * 6738415616.0, 0.001);
    assert_at_most((double)row.total_bytes, 27.8 * GB * 1.05);
}

/* Llama-2-70B under FSDP on 8 GPUs: 6 bytes for each of 68,976,648,192 parameters with states of 8
 * bits, beside which they have a number for each block of 256; 51.7 GB, of which 51 were seen
 * (torchtune#987). What is gathered comes on top. */
static void test_8_bit_states(void **state)
{
    (void)state;
    const SimMemoryRow row = memory_of(
        "manual",
        "llama:layers=80,hidden=8192,heads=64,kv_heads=8,ffn=28672,vocab=32000,seq=512,"
        "global_batch=8,precision=bf16-pure,optimizer=adam8bit",
        "1x8xa100-80g", "zero=3 recompute=full runtime=fsdp/allocated");
    assert_close(state_of(&row), 51.7 * GB, 0.006);
}

/* Peaks that torchtune's tutorial gives for Llama-2-7B with adapters of two ranks beside queries
 * and values or all products, whose model has 6,742,609,920 parameters with rank 8 (ours answered
 * 6,740,512,768 and left values out), in several microbatches of two samples of Alpaca. How long
 * the longest are is not published; 512 tokens here. */
static void test_adapters(void **state)
{
    (void)state;
    static const char *const target[] = {"attention.q.+attention.values", "all+head"};
    static const double published[2][2] = {{15.57e9, 15.86e9}, {15.87e9, 17.04e9}};
    for (uint32_t t = 0; t < G_N_ELEMENTS(target); t++) {
        double peak[2];
        for (uint32_t r = 0; r < 2; r++) {
            g_autofree char *model =
                g_strdup_printf(LLAMA_2_7B "seq=512,global_batch=4,precision=bf16-pure,"
                                           "train=lora:%u,target=%s",
                                r ? 64 : 8, target[t]);
            const SimMemoryRow row =
                memory_of("manual", model, "1xa100-80g",
                          "recompute=full microbatches=2 runtime=pytorch/allocated");
            peak[r] = (double)row.total_bytes;
            assert_close(peak[r], published[t][r], 0.12);
            if (t + r == 0)
                assert_true(row.bytes[MEMORY_WEIGHTS] == 2 * 6742609920);
        }
        assert_close(peak[1] - peak[0], published[t][1] - published[t][0], 0.2);
    }
}

/* FSDP divides weights that are not trained, too: those of Llama-2-70B in 4 bits, 16.8 GiB on each
 * of two GPUs, for which Answer.AI made it (github.com/AnswerDotAI/fsdp_qlora). */
static void test_frozen_weights_are_divided(void **state)
{
    (void)state;
    const char *model = "llama:layers=80,hidden=8192,heads=64,kv_heads=8,ffn=28672,"
                        "vocab=32000,seq=512,global_batch=2,precision=bf16-pure,"
                        "train=lora:64,weights=nf4";
    const SimMemoryRow whole = memory_of("manual", model, "2xrtx-4090", "dp=2"),
                       part = memory_of("manual", model, "2xrtx-4090", "zero=3");
    assert_close((double)part.bytes[MEMORY_WEIGHTS],
                 (double)whole.bytes[MEMORY_WEIGHTS] / 2, 0.02);
}

/* Table and head of a 4-bit model stay in 16 bits: Llama-3-8B has 5.59 GB (Transformers with
 * bitsandbytes: 6.98 G numbers of 4 bits, 1.05 G of 16), beside scales, half a byte in 32, and
 * adapters of 21 M numbers. */
static void test_head_of_4_bits(void **state)
{
    (void)state;
    const SimMemoryRow row = memory_of(
        "manual",
        "llama:layers=32,hidden=4096,heads=32,kv_heads=8,ffn=14336,vocab=128256,seq=512,"
        "global_batch=1,precision=bf16-pure,train=lora:8,weights=nf4",
        "1xrtx-4090", "pp=1");
    assert_close((double)row.bytes[MEMORY_WEIGHTS],
                 5.59 * GB * (1 + 1 / 32. * 3.49 / 5.59) + 2 * 21e6, 0.01);
}

/* ZeRO-3 on 4 GPUs with states on the host: DeepSpeed's estimator counts 2 bytes of a parameter at
 * rest, 24 on the host, and 4 for each of the largest module, which alone is gathered and has
 * gradients: 3.66 and 152 GiB for 6,805 M parameters (DeepSpeed#4527). Programs gather a layer and
 * the next one, .27 GiB more here. */
static void test_states_on_hosts(void **state)
{
    (void)state;
    const double n = 6738415616, module = 32000.0 * 4096;
    static const char cluster[] =
        "name: c\nmachines: [{device: a100-80g, gpus: 4, host_memory: 2 TB, "
        "host_link: 31.5 GB/s, host_bandwidth: 400 GB/s}]\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) parsed = cluster_parse("c.yaml", cluster, strlen(cluster), &error);
    g_autoptr(ClusterView) view = cluster_view(parsed, GRANULARITY_GPU);
    PlannerOptions options;
    assert_true(set_options(&options,
                            "zero=3 offload=optimizer recompute=full "
                            "runtime=deepspeed/allocated",
                            &error));
    g_autoptr(Graph) graph = NULL;
    g_autoptr(Plan) plan = planner_plan(
        planner_find("manual", NULL), LLAMA_2_7B "seq=16,global_batch=4,precision=mixed",
        "c.yaml", view, &options, &graph, &error);
    assert_no_error(error);
    g_autoptr(SimReport) report = sim_evaluate(plan, graph, view, "stage", &error);
    assert_no_error(error);
    assert_close((double)report->host_bytes, 24 * n, 0.01);
    assert_close((double)report->memory_bytes[0], 2 * n / 4 + 4 * module, 0.1);
}

/* Peaks that Megatron-LM (23e00ed0, Transformer Engine 2.11) allocated on 8 B200, by the launches
 * and docs/b200 of MooreThreads/SimuMax@4dcaae5: bf16, gradients in float32, a distributed
 * optimizer, sequence parallelism, micro-batches of one sample, four for each replica, and cross
 * entropy by Transformer Engine. */
typedef struct {
    const char *shape, *strategy;
    double seq, replicas, gib;
} OnB200;

#define L70  "hidden=8192,heads=64,kv_heads=8,ffn=28672,layers=12"
#define L405 "hidden=16384,heads=128,kv_heads=16,ffn=53248,layers=4"

static void test_megatron_on_b200(void **state)
{
    (void)state;
    static const OnB200 row[] = {
        {L70, "pp=2", 4096, 4, 66.55},
        {L70, "tp=2 sequence_parallel=on", 4096, 4, 60.68},
        {L70, "tp=8 sequence_parallel=on", 4096, 1, 28.29},
        {L405, "pp=2", 4096, 4, 87.08},
        {L405, "tp=2 sequence_parallel=on", 4096, 4, 81.59},
        {L405, "tp=4 sequence_parallel=on", 4096, 2, 52.89},
        {L405, "tp=8 sequence_parallel=on", 4096, 1, 38.57},
        {L70, "tp=2 cp=4 cp_comm=a2a sequence_parallel=on", 32768, 1, 68.43},
        {L405, "cp=8 cp_comm=a2a", 32768, 1, 139.22},
        {L70, "tp=2 cp=4 cp_comm=a2a sequence_parallel=on", 131072, 1, 112.67},
        {L405, "tp=2 cp=4 cp_comm=a2a sequence_parallel=on", 131072, 1, 118.13},
    };
    double off = 0;
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++) {
        const OnB200 *r = &row[i];
        const bool divides = r->replicas > 1 || strstr(r->strategy, "cp=");
        g_autofree char *model = g_strdup_printf(
            "llama:%s,vocab=128256,seq=%g,global_batch=%g,precision=bf16-fp32-grads",
            r->shape, r->seq, 4 * r->replicas);
        g_autofree char *set =
            g_strdup_printf("micro_batch=1 runtime=megatron-te-loss/allocated %s%s",
                            r->strategy, divides ? " zero=1" : "");
        const SimMemoryRow got = memory_of("manual", model, "8xb200", set);
        const double gib = (double)got.total_bytes / (1 << 30);
        print_message("%-48s seq %6g: %6.2f GiB, measured %6.2f (%+.1f %%)\n",
                      r->strategy, r->seq, gib, r->gib, 100 * (gib / r->gib - 1));
        assert_close(gib, r->gib, 0.03);
        off += fabs(gib / r->gib - 1) / G_N_ELEMENTS(row);
    }
    assert_at_most(off, 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_llama),
        cmocka_unit_test(test_korthikanti),
        cmocka_unit_test(test_korthikanti_activations),
        cmocka_unit_test(test_pure_sgd),
        cmocka_unit_test(test_8_bit_states),
        cmocka_unit_test(test_adapters),
        cmocka_unit_test(test_frozen_weights_are_divided),
        cmocka_unit_test(test_head_of_4_bits),
        cmocka_unit_test(test_states_on_hosts),
        cmocka_unit_test(test_megatron_on_b200),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
