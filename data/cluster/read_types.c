/* Reading the device types of cluster files. */
#include "data/base/assert.h"
#include "data/base/names.h"
#include "data/cluster/cluster_reader.h"

/* Reads numbers by format, below `name`. */
static bool read_formats(const ClusterReader *reader, const char *type_key,
                         const char *name, const RatesText *text, double *rates)
{
    for (Numbers n = 0; text && n < NUMBERS; n++) {
        if (text->of[n] &&
            !yaml_quantity(
                reader->yaml,
                yaml_at(reader->yaml, "%s.%s.%s", type_key, name, numbers_name(n)),
                text->of[n], (YamlRange){QUANTITY_RATE, SMALLEST, LARGEST}, &rates[n]))
            return false;
    }
    return true;
}

static bool read_rates(const ClusterReader *reader, const char *type_key,
                       const TypeText *text, double *rates)
{
    g_autofree char *half = yaml_key(type_key, "half_rate");
    if (text->half_rate && text->rates && text->rates->of[NUMBERS_F16])
        return yaml_wrong(reader->yaml, half,
                          "expected either half_rate or rates.fp16, got both");
    if (text->half_rate && !yaml_quantity(reader->yaml, half, text->half_rate,
                                          (YamlRange){QUANTITY_RATE, SMALLEST, LARGEST},
                                          &rates[NUMBERS_F16]))
        return false;
    return read_formats(reader, type_key, "rates", text->rates, rates);
}

static bool read_ops(const ClusterReader *reader, const char *type_key,
                     const TypeText *text, DeviceType *type)
{
    if (text->op_count == 0)
        return true;
    type->op = g_new0(OpCost, OP_KINDS);
    return op_costs_read(reader->yaml, yaml_at(reader->yaml, "%s.ops", type_key),
                         text->op_count, text->op, type->launch_s, type->op);
}

/* Files of Kilter 1.5.0 and before have the peak in fp4 here; it is peaks.fp4 since. */
static bool read_chip(const ClusterReader *reader, const char *type_key,
                      const ChipText *text, DeviceType *type)
{
    g_autofree char *key = yaml_key(type_key, "chip");
    Chip *chip = &type->chip;
    double old = 0;
    if (text &&
        (!MEMBERS_READ(reader->yaml, key, CHIP_MEMBER, text, chip) ||
         (text->fp4 &&
          !yaml_quantity(reader->yaml, yaml_at(reader->yaml, "%s.fp4", key), text->fp4,
                         (YamlRange){QUANTITY_RATE, SMALLEST, LARGEST}, &old))))
        return false;
    if (type->peaks[NUMBERS_F4] == 0)
        type->peaks[NUMBERS_F4] = old;
    return !text || chip_is_known(chip) ||
           yaml_wrong(reader->yaml, key,
                      "expected the keys bandwidth, and processors or clock");
}

static bool read_kernels(const ClusterReader *reader, const char *type_key,
                         const TypeText *text, DeviceType *type)
{
    g_autofree char *key = yaml_key(type_key, "kernels");
    if (text->kernels && (!text->chip || text->op_count > 0))
        return yaml_wrong(reader->yaml, key,
                          "expected with the key chip, and without ops");
    return !text->kernels || MEMBERS_READ(reader->yaml, key, KERNEL_FACTOR, text->kernels,
                                          &type->kernel_times);
}

static bool read_type(ClusterReader *reader, uint32_t i)
{
    KILTER_ASSERT(i < reader->cluster->n_types);
    const TypeText *text = &reader->text->type[i];
    DeviceType *type = &reader->cluster->type[i];
    g_autofree char *key = g_strdup_printf("device_types[%u]", i);
    g_autofree char *name = yaml_key(key, "name");
    type->name = g_strdup(text->name);
    type->source = g_strdup(text->source ? text->source : "");
    if (NAME_PLACE(reader->cluster->type, i, name, text->name) < i)
        return yaml_wrong(reader->yaml, name, "expected a new name, got '%s' again",
                          text->name);
    type->slowdown = type->interference = 1;
    MEMBERS_READ(reader->yaml, key, TYPE_MEMBER, text, type);
    const uint32_t fitted =
        sum_over(uint32_t, t, i, device_type_is_fitted(&reader->cluster->type[t]));
    if (fitted == CLUSTER_MAX_FITTED &&
        (text->op_count > 0 || text->half_rate || text->rates))
        return yaml_wrong(reader->yaml, key,
                          "expected at most %d device types with ops or rates of formats",
                          CLUSTER_MAX_FITTED);
    return read_rates(reader, key, text, type->rates) &&
           read_formats(reader, key, "peaks", text->peaks, type->peaks) &&
           read_chip(reader, key, text->chip, type) &&
           read_kernels(reader, key, text, type) && read_ops(reader, key, text, type);
}

bool reader_types(ClusterReader *reader)
{
    Cluster *cluster = reader->cluster;
    bool good = true;
    cluster->type = g_new0(DeviceType, reader->text->type_count);
    cluster->n_types = reader->text->type_count;
    for (uint32_t i = 0; i < cluster->n_types; i++)
        good &= read_type(reader, i);
    return good;
}
