/* Matrix products by tiles: Y[b,m,n] = X[b,m,k] W[b,k,n]. With a tile of w columns and h rows of Y,
 * S processors, K the sum, s the parts into which it is split,
 *
 *     tiles = b ceil(n/w) ceil(m/h) s      z = 1/w + 1/h      k = K, or max(ceil(K/s), least part)
 *     e     = share / (1 + tile_half z), at most 0.98, less for unaligned and old kernels
 *     c     = tiles/S + tail (ceil(tiles/S) - tiles/S), at least 1: tiles of the busiest processor              (1)
 *     fill  = x (16 + x0) / (16 (x + x0)): its resident warps x hide latency, x0 = warps_half                   (2)
 *     full  = 2 c w h (k + k_start) S / (peak e fill)                                                           (3)
 *     power = 2 tiles w h (k + k_start) (1 + energy_tile z) / (flops_w 12/nm e/0.95 (W - idle))
 *             + dram memory_j / (W - idle): the board's power; processors without a tile draw little            (4)
 *     dram  = once miss + (again - once) part of the operands that L2 cannot hold: again are the rows and
 *             columns that each wave reads anew                                                                 (5)
 *     t^2   = max(full, power)^2 + (dram/bandwidth)^2 + (tiles (w + h) k bytes/L2's rate)^2                     (6)
 *
 * and where the sum is split, a pass that adds its parts. The time is the least over the tiles and
 * splits that the library has. Rates of tiles follow from the reuse of operands; waves and tails as
 * in Volkov and Demmel 2008 and in NVIDIA's guide to matrix multiplication. */
#include <math.h>

#include "sim/cost/kernel_law.h"

typedef struct {
    double width, height;
} Tile;

/* Of lanes and of matrix units; the last of matrix units only with 5 and more bits of area a
 * thread, the last two of lanes for convolutions with few channels. */
static const Tile LANE_TILE[] = {{128, 128}, {128, 64}, {64, 128}, {64, 64},  {32, 128},
                                 {128, 32},  {64, 32},  {32, 32},  {16, 128}, {16, 64}};
static const Tile TENSOR_TILE[] = {{256, 128}, {128, 256}, {128, 128}, {256, 64},
                                   {64, 256},  {128, 64},  {64, 128},  {64, 64}};
enum { VOLTA = 70, AMPERE = 80, PASCAL_ONE = 61, NARROW = 32 };

/* Which tiles the library of that generation has. */
static bool has_tile(const KernelDevice *device, const LawProduct *product,
                     const Tile *tile, bool aligned)
{
    const uint32_t sm = device->chip.sm;
    const double area = tile->width * tile->height;
    if (product->overlap > 0)
        return true;
    if (tile->width < NARROW)
        return false;
    if (device->chip.gcn || sm == 0)
        return true;
    if (product->batched)
        return sm < VOLTA     ? tile->width == 128 && tile->height == 64
               : sm < AMPERE  ? area <= 8192
               : sm == AMPERE ? area == 16384
                              : true;
    return sm >= VOLTA                   ? true
           : sm == PASCAL_ONE && aligned ? area == 16384
                                         : area == 4096;
}

/* The parts of a product's time that no tile changes. */
typedef struct {
    const KernelDevice *device;
    const ProductLaw *law;
    const LawProduct *product;
    double S, peak, half, most_e, factor; /* e = min(share/(1 + half z), most) factor */
    double watts, flops_j;                /* above idle, at e = 0.95 and z = 0 */
    double once, miss, lost, streams;     /* bytes; parts; bytes/s */
    double cache;                         /* bytes/s of all processors */
    double least_part, overlap;
    bool tensor;
} ProductCase;

typedef struct {
    double t, full, power, dram, cache, split;
    double tiles, splits;
    Tile tile;
} ProductChoice;

static ProductCase product_case(const KernelDevice *device, const LawProduct *p)
{
    const Chip *chip = &device->chip;
    const double units = 16 / p->in_bytes; /* elements of a load of 16 bytes */
    const bool loads = fmod(p->k, units) == 0 && fmod(p->n, units) == 0;
    /* Batches of odd operands, such as heads of 150, find no kernel of matrix units: they are added
     * up in fp32 on lanes. Parts of an element are of searches, not odd. */
    const bool lanes = p->batched && !loads && p->in_bytes == 2 && chip->gcn == 0 &&
                       fmod(p->k, 1) == 0 && fmod(p->n, 1) == 0;
    const bool tensor = p->format != KERNEL_FP32 && !lanes;
    const ProductLaw *law = tensor ? &device->constants.tensor : &device->constants.simt;
    const LaneLaw *lane = &device->constants.lane;
    const bool aligned =
        tensor || lanes ? loads : fmod(p->k, 4) == 0 && fmod(p->n, 4) == 0;
    const bool pascal = !tensor && chip->gcn == 0 && chip->sm > 0 && chip->sm < VOLTA;
    const bool odd = pascal && chip->sm == PASCAL_ONE && !p->batched && !aligned;
    const double overlap = fmax(p->overlap, 1),
                 operands = p->in_bytes * (p->m * p->k / overlap + p->k * p->n);
    ProductCase c = {.device = device,
                     .law = law,
                     .product = p,
                     .S = chip->processors,
                     .peak = device->peak[tensor ? p->format : KERNEL_FP32] *
                             (tensor ? 1 : chip->issue),
                     .half = pascal ? lane->pascal_tile : law->tile_half,
                     .most_e = 0.98,
                     .tensor = tensor,
                     .overlap = overlap,
                     .least_part = tensor ? 256 : 128};
    c.factor = (aligned ? 1 : law->unaligned) * (odd ? lane->pascal_odd : 1) *
               (chip->gcn                           ? law->amd
                : chip->sm > 0 && chip->sm < AMPERE ? law->early
                                                    : 1) /
               (pascal && !p->batched ? 1 + p->k / lane->pascal_row : 1);
    c.watts = fmax(device->power_w - law->idle_w, 0.1 * device->power_w);
    /* units that AMD's library leaves idle draw little: they are in e, and not in the energy */
    c.flops_j = law->flops_w * 1e9 * 12 / chip->process_nm / (chip->gcn ? law->amd : 1) *
                pow(1.5e9 / chip->clock_hz, law->energy_clock) *
                (tensor ? pow(2 / p->in_bytes, law->energy_bytes) : 1);
    c.once = p->batch * (operands + p->out_bytes * p->m * p->n);
    c.miss = law_clip(log2(c.once / (chip->l2_bytes * law->cache_keep)) + 0.5, 0.02, 1);
    c.lost = fmax(0, 1 - chip->l2_bytes / operands);
    c.streams = chip->bandwidth * law->bandwidth;
    c.cache = law->cache * c.S * chip->clock_hz;
    return c;
}

/* Equations (1) to (6) for one tile and split. Whether more splits may be worth it. */
static bool product_try(const ProductCase *c, const Tile *tile, double splits,
                        ProductChoice *best)
{
    const ProductLaw *law = c->law;
    const LawProduct *p = c->product;
    const double area = tile->width * tile->height, across = ceil(p->n / tile->width),
                 down = p->batch * ceil(p->m / tile->height),
                 tiles = across * down * splits, z = 1 / tile->width + 1 / tile->height;
    if (splits > 1 && across * down >= 2 * c->S)
        return false;
    const double k = splits == 1 ? p->k : MAX(ceil(p->k / splits), c->least_part);
    double e = law->share / (1 + c->half * z) * (p->batched ? law->batched : 1);
    e = MIN(e * c->factor, c->most_e);
    const double waves = ceil(tiles / c->S),
                 busiest = MAX(tiles / c->S + law->tail * (waves - tiles / c->S), 1);
    const double warps = area / 2048, most = law_clip(16 / warps, 1, c->tensor ? 4 : 8),
                 x = MIN(waves, most) * warps,
                 fill = x * (16 + law->warps_half) / (16 * (x + law->warps_half));
    const double full =
        2 * busiest * area * (k + law->k_start) * c->S / (c->peak * e * fill);
    if (full > best->t * (1 + 1e-9)) /* the time is no less */
        return true;
    const double w = MIN(c->S * most, tiles), wide = MIN(across, w),
                 high = law_clip(w / across, 1, down);
    const double again = tiles / w *
                         (wide * tile->width + high * tile->height / c->overlap) *
                         p->in_bytes * k,
                 dram = c->once * c->miss + MAX(again - c->once, 0) * c->lost;
    const double flops =
        2 * tiles * area * (k + law->k_start) * (1 + law->energy_tile * z);
    double power =
        (flops / (c->flops_j * e / 0.95) + dram * law->memory_j * 1e-12) / c->watts;
    if (c->device->chip.sustained > 0 && !c->tensor)
        power =
            flops / (1 + law->energy_tile / 64) * 0.95 / e / c->device->chip.sustained;
    double busy = MAX(full, power);
    if (p->alone && power > full)
        busy = full + (power - full) * law_clip(log(25 * full / (law->burst * 1e-3)) /
                                                    log(law->burst_width),
                                                0, 1);
    const double memory = dram / c->streams,
                 cache =
                     tiles * (tile->width + tile->height) * p->in_bytes * k / c->cache,
                 split = splits > 1
                             ? 4 * p->batch * p->m * p->n * (splits + 1) / c->streams +
                                   law->split * 1e-6
                             : 0,
                 t = sqrt(busy * busy + memory * memory + cache * cache) + split;
    if (t < best->t)
        *best =
            (ProductChoice){t, full, power, memory, cache, split, tiles, splits, *tile};
    return true;
}

double law_power_rate(const KernelDevice *device, KernelFormat format)
{
    const LawProduct ideal = {.in_bytes = kernel_format_bytes(format), .format = format};
    const ProductCase c = product_case(device, &ideal);
    const Tile *tile = &TENSOR_TILE[0];
    const double z = 1 / tile->width + 1 / tile->height,
                 e = fmin(c.law->share / (1 + c.half * z) * c.factor, c.most_e);
    return c.tensor ? c.watts * c.flops_j * e / 0.95 / (1 + c.law->energy_tile * z)
                    : INFINITY;
}

/* Seconds of (3) and (4) that no cutting of the product into parts avoids: each part takes at least
 * its FLOPs at the best tile's rate where it is aligned, fills all warps and ends in no tail, and a
 * shorter sum starts as often. */
static double product_least_as_s(const KernelDevice *device, const LawProduct *product,
                                 KernelFormat format)
{
    const LawProduct ideal = {
        .in_bytes = product->in_bytes, .out_bytes = product->out_bytes, .format = format};
    const ProductCase c = product_case(device, &ideal);
    const ProductLaw *law = c.law;
    const double starts = 1 + law->k_start / product->k;
    double rate = 0;
    for (uint32_t i = 0; i < G_N_ELEMENTS(TENSOR_TILE); i++) {
        const Tile *tile = c.tensor ? &TENSOR_TILE[i] : &LANE_TILE[i];
        const double z = 1 / tile->width + 1 / tile->height,
                     warps = tile->width * tile->height / 2048,
                     x = law_clip(16 / warps, 1, c.tensor ? 4 : 8) * warps,
                     fill = x * (16 + law->warps_half) / (16 * (x + law->warps_half)),
                     e = fmin(law->share / (1 + c.half * z) * fmax(law->batched, 1) *
                                  c.factor,
                              c.most_e),
                     drawn = 1 + law->energy_tile * z,
                     power = c.watts * c.flops_j * e / 0.95 / drawn,
                     sustained = device->chip.sustained * e / 0.95 *
                                 (1 + law->energy_tile / 64) / drawn,
                     most = product->alone                            ? INFINITY
                            : device->chip.sustained > 0 && !c.tensor ? sustained
                                                                      : power;
        rate = fmax(rate, fmin(c.peak * e * fill, most));
    }
    return 2 * product->batch * product->m * product->n * product->k * starts / rate;
}

/* The same by matrix units or, where a part's operands may be odd, by lanes. */
static double product_least_s(const KernelDevice *device, const LawProduct *product)
{
    const double s = product_least_as_s(device, product, product->format);
    return product->batched && product->in_bytes == 2
               ? fmin(s, product_least_as_s(device, product, KERNEL_FP32))
               : s;
}

double law_product_s(const KernelDevice *device, const LawProduct *product,
                     KernelReport *report)
{
    const ProductCase c = product_case(device, product);
    const Tile *tile = c.tensor ? TENSOR_TILE : LANE_TILE;
    const uint32_t n_tiles =
        c.tensor ? G_N_ELEMENTS(TENSOR_TILE) : G_N_ELEMENTS(LANE_TILE);
    const double most = product->whole ? 1 : c.tensor ? 8 : 16;
    const bool aligned = fmod(product->k, 4) == 0 && fmod(product->n, 4) == 0;
    ProductChoice best = {.t = INFINITY};
    for (uint32_t i = 0; i < n_tiles; i++)
        if (c.tensor || has_tile(device, product, &tile[i], aligned))
            for (double s = 1; s <= most && product_try(&c, &tile[i], s, &best);)
                s *= 2;
    const double start = c.law->start * 1e-6;
    if (report) {
        report->compute_s = best.full;
        report->power_s = best.power;
        report->memory_s = best.dram;
        report->cache_s = best.cache;
        report->start_s = start + best.split;
        report->tile_m = best.tile.height;
        report->tile_n = best.tile.width;
        report->tiles = best.tiles;
        report->waves = ceil(best.tiles / c.S);
        report->splits = best.splits;
        report->flops = 2 * product->batch * product->m * product->n * product->k;
        report->bytes = c.once;
        report->least_s = product_least_s(device, product);
    }
    return best.t + start;
}
