/* Views of tensors of ONNX files: steps that bring a base into their order, and views that are
 * full. */
#include "data/formats/onnx/view.h"
#include "tests/test.h"

/* The sizes of a view's atoms, dim by dim. */
static char *sizes_of(const View *view)
{
    GString *text = g_string_new("");
    for (uint32_t d = 0; d < view->rank; d++) {
        g_string_append_c(text, '[');
        for (uint32_t i = 0; i < view->dim[d].n; i++)
            g_string_append_printf(text, " %" G_GUINT64_FORMAT,
                                   view->atom[view->dim[d].atom[i]].size);
        g_string_append(text, " ]");
    }
    return g_string_free(text, FALSE);
}

/* Steps bring the base into the order of the view, whose own sizes stay; at the end the view's
 * atoms are the base's, in its order. Returns how many. */
static int check_steps(const View *wanted)
{
    View view = *wanted;
    g_autofree char *merged = sizes_of(&view);
    ViewStep step[VIEW_MOST_STEPS];
    const int n = view_steps(&view, false, step);
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        view_step(&view, step[i], (TensorId)(2 + i));
        g_autofree char *now = sizes_of(&view);
        assert_string_equal(now, merged);
        assert_int_equal(view.base, 2 + i);
    }
    assert_int_equal(view.base_rank, view.rank);
    for (uint32_t d = 0, a = 0; d < view.rank; d++)
        for (uint32_t i = 0; i < view.dim[d].n; i++, a++) {
            assert_int_equal(view.dim[d].atom[i], a);
            assert_int_equal(view.atom[a].dim, d);
        }
    return n;
}

static void test_steps_of_views(void **state)
{
    (void)state;
    View view = view_of(1, 3, (const uint64_t[]){6, 12, 35}, true);
    assert_true(view_reshape(&view, 5, (const uint64_t[]){6, 3, 4, 5, 7}));
    assert_true(view_permute(&view, (const uint32_t[]){0, 3, 1, 2, 4}));
    g_autofree char *sizes = sizes_of(&view);
    assert_string_equal(sizes, "[ 6 ][ 5 ][ 3 ][ 4 ][ 7 ]");
    assert_true(view_reshape(&view, 3, (const uint64_t[]){6, 5, 84}));
    check_steps(&view);
}

/* A view that one op of the table makes takes one step. */
static void test_single_steps(void **state)
{
    (void)state;
    static const struct {
        uint32_t rank;
        uint64_t dim[4];
    } MADE[] = {{4, {6, 12, 5, 7}}, {4, {6, 3, 4, 35}}, {2, {6, 420}}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(MADE); i++) {
        View view = view_of(1, 3, (const uint64_t[]){6, 12, 35}, true);
        assert_true(view_reshape(&view, MADE[i].rank, MADE[i].dim));
        assert_int_equal(check_steps(&view), 1);
    }
    View view = view_of(1, 3, (const uint64_t[]){6, 12, 35}, true);
    assert_true(view_permute(&view, (const uint32_t[]){0, 2, 1}));
    assert_int_equal(check_steps(&view), 1);
    view = view_of(1, 4, (const uint64_t[]){6, 3, 4, 35}, true);
    assert_true(view_reshape(&view, 3, (const uint64_t[]){6, 12, 35}));
    assert_int_equal(check_steps(&view), 1);
}

/* Where only the last dim is wanted, the others may be in any order; their sizes stay, too. */
static void test_steps_to_the_last_dim(void **state)
{
    (void)state;
    View view = view_of(1, 3, (const uint64_t[]){6, 12, 35}, true);
    assert_true(view_reshape(&view, 5, (const uint64_t[]){6, 3, 4, 5, 7}));
    assert_true(view_permute(&view, (const uint32_t[]){3, 0, 1, 2, 4}));
    assert_true(view_reshape(&view, 4, (const uint64_t[]){5, 6, 3, 28}));
    ViewStep step[VIEW_MOST_STEPS];
    assert_int_equal(view_steps(&view, false, step), -1);
    const int n = view_steps(&view, true, step);
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        view_step(&view, step[i], (TensorId)(2 + i));
        g_autofree char *now = sizes_of(&view);
        assert_string_equal(now, "[ 5 ][ 6 ][ 3 ][ 4 7 ]");
    }
    assert_true(view_ends_like_base(&view, 1));
}

/* A dim of 1 is repeated while there is room for an atom. */
static void test_full_views(void **state)
{
    (void)state;
    View view = view_of(1, 3, (const uint64_t[]){6, 4096, 1}, false);
    View other = view;
    assert_true(view_repeat(&other, 2, 5));
    assert_int_equal(view_size(&other, 2), 5);
    assert_false(view_repeat(&other, 2, 5));
    while (view.n_atoms < VIEW_ATOMS)
        assert_true(view_split_atom(&view, (uint8_t)(view.n_atoms - 1), 2));
    assert_false(view_split_atom(&view, VIEW_ATOMS - 1, 2));
    assert_int_equal(view_size(&view, 1), 4096);
    assert_false(view_repeat(&view, 2, 5));
    assert_int_equal(view_size(&view, 2), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_of_views),
        cmocka_unit_test(test_single_steps),
        cmocka_unit_test(test_steps_to_the_last_dim),
        cmocka_unit_test(test_full_views),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
