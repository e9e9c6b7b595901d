/* Files that are read as streams: plain or gzipped, whole or cut off. */
#include "data/base/error.h"
#include "data/base/stream.h"
#include "data/base/text.h"
#include "tests/support/memory_file.h"
#include "tests/test.h"

enum { SIZE = 200000 };

/* Bytes that a gzip file takes about half of. */
static char *sample(void)
{
    char *bytes = g_malloc(SIZE);
    uint32_t state = 1;
    for (uint32_t i = 0; i < SIZE; i++) {
        state = state * 1664525 + 1013904223;
        bytes[i] = "0123456789abcdef"[state >> 28];
    }
    return bytes;
}

/* The bytes of a file of these bytes, at most `most`, or NULL. */
static char *read_back(const void *bytes, gsize size, gsize most, gsize *length,
                       GError **error)
{
    int memory;
    g_autofree char *file = memory_file_open(bytes, size, &memory);
    char *text = file_read(file, most, length, error);
    close(memory);
    return text;
}

static void assert_reads(const void *bytes, gsize size, const char *want, gsize n)
{
    gsize length;
    g_autoptr(GError) error = NULL;
    g_autofree char *text = read_back(bytes, size, SIZE, &length, &error);
    assert_no_error(error);
    assert_int_equal(length, n);
    assert_memory_equal(text, want, n);
    assert_int_equal(text[n], 0);
}

static void assert_refused(const void *bytes, gsize size, gsize most, const char *words)
{
    gsize length;
    g_autoptr(GError) error = NULL;
    assert_null(read_back(bytes, size, most, &length, &error));
    assert_error(error, KILTER_ERROR_INPUT, words);
}

/* Packed bytes have neither a time nor a name, and are read like plain ones. */
static void test_pack(void **state)
{
    (void)state;
    static const char HEAD[] = {0x1f, (char)0x8b, 8, 0, 0, 0, 0, 0};
    g_autofree char *bytes = sample();
    gsize n = SIZE;
    g_autofree char *packed = stream_pack(bytes, &n);
    assert_in_range(n, SIZE / 2, SIZE / 5 * 3);
    assert_memory_equal(packed, HEAD, sizeof HEAD);
    assert_reads(packed, n, bytes, SIZE);
    assert_reads(bytes, SIZE, bytes, SIZE);
    assert_reads("\x1f", 1, "\x1f", 1);
    gsize none = 0;
    g_autofree char *empty = stream_pack("", &none);
    assert_reads(empty, none, "", 0);
    assert_reads("", 0, "", 0);
}

/* All members of a gzip file count; what is none after them does not. */
static void test_members(void **state)
{
    (void)state;
    g_autofree char *bytes = sample();
    gsize first = 70000, rest = SIZE - first;
    g_autofree char *one = stream_pack(bytes, &first),
                    *other = stream_pack(bytes + 70000, &rest);
    g_autoptr(GByteArray) file = g_byte_array_new();
    g_byte_array_append(file, (guint8 *)one, (guint)first);
    g_byte_array_append(file, (guint8 *)other, (guint)rest);
    assert_reads(file->data, file->len, bytes, SIZE);
    assert_refused(file->data, file->len - 1, SIZE, "expected a whole gzip file");
    g_byte_array_append(file, (const guint8 *)"\0\0no member", 11);
    assert_reads(file->data, file->len, bytes, SIZE);
}

/* A file that is cut off anywhere, damaged, or larger than it may be is refused. */
static void test_damage(void **state)
{
    (void)state;
    g_autofree char *bytes = sample();
    gsize n = SIZE;
    g_autofree char *packed = stream_pack(bytes, &n);
    for (gsize cut = 2; cut < n; cut += cut < 20 || n - cut < 10 ? 1 : n / 50)
        assert_refused(packed, MIN(cut, n - 1), SIZE, "expected a whole gzip file");
    assert_refused(packed, n, SIZE - 1, "expected at most 199999 bytes, got more");
    assert_refused(bytes, SIZE, SIZE - 1, "expected at most 199999 bytes, got more");
    packed[n - 8] ^= 1; /* of the checksum */
    assert_refused(packed, n, SIZE, "expected a whole gzip file");
    packed[n - 8] ^= 1;
    packed[n / 2] ^= 0x55;
    assert_refused(packed, n, SIZE, "expected a whole gzip file");
}

/* The first bytes can be read of a file that is cut off later. */
static void test_head(void **state)
{
    (void)state;
    enum { HEAD = 100 };
    int memory;
    char head[HEAD];
    g_autofree char *bytes = sample();
    gsize n = SIZE, length;
    g_autofree char *packed = stream_pack(bytes, &n);
    g_autofree char *file = memory_file_open(packed, n / 20, &memory);
    assert_true(stream_head(file, head, HEAD, &length));
    assert_int_equal(length, HEAD);
    assert_memory_equal(head, bytes, HEAD);
    close(memory);
    g_autofree char *none = memory_file_open(packed, 15, &memory);
    assert_false(stream_head(none, head, HEAD, &length));
    close(memory);
    assert_false(stream_head("/dev/null", head, HEAD, &length));
    assert_false(stream_head("/nowhere", head, HEAD, &length));
    g_autoptr(GError) error = NULL;
    assert_null(stream_open("/dev/zero", &error));
    assert_error(error, KILTER_ERROR_INPUT, "/dev/zero: expected a regular file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pack),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
