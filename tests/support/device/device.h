/* Emulated GPUs: the entry points of CUDA's runtime, cuBLAS and NCCL that the cuda backend calls
 * (include/), on this thread, and stricter than a GPU.
 *
 *   memory     Each device has its own, which work of a device without access cannot touch, nor, in
 *              every seventh seed, the host: that ends the program with a message that names the
 *              work, the allocation and both devices. Freed memory is reused at once where the API
 *              allows it, and is filled with NaN when it is freed and when it is allocated.
 *   streams    Work runs in any order that the API allows, by the seed: as late as possible, as
 *              early as possible, some streams early and others late, or at random.
 *   NCCL       A group that real ranks would wait in for ever ends the program with a message that
 *              says who waits for whom. Memory that a collective writes is NaN from its start to
 *              its end.
 *   kernels    The bodies of the backend's kernels, looped over blocks and threads; a warp has one
 *              thread, so shuffles between lanes are not emulated.
 *
 * There is one process: ranks in other processes are not emulated. A program that loads the backend
 * with this emulator as a module finds as many devices as KILTER_EMULATED_GPUS says. */
#ifndef KILTER_TESTS_DEVICE_H
#define KILTER_TESTS_DEVICE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From now on there are n devices; nothing of earlier ones may be in use. Every fifth seed has
 * devices that do not reach each other. */
void device_reset(uint32_t n, uint64_t seed);

/* The n-th allocation from now on, counted from 0, finds no memory. */
void device_fail_allocation(uint64_t n);

/* Counts since the last reset. */
typedef struct {
    uint64_t kernels, threads; /* launches, and their threads */
    uint64_t products;         /* calls of cuBLAS */
    uint64_t collectives;      /* of NCCL, on all ranks together */
    uint64_t moved_bytes;      /* that collectives wrote */
    uint64_t waits;            /* events that a stream waited for */
    uint64_t allocations;
    uint64_t reused;     /* allocations in freed memory */
    uint64_t peak_bytes; /* of the device with most in use at once */
} DeviceCounts;
DeviceCounts device_counts(void);

#ifdef __cplusplus
}
#endif
#endif
