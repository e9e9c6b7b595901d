/* The answer of every command with --json matches its schema in data/schemas/, and so do errors and
 * written files. A member that is not in the schema is a failure, too. */
#include "data/plan/json.h"
#include "tests/support/program_commands.h"
#include "tests/support/program_json.h"
#include "tests/support/schema.h"

#define TINY  "vit:layers=1,hidden=48,ffn=64,batch=4"
#define SMALL "vgg19:width=8,fc=64,batch=4"

/* The commands, in this order and in one folder. A command that reads samples (in place, without a
 * link to them) begins with +, one that runs ranks with *. */
static const char *const LINES[] = {
    "models",
    "models " TINY " -o graph.json",
    "models profile:net.json",
    "+models samples/hf_config/gpt2-large.json",
    "+models samples/hf_index/gemma-2b.model.safetensors.index.json",
    "+models samples/onnx/torch13_gpt2layers.onnx",
    "clusters",
    "clusters dgx-h100",
    "clusters hap-8",
    "+cluster import samples/nccl_topo/yccl-h800.xml --nodes 2 -o mine.yaml",
    "+cluster import samples/nvidia_smi_topo/a100-8gpu.txt --gpu a100-80g --nodes 2 "
    "--nics 4 --nic ib-ndr -o two.yaml",
    "+cluster import samples/slurm/marcc-v100.txt",
    "devices",
    "devices h100",
    "links",
    "planners",
    "plan --planner hap " TINY " hap-8 -o a.json",
    "plan " TINY " hap-8 --planner dp-ev -v --explain -o b.json",
    "plan --planner hap " TINY " hap-8 --certify 0.5",
    "plan " TINY " dgx-h100 --planner auto",
    "plan gpt2:layers=2,hidden=48,heads=4,vocab=128,seq=16,global_batch=16 dgx-h100 "
    "--tokens 1B",
    "plan --planner hap gpt2:layers=2,hidden=48,heads=4,vocab=128,seq=16,global_batch=16 "
    "amp-homogeneous --planner manual --set pp=2 --set micro_batch=1 -o c.json",
    "plan " SMALL " tag-testbed --planner tag --set evaluations=20",
    "plan --planner hap bert-moe:layers=2,hidden=48,ffn=64,vocab=128 hap-8 --segments "
    "layers",
    "plan --planner hap profile:net.json hap-16 -o d.json",
    "advise " TINY " hap-a100-4 --price a100=2 --target 1h --plot pictures",
    "advise " TINY " hap-8 --price p100=2 --top 2",
    "advise gpt2:layers=2,hidden=48,heads=4,vocab=128,seq=16,global_batch=16 2xh100-sxm",
    "advise gpt2:layers=2,hidden=48,heads=4,vocab=128,seq=16,global_batch=16 hap-a100-4 "
    "--price a100=2 --tokens 1B --target 100d",
    "compare a.json b.json c.json",
    "sensitivity " TINY " hap-a100-4 --planner dp-cp",
    "simulate a.json -v",
    "simulate c.json --explain --fidelity flow",
    "simulate a.json --cluster hap-8 --samples 1",
    "simulate " TINY " hap-a100-4 --planner dp-ev --granularity gpu --chakra run",
    "run-trace run.0.et hap-a100-4",
    "formats",
    "doctor",
    "formats graph.json a.json run.0.et",
    "days 3 a.json --mtbf 4000h --checkpoint auto --spares 2%",
    "memory c.json",
    "memory " TINY " hap-8 --planner dp-ev --most batch",
    "export c.json --to megatron",
    "export c.json --to megatron -o flags.sh",
    "kernel matmul h100-sxm --m 8192 --n 8192 --k 4096 --format bf16",
    "kernel softmax t4 --rows 64:4096 --width 1024 --plot pictures",
    "collective all_reduce hap-8 --bytes 1MB",
    "sfb " SMALL " hap-8",
    "theory " TINY,
    "verify a.json",
    "verify --theory " SMALL ",image=32",
    "plan --planner hap " TINY " hap-a100-4 -o two.json",
    "*exec two.json --shrink --repeats 2 --db x.db",
    "*exec two.json --shrink --check",
    "*validate x.db",
    "import m.csv -o copy.csv",
    "import run.0.et",
    "+import samples/kineto/h100_vit-nsfw.json.gz -o kineto.csv",
    "+import samples/nccl_tests/h200c_N10_G2.log -o nccl.csv",
    "calibrate m.csv -o cal.yaml",
    "fit trials.csv --cluster dgx-a100 --suggest 1 -o fit.yaml",
    "plan " TINY " fit.yaml --planner dp-ev",
    "plan " TINY " known.yaml --planner dp-ev -o known.json",
    "simulate known.json",
    "advise " TINY " known.yaml --plot pictures",
    "validate predicted.csv",
    "sweep lab.yaml --dry-run",
    "sweep lab.yaml --db lab.db",
    "sweep lab.yaml --shard 0/2 --db part.db",
    "sweep --status lab.db lab.yaml --plan-shards 2",
    "sweep lab.yaml --emit slurm",
    "merge whole.db part.db",
    "league lab.yaml --db lab.db",
    "table lab.db --rows model --columns planner",
    "table lab.db -o table.txt",
    "table lab.db --all",
    "table lab.db --all --csv -o lab.csv",
    "report a.json -o report.html",
    "report lab.db -o lab.html",
    "reproduce hap-fig4 --db fig4.db -o pictures",
    "figure hap-fig4 --db fig4.db -o pictures",
    "plot fig4.db --x model --by cluster -o pictures",
};

static const char *const LAB =
    "name: lab\ngrid:\n  model: ['" TINY "', '" SMALL "']\n  cluster: [hap-8]\n"
    "  planner: [dp-ev, dp-cp, 'hap:pin=nothing=identity']\n  planner.bucket: ['0', "
    "1MiB]\n";
static const char *const TRIALS =
    "model,machines,tp,pp,micro_batch,seconds,group\n"
    "\"gpt2:layers=2,hidden=256,heads=4,seq=128,global_batch=16\",1,1,1,2,0.118,a\n"
    "\"gpt2:layers=2,hidden=256,heads=4,seq=128,global_batch=16\",1,1,2,2,0.061,b\n"
    "\"gpt2:layers=2,hidden=256,heads=4,seq=128,global_batch=16\",1,2,1,2,,b\n";
static const char *const PROFILE =
    "{\"format\": {\"name\": \"kilter-profile\", \"version\": 1}, \"name\": \"net\", "
    "\"batch\": 8, \"input_bytes\": 512, \"ops\": [{\"op\": \"stem\", \"bytes\": 1024, "
    "\"parameter_bytes\": 4096, \"forward_s\": {\"v100\": 0.002, \"p100\": [[4, 0.002], "
    "[8, 0.004]]}, \"backward_s\": {\"v100\": 0.004, \"p100\": 0.008}}]}";

/* A cluster with as many errors of trials as a 90 % interval takes. */
static const char *const KNOWN =
    "name: known\nmachines: [{device: t4, gpus: 1, inner: pcie3, nic: eth-100}, {device: "
    "v100-16g, gpus: 1, inner: pcie3, nic: eth-100}]\nfit:\n  fidelity: analytic\n"
    "  planner: dp-ev\n  tp: {least: 1, most: 4}\n  pp: {least: 1, most: 2}\n"
    "  tp_pp: {least: 1, most: 4}\n  ranks: {least: 1, most: 8}\n"
    "  width: {least: 1, most: 2048}\n  sequence: {least: 1, most: 1024}\n"
    "  errors: [t4 0.1, t4 0.02, t4 -0.1, t4 -0.05, t4 0.01, v100-16g 0.1, v100-16g "
    "-0.07,"
    " v100-16g 0.03, v100-16g -0.02, v100-16g 0.06]\n";

/* Of a chip that does 1 TFLOP/s after 10 us. */
static char *measurements(void)
{
    GString *text = g_string_new("device,kind,shape,ranks,share,flops,bytes,repeats,"
                                 "median_s,low_s,high_s\n");
    for (uint32_t i = 1; i <= 8; i++) {
        const double flops = 1e7 * i * i, seconds = 1e-5 + flops / 1e12;
        g_string_append_printf(text, "chip,linear,%u,1,1,%.17g,%u,5,%.17g,%.17g,%.17g\n",
                               i, flops, 1000 * i, seconds, seconds, seconds);
    }
    return g_string_free(text, FALSE);
}

static Sandbox *prepare(void)
{
    Sandbox *box = sandbox_new();
    g_autofree char *table = measurements();
    sandbox_write(box, "lab.yaml", LAB);
    sandbox_write(box, "trials.csv", TRIALS);
    sandbox_write(box, "known.yaml", KNOWN);
    sandbox_write(box, "net.json", PROFILE);
    sandbox_write(box, "m.csv", table);
    sandbox_write(box, "predicted.csv",
                  "plan,measured_s,group\na.json,0.2,x\nb.json,0.3,y\n");
    return box;
}

static void check(Schemas *schemas, const char *file, const char *text, const char *what)
{
    json_t *value = json_of(text);
    g_autofree char *wrong = schemas_check(schemas, file, value);
    json_decref(value);
    if (wrong)
        TEST_FAIL_AT(__FILE__, __LINE__, "%s: %s", what, wrong);
}

/* Runs `kilter line --json`, unless this machine or build cannot, and checks the answer. */
static void check_line(Schemas *schemas, const Sandbox *box, const char *line)
{
    const bool of_samples = *line == '+', of_ranks = *line == '*';
    line += of_samples || of_ranks;
    if (of_samples && !test_shared("samples/expected.csv"))
        return;
    g_auto(GStrv) parts = g_strsplit(line, "samples/", 2);
    g_autofree char *there =
        of_samples ? g_strconcat(test_shared("samples"), "/", NULL) : NULL;
    g_autofree char *full = of_samples ? g_strjoinv(there, parts) : g_strdup(line);
    g_autofree char *whole = g_strconcat(full, " --json", NULL);
    g_auto(Ran) ran = program_run(box, whole);
    const bool lacks = strstr(ran.err, "this build has no protobuf-c") ||
                       strstr(ran.err, "no mpi backend") ||
                       strstr(ran.err, "cannot start gnuplot") || of_ranks;
    if (ran.status != 0 && lacks)
        return;
    if (ran.status != 0)
        TEST_FAIL_AT(__FILE__, __LINE__, "kilter %s: exit %d, %s", whole, ran.status,
                     ran.err);
    g_auto(GStrv) words = g_strsplit(line, " ", 2);
    check(schemas, words[0], ran.out, whole);
}

/* Checks the answer of `line`, or its error if the file is one that Kilter refuses; says
 * whether it was an answer. */
static bool check_sample(Schemas *schemas, const char *line, const char *folder,
                         const char *name)
{
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_auto(GStrv) parts = g_strsplit(line, "%s", 2);
    g_autofree char *full = g_strjoinv(path, parts);
    g_autofree char *whole = g_strconcat(full, " --json", NULL);
    g_auto(Ran) ran = program_run(box, whole);
    g_auto(GStrv) words = g_strsplit(line, " ", 2);
    if (ran.status == 0)
        check(schemas, words[0], ran.out, whole);
    else
        check(schemas, "error", ran.err, whole);
    return ran.status == 0;
}

static Schemas *open_schemas(void)
{
    return schemas_new(KILTER_HOME "/data/schemas");
}

static void test_answers(void **state)
{
    (void)state;
    g_autoptr(Schemas) schemas = open_schemas();
    g_autoptr(Sandbox) box = prepare();
    for (uint32_t i = 0; i < G_N_ELEMENTS(LINES); i++)
        check_line(schemas, box, LINES[i]);
    /* a single result, by its hash */
    g_auto(Ran) csv = program_run_good(box, "table lab.db --all --csv");
    g_auto(GStrv) line = g_strsplit(csv.out, "\n", 3);
    g_auto(GStrv) field = g_strsplit(line[1], ",", 4);
    static const char *const COMMAND[] = {"show", "rerun"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(COMMAND); i++) {
        g_autofree char *one = g_strdup_printf("%s %s --db lab.db", COMMAND[i], field[2]);
        check_line(schemas, box, one);
    }
    static const char *const FILES[] = {"a.json", "b.json", "c.json", "d.json"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(FILES); i++) {
        g_autofree char *text = sandbox_read(box, FILES[i]);
        check(schemas, "plan-file", text, FILES[i]);
    }
    g_autofree char *graph = sandbox_read(box, "graph.json");
    check(schemas, "graph-file", graph, "graph.json");
    check(schemas, "profile-file", PROFILE, "net.json");
}

/* Every real file of these kinds that is there. */
static void test_samples(void **state)
{
    (void)state;
    static const struct {
        const char *folder, *line;
    } KIND[] = {{"nccl_tests", "import %s -o m.csv"},
                {"kineto", "import %s -o m.csv"},
                {"chakra", "import %s"},
                {"nccl_topo", "cluster import %s -o mine.yaml"},
                {"nvidia_smi_topo", "cluster import %s --gpu a100-80g -o mine.yaml"},
                {"hf_config", "models %s:seq=128"},
                {"onnx", "models %s"}};
    if (!test_shared("samples/expected.csv"))
        skip();
    g_autoptr(Schemas) schemas = open_schemas();
    uint32_t checked = 0;
    for (uint32_t k = 0; k < G_N_ELEMENTS(KIND); k++) {
        g_autofree char *sub = g_strconcat("samples/", KIND[k].folder, NULL);
        const char *folder = test_shared(sub);
        g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
        assert_non_null(dir);
        for (const char *name; (name = g_dir_read_name(dir)) != NULL;)
            checked += check_sample(schemas, KIND[k].line, folder, name);
    }
    assert_true(checked > 60);
}

static void test_errors(void **state)
{
    (void)state;
    g_autoptr(Schemas) schemas = open_schemas();
    g_autoptr(Sandbox) box = sandbox_new();
    static const char *const WRONG[] = {
        "plan vgg20 hap-8",
        "plan",
        "plam vgg19 hap-8 ",
        "sweep none.yaml",
        "table none.db",
        "simulate x.json",
        "--nothing",
        "verify x.json",
        "plan vgg19 hap-8 --nothing",
        "plan vit:layers=1,batch=200000 hap-8 --planner dp-ev"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(WRONG); i++) {
        g_autofree char *line = g_strconcat(WRONG[i], " --json", NULL);
        g_auto(Ran) ran = program_run(box, line);
        assert_true(ran.status > 0 && !*ran.out);
        check(schemas, "error", ran.err, line);
        json_t *error = json_of(ran.err);
        const json_t *members = json_object_get(error, "error");
        assert_int_equal(json_integer_value(json_object_get(members, "status")),
                         ran.status);
        json_decref(error);
    }
}

/* Every command has a schema and a line in the list above. */
static void test_all_commands(void **state)
{
    (void)state;
    static const char *const ELSEWHERE[] = {"show", "rerun",
                                            "profile", /* in test_calibrate_command.c */
                                            NULL};
    g_autoptr(Schemas) schemas = open_schemas();
    g_autoptr(Sandbox) box = sandbox_new();
    g_auto(GStrv) words = program_commands(box);
    for (guint i = 0; words[i]; i++) {
        g_autofree char *start = g_strconcat(words[i], " ", NULL);
        bool found = g_strv_contains(ELSEWHERE, words[i]);
        for (uint32_t k = 0; k < G_N_ELEMENTS(LINES) && !found; k++) {
            const char *line = LINES[k] + strspn(LINES[k], "+*");
            found = g_str_has_prefix(line, start) || strcmp(line, words[i]) == 0;
        }
        if (!found || !schemas_get(schemas, words[i]))
            TEST_FAIL_AT(__FILE__, __LINE__, "kilter %s has no %s", words[i],
                         found ? "schema" : "line in this test");
    }
}

/* The schema of plan files has the members of the table by which they are written and read. */
static void test_plan_members(void **state)
{
    (void)state;
    g_autoptr(Schemas) schemas = open_schemas();
    const json_t *known =
        json_object_get(schemas_get(schemas, "plan-file"), "properties");
    size_t n = 0;
    const PlanMember *member;
    for (uint32_t i = 0; (member = plan_member(i)); i++, n++)
        if (!json_object_get(known, member->key))
            TEST_FAIL_AT(__FILE__, __LINE__, "no member '%s'", member->key);
    assert_int_equal(json_object_size(known), n);
}

/* The checker of schemas finds each kind of mistake. */
static void test_wrong_values(void **state)
{
    (void)state;
    g_autoptr(Schemas) schemas = open_schemas();
    static const struct {
        const char *file, *text, *why;
    } CASES[] = {{"merge", "{}", "'format' is missing"},
                 {"merge",
                  "{\"format\": {\"name\": \"x\", \"version\": 2}, \"database\": \"d\", "
                  "\"parts\": 1, \"added\": 1}",
                  "format.version: expected another constant"},
                 {"merge",
                  "{\"format\": {\"name\": \"x\", \"version\": 1}, \"database\": 1, "
                  "\"parts\": 1, \"added\": 1}",
                  "database: expected \"string\", got integer"},
                 {"merge",
                  "{\"format\": {\"name\": \"x\", \"version\": 1}, \"database\": \"d\", "
                  "\"parts\": 1, \"added\": 1, \"more\": 1}",
                  "'more' is not in the schema"},
                 {"planners",
                  "{\"format\": {\"name\": \"x\", \"version\": 1}, \"planners\": [{}]}",
                  "planners[0]: 'name' is missing"},
                 {"error",
                  "{\"format\": {\"name\": \"x\", \"version\": 1}, \"error\": "
                  "{\"status\": 4, \"message\": \"\"}}",
                  "error.status: expected one of"},
                 {"nothing", "{}", "no schema"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        json_t *value = json_of(CASES[i].text);
        g_autofree char *wrong = schemas_check(schemas, CASES[i].file, value);
        json_decref(value);
        assert_non_null(wrong);
        if (!strstr(wrong, CASES[i].why))
            TEST_FAIL_AT(__FILE__, __LINE__, "got '%s'", wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),      cmocka_unit_test(test_samples),
        cmocka_unit_test(test_errors),       cmocka_unit_test(test_all_commands),
        cmocka_unit_test(test_plan_members), cmocka_unit_test(test_wrong_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
