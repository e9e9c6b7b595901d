/* A trace of PyTorch's profiler as large as those of real runs, 1 GB unpacked, is read within 300
 * MB. */
#include <sys/resource.h>

#include "tests/support/program_json.h"

#define TRACE_BYTES 1e9
#define MOST_BYTES  300e6

/* An op with its shapes, its launch, its kernel, and the Python functions around it, which have
 * most of the bytes. */
static const char OPS[] =
    "{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"%0900u\", \"ts\": 1.5, "
    "\"dur\": 9, \"args\": {\"Python id\": 5, \"Python parent id\": 4}},\n"
    "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"ts\": 2.5, \"dur\": "
    "7, "
    "\"args\": {\"External id\": %u, \"Input type\": [\"c10::BFloat16\", "
    "\"c10::BFloat16\"], \"Input Dims\": [[4096, 1024], [1024, 512]]}},\n"
    "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"ts\": "
    "3, "
    "\"dur\": 4, \"args\": {\"External id\": %u, \"correlation\": %u}},\n"
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"ts\": 8, \"dur\": 12.5, "
    "\"args\": {\"External id\": %u, \"device\": 0, \"stream\": 7}},\n";

/* Writes the trace, gzipped. Returns the number of ops. */
static uint32_t write_trace(const char *path)
{
    g_autoptr(GFile) file = g_file_new_for_path(path);
    g_autoptr(GOutputStream) out = G_OUTPUT_STREAM(
        g_file_replace(file, NULL, FALSE, G_FILE_CREATE_NONE, NULL, NULL));
    assert_non_null(out);
    g_autoptr(GConverter) gzip =
        G_CONVERTER(g_zlib_compressor_new(G_ZLIB_COMPRESSOR_FORMAT_GZIP, 1));
    g_autoptr(GOutputStream) packed = g_converter_output_stream_new(out, gzip);
    g_autoptr(GString) text = g_string_new(
        "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA "
        "H100\"}], \"traceEvents\": [\n");
    double written = 0;
    uint32_t n = 0;
    while (written < TRACE_BYTES) {
        for (uint32_t k = 0; k < 1000; k++, n++)
            g_string_append_printf(text, OPS, n, n, n, n, n);
        written += (double)text->len;
        assert_true(
            g_output_stream_write_all(packed, text->str, text->len, NULL, NULL, NULL));
        g_string_truncate(text, 0);
    }
    g_string_append(text, "{\"ph\": \"M\", \"name\": \"end\"}]}\n");
    assert_true(
        g_output_stream_write_all(packed, text->str, text->len, NULL, NULL, NULL));
    assert_true(g_output_stream_close(packed, NULL, NULL));
    return n;
}

static void test_large_trace(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *path = g_build_filename(box->folder, "trace.json.gz", NULL);
    const uint32_t n = write_trace(path);
    json_t *root = program_json(box, "import trace.json.gz -o m.csv --json");
    const json_t *facts = json_array_get(json_object_get(root, "traces"), 0);
    struct rusage usage;
    assert_int_equal(json_integer_value(json_object_get(facts, "kernels")), n);
    assert_int_equal(json_integer_value(json_object_get(root, "measurements")), 1);
    json_decref(root);
    assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
    const double bytes = 1024.0 * (double)usage.ru_maxrss;
    print_message("%u ops: %.0f MB\n", n, bytes / 1e6);
    assert_at_most(bytes, MOST_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_large_trace)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
