/* Traces, explanations, samples and timelines from the command line: the trace is the JSON that
 * Perfetto reads, and agrees with the report. */
#include <glib/gstdio.h>

#include "data/base/json.h"
#include "tests/support/program_json.h"

#define SIMULATE                                                            \
    "simulate synthetic:layers=4,forward=10ms,backward=20ms,gradient=28MB " \
    "star:hosts=3,bandwidth=10Gb/s,latency=5us --planner dp-ev -f flow "

/* Complete events have a name, a process, a thread, a time and a duration; those of one thread
 * follow one another; computation adds up to the report's for the device. */
static void test_trace(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_auto(Ran) ran =
        program_run_good(box, SIMULATE "--json --trace t.json --trace-ranks all");
    g_autofree char *text = sandbox_read(box, "t.json");
    json_t *report = json_of(ran.out), *trace = json_of(text);
    const json_t *events = json_object_get(trace, "traceEvents");
    double end_us[3][2] = {{0}}, compute_us[3] = {0}, last_us = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        const char *phase = json_string_value(json_object_get(event, "ph"));
        assert_non_null(json_string_value(json_object_get(event, "name")));
        const int device = (int)number(event, "pid");
        assert_in_range(device, 0, 2);
        if (strcmp(phase, "X") != 0)
            continue;
        const int stream = (int)number(event, "tid");
        const double start_us = number(event, "ts"), us = number(event, "dur");
        assert_in_range(stream, 0, 1);
        assert_at_most(end_us[device][stream] - 1e-3, start_us);
        end_us[device][stream] = start_us + us;
        last_us = fmax(last_us, start_us + us);
        if (stream == 0)
            compute_us[device] += us;
    }
    assert_close(last_us, 1e6 * number(report, "iteration_time_s"), 1e-9);
    const json_t *devices = json_object_get(report, "devices");
    assert_int_equal(json_array_size(devices), 3);
    for (size_t j = 0; j < 3; j++)
        assert_close(compute_us[j],
                     1e6 * number(json_array_get(devices, j), "computation_s"), 1e-9);
    json_decref(report);
    json_decref(trace);
}

/* The execution traces of all ranks are found by the name of any one; a file without a rank in
 * its name is one trace. */
static void test_ranks_by_name(void **state)
{
    (void)state;
#ifndef KILTER_PROTOBUF_C
    skip();
#endif
    static const char *const FILE_OF[] = {"run.0.et", "run.2.et"};
    g_autoptr(Sandbox) box = sandbox_new();
    program_runs(box, SIMULATE "-q --chakra run");
    for (uint32_t i = 0; i < G_N_ELEMENTS(FILE_OF); i++) {
        g_autofree char *line = g_strdup_printf(
            "run-trace %s star:hosts=3,bandwidth=10Gb/s,latency=5us --json", FILE_OF[i]);
        json_t *root = program_json(box, line);
        assert_int_equal(number(root, "ranks"), 3);
        assert_int_equal(json_array_size(json_object_get(root, "rank_times")), 3);
        assert_true(number(root, "iteration_time_s") > 0.12); /* 4 layers of 30 ms */
        json_decref(root);
    }
    g_autofree char *from = g_build_filename(box->folder, "run.1.et", NULL),
                    *to = g_build_filename(box->folder, "1.et", NULL);
    assert_int_equal(rename(from, to), 0);
    json_t *root = program_json(
        box, "run-trace 1.et star:hosts=3,bandwidth=10Gb/s,latency=5us --json");
    assert_int_equal(number(root, "ranks"), 1);
    json_decref(root);
    /* A rank whose file is missing is named. */
    program_refuses(box, "run-trace run.0.et star:hosts=3,bandwidth=10Gb/s,latency=5us",
                    2, "run.1.et");
}

/* Whether some complete event of that device and stream covers the time. */
static bool is_inside(const json_t *events, int device, int stream, double us)
{
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (strcmp(json_string_value(json_object_get(event, "ph")), "X") != 0 ||
            (int)number(event, "pid") != device || (int)number(event, "tid") != stream)
            continue;
        if (number(event, "ts") <= us && us <= number(event, "ts") + number(event, "dur"))
            return true;
    }
    return false;
}

/* Flow events come in pairs of one id, from an event to a later one, or along a transfer to another
 * device; all complete events have their op, group and bytes. Returns the number of pairs. */
static uint32_t check_arrows(Sandbox *box)
{
    g_autofree char *text = sandbox_read(box, "t.json");
    json_t *trace = json_of(text);
    const json_t *events = json_object_get(trace, "traceEvents"), *start = NULL;
    uint32_t n = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        const char *phase = json_string_value(json_object_get(event, "ph"));
        const json_t *args = json_object_get(event, "args");
        if (strcmp(phase, "X") == 0) {
            assert_true(json_is_string(json_object_get(args, "op")));
            assert_true(json_is_integer(json_object_get(args, "group")));
            assert_true(json_integer_value(json_object_get(args, "bytes")) > 0);
        }
        if (strcmp(phase, "s") != 0 && strcmp(phase, "f") != 0)
            continue;
        assert_true(is_inside(events, (int)number(event, "pid"),
                              (int)number(event, "tid"), number(event, "ts")));
        assert_int_equal(strcmp(phase, "s") == 0, start == NULL);
        if (start) {
            assert_int_equal(number(start, "id"), number(event, "id"));
            assert_at_most(number(start, "ts"), number(event, "ts"));
            assert_true(number(start, "pid") != number(event, "pid") ||
                        number(start, "tid") != number(event, "tid"));
            assert_string_equal(json_string_value(json_object_get(event, "bp")), "e");
        } else
            assert_int_equal(number(event, "id"), ++n);
        start = start ? NULL : event;
    }
    assert_null(start);
    json_decref(trace);
    return n;
}

/* Gradients lead to their all-reduce and on to the update; activations from stage to stage. */
static void test_arrows(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    program_runs(box, SIMULATE "--json --trace t.json --trace-ranks 0-2");
    assert_true(check_arrows(box) >= 4 * 3); /* layers on devices */
    program_runs(box, SIMULATE "--json --trace t.json");
    assert_in_range(check_arrows(box), 4, 4 * 3 - 1); /* one for all that do the same */
    program_runs(box,
                 "simulate vit:layers=4,global_batch=8 hap-8 --planner manual --set pp=2 "
                 "--set dp=4 --set micro_batch=1 -f flow --trace t.json");
    assert_true(check_arrows(box) >= 2);
}

/* Events of the trace in a file. Caller frees root with json_decref. */
static const json_t *events_of(const Sandbox *box, const char *file, json_t **root)
{
    g_autofree char *path = g_build_filename(box->folder, file, NULL);
    *root = json_read_file(path, "trace", NULL);
    assert_non_null(*root);
    return json_object_get(*root, "traceEvents");
}

/* Equal devices are one process, whose name says for how many it stands; a list chooses devices; a
 * name in .gz gets the same bytes, gzipped, which the figure reads. */
static void test_ranks(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    json_t *plain, *packed;
    program_runs(box, SIMULATE "-q --trace t.json");
    program_runs(box, SIMULATE "-q --trace t.json.gz");
    program_runs(box, SIMULATE "-q --trace t.pftrace");
    g_autofree char *json = g_build_filename(box->folder, "t.json", NULL),
                    *packets = g_build_filename(box->folder, "t.pftrace", NULL);
    GStatBuf of_json, of_packets;
    assert_int_equal(g_stat(json, &of_json) | g_stat(packets, &of_packets), 0);
    assert_in_range(of_packets.st_size, 1000, of_json.st_size / 2);
    program_runs(box, "figure timeline --trace t.json.gz -o out");
    const json_t *events = events_of(box, "t.json", &plain);
    assert_true(json_equal(events, events_of(box, "t.json.gz", &packed)));
    g_autofree char *gz = sandbox_read(box, "t.json.gz");
    assert_memory_equal(gz, "\x1f\x8b", 2);
    const char *name = json_string_value(
        json_object_get(json_object_get(json_array_get(events, 0), "args"), "name"));
    assert_non_null(strstr(name, ", 3 alike"));
    for (size_t i = 0; i < json_array_size(events); i++)
        assert_int_equal(number(json_array_get(events, i), "pid"), 0);
    json_decref(plain);
    json_decref(packed);
    program_runs(box, SIMULATE "-q --trace t.json --trace-ranks 2,1");
    events = events_of(box, "t.json", &plain);
    for (size_t i = 0; i < json_array_size(events); i++)
        assert_in_range(number(json_array_get(events, i), "pid"), 1, 2);
    json_decref(plain);
    program_refuses(box, SIMULATE "--trace t.json --trace-ranks 3", 2, "from 0 to 2");
    program_refuses(box, SIMULATE "--trace t.json --trace-ranks 1,1", 2, "once");
}

/* A transfer's bytes are those of its microbatch, whose number it has. */
static void test_microbatches(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    double bytes[2];
    for (uint32_t i = 0; i < 2; i++) {
        g_autofree char *line = g_strdup_printf(
            "simulate vit:layers=4,global_batch=8 hap-8 --granularity gpu --planner "
            "manual "
            "--set pp=2 --set dp=4 --set micro_batch=%u -f flow -q --trace t.json",
            i + 1);
        json_t *root;
        bool seen = false;
        program_runs(box, line);
        const json_t *events = events_of(box, "t.json", &root);
        for (size_t k = 0; k < json_array_size(events); k++) {
            const json_t *args = json_object_get(json_array_get(events, k), "args");
            const char *op = json_string_value(json_object_get(args, "op"));
            if (!op || strcmp(op, "transfer") != 0)
                continue;
            bytes[i] = number(args, "bytes");
            assert_int_equal(json_object_get(args, "microbatch") != NULL, i == 0);
            seen = true;
        }
        assert_true(seen);
        json_decref(root);
    }
    assert_close(2 * bytes[0], bytes[1], 1e-12);
}

/* Spans of a trace: those of folded microbatches count as many as they stand for; *n_folded gets
 * the number of slices of folded ones. */
static double count_spans(const Sandbox *box, const char *file, uint32_t *n_folded)
{
    json_t *root;
    const json_t *events = events_of(box, file, &root);
    double n = 0;
    *n_folded = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i),
                     *stands_for = json_object_get(json_object_get(event, "args"), "n");
        if (strcmp(json_string_value(json_object_get(event, "ph")), "X") == 0)
            n += stands_for ? json_number_value(stands_for) : 1;
        *n_folded += stands_for != NULL;
    }
    json_decref(root);
    return n;
}

/* Microbatches that are not chosen are a slice for each pass, and no work is lost; a long trace
 * keeps the first and the last ones and stays small. */
static void test_folded(void **state)
{
#define FOLDED                                                                \
    "simulate vit:layers=4,global_batch=8 hap-8 --granularity gpu --planner " \
    "manual --set pp=2 --set dp=4 --set micro_batch=1 -f flow -q --trace t.json"
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    uint32_t none, some;
    program_runs(box, FOLDED " --trace-microbatches all");
    const double all = count_spans(box, "t.json", &none);
    program_runs(box, FOLDED " --trace-microbatches 0");
    assert_true(count_spans(box, "t.json", &some) == all);
    assert_int_equal(none, 0);
    assert_in_range(some, 2 * 2, 40); /* stages, passes */
    program_refuses(box, "simulate vit:layers=1 hap-8 -p dp-ev --trace-ranks 0", 2,
                    "--trace-ranks needs --trace FILE");
    program_refuses(box, FOLDED " --trace-microbatches 8", 2, "from 0 to 1");
    program_runs(
        box, "simulate synthetic:layers=32,global_batch=8192,forward=1ms,gradient=1kB "
             "hap-8 --planner manual --set pp=2 --set micro_batch=2 -f flow -q "
             "--trace t.json");
    assert_true(count_spans(box, "t.json", &some) > 80000);
    assert_in_range(some, 1000, 20000);
    g_autofree char *text = sandbox_read(box, "t.json");
    assert_in_range(strlen(text), 1000000, 20000000);
}

/* The path's spans follow one another without a gap from 0 to the end; links are listed. */
static void test_explanation(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_auto(Ran) words = program_run_good(box, SIMULATE "--explain");
    assert_non_null(strstr(words.out, "bound by communication, mostly all_reduce"));
    assert_non_null(
        strstr(words.out, "Links with the largest part of their capacity in use:\n"));
    assert_non_null(strstr(words.out, "Memory: the peak is"));
    assert_non_null(strstr(words.out, "Most of its time is in stage 1 ("));
    assert_non_null(strstr(words.out, "\nLayers:\n"));
    assert_non_null(strstr(words.out, "layers.0; communication"));
    g_auto(Ran) all = program_run_good(box, SIMULATE "--explain -v");
    const char *path_text = strstr(all.out, "Critical path:");
    assert_non_null(path_text);
    assert_non_null(strstr(path_text, "all_reduce of layers.0.weight.grad"));
    g_auto(Ran) ran = program_run_good(box, SIMULATE "--explain --json");
    json_t *report = json_of(ran.out);
    const json_t *path = json_object_get(report, "critical_path");
    double end_s = 0;
    assert_true(json_array_size(path) > 0);
    for (size_t i = 0; i < json_array_size(path); i++) {
        const json_t *span = json_array_get(path, i);
        assert_true(number(span, "start_s") == end_s);
        end_s = number(span, "end_s");
    }
    assert_true(end_s == number(report, "iteration_time_s"));
    const json_t *links = json_object_get(report, "links");
    assert_true(json_array_size(links) >= 6);
    for (size_t i = 0; i < json_array_size(links); i++) {
        const json_t *link = json_array_get(links, i);
        assert_at_most(number(link, "utilization") * end_s,
                       number(link, "busy_s") * (1 + 1e-9));
        assert_close(number(link, "utilization") * number(link, "bandwidth") * end_s,
                     number(link, "bytes"), 1e-9);
    }
    json_decref(report);
}

static json_t *samples(const Sandbox *box, const char *more)
{
    g_autofree char *line =
        g_strdup_printf(SIMULATE "--set jitter=0.1 --samples 20 --json %s", more);
    g_auto(Ran) ran = program_run_good(box, line);
    json_t *report = json_of(ran.out);
    json_t *found = json_incref(json_object_get(report, "samples"));
    json_decref(report);
    assert_non_null(found);
    return found;
}

static void test_samples(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    json_t *one = samples(box, "-j 1"), *eight = samples(box, "-j 8");
    json_t *other = samples(box, "-j 8 --seed 2");
    assert_true(json_equal(one, eight));
    assert_false(json_equal(one, other));
    const json_t *interval = json_object_get(one, "interval_s");
    assert_at_most(json_real_value(json_array_get(interval, 0)), number(one, "mean_s"));
    assert_at_most(number(one, "mean_s"), json_real_value(json_array_get(interval, 1)));
    json_decref(one);
    json_decref(eight);
    json_decref(other);
}

static void test_timeline(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    program_runs(box, SIMULATE "--trace t.json -q");
    program_runs(box, "figure timeline --trace t.json -o out");
    g_autofree char *png = sandbox_read(box, "out/timeline.png");
    g_autofree char *svg = sandbox_read(box, "out/timeline.svg");
    assert_memory_equal(png, "\x89PNG", 4);
    assert_non_null(strstr(svg, "host-0"));
    assert_non_null(strstr(svg, "3 alike")); /* equal devices are one row */
    sandbox_write(box, "bad.json", "{\"traceEvents\": 3}");
    program_refuses(box, "figure timeline --trace bad.json", 2, "traceEvents");
    program_refuses(box, "figure timeline --trace none.json", 2, "none.json");
    program_refuses(box, "figure timeline", 2, "--trace");
    program_refuses(box, "figure hap-fig13 --trace t.json", 2, "--trace");
}

static void test_refusals(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    program_refuses(box, SIMULATE "--set overlap=maybe", 2, "off, on");
    program_refuses(box, SIMULATE "--set jitter=-1", 2, "jitter");
    program_refuses(box, SIMULATE "--set streams=0", 2, "streams");
    program_refuses(box, SIMULATE "--samples -1", 2, "--samples");
    program_refuses(box, SIMULATE "--trace none/t.json", 2, "none/t.json");
    program_refuses(box, SIMULATE "-f stage --samples 3", 2, "expected flow");
    program_refuses(box, SIMULATE "-f analytic --explain", 2, "stage or flow");
    program_refuses(box, SIMULATE "--set fail=host-1@10ms", 1, "host-1 fails at 10");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrows),        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_microbatches),  cmocka_unit_test(test_trace),
        cmocka_unit_test(test_explanation),   cmocka_unit_test(test_samples),
        cmocka_unit_test(test_timeline),      cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_ranks_by_name), cmocka_unit_test(test_folded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
