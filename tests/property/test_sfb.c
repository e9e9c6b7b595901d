/* Sufficient factor broadcasting: the minimum cut compared with GLPK's integer solver and all
 * subsets on random instances, and with instances in the published format and their optima; a
 * model; and damaged files. */
#include <glib/gstdio.h>
#include <glpk.h>
#include <time.h>
#include <unistd.h>

#include "data/data.h"
#include "synth/tag/sfb_file.h"
#include "tests/support/program_json.h"

enum { INSTANCES = 120, MOST_OPS = 12, MUTANTS = 1000 };
static const double MOST_S = 0.05;

/* CPU seconds of this thread. */
static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

typedef struct {
    double compute[MOST_OPS], saved[MOST_OPS], broadcast[MOST_OPS];
    uint32_t producer[MOST_OPS];
    SfbRead read[MOST_OPS * MOST_OPS];
    SfbProblem problem;
} Instance;

/* A chain of ops with random additional edges; each op makes one tensor. */
static void draw(GRand *rand, Instance *x)
{
    const uint32_t n = (uint32_t)g_rand_int_range(rand, 2, MOST_OPS + 1);
    x->problem = (SfbProblem){.n_ops = n,
                              .n_tensors = n,
                              .compute = x->compute,
                              .saved = x->saved,
                              .producer = x->producer,
                              .broadcast = x->broadcast,
                              .read = x->read,
                              .each_reader = g_rand_boolean(rand)};
    for (uint32_t i = 0; i < n; i++) {
        x->compute[i] = g_rand_int_range(rand, 0, 5) ? g_rand_double(rand) : 0;
        x->saved[i] = g_rand_int_range(rand, 0, 3) ? 0 : 3 * g_rand_double(rand);
        x->broadcast[i] = g_rand_double(rand);
        x->producer[i] = g_rand_int_range(rand, 0, 8) ? i : SFB_NO_OP;
        for (uint32_t j = 0; j < i; j++)
            if (j + 1 == i || g_rand_int_range(rand, 0, 4) == 0)
                x->read[x->problem.n_reads++] = (SfbRead){i, j};
    }
    if (g_rand_boolean(rand))
        x->compute[g_rand_int_range(rand, 0, (gint32)n)] = INFINITY;
}

static double best_of_all(const Instance *x)
{
    double best = 0;
    for (uint32_t set = 0; set < 1u << x->problem.n_ops; set++) {
        bool duplicated[MOST_OPS];
        for (uint32_t i = 0; i < x->problem.n_ops; i++)
            duplicated[i] = set >> i & 1u;
        best = fmin(best, synth_sfb_value(&x->problem, duplicated));
    }
    return best;
}

/* The integer program (1) as printed: one column per op, and one per tensor or edge. */
static double best_by_glpk(const Instance *x)
{
    const SfbProblem *p = &x->problem;
    glp_prob *ilp = glp_create_prob();
    const int n = (int)p->n_ops, m = (int)(p->each_reader ? p->n_reads : p->n_tensors);
    glp_term_out(GLP_OFF);
    glp_add_cols(ilp, n + m + 1);
    for (int i = 0; i < n; i++) {
        glp_set_col_kind(ilp, i + 1, GLP_BV);
        glp_set_obj_coef(ilp, i + 1,
                         isinf(p->compute[i]) ? 1e3 : p->compute[i] - p->saved[i]);
    }
    for (uint32_t k = 0; k < p->n_reads; k++) {
        const uint32_t t = p->read[k].tensor, producer = p->producer[t];
        const int column = n + 1 + (int)(p->each_reader ? k : t);
        glp_set_col_kind(ilp, column, GLP_BV);
        if (producer == SFB_NO_OP)
            continue;
        glp_set_obj_coef(ilp, column, p->broadcast[t]);
        const int row = glp_add_rows(ilp, 1);
        const int index[] = {0, column, (int)p->read[k].op + 1, (int)producer + 1};
        const double value[] = {0, 1, -1, 1};
        glp_set_row_bnds(ilp, row, GLP_LO, 0, 0);
        glp_set_mat_row(ilp, row, 3, index, value);
    }
    glp_iocp options;
    glp_init_iocp(&options);
    options.presolve = GLP_ON;
    assert_int_equal(glp_intopt(ilp, &options), 0);
    assert_int_equal(glp_mip_status(ilp), GLP_OPT);
    const double best = glp_mip_obj_val(ilp);
    glp_delete_prob(ilp);
    return best;
}

static void test_random(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(15);
    uint32_t used = 0;
    for (uint32_t k = 0; k < INSTANCES; k++) {
        Instance x = {0};
        bool duplicated[MOST_OPS];
        draw(rand, &x);
        const double cut = synth_sfb(&x.problem, duplicated), all = best_of_all(&x);
        assert_true(fabs(cut - all) <= 1e-9);
        assert_true(fabs(cut - best_by_glpk(&x)) <= 1e-7);
        assert_true(fabs(cut - synth_sfb_value(&x.problem, duplicated)) <= 1e-12);
        used += cut < 0;
    }
    assert_true(used > INSTANCES / 4 && used < INSTANCES);
    glp_free_env();
}

static void check_case(const SfbCase *sfb, const json_t *expected)
{
    for (uint32_t p = SFB_PAPER; p <= SFB_RING; p++) {
        g_autofree bool *duplicated = g_new(bool, sfb->n_ops);
        const json_t *want = json_object_get(expected, p == SFB_PAPER ? "paper" : "ring");
        const double got = sfb_case_solve(sfb, (SfbPrices)p, duplicated);
        assert_true(
            fabs(got - json_number_value(json_object_get(want, "objective_us"))) <= 1e-6);
    }
}

static void test_published(void **state)
{
    (void)state;
    const char *file = test_shared("reference/tag/sfb.json");
    if (!file)
        skip();
    g_autoptr(GPtrArray) cases = sfb_file_read(file, NULL);
    assert_non_null(cases);
    json_t *root = json_load_file(file, 0, NULL);
    assert_int_equal(cases->len, json_array_size(root));
    for (guint i = 0; i < cases->len; i++)
        check_case(cases->pdata[i], json_object_get(json_array_get(root, i), "expected"));
    json_decref(root);
}

static const char *const PRICES[] = {
    [SFB_KILTER] = "kilter", [SFB_PAPER] = "paper", [SFB_RING] = "ring"};

/* The command counts the same ops, all gradients that could gain, and those among the ops. */
static void check_command(const char *name, const char *spec, SfbPrices prices,
                          const Graph *graph, const SfbCosts *costs,
                          const bool *duplicated)
{
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *line = g_strdup_printf(
        "sfb %s %s --granularity gpu --prices %s --json", spec, name, PRICES[prices]);
    json_t *root = program_json(box, line);
    json_t *kinds = json_object_get(root, "kinds");
    uint32_t n = 0, gradients = 0, all = 0, by_kind[OP_KINDS] = {0}, n_kinds = 0;
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const bool gains = costs->saved_s[id] > 0;
        n += duplicated[id];
        gradients += duplicated[id] && gains;
        all += gains;
        by_kind[graph_get_op(graph, id)->kind] += duplicated[id];
    }
    assert_int_equal(number(root, "duplicated"), n);
    assert_int_equal(number(root, "gradients"), gradients);
    assert_int_equal(number(root, "gradients_in_all"), all);
    for (uint32_t k = 0; k < OP_KINDS; k++) {
        n_kinds += by_kind[k] > 0;
        assert_int_equal(
            json_integer_value(json_object_get(kinds, op_kind_name((OpKind)k))),
            by_kind[k]);
    }
    assert_int_equal(json_object_size(kinds), n_kinds);
    json_decref(root);
}

/* All gradients of TAG's BERT-Large at once, in 50 ms with their prices; returns the duplicated
 * ops. */
static uint32_t check_model(const char *name, const char *spec, SfbPrices prices)
{
    g_autoptr(Cluster) cluster = cluster_load(name, NULL);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Graph) graph = model_build(spec, view->n_devices, NULL, NULL);
    g_autoptr(BatchForms) batch = batch_forms_new(graph, NULL);
    g_autofree bool *duplicated = g_new(bool, graph_n_ops(graph));
    g_autofree double *share = g_new(double, view->n_devices);
    uint32_t n = 0;
    for (uint32_t j = 0; j < view->n_devices; j++)
        share[j] = 1.0 / view->n_devices;
    const double begin = cpu_s();
    g_autoptr(SfbCosts) costs = synth_sfb_costs(graph, batch, view, share, prices);
    const double saved_s = synth_sfb_graph(graph, batch, costs, duplicated);
    const double took_s = cpu_s() - begin;
    assert_true(saved_s >= 0 && took_s < MOST_S);
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        assert_true(!duplicated[id] || batch->loop[id] >= 0);
        n += duplicated[id];
    }
    check_command(name, spec, prices, graph, costs, duplicated);
    print_message("%s: of %u ops %u are duplicated, found in %.1f ms\n", name,
                  graph_n_ops(graph), n, 1e3 * took_s);
    return n;
}

static void test_model(void **state)
{
    (void)state;
    uint32_t n[SFB_PRICES];
    for (uint32_t p = 0; p < SFB_PRICES; p++) {
        check_model("tag-testbed", "tag-bert-large:global_batch=16", (SfbPrices)p);
        n[p] = check_model("tag-sfb", "tag-bert-large:global_batch=4", (SfbPrices)p);
    }
    /* The latency of each all-reduce, which only Kilter's prices have, lets more of it pay. */
    assert_true(n[SFB_PAPER] > 0 && n[SFB_KILTER] > n[SFB_PAPER]);
}

/* Each gradient alone duplicates some of the ops that all together do, and saves no more. */
static void test_one_by_one(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster = cluster_load("tag-sfb", NULL);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Graph) graph = model_build("tag-resnet101:global_batch=4,own_moments=1",
                                         view->n_devices, NULL, NULL);
    g_autoptr(BatchForms) batch = batch_forms_new(graph, NULL);
    const uint32_t n = graph_n_ops(graph);
    g_autofree bool *together = g_new(bool, n), *alone = g_new(bool, n);
    const double half[] = {0.5, 0.5};
    g_autoptr(SfbCosts) costs = synth_sfb_costs(graph, batch, view, half, SFB_PAPER);
    const double most_s = synth_sfb_graph(graph, batch, costs, together);
    costs->one_by_one = true;
    const double saved_s = synth_sfb_graph(graph, batch, costs, alone);
    uint32_t n_together = 0, n_alone = 0;
    for (uint32_t i = 0; i < n; i++) {
        assert_true(!alone[i] || together[i]);
        n_together += together[i];
        n_alone += alone[i];
    }
    assert_true(saved_s > 0 && saved_s < most_s && n_alone > 0 && n_alone < n_together);
}

static const char WHOLE[] =
    "[{\"case\": 1, \"D\": 2, \"tau_bytes_per_us\": 10, \"op\": [\"a\", \"b\"],\n"
    "\"T_us\": [5, 1], \"edge\": [[0, 1, 20]], \"gradient\": [[1, 400]],\n"
    "\"never_duplicated\": [0]}]";

static GPtrArray *read_text(const char *text, gsize length, GError **error)
{
    g_autofree char *file = NULL;
    close(g_file_open_tmp("kilter-sfb-XXXXXX.json", &file, NULL));
    g_file_set_contents(file, text, (gssize)length, NULL);
    GPtrArray *cases = sfb_file_read(file, error);
    g_unlink(file);
    return cases;
}

/* By hand: duplicating b alone costs 1 + 2 20/10 and saves 400/10; with a ring's all-gather 1 +
 * 1. */
static void test_hand(void **state)
{
    (void)state;
    bool duplicated[2];
    g_autoptr(GPtrArray) cases = read_text(WHOLE, strlen(WHOLE), NULL);
    assert_close(sfb_case_solve(cases->pdata[0], SFB_PAPER, duplicated), -35, 1e-12);
    assert_false(duplicated[0]);
    assert_true(duplicated[1]);
    assert_close(sfb_case_solve(cases->pdata[0], SFB_RING, duplicated), -38, 1e-12);
}

/* The answer's solution of one case is the library's: each op that is duplicated, by index and name,
 * and no other. */
static void check_solution(const json_t *solution, const SfbCase *sfb, SfbPrices prices,
                           uint32_t *first)
{
    g_autofree bool *duplicated = g_new0(bool, sfb->n_ops + 1);
    const json_t *ops = json_object_get(solution, "duplicated"),
                 *names = json_object_get(solution, "names");
    assert_close(number(solution, "objective_us"),
                 sfb_case_solve(sfb, prices, duplicated), 1e-12);
    size_t n = 0;
    for (uint32_t i = 0; i < sfb->n_ops; i++) {
        if (!duplicated[i])
            continue;
        assert_int_equal(json_integer_value(json_array_get(ops, n)), i);
        assert_string_equal(json_string_value(json_array_get(names, n)), sfb->op[i]);
        n++;
    }
    assert_int_equal(json_array_size(ops), n);
    assert_int_equal(json_array_size(names), n);
    *first += duplicated[0];
}

/* kilter sfb FILE answers every case of the file, in order, at both prices. */
static void test_command(void **state)
{
    (void)state;
    enum { CASES = 30 };
    g_autoptr(GRand) rand = g_rand_new_with_seed(21);
    g_autoptr(Sandbox) box = sandbox_new();
    g_autoptr(GString) text = g_string_new("[");
    uint32_t first = 0;
    for (uint32_t i = 0; i < CASES; i++) {
        g_string_append_printf(
            text,
            "%s{\"case\": %u, \"D\": %d, \"tau_bytes_per_us\": 10, \"op\": [\"a\", "
            "\"b\", \"c\"], \"T_us\": [%d, %d, %d], \"edge\": [[0, 1, %d], [1, 2, %d]], "
            "\"gradient\": [[%u, %d]]}",
            i ? ", " : "", 100 - i, g_rand_int_range(rand, 2, 5),
            g_rand_int_range(rand, 1, 20), g_rand_int_range(rand, 1, 20),
            g_rand_int_range(rand, 1, 20), g_rand_int_range(rand, 1, 99),
            g_rand_int_range(rand, 1, 99), i % 3, g_rand_int_range(rand, 10, 999));
    }
    g_string_append(text, "]");
    sandbox_write(box, "cases.json", text->str);
    g_autoptr(GPtrArray) cases = read_text(text->str, text->len, NULL);
    json_t *root = program_json(box, "sfb cases.json --json"),
           *list = json_object_get(root, "sfb");
    assert_int_equal(json_array_size(list), CASES);
    for (guint i = 0; i < CASES; i++) {
        const json_t *answer = json_array_get(list, i);
        const SfbCase *sfb = cases->pdata[i];
        assert_true(number(answer, "case") == (double)sfb->number);
        check_solution(json_object_get(answer, "paper"), sfb, SFB_PAPER, &first);
        check_solution(json_object_get(answer, "ring"), sfb, SFB_RING, &first);
    }
    json_decref(root);
    assert_true(first > 0 && first < 2 * CASES);
}

static void test_mutants(void **state)
{
    (void)state;
    static const char *const piece[] = {"0", "-1", "2",  "1e400", "null", "[]",
                                        "{", "]",  "\"", "\xff",  "1.5",  "4294967296"};
    g_autoptr(GRand) rand = g_rand_new_with_seed(8);
    uint32_t refused = 0;
    for (uint32_t i = 0; i < MUTANTS; i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GString) text = g_string_new(WHOLE);
        const gsize at = (gsize)g_rand_int_range(rand, 0, (gint32)text->len);
        g_string_erase(text, (gssize)at,
                       g_rand_int_range(rand, 0, (gint32)MIN(text->len - at, 6)));
        g_string_insert(text, (gssize)at,
                        piece[g_rand_int_range(rand, 0, G_N_ELEMENTS(piece))]);
        g_autoptr(GPtrArray) cases = read_text(text->str, text->len, &error);
        assert_true(!cases == !!error);
        for (guint k = 0; cases && k < cases->len; k++) {
            const SfbCase *sfb = cases->pdata[k];
            g_autofree bool *duplicated = g_new(bool, sfb->n_ops + 1);
            assert_at_most(sfb_case_solve(sfb, SFB_PAPER, duplicated), 0);
        }
        if (cases)
            continue;
        refused++;
        assert_int_equal(error->code, KILTER_ERROR_INPUT);
        assert_null(strpbrk(error->message, "\r\n"));
        assert_true(g_utf8_validate(error->message, -1, NULL));
    }
    assert_true(refused > MUTANTS / 2 && refused < MUTANTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),  cmocka_unit_test(test_published),
        cmocka_unit_test(test_model),   cmocka_unit_test(test_one_by_one),
        cmocka_unit_test(test_hand),    cmocka_unit_test(test_mutants),
        cmocka_unit_test(test_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
