/* Fused attention (Dao et al. 2022, Dao 2023, Shah et al. 2024): the scores of 128 queries with the
 * keys that they see are a tile's columns, computed by a processor without writing them. With d the
 * mean width of a key's and a value's head, q = ceil(queries/128), F a processor's FLOPs a clock, E
 * `rate`, x `exponential`, k0 `k_start`,
 *
 *     seen    = sum over the q tiles of the keys that a tile sees: all; causal and windowed, those before its queries
 *     cycles  = 128 (4 d/(F E) + x/16)/reach of a column: two products, and softmax on 16 exponentials a clock        (1)
 *     per     = b heads (seen + q k0)/S                                                                               (2)
 *     compute = (max(per, longest + k0) + [b heads q > S] tail (longest + k0)) cycles/clock                           (3)
 *     bytes   = 2 b s d (2 heads + 2 kv_heads + 4 kv_heads if K and V are also written to a serving cache)
 *     t       = start + max(compute, dram) + memory dram,  dram = bytes miss/bandwidth                                (4)
 *
 * The backward takes `backward` times the forward. */
#include <math.h>

#include "sim/cost/kernel_law.h"

enum { ROWS = 128, HOPPER = 90, BLACKWELL = 100, EXPONENTIALS = 16 };

/* The keys that all tiles of queries see, in whole tiles, and the most that one sees. */
static double attention_seen(const Kernel *kernel, double *longest)
{
    const double queries = kernel->attention.queries, keys = kernel->attention.keys,
                 tiles = ceil(queries / ROWS), all = ROWS * ceil(keys / ROWS),
                 span =
                     kernel->attention.window > 0
                         ? fmin(ROWS * ceil(kernel->attention.window / ROWS) + ROWS, all)
                         : all;
    *longest = span;
    if (!kernel->attention.causal)
        return tiles * span;
    /* Tile i of q sees (i + 1) tiles and those before the first query, but at most a window. */
    const double before = fmax(all - ROWS * tiles, 0),
                 rising = law_clip((span - before) / ROWS, 0, tiles);
    return rising * before + ROWS * rising * (rising + 1) / 2 + (tiles - rising) * span;
}

double law_attention_s(const KernelDevice *device, const Kernel *kernel,
                       KernelReport *report)
{
    const Chip *chip = &device->chip;
    KernelAttention library = kernel->attention.library;
    const bool hopper = chip->sm >= HOPPER && chip->sm < BLACKWELL,
               blackwell = chip->sm >= BLACKWELL && chip->sm < 120;
    if (library == KERNEL_ATTENTION_AUTO)
        library = hopper || blackwell ? KERNEL_ATTENTION_FA3 : KERNEL_ATTENTION_FA2;
    else if (library == KERNEL_ATTENTION_FA2 && blackwell)
        library = KERNEL_ATTENTION_FA3; /* PyTorch takes cuDNN's there */
    const AttentionLaw *law = &device->constants.attention[library];
    const double rate = law->rate * (hopper ? law->warp : 1);
    const double b = kernel->attention.batch, heads = kernel->attention.heads,
                 kv = kernel->attention.kv_heads, s = kernel->attention.queries,
                 d = (kernel->attention.head_qk + kernel->attention.head_v) / 2,
                 q = ceil(s / ROWS), S = chip->processors,
                 size = fmax(kernel_format_bytes(kernel->format), 1),
                 F = device->peak[kernel->format] / (S * chip->clock_hz);
    double longest;
    const double seen = attention_seen(kernel, &longest),
                 cycles = ROWS * (4 * d / (F * rate) + law->exponential / EXPONENTIALS) /
                          chip->reach,
                 per = b * heads * (seen + q * law->k_start) / S,
                 last = longest + law->k_start;
    double compute = (fmax(per, last) + (b * heads * q > S ? law->tail * last : 0)) *
                     cycles / chip->clock_hz;
    double bytes = size * b * d *
                   (2 * heads * s + (2 + (kernel->attention.cached ? 4 : 0)) * kv *
                                        kernel->attention.keys);
    const double miss = law_clip(log2(bytes / (0.62 * chip->l2_bytes)) + 0.5, 0.1, 1);
    double dram = bytes * miss / chip->bandwidth;
    double least = cycles / ROWS / (S * chip->clock_hz); /* of a pair of query and key */
    if (kernel->backward) {
        const double times = kernel->attention.head_qk > kernel->attention.head_v
                                 ? law->backward_wide
                                 : law->backward;
        compute *= times;
        least *= times;
        dram *= times;
        bytes *= 2;
    }
    if (report) {
        report->compute_s = compute;
        report->memory_s = dram;
        report->start_s = law->start * 1e-6;
        report->bytes = bytes;
        report->tiles = b * heads * q;
        report->waves = ceil(report->tiles / S);
        report->tile_m = ROWS;
        const double pairs = kernel->attention.causal
                                 ? s * (kernel->attention.keys - (s - 1) / 2)
                                 : s * kernel->attention.keys;
        const double inside = kernel->attention.window > 0
                                  ? fmin(pairs, s * kernel->attention.window)
                                  : pairs;
        report->flops = (kernel->backward ? 2.5 : 1) * 4 * b * heads * d * inside;
        report->least_s = b * heads * inside * least;
    }
    return law->start * 1e-6 * (kernel->backward ? 2 : 1) + fmax(compute, dram) +
           law->memory * dram;
}
