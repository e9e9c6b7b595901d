/* TAG's strategies on four real ranks, run by mpirun: device groups that overlap, so that a rank is
 * in several at once, with servers, duplicates and transfers between them. */
#include "exec/exec.h"
#include "tests/support/plan_of.h"
#include "tests/support/ranks.h"
#include "tests/support/tag_setup.h"

enum { TIME_LIMIT_S = 100, RANKS = 4, ROUNDS = 6 };

static const char CLUSTER[] = "star:hosts=4,bandwidth=1Gb/s,latency=5us";
static const char *const MODELS[] = {
    "vit:layers=1,hidden=8,heads=2,ffn=12,image=8,global_batch=24",
    "bert-moe:layers=1,hidden=4,heads=2,ffn=6,seq=4,vocab=10,global_batch=24,experts=4",
};

/* Whether a device is in two groups that are not the same devices. */
static bool overlaps(const Program *program)
{
    uint32_t groups_of[RANKS] = {0};
    for (uint32_t g = 0; g < program->n_groups; g++) {
        const DeviceGroup *group = &program->group[g];
        for (uint32_t k = 0; k < group->n_replicas * group->n_devices; k++)
            groups_of[group->device[k]]++;
    }
    for (uint32_t j = 0; j < RANKS; j++)
        if (groups_of[j] > 1)
            return true;
    return false;
}

/* The result is the same on all ranks, since each draws with the same seed. */
static void test_overlapping_groups(void **state)
{
    (void)state;
    g_autoptr(ExecBackend) backend = exec_mpi(NULL)->backend_new(sizeof(double));
    g_autoptr(GRand) rand = g_rand_new_with_seed(31);
    uint32_t n_overlap = 0;
    assert_int_equal(backend->n_ranks, RANKS);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        g_auto(Setup) s = setup_new(MODELS[round % 2], CLUSTER, 5, rand);
        Program *program = random_strategy(&s, rand, false);
        g_autoptr(GError) error = NULL;
        n_overlap += overlaps(program);
        g_autoptr(Plan) plan = plan_of(s.graph, RANKS, round % 3 == 0, program);
        g_auto(ExecVerdict) verdict = {0};
        exec_verify(backend, plan, s.graph, 3, EXEC_TOLERANCE, &verdict, &error);
        assert_no_error(error);
        if (!verdict.right)
            fail_msg("round %u: error %g of %s; first wrong: %s", round, verdict.error,
                     verdict.where, verdict.wrong_tensor);
    }
    assert_true(n_overlap >= ROUNDS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_overlapping_groups)};
    RUN_ON_RANKS(tests, TIME_LIMIT_S);
}
