/* PyTorch's memory snapshots: peaks by hand, refusals, and texts that are written and read again.
 */
#include "data/data.h"
#include "tests/test.h"

static GArray *read_text(const char *text, GError **error)
{
    return snapshot_parse("s.json", text, strlen(text), error);
}

/* 512 bytes are there before the first event: 1,536 in the end, of which 1,024 were allocated. */
static void test_peak_by_hand(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(KILTER_HOME, "tests", "fuzz", "seeds",
                                             "snapshot", "two.json", NULL);
    g_autoptr(GArray) peaks = snapshot_read(path, &error);
    assert_no_error(error);
    assert_int_equal(peaks->len, 2);
    const SnapshotPeak *peak = (const SnapshotPeak *)(void *)peaks->data;
    assert_int_equal(peak[0].device, 0);
    assert_int_equal(peak[0].allocated_bytes, 512 + 1024 + 4096);
    assert_int_equal(peak[0].event, 3);
    assert_int_equal(peak[0].n_events, 7);
    assert_int_equal(peak[0].reserved_bytes, 2097152);
    assert_int_equal(peak[1].allocated_bytes, 0);
    assert_int_equal(peak[1].reserved_bytes, 20971520);
    assert_int_equal(format_of_file(path, FORMAT_ANY), FORMAT_SNAPSHOT);
}

/* Sums of up to 2^60 bytes are read, in one event, in several, and in one of either kind; a byte
 * more is refused. */
static void test_most(void **state)
{
    (void)state;
    static const char *const ACTION[] = {"alloc", "segment_alloc", "segment_map"};
    for (uint32_t i = 0; i < 2 * G_N_ELEMENTS(ACTION); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = g_strdup_printf(
            "{\"segments\": [], \"device_traces\": [[{\"action\": \"%s\", \"size\": "
            "1152921504606846975}, {\"action\": \"%s\", \"size\": %u}, {\"action\": "
            "\"%s\", \"size\": 1152921504606846976}]]}",
            ACTION[i / 2], ACTION[i / 2], 1 + i % 2,
            i / 2 ? "free_requested" : "segment_free_requested");
        g_autoptr(GArray) peaks = read_text(text, &error);
        if (i % 2) {
            assert_null(peaks);
            assert_error(error, KILTER_ERROR_INPUT, "[0][1]: expected less memory");
        } else if (!peaks)
            assert_null(strstr(error->message, "expected less memory"));
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"[", "s.json:1: expected a memory snapshot"},
        {"{}", "an object with the list segments"},
        {"{\"segments\": []}", "with segments or events, got none"},
        {"{\"segments\": [{\"total_size\": 1, \"allocated_size\": 2}]}",
         "segments[0]: expected device"},
        {"{\"segments\": [{\"device\": 9999, \"total_size\": 1, \"allocated_size\": 1}]}",
         "segments[0]"},
        {"{\"segments\": [], \"device_traces\": [[{\"size\": 1}]]}",
         "device_traces[0][0]: expected an action"},
        {"{\"segments\": [], \"device_traces\": [[{\"action\": \"alloc\", \"size\": "
         "1}]]}",
         "more is freed than was allocated"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(read_text(bad[i].text, &error));
        assert_error(error, KILTER_ERROR_INPUT, bad[i].part);
    }
}

static void check_same(const GArray *peaks, const GArray *expected)
{
    assert_int_equal(peaks->len, expected->len);
    for (guint d = 0; d < expected->len; d++) {
        const SnapshotPeak *of = &g_array_index(peaks, SnapshotPeak, d),
                           *wanted = &g_array_index(expected, SnapshotPeak, d);
        assert_int_equal(of->device, wanted->device);
        assert_int_equal(of->n_events, wanted->n_events);
        assert_int_equal(of->event, wanted->event);
        assert_int_equal(of->allocated_bytes, wanted->allocated_bytes);
        assert_int_equal(of->reserved_bytes, wanted->reserved_bytes);
    }
}

static void test_written_and_read(void **state)
{
    (void)state;
    static const SnapshotBlock of[] = {{1, 0, UINT32_MAX, 100, "w", "weights"},
                                       {1, 2, 4, 50, "x \"quoted\"", "activations"},
                                       {1, 5, 6, 70, "y", "buffers"},
                                       {0, 3, 3, 8, "z", "buffers"}};
    g_autoptr(GArray) block = g_array_new(false, false, sizeof(SnapshotBlock));
    g_array_append_vals(block, of, G_N_ELEMENTS(of));
    json_t *snapshot = snapshot_write(block, 2);
    g_autofree char *text = json_dumps(snapshot, JSON_COMPACT);
    gsize length;
    g_autofree char *pickle = snapshot_pickle(snapshot, &length);
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) peaks = read_text(text, &error);
    assert_no_error(error);
    const SnapshotPeak *peak = (const SnapshotPeak *)(void *)peaks->data;
    assert_int_equal(peaks->len, 2);
    assert_int_equal(peak[0].allocated_bytes, 8);
    assert_int_equal(peak[1].allocated_bytes, 170);
    assert_int_equal(peak[1].reserved_bytes, 170);
    /* As readers want it: blocks fill segments, no two have one address, and what stays has its
     * block's; torch/cuda/_memory_viz.py asserts the first. */
    for (uint32_t d = 0; d < 2; d++) {
        const json_t *segment = json_array_get(json_object_get(snapshot, "segments"), d);
        json_int_t rest = json_integer_value(json_object_get(segment, "total_size"));
        size_t k;
        json_t *in;
        json_array_foreach (json_object_get(segment, "blocks"), k, in)
            rest -= json_integer_value(json_object_get(in, "size"));
        assert_int_equal(rest, 0);
    }
    assert_non_null(strstr(text, "\"action\":\"alloc\",\"addr\":0,\"size\":100"));
    assert_non_null(strstr(text, "\"action\":\"alloc\",\"addr\":101,\"size\":50"));
    /* The pickle begins with its version and the first key, and ends with a stop. */
    assert_true(length > 30 && pickle[length - 1] == '.');
    assert_memory_equal(pickle,
                        "\x80\x02}(X\x08\0\0\0segments](}(X\x06\0\0\0device\x8a\x08", 34);
    json_decref(snapshot);
    /* Read again it says the same. */
    g_autoptr(GArray) again = snapshot_parse("s.pickle", pickle, length, &error);
    assert_no_error(error);
    check_same(again, peaks);
    for (gsize cut = 1; cut < length; cut++) {
        g_autoptr(GError) wrong = NULL;
        assert_null(snapshot_parse("s.pickle", pickle, cut, &wrong));
        assert_error(wrong, KILTER_ERROR_INPUT, "s.pickle: byte ");
    }
}

/* Python's pickles of two.json with stacks, tuples, reals and large numbers. */
static void test_pickles_of_python(void **state)
{
    (void)state;
    static const char *const name[] = {"two.json", "protocol2.pickle",
                                       "protocol4.pickle"};
    g_autoptr(GArray) first = NULL;
    for (uint32_t i = 0; i < G_N_ELEMENTS(name); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *path = g_build_filename(KILTER_HOME, "tests", "fuzz", "seeds",
                                                 "snapshot", name[i], NULL);
        g_autoptr(GArray) peaks = snapshot_read(path, &error);
        assert_no_error(error);
        assert_int_equal(format_of_file(path, FORMAT_ANY), FORMAT_SNAPSHOT);
        if (!first)
            first = g_steal_pointer(&peaks);
        else
            check_same(peaks, first);
    }
}

static void test_refused_pickles(void **state)
{
    (void)state;
#define PICKLE(text) text, sizeof text - 1
    static const struct {
        const char *bytes;
        size_t length;
        const char *part;
    } bad[] = {
        {PICKLE("\x80\x02}."), "an object with the list segments"},
        {PICKLE("\x80\x04\x8c\x02os\x8c\x06system\x93."), "byte 14: "},
        {PICKLE("\x80\x02"
                "cos\nsystem\n."),
         "byte 2: "}, /* protocol 0's GLOBAL */
        {PICKLE("\x80\x02]q\0h\0h\1e."), "without objects, to its end"},
        {PICKLE("\x80\x02]q\5."), "without objects, to its end"},
        {PICKLE("\x80\x02q\0."), "without objects, to its end"},
        {PICKLE("\x80\x02K\1K\2a."), "without objects, to its end"},
        {PICKLE("\x80\x02"
                "a."),
         "without objects, to its end"},
        {PICKLE("\x80\x02]e."), "without objects, to its end"},
        {PICKLE("\x80\x02(K\1."), "without objects, to its end"},
        {PICKLE("\x80\x02\x8a\x09\1\2\3\4\5\6\7\0\1."), "without objects, to its end"},
        {PICKLE("\x80\x02X\xff\xff\xff\xff."), "without objects, to its end"},
        {PICKLE("\x80\x02\x8c\2\xc3\x28."), "without objects, to its end"},
        {PICKLE("\x80\x02}(X\x08\0\0\0segments]X\x0d\0\0\0device_traces]q\0(h\0eu."),
         "device_traces[0]: expected a list"}, /* a list that contains itself */
        {PICKLE("\x80\x02}(X\x08\0\0\0segments](}(X\x0a\0\0\0total_sizeJ\xff\xff\xff\xff"
                "ueu."),
         "segments[0]: expected device"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(snapshot_parse("s.pickle", bad[i].bytes, bad[i].length, &error));
        assert_error(error, KILTER_ERROR_INPUT, bad[i].part);
    }
    /* Lists in one another, as deep as one likes. */
    g_autoptr(GString) deep = g_string_new("\x80\x02");
    for (uint32_t i = 0; i < 100000; i++)
        g_string_append_c(deep, ']');
    for (uint32_t i = 1; i < 100000; i++)
        g_string_append_c(deep, 'a');
    g_string_append_c(deep, '.');
    g_autoptr(GError) error = NULL;
    assert_null(snapshot_parse("s.pickle", deep->str, deep->len, &error));
    assert_error(error, KILTER_ERROR_INPUT, "without objects, to its end");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peak_by_hand),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_most),
        cmocka_unit_test(test_written_and_read),
        cmocka_unit_test(test_pickles_of_python),
        cmocka_unit_test(test_refused_pickles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
