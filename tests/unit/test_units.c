/* Quantities as people write them: data/base/units.h. */
#include "data/base/error.h"
#include "data/base/units.h"
#include "tests/test.h"

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        Quantity quantity;
        double value;
    } CASE[] = {
        {"16 GiB", QUANTITY_BYTES, 17179869184.0},
        {"16GiB", QUANTITY_BYTES, 17179869184.0},
        {" 1.5  kB ", QUANTITY_BYTES, 1500},
        {"0 B", QUANTITY_BYTES, 0},
        {".5 MiB", QUANTITY_BYTES, 524288},
        {"2 TB", QUANTITY_BYTES, 2e12},
        {"2 TiB", QUANTITY_BYTES, 2199023255552.0},
        {"10.4 Gb/s", QUANTITY_BANDWIDTH, 1.3e9},
        {"8 b/s", QUANTITY_BANDWIDTH, 1},
        {"800 kb/s", QUANTITY_BANDWIDTH, 1e5},
        {"1 Tb/s", QUANTITY_BANDWIDTH, 1.25e11},
        {"15.75 GB/s", QUANTITY_BANDWIDTH, 15.75e9},
        {"1 GiB/s", QUANTITY_BANDWIDTH, 1073741824.0},
        {"15.7 TFLOP/s", QUANTITY_RATE, 15.7e12},
        {"2e3 GFLOP/s", QUANTITY_RATE, 2e12},
        {"1 PFLOP/s", QUANTITY_RATE, 1e15},
        {"65 us", QUANTITY_TIME, 65e-6},
        {"2.5 ms", QUANTITY_TIME, 2.5e-3},
        {"7 ns", QUANTITY_TIME, 7e-9},
        {"3 s", QUANTITY_TIME, 3},
        {"5min", QUANTITY_TIME, 300},
        {"2 h", QUANTITY_TIME, 7200},
        {"1 d", QUANTITY_TIME, 86400},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        double value = NAN;
        g_autoptr(GError) error = NULL;
        assert_true(units_parse(CASE[i].text, CASE[i].quantity, &value, &error));
        assert_no_error(error);
        assert_close(value, CASE[i].value, 1e-15);
    }
}

static void test_parse_refuses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        Quantity quantity;
        const char *message;
    } CASE[] = {
        {"10.4 GiB", QUANTITY_BANDWIDTH,
         "expected a bandwidth such as 10.4 Gb/s, got '10.4 GiB'"},
        {"16", QUANTITY_BYTES, "expected an amount of bytes such as 16 GiB, got '16'"},
        {"", QUANTITY_TIME, "expected a time such as 100 us or 30 d, got ''"},
        {"us", QUANTITY_TIME, "expected a time such as 100 us or 30 d, got 'us'"},
        {"-1 us", QUANTITY_TIME, "expected a time such as 100 us or 30 d, got '-1 us'"},
        {"+1 us", QUANTITY_TIME, "expected a time such as 100 us or 30 d, got '+1 us'"},
        {"0x10 us", QUANTITY_TIME,
         "expected a time such as 100 us or 30 d, got '0x10 us'"},
        {"inf s", QUANTITY_TIME, "expected a time such as 100 us or 30 d, got 'inf s'"},
        {"nan s", QUANTITY_TIME, "expected a time such as 100 us or 30 d, got 'nan s'"},
        {"1e400 s", QUANTITY_TIME,
         "expected a time such as 100 us or 30 d, got '1e400 s'"},
        {"1,5 s", QUANTITY_TIME, "expected a time such as 100 us or 30 d, got '1,5 s'"},
        {"1 s s", QUANTITY_TIME, "expected a time such as 100 us or 30 d, got '1 s s'"},
        {"1e308 PFLOP/s", QUANTITY_RATE,
         "expected a rate such as 15.7 TFLOP/s, got '1e308 PFLOP/s'"},
        {"15.7 TFLOPS", QUANTITY_RATE,
         "expected a rate such as 15.7 TFLOP/s, got '15.7 TFLOPS'"},
        {"10.4 gb/s", QUANTITY_BANDWIDTH,
         "expected a bandwidth such as 10.4 Gb/s, got '10.4 gb/s'"},
        {"16 Gib", QUANTITY_BYTES,
         "expected an amount of bytes such as 16 GiB, got '16 Gib'"},
        {"1\ns\x01\xff", QUANTITY_TIME, "got '1 s \xef\xbf\xbd'"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        double value = 42;
        g_autoptr(GError) error = NULL;
        assert_false(units_parse(CASE[i].text, CASE[i].quantity, &value, &error));
        assert_error(error, KILTER_ERROR_INPUT, CASE[i].message);
        assert_true(value == 42);
    }
}

static void test_format(void **state)
{
    (void)state;
    static const struct {
        double value;
        Quantity quantity;
        const char *text;
    } CASE[] = {
        {1.3e9, QUANTITY_BANDWIDTH, "1.30 GB/s"},
        {17179869184.0, QUANTITY_BYTES, "16.0 GiB"},
        {12.34e-3, QUANTITY_TIME, "12.3 ms"},
        {6.015e12, QUANTITY_RATE, "6.01 TFLOP/s"},
        {123.4e12, QUANTITY_RATE, "123 TFLOP/s"},
        {0, QUANTITY_TIME, "0 s"},
        {0, QUANTITY_BYTES, "0 B"},
        {7, QUANTITY_BYTES, "7 B"},
        {1, QUANTITY_BANDWIDTH, "1 B/s"},
        {7.25, QUANTITY_BYTES, "7.25 B"},
        {1023, QUANTITY_BYTES, "0.999 KiB"},
        {1024, QUANTITY_BYTES, "1.00 KiB"},
        {999.4e6, QUANTITY_BANDWIDTH, "999 MB/s"},
        {999.6e6, QUANTITY_BANDWIDTH, "1.00 GB/s"},
        {9.996e-3, QUANTITY_TIME, "10.0 ms"},
        {99.96e-3, QUANTITY_TIME, "100 ms"},
        {-2.5e-6, QUANTITY_TIME, "-2.50 us"},
        {3600, QUANTITY_TIME, "60.0 min"},
        {7.5e5, QUANTITY_TIME, "208 h"},
        {1e7, QUANTITY_TIME, "116 d"},
        {1e-12, QUANTITY_TIME, "0.001 ns"},
        {INFINITY, QUANTITY_TIME, "inf s"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autofree char *text = units_format(CASE[i].value, CASE[i].quantity);
        assert_string_equal(text, CASE[i].text);
    }
}

/* Formatted values parse back to within their three digits, over the whole range of prefixes. */
static void test_format_parses_back(void **state)
{
    (void)state;
    static const struct {
        double low, high;
    } RANGE[] = {
        [QUANTITY_BYTES] = {1, 1e14},
        [QUANTITY_BANDWIDTH] = {1, 1e14},
        [QUANTITY_RATE] = {1, 1e17},
        [QUANTITY_TIME] = {1e-9, 1e2},
    };
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    for (uint32_t i = 0; i < 4000; i++) {
        Quantity quantity = (Quantity)(i % G_N_ELEMENTS(RANGE));
        double value = exp(g_rand_double_range(rand, log(RANGE[quantity].low),
                                               log(RANGE[quantity].high)));
        double back = 0;
        g_autoptr(GError) error = NULL;
        g_autofree char *text = units_format(value, quantity);
        units_parse(text, quantity, &back, &error);
        assert_no_error(error);
        assert_close(back, value, 5.1e-3);
    }
}

/* No minus before what is shown as zero; other numbers keep theirs. */
static void test_rounded(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *format, *text;
    } CASE[] = {{-0.4, "%.0f", "0"},
                {-0.0, "%.2f", "0.00"},
                {-0.6, "%.0f", "-1"},
                {0.25, "%.2f", "0.25"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autofree char *text = number_rounded(CASE[i].value, CASE[i].format);
        assert_string_equal(text, CASE[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),   cmocka_unit_test(test_parse_refuses),
        cmocka_unit_test(test_format),  cmocka_unit_test(test_format_parses_back),
        cmocka_unit_test(test_rounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
