/* Plan files: written plans are read back bit for bit, and anything else is refused. */
#include "data/base/version.h"
#include "data/data.h"
#include "tests/support/random_plan.h"
#include "tests/support/random_program.h"
#include "tests/test.h"

#include <glib/gstdio.h>

static const char *const MODELS[] = {
    "vgg19:batch=2,image=32,width=2,pool=1,fc=6,classes=4",
    "vit:layers=1,hidden=8,heads=2,ffn=12,image=8,batch=6",
    "bert-base:layers=1,hidden=6,heads=3,ffn=8,seq=4,vocab=12,batch=4,optimizer=sgd",
    "bert-moe:layers=2,hidden=4,heads=2,ffn=6,seq=4,vocab=10,batch=4,experts=4",
};

static int set_up(void **state)
{
    g_autofree char *dir = g_dir_make_tmp("kilter-plan-XXXXXX", NULL);
    *state = g_build_filename(dir, "plan.json", NULL);
    return 0;
}

static int tear_down(void **state)
{
    g_autofree char *file = *state, *dir = g_path_get_dirname(file);
    g_remove(file);
    return g_rmdir(dir);
}

/* --- plans --- */

/* Doubles of all magnitudes, each a random bit pattern's worth of digits. */
static double random_seconds(GRand *rand)
{
    const int exponent = g_rand_int_range(rand, -60, 10);
    return ldexp(g_rand_double(rand), exponent);
}

static uint64_t random_bits(GRand *rand)
{
    const uint64_t high = g_rand_int(rand), low = g_rand_int(rand);
    uint64_t bits = high << 32 | low;
    return bits >> g_rand_int_range(rand, 0, 64);
}

static void random_costs(GRand *rand, Plan *plan)
{
    plan->granularity = g_rand_boolean(rand) ? GRANULARITY_GPU : GRANULARITY_MACHINE;
    plan->seed = random_bits(rand);
    plan->bucket_bytes = random_bits(rand);
    plan->iteration_time_s = random_seconds(rand);
    plan->fractional_time_s =
        g_rand_int_range(rand, 0, 4) ? random_seconds(rand) : INFINITY;
    plan->lower_bound_s =
        g_rand_boolean(rand) ? plan->iteration_time_s * g_rand_double(rand) : 0;
    plan->optimal = g_rand_boolean(rand);
    plan->certificate = (Certificate)g_rand_int_range(rand, 0, CERTIFICATES);
    plan->feasible = g_rand_boolean(rand);
    plan->search_time_s = random_seconds(rand);
    plan->balance_time_s = random_seconds(rand);
    plan->stages = g_rand_int(rand);
    plan->memory_bytes = g_new(uint64_t, plan->n_devices);
    for (uint32_t j = 0; j < plan->n_devices; j++)
        plan->memory_bytes[j] = random_bits(rand);
}

/* A complete random plan of `model`; its graph goes to *graph. */
static Plan *make_plan(GRand *rand, const char *model, Graph **graph)
{
    g_autofree char *canonical = NULL;
    GError *error = NULL;
    *graph = model_build(model, 1, &canonical, &error);
    assert_no_error(error);
    g_autoptr(Cluster) cluster = random_cluster(rand, 4);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    Plan *plan = random_plan(rand, *graph, view, random_program(rand, *graph));
    plan->model = g_steal_pointer(&canonical);
    plan->cluster = g_strdup("dir \"x\"/käse.yaml");
    plan->planner = g_strdup("hap");
    plan->version = g_strdup(KILTER_VERSION);
    random_costs(rand, plan);
    for (uint32_t i = 0; i < plan->program->n; i++)
        if (g_rand_int_range(rand, 0, 8) == 0)
            plan->program->instr[i].stream ^= 1;
    return plan;
}

static Plan *read_text(const char *file, const char *text, gsize n, Graph **graph,
                       GError **error)
{
    FILE *stream = fopen(file, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(text, 1, n, stream), n);
    fclose(stream);
    return plan_read(file, graph, error);
}

/* --- equality, field by field, doubles by their bits --- */

static void assert_same_double(double a, double b)
{
    uint64_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    assert_int_equal(x, y);
}

static void assert_same_instr(const Instr *a, const Instr *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->group, b->group);
    assert_int_equal(a->microbatch, b->microbatch);
    assert_int_equal(a->stream, b->stream);
    assert_int_equal(a->collective, b->collective);
    assert_int_equal(a->op, b->op);
    assert_int_equal(a->tensor, b->tensor);
    assert_int_equal(a->from, b->from);
    assert_int_equal(a->to, b->to);
    assert_memory_equal(a->form, b->form, sizeof a->form);
}

static void assert_same_cut(const Plan *a, const Plan *b)
{
    assert_int_equal(a->n_devices, b->n_devices);
    assert_int_equal(a->n_segments, b->n_segments);
    for (uint32_t i = 0; i < a->n_segments * a->n_devices; i++)
        assert_same_double(a->ratio[i], b->ratio[i]);
    assert_int_equal(a->n_ops, b->n_ops);
    assert_memory_equal(a->segment, b->segment, a->n_ops * sizeof *a->segment);
    assert_int_equal(a->n_splits, b->n_splits);
    for (uint32_t i = 0; i < a->n_splits; i++) {
        assert_int_equal(a->split[i].segment, b->split[i].segment);
        assert_int_equal(a->split[i].units, b->split[i].units);
        assert_memory_equal(a->split[i].count, b->split[i].count,
                            a->n_devices * sizeof(uint32_t));
    }
}

static void assert_same_plan(const Plan *a, const Plan *b)
{
    assert_string_equal(a->model, b->model);
    assert_string_equal(a->cluster, b->cluster);
    assert_int_equal(a->granularity, b->granularity);
    assert_string_equal(a->planner, b->planner);
    assert_int_equal(a->seed, b->seed);
    assert_string_equal(a->version, b->version);
    assert_same_cut(a, b);
    assert_int_equal(a->program->n, b->program->n);
    for (uint32_t i = 0; i < a->program->n; i++)
        assert_same_instr(&a->program->instr[i], &b->program->instr[i]);
    assert_int_equal(a->bucket_bytes, b->bucket_bytes);
    assert_same_double(a->iteration_time_s, b->iteration_time_s);
    assert_same_double(a->fractional_time_s, b->fractional_time_s);
    assert_same_double(a->lower_bound_s, b->lower_bound_s);
    assert_int_equal(a->optimal, b->optimal);
    assert_int_equal(a->certificate, b->certificate);
    assert_memory_equal(a->memory_bytes, b->memory_bytes,
                        a->n_devices * sizeof *a->memory_bytes);
    assert_int_equal(a->feasible, b->feasible);
    assert_same_double(a->search_time_s, b->search_time_s);
    assert_same_double(a->balance_time_s, b->balance_time_s);
    assert_int_equal(a->stages, b->stages);
}

/* --- round trips --- */

static void test_what_is_written_is_read(void **state)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(31);
    for (uint32_t round = 0; round < 48; round++) {
        g_autoptr(Graph) graph = NULL, graph_read = NULL;
        g_autoptr(Plan) plan =
            make_plan(rand, MODELS[round % G_N_ELEMENTS(MODELS)], &graph);
        g_autofree char *text = plan_write(plan, graph);
        GError *error = NULL;
        g_autoptr(Plan) read = read_text(*state, text, strlen(text), &graph_read, &error);
        assert_no_error(error);
        assert_same_plan(plan, read);
        assert_int_equal(graph_n_ops(graph), graph_n_ops(graph_read));
        g_autofree char *again = plan_write(read, graph_read);
        assert_string_equal(text, again);
    }
}

/* A plan whose layers run alike, long enough that repetition is written by number. */
static Plan *make_long_plan(GRand *rand, Graph **graph)
{
    Plan *plan = make_plan(rand, "vit:layers=48", graph);
    Program *program = program_new();
    for (TensorId t = 0; t < graph_n_tensors(*graph); t++)
        if (graph_tensor(*graph, t)->producer == GRAPH_NONE)
            program_load(program, t, FORM_IDENTITY);
    for (OpId id = 0; id < graph_n_ops(*graph); id++) {
        const Form form[OP_MAX_OPERANDS] = {FORM_IDENTITY};
        const Op *op = graph_get_op(*graph, id);
        program_compute(program, id, form, op->n_in + op->n_out);
    }
    program_free(plan->program);
    plan->program = program;
    GError *error = NULL;
    plan_round(plan, *graph, &error);
    assert_no_error(error);
    return plan;
}

static void test_repetition_is_written_by_number(void **state)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(36);
    g_autoptr(Graph) graph = NULL;
    g_autoptr(Plan) plan = make_long_plan(rand, &graph);
    g_autofree char *text = plan_write(plan, graph);
    GError *error = NULL;
    assert_true(plan->program->n > 2000);
    assert_non_null(strstr(text, "\"version\": 2}"));
    assert_true(strlen(text) < 20 * (size_t)plan->program->n);
    g_autoptr(Plan) read = read_text(*state, text, strlen(text), NULL, &error);
    assert_no_error(error);
    assert_same_plan(plan, read);
    g_autofree char *again = plan_write(read, graph);
    assert_string_equal(text, again);
}

static void test_bad_repetition(void **state)
{
    static const struct {
        const char *item, *message;
    } row[] = {
        {"[\"repeat\", 4, 0, {}]", "expected [\"repeat\""},
        {"[\"repeat\", 4, 2, {}]", "expected [\"repeat\""},
        {"[\"repeat\", 99999999, 1, {}]", "expected [\"repeat\""},
        {"[\"repeat\", 4, 1]", "expected [\"repeat\""},
        {"[\"repeat\", 4, 1, {\"layers\": 1}]", "at the end"},
        {"[\"repeat\", 4, 1, {\"group\": -1}]", "groups and microbatches"},
        {"[\"repeat\", 4, 1, {\"microbatch\": 65536}]", "at the end"},
    };
    g_autoptr(GRand) rand = g_rand_new_with_seed(36);
    g_autoptr(Graph) graph = NULL;
    g_autoptr(Plan) plan = make_long_plan(rand, &graph);
    g_autofree char *text = plan_write(plan, graph);
    static const char begin[] = "\"program\": [";
    const char *first = strstr(text, begin) + strlen(begin), *end = strchr(first, ']');
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autofree char *bad = g_strdup_printf("%.*s, %s%s", (int)(end + 1 - text), text,
                                               row[i].item, end + 1);
        GError *error = NULL;
        assert_null(read_text(*state, bad, strlen(bad), NULL, &error));
        assert_error(error, KILTER_ERROR_INPUT, row[i].message);
        assert_error(error, KILTER_ERROR_INPUT, "program[1]");
        g_error_free(error);
    }
}

static void test_keys(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(32);
    g_autoptr(Graph) graph = NULL;
    g_autoptr(Plan) plan = make_plan(rand, MODELS[0], &graph);
    plan->lower_bound_s = 0;
    g_autofree char *text = plan_write(plan, graph);
    /* The members that a plan file promises. */
    static const char *const keys[] = {
        "model",         "cluster", "planner",      "fidelity",      "iteration_time_s",
        "lower_bound_s", "gap",     "optimal",      "search_time_s", "balance_time_s",
        "stages",        "ratios",  "memory_bytes", "feasible",      "seed",
        "version"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_autofree char *line = g_strdup_printf("\n  \"%s\": ", keys[i]);
        assert_non_null(strstr(text, line));
    }
    assert_true(g_str_has_prefix(
        text, "{\n  \"kilter\": {\"format\": \"plan\", \"version\": 1},\n  \"model\": "));
    assert_non_null(strstr(text, "\n  \"gap\": null,\n"));
    assert_non_null(strstr(text, "\n  \"fidelity\": \"analytic\",\n"));
    assert_true(g_str_has_suffix(text, "\"}\n}\n"));
}

/* Equal plans that took different times differ in those two lines only. */
static void test_only_wall_clocks_differ(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(33);
    g_autoptr(Graph) graph = NULL;
    g_autoptr(Plan) plan = make_plan(rand, MODELS[1], &graph);
    g_autofree char *one = plan_write(plan, graph);
    plan->search_time_s += 1;
    plan->balance_time_s += 1;
    g_autofree char *other = plan_write(plan, graph);
    g_auto(GStrv) a = g_strsplit(one, "\n", -1), b = g_strsplit(other, "\n", -1);
    assert_int_equal(g_strv_length(a), g_strv_length(b));
    uint32_t differ = 0;
    for (uint32_t i = 0; a[i]; i++)
        if (strcmp(a[i], b[i]) != 0) {
            assert_non_null(strstr(a[i], "_time_s"));
            differ++;
        }
    assert_int_equal(differ, 2);
}

static void test_gap_and_splits(void **state)
{
    (void)state;
    uint32_t count[3][1] = {{4}, {6}, {4}};
    Split split[] = {{.segment = 0, .units = 4, .count = count[0]},
                     {.segment = 0, .units = 6, .count = count[1]},
                     {.segment = 2, .units = 4, .count = count[2]}};
    Plan plan = {
        .iteration_time_s = 3, .lower_bound_s = 2, .n_splits = 3, .split = split};
    assert_close(plan_gap(&plan), 0.5, 0);
    plan.lower_bound_s = 0;
    assert_true(isinf(plan_gap(&plan)));
    for (uint32_t i = 0; i < 3; i++)
        assert_ptr_equal(plan_find_split(&plan, &split[i]), &split[i]);
    assert_null(plan_find_split(&plan, &(Split){.segment = 1, .units = 4}));
    assert_null(plan_find_split(&plan, &(Split){.units = 5}));
    assert_null(plan_find_split(&plan, &(Split){.segment = 2, .units = 6}));
}

/* --- bad files --- */

/* A plan to edit: everything replicated, and one unneeded slice. */
static char *plain_text(void)
{
    g_autofree char *canonical = NULL;
    g_autoptr(Graph) graph = model_build(MODELS[0], 1, &canonical, NULL);
    g_autoptr(Plan) plan = plan_new();
    plan->model = g_strdup(canonical);
    plan->cluster = g_strdup("hap-8");
    plan->planner = g_strdup("none");
    plan->version = g_strdup("0.0.1");
    plan->seed = 5;
    plan->n_devices = 2;
    plan->n_segments = 1;
    plan->ratio = g_memdup2((double[]){0.25, 0.75}, 2 * sizeof(double));
    plan->n_ops = graph_n_ops(graph);
    plan->segment = g_new0(uint16_t, plan->n_ops);
    plan->n_splits = 1;
    plan->split = g_new0(Split, 1);
    plan->split[0] =
        (Split){.units = 2, .count = g_memdup2((uint32_t[]){1, 1}, 2 * sizeof(uint32_t))};
    plan->memory_bytes = g_memdup2((uint64_t[]){1000, 2000}, 2 * sizeof(uint64_t));
    plan->iteration_time_s = 3;
    plan->fractional_time_s = 2.5;
    plan->lower_bound_s = 2;
    plan->stages = 1;
    plan->feasible = true;
    plan->program = program_new();
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        if (graph_tensor(graph, t)->producer == GRAPH_NONE)
            program_load(plan->program, t, FORM_IDENTITY);
    program_collective(plan->program, COLLECTIVE_SLICE, graph_find(graph, "x"),
                       FORM_IDENTITY, FORM_GATHER0);
    const Form identity[OP_MAX_OPERANDS] = {0};
    for (OpId id = 0; id < plan->n_ops; id++) {
        const Op *op = graph_get_op(graph, id);
        program_compute(plan->program, id, identity, op->n_in + op->n_out);
    }
    return plan_write(plan, graph);
}

static char *replace(const char *text, const char *part, const char *by)
{
    const char *at = strstr(text, part);
    if (!at)
        fail_msg("the plan has no '%s'", part);
    g_autofree char *head = g_strndup(text, (gsize)(at - text));
    return g_strconcat(head, by, at + strlen(part), NULL);
}

static void assert_bad(const char *file, const char *text, const char *message)
{
    Graph *graph = (Graph *)1;
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) plan = read_text(file, text, strlen(text), &graph, &error);
    assert_null(plan);
    assert_error(error, KILTER_ERROR_INPUT, message);
    assert_error(error, KILTER_ERROR_INPUT, "plan.json:");
    assert_null(strchr(error->message, '\n'));
    assert_ptr_equal(graph, (Graph *)1); /* nothing is handed out */
}

static void test_bad_files(void **state)
{
    g_autofree char *good = plain_text();
    GError *error = NULL;
    g_autoptr(Plan) plan = read_text(*state, good, strlen(good), NULL, &error);
    assert_no_error(error);
    assert_non_null(plan);
    static const struct {
        const char *part, *by, *message;
    } row[] = {
        {"\"format\": \"plan\"", "\"format\": \"trace\"",
         ": kilter: expected {\"format\": \"plan\", \"version\": 1 or 2}, got "
         "{\"format\": "
         "\"trace\""},
        {"\"version\": 1}", "\"version\": 3}",
         ": kilter: expected {\"format\": \"plan\", "},
        {"\"kilter\": {\"format\": \"plan\", \"version\": 1},\n", "",
         ": kilter: expected {\"format\": \"plan\", \"version\": 1 or 2}, got nothing"},
        {"\"seed\"", "\"sead\": 1, \"seed\"", ": sead: unknown key"},
        {"\"seed\"", "\"seed\": 1, \"seed\"", ":19: expected a plan in JSON: duplicate"},
        {"\"seed\": 5", "\"seed\": 5.5",
         ": seed: expected an integer from 0 to 18446744073709551615, got 5.5"},
        {"\"seed\": 5", "\"seed\": -5", ": seed: expected an integer"},
        {"\"seed\": 5", "\"seed\": \"5\"", ": seed: expected an integer"},
        {"\"seed\": 5,", "",
         ": seed: expected an integer from 0 to 18446744073709551615, "
         "got nothing"},
        {"\"seed\": 5,", "\"seed\": 5", ":20: expected a plan in JSON: "},
        {"\"vgg19:", "\"vgg20:", ": model: unknown model"},
        {"fc=6", "fc=six", ": model: model '"},
        {"fc=6,", "", ": model: expected every parameter, as in 'vgg19:"},
        {"\"machine\"", "\"rack\"", ": granularity: expected machine or gpu, got 'rack'"},
        {"\"analytic\"", "\"flow\"", ": fidelity: expected analytic, got 'flow'"},
        {"\"hap-8\"", "8", ": cluster: expected a string, got 8"},
        {"\"iteration_time_s\": 3.0", "\"iteration_time_s\": -3.0",
         ": iteration_time_s: expected seconds, or null for infinity, got -3.0"},
        {"\"lower_bound_s\": 2.0", "\"lower_bound_s\": null",
         ": lower_bound_s: expected seconds, got null"},
        {"\"gap\": 0.5", "\"gap\": 0.4", ": gap: expected 0.5, got 0.4"},
        {"\"gap\": 0.5", "\"gap\": null", ": gap: expected 0.5, got null"},
        {"\"optimal\": false", "\"optimal\": 0",
         ": optimal: expected true or false, got 0"},
        {"\"certificate\": \"none\"", "\"certificate\": 1",
         ": certificate: expected one such as \"reached\", got 1"},
        {"\"stages\": 1", "\"stages\": 4294967296",
         ": stages: expected an integer from 0 to 4294967295, got 4294967296"},
        {"[1000, 2000]", "[1000]",
         ": memory_bytes: expected 2 sizes, one per device, got 1"},
        {"[1000, 2000]", "[1000, 2000.5]",
         ": memory_bytes[1]: expected bytes, got 2000.5"},
        {"[1000, 2000]", "1000", ": memory_bytes: expected an array, got 1000"},
        {"[0.25, 0.75]", "[0.25, 0.5]",
         ": ratios[0]: expected a row that sums to 1, got 0.75"},
        {"[0.25, 0.75]", "[0.25, 0.750000002]",
         ": ratios[0]: expected a row that sums to 1, got 1.000000002"},
        {"[0.25, 0.75]", "[-0.25, 1.25]",
         ": ratios[0]: expected ratios from 0 to 1, got -0.25"},
        {"[0.25, 0.75]", "[0.25, 0.75], [1.0]",
         ": ratios[1]: expected 2 numbers, one per device, got 1"},
        {"[0.25, 0.75]", "",
         ": ratios: expected a row per segment and in it a number per "
         "device, got []"},
        {"[\"features.0.0\", 0]", "[\"conv9\", 0]", ": segments[0]: unknown op 'conv9'"},
        {"[\"features.0.0\", 0]", "[\"features.0.0\", 1]",
         ": segments[0]: expected [\"first op\", row of ratios], got [\"features.0.0\", "
         "1]"},
        {"[\"features.0.0\", 0]", "[\"features.0.1\", 0]",
         ": segments[0]: expected runs of ops in order from features.0.0 on, got "
         "'features.0.1'"},
        {"[\"features.0.0\", 0]", "[\"features.0.0\", 0], [\"features.0.0\", 0]",
         ": segments[1]: expected runs of ops in order"},
        {"[\"features.0.0\", 0]", "", ": segments: expected a run of ops, got []"},
        {"\"count\": [1, 1]", "\"count\": [1, 2]",
         ": splits[0]: expected counts that sum to 2 units, got 3"},
        {"\"count\": [1, 1]", "\"count\": [2]",
         ": splits[0]: expected 2 counts, one per device, got 1"},
        {"\"count\": [1, 1]", "\"count\": [3, -1]",
         ": splits[0]: expected counts up to units, got 3"},
        {"\"units\": 2, ", "",
         ": splits[0]: expected {\"segment\", \"units\", \"count\"}, got"},
        {"{\"segment\": 0, \"units\": 2, \"count\": [1, 1]}",
         "{\"segment\": 0, \"units\": 2, \"count\": [1, 1]}, {\"segment\": 0, \"units\": "
         "2, \"count\": [1, 1]}",
         ": splits[1]: expected rising (segment, units)"},
        {"{\"segment\": 0, \"units\": 2, \"count\": [1, 1]}", "",
         ": splits: expected one of segment 0, 2 units: instruction "},
        {"\"seed\"", "\"groups\": [], \"seed\"",
         ": groups: expected a list of groups, got []"},
        {"\"seed\"", "\"groups\": [[]], \"seed\"",
         ": groups[0]: expected a list of replicas, got []"},
        {"\"seed\"", "\"groups\": [[[0]], [[0], [0, 1]]], \"seed\"",
         ": groups[1]: expected replicas of equally many devices, got [0, 1]"},
        {"\"seed\"", "\"groups\": [[[0, 2]]], \"seed\"",
         ": groups[0]: expected the number of a device, got 2"},
        {"\"seed\"", "\"groups\": [{\"shards\": 1, \"replicas\": [[0], [1]]}], \"seed\"",
         ": groups[0]: expected {\"shards\", \"replicas\"}, got"},
        {"\"seed\"",
         "\"groups\": [{\"shards\": 2, \"replicas\": [[0], [1], [0]]}], \"seed\"",
         ": groups[0]: expected shards that divide 3 replicas, got 2"},
        {"\"seed\"", "\"microbatches\": 65535, \"seed\"",
         ": microbatches: expected an integer from 0 to 65534, got 65535"},
        {"\"slice\"", "\"dice\"",
         "]: expected load, compute or a collective, got 'dice'"},
        {"\"slice\", \"x\"", "\"slice\", 8", "]: expected a tensor's name, got 8"},
        {"\"slice\", \"x\"", "\"slice\", \"z\"", "]: unknown tensor 'z'"},
        {"[\"compute\", \"features.0.0\"", "[\"compute\", \"conv0\"",
         "]: unknown op 'conv0'"},
        {"\"load\", \"x\", \"identity\"", "\"load\", \"x\", \"gather(9)\"",
         ": program[0]: expected identity, reduce or gather(DIM), got \"gather(9)\""},
        {"\"load\", \"x\", \"identity\"", "\"load\", \"x\"",
         ": program[0]: expected 3 items, got 2"},
        {"[\"load\", \"x\", \"identity\"]", "\"load\"",
         ": program[0]: expected an array, got \"load\""},
        {"[\"load\", \"x\", \"identity\"]", "[7, \"x\", \"identity\"]",
         ": program[0]: expected an instruction's name, got 7"},
        {"\"load\", \"x\", \"identity\"]", "\"load\", \"x\", \"identity\", {\"row\": 1}]",
         ": program[0]: expected {\"group\", \"microbatch\", \"stream\"} at the end, "
         "got"},
        {"\"load\", \"x\", \"identity\"]",
         "\"load\", \"x\", \"identity\", {\"group\": 3}]",
         ": program: instruction 0 (x|identity <- load [group 3, microbatch 0]): the "
         "program has 1 group, got group 3"},
        {"[\"load\", \"x\", \"identity\"],", "", ": program: instruction "},
        {"\"slice\", \"x\", \"identity\", \"gather(0)\"",
         "\"slice\", \"x\", \"identity\", \"reduce\"",
         " (x|reduce <- slice(x|identity)): no such conversion"},
        {"\"version\": \"0.0.1\"", "\"version\": \"\xff\"", ": expected a plan in JSON"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autofree char *bad = replace(good, row[i].part, row[i].by);
        assert_bad(*state, bad, row[i].message);
    }
}

/* The proofs of a plan are about the written plan: any edit drops them. */
static void test_edited_files_prove_nothing(void **state)
{
    g_autofree char *good = plain_text();
    static const struct {
        const char *part, *by;
    } row[] = {
        {"[1, 1]", "[0, 2]"}, /* still what the ratios round to */
        {"[0.25, 0.75]", "[0.5, 0.5]"},
        {"[\"slice\", \"x\", \"identity\", \"gather(0)\"],", ""},
        {"\"cluster\": \"hap-8\"", "\"cluster\": \"hap-16\""},
    };
    g_autoptr(Plan) kept = read_text(*state, good, strlen(good), NULL, NULL);
    assert_close(kept->lower_bound_s, 2, 0);
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autofree char *edited = replace(good, row[i].part, row[i].by);
        g_autoptr(GError) error = NULL;
        g_autoptr(Plan) plan = read_text(*state, edited, strlen(edited), NULL, &error);
        assert_no_error(error);
        assert_close(plan->lower_bound_s, 0, 0);
        assert_false(plan->optimal);
        assert_true(isinf(plan_gap(plan)));
    }
}

static void test_ratios_and_splits_agree(void **state)
{
    g_autofree char *good = plain_text();
    g_autofree char *bad = replace(good, "[0.25, 0.75]", "[1.0, 0.0]");
    g_autofree char *worse = replace(bad, "[1, 1]", "[0, 2]");
    assert_bad(*state, worse, ": splits[0]: expected what the ratios say: 2 of 2 units");

    /* Without splits the ratios are rounded. */
    g_autofree char *none =
        replace(bad, "{\"segment\": 0, \"units\": 2, \"count\": [1, 1]}", "");
    const char *from = strstr(none, "\"splits\"");
    g_autofree char *head = g_strndup(none, (gsize)(from - none));
    g_autofree char *rest = g_strconcat(head, strstr(from, "\"program\""), NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) plan = read_text(*state, rest, strlen(rest), NULL, &error);
    assert_no_error(error);
    assert_int_equal(plan->n_splits, 1);
    assert_int_equal(plan->split[0].count[0], 2);
}

static void test_files_that_are_no_plans(void **state)
{
    static const struct {
        const char *text, *message;
    } row[] = {{"", ":1: expected a plan in JSON"},
               {"plan", ":1: expected a plan in JSON"},
               {"[]", ": kilter: expected {\"format\""},
               {"{}", ": kilter: expected {\"format\""},
               {"{\"kilter\": 1}", ": kilter: expected {\"format\""},
               {"{\"kilter\": {\"format\": \"plan\", \"version\": 1}}",
                ": model: expected a string, got nothing"},
               {"{\n\n\"kilter\": {}\n", ":4: expected a plan in JSON"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++)
        assert_bad(*state, row[i].text, row[i].message);
    g_autoptr(GError) error = NULL;
    assert_null(plan_read("/nonexistent/plan.json", NULL, &error));
    assert_error(error, KILTER_ERROR_INPUT, "/nonexistent/plan.json");
}

static void test_truncated_files(void **state)
{
    g_autofree char *good = plain_text();
    size_t n = strlen(good);
    for (size_t cut = 0; cut + 2 < n; cut += cut < 2000 ? 7 : 97) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Plan) plan = read_text(*state, good, cut, NULL, &error);
        assert_null(plan);
        assert_error(error, KILTER_ERROR_INPUT, "expected a plan in JSON");
    }
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILE_TEST(test_what_is_written_is_read),
        FILE_TEST(test_repetition_is_written_by_number),
        FILE_TEST(test_bad_repetition),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_only_wall_clocks_differ),
        cmocka_unit_test(test_gap_and_splits),
        FILE_TEST(test_bad_files),
        FILE_TEST(test_edited_files_prove_nothing),
        FILE_TEST(test_ratios_and_splits_agree),
        FILE_TEST(test_files_that_are_no_plans),
        FILE_TEST(test_truncated_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
