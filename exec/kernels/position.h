/* Values that depend on a token's place in its sequence, for kernels on the host and on GPUs
 * (private to exec): rotary embeddings, which keys a query sees, and the penalty of distance. */
#pragma once

#include <math.h>
#include <stdbool.h>

#include "exec/kernels/mask.h"

/* The base of the angles; it changes numbers, neither shapes nor work. */
#define ROTARY_BASE 10000.0

/* The angle in radians by which pair `i` of the `n` rotated elements turns at a position (Su et al.
 * 2021, Eq. 15). */
EXEC_INLINE double rotary_angle(uint64_t position, uint64_t i, uint64_t n)
{
    return (double)position * pow(ROTARY_BASE, -2.0 * (double)i / (double)n);
}

/* The first or `second` element of a pair after its rotation by `angle`; `sign` -1 turns back.
 * Elements first + i and first + n / 2 + i of the last dim are a pair. */
EXEC_INLINE double rotary_element(const double pair[2], bool second, double angle,
                                  double sign)
{
    const double c = cos(angle), s = sign * sin(angle);
    return second ? pair[0] * s + pair[1] * c : pair[0] * c - pair[1] * s;
}

/* Whether query q sees key k: with `causal` no later key, with a span only the last `span` keys. */
EXEC_INLINE bool attention_sees(bool causal, uint64_t span, uint64_t q, uint64_t k)
{
    return !causal || (k <= q && (span == 0 || k + span > q));
}

/* The amount by which a step of distance lowers the scores of a head, counted from 0 among `heads`
 * heads. */
EXEC_INLINE double attention_slope(bool alibi, uint64_t head, uint64_t heads)
{
    return alibi ? exp2(-8.0 * (double)(head + 1) / (double)heads) : 0;
}

/* Which of `rows` distances query q and key k have: their difference, cut off on both sides. With
 * `far`, distances beyond a quarter of the rows share them by their logarithms, up to far - 1 (He
 * et al. 2021, v3). */
EXEC_INLINE uint64_t attention_distance(uint64_t q, uint64_t k, uint64_t rows,
                                        uint64_t far)
{
    const double side = q < k ? -1 : 1, middle = (double)(rows / 4);
    double distance = side * ((double)q - (double)k);
    if (far > rows / 4 + 1 && middle > 0 && distance > middle)
        distance = middle + ceil(log(distance / middle) /
                                 log(((double)far - 1) / middle) * (middle - 1));
    const double row = side * distance + (double)(rows / 2);
    return row < 0 ? 0 : row >= (double)rows ? rows - 1 : (uint64_t)row;
}
