/* Profiles of layers: reading, refusals and their messages. */
#include "data/data.h"
#include <glib/gstdio.h>

#include "tests/test.h"

static LayerProfile *read_text(const char *text, GError **error)
{
    g_autofree char *file = NULL;
    const int descriptor = g_file_open_tmp("profile-XXXXXX.csv", &file, NULL);
    assert_true(descriptor >= 0);
    g_close(descriptor, NULL);
    assert_true(g_file_set_contents(file, text, -1, NULL));
    LayerProfile *profile = layer_profile_read(file, error);
    g_remove(file);
    return profile;
}

#define HEADER "mbs,gpu,model,tmp,layer_index,layer_kind,fwd_time_s_per_sample,note\n"

static void test_select(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(LayerProfile) profile =
        read_text(HEADER "1,V100 (p3.8xlarge),gpt2,2,1,transformer,0.002,x\n"
                         "1,V100 (p3.8xlarge),gpt2,2,0,embed,0.001,\n"
                         "1,V100 (p3.8xlarge),gpt2,2,2,aux,0.5,\n"
                         "4,V100 (p3.8xlarge),gpt2,2,1,transformer,0.0015,\n"
                         "1,T4,gpt2,2,1,transformer,0.005,\n\n",
                  &error);
    assert_no_error(error);
    g_autoptr(GPtrArray) times = layer_profile_select(profile, "v100", "gpt2", 2, 1);
    assert_int_equal(times->len, 2);
    const LayerTime *first = times->pdata[0], *second = times->pdata[1];
    assert_string_equal(first->kind, "embed");
    assert_close(second->forward_s, 0.002, 0);
    g_autoptr(GPtrArray) none = layer_profile_select(profile, "v10", "gpt2", 2, 1);
    assert_int_equal(none->len, 0);
    g_autoptr(GPtrArray) larger = layer_profile_select(profile, "v100", "gpt2", 2, 4);
    assert_int_equal(larger->len, 1);
}

static void expect_refused(const char *text, const char *message)
{
    g_autoptr(GError) error = NULL;
    assert_null(read_text(text, &error));
    assert_error(error, KILTER_ERROR_INPUT, message);
}

static void test_refusals(void **state)
{
    (void)state;
    expect_refused("gpu,model,tmp\n", ":1: expected a column 'layer_index'");
    expect_refused(HEADER "1,T4,gpt2,2,1,transformer\n", ":2: expected 8 columns, got 6");
    expect_refused(HEADER "1,T4,gpt2,0,1,transformer,1,\n",
                   ":2: tmp: expected a whole number from 1 to 4294967295, got '0'");
    expect_refused(HEADER "1,T4,gpt2,1,x,transformer,1,\n",
                   ":2: layer_index: expected a whole number");
    expect_refused(HEADER "1,T4,gpt2,1,1,transformer,-1,\n",
                   "fwd_time_s_per_sample: expected a number from 0 to 1e+06, got '-1'");
    expect_refused(HEADER "1,T4,gpt2,1,1,transformer,nan,\n",
                   "fwd_time_s_per_sample: expected a number");
    g_autoptr(GError) error = NULL;
    assert_null(layer_profile_read("/no/such.csv", &error));
    assert_error(error, KILTER_ERROR_INPUT, "/no/such.csv");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_select),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
