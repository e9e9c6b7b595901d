/* Whole iterations of one GPU in fp32 (PyTorch 2.1, eager, unfused attention) against the sum of
 * their kernels, to which nothing was fitted. Rows of development devices were looked at while the
 * laws were made. Forward alone for inference; forward and backward for training, without the
 * optimizer. Rows whose forward took more than .62 of the backward are of the allocator, and
 * left out. */
#include <string.h>

#include "sim/cost/op_kernels.h"
#include "tests/support/kernel_device.h"

typedef struct {
    const char *name, *spec, *sequence;
    /* what PyTorch runs: kernels of a GELU; accesses to the scores for scale and mask */
    double gelu, scores, rate;
} IterationModel;

static const IterationModel MODEL[] = {
    {"bert_large", "bert-base:layers=24,hidden=1024,heads=16,ffn=4096", "512", 1, 4, 1},
    {"gpt2_large", "gpt2:layers=36,hidden=1280,heads=20,ffn=5120,vocab=50257", "1024", 8,
     4.25, 1},
    {"gpt3_xl", "gpt2:layers=24,hidden=3072,heads=24,ffn=12288,vocab=50257", "2048", 8,
     4.25, 1},
    {"gpt3_27", "gpt2:layers=32,hidden=2560,heads=32,ffn=10240,vocab=50257", "2048", 8,
     4.25, 1},
};

typedef struct {
    const char *device;
    bool training;
    uint32_t n;
    double mape, bias;
} IterationErrors;

enum { DEVICES = 12 };
typedef struct {
    IterationErrors of[DEVICES];
} IterationTable;

static double iteration_s(const KernelDevice *device, const IterationModel *model,
                          const char *batch, bool training)
{
    static const double ONE[OP_MAX_LOOPS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    g_autoptr(GError) error = NULL;
    g_autofree char *spec =
        g_strdup_printf("%s%s,seq=%s,batch=%s,dropout=%s,precision=single", model->spec,
                        strcmp(model->name, "bert_large") != 0 ? ""
                        : training                             ? ",vocab=30522"
                                   : ",vocab=32", /* infers with a classifier */
                        model->sequence, batch, training ? "0.1" : "0");
    Graph *graph = model_build(spec, 1, NULL, &error);
    assert_no_error(error);
    KernelPricing pricing = {.device = device, .stack = STACK_DEFAULT};
    for (uint32_t c = 0; c < G_N_ELEMENTS(pricing.factor); c++)
        pricing.factor[c] = 1;
    pricing.stack.launch_s = 0;
    pricing.stack.elementwise = 1;
    pricing.stack.gelu = model->gelu;
    pricing.stack.scores = model->scores;
    pricing.stack.heads = 2;
    pricing.stack.accumulates = 3;
    double seconds = 0;
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const Op *op = graph_get_op(graph, id);
        if (op->pass == PASS_FORWARD || (training && !op_kind_updates(op->kind)))
            seconds += op_kernels_s(&pricing, graph, id, ONE);
    }
    graph_free(graph);
    return seconds;
}

static bool iteration_row(const Csv *csv, void *data, GError **error)
{
    IterationTable *table = data;
    const char *device = g_intern_string(csv_text(csv, "device"));
    const bool training = strcmp(csv_text(csv, "mode"), "train") == 0;
    const double forward = g_ascii_strtod(csv_text(csv, "forward_ms"), NULL),
                 backward = g_ascii_strtod(csv_text(csv, "backward_ms"), NULL);
    (void)error;
    if (strcmp(csv_text(csv, "parallel"), "single") != 0 ||
        (training && !(forward < 0.62 * backward)))
        return true;
    for (uint32_t m = 0; m < G_N_ELEMENTS(MODEL); m++) {
        if (strcmp(MODEL[m].name, csv_text(csv, "model")) != 0 ||
            strcmp(MODEL[m].sequence, csv_text(csv, "seq")) != 0)
            continue;
        g_autoptr(KernelDevice) one = kernel_device_of(device);
        const double s = iteration_s(one, &MODEL[m], csv_text(csv, "batch"), training),
                     measured = g_ascii_strtod(csv_text(csv, "ms"), NULL) * 1e-3;
        uint32_t i = 0;
        while (i < DEVICES && table->of[i].n > 0 &&
               (table->of[i].device != device || table->of[i].training != training))
            i++;
        assert_true(i < DEVICES);
        IterationErrors *e = &table->of[i];
        e->device = device;
        e->training = training;
        e->n++;
        e->mape += 100 * fabs(s / measured - 1);
        e->bias += 100 * log(s / measured);
        print_message(
            "  %-14s %-10s %-9s batch %-2s %8.1f ms, measured %8.1f, %+5.1f %%\n", device,
            MODEL[m].name, csv_text(csv, "mode"), csv_text(csv, "batch"), s * 1e3,
            measured * 1e3, 100 * (s / measured - 1));
    }
    return true;
}

static void test_iterations(void **state)
{
    static const struct {
        const char *device;
        bool training;
        double percent;
    } BAR[] = {{"v100-32g-pcie", true, 3},
               {"v100-32g-pcie", false, 4},
               {"p100-16g-pcie", false, 3},
               {"t4", false, 8},
               {"a100-40g-pcie", false, 7}};
    IterationTable table = {0};
    g_autoptr(GError) error = NULL;
    (void)state;
    const char *path = test_shared("measured/kernels/iterations_fp32.csv");
    g_autoptr(Csv) csv = path ? csv_read(path, &error) : NULL;
    assert_no_error(error);
    if (csv)
        csv_each(csv, iteration_row, &table, &error);
    assert_no_error(error);
    for (uint32_t i = 0; i < DEVICES && table.of[i].n > 0; i++) {
        const IterationErrors *e = &table.of[i];
        print_message("%-14s %-9s %2u rows: %.1f %%, bias %+.1f\n", e->device,
                      e->training ? "training" : "inference", e->n, e->mape / e->n,
                      e->bias / e->n);
        for (uint32_t b = 0; b < G_N_ELEMENTS(BAR); b++)
            if (strcmp(BAR[b].device, e->device) == 0 && BAR[b].training == e->training)
                assert_at_most(e->mape / e->n, BAR[b].percent);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_iterations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
