/* What every backend must do, on whatever ranks it has: exchanges move what they say, ops on shards
 * compute what the reference computes, whole plans too. `tolerance` is relative to the largest
 * element. */
#ifndef KILTER_TESTS_CONFORMANCE_BACKEND_SUITE_H
#define KILTER_TESTS_CONFORMANCE_BACKEND_SUITE_H

#include "exec/exec.h"

/* Runs all of it; fails the running cmocka test. Every process of the backend calls it. */
void backend_suite(ExecBackend *backend, double tolerance);

#endif
