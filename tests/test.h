/* Included by every test: cmocka, and further asserts. These survive NDEBUG, print both operands
 * and the place, and are macros so that the place is the caller's.
 *
 *     assert_close(got, want, 1e-9)               |got - want| <= 1e-9 max(|got|, |want|)
 *     assert_error(error, KILTER_ERROR_INPUT, "unknown key")
 *     assert_no_error(error)
 *     const char *path = test_shared("measured/amp/trials.csv");
 *     if (!path)
 *         skip();                                 test_shared printed the reason
 */
#ifndef KILTER_TESTS_TEST_H
#define KILTER_TESTS_TEST_H

/* cmocka.h wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Fails the running test with `file:line: message`. */
#define TEST_FAIL_AT(file, line, ...) \
    do {                              \
        print_error(__VA_ARGS__);     \
        print_error("\n");            \
        _fail((file), (line));        \
    } while (0)

static inline void test_close(double got, double want, double tolerance, const char *text,
                              const char *file, int line)
{
    /* An infinity is close only to itself; a NaN is close to nothing. */
    double scale = fmax(fabs(got), fabs(want));
    if (got == want || (isfinite(scale) && fabs(got - want) <= tolerance * scale))
        return;
    TEST_FAIL_AT(file, line, "%s: %.17g != %.17g (relative difference %.3g > %.3g)", text,
                 got, want, fabs(got - want) / scale, tolerance);
}

static inline void test_at_most(double low, double high, const char *text,
                                const char *file, int line)
{
    if (low <= high)
        return;
    TEST_FAIL_AT(file, line, "%s: %.17g > %.17g", text, low, high);
}

static inline void test_error(const GError *error, int code, const char *part,
                              const char *file, int line)
{
    if (!error)
        TEST_FAIL_AT(file, line, "no error; expected code %d, \"%s\"", code, part);
    else if (error->code != code || !strstr(error->message, part))
        TEST_FAIL_AT(file, line, "error %d \"%s\"; expected code %d, \"%s\"", error->code,
                     error->message, code, part);
}

static inline void test_no_error(const GError *error, const char *file, int line)
{
    if (error)
        TEST_FAIL_AT(file, line, "error %d \"%s\"; expected none", error->code,
                     error->message);
}

/* Doubles are equal within `tolerance` relative to the larger one. */
#define assert_close(got, want, tolerance) \
    test_close((got), (want), (tolerance), #got " == " #want, __FILE__, __LINE__)

/* low <= high for doubles; a NaN fails. */
#define assert_at_most(low, high) \
    test_at_most((low), (high), #low " <= " #high, __FILE__, __LINE__)

/* The GError is set, has this code, and its message contains `part`. */
#define assert_error(error, code, part) \
    test_error((error), (code), (part), __FILE__, __LINE__)

#define assert_no_error(error) test_no_error((error), __FILE__, __LINE__)

/* Path of a file below the reference data ($KILTER_SHARED, by default ../shared beside the source),
 * or NULL after printing that it is absent. Lives until the test program ends. */
static inline const char *test_shared(const char *relative)
{
    const char *root = g_getenv("KILTER_SHARED");
    g_autofree char *path = g_build_filename(root ? root : "../shared", relative, NULL);
    if (g_file_test(path, G_FILE_TEST_EXISTS))
        return g_intern_string(path);
    print_message("skipped: no %s\n", path);
    return NULL;
}

/* Skips the test if the machine has no such program. To be called before the test owns anything:
 * skip() leaves it by a jump. */
static inline void test_needs(const char *program)
{
    char *path = g_find_program_in_path(program);
    g_free(path);
    if (!path) {
        print_message("skipped: no %s\n", program);
        skip();
    }
}

#endif
