/* Cases that people reported in public trackers (../shared/cases): each command gives the right
 * value, or says why there is none. */
#include "tests/support/program_json.h"

typedef struct {
    const char *name, *line; /* `@` in the line is the folder of the cases */
    int status;
    const char *key,
        *value; /* a member of the answer, as a.0.b, and its text; with another status: NULL, and a part of the message */
} Case;

static const Case CASES[] = {
    {"add_network",
     "plan --planner hap gpt2:global_batch=8,precision=mixed @/clusters/one_machine.yaml "
     "--add "
     "'a100-80g x 1' --planner dp-ev "
     "--granularity gpu",
     2, NULL, "no network between its 2 machines"},
    {"mixed_machine",
     "cluster import @/topo/mixed_2_a6000_2_3090.txt --nics 1 --nic eth-25 -o c.yaml "
     "--json",
     0, "device", "2 rtx-a6000 + 2 rtx-3090"},
    {"mixed_machine", "clusters c.yaml --json", 0, "devices.0.memory_bytes",
     "51539607552"},
    {"mixed_machine", "clusters c.yaml --json", 0, "devices.1.memory_bytes",
     "25769803776"},
    {"product_name", "cluster import @/topo/l40.txt -o l40.yaml --json", 0, "device",
     "l40"},
    {"product_name", "clusters l40.yaml --json", 0, "devices.0.memory_bytes",
     "51539607552"},
    {"product_name", "devices l40 --json", 0, "peaks.fp16", "1.8105e+14"},
    {"rocm_topo",
     "cluster import @/topo/rocm_smi_4_xgmi.txt --gpu mi250x -o r.yaml --json", 0,
     "gpu_pairs", "XGMI=6"},
    {"rocm_topo", "cluster import @/topo/rocm_smi_4_xgmi.txt --gpu mi250x --json", 0,
     "gpus", "4"},
    {"absent_collective",
     "run-trace @/chakra/absent_collective.0.et "
     "star:hosts=8,bandwidth=50GB/s,latency=1us",
     2, NULL, "rank 3 of group 1 never comes to the ALL_REDUCE that 7 others wait for"},
    {"json_inf", "import @/traces/memcpy_inf.json --json", 0, "files.0.tables.0.used",
     "2"},
    {"json_inf", "import @/traces/memcpy_inf.json --json", 0, "traces.0.used_kernels",
     "4"},
    {"json_inf", "import @/traces/memcpy_inf.json --json", 0, "traces.0.notes.0",
     "1 value that is no JSON, in line 1, column 382: inf"},
    {"json_cut", "import @/traces/cut_off.json --json", 0, "traces.0.events", "9"},
    {"json_cut", "import @/traces/cut_off.json --json", 0, "traces.0.notes.0",
     "cut off in line 1, column 2060"},
    {"kernel_without_sizes", "import @/traces/old_nccl_kernel_without_sizes.json --json",
     0, "files.0.tables.0.used", "1"},
    {"kernel_without_sizes", "import @/traces/old_nccl_kernel_without_sizes.json --json",
     0, "files.0.tables.0.left_out", "1"},
};

/* The text of a member of a member; "missing" if there is none. Caller frees. */
static char *member_text(const json_t *json, const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, ".", -1);
    for (char **part = parts; json && *part; part++)
        json = json_is_array(json)
                   ? json_array_get(json, (size_t)g_ascii_strtoull(*part, NULL, 10))
                   : json_object_get(json, *part);
    if (json_is_string(json))
        return g_strdup(json_string_value(json));
    if (json_is_integer(json))
        return g_strdup_printf("%" JSON_INTEGER_FORMAT, json_integer_value(json));
    return json_is_real(json) ? g_strdup_printf("%.6g", json_real_value(json))
                              : g_strdup(json_is_null(json) ? "null" : "missing");
}

static void check_case(const Sandbox *sandbox, const char *folder, const Case *of)
{
    g_auto(GStrv) parts = g_strsplit(of->line, "@", -1);
    g_autofree char *line = g_strjoinv(folder, parts);
    if (!of->key) {
        program_refuses(sandbox, line, of->status, of->value);
        return;
    }
    json_t *root = program_json(sandbox, line);
    g_autofree char *got = member_text(root, of->key);
    json_decref(root);
    if (strcmp(got, of->value) != 0)
        fail_msg("%s: kilter %s: %s is '%s', not '%s'", of->name, line, of->key, got,
                 of->value);
}

static void test_cases(void **state)
{
    (void)state;
    const char *folder = test_shared("cases");
    if (!folder)
        skip();
    g_autoptr(Sandbox) sandbox = sandbox_new();
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++)
        check_case(sandbox, folder, &CASES[i]);
}

/* A rank's trace that is missing between others, and a list of groups that is none, are named. */
static void test_missing_files(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    program_runs(sandbox,
                 "simulate bert-base:layers=2,hidden=96,ffn=192,vocab=640,seq=16 hap-8 "
                 "--planner dp-ev "
                 "--granularity gpu --chakra run");
    program_runs(sandbox, "run-trace run.0.et hap-8");
    sandbox_write(sandbox, "run.groups.json", "{\"1\": [0, 0]}");
    program_refuses(sandbox, "run-trace run.0.et hap-8", 2,
                    "run.groups.json: 1: [1]: expected a whole number");
    sandbox_write(sandbox, "run.groups.json", "{}");
    g_autofree char *path = g_build_filename(sandbox->folder, "run.3.et", NULL);
    g_remove(path);
    program_refuses(sandbox, "run-trace run.0.et hap-8", 2,
                    "run.3.et: no such file: the trace of rank 3 of 0 to 7 is missing");
    g_autofree char *first = g_build_filename(sandbox->folder, "run.0.et", NULL);
    g_remove(first);
    program_refuses(sandbox, "run-trace run.1.et hap-8", 2,
                    "run.0.et: no such file: the trace of rank 0 of 0 to 7 is missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases),
                                       cmocka_unit_test(test_missing_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
