/* The text of a cluster's file; data/cluster/read.c reads it. */
#include <math.h>
#include <string.h>

#include "data/base/units.h"
#include "data/cluster/cluster.h"

/* `key: "value"`, where the value may hold anything. */
static void add_text(GString *out, const char *indent, const char *key, const char *value)
{
    g_string_append_printf(out, "%s%s: \"", indent, key);
    for (; *value; value++)
        if (*value == '"' || *value == '\\')
            g_string_append_printf(out, "\\%c", *value);
        else if ((unsigned char)*value < ' ' || *value == 0x7f)
            g_string_append_printf(out, "\\x%02x", (unsigned char)*value);
        else
            g_string_append_c(out, *value);
    g_string_append(out, "\"\n");
}

/* `, key: value`, the first one without the comma; nothing where the value is infinite. */
static void add_quantity(GString *out, const char *key, double value, Quantity quantity)
{
    if (!isfinite(value))
        return;
    g_autofree char *text = units_exact(value, quantity);
    const bool first = out->len > 0 && out->str[out->len - 1] == '{';
    g_string_append_printf(out, "%s%s: %s", first ? "" : ", ", key, text);
}

static void add_link(GString *out, const LinkCost *link)
{
    add_quantity(out, "latency", link->latency_s, QUANTITY_TIME);
    add_quantity(out, "bandwidth", link->bandwidth, QUANTITY_BANDWIDTH);
}

static void add_range(GString *out, double smallest, double largest)
{
    if (largest == 0)
        return;
    add_quantity(out, "smallest", smallest, QUANTITY_BYTES);
    add_quantity(out, "largest", largest, QUANTITY_BYTES);
}

static void add_type(GString *out, const DeviceType *type)
{
    add_text(out, "  - ", "name", type->name);
    g_autofree char *rate = units_exact(type->rate, QUANTITY_RATE);
    g_autofree char *memory = units_exact((double)type->memory_bytes, QUANTITY_BYTES);
    g_string_append_printf(out, "    rate: %s\n    memory: %s\n", rate, memory);
    if (type->runtime_bytes > 0) {
        g_autofree char *runtime =
            units_exact((double)type->runtime_bytes, QUANTITY_BYTES);
        g_string_append_printf(out, "    runtime: %s\n", runtime);
    }
    if (device_type_has_rates(type)) {
        g_string_append(out, "    rates: {");
        for (Numbers n = 0; n < NUMBERS; n++)
            if (type->rates[n] > 0)
                add_quantity(out, numbers_name(n), type->rates[n], QUANTITY_RATE);
        g_string_append(out, "}\n");
    }
    g_autofree char *slowdown = number_exact(type->slowdown);
    if (type->slowdown > 1)
        g_string_append_printf(out, "    slowdown: %s\n", slowdown);
    if (type->launch_s > 0) {
        g_autofree char *launch = units_exact(type->launch_s, QUANTITY_TIME);
        g_string_append_printf(out, "    launch: %s\n", launch);
    }
    add_text(out, "    ", "source", type->source);
    if (!type->op)
        return;
    g_string_append(out, "    ops:\n");
    for (uint32_t kind = 0; kind < OP_KINDS; kind++) {
        const OpCost *cost = &type->op[kind];
        if (cost->largest == 0)
            continue;
        g_string_append_printf(out, "      - {kind: %s", op_kind_name((OpKind)kind));
        add_quantity(out, "overhead", cost->overhead_s, QUANTITY_TIME);
        add_quantity(out, "rate", cost->rate, QUANTITY_RATE);
        add_quantity(out, "bandwidth", cost->bandwidth, QUANTITY_BANDWIDTH);
        add_range(out, cost->smallest, cost->largest);
        if (cost->launch_s != type->launch_s)
            add_quantity(out, "launch", cost->launch_s, QUANTITY_TIME);
        if (cost->wave > 0)
            g_string_append_printf(out, ", wave: %u", cost->wave);
        g_string_append(out, "}\n");
    }
}

static void add_machine(GString *out, const Cluster *cluster, const Machine *machine)
{
    add_text(out, "  - ", "name", machine->name);
    add_text(out, "    ", "type", cluster->type[machine->type].name);
    g_string_append_printf(out, "    gpus: %u\n", machine->gpus);
    if (isfinite(machine->inner.bandwidth)) {
        g_string_append(out, "    inner: {");
        add_link(out, &machine->inner);
        g_string_append(out, "}\n");
    }
    add_text(out, "    ", "source", machine->source);
}

static void add_collective(GString *out, const Cluster *cluster, Collective kind)
{
    const CollectivePieces *pieces = &cluster->pieces[kind];
    g_string_append_printf(out, "  %s: {", collective_name(kind));
    add_link(out, &cluster->collective[kind]);
    add_range(out, pieces->smallest, pieces->largest);
    if (pieces->n > 0)
        g_string_append(out, ", pieces: [");
    for (uint32_t i = 0; i < pieces->n; i++) {
        g_string_append(out, i ? ",\n    {" : "\n    {");
        add_quantity(out, "up_to", pieces->piece[i].up_to, QUANTITY_BYTES);
        add_link(out, &pieces->piece[i].line);
        g_string_append(out, "}");
    }
    g_string_append(out, pieces->n > 0 ? "]}\n" : "}\n");
}

char *cluster_write(const Cluster *cluster)
{
    GString *out = g_string_new(NULL);
    add_text(out, "", "name", cluster->name);
    if (*cluster->description)
        add_text(out, "", "description", cluster->description);
    g_string_append(out, "device_types:\n");
    for (uint32_t i = 0; i < cluster->n_types; i++)
        add_type(out, &cluster->type[i]);
    g_string_append(out, "machines:\n");
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        add_machine(out, cluster, &cluster->machine[i]);
    if (cluster->n_machines > 1) {
        g_string_append(out, "collectives:\n");
        for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
            add_collective(out, cluster, (Collective)kind);
        add_text(out, "  ", "source", cluster->collective_source);
    }
    return g_string_free(out, FALSE);
}
