/* Reading the device types of cluster files. */
#include "data/cluster/cluster_reader.h"

/* No measured interference is anywhere near. */
static const double LARGEST_SLOWDOWN = 100;

/* Numbers by format, below `name`. */
static bool read_formats(const ClusterReader *reader, const char *type_key,
                         const char *name, const RatesText *text, double *rates,
                         GError **error)
{
    for (Numbers n = 0; text && n < NUMBERS; n++) {
        g_autofree char *key =
            g_strdup_printf("%s.%s.%s", type_key, name, numbers_name(n));
        if (text->of[n] && !yaml_quantity(reader->yaml, key, text->of[n],
                                          (YamlRange){QUANTITY_RATE, SMALLEST, LARGEST},
                                          &rates[n], error))
            return false;
    }
    return true;
}

static bool read_rates(const ClusterReader *reader, const char *type_key,
                       const TypeText *text, double *rates, GError **error)
{
    g_autofree char *half = yaml_key(type_key, "half_rate");
    if (text->half_rate && text->rates && text->rates->of[NUMBERS_F16])
        return yaml_fail(reader->yaml, error, half,
                         "expected either half_rate or rates.fp16, got both");
    if (text->half_rate && !yaml_quantity(reader->yaml, half, text->half_rate,
                                          (YamlRange){QUANTITY_RATE, SMALLEST, LARGEST},
                                          &rates[NUMBERS_F16], error))
        return false;
    return read_formats(reader, type_key, "rates", text->rates, rates, error);
}

/* What is said beside a plan's times: what the device could do at best, and its power. */
static bool read_facts(const ClusterReader *reader, const char *type_key,
                       const TypeText *text, DeviceType *type, GError **error)
{
    g_autofree char *power = yaml_key(type_key, "power");
    return read_formats(reader, type_key, "peaks", text->peaks, type->peaks, error) &&
           (!text->power || yaml_quantity(reader->yaml, power, text->power,
                                          (YamlRange){QUANTITY_POWER, 0, LARGEST},
                                          &type->power_w, error));
}

static bool read_ops(const ClusterReader *reader, const char *type_key,
                     const TypeText *text, DeviceType *type, GError **error)
{
    g_autofree char *key = yaml_key(type_key, "ops");
    if (text->op_count == 0)
        return true;
    type->op = g_new0(OpCost, OP_KINDS);
    return op_costs_read(reader->yaml, key, text->op_count, text->op, type->launch_s,
                         type->op, error);
}

static bool read_type(ClusterReader *reader, uint32_t i, GError **error)
{
    const TypeText *text = &reader->text->type[i];
    DeviceType *type = &reader->cluster->type[i];
    g_autofree char *key = g_strdup_printf("device_types[%u]", i);
    g_autofree char *name = yaml_key(key, "name"), *rate = yaml_key(key, "rate");
    g_autofree char *memory = yaml_key(key, "memory");
    type->name = g_strdup(text->name);
    type->source = g_strdup(text->source ? text->source : "");
    if (reader_find_type(reader->cluster, i, text->name) < i)
        return yaml_fail(reader->yaml, error, name, "expected a new name, got '%s' again",
                         text->name);
    double bytes = 0;
    GError *failure = NULL;
    reader_note(reader,
                yaml_quantity(reader->yaml, rate, text->rate,
                              (YamlRange){QUANTITY_RATE, SMALLEST, LARGEST}, &type->rate,
                              &failure),
                &failure);
    if (!yaml_quantity(reader->yaml, memory, text->memory,
                       (YamlRange){QUANTITY_BYTES, SMALLEST, LARGEST}, &bytes, error))
        return false;
    type->memory_bytes = (uint64_t)bytes;
    g_autofree char *runtime = yaml_key(key, "runtime");
    double taken = 0;
    if (text->runtime &&
        !yaml_quantity(reader->yaml, runtime, text->runtime,
                       (YamlRange){QUANTITY_BYTES, 0, bytes}, &taken, error))
        return false;
    type->runtime_bytes = (uint64_t)taken;
    type->slowdown = 1;
    uint32_t fitted = 0;
    for (uint32_t t = 0; t < i; t++)
        fitted += device_type_is_fitted(&reader->cluster->type[t]);
    if (fitted == CLUSTER_MAX_FITTED &&
        (text->op_count > 0 || text->half_rate || text->rates))
        return yaml_fail(reader->yaml, error, key,
                         "expected at most %d device types with ops or rates of formats",
                         CLUSTER_MAX_FITTED);
    return reader_factor(reader, key, "slowdown", text->slowdown, LARGEST_SLOWDOWN,
                         &type->slowdown, error) &&
           launch_read(reader->yaml, key, text->launch, &type->launch_s, error) &&
           read_rates(reader, key, text, type->rates, error) &&
           read_facts(reader, key, text, type, error) &&
           read_ops(reader, key, text, type, error);
}

bool reader_types(ClusterReader *reader)
{
    Cluster *cluster = reader->cluster;
    bool good = true;
    cluster->type = g_new0(DeviceType, reader->text->type_count);
    cluster->n_types = reader->text->type_count;
    for (uint32_t i = 0; i < cluster->n_types; i++) {
        GError *failure = NULL;
        good &= reader_note(reader, read_type(reader, i, &failure), &failure);
    }
    return good;
}
