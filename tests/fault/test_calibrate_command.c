/* kilter profile, calibrate, exec --db and validate as users call them: the loop closes, and bad
 * input gives one line of error and leaves nothing behind. */
#include <math.h>

#include "exec/exec.h"
#include "tests/support/program_json.h"
#include "tests/support/schema.h"

#define TINY "vit:layers=1,hidden=12,heads=2,ffn=24,patch=16,global_batch=8"

static void test_loop(void **state)
{
    (void)state;
    if (!exec_mpi_built())
        skip();
    g_autoptr(Sandbox) sandbox = sandbox_new();
    json_t *root =
        program_json(sandbox, "profile " TINY " --ranks 2 --repeats 2 --warm-up 1 "
                              "--largest 2KiB -o measured.csv --json");
    g_autoptr(Schemas) schemas = schemas_new(KILTER_HOME "/data/schemas");
    g_autofree char *wrong = schemas_check(schemas, "profile", root);
    assert_null(wrong);
    assert_true(number(root, "ops") > 40);
    assert_int_equal(number(root, "collectives"), 2 * (1 + 5 * 3));
    const json_t *limits = json_object_get(root, "limits"),
                 *kernels = json_object_get(root, "kernels");
    assert_true(number(limits, "flops_per_s") > 1e6);
    assert_true(number(limits, "bytes_per_s") > 1e6);
    assert_true(json_array_size(kernels) > 20);
    for (size_t i = 0; i < json_array_size(kernels); i++) {
        const json_t *kernel = json_array_get(kernels, i);
        assert_close(number(kernel, "of_limit"),
                     number(kernel, "flops_per_s") / number(limits, "flops_per_s"), 1e-9);
        assert_true(number(kernel, "bytes_per_s") > 0);
    }
    json_decref(root);
    root = program_json(sandbox, "calibrate measured.csv -o mine.yaml --json");
    assert_true(json_array_size(json_object_get(root, "fits")) > 20);
    json_decref(root);
    /* the last four are of groups, microbatches or turns, which have a fidelity of their own */
    static const char *const planner[] = {"dp-ev", "hap", "amp", "tag", "hidup", "joint"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(planner); i++) {
        g_autofree char *line = g_strdup_printf(
            "exec " TINY " mine.yaml -p %s --slowdown 1=2 --repeats 2 --db r.db --json",
            planner[i]);
        for (uint32_t again = 0; again < 2;
             again++) { /* the second run is not stored again */
            root = program_json(sandbox, line);
            assert_true(number(root, "predicted_time_s") > 0);
            assert_true(number(root, "predicted_bytes") > 0);
            assert_true(i >= 2 || json_is_object(json_object_get(
                                      json_array_get(json_object_get(root, "stages"), 0),
                                      "predicted")));
            json_decref(root);
        }
    }
    root = program_json(sandbox, "validate r.db --json");
    assert_int_equal(number(root, "plans"), G_N_ELEMENTS(planner));
    assert_true(number(root, "mape") > 0);
    assert_true(number(root, "memory_mape") < 0.2);
    const json_t *row = json_array_get(json_object_get(root, "rows"), 0);
    assert_close(number(row, "memory_error"),
                 number(row, "predicted_bytes") / number(row, "measured_bytes") - 1,
                 1e-9);
    assert_int_equal(json_array_size(json_object_get(root, "groups")), 1);
    json_decref(root);
}

/* Nothing is stored of a run that fails. */
static void test_failed_run(void **state)
{
    (void)state;
    if (!exec_mpi_built())
        skip();
    g_autoptr(Sandbox) sandbox = sandbox_new();
    program_refuses(sandbox,
                    "exec vit:layers=1 hap-a100-4 -p dp-ev --shrink --repeats "
                    "1000000 --timeout 1 --db r.db",
                    1, "more than the 1 s");
    sandbox_write(sandbox, "r.db", "not a store");
    program_refuses(sandbox, "exec vit:layers=1 hap-a100-4 -p dp-ev --shrink --db r.db",
                    2, "r.db");
}

static void test_profile_refusals(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    program_refuses(sandbox, "profile vit", 2, "expected --output");
    program_refuses(sandbox, "profile vit -o m.csv --backend gpu", 2, "--backend");
    program_refuses(sandbox, "profile vit -o m.csv --backend cuda", 1, "cuda");
    program_refuses(sandbox, "profile vit -o m.csv --ranks 0", 2, "--ranks");
    program_refuses(sandbox, "profile vit -o m.csv --device a,b", 2, "--device");
    program_refuses(sandbox, "profile vit -o m.csv --largest big", 2, "--largest");
    if (exec_mpi_built()) {
        program_refuses(sandbox, "profile nothing -o m.csv", 2, "nothing");
        program_refuses(sandbox,
                        "profile " TINY
                        " --ranks 2 --repeats 1 --warm-up 0 --largest 1KiB -o "
                        "/dev/full",
                        1, "/dev/full");
    }
}

#define HEADER "device,kind,shape,ranks,share,flops,bytes,repeats,median_s,low_s,high_s\n"

static void test_calibrate_refusals(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    sandbox_write(sandbox, "m.csv", HEADER "cpu,linear,,2,1,9,9,1,1e-3,1e-3,1e-3\n");
    sandbox_write(sandbox, "bad.csv", HEADER "cpu,liner,,2,1,9,9,1,1e-3,1e-3,1e-3\n");
    program_refuses(sandbox, "calibrate none.csv -o c.yaml", 2, "none.csv");
    program_refuses(sandbox, "calibrate bad.csv -o c.yaml", 2, "bad.csv:2: kind");
    program_refuses(sandbox, "calibrate m.csv -o c.yaml", 2, "no all_reduce among 2");
    program_refuses(sandbox, "calibrate m.csv -o c.yaml --base hap-8", 2,
                    "no device type cpu");
    program_refuses(sandbox, "calibrate m.csv -o c.yaml --memory much", 2, "--memory");
    program_refuses(sandbox, "calibrate m.csv -o nowhere/c.yaml", 2, "nowhere");
    program_run_good(sandbox, "calibrate m.csv -o c.yaml --ranks 1 -q");
}

/* Without --output the fit is printed and nothing is written. */
static void test_fit_alone(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    sandbox_write(sandbox, "m.csv", HEADER "cpu,linear,,1,1,9,9,1,1e-3,1e-3,1e-3\n");
    g_auto(Ran) ran = program_run_good(sandbox, "calibrate m.csv");
    assert_non_null(strstr(ran.out, "linear"));
    g_autoptr(GDir) folder = g_dir_open(sandbox->folder, 0, NULL);
    assert_string_equal(g_dir_read_name(folder), "m.csv");
    assert_null(g_dir_read_name(folder));
}

/* Rows of a trace name the product; they are fitted to the base's device of that data sheet. */
static void test_product_names(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    sandbox_write(sandbox, "m.csv",
                  HEADER "NVIDIA H100 80GB HBM3,linear,,1,1,1e12,1e9,1,1e-2,1e-2,1e-2\n");
    program_run_good(sandbox, "calibrate m.csv --base dgx-h100 -o c.yaml -q");
    g_autofree char *text = sandbox_read(sandbox, "c.yaml");
    assert_non_null(strstr(text, "kind: \"linear\""));
    program_refuses(sandbox, "calibrate m.csv --base dgx-a100 -o c.yaml", 2,
                    "no device type NVIDIA H100 80GB HBM3");
}

/* Measurements that do not match the cluster are an error; formerly they left a cluster to which
 * nothing was fitted. */
static void test_no_usable_row(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    sandbox_write(sandbox, "m.csv",
                  HEADER "gpu,all_reduce,,24,0.041,0,1e6,1,1e-3,1e-3,1e-3\n"
                         "gpu,all_reduce,,16,0.062,0,1e6,1,1e-3,1e-3,1e-3\n");
    program_refuses(
        sandbox, "calibrate m.csv --base hidup-1x8 -o c.yaml", 2,
        "none of the 2 measurements can be used on cluster hidup-1x8: 24 ranks on "
        "several machines, and the cluster has one");
    sandbox_write(sandbox, "one.csv",
                  HEADER "gpu,all_reduce,,1,1,0,1e6,1,1e-3,1e-3,1e-3\n");
    program_refuses(sandbox, "calibrate one.csv --base hap-8 -o c.yaml", 2,
                    "one rank alone sends nothing");
}

/* A type with a half-precision rate and no fitted op. */
static void test_validate_half_rate(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    program_run_good(sandbox,
                     "plan --planner hap gpt2:layers=1 amp-het-cluster --granularity gpu "
                     "-p dp-ev -o p.json -q");
    sandbox_write(sandbox, "p.csv", "plan,measured_s\np.json,1\n");
    json_t *root = program_json(sandbox, "validate p.csv --json");
    assert_int_equal(number(root, "plans"), 1);
    json_decref(root);
}

/* On a cluster of kilter fit a plan is predicted as the fit's trials were, with the interval that
 * their errors give: of 20 errors up to 0.1 in size, a factor of exp(0.1). */
static void test_validate_fitted(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    g_autoptr(GString) text =
        g_string_new("machines: [{device: a100-80g, gpus: 2, inner: nvlink3}]\n"
                     "fit:\n  fidelity: stage\n  planner: ddp\n");
    static const char *const ranges[] = {"tp",    "pp",    "tp_pp",
                                         "ranks", "width", "sequence"};
    for (uint32_t r = 0; r < G_N_ELEMENTS(ranges); r++)
        g_string_append_printf(text, "  %s: {least: 1, most: 9000}\n", ranges[r]);
    g_string_append(text, "  errors: [");
    for (uint32_t i = 0; i < 20; i++)
        g_string_append_printf(text, "%sa100-80g %g", i ? ", " : "",
                               (i % 2 ? -0.005 : 0.005) * (i + 1));
    g_string_append(text, "]\n");
    sandbox_write(sandbox, "f.yaml", text->str);
    program_run_good(sandbox,
                     "plan gpt2:layers=1,seq=128 f.yaml --granularity gpu -p ddp "
                     "-o p.json -q");
    sandbox_write(sandbox, "p.csv", "plan,measured_s\np.json,1\n");
    json_t *root = program_json(sandbox, "validate p.csv --json");
    json_t *stage = program_json(sandbox, "simulate p.json -f stage --json");
    const json_t *row = json_array_get(json_object_get(root, "rows"), 0);
    const json_t *interval = json_object_get(row, "interval_90_s");
    const double predicted_s = number(row, "predicted_s");
    assert_close(predicted_s, number(stage, "iteration_time_s"), 1e-12);
    const double high_s = json_number_value(json_array_get(interval, 1));
    assert_close(json_number_value(json_array_get(interval, 0)) * high_s,
                 predicted_s * predicted_s, 1e-12);
    assert_close(high_s, predicted_s * exp(0.095), 0.006);
    json_decref(root);
    json_decref(stage);
}

/* Plans with stages, and plans on some of the machines, are predicted by their own fidelity on
 * their own cluster, or on the same machines of another one; a row without a prediction is named,
 * and the exit status is 1. */
static void test_validate_takes_every_plan(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    static const char *const line[] = {
        "plan gpt2:layers=2,hidden=64,heads=4,ffn=128,seq=16,vocab=64,global_batch=8 "
        "hap-8 --planner manual --granularity gpu --set pp=2 -o a.json -q",
        "plan vgg19:width=8 hap-8 --planner dp-cp --only v100 -o b.json -q"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(line); i++)
        program_runs(sandbox, line[i]);
    sandbox_write(sandbox, "p.csv", "plan,measured_s\na.json,1\nb.json,1\n");
    static const char *const how[] = {"", " --cluster hap-8"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(how); i++) {
        g_autofree char *command = g_strdup_printf("validate p.csv --json%s", how[i]);
        json_t *root = program_json(sandbox, command),
               *rows = json_object_get(root, "rows"),
               *a = program_json(sandbox, "simulate a.json --json"),
               *b = program_json(sandbox, "simulate b.json --json");
        assert_int_equal(number(root, "plans"), 2);
        assert_close(number(json_array_get(rows, 0), "predicted_s"),
                     number(a, "iteration_time_s"), 1e-12);
        assert_close(number(json_array_get(rows, 1), "predicted_s"),
                     number(b, "iteration_time_s"), 1e-12);
        json_decref(root);
        json_decref(a);
        json_decref(b);
    }
    sandbox_write(sandbox, "q.csv", "plan,measured_s\na.json,1\nnone.json,1\n");
    g_auto(Ran) ran = program_run(sandbox, "validate q.csv");
    assert_int_equal(ran.status, 1);
    assert_non_null(strstr(ran.out, "left out: q.csv:3: "));
    assert_non_null(strstr(ran.err, "1 of 2 plans were left out"));
}

static void test_validate_csv(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    sandbox_write(sandbox, "v.csv",
                  "# measured elsewhere\n"
                  "group,plan,predicted_s,measured_s\n"
                  "a,x,1,1.1\na,y,2,1.0\nb,x,3,3\nb,y,4,5\n");
    json_t *root = program_json(sandbox, "validate v.csv --json");
    assert_int_equal(number(root, "plans"), 4);
    assert_close(number(root, "mape"), (0.1 / 1.1 + 1 + 0 + 0.2) / 4, 1e-12);
    assert_close(number(root, "regret_worst"), 0.1, 1e-9);
    assert_close(number(root, "regret_mean"), 0.05, 1e-9);
    assert_close(number(root, "within_5_percent"), 0.5, 1e-12);
    json_decref(root);
    program_run_good(sandbox, "plan vit:layers=1 hap-8 -p dp-ev -o p.json -q");
    sandbox_write(sandbox, "p.csv",
                  "plan,measured_s,slowdown\np.json,1,\np.json,2,0=2\n");
    root = program_json(sandbox, "validate p.csv --json");
    const json_t *rows = json_object_get(root, "rows");
    assert_true(number(json_array_get(rows, 1), "predicted_s") >
                number(json_array_get(rows, 0), "predicted_s"));
    json_decref(root);
    static const struct {
        const char *text, *part;
    } bad[] = {{"plan,measured_s,seconds\n", "column 'seconds'"},
               {"plan\n", "b.csv:1: expected a column 'measured_s'"},
               {"plan,measured_s,predicted_s\nx,0,1\n", "b.csv:2: measured_s"},
               {"plan,measured_s,predicted_s\nx,1,nan\n", "b.csv:2: predicted_s"},
               {"plan,measured_s,predicted_s\nx,1\n", "b.csv:2: expected 3 columns"},
               {"plan,measured_s\nnone.json,1\n", "b.csv:2: "},
               {"plan,measured_s,slowdown\np.json,1,9=2\n", "b.csv:2: --slowdown"},
               {"plan,measured_s\n", "expected rows"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        sandbox_write(sandbox, "b.csv", bad[i].text);
        program_refuses(sandbox, "validate b.csv", 2, bad[i].part);
    }
    program_refuses(sandbox, "validate none.csv", 2, "none.csv");
}

/* A trial on one machine of several has no collectives between machines, whose costs by size the
 * cluster may have. */
static void test_fit_of_one_machine(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    sandbox_write(sandbox, "one.csv",
                  "model,machines,tp,pp,micro_batch,seconds,group\n"
                  "\"gpt2:layers=1,hidden=64,heads=4,ffn=64,seq=16,vocab=64,"
                  "global_batch=16\",1,1,1,4,1.84,a\n");
    program_runs(sandbox, "fit one.csv --cluster tag-sfb");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop),
        cmocka_unit_test(test_failed_run),
        cmocka_unit_test(test_profile_refusals),
        cmocka_unit_test(test_calibrate_refusals),
        cmocka_unit_test(test_no_usable_row),
        cmocka_unit_test(test_fit_alone),
        cmocka_unit_test(test_product_names),
        cmocka_unit_test(test_validate_half_rate),
        cmocka_unit_test(test_validate_takes_every_plan),
        cmocka_unit_test(test_validate_csv),
        cmocka_unit_test(test_validate_fitted),
        cmocka_unit_test(test_fit_of_one_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
