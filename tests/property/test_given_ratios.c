/* Ratios that are given: by each planner that has ratios, as its plan's ratios, and equal to the
 * rules that they follow. */
#include "data/data.h"
#include "synth/answer/ratios.h"
#include "synth/planners/planner.h"
#include "synth/synth.h"
#include "tests/test.h"

static const char MODEL[] =
    "bert-base:layers=1,seq=32,hidden=64,ffn=128,heads=2,vocab=256,"
    "global_batch=40";

typedef struct {
    double time_s;
    double *ratio; /* [n_devices] */
} Made;

static Made made(const Planner *planner, const char *model, const ClusterView *view,
                 const char *const *set)
{
    PlannerOptions options;
    GError *error = NULL;
    planner_options_init(&options);
    for (; *set; set += 2) {
        planner_options_set(&options, set[0], set[1], &error);
        assert_no_error(error);
    }
    g_autoptr(Plan) plan =
        planner_plan(planner, model, view->cluster->name, view, &options, NULL, &error);
    assert_no_error(error);
    return (Made){plan->iteration_time_s,
                  g_memdup2(plan->ratio, view->n_devices * sizeof *plan->ratio)};
}

static void assert_alike(const Planner *planner, const char *what, Made a, Made b,
                         uint32_t n)
{
    if (fabs(a.time_s - b.time_s) > 1e-9 * b.time_s ||
        (b.ratio && !ratios_same(a.ratio, b.ratio, n)))
        TEST_FAIL_AT(__FILE__, __LINE__, "%s: %s: %.9g s and %.9g s", planner->name, what,
                     a.time_s, b.time_s);
    g_free(a.ratio);
    g_free(b.ratio);
}

/* "1.5 1.5 ..." for the devices. */
static char *numbers(const double *ratio, uint32_t n)
{
    GString *text = g_string_new("");
    for (uint32_t j = 0; j < n; j++)
        g_string_append_printf(text, "%s%.17g", j ? "," : "", 7 * ratio[j]);
    return g_string_free(text, FALSE);
}

static void check_planner(const Planner *planner, const ClusterView *view)
{
    const uint32_t n = view->n_devices;
    g_autofree double *even = ratios_even(view), *speed = ratios_proportional(view);
    g_autofree char *even_text = numbers(even, n), *speed_text = numbers(speed, n);
    g_autofree char *kinds = g_strdup_printf(
        "%s=%.17g,%s=%.17g", view->device[0].type_name,
        view->device[0].rate / view->device[0].gpus, view->device[n - 1].type_name,
        view->device[n - 1].rate / view->device[n - 1].gpus);
    const char *const EVEN[] = {"ratios", "even", NULL},
                      *const SPEED[] = {"ratios", "proportional", NULL},
                      *const GIVEN_EVEN[] = {"ratios", even_text, NULL},
                      *const GIVEN_SPEED[] = {"ratios", speed_text, NULL},
                      *const KINDS[] = {"ratios", kinds, NULL},
                      *const MIX_0[] = {"mix", "0", NULL},
                      *const MIX_1[] = {"mix", "1", NULL};
    assert_alike(planner, "even", made(planner, MODEL, view, GIVEN_EVEN),
                 made(planner, MODEL, view, EVEN), n);
    assert_alike(planner, "proportional", made(planner, MODEL, view, GIVEN_SPEED),
                 made(planner, MODEL, view, SPEED), n);
    assert_alike(planner, "kinds", made(planner, MODEL, view, KINDS),
                 made(planner, MODEL, view, SPEED), n);
    assert_alike(planner, "mix=0", made(planner, MODEL, view, MIX_0),
                 made(planner, MODEL, view, EVEN), n);
    assert_alike(planner, "mix=1", made(planner, MODEL, view, MIX_1),
                 made(planner, MODEL, view, SPEED), n);
    if (planner_can(planner, PLANNER_GROUPS))
        return; /* groups on subsets have parts of the ratios */
    const char *const MIX[] = {"mix", "0.25", NULL};
    Made mixed = made(planner, MODEL, view, MIX);
    for (uint32_t j = 0; j < n; j++)
        assert_close(mixed.ratio[j], 0.75 * even[j] + 0.25 * speed[j], 1e-9);
    g_free(mixed.ratio);
}

static void test_planners(void **state)
{
    (void)state;
    GError *error = NULL;
    uint32_t n = 0;
    g_autoptr(Cluster) cluster = cluster_load("hap-a100-p100-4", &error);
    assert_no_error(error);
    for (Granularity g = GRANULARITY_MACHINE; g <= GRANULARITY_GPU; g++) {
        g_autoptr(ClusterView) view = cluster_view(cluster, g);
        for (uint32_t i = 0; i < planner_count(); i++)
            if (planner_can(planner_at(i), PLANNER_RATIOS) &&
                !planner_can(planner_at(i), PLANNER_CHOOSES)) {
                check_planner(planner_at(i), view);
                n++;
            }
    }
    assert_true(n >= 10);
}

/* Each kind of ratios with each kind of planner: a plan at them, the plan that it makes
 * without (its shares are equal), or a refusal that names the option; never another plan. */
static void test_no_ratios_are_ignored(void **state)
{
    (void)state;
    enum { GIVEN, EQUAL, REFUSED };
    static const struct {
        const char *key, *value;
        uint8_t with, without,
            shares; /* for planners with ratios, without, with own shares */
    } CASE[] = {{"ratios", "even", GIVEN, EQUAL, REFUSED},
                {"ratios", "proportional", GIVEN, REFUSED, REFUSED},
                {"ratios", "3,1,1,1", GIVEN, REFUSED, REFUSED},
                {"ratios", "a100=3,p100=1", GIVEN, REFUSED, REFUSED},
                {"mix", "0.5", GIVEN, REFUSED, REFUSED}};
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("hap-a100-p100-4", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    for (uint32_t i = 0; i < planner_count() * G_N_ELEMENTS(CASE); i++) {
        const Planner *planner = planner_at(i / G_N_ELEMENTS(CASE));
        const uint32_t c = i % G_N_ELEMENTS(CASE);
        const uint8_t expected = planner_can(planner, PLANNER_RATIOS)   ? CASE[c].with
                                 : planner_can(planner, PLANNER_SHARES) ? CASE[c].shares
                                                                        : CASE[c].without;
        PlannerOptions options;
        g_autoptr(GError) refusal = NULL;
        planner_options_init(&options);
        assert_true(planner_options_set(&options, CASE[c].key, CASE[c].value, &error));
        g_autofree double *asked = ratios_pinned(view, &options);
        if (planner_can(planner, PLANNER_CHOOSES))
            continue; /* the next test */
        g_autoptr(Plan) plan = planner_plan(planner, MODEL, view->cluster->name, view,
                                            &options, NULL, &refusal);
        if ((plan == NULL) != (expected == REFUSED) ||
            (plan && !ratios_same(plan->ratio, asked, view->n_devices)) ||
            (!plan && !strstr(refusal->message, CASE[c].key)))
            TEST_FAIL_AT(__FILE__, __LINE__, "%s with %s=%s: %s", planner->name,
                         CASE[c].key, CASE[c].value,
                         refusal ? refusal->message : "a plan at other ratios");
    }
}

/* The planner that chooses takes those that have ratios, and its plan is at them; a manual plan
 * with shares of its own is not even. */
static void test_choice_and_shares(void **state)
{
    (void)state;
    static const char *const GIVEN[] = {"3,1,1,1", "a100=3,p100=1", "even"};
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("hap-a100-p100-4", &error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    for (uint32_t i = 0; i < G_N_ELEMENTS(GIVEN); i++) {
        PlannerOptions options;
        planner_options_init(&options);
        assert_true(planner_options_set(&options, "ratios", GIVEN[i], &error));
        g_autoptr(Question) question =
            question_open(planner_find("auto", NULL), MODEL, view, &options, &error);
        assert_no_error(error);
        g_autoptr(Answer) answer = question_answer(question, "lab", NULL, &error);
        assert_no_error(error);
        g_autoptr(Plan) plan = answer_take_plan(answer);
        g_autoptr(ClusterView) chosen = answer_take_view(answer);
        g_autofree double *asked = ratios_pinned(chosen ? chosen : view, &options);
        assert_true(ratios_same(plan->ratio, asked, plan->n_devices));
    }
    PlannerOptions options;
    planner_options_init(&options);
    assert_true(planner_options_set(&options, "ratios", "even", &error) &&
                planner_options_set(&options, "shares", "3 1 1 1", &error));
    assert_null(planner_plan(planner_find("manual", NULL), MODEL, "lab", view, &options,
                             NULL, &error));
    assert_non_null(strstr(error->message, "ratios"));
}

/* The best ratios, rounded, are never worse than even or proportional ones: random tiny models,
 * whose few units make rounding cost most, on two kinds of machines, by every planner with
 * ratios. */
static void test_best_is_never_worse(void **state)
{
    (void)state;
    enum { CASES = 24, HIDDEN = 16 };
    GError *error = NULL;
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    const char *const EVEN[] = {"ratios", "even", NULL},
                      *const SPEED[] = {"ratios", "proportional", NULL},
                      *const BEST[] = {"ratios", "best", NULL};
    for (uint32_t c = 0; c < CASES; c++) {
        g_autofree char *model = g_strdup_printf(
            "bert-base:layers=1,seq=%d,hidden=%d,ffn=%d,heads=%d,vocab=64,global_batch=%"
            "d",
            g_rand_int_range(rand, 4, 64), HIDDEN * g_rand_int_range(rand, 1, 24),
            g_rand_int_range(rand, 8, 512), 1 << g_rand_int_range(rand, 0, 4),
            2 * g_rand_int_range(rand, 2, 12));
        g_autoptr(Cluster) cluster =
            cluster_load(c % 2 ? "hap-a100-p100-4" : "hap-8", &error);
        assert_no_error(error);
        g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
        for (uint32_t i = 0; i < planner_count(); i++) {
            const Planner *planner = planner_at(i);
            if (!planner_can(planner, PLANNER_RATIOS) ||
                planner_can(planner, PLANNER_GROUPS))
                continue;
            const Made best = made(planner, model, view, BEST),
                       even = made(planner, model, view, EVEN),
                       speed = made(planner, model, view, SPEED);
            if (best.time_s > fmin(even.time_s, speed.time_s) * (1 + 1e-9))
                TEST_FAIL_AT(__FILE__, __LINE__,
                             "%s on %s: best %.9g s, even %.9g s, "
                             "proportional %.9g s",
                             planner->name, model, best.time_s, even.time_s,
                             speed.time_s);
            g_free(best.ratio);
            g_free(even.ratio);
            g_free(speed.ratio);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planners),
        cmocka_unit_test(test_no_ratios_are_ignored),
        cmocka_unit_test(test_choice_and_shares),
        cmocka_unit_test(test_best_is_never_worse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
