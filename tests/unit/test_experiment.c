/* Experiments: the grid, the identity of configurations, the claims. */
#include "data/data.h"
#include "experiments/figures/claims.h"
#include "experiments/sweep/experiment.h"
#include "experiments/sweep/result.h"
#include "experiments/sweep/sweep.h"
#include "tests/support/program.h"

#define SMALL "vit:layers=1,hidden=64,heads=4,ffn=128"

static Experiment *load(const Sandbox *box, const char *text,
                        const ExperimentChange *change)
{
    sandbox_write(box, "x.yaml", text);
    g_autofree char *path = g_build_filename(box->folder, "x.yaml", NULL);
    GError *error = NULL;
    Experiment *experiment = experiment_load(path, change, &error);
    assert_no_error(error);
    return experiment;
}

static void test_grid_is_the_product(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autoptr(Experiment) experiment =
        load(box,
             "name: x\ngrid:\n  model: ['" SMALL "']\n  cluster: [hap-8, hap-p100-8]\n"
             "  planner: [dp-ev, dp-cp, hap]\n  granularity: [machine, gpu]\n"
             "  fidelity: [analytic, stage]\n  seed: [3, 4, 4]\n",
             NULL);
    /* The repeated seed counts once. */
    assert_int_equal(experiment_count(experiment), 2 * 3 * 2 * 2 * 2);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (uint32_t i = 0; i < experiment_count(experiment); i++)
        assert_true(g_hash_table_add(seen, experiment_at(experiment, i)->hash));
    const Configuration *first = experiment_at(experiment, 0);
    assert_string_equal(first->model, SMALL);
    assert_string_equal(first->planner->name, "dp-ev");
    assert_int_equal(first->seed, 3);
}

static void test_defaults_and_changes(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    static const char text[] =
        "name: x\ngrid:\n  model: ['" SMALL "']\n  cluster: [hap-8]\n  planner: [dp-ev]\n"
        "set: [max_rounds=3]\n";
    g_autoptr(Experiment) plain = load(box, text, NULL);
    assert_int_equal(experiment_count(plain), 1);
    assert_string_equal(experiment_at(plain, 0)->fidelity, "stage");
    assert_int_equal(experiment_at(plain, 0)->granularity, GRANULARITY_MACHINE);
    assert_int_equal(experiment_at(plain, 0)->options->max_rounds, 3);

    uint64_t seed = 17;
    char *set[] = {"max_rounds=5", NULL};
    ExperimentChange change = {.granularity = "gpu", .seed = &seed, .set = set};
    g_autoptr(Experiment) changed = load(box, text, &change);
    assert_int_equal(experiment_at(changed, 0)->granularity, GRANULARITY_GPU);
    assert_int_equal(experiment_at(changed, 0)->options->max_rounds, 5);
    assert_int_equal(experiment_at(changed, 0)->seed, 17);
}

/* A planner of single GPUs has these where no granularity is given, as in kilter plan. */
static void test_granularity_by_planner(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    static const char TEXT[] = "name: x\ngrid:\n  model: ['" SMALL "']\n"
                               "  cluster: [hap-8]\n  planner: [hap, amp]\n";
    g_autofree char *machine = g_strconcat(TEXT, "  granularity: [machine]\n", NULL);
    g_autoptr(Experiment) open = load(box, TEXT, NULL);
    g_autoptr(Experiment) given = load(box, machine, NULL);
    assert_int_equal(experiment_at(open, 0)->granularity, GRANULARITY_MACHINE);
    assert_int_equal(experiment_at(open, 1)->granularity, GRANULARITY_GPU);
    assert_int_equal(experiment_at(given, 1)->granularity, GRANULARITY_MACHINE);
}

/* A row's identity follows from its own cluster, whatever clusters stand beside it: a cluster of
 * data sheets also depends on what frameworks hold. */
static void test_identity_by_own_cluster(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    static const char TEXT[] = "name: x\ngrid:\n  model: ['" SMALL "']\n"
                               "  planner: [auto, amp]\n  cluster: ";
    g_autofree char *both = g_strconcat(TEXT, "[hap-8, 2xa100-40g@eth-100]\n", NULL),
                    *one = g_strconcat(TEXT, "[2xa100-40g@eth-100]\n", NULL);
    g_autoptr(Experiment) mixed = load(box, both, NULL);
    g_autoptr(Experiment) alone = load(box, one, NULL);
    assert_int_equal(experiment_count(mixed), 4);
    for (uint32_t i = 0; i < 2; i++)
        assert_string_equal(experiment_at(mixed, 2 + i)->hash,
                            experiment_at(alone, i)->hash);
}

/* An entry's own options come after those of the file. */
static void test_options_of_a_planner(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autoptr(Experiment) experiment =
        load(box,
             "name: x\ngrid:\n  model: ['" SMALL "']\n  cluster: [hap-8]\n"
             "  planner: [hap, 'hap:ratios=even,collectives=padded', 'hap:ratios=own']\n"
             "set: [collectives=grouped]\n",
             NULL);
    /* The first and the last ask the same in other words. */
    assert_int_equal(experiment_count(experiment), 3);
    assert_string_equal(experiment_at(experiment, 0)->hash,
                        experiment_at(experiment, 2)->hash);
    assert_ptr_equal(experiment_at(experiment, 0)->twin, experiment_at(experiment, 2));
    const PlannerOptions *plain = experiment_at(experiment, 0)->options;
    const PlannerOptions *own = experiment_at(experiment, 1)->options;
    assert_int_equal(planner_ratios(plain), RATIOS_OWN);
    assert_int_equal(plain->collectives, EXCHANGES_GROUPED);
    assert_int_equal(planner_ratios(own), RATIOS_EVEN);
    assert_int_equal(own->collectives, EXCHANGES_PADDED);
    assert_string_equal(experiment_at(experiment, 1)->planner->name, "hap");
}

static const char COLUMNS[] =
    "name: x\ngrid:\n  model: ['" SMALL "', vgg19]\n  cluster: [hap-8]\n"
    "  planner: [hap, dp-ev]\n"
    "columns:\n"
    "  - name: best\n    about: another planner in the role of hap\n"
    "    replace: ['hap -> dp-cp', 'vgg?9 -> none']\n    scale: ['*.rate=0.5']\n"
    "    set: [bucket=25MiB]\n";

static void take_text(uint32_t n_columns, char **value, char **column, void *text)
{
    (void)column;
    for (uint32_t i = 0; i < n_columns; i++)
        g_string_append_printf(text, "%s%s", value[i], i + 1 < n_columns ? " " : "; ");
}

/* A column has other configurations, which queries see in the roles of the experiment's. */
static void test_columns(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    const ExperimentChange change = {.column = "best"};
    g_autoptr(Experiment) plain = load(box, COLUMNS, NULL),
                          best = load(box, COLUMNS, &change);
    assert_int_equal(experiment_n_columns(plain), 1);
    assert_string_equal(experiment_column(plain, 0), "best");
    assert_string_equal(experiment_column_about(plain, 0),
                        "another planner in the role of hap");
    assert_string_equal(experiment_name(plain), "x");
    assert_string_equal(experiment_name(best), "x@best");
    assert_int_equal(experiment_count(plain), 4);
    assert_int_equal(experiment_count(best), 2);
    const Configuration *c = experiment_at(best, 0), *same = experiment_at(plain, 0);
    assert_string_equal(c->planner->name, "dp-cp");
    assert_string_equal(c->cluster_name, "hap-8 scale *.rate=0.5");
    assert_close(c->cluster->type[0].rate, same->cluster->type[0].rate / 2, 1e-12);
    assert_int_equal(c->options->bucket_bytes, 25 << 20);
    GError *error = NULL;
    g_autofree char *path = g_build_filename(box->folder, "r.db", NULL);
    g_autoptr(Store) store = store_open(path, &error);
    assert_no_error(error);
    assert_true(store_begin_run(store, "test", "", &error));
    SweepProgress progress;
    assert_true(sweep_run(best, store, &(SweepOptions){0}, &progress, &error));
    static const char sql[] = "SELECT experiment, model, cluster, planner FROM result";
    g_autoptr(GString) roles = g_string_new(""), own = g_string_new("");
    assert_true(experiment_select(best, store, &error));
    assert_true(store_query(store, sql, take_text, roles, &error));
    assert_string_equal(roles->str, "x " SMALL " hap-8 hap; x " SMALL " hap-8 dp-ev; ");
    store_close(g_steal_pointer(&store));
    store = store_open_read(path, &error);
    assert_true(store_query(store, sql, take_text, own, &error));
    assert_non_null(strstr(own->str, "x@best " SMALL " hap-8 scale *.rate=0.5 dp-cp; "));
}

/* Twelve points of a grid ask two questions: two answers, a row for each point, whatever the
 * threads. */
static void test_one_question_by_many_names(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *file = path_find("clusters/hap-8.yaml"), *cluster = NULL;
    g_autofree char *one = g_build_filename(box->folder, "a1.yaml", NULL);
    g_autofree char *two = g_build_filename(box->folder, "a2.yaml", NULL);
    assert_true(g_file_get_contents(file, &cluster, NULL, NULL));
    sandbox_write(box, "a1.yaml", cluster);
    sandbox_write(box, "a2.yaml", cluster);
    g_autofree char *text = g_strdup_printf(
        "name: x\ngrid:\n  model: ['" SMALL "']\n  cluster: [hap-8, '%s', '%s']\n"
        "  planner: [dp-ev, 'dp-ev:bucket=0', dp-cp, 'dp-cp:bucket=0']\n"
        "  granularity: [machine, machine]\n",
        one, two);
    g_autoptr(Experiment) experiment = load(box, text, NULL);
    assert_int_equal(experiment_count(experiment), 12);
    for (uint32_t threads = 1; threads <= 2; threads++) {
        GError *error = NULL;
        g_autofree char *name = g_strdup_printf("r%u.db", threads);
        g_autofree char *path = g_build_filename(box->folder, name, NULL);
        g_autoptr(Store) store = store_open(path, &error);
        assert_no_error(error);
        assert_true(store_begin_run(store, "test", "", &error));
        for (int again = 0; again < 2; again++) {
            SweepProgress p;
            g_autoptr(GString) rows = g_string_new(""), answers = g_string_new("");
            assert_true(sweep_run(experiment, store, &(SweepOptions){.threads = threads},
                                  &p, &error));
            assert_int_equal(p.total, 12);
            assert_int_equal(p.present, again ? 12 : 0);
            assert_int_equal(p.done, again ? 0 : 12);
            store_query(store,
                        "SELECT count(*), count(DISTINCT hash), count(DISTINCT "
                        "ordinal), count(DISTINCT cluster || entry) FROM result",
                        take_text, rows, &error);
            store_query(store, "SELECT count(*) FROM answer", take_text, answers, &error);
            assert_string_equal(rows->str, "12 2 12 12; ");
            assert_string_equal(answers->str, "2; ");
        }
    }
}

static void refuse_column(const char *what, const char *column, const char *expected)
{
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *text =
        g_strdup_printf("name: x\ngrid:\n  model: [vgg19]\n  cluster: [hap-8]\n"
                        "  planner: [hap]\ncolumns:\n  - {name: best, %s}\n",
                        what);
    sandbox_write(box, "x.yaml", text);
    g_autofree char *path = g_build_filename(box->folder, "x.yaml", NULL);
    const ExperimentChange change = {.column = column};
    g_autoptr(GError) error = NULL;
    g_autoptr(Experiment) experiment = experiment_load(path, &change, &error);
    assert_null(experiment);
    if (!strstr(error->message, expected))
        TEST_FAIL_AT(__FILE__, __LINE__, "%s: '%s' lacks '%s'", what, error->message,
                     expected);
}

static void test_wrong_columns(void **state)
{
    (void)state;
    refuse_column("about: nothing", "worst", "no column 'worst'");
    refuse_column("replace: [dp-cp -> hap]", "best", "columns[0].replace[0]");
    refuse_column("replace: [hap]", "best", "expected ENTRY -> OTHER");
    refuse_column("replace: [hap -> none]", "best", "grid is empty");
    refuse_column("replace: [hap -> no-such]", "best", "no-such");
    refuse_column("replace: [flow -> stage]", "best", "granularities or fidelities");
    refuse_column("scale: ['v9.rate=2']", "best", "columns[0].scale[0]");
    refuse_column("set: [no_such=2]", "best", "columns[0].set[0]");
}

/* The enumerators stand in the order of the words. */
static void test_choices(void **state)
{
    (void)state;
    PlannerOptions options;
    planner_options_init(&options);
    const struct {
        const char *option;
        const uint32_t *member;
        uint32_t value;
    } CASE[] = {{"collectives=both", &options.collectives, EXCHANGES_BOTH},
                {"collectives=padded", &options.collectives, EXCHANGES_PADDED},
                {"collectives=grouped", &options.collectives, EXCHANGES_GROUPED},
                {"search=reference", &options.search, SEARCH_REFERENCE},
                {"duplex=own", &options.duplex, DUPLEX_OWN},
                {"duplex=off", &options.duplex, DUPLEX_OFF},
                {"duplex=on", &options.duplex, DUPLEX_ON},
                {"backward=serial", &options.backward, BACKWARD_SERIAL}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        assert_true(option_assign(&options, CASE[i].option, NULL));
        assert_int_equal(*CASE[i].member, CASE[i].value);
    }
    const char *const RATIOS[] = {"ratios=own", "ratios=even", "ratios=proportional",
                                  "ratios=best"};
    for (uint32_t i = RATIOS_OWN; i <= RATIOS_BEST; i++) {
        assert_true(option_assign(&options, RATIOS[i], NULL));
        assert_int_equal(planner_ratios(&options), i);
    }
}

static Plan *plan_with(const char *planner, const char *option, const char *second)
{
    g_autoptr(Cluster) cluster = cluster_load("hap-8", NULL);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    PlannerOptions options;
    planner_options_init(&options);
    assert_true(option_assign(&options, option, NULL));
    assert_true(option_assign(&options, second, NULL));
    GError *error = NULL;
    Plan *plan = planner_plan(planner_find(planner, NULL), "vgg19:width=8,fc=512",
                              "hap-8", view, &options, NULL, &error);
    assert_no_error(error);
    return plan;
}

/* The plan has the requested ratios and only the allowed collectives; more freedom never hurts. */
static void test_pinned_plans(void **state)
{
    (void)state;
    g_autoptr(Plan) even = plan_with("hap", "ratios=even", "collectives=padded");
    g_autoptr(Plan) grouped =
        plan_with("hap", "ratios=proportional", "collectives=grouped");
    g_autoptr(Plan) best = plan_with("hap", "ratios=best", "collectives=both");
    for (uint32_t j = 0; j < 8; j++)
        assert_close(even->ratio[j], 0.125, 1e-12);
    assert_close(grouped->ratio[0] / grouped->ratio[7], 10.8 / 6.015, 1e-9);
    assert_at_most(best->iteration_time_s, even->iteration_time_s);
    assert_at_most(best->iteration_time_s, grouped->iteration_time_s);
    bool uneven = false;
    for (uint32_t i = 0; i < even->program->n; i++) {
        const Instr *instr = &even->program->instr[i];
        if (instr->kind != INSTR_COLLECTIVE)
            continue;
        uneven |= instr->collective == COLLECTIVE_ALL_GATHER;
        assert_true(instr->collective != COLLECTIVE_GROUPED_ALL_GATHER &&
                    instr->collective != COLLECTIVE_GROUPED_REDUCE_SCATTER);
    }
    assert_true(uneven); /* otherwise the test shows nothing */
    for (uint32_t i = 0; i < grouped->program->n; i++) {
        const Instr *instr = &grouped->program->instr[i];
        assert_true(instr->kind != INSTR_COLLECTIVE ||
                    (instr->collective != COLLECTIVE_ALL_GATHER &&
                     instr->collective != COLLECTIVE_REDUCE_SCATTER));
    }
    g_autoptr(Plan) baseline = plan_with("dp-ev", "ratios=proportional", "bucket=0");
    g_autoptr(Plan) same = plan_with("dp-cp", "ratios=own", "bucket=0");
    g_autoptr(Plan) balanced = plan_with("dp-ev", "ratios=best", "bucket=0");
    assert_close(baseline->iteration_time_s, same->iteration_time_s, 1e-12);
    assert_at_most(balanced->fractional_time_s, same->fractional_time_s * (1 + 1e-9));
    g_autoptr(Plan) zero_even = plan_with("deepspeed", "ratios=even", "bucket=0");
    g_autoptr(Plan) zero_fast = plan_with("deepspeed", "ratios=proportional", "bucket=0");
    g_autoptr(Plan) zero_best = plan_with("deepspeed", "ratios=best", "bucket=0");
    assert_at_most(zero_best->fractional_time_s,
                   fmin(zero_even->fractional_time_s, zero_fast->fractional_time_s) *
                       (1 + 1e-9));
    PlannerOptions options;
    planner_options_init(&options);
    GError *error = NULL;
    assert_false(option_assign(&options, "ratios=odd", &error));
    assert_error(error, KILTER_ERROR_INPUT, "own, even, proportional, best");
    g_error_free(error);
}

static char *hash_of(const char *model, const char *cluster_name, const char *planner,
                     const char *fidelity, uint64_t seed)
{
    g_autoptr(Cluster) cluster = cluster_load(cluster_name, NULL);
    assert_non_null(cluster);
    PlannerOptions options;
    planner_options_init(&options);
    options.seed = seed;
    GError *error = NULL;
    const ConfigurationAsk ask = {.model = model,
                                  .cluster_name = cluster_name,
                                  .cluster = cluster,
                                  .granularity = GRANULARITY_MACHINE,
                                  .planner = planner_find(planner, NULL),
                                  .fidelity = fidelity,
                                  .options = &options};
    g_autoptr(Configuration) configuration = configuration_new(&ask, &error);
    assert_no_error(error);
    g_autoptr(StorePart) part = question_cluster(cluster, &error);
    assert_no_error(error);
    assert_true(result_identify(configuration, part, &error));
    return g_strdup(configuration->hash);
}

/* The bundled hap-8 under another text: a comment more, and `from` replaced by `to`. */
static char *write_variant(const Sandbox *box, const char *from, const char *to)
{
    g_autofree char *text = NULL;
    assert_true(
        g_file_get_contents(KILTER_HOME "/data/clusters/hap-8.yaml", &text, NULL, NULL));
    g_auto(GStrv) parts = g_strsplit(text, from, -1);
    assert_true(g_strv_length(parts) > 1);
    g_autofree char *joined = g_strjoinv(to, parts);
    g_autofree char *whole = g_strdup_printf("# a comment\n%s", joined);
    sandbox_write(box, "variant.yaml", whole);
    return g_build_filename(box->folder, "variant.yaml", NULL);
}

static void test_identity(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *base = hash_of(SMALL, "hap-8", "dp-ev", "stage", 1);
    g_autofree char *again = hash_of(SMALL, "hap-8", "dp-ev", "stage", 1);
    assert_string_equal(base, again);
    /* A default that is spelled out is the same model. */
    g_autofree char *spelled = hash_of(SMALL ",batch=64", "hap-8", "dp-ev", "stage", 1);
    assert_string_equal(base, spelled);

    char *other[] = {hash_of(SMALL ",batch=32", "hap-8", "dp-ev", "stage", 1),
                     hash_of(SMALL, "hap-16", "dp-ev", "stage", 1),
                     hash_of(SMALL, "hap-8", "dp-cp", "stage", 1),
                     hash_of(SMALL, "hap-8", "dp-ev", "analytic", 1),
                     hash_of(SMALL, "hap-8", "dp-ev", "stage", 2),
                     NULL};
    for (guint i = 0; other[i]; i++) {
        assert_string_not_equal(base, other[i]);
        g_free(other[i]);
    }
    /* A cluster is its numbers: a comment or a source changes nothing, a rate does. */
    g_autofree char *path =
        write_variant(box, "NVIDIA V100 data sheet", "the data sheet");
    g_autofree char *same = hash_of(SMALL, path, "dp-ev", "stage", 1);
    assert_string_equal(base, same);
    g_free(write_variant(box, "10.8 TFLOP/s", "10.9 TFLOP/s"));
    g_autofree char *faster = hash_of(SMALL, path, "dp-ev", "stage", 1);
    assert_string_not_equal(base, faster);
}

/* --- claims --- */

static void put(Store *store, const char *cluster, uint32_t gpus, const char *planner,
                const char *status, double time_s)
{
    g_auto(StoreQuestion) question = {.subject = store_part_new("{\"model\":\"vgg19\"}")};
    g_autofree char *on = g_strdup_printf("{\"cluster\":\"%s\"}", cluster);
    g_autofree char *by = g_strdup_printf("{\"planner\":\"%s\"}", planner);
    question.cluster = store_part_new(on);
    question.method = store_part_new(by);
    g_autofree char *hash = store_question_hash(&question);
    const StoreAsked asked = {.experiment = "hap-fig13",
                              .hash = hash,
                              .model = "vgg19",
                              .cluster = cluster,
                              .entry = planner};
    StoreResult row = result_blank(&asked, &question);
    row.planner = planner;
    row.fidelity = "stage";
    row.granularity = "machine";
    row.gpus = gpus;
    row.status = status;
    row.iteration_time_s = time_s;
    row.communication_s = row.computation_s = time_s / 2;
    GError *error = NULL;
    store_put(store, &row, &error);
    assert_no_error(error);
}

static const Claim *find(const Claims *claims, const char *id)
{
    for (uint32_t i = 0; i < claims->n; i++)
        if (strcmp(claims->claim[i].claim, id) == 0)
            return &claims->claim[i];
    TEST_FAIL_AT(__FILE__, __LINE__, "no claim %s", id);
    return NULL;
}

static void judge(double dp_cp_s, double ours, bool holds)
{
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *path = g_build_filename(box->folder, "r.db", NULL);
    GError *error = NULL;
    g_autoptr(Store) store = store_open(path, &error);
    assert_no_error(error);
    assert_true(store_begin_run(store, "test", "", &error));
    put(store, "hap-32", 32, "hap", "ok", 1.0);
    put(store, "hap-32", 32, "dp-ev", "ok", 9.0);
    put(store, "hap-32", 32, "dp-cp", "ok", dp_cp_s);
    /* Neither a plan that does not fit nor another size counts. */
    put(store, "hap-16", 16, "hap", "ok", 1.0);
    put(store, "hap-16", 16, "dp-ev", "ok", 5.0);
    put(store, "hap-32", 32, "deepspeed", "oom", NAN);
    g_autoptr(Claims) claims = claims_judge("hap-fig13", store, &error);
    assert_no_error(error);
    const Claim *vgg = find(claims, "vgg19-32");
    assert_close(vgg->ours, ours, 1e-12);
    assert_int_equal(vgg->holds, holds);
    assert_int_equal(*vgg->reason == '\0', holds);
    /* Without results nothing holds. */
    const Claim *moe = find(claims, "bert-moe-dp-oom");
    assert_true(isnan(moe->ours));
    assert_false(moe->holds);
}

static void test_claims(void **state)
{
    (void)state;
    judge(2.41, 2.41, true);
    judge(2.5, 2.5, true);
    judge(1.2, 1.2, false);
    judge(8.0, 8.0, false);
    judge(20.0, 9.0, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grid_is_the_product),
        cmocka_unit_test(test_defaults_and_changes),
        cmocka_unit_test(test_granularity_by_planner),
        cmocka_unit_test(test_identity_by_own_cluster),
        cmocka_unit_test(test_options_of_a_planner),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_one_question_by_many_names),
        cmocka_unit_test(test_wrong_columns),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_pinned_plans),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_claims),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
