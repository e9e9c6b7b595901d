/* TAG's network: its gradient against finite differences, its priors, and its file. */
#include <glib/gstdio.h>
#include <math.h>

#include "synth/synth.h"
#include "tests/support/tag_learning.h"
#include "tests/test.h"

enum { N_GROUPS = 5, N_SETS = 3, N_ACTIONS = 7, N_FLOWS = 6 };

static double *random_numbers(GRand *rand, uint32_t n)
{
    double *x = g_new(double, n);
    for (uint32_t i = 0; i < n; i++)
        x[i] = g_rand_double_range(rand, -1, 1);
    return x;
}

static uint32_t *pairs(uint32_t n, uint32_t m, bool first)
{
    uint32_t *x = g_new(uint32_t, n * m);
    for (uint32_t i = 0; i < n * m; i++)
        x[i] = first ? i / m : i % m;
    return x;
}

/* Group 4 gets no tensor. */
static NetView *random_view(GRand *rand)
{
    static const uint32_t from[N_FLOWS] = {0, 0, 1, 2, 3, 4},
                          to[N_FLOWS] = {1, 2, 3, 3, 0, 0};
    NetView *v = g_new0(NetView, 1);
    *v = (NetView){.n_groups = N_GROUPS,
                   .n_sets = N_SETS,
                   .n_actions = N_ACTIONS,
                   .n_flows = N_FLOWS,
                   .next = 2,
                   .group = random_numbers(rand, N_GROUPS * NET_GROUP),
                   .set = random_numbers(rand, N_SETS * NET_SET),
                   .action = random_numbers(rand, N_ACTIONS * NET_ACTION),
                   .member = random_numbers(rand, N_ACTIONS * N_SETS),
                   .from = g_memdup2(from, sizeof from),
                   .to = g_memdup2(to, sizeof to),
                   .flow = random_numbers(rand, N_FLOWS),
                   .of_group = pairs(N_GROUPS, N_SETS, true),
                   .of_set = pairs(N_GROUPS, N_SETS, false),
                   .placed = random_numbers(rand, N_GROUPS * N_SETS * NET_PLACED),
                   .link_from = pairs(N_SETS, N_SETS, true),
                   .link_to = pairs(N_SETS, N_SETS, false),
                   .link = random_numbers(rand, N_SETS * N_SETS * NET_LINK)};
    return v;
}

static const double TARGET[N_ACTIONS] = {0.5, 0, 0.25, 0, 0.125, 0.125, 0};

static double loss_of(const TagNet *net, const NetView *view)
{
    double prior[N_ACTIONS], loss = 0;
    tag_net_priors(net, view, prior);
    for (uint32_t a = 0; a < N_ACTIONS; a++)
        loss -= TARGET[a] > 0 ? TARGET[a] * log(prior[a]) : 0;
    return loss;
}

/* Checks every 13th weight, so that all kinds are among them. */
static void check_gradient(NetShape shape)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(3);
    g_autoptr(TagNet) net = tag_net_new(shape, 4);
    g_autoptr(NetView) view = random_view(rand);
    g_autofree double *gradient = g_new0(double, net->n);
    const double loss = tag_net_learn(net, view, TARGET, gradient), step = 1e-5;
    uint32_t large = 0;
    assert_close(loss, loss_of(net, view), 1e-12);
    for (uint32_t w = 0; w < net->n; w += 13) {
        double *weight = &net->weight[w];
        const double was = *weight;
        *weight = was + step;
        const double above = loss_of(net, view);
        *weight = was - step;
        const double below = loss_of(net, view);
        *weight = was;
        const double difference = (above - below) / (2 * step);
        if (fabs(difference - gradient[w]) > 1e-6 + 1e-5 * fabs(difference))
            fail_msg("weight %u: gradient %g, difference %g", w, gradient[w], difference);
        large += fabs(difference) > 1e-3;
    }
    assert_true(large > 300);
}

static void test_gradient(void **state)
{
    (void)state;
    check_gradient(NET_SHAPE);
    check_gradient((NetShape){3, 4, 16});
}

static void test_priors(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(5);
    g_autoptr(TagNet) net = tag_net_new(NET_SHAPE, 6);
    g_autoptr(NetView) view = random_view(rand);
    double prior[N_ACTIONS], sum = 0;
    tag_net_priors(net, view, prior);
    for (uint32_t a = 0; a < N_ACTIONS; a++) {
        assert_true(prior[a] > 0);
        sum += prior[a];
    }
    assert_close(sum, 1, 1e-12);
}

static void test_file(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    g_autoptr(TagNet) net = tag_net_new((NetShape){3, 2, 8}, 8);
    g_autofree char *text = tag_net_text(net, "# a comment\n");
    g_autofree char *file = NULL;
    const int fd = g_file_open_tmp("network-XXXXXX", &file, &error);
    assert_no_error(error);
    g_close(fd, NULL);
    assert_true(g_file_set_contents(file, text, -1, NULL));
    g_autoptr(TagNet) again = tag_net_read(file, &error);
    assert_no_error(error);
    g_autofree char *text_again = tag_net_text(again, "# a comment\n");
    assert_string_equal(text, text_again);
    /* A file with anything cut off, added, or changed to something that is not a number is
     * refused. */
    for (uint32_t k = 0; k < 200; k++) {
        g_autoptr(GString) bad = g_string_new(text);
        const uint32_t at = (uint32_t)g_rand_int_range(rand, 14, (gint32)bad->len - 16);
        if (k % 3 == 0)
            g_string_truncate(bad, at);
        else if (k % 3 == 1)
            g_string_append(bad, "1 2 3\n");
        else
            bad->str[at] = 'q';
        assert_true(g_file_set_contents(file, bad->str, (gssize)bad->len, NULL));
        g_autoptr(GError) wrong = NULL;
        g_autoptr(TagNet) none = tag_net_read(file, &wrong);
        assert_null(none);
        assert_error(wrong, KILTER_ERROR_INPUT, "expected");
    }
    static const char *const SHAPES[] = {"shape 0 1 32\n1\n", "shape 2 17 32\n1\n",
                                         "shape 2 1 4000000000\n1\n"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(SHAPES); i++) {
        assert_true(g_file_set_contents(file, SHAPES[i], -1, NULL));
        g_autoptr(GError) wrong = NULL;
        assert_null(tag_net_read(file, &wrong));
        assert_error(wrong, KILTER_ERROR_INPUT, "1: expected from 1 to 16 layers");
    }
    g_unlink(file);
}

static void keep_weights(void *context, const TagNet *net, uint32_t epoch, double loss)
{
    (void)epoch;
    assert_true(isfinite(loss));
    memcpy(context, net->weight, net->n * sizeof(double));
}

/* A few epochs: bit for bit the same weights by 1, 2 and 8 threads, and lessons that were
 * learnt. */
static void test_training(void **state)
{
    enum { LESSONS = 11 };
    (void)state;
    static const uint32_t threads[] = {1, 2, 8};
    g_autoptr(GRand) rand = g_rand_new_with_seed(9);
    NetLesson *lesson[LESSONS];
    for (uint32_t i = 0; i < LESSONS; i++) {
        lesson[i] = g_new0(NetLesson, 1);
        lesson[i]->view = random_view(rand);
        lesson[i]->target = g_new0(double, N_ACTIONS);
        lesson[i]->target[i % N_ACTIONS] = 0.75;
        lesson[i]->target[(i + 2) % N_ACTIONS] = 0.25;
    }
    const NetShape shape = {2, 2, 32};
    g_autoptr(TagNet) first = tag_net_empty(shape), other = tag_net_empty(shape);
    for (uint32_t t = 0; t < G_N_ELEMENTS(threads); t++) {
        g_autoptr(TagNet) net = tag_net_new(shape, 10);
        const double before = tag_net_mean_loss(net, lesson, LESSONS);
        const NetTraining training = {.epochs = 6,
                                      .batch = 4,
                                      .rate = 1e-3,
                                      .seed = 3,
                                      .threads = threads[t],
                                      .after = keep_weights,
                                      .context = t == 0 ? first->weight : other->weight};
        tag_net_train(net, lesson, LESSONS, &training);
        assert_true(tag_net_mean_loss(net, lesson, LESSONS) < 0.8 * before);
        if (t > 0)
            assert_memory_equal(first->weight, other->weight, net->n * sizeof(double));
    }
    for (uint32_t i = 0; i < LESSONS; i++)
        net_lesson_free(lesson[i]);
}

/* Without feedback two views that differ in it alone have the same priors. */
static void test_forgetting(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(11);
    g_autoptr(TagNet) net = tag_net_new(NET_SHAPE, 12);
    g_autoptr(NetView) a = random_view(rand);
    double with[N_ACTIONS], without[N_ACTIONS], again[N_ACTIONS];
    tag_net_priors(net, a, with);
    net_view_forget_feedback(a);
    tag_net_priors(net, a, without);
    assert_true(memcmp(with, without, sizeof with) != 0);
    net_view_forget_feedback(a);
    tag_net_priors(net, a, again);
    assert_memory_equal(without, again, sizeof again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient),   cmocka_unit_test(test_priors),
        cmocka_unit_test(test_file),       cmocka_unit_test(test_training),
        cmocka_unit_test(test_forgetting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
