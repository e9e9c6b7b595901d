/* Packed sequences: attention's work is that of their documents, and with cp all devices wait for
 * the part with the most. */
#include <math.h>
#include <string.h>

#include "data/graph/documents.h"
#include "data/models/model.h"
#include "tests/support/made_plan.h"
#include "tests/support/shrunk.h"

#define MODEL                                                                   \
    "llama:layers=2,hidden=256,heads=8,kv_heads=4,ffn=512,seq=16384,vocab=256," \
    "global_batch=8,precision=bf16"

static void test_pairs(void **state)
{
    (void)state;
    static const char *const TEXT[] = {NULL, "1", "3", "5+2", "7+1+4", "24", "90"};
    enum { SEQ = 24 };
    for (uint32_t i = 0; i < G_N_ELEMENTS(TEXT); i++)
        for (uint64_t span = 0; span < 5; span++) {
            double all = 0, part[SEQ] = {0};
            for (uint64_t q = 0; q < SEQ; q++) {
                const uint64_t first = documents_first(TEXT[i], q);
                assert_true(q == 0 || first == q ||
                            first == documents_first(TEXT[i], q - 1));
                for (uint64_t k = first; k <= q; k++)
                    part[q] += span == 0 || k + span > q;
                all += part[q];
                assert_float_equal(documents_pairs(TEXT[i], q + 1, span), all, 0);
            }
            /* two parts: tokens 0 to 5 with 18 to 23, and the others */
            double most = 0;
            for (uint64_t q = 0; q < SEQ; q++)
                most += q / 6 % 3 == 0 ? part[q] : 0;
            most = most > all / 2 ? most : all - most;
            assert_float_equal(documents_fullest(TEXT[i], SEQ, span, 2), 2 * most / all,
                               1e-12);
        }
    assert_float_equal(documents_fullest("24", SEQ, 0, 2), 1, 0);
    assert_true(documents_are("1") && documents_are("9000+500"));
    static const char *const NOT[] = {"", "0", "5+", "+5", "5,6", "5 6", "1e3", "5+0"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(NOT); i++)
        assert_false(documents_are(NOT[i]));
}

typedef struct {
    double time_s, flops;
} Priced;

/* `keys` of the strategy; proved on a small model. */
static Priced price(const char *documents, const char *keys)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *model = g_strconcat(MODEL, documents, NULL);
    g_auto(Made) made = made_plan("manual", model, "dgx-h100", keys);
    g_autoptr(SimReport) report =
        sim_evaluate(made.plan, made.graph, made.view, "stage", &error);
    assert_no_error(error);
    Priced priced = {report->comp_s, 0};
    for (OpId id = 0; id < graph_n_ops(made.graph); id++)
        priced.flops += graph_op_flops(made.graph, id);
    check_shrunk(made.plan, made.graph);
    return priced;
}

static void test_prices(void **state)
{
    (void)state;
    const char *keys = "runtime=none micro_batch=1";
    const Priced whole = price("", keys), same = price(",documents=16384", keys),
                 longer = price(",documents=20000", keys);
    assert_true(same.time_s == whole.time_s && same.flops == whole.flops);
    assert_true(longer.time_s == whole.time_s && longer.flops == whole.flops);
    Priced last = whole;
    static const char *const SHORTER[] = {",documents=10000", ",documents=8192",
                                          ",documents=1000+3000", ",documents=512"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(SHORTER); i++) {
        const Priced next = price(SHORTER[i], keys);
        assert_true(next.time_s < last.time_s && next.flops < last.flops);
        last = next;
    }
    /* the forward's 4 and the backward's 10 FLOPs of each element of 8 heads of 32, and more */
    const double fewer = 16384.0 * 16385 / 2 - 2 * (8192.0 * 8193 / 2),
                 saved = whole.flops - price(",documents=8192", keys).flops;
    assert_true(saved > 2 * 8 * 14 * 256 * fewer && saved < 2 * 8 * 16 * 256 * fewer);
}

/* Computation where two devices share a sequence, over that with even parts. */
static double unevenness(const char *comm, const char *runtime)
{
    g_autofree char *keys = g_strdup_printf(
        "runtime=%s dp=2 tp=2 cp=2 micro_batch=1 cp_comm=%s", runtime, comm);
    return price(",documents=12288+16", keys).time_s /
           price(",documents=8192", keys).time_s;
}

static void test_parts(void **state)
{
    (void)state;
    assert_float_equal(documents_fullest("12288+16", 16384, 0, 2), 1.601, 1e-3);
    static const char *const COMM[] = {"allgather", "p2p"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(COMM); i++) {
        /* exchanged heads have whole sequences; Transformer Engine cuts each document */
        const double more = unevenness(COMM[i], "none") / unevenness("a2a", "none"),
                     even =
                         unevenness(COMM[i], "megatron") / unevenness("a2a", "megatron");
        assert_true(more > 1.2 && fabs(even - 1) < 1e-6);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *model, *message;
    } OF[] = {{MODEL ",documents=0", "documents: expected lengths"},
              {MODEL ",documents=512,attention=materialized",
               "expected causal attention=fused"},
              {"vit-l:documents=16,attention=fused", "expected causal attention=fused"},
              {"bert-base:documents=16", "documents"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(OF); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(model_build(OF[i].model, 8, NULL, &error));
        if (!strstr(error->message, OF[i].message))
            fail_msg("%s", error->message);
    }
}

static void test_written(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autofree char *text =
        model_write("llama:layers=1,seq=64,vocab=256,documents=9+5", 1, &error);
    assert_no_error(error);
    g_autoptr(Graph) graph = model_build_from("m.json", text, 1, NULL, &error);
    assert_no_error(error);
    uint32_t n = 0;
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const OpAttr *attr = &graph_get_op(graph, id)->attr;
        n += attr->documents && strcmp(attr->documents, "9+5") == 0;
    }
    assert_int_equal(n, 2);
    char *at = strstr(text, "9+5");
    at[1] = '-';
    assert_null(model_build_from("m.json", text, 1, NULL, &error));
    assert_non_null(strstr(error->message, "documents: expected lengths"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs), cmocka_unit_test(test_prices),
        cmocka_unit_test(test_parts), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
