/* The events of a profiler as measurements (private to data): each shape of a matrix product and
 * each size of a collective is a bin that gathers the times of all its runs. */
#pragma once

#include "data/measured/measurement.h"

typedef struct {
    Measurement what; /* the thing measured, without times */
    GArray *seconds;  /* double: the time of each run */
} ProfileBin;

typedef struct {
    GHashTable *bin;  /* text -> ProfileBin */
    GPtrArray *order; /* ProfileBin, in the order in which they were first seen */
} Profile;

Profile *profile_new(void);
void profile_free(Profile *profile);

/* The bin of the product of matrices [a0, a1] and [b0, b1]; NULL if they have no product. */
ProfileBin *profile_product(Profile *profile, const double *a, const double *b,
                            const char *type);

enum { PROFILE_MAX_DIMS = 4, PROFILE_OPERANDS = 4 };

/* Sizes of an op's first operands; dims beyond PROFILE_MAX_DIMS are counted only. */
typedef struct {
    uint32_t n;
    uint32_t n_dims[PROFILE_OPERANDS];
    double dim[PROFILE_OPERANDS][PROFILE_MAX_DIMS];
} ProfileOperands;

/* The bin of an op of the profiler on each element of its first operand: norms, activations, sums
 * of equal operands, dropout and their gradients. NULL if it is none of these. The op's name may be
 * followed by a comma. */
ProfileBin *profile_elementwise(Profile *profile, const char *name,
                                const ProfileOperands *operands, const char *type);

/* The bin of a collective by its profiler's name, with the numbers that a rank has before and after
 * it, among `ranks`; NULL if it is none that Kilter prices, or has no size. */
ProfileBin *profile_collective(Profile *profile, const char *name, double before,
                               double after, double ranks, const char *type);

/* Adds the time of a run. */
void profile_add(ProfileBin *bin, double seconds);

/* Appends a measurement per bin that has times. A collective's time contains the waiting for late
 * ranks, so its lowest quartile stands for the median. Sets the range of their bytes. */
void profile_rows(const Profile *profile, const char *device, GArray *list,
                  double *smallest, double *largest);
