/* Context parallelism by a ring: what is hidden and held, by hand, against gathers. */
#include "data/graph/op.h"
#include "tests/support/made_plan.h"

#define MODEL                                                                           \
    "llama:layers=3,hidden=64,heads=8,kv_heads=8,ffn=96,seq=512,vocab=64,global_batch=" \
    "8,"                                                                                \
    "attention=fused,precision=mixed"

static Made planned(const char *bandwidth, const char *set)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strdup_printf(
        "name: c\ndevice_types: [{name: D, rate: 1e12 FLOP/s, memory: 1 GiB}]\n"
        "machines: [{type: D, gpus: 8, inner: {latency: 0 s, bandwidth: %s}}]\n",
        bandwidth);
    Made made = {.cluster = cluster_parse("c.yaml", text, strlen(text), &error)};
    assert_no_error(error);
    made.view = cluster_view(made.cluster, GRANULARITY_GPU);
    PlannerOptions options;
    assert_true(set_options(&options, set, &error));
    made.plan = planner_plan(planner_find("manual", NULL), MODEL, "c.yaml", made.view,
                             &options, &made.graph, &error);
    assert_no_error(error);
    return made;
}

static SimReport *reported(const Made *made, const char *fidelity)
{
    g_autoptr(GError) error = NULL;
    SimReport *report =
        sim_evaluate(made->plan, made->graph, made->view, fidelity, &error);
    assert_no_error(error);
    return report;
}

/* Seconds of attention on the first device, and of the collectives on keys, values and their
 * gradients. */
static void of_attention(const Made *made, const SimReport *report, double *attention_s,
                         double *exchange_s)
{
    const SimTimeline *timeline = report->timeline;
    *attention_s = *exchange_s = 0;
    for (uint32_t s = 0; s < timeline->n_spans; s++) {
        const SimSpan *span = &timeline->span[s];
        const Instr *instr = &made->plan->program->instr[span->instr];
        const double s_s = span->end_s - span->start_s;
        if (instr->kind == INSTR_COLLECTIVE && instr_axis(instr) == AXIS_SHARDS &&
            strstr(graph_tensor(made->graph, instr->tensor)->name, ".attention.k."))
            *exchange_s += s_s;
        if (instr->kind != INSTR_COMPUTE || span->lane != timeline->lane[0])
            continue;
        const OpKind kind = graph_get_op(made->graph, instr->op)->kind;
        *attention_s +=
            kind == OP_FUSED_ATTENTION || kind == OP_FUSED_ATTENTION_DX ? s_s : 0;
    }
}

/* All parts of attention but the first hide exchanges: all of them on a fast network, as long as
 * they take on a slow one. */
static void test_hidden(void **state)
{
    (void)state;
    static const char *const bandwidth[] = {"1e6 B/s", "1e12 B/s"};
    static const char *const base[] = {"cp=8", "cp=4 zero=1", "cp=4 microbatches=2",
                                       "cp=2 tp=2 pp=2 microbatches=4"};
    for (uint32_t b = 0; b < G_N_ELEMENTS(base); b++)
        for (uint32_t w = 0; w < G_N_ELEMENTS(bandwidth); w++) {
            g_autofree char *ring = g_strconcat(base[b], " cp_comm=p2p", NULL);
            g_auto(Made) all = planned(bandwidth[w], base[b]),
                         part = planned(bandwidth[w], ring);
            g_autoptr(SimReport) gathers = reported(&all, "stage"),
                                 sends = reported(&part, "stage"),
                                 flow = reported(&all, "flow"),
                                 beside = reported(&part, "flow");
            double attention_s, exchange_s, attention, left_s;
            of_attention(&all, gathers, &attention_s, &exchange_s);
            of_attention(&part, sends, &attention, &left_s);
            assert_close(attention, attention_s, 1e-9);
            assert_int_equal(all.plan->program->n, part.plan->program->n);
            assert_true(beside->iteration_time_s <= flow->iteration_time_s * (1 + 1e-9));
            if (strstr(base[b], "pp=2"))
                continue; /* spans of both stages */
            const double n = strstr(base[b], "cp=8") ? 8 : 4,
                         hidden = fmin(exchange_s, attention_s * (1 - 1 / n));
            assert_true((w == 1) == (hidden == exchange_s));
            assert_close(exchange_s - left_s, hidden, 1e-6);
            assert_close(gathers->iteration_time_s - sends->iteration_time_s, hidden,
                         1e-6);
        }
}

/* By heads among u neighbours and around rings of r, each device sends (u - 1) / u of its parts of
 * queries, keys, values and results, in both directions, and r - 1 times its keys and values, which
 * attention hides but for one part of r. */
static void test_heads_and_rings(void **state)
{
    (void)state;
    const double bandwidth = 1e6, part = 8.0 * 512 * 64 * 2 / 8, layers = 3;
    g_auto(Made) all = planned("1e6 B/s", "cp=8");
    g_autoptr(SimReport) gathers = reported(&all, "stage"),
                         flows = reported(&all, "flow");
    double attention_s, unused;
    of_attention(&all, gathers, &attention_s, &unused);
    for (uint32_t u = 2; u < 8; u *= 2) {
        const double r = 8.0 / u;
        g_autofree char *set = g_strdup_printf("cp=8 cp_comm=a2a+p2p a2a_ranks=%u", u);
        g_auto(Made) made = planned("1e6 B/s", set);
        g_autoptr(SimReport) stage = reported(&made, "stage"),
                             flow = reported(&made, "flow");
        const double exchanged_s = layers * 8 * part * (u - 1) / u / bandwidth,
                     around_s = layers * 6 * part * (r - 1) / bandwidth,
                     gathered_s = layers * 6 * part * 7 / bandwidth,
                     less_s =
                         gathered_s - exchanged_s - around_s + attention_s * (1 - 1 / r);
        assert_int_equal(all.plan->program->n, made.plan->program->n);
        assert_close(gathers->iteration_time_s - stage->iteration_time_s, less_s, 1e-6);
        assert_close(flows->iteration_time_s - flow->iteration_time_s, less_s, 0.02);
        assert_int_equal(stage->memory_bytes[0], made.plan->memory_bytes[0]);
    }
}

/* Two of eight parts of keys and values lie there, or of their gradients. */
static void test_held(void **state)
{
    (void)state;
    g_auto(Made) all = planned("1e9 B/s", "cp=8 recompute=full zero=3"),
                 part = planned("1e9 B/s", "cp=8 recompute=full zero=3 cp_comm=p2p");
    g_autoptr(SimReport) gathers = reported(&all, "stage"),
                         sends = reported(&part, "stage"), flow = reported(&part, "flow");
    const double keys = 8 * 512 * 2 * 64 * 2; /* samples, seq, keys and values, bytes */
    const double less = (double)gathers->memory_bytes[0] - (double)sends->memory_bytes[0];
    assert_true(less > 0 && less <= 2 * keys * 3 / 4);
    assert_true(flow->memory_bytes[0] >= sends->memory_bytes[0]);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *model, *set, *words;
    } row[] = {
        {MODEL, "cp_comm=p2p", "cp_comm has no effect here: expected cp above 1"},
        {MODEL, "cp=4 cp_comm=a2a+p2p", "a2a_ranks: expected it with cp_comm=a2a+p2p"},
        {MODEL, "cp=4 a2a_ranks=2", "a2a_ranks: expected it with cp_comm=a2a+p2p"},
        {MODEL, "cp=4 cp_comm=a2a+p2p a2a_ranks=4", "expected a divisor of cp=4"},
        {MODEL, "cp=8 dp=1 cp_comm=a2a+p2p a2a_ranks=3", "expected a divisor of cp=8"},
        {"llama:layers=2,hidden=64,heads=8,kv_heads=2,ffn=96,seq=16,vocab=64,"
         "global_batch=8,attention=fused",
         "cp=8 cp_comm=a2a+p2p a2a_ranks=4", "a2a_ranks=4 by heads: expected a multiple"},
        {MODEL, "stage_dp=1,1 cp=4 cp_comm=a2a+p2p a2a_ranks=2", "no etp, zero_ranks"},
        {"gpt2:layers=2,hidden=64,heads=4,ffn=96,seq=16,vocab=64,global_batch=8",
         "cp=2 cp_comm=p2p", "does not divide queries"},
    };
    for (uint32_t k = 0; k < G_N_ELEMENTS(row); k++) {
        g_autoptr(GError) error = NULL;
        g_auto(Made) made = make("manual", row[k].model, "hap-8", row[k].set, &error);
        assert_null(made.plan);
        assert_error(error, KILTER_ERROR_INPUT, row[k].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hidden),
        cmocka_unit_test(test_heads_and_rings),
        cmocka_unit_test(test_held),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
