/* Kernels that pass over memory: elementwise ones, norms and softmaxes of rows. With `bytes` all
 * that is read and written,
 *
 *     t    = start + max(bytes / (bandwidth share (1 + (cache_gain - 1) keep)), rows' part)                     (1)
 *     keep = clip(1/2 - log4(bytes / (cache_keep L2)), 0, 1)                                                    (2)
 *
 * share by the kind of memory; kernels of rows show no gain by L2. Rows' part: each row takes a
 * block of threads at least 4 `row`, S threads/block blocks at a time; a layer norm's mean and
 * variance take a processor `moments` clocks. A norm reads its rows twice, a softmax of more than
 * 1024 elements three times; what of the further passes misses L2 goes by the rows that are at
 * work at a time,
 *
 *     miss = clip((flight/L2 - miss_from) / (miss_to - miss_from), 0, 1)                                        (3)
 *
 * Backward: a softmax moves 12 B an element up to 1024, 20 B above, a norm 16 + 8 B (fp32; others
 * in proportion). Elementwise kernels that are not vectorised move a fixed number of bytes a clock
 * in each processor, if that is slower. */
#include <math.h>

#include "sim/cost/kernel_law.h"

enum {
    SHORT_ROW = 1024,
    WARP = 32,
    NORM_BLOCK = 128,
    LEAST_BLOCK = 32,
    MOST_BLOCK = 1024
};

/* Bytes a second of (1) where `bytes` are moved. */
static double memory_speed(const KernelDevice *device, double bytes)
{
    const MemoryLaw *law = &device->constants.memory;
    const Chip *chip = &device->chip;
    const double keep =
        law_clip(0.5 - log2(bytes / (law->cache_keep * chip->l2_bytes)) / 2, 0, 1);
    return chip->bandwidth * chip->memory_share * (1 + (law->cache_gain - 1) * keep);
}

/* A part of u bytes takes at least max(f + u/speed(u), floor), f = start + gap, for its share
 * of the result, u/bytes. Where all of it stays in L2 that is least for the largest such part,
 * between there and no gain by L2 speeds and starts are bounded in steps, and beyond by
 * memory's speed. */
double law_pass_least_s(const KernelDevice *device, double bytes, double floor_s)
{
    enum { STEPS = 32 };
    const MemoryLaw *law = &device->constants.memory;
    const double fixed_s = (law->start + device->constants.stream.gap) * 1e-6,
                 middle = law->cache_keep * device->chip.l2_bytes,
                 ratio = exp2(2.0 / STEPS);
    double low = fmin(middle / 2, bytes);
    double least = fmax(fixed_s + low / memory_speed(device, low), floor_s) / low;
    for (uint32_t i = 0; i < STEPS && low < bytes; i++) {
        const double high = fmin(low * ratio, bytes);
        least = fmin(
            least, fmax(fixed_s / high + 1 / memory_speed(device, low), floor_s / high));
        low = high;
    }
    if (low < bytes)
        least = fmin(least, 1 / memory_speed(device, bytes));
    return least * bytes;
}

/* Equation (1). `least`: seconds of another limit. */
static double memory_pass_s(const KernelDevice *device, double bytes, double speed,
                            double least, KernelReport *report)
{
    const double memory = bytes / speed, start = device->constants.memory.start * 1e-6;
    if (report) {
        report->bytes = bytes;
        *(speed > device->chip.bandwidth ? &report->cache_s : &report->memory_s) = memory;
        report->compute_s = least;
        report->start_s = start;
    }
    return start + fmax(memory, least);
}

double law_elementwise_s(const KernelDevice *device, const Kernel *kernel,
                         KernelReport *report)
{
    const double bytes = kernel->elementwise.elements *
                         (kernel->elementwise.read + kernel->elementwise.written);
    const double least = kernel->elementwise.scalar
                             ? bytes / (device->constants.memory.gate_clock *
                                        device->chip.processors * device->chip.clock_hz)
                             : 0;
    if (report)
        report->once_bytes = bytes;
    return memory_pass_s(device, bytes, memory_speed(device, bytes), least, report);
}

double law_rows_s(const KernelDevice *device, const Kernel *kernel, KernelReport *report)
{
    const MemoryLaw *law = &device->constants.memory;
    const Chip *chip = &device->chip;
    const double rows = kernel->rows.rows, width = kernel->rows.width,
                 size = kernel->rows.element_bytes > 0
                            ? kernel->rows.element_bytes
                            : kernel_format_bytes(kernel->format),
                 S = chip->processors, threads = device->threads;
    const bool norm = kernel->kind == KERNEL_NORM, brief = !norm && width <= SHORT_ROW;
    const double block = norm    ? NORM_BLOCK
                         : brief ? WARP
                                 : law_clip(width / 4, LEAST_BLOCK, MOST_BLOCK),
                 flight =
                     norm ? S * threads / NORM_BLOCK * size * width
                          : S * fmax(16 * threads, threads / MOST_BLOCK * size * width),
                 miss = law_clip((flight / chip->l2_bytes - law->miss_from) /
                                     (law->miss_to - law->miss_from),
                                 0, 1);
    const double forward = norm    ? 2 + miss
                           : brief ? 2
                                   : 2 + 2 * miss,
                 backward = norm    ? 6
                            : brief ? 3
                                    : 5;
    const double bytes = (kernel->backward ? backward : forward) * rows * width * size /
                         (fmod(width, 4) == 0 ? 1 : law->odd_row);
    const bool moments = norm && !kernel->backward && !kernel->rows.squares;
    const double least = moments ? law->moments * rows / (S * chip->clock_hz)
                                 : 4 * law->row * 1e-9 * rows / (S * threads / block);
    const double speed = chip->bandwidth * chip->memory_share;
    if (report) /* no plan cuts rows */
        report->least_s =
            fmax((kernel->backward ? backward : forward) * rows * width * size / speed,
                 moments ? least : 0);
    return memory_pass_s(device, bytes, speed, least, report);
}
