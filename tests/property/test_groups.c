/* Groups of ops by METIS: the requested number, none of them empty, and no output of METIS, however
 * uneven the ops are. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "balance/balance.h"
#include "balance/mesh.h"
#include "data/data.h"
#include "tests/test.h"

static const char *const MODELS[] = {"vgg19:image=32,global_batch=96,classes=10",
                                     "tag-bert-small:global_batch=96",
                                     "tag-inceptionv3:global_batch=96", "vit:layers=2"};

/* Times from equal ones to very uneven ones, where a few ops take nearly all. */
static double *uneven_times(const Graph *graph, double spread, GRand *rand)
{
    double *time_s = g_new(double, graph_n_ops(graph));
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        time_s[id] = pow(10, -g_rand_double_range(rand, 0, 1) * spread - 3);
    return time_s;
}

static void check_groups(const Graph *graph, double spread, uint32_t n_groups,
                         GRand *rand)
{
    enum { MANY = 4096 };
    g_autoptr(GError) error = NULL;
    const uint32_t n_ops = graph_n_ops(graph);
    g_autofree double *time_s = uneven_times(graph, spread, rand);
    g_autofree uint16_t *group = g_new0(uint16_t, n_ops);
    uint32_t size[MANY] = {0};
    const uint32_t n = balance_groups_metis(graph, time_s, n_groups, 2, group, &error);
    assert_no_error(error);
    assert_int_equal(n, MIN(n_groups, n_ops / 2));
    for (OpId id = 0; id < n_ops; id++) {
        assert_true(group[id] < n);
        size[group[id]]++;
    }
    for (uint32_t g = 0; g < n; g++)
        assert_true(size[g] > 0);
}

static void test_silent_and_full(void **state)
{
    static const uint32_t N[] = {1, 2, 3, 7, 20, 40, 60, 61, 100, 200};
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(29);
    g_autoptr(GError) error = NULL;
    g_autofree char *file = NULL;
    const int to = g_file_open_tmp("said-XXXXXX", &file, &error);
    assert_no_error(error);
    fflush(stdout);
    const int out = dup(STDOUT_FILENO);
    dup2(to, STDOUT_FILENO);
    for (uint32_t m = 0; m < G_N_ELEMENTS(MODELS); m++) {
        g_autoptr(Graph) graph = model_build(MODELS[m], 1, NULL, &error);
        assert_no_error(error);
        for (uint32_t k = 0; k < G_N_ELEMENTS(N); k++)
            check_groups(graph, k % 4 * 2, N[k], rand);
    }
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    const off_t said = lseek(to, 0, SEEK_END);
    close(out);
    close(to);
    unlink(file);
    assert_int_equal(said, 0);
}

typedef struct {
    const Graph *graph;
    const double *time_s;
    uint16_t *group; /* as found with nobody beside */
    bool same;
} Job;

static gpointer group_often(gpointer data)
{
    enum { OFTEN = 6 };
    Job *job = data;
    const uint32_t n = graph_n_ops(job->graph);
    g_autofree uint16_t *group = g_new0(uint16_t, n);
    for (uint32_t k = 0; k < OFTEN && job->same; k++)
        job->same = balance_groups_metis(job->graph, job->time_s, 60, 2, group, NULL) &&
                    memcmp(group, job->group, n * sizeof *group) == 0;
    return NULL;
}

/* METIS draws from the only generator of the process: several threads at the same time find the
 * groups that each finds alone. */
static void test_threads(void **state)
{
    enum { THREADS = 3 };
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(31);
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = model_build(MODELS[2], 1, NULL, &error);
    assert_no_error(error);
    g_autofree double *time_s = uneven_times(graph, 2, rand);
    g_autofree uint16_t *group = g_new0(uint16_t, graph_n_ops(graph));
    assert_true(balance_groups_metis(graph, time_s, 60, 2, group, NULL) > 0);
    Job job[THREADS];
    GThread *thread[THREADS];
    for (uint32_t k = 0; k < THREADS; k++) {
        job[k] = (Job){graph, time_s, group, true};
        thread[k] = g_thread_new("group", group_often, &job[k]);
    }
    for (uint32_t k = 0; k < THREADS; k++)
        g_thread_join(thread[k]);
    for (uint32_t k = 0; k < THREADS; k++)
        assert_true(job[k].same);
}

/* Vertices at opposite ends of the numbers belong together: halves of halves keep their edges. */
static void test_pairs_stay(void **state)
{
    enum { PARTS = 4, VERTICES = 2 * PARTS };
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Mesh) mesh = mesh_new(VERTICES);
    double weight[VERTICES];
    uint32_t part[VERTICES];
    for (uint32_t a = 0; a < VERTICES; a++) {
        weight[a] = 1;
        for (uint32_t b = 0; b < a; b++)
            mesh_edge(mesh, a, b, a + b == VERTICES - 1 ? 100 : 1);
    }
    assert_true(mesh_bisect(mesh, weight, PARTS, 1.05, part, &error));
    for (uint32_t a = 0; a < PARTS; a++) {
        assert_int_equal(part[a], part[VERTICES - 1 - a]);
        for (uint32_t b = 0; b < a; b++)
            assert_int_not_equal(part[a], part[b]);
    }
}

/* Clusters of vertices with heavy edges, and light edges between them, are not cut. */
static void test_light_edges_are_cut(void **state)
{
    enum { PARTS = 4, SIZE = 8, VERTICES = PARTS * SIZE };
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(37);
    for (uint32_t k = 0; k < 20; k++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Mesh) mesh = mesh_new(VERTICES);
        const double unit = pow(10, g_rand_double_range(rand, -6, 9));
        double weight[VERTICES];
        uint32_t part[VERTICES], of[PARTS];
        for (uint32_t a = 0; a < VERTICES; a++) {
            weight[a] = unit;
            for (uint32_t b = 0; b < a; b++)
                mesh_edge(mesh, a, b,
                          unit * (a % PARTS == b % PARTS
                                      ? g_rand_double_range(rand, 50, 100)
                                      : g_rand_double_range(rand, 0.1, 1)));
        }
        if (k % 2)
            mesh_bisect(mesh, weight, PARTS, 1.05, part, &error);
        else
            mesh_partition(mesh, weight, PARTS, 0, part, &error);
        assert_no_error(error);
        for (uint32_t a = 0; a < VERTICES; a++) {
            if (a < PARTS)
                of[a] = part[a];
            assert_int_equal(part[a], of[a % PARTS]);
            for (uint32_t b = 0; a < PARTS && b < a; b++)
                assert_true(of[a] != of[b]);
        }
    }
}

/* Ops of the backward have the segment of their forward op, updates that of the first forward op
 * that reads the parameter, whichever of its inputs that is. */
static void test_follow(void **state)
{
    (void)state;
    enum { OPS_OF_MODELS = 5, N = 6 };
    g_autoptr(GRand) rand = g_rand_new_with_seed(17);
    for (uint32_t m = 0; m < OPS_OF_MODELS; m++) {
        g_autoptr(Graph) graph = NULL;
        if (m < G_N_ELEMENTS(MODELS)) {
            graph = model_build(MODELS[m], 1, NULL, NULL);
        } else { /* a parameter that comes first, and again as a second input */
            const OpAttr none = {0};
            graph = graph_new("first");
            const TensorId x = graph_input(graph, "x", DTYPE_F32, 2, (uint32_t[]){N, N}),
                           w = graph_parameter(graph, "w", 2, (uint32_t[]){N, N}),
                           labels =
                               graph_input(graph, "l", DTYPE_I64, 1, (uint32_t[]){N}),
                           a = graph_op(graph, OP_MULTIPLY, "a", none, 2,
                                        (TensorId[]){w, x}, NULL),
                           b = graph_op(graph, OP_MULTIPLY, "b", none, 2,
                                        (TensorId[]){a, w}, NULL),
                           s = graph_op(graph, OP_LOG_SOFTMAX, "s", none, 1, &b, NULL),
                           loss = graph_op(graph, OP_NLL_SUM, "loss", none, 2,
                                           (TensorId[]){s, labels}, NULL);
            graph_differentiate(graph, loss, OPTIMIZER_SGD);
            graph_seal(graph);
        }
        const uint32_t n = graph_n_ops(graph);
        g_autofree uint16_t *segment = g_new(uint16_t, n);
        for (OpId id = 0; id < n; id++)
            segment[id] = (uint16_t)g_rand_int_range(rand, 0, 1000);
        g_autofree uint16_t *before = g_memdup2(segment, n * sizeof *segment);
        balance_segments_follow(graph, segment);
        for (OpId id = 0; id < n; id++) {
            const Op *op = graph_get_op(graph, id);
            OpId of = op->pass == PASS_FORWARD ? id : op->of;
            for (OpId r = 0; op->pass == PASS_UPDATE && r < n; r++) {
                const Op *reads = graph_get_op(graph, r);
                bool is = false;
                for (uint32_t i = 0; i < reads->n_in; i++)
                    is |= reads->in[i] == op->in[0];
                if (is && reads->pass == PASS_FORWARD) {
                    of = r;
                    break;
                }
            }
            assert_int_equal(segment[id], before[of == GRAPH_NONE ? 0 : of]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silent_and_full),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_pairs_stay),
        cmocka_unit_test(test_light_edges_are_cut),
        cmocka_unit_test(test_follow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
