/* Which algorithm a collective takes when none is named. */
#include <math.h>

#include "sim/lower.h"

enum { ANY = UINT32_MAX };

#define KIB 1024.0
#define MIB (1024 * KIB)

/* The first row that fits decides: ranks and bytes up to these, and a power of two of
 * ranks where that is said. The shape follows NCCL's tuner and MPICH's switch points
 * (Thakur et al. 2005, doi:10.1177/1094342005051521): logarithmic algorithms while latency
 * decides, rings when bandwidth does. */
static const struct {
    SimTraffic traffic;
    uint32_t most_ranks;
    double most_bytes;
    bool power_of_two;
    SimAlgorithm algorithm;
} TUNING[] = {
    {SIM_ALL_REDUCE, 2, INFINITY, false, SIM_ALGORITHM_RING},
    {SIM_ALL_REDUCE, ANY, 64 * KIB, false, SIM_ALGORITHM_HALVING},
    {SIM_ALL_REDUCE, ANY, 1 * MIB, false, SIM_ALGORITHM_DOUBLE_TREE},
    {SIM_ALL_REDUCE, ANY, INFINITY, false, SIM_ALGORITHM_RING},
    {SIM_ALL_GATHER, ANY, 512 * KIB, true, SIM_ALGORITHM_HALVING},
    {SIM_ALL_GATHER, ANY, INFINITY, false, SIM_ALGORITHM_RING},
    {SIM_GROUPED_ALL_GATHER, ANY, INFINITY, false, SIM_ALGORITHM_RING},
    {SIM_REDUCE_SCATTER, ANY, 512 * KIB, true, SIM_ALGORITHM_HALVING},
    {SIM_REDUCE_SCATTER, ANY, INFINITY, false, SIM_ALGORITHM_RING},
    {SIM_GROUPED_REDUCE_SCATTER, ANY, INFINITY, false, SIM_ALGORITHM_RING},
    {SIM_ALL_TO_ALL, ANY, INFINITY, false, SIM_ALGORITHM_DIRECT},
    {SIM_BROADCAST, ANY, 64 * KIB, false, SIM_ALGORITHM_TREE},
    {SIM_BROADCAST, ANY, INFINITY, false, SIM_ALGORITHM_RING},
    {SIM_REDUCE, ANY, 64 * KIB, false, SIM_ALGORITHM_TREE},
    {SIM_REDUCE, ANY, INFINITY, false, SIM_ALGORITHM_RING},
    {SIM_SEND, ANY, INFINITY, false, SIM_ALGORITHM_DIRECT},
    {SIM_PUSH, ANY, INFINITY, false, SIM_ALGORITHM_DIRECT},
    {SIM_PULL, ANY, INFINITY, false, SIM_ALGORITHM_DIRECT},
};

SimAlgorithm sim_tuned_algorithm(const SimCollective *collective)
{
    const uint32_t n = collective->n;
    for (size_t i = 0; i < G_N_ELEMENTS(TUNING); i++)
        if (TUNING[i].traffic == collective->traffic && n <= TUNING[i].most_ranks &&
            collective->bytes <= TUNING[i].most_bytes &&
            (!TUNING[i].power_of_two || (n & (n - 1)) == 0))
            return TUNING[i].algorithm;
    g_assert_not_reached();
}

/* NCCL's buffer of 4 MiB (NCCL_BUFFSIZE) in its 8 steps (NCCL_STEPS). */
static const double PIECE_BYTES = 512 * KIB;

double lower_pieces(double bytes)
{
    return fmax(1, ceil(bytes / PIECE_BYTES));
}
