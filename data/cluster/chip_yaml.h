/* A chip in the YAML of data sheets and of clusters' device types. Private to data. */
#pragma once

#include "data/cluster/members.h"

typedef struct {
    CHIP_SHEET_MEMBERS(MEMBER_TEXT)
    CHIP_PEAK_MEMBERS(MEMBER_TEXT)
    char *fp4; /* read only: peaks.fp4 of a device type */
} ChipText;

/* Those of a data sheet come first; it gives its peaks in a list. */
enum { CHIP_SHEET_NUMBERS = 12, CHIP_NUMBERS = 13 };
extern const Member CHIP_MEMBER[CHIP_NUMBERS];

/* Factors on the times of its kernels. */
typedef struct {
    KERNEL_FACTOR_MEMBERS(MEMBER_TEXT)
} KernelsText;

extern const Member KERNEL_FACTOR[KERNEL_CLASSES];
