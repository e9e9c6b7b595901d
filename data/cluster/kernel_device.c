/* Devices as the laws of kernels see them. */
#include "data/cluster/kernel_device.h"

#include <math.h>

#include "data/base/free.h"
#include "data/base/names.h"

#define KERNEL_FORMAT_ROW(id, name, bytes) [KERNEL_##id] = {name, bytes},
static const struct {
    const char *name;
    double bytes;
} FORMAT[] = {KERNEL_FORMAT_TABLE(KERNEL_FORMAT_ROW)};

NAMES_FUNCTION(kernel_format_name, KernelFormat, KERNEL_FORMATS, FORMAT[of].name)

NAMES_FINDER(kernel_format_find, KernelFormat, "format", NAMES_OF(FORMAT, name))

ROW_FUNCTION(double, kernel_format_bytes, KernelFormat, KERNEL_FORMATS, FORMAT[of].bytes)

KernelFormat kernel_format_of(Numbers numbers, bool tf32)
{
    static const KernelFormat OF[NUMBERS] = {[NUMBERS_F32] = KERNEL_FP32,
                                             [NUMBERS_F16] = KERNEL_FP16,
                                             [NUMBERS_BF16] = KERNEL_BF16,
                                             [NUMBERS_F8] = KERNEL_FP8,
                                             [NUMBERS_F4] = KERNEL_NVFP4};
    return numbers == NUMBERS_F32 && tf32 ? KERNEL_TF32 : OF[numbers];
}

/* --- what a sheet does not say --- */

static const KernelGeneration *generation_of(const KernelConstants *constants,
                                             const Chip *chip)
{
    const KernelGeneration *found = NULL;
    items_each (const KernelGeneration, row, constants->generation,
                constants->n_generations) {
        const bool alike = (row->gcn > 0) == (chip->gcn > 0);
        if (alike && (!found || row->sm + row->gcn <= chip->sm + chip->gcn))
            found = row;
    }
    return found ? found : &constants->generation[0];
}

static void device_take(GString *missing, double *value, double taken, const char *format)
{
    if (*value > 0)
        return;
    *value = taken;
    g_string_append(missing, missing->len ? "; " : "");
    g_string_append_printf(missing, format, taken);
}

/* How far peaks on sheets are from lanes x clock. */
static const double ROUNDED = 0.03;

/* Fills in what the sheet does not say. */
static void device_complete(KernelDevice *device)
{
    Chip *chip = &device->chip;
    const KernelGeneration *generation = generation_of(&device->constants, chip);
    const double peak = device->peak[KERNEL_FP32];
    GString *missing = g_string_new(NULL);
    double processors = chip->processors, bus = chip->bus;
    if (chip->sm == 0 && chip->gcn == 0)
        g_string_append(missing, "no sm: rules of new libraries");
    if (processors == 0)
        device_take(missing, &processors,
                    fmax(round(peak / (2 * generation->lanes * chip->clock_hz)), 1),
                    "no processors: %.0f, from peak and clock");
    chip->processors = (uint32_t)processors;
    double clock = chip->clock_hz / 1e9, l2 = chip->l2_bytes / 1e6;
    device_take(missing, &clock, peak / (2 * processors * generation->lanes) / 1e9,
                "no clock: %.2f GHz, from peak and processors");
    device_take(missing, &l2, processors * generation->l2_bytes / 1e6,
                "no l2: %.3g MB, as of its generation");
    device_take(missing, &chip->process_nm, generation->process_nm,
                "no process: %.0f nm, as of its generation");
    device_take(missing, &bus, 1024, "no bus: %.0f bits, so HBM");
    if (device->power_w == 0) {
        device->power_w = INFINITY;
        g_string_append_printf(missing, "%sno power: no limit", missing->len ? "; " : "");
    }
    chip->clock_hz = clock * 1e9;
    chip->l2_bytes = l2 * 1e6;
    chip->bus = (uint32_t)bus;
    device->threads = generation->threads;
    /* Sheets round peaks, and the clock that they are of. */
    if (chip->sm || chip->gcn)
        device->peak[KERNEL_FP32] =
            fmin(fmax(2 * processors * generation->lanes * chip->clock_hz,
                      (1 - ROUNDED) * peak),
                 (1 + ROUNDED) * peak);
    device->missing = g_string_free(missing, FALSE);
}

bool chip_is_known(const Chip *chip)
{
    return chip->bandwidth > 0 && (chip->processors > 0 || chip->clock_hz > 0);
}

KernelDevice *kernel_device_with(const DeviceType *type, const KernelConstants *constants)
{
    enum { HBM_BITS = 1024 };
    const double fp32 =
        type->peaks[NUMBERS_F32] > 0 ? type->peaks[NUMBERS_F32] : type->rate;
    if (!chip_is_known(&type->chip) || !(fp32 > 0))
        return NULL;
    KernelDevice *device = g_new0(KernelDevice, 1);
    device->name = g_strdup(type->name);
    device->constants = *constants;
    device->chip = type->chip;
    device->power_w = type->power_w;
    device->peak[KERNEL_FP32] = fp32;
    device->peak[KERNEL_TF32] = type->chip.tf32 > 0 ? type->chip.tf32 : fp32;
    device->peak[KERNEL_FP16] = type->peaks[NUMBERS_F16];
    device->peak[KERNEL_BF16] = type->peaks[NUMBERS_BF16];
    device->peak[KERNEL_FP8] = device->peak[KERNEL_MXFP8] = type->peaks[NUMBERS_F8];
    device->peak[KERNEL_NVFP4] = type->peaks[NUMBERS_F4];
    device_complete(device);
    if (device->chip.memory_share == 0)
        device->chip.memory_share = device->chip.bus >= HBM_BITS
                                        ? constants->memory.share_hbm
                                        : constants->memory.share_gddr;
    if (device->chip.reach == 0)
        device->chip.reach =
            constants->stream.reach * (device->chip.gcn ? constants->tensor.amd : 1);
    if (device->chip.issue == 0)
        device->chip.issue =
            device->chip.sm >= 86 && device->chip.gcn == 0 ? constants->lane.issue : 1;
    return device;
}

KernelDevice *kernel_device_new(const DeviceType *type, GError **error)
{
    KernelConstants constants;
    if (!kernel_constants_load(&constants, error))
        return NULL;
    return kernel_device_with(type, &constants);
}

FREE_DEFINE(kernel_device_free, KernelDevice, device,
            free_each(device->name, device->missing));
