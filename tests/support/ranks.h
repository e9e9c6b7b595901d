/* Test programs that mpirun starts on several ranks (tests/CMakeLists.txt: kilter_test_mpi). */
#ifndef KILTER_TESTS_SUPPORT_RANKS_H
#define KILTER_TESTS_SUPPORT_RANKS_H

#include <unistd.h>

#include "exec/exec.h"
#include "tests/test.h"

/* Runs a group of tests on every rank; a rank whose test fails ends the world, and a network that
 * hangs is ended after a limit of seconds. */
#define RUN_ON_RANKS(tests, limit_s)                                    \
    do {                                                                \
        alarm(limit_s);                                                 \
        uint32_t n_ranks, rank;                                         \
        g_autoptr(GError) start_error = NULL;                           \
        if (!exec_mpi(&start_error) ||                                  \
            !exec_mpi(NULL)->start(&n_ranks, &rank, &start_error)) {    \
            print_error("%s\n", start_error->message);                  \
            return 1;                                                   \
        }                                                               \
        const int failures = cmocka_run_group_tests(tests, NULL, NULL); \
        if (failures == 0)                                              \
            exec_mpi(NULL)->stop();                                     \
        return failures;                                                \
    } while (0)

#endif
