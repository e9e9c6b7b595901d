/* Pieces of a microbatch that take turns in a stage: they compute what the model does, and take the
 * time of two machines, one for computations and one for exchanges, that serve them in turn. */
#include <math.h>
#include <string.h>

#include "data/formats/export/export.h"
#include "tests/support/proved.h"

#define MODEL                                                                           \
    "mixtral:layers=4,hidden=16,heads=4,kv_heads=2,ffn=24,seq=8,vocab=24,global_batch=" \
    "192,experts=4,optimizer=adam"

enum { MOST_TURNS = 256, MOST_PIECES = 8 };

/* The turns of a microbatch, an exchange and then computations, and what runs once. */
typedef struct {
    uint32_t n[2]; /* of the forward, of the backward */
    struct {
        double exchange_s, compute_s;
    } turn[2][MOST_TURNS];
    double exchange_s, compute_s, once_s; /* sums */
} Turns;

static SimReport *report_of(const Made *made, const char *fidelity)
{
    g_autoptr(GError) error = NULL;
    SimOptions options;
    sim_options_init(&options);
    assert_true(sim_options_set(&options, "network", "crossbar", &error));
    SimReport *report = sim_evaluate_with(made->plan, made->graph, made->view, fidelity,
                                          &options, &error);
    assert_no_error(error);
    return report;
}

static Made made_at(const char *bandwidth, const char *set)
{
    g_autofree char *cluster =
        g_strdup_printf("star:hosts=2,bandwidth=%s,latency=0us", bandwidth);
    return made_plan("manual", MODEL, cluster, set);
}

/* The turns of a device that runs one microbatch after the other. */
static void find_turns(const Made *made, Turns *to)
{
    g_autoptr(SimReport) report = report_of(made, "stage");
    bool computed = true;
    uint32_t at = 0;
    *to = (Turns){.n = {1, 0}};
    for (uint32_t i = 0; i < report->timeline->n_spans; i++) {
        const SimSpan *span = &report->timeline->span[i];
        const Instr *instr = &made->plan->program->instr[span->instr];
        const double s = span->end_s - span->start_s;
        if (span->lane != SIM_TEAM && span->lane != 0)
            continue;
        to->once_s += instr->microbatch == PROGRAM_WHOLE ? s : 0;
        if (instr->microbatch != 0)
            continue;
        const bool exchange = instr->kind == INSTR_COLLECTIVE;
        const bool turns = !exchange && at == 0 &&
                           graph_get_op(made->graph, instr->op)->pass == PASS_BACKWARD;
        at += turns;
        to->n[at] += turns || (exchange && computed);
        computed = !exchange;
        assert_in_range(to->n[at], 1, MOST_TURNS);
        *(exchange ? &to->turn[at][to->n[at] - 1].exchange_s
                   : &to->turn[at][to->n[at] - 1].compute_s) += s;
        *(exchange ? &to->exchange_s : &to->compute_s) += s;
    }
}

/* Their time where two machines serve the pieces of each microbatch in turn. */
static double served_s(const Turns *turns, uint32_t microbatches, uint32_t pieces)
{
    double exchanged_s = 0, computed_s = 0;
    for (uint32_t step = 0; step < 2 * microbatches; step++) {
        double end_s[MOST_PIECES] = {0};
        for (uint32_t i = 0; i < turns->n[step % 2]; i++)
            for (uint32_t k = 0; k < pieces; k++) {
                const double e = turns->turn[step % 2][i].exchange_s;
                if (e > 0)
                    end_s[k] = exchanged_s = fmax(exchanged_s, end_s[k]) + e;
                computed_s = fmax(computed_s, end_s[k]);
                end_s[k] = computed_s += turns->turn[step % 2][i].compute_s;
            }
    }
    return fmax(exchanged_s, computed_s) + turns->once_s;
}

/* Computations that do not depend on an exchange run beside it, so that the time may be shorter
 * than in turns. It is that time where exchanges are short, and never less than either machine
 * works. */
static void test_served_in_turn(void **state)
{
    (void)state;
    static const char *const BANDWIDTH[] = {"1Gb/s", "100Gb/s", "300Gb/s", "600Gb/s",
                                            "10000Gb/s"};
    for (uint32_t b = 0; b < G_N_ELEMENTS(BANDWIDTH); b++) {
        double before_s = INFINITY;
        for (uint32_t k = 2; k <= 4; k++) {
            g_autofree char *one = g_strdup_printf("tp=2 microbatches=%u", 4 * k),
                            *some = g_strdup_printf("tp=2 microbatches=4 pieces=%u", k);
            g_auto(Made) alone = made_at(BANDWIDTH[b], one),
                         turns = made_at(BANDWIDTH[b], some);
            Turns of;
            find_turns(&alone, &of);
            g_autoptr(SimReport) stage = report_of(&turns, "stage");
            g_autoptr(SimReport) flow = report_of(&turns, "flow");
            const double s = stage->iteration_time_s, served = served_s(&of, 4, k);
            assert_at_most(s, served * (1 + 1e-12));
            assert_at_most(served, s * (k > 2 && b > 2 ? 1 + 1e-9 : 1.04));
            assert_at_most(4 * k * fmax(of.exchange_s, of.compute_s) + of.once_s,
                           s * (1 + 1e-12));
            assert_close(flow->iteration_time_s, s, 1e-9);
            assert_true(s < before_s);
            before_s = s;
        }
    }
}

static void test_proved(void **state)
{
    (void)state;
    static const char *const SET[] = {
        "pp=2 tp=2 ep=2 microbatches=4 pieces=3 sequence_parallel=on recompute=full",
        "pp=2 tp=2 ep=2 microbatches=4 pieces=2 schedule=zb-h1 recompute=selective",
        "pp=2 ep=4 microbatches=2 pieces=2 schedule=interleaved zero=2",
        "pp=2 ep=2 microbatches=4 pieces=3 schedule=dualpipev",
        "pp=2 tp=2 ep=2 microbatches=8 pieces=2 schedule=dualpipe zero=1",
        "tp=2 ep=4 microbatches=2 pieces=3 zero=3 recompute=full",
        "tp=2 cp=2 ep=4 etp=1 microbatches=2 pieces=2",
        "cp=2 cp_comm=a2a ep=4 microbatches=2 pieces=2",
        "pipeline_layers=4;2,2 tp=2 microbatches=4 pieces=2",
        "stage_tp=2,1,1 stage_dp=2,2,2 microbatches=2 pieces=4",
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(SET); i++)
        check_proved("manual", MODEL, "dgx-h100", SET[i], MODEL);
}

/* Tables have the steps of the schedule, in which the pieces of a microbatch are one. */
static void test_exported(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_auto(Made) made = made_plan("manual", MODEL, "dgx-h100",
                                  "pp=2 tp=2 microbatches=4 pieces=2 zero=1");
    g_autoptr(GArray) table =
        plan_export(made.plan, made.graph, made.view, "json", "plan", &error);
    assert_no_error(error);
    g_autofree char *text = g_strdup(g_array_index(table, ExportFile, 0).text);
    assert_non_null(strstr(text, "1B3"));
    assert_null(strstr(text, "1B4"));
    assert_null(
        plan_export(made.plan, made.graph, made.view, "megatron", "plan", &error));
    assert_non_null(strstr(error->message, "pieces"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_served_in_turn),
                                       cmocka_unit_test(test_proved),
                                       cmocka_unit_test(test_exported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
