/* The contract of every backend, on any number of ranks: exchanges move the right data, and ops on
 * shards and whole plans compute the results of the reference. `tolerance` is relative to the
 * largest element. */
#ifndef KILTER_TESTS_CONFORMANCE_BACKEND_SUITE_H
#define KILTER_TESTS_CONFORMANCE_BACKEND_SUITE_H

#include "exec/exec.h"

/* Random shapes of each op. */
enum { BACKEND_SHAPES = 4 };

/* Runs all of it, plans in numbers of two bytes with exec_tolerance; fails the running cmocka
 * test. Every process of the backend calls it. shape: the one in which every op runs under all of
 * its rules; BACKEND_SHAPES: all. */
void backend_suite(ExecBackend *backend, double tolerance, uint32_t shape);

/* A small part of it, without single ops: other exchanges and plans for each seed. */
void backend_traffic(ExecBackend *backend, double tolerance, uint32_t seed);

#endif
