/* The identity of a configuration changes with everything that can change its answer: every key of
 * a cluster's file, every option, every axis of an experiment, every file that is read. The keys
 * are taken from the readers themselves, so that a key added without a row here fails. */
#include "data/cluster/cluster_yaml.h"
#include "data/models/model.h"
#include "data/models/models.h"
#include "data/store/store.h"
#include "experiments/sweep/result.h"
#include "experiments/sweep/sweep.h"
#include "tests/support/program.h"

#define MODEL "vit:layers=1,hidden=64,heads=4,ffn=128"

static char *hash_with(const char *model, const Cluster *cluster, const char *planner,
                       const char *option)
{
    PlannerOptions options;
    GError *error = NULL;
    planner_options_init(&options);
    assert_true(!option || option_assign(&options, option, &error));
    const Planner *method = planner_find(planner, NULL);
    const Granularity granularity = planner_can(method, PLANNER_GPUS)
                                        ? GRANULARITY_GPU
                                        : granularity_default(cluster);
    const ConfigurationAsk ask = {.model = model,
                                  .cluster_name = "it",
                                  .cluster = cluster,
                                  .granularity = granularity,
                                  .planner = method,
                                  .fidelity = "flow",
                                  .options = &options};
    g_autoptr(Configuration) c = configuration_new(&ask, &error);
    assert_no_error(error);
    g_autoptr(StorePart) part = question_cluster(cluster, &error);
    assert_no_error(error);
    assert_true(result_identify(c, part, &error));
    return g_strdup(c->hash);
}

static char *hash_on(const Cluster *cluster, const char *planner, const char *option)
{
    return hash_with(MODEL, cluster, planner, option);
}

static char *replaced(const char *text, const char *from, const char *to)
{
    g_auto(GStrv) part = g_strsplit(text, from, -1);
    if (g_strv_length(part) < 2)
        print_error("'%s' is not in the example\n", from);
    assert_true(g_strv_length(part) > 1);
    return g_strjoinv(to, part);
}

/* --- the keys of a cluster --- */

#define LINE(kind, latency) "  " kind ": {latency: " latency " us, bandwidth: 1.3 GB/s}\n"

/* Every key is in one of the two. */
/* A type has measured ops or factors on kernels, not both. */
#define MEASURED_OPS                                                                  \
    "    ops:\n"                                                                      \
    "      - {kind: linear, overhead: 3 us, rate: 11 TFLOP/s, bandwidth: 700 GB/s,\n" \
    "         smallest: 4 kB, largest: 1 GB, launch: 8 us, wave: 1327104, fill: 72.5}\n"

static const char BUILT[] =
    "name: pair\n"
    "description: two machines\n"
    "device_types:\n"
    "  - name: v100\n"
    "    rate: 10.8 TFLOP/s\n"
    "    half_rate: 30 TFLOP/s\n"
    "    rates: {fp32: 12 TFLOP/s, bf16: 32 TFLOP/s, fp8: 60 TFLOP/s}\n"
    "    peaks: {fp32: 15 TFLOP/s}\n"
    "    power: 300 W\n"
    "    chip: {sm: 70, processors: 80, bandwidth: 900 GB/s, bus: 4096, clock: 1.53 "
    "GHz,\n"
    "      l2: 6 MB, process: 12, memory_share: 0.8, sustained: 12.5 TFLOP/s, issue: "
    "0.9,\n"
    "      reach: 0.94, tf32: 70 TFLOP/s, fp4: 300 TFLOP/s}\n"
    "    memory: 16 GiB\n"
    "    runtime: 1.5 GiB\n"
    "    slowdown: 1.2\n"
    "    interference: 1.4\n"
    "    crowding: 0.03\n"
    "    launch: 6 us\n"
    "    handover: 31 us\n" MEASURED_OPS "    source: a data sheet\n"
    "machines:\n"
    "  - name: fast\n"
    "    count: 2\n"
    "    type: v100\n"
    "    gpus: 4\n"
    "    peers: 0-1 0-2x3 1-3\n"
    "    stretch: 1.5\n"
    "    price: 9 USD/h\n"
    "    host_memory: 512 GiB\n"
    "    host_link: 31 GB/s\n"
    "    host_bandwidth: 410 GB/s\n"
    "    inner: {latency: 45 us, bandwidth: 85.8 GB/s}\n"
    "    source: a manual\n"
    "collectives:\n"
    "  all_reduce:\n"
    "    latency: 60 us\n"
    "    bandwidth: 1.4 GB/s\n"
    "    pieces: [{up_to: 32 kB, latency: 20 us, bandwidth: 1.01 GB/s}]\n"
    "    smallest: 5 kB\n"
    "    largest: 2 GB\n" LINE("all_gather", "61") LINE("grouped_all_gather", "62")
        LINE("reduce_scatter", "63") LINE("grouped_reduce_scatter",
                                          "64") LINE("all_to_all", "65")
            LINE("send", "66") "  source: a fit\n"
                               "curves:\n"
                               "  - collective: all_to_all\n"
                               "    device: v100\n"
                               "    ranks: 4\n"
                               "    hosts: 1\n"
                               "    step: 17 us\n"
                               "    sums: 1.18\n"
                               "    own: 0.35\n"
                               "    points: [{bytes: 3 MiB, time: 71 us}, {bytes: 5 MiB, "
                               "time: 91 us}]\n"
                               "    source: a log\n"
                               "topology:\n"
                               "  builder: tree:leaf=2,bandwidth=9Gb/s\n"
                               "  source: a drawing\n"
                               "tuning:\n"
                               "  rules:\n"
                               "    - {collective: all_gather, most_ranks: 8, "
                               "most_bytes: 7 MiB, power_of_two: true, "
                               "algorithm: halving}\n"
                               "  piece: 512 KiB\n"
                               "  least_piece: 33 KiB\n"
                               "  source: a talk\n"
                               "fit:\n"
                               "  fidelity: stage\n"
                               "  planner: manual\n"
                               "  software: megatron\n"
                               "  tp: {least: 1, most: 41}\n"
                               "  pp: {least: 2, most: 42}\n"
                               "  tp_pp: {least: 3, most: 43}\n"
                               "  ranks: {least: 4, most: 44}\n"
                               "  width: {least: 5, most: 45}\n"
                               "  sequence: {least: 6, most: 46}\n"
                               "  errors: [v100 0.125]\n";

static char *linked(void)
{
    return replaced(BUILT, "  builder: tree:leaf=2,bandwidth=9Gb/s\n",
                    "  nodes: [hub, spare]\n"
                    "  links:\n"
                    "    - {from: fast-0, to: hub, latency: 5 us, bandwidth: 10 Gb/s}\n"
                    "    - {from: hub, to: fast-1, latency: 4 us, bandwidth: 11 Gb/s}\n"
                    "    - {from: hub, to: spare, latency: 5 us, bandwidth: 10 Gb/s}\n");
}

/* In the words of data sheets. */
static const char SHORT[] =
    "name: brief\n"
    "machines:\n"
    "  - {device: a100-80g, gpus: 4, count: 2, inner: {link: nvlink3, count: 4},\n"
    "     nic: eth-100, nics: 2}\n";

/* Unlike GPUs in one machine. */
static const char UNLIKE[] =
    "device_types: [{name: x, rate: 9 TFLOP/s, memory: 8 GiB}, {name: y, rate: 9 "
    "TFLOP/s, memory: 9 GiB}]\n"
    "machines: [{devices: [{device: t4, gpus: 2}, {type: x, gpus: 1}], inner: pcie3}, "
    "{type: y, gpus: 1}]\n"
    "collectives:\n" LINE("all_reduce", "60") LINE("all_gather", "60")
        LINE("grouped_all_gather", "60") LINE("reduce_scatter", "60")
            LINE("grouped_reduce_scatter", "60") LINE("all_to_all", "60");

/* Ports in place of collectives. */
static const char PORTS[] =
    "device_types: [{name: x, rate: 9 TFLOP/s, memory: 8 GiB}]\n"
    "machines:\n"
    "  - {name: a, type: x, gpus: 4, inner: {latency: 3 us, bandwidth: 70 GB/s}, peers: "
    "0-1 2-3,\n"
    "     peer: {latency: 2 us, bandwidth: 30 GB/s}, across: {latency: 9 us, bandwidth: "
    "8 GB/s},\n"
    "     port: {bandwidth: 20 GB/s, gpu: 12 GB/s, nics: 2, base: 21 us, hop: 4 us}, "
    "region: east}\n"
    "  - {name: b, type: x, gpus: 4, count: 2, inner: {latency: 3 us, bandwidth: 90 "
    "GB/s}, sums: 1.2,\n"
    "     tree_sums: 1.4, port: {bandwidth: 50 GB/s}, preemptible: 3 USD/h, domain: "
    "rack, region: west}\n"
    "regions: [{from: east, to: west, latency: 19 ms, bandwidth: 10 Gb/s, price: 0.02 "
    "USD/GB, source: a map}]\n";

/* LINKED, BRIEF, MIXED, WIRED: other, in the second to the fifth example. */
typedef enum {
    OTHER,
    SAME,
    LINKED,
    BRIEF,
    MIXED,
    WIRED,
    WIRED_SAME,
    EXPECTATIONS
} Expected;

/* A key, as a path in the schema, and how its value is changed. */
static const struct {
    const char *key, *from, *to;
    Expected expected;
} CHANGE[] = {
    {"name", "pair", "couple", OTHER},
    {"description", "two machines", "some", SAME},
    {"device_types[].name", "v100", "a100", OTHER},
    {"device_types[].rate", "10.8 TFLOP/s", "10.9 TFLOP/s", OTHER},
    {"device_types[].half_rate", "30 TFLOP/s", "31 TFLOP/s", OTHER},
    {"device_types[].rates.fp32", "fp32: 12 TFLOP/s", "fp32: 13 TFLOP/s", OTHER},
    {"device_types[].rates.fp16", "half_rate: 30 TFLOP/s\n    rates: {",
     "rates: {fp16: 31 TFLOP/s, ", OTHER},
    {"device_types[].rates.bf16", "32 TFLOP/s", "33 TFLOP/s", OTHER},
    {"device_types[].rates.fp8", "60 TFLOP/s", "61 TFLOP/s", OTHER},
    {"device_types[].rates.fp4", "rates: {", "rates: {fp4: 120 TFLOP/s, ", OTHER},
    {"device_types[].peaks.fp32", "fp32: 15 TFLOP/s", "fp32: 16 TFLOP/s", OTHER},
    {"device_types[].peaks.fp16", "peaks: {", "peaks: {fp16: 99 TFLOP/s, ", OTHER},
    {"device_types[].peaks.bf16", "peaks: {", "peaks: {bf16: 99 TFLOP/s, ", OTHER},
    {"device_types[].peaks.fp8", "peaks: {", "peaks: {fp8: 99 TFLOP/s, ", OTHER},
    {"device_types[].peaks.fp4", "peaks: {", "peaks: {fp4: 99 TFLOP/s, ", OTHER},
    {"device_types[].kernels.products", MEASURED_OPS, "    kernels: {products: 1.25}\n",
     OTHER},
    {"device_types[].kernels.experts", MEASURED_OPS, "    kernels: {experts: 1.25}\n",
     OTHER},
    {"device_types[].kernels.attention", MEASURED_OPS, "    kernels: {attention: 1.25}\n",
     OTHER},
    {"device_types[].kernels.memory", MEASURED_OPS, "    kernels: {memory: 1.25}\n",
     OTHER},
    {"device_types[].kernels.loss", MEASURED_OPS, "    kernels: {loss: 1.25}\n", OTHER},
    {"device_types[].kernels.update", MEASURED_OPS, "    kernels: {update: 1.25}\n",
     OTHER},
    {"device_types[].chip.sm", "sm: 70", "sm: 72", OTHER},
    {"device_types[].chip.gcn", "{sm: 70", "{gcn: 908, sm: 70", OTHER},
    {"device_types[].chip.processors", "processors: 80", "processors: 84", OTHER},
    {"device_types[].chip.bandwidth", "bandwidth: 900 GB/s, bus",
     "bandwidth: 901 GB/s, bus", OTHER},
    {"device_types[].chip.bus", "bus: 4096", "bus: 384", OTHER},
    {"device_types[].chip.clock", "clock: 1.53 GHz", "clock: 1.5 GHz", OTHER},
    {"device_types[].chip.l2", "l2: 6 MB", "l2: 7 MB", OTHER},
    {"device_types[].chip.process", "process: 12", "process: 7", OTHER},
    {"device_types[].chip.memory_share", "memory_share: 0.8", "memory_share: 0.7", OTHER},
    {"device_types[].chip.sustained", "sustained: 12.5 TFLOP/s", "sustained: 12 TFLOP/s",
     OTHER},
    {"device_types[].chip.issue", "issue: 0.9", "issue: 0.8", OTHER},
    {"device_types[].chip.reach", "reach: 0.94", "reach: 0.95", OTHER},
    {"device_types[].chip.tf32", "tf32: 70 TFLOP/s", "tf32: 71 TFLOP/s", OTHER},
    {"device_types[].chip.fp4", "fp4: 300 TFLOP/s", "fp4: 301 TFLOP/s", OTHER},
    {"device_types[].power", "power: 300 W", "power: 301 W", OTHER},
    {"device_types[].memory", "16 GiB", "17 GiB", OTHER},
    {"device_types[].runtime", "1.5 GiB", "1.6 GiB", OTHER},
    {"device_types[].slowdown", "slowdown: 1.2", "slowdown: 1.3", OTHER},
    {"device_types[].interference", "interference: 1.4", "interference: 1.5", OTHER},
    {"device_types[].crowding", "crowding: 0.03", "crowding: 0.04", OTHER},
    {"device_types[].launch", "launch: 6 us", "launch: 7 us", OTHER},
    {"device_types[].handover", "handover: 31 us", "handover: 32 us", OTHER},
    {"device_types[].source", "a data sheet", "another", SAME},
    {"device_types[].ops[].kind", "kind: linear", "kind: relu", OTHER},
    {"device_types[].ops[].overhead", "3 us", "2 us", OTHER},
    {"device_types[].ops[].rate", "11 TFLOP/s", "12 TFLOP/s", OTHER},
    {"device_types[].ops[].bandwidth", "700 GB/s", "701 GB/s", OTHER},
    {"device_types[].ops[].smallest", "4 kB", "3 kB", OTHER},
    {"device_types[].ops[].largest", "1 GB,", "1.1 GB,", OTHER},
    {"device_types[].ops[].launch", "8 us", "9 us", OTHER},
    {"device_types[].ops[].wave", "1327104", "1327105", OTHER},
    {"device_types[].ops[].fill", "fill: 72.5", "fill: 72.6", OTHER},
    {"machines[].name", "name: fast", "name: quick", OTHER},
    {"machines[].count", "count: 2", "count: 3", OTHER},
    {"machines[].type", "v100", "h100", OTHER},
    {"machines[].device", "a100-80g", "h100-sxm", BRIEF},
    {"machines[].devices[].device", "device: t4", "device: l4", MIXED},
    {"machines[].devices[].type", "{type: x, gpus: 1}]", "{type: y, gpus: 1}]", MIXED},
    {"machines[].devices[].gpus", "gpus: 2", "gpus: 3", MIXED},
    {"machines[].inner.link", "nvlink3", "nvlink4", BRIEF},
    {"machines[].inner.count", "count: 4}", "count: 5}", BRIEF},
    {"machines[].nic", "eth-100", "eth-200", BRIEF},
    {"machines[].nics", "nics: 2", "nics: 3", BRIEF},
    {"machines[].peers", "0-2x3", "0-2x2", OTHER},
    {"machines[].peer", "latency: 2 us", "latency: 1 us", WIRED},
    {"machines[].across", "bandwidth: 8 GB/s", "bandwidth: 9 GB/s", WIRED},
    {"machines[].sums", " sums: 1.2", " sums: 1.3", WIRED},
    {"machines[].tree_sums", "tree_sums: 1.4", "tree_sums: 1.5", WIRED},
    {"machines[].host_memory", "512 GiB", "256 GiB", OTHER},
    {"machines[].host_link", "31 GB/s", "32 GB/s", OTHER},
    {"machines[].host_bandwidth", "410 GB/s", "411 GB/s", OTHER},
    {"machines[].domain", "domain: rack", "domain: row", WIRED},
    {"machines[].region", "region: east}", "region: west}", WIRED},
    {"machines[].port.bandwidth", "20 GB/s", "21 GB/s", WIRED},
    {"machines[].port.gpu", "12 GB/s", "11 GB/s", WIRED},
    {"machines[].port.nics", "nics: 2", "nics: 4", WIRED},
    {"machines[].port.base", "21 us", "22 us", WIRED},
    {"machines[].port.hop", "4 us", "5 us", WIRED},
    {"regions[].from", "{from: east",
     "{from: west, to: north, latency: 1 ms, bandwidth: 1 Gb/s}, {from: east", WIRED},
    {"regions[].to", "{from: east",
     "{from: west, to: south, latency: 1 ms, bandwidth: 1 Gb/s}, {from: east", WIRED},
    {"regions[].latency", "19 ms", "18 ms", WIRED},
    {"regions[].bandwidth", "10 Gb/s", "11 Gb/s", WIRED},
    {"regions[].source", "a map", "another", WIRED_SAME},
    {"regions[].price", "price: 0.02 USD/GB", "price: 0.03 USD/GB", WIRED_SAME},
    {"machines[].preemptible", "preemptible: 3 USD/h", "preemptible: 4 USD/h",
     WIRED_SAME},
    {"machines[].price", "price: 9 USD/h", "price: 8 USD/h", SAME},
    {"machines[].gpus", "gpus: 4", "gpus: 5", OTHER},
    {"machines[].stretch", "stretch: 1.5", "stretch: 1.6", OTHER},
    {"machines[].inner.latency", "45 us", "46 us", OTHER},
    {"machines[].inner.bandwidth", "85.8 GB/s", "85.9 GB/s", OTHER},
    {"machines[].source", "a manual", "another", SAME},
    {"collectives.all_reduce.latency", "60 us", "59 us", OTHER},
    {"collectives.all_reduce.bandwidth", "1.4 GB/s", "1.5 GB/s", OTHER},
    {"collectives.all_reduce.pieces[].up_to", "32 kB", "33 kB", OTHER},
    {"collectives.all_reduce.pieces[].latency", "20 us", "21 us", OTHER},
    {"collectives.all_reduce.pieces[].bandwidth", "1.01 GB/s", "1.02 GB/s", OTHER},
    {"collectives.all_reduce.smallest", "5 kB", "6 kB", OTHER},
    {"collectives.all_reduce.largest", "2 GB", "3 GB", OTHER},
    {"collectives.all_gather", "61 us", "71 us", OTHER},
    {"collectives.grouped_all_gather", "62 us", "72 us", OTHER},
    {"collectives.reduce_scatter", "63 us", "73 us", OTHER},
    {"collectives.grouped_reduce_scatter", "64 us", "74 us", OTHER},
    {"collectives.all_to_all", "65 us", "75 us", OTHER},
    {"collectives.send", "66 us", "76 us", OTHER},
    {"collectives.source", "a fit", "another", SAME},
    {"curves[].collective", "collective: all_to_all", "collective: all_gather", OTHER},
    {"curves[].device", "    device: v100\n    ranks", "    ranks", OTHER},
    {"curves[].ranks", "ranks: 4", "ranks: 5", OTHER},
    {"curves[].hosts", "    device: v100\n    ranks: 4\n    hosts: 1",
     "    ranks: 4\n    hosts: 2", OTHER},
    {"curves[].step", "17 us", "18 us", OTHER},
    {"curves[].sums", "1.18", "1.19", OTHER},
    {"curves[].own", "0.35", "0.36", OTHER},
    {"curves[].points[].bytes", "3 MiB", "4 MiB", OTHER},
    {"curves[].points[].time", "91 us", "92 us", OTHER},
    {"curves[].source", "a log", "another", SAME},
    {"topology.builder", "leaf=2", "leaf=1", OTHER},
    {"topology.nodes[]", "spare", "other", LINKED},
    {"topology.links[].from", "from: hub, to: spare", "from: fast-0, to: spare", LINKED},
    {"topology.links[].to", "from: hub, to: spare", "from: spare, to: fast-0", LINKED},
    {"topology.links[].latency", "4 us", "3.5 us", LINKED},
    {"topology.links[].bandwidth", "11 Gb/s", "12 Gb/s", LINKED},
    {"topology.source", "a drawing", "another", SAME},
    {"tuning.rules[].collective", "collective: all_gather", "collective: reduce_scatter",
     OTHER},
    {"tuning.rules[].most_ranks", "most_ranks: 8", "most_ranks: 9", OTHER},
    {"tuning.rules[].most_bytes", "7 MiB", "8 MiB", OTHER},
    {"tuning.rules[].power_of_two", ", power_of_two: true", "", OTHER},
    {"tuning.rules[].algorithm", "algorithm: halving", "algorithm: ring", OTHER},
    {"tuning.piece", "512 KiB", "256 KiB", OTHER},
    {"tuning.least_piece", "33 KiB", "34 KiB", OTHER},
    {"tuning.source", "a talk", "another", SAME},
    {"fit.fidelity", "fidelity: stage", "fidelity: flow", OTHER},
    {"fit.planner", "planner: manual", "planner: amp", OTHER},
    {"fit.software", "software: megatron", "software: fsdp", OTHER},
    {"fit.tp.least", "least: 1", "least: 0", OTHER},
    {"fit.tp.most", "most: 41", "most: 51", OTHER},
    {"fit.pp.least", "least: 2", "least: 0", OTHER},
    {"fit.pp.most", "most: 42", "most: 52", OTHER},
    {"fit.tp_pp.least", "least: 3", "least: 0", OTHER},
    {"fit.tp_pp.most", "most: 43", "most: 53", OTHER},
    {"fit.ranks.least", "least: 4", "least: 0", OTHER},
    {"fit.ranks.most", "most: 44", "most: 54", OTHER},
    {"fit.width.least", "least: 5", "least: 0", OTHER},
    {"fit.width.most", "most: 45", "most: 55", OTHER},
    {"fit.sequence.least", "least: 6", "least: 0", OTHER},
    {"fit.sequence.most", "most: 46", "most: 56", OTHER},
    {"fit.errors[]", "v100 0.125", "v100 0.25", OTHER},
};

/* Adds the paths of all texts of a schema. */
static void add_keys(const cyaml_schema_value_t *value, const char *path, GPtrArray *list)
{
    if (value->type == CYAML_SEQUENCE) {
        g_autofree char *entry = g_strconcat(path, "[]", NULL);
        add_keys(value->sequence.entry, entry, list);
    } else if (value->type == CYAML_MAPPING) {
        for (const cyaml_schema_field_t *f = value->mapping.fields; f->key; f++) {
            g_autofree char *field =
                *path ? g_strconcat(path, ".", f->key, NULL) : g_strdup(f->key);
            add_keys(&f->value, field, list);
        }
    } else {
        assert_int_equal(value->type, CYAML_STRING);
        g_ptr_array_add(list, g_strdup(path));
    }
}

/* Rows for a key; one of a kind of collective is for all that lies below it. */
static uint32_t rows_for(const char *key)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < G_N_ELEMENTS(CHANGE); i++) {
        g_autofree char *below = g_strconcat(CHANGE[i].key, ".", NULL);
        n += strcmp(CHANGE[i].key, key) == 0 || g_str_has_prefix(key, below);
    }
    return n;
}

static void test_every_key_has_a_row(void **state)
{
    (void)state;
    g_autoptr(GPtrArray) keys = g_ptr_array_new_with_free_func(g_free);
    add_keys(&CLUSTER_SCHEMA, "", keys);
    assert_true(keys->len > 50);
    for (uint32_t i = 0; i < keys->len; i++)
        if (rows_for(keys->pdata[i]) != 1) {
            print_error("key %s of a cluster: expected one row in CHANGE\n",
                        (char *)keys->pdata[i]);
            fail();
        }
}

/* The last word of every key is in docs/clusters.md, after a dot or a quote. */
static void test_every_key_is_documented(void **state)
{
    (void)state;
    g_autoptr(GPtrArray) keys = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *text = NULL;
    add_keys(&CLUSTER_SCHEMA, "", keys);
    assert_true(g_file_get_contents(KILTER_HOME "/docs/clusters.md", &text, NULL, NULL));
    for (uint32_t i = 0; i < keys->len; i++) {
        g_autofree char *key = g_strdup(keys->pdata[i]);
        if (g_str_has_suffix(key, "[]"))
            key[strlen(key) - 2] = '\0';
        const char *last = strrchr(key, '.') ? strrchr(key, '.') + 1 : key;
        g_autofree char *pattern = g_strdup_printf("[.`{, ]%s[`,}\\]:]", last);
        if (!g_regex_match_simple(pattern, text, 0, 0)) {
            print_error("key %s of a cluster is not in docs/clusters.md\n", key);
            fail();
        }
    }
}

static Cluster *parse(const char *text)
{
    GError *error = NULL;
    Cluster *cluster = cluster_parse("example", text, strlen(text), &error);
    assert_no_error(error);
    return cluster;
}

static void test_every_key_counts(void **state)
{
    (void)state;
    g_autofree char *links = linked();
    const char *const base[EXPECTATIONS] = {
        [OTHER] = BUILT,  [SAME] = BUILT,  [LINKED] = links,    [BRIEF] = SHORT,
        [MIXED] = UNLIKE, [WIRED] = PORTS, [WIRED_SAME] = PORTS};
    char *hash_of[EXPECTATIONS];
    for (uint32_t i = 0; i < EXPECTATIONS; i++) {
        g_autoptr(Cluster) cluster = parse(base[i]);
        hash_of[i] = hash_on(cluster, "dp-ev", NULL);
    }
    assert_string_not_equal(hash_of[OTHER], hash_of[LINKED]);
    for (uint32_t i = 0; i < G_N_ELEMENTS(CHANGE); i++) {
        const Expected expected = CHANGE[i].expected;
        g_autofree char *text = replaced(base[expected], CHANGE[i].from, CHANGE[i].to);
        g_autoptr(Cluster) cluster = parse(text);
        g_autofree char *hash = hash_on(cluster, "dp-ev", NULL);
        const bool same = strcmp(hash, hash_of[expected]) == 0;
        if (same != (expected == SAME || expected == WIRED_SAME)) {
            print_error("key %s: %s hash\n", CHANGE[i].key,
                        same ? "the same" : "another");
            fail();
        }
    }
    for (uint32_t i = 0; i < EXPECTATIONS; i++)
        g_free(hash_of[i]);
}

/* read(write(x)) == x, topology and tuning included; both texts are files. */
static void test_written_whole(void **state)
{
    (void)state;
    g_autofree char *links = linked();
    Cluster *cluster[] = {parse(BUILT),
                          parse(links),
                          parse(UNLIKE),
                          cluster_load("dragonfly:hosts=12,gpus=2,leaf=2,group=3,"
                                       "inner_bandwidth=80GB/s,latency=1.7us",
                                       NULL),
                          cluster_load("star:hosts=1", NULL),
                          cluster_load("hap-64", NULL)};
    for (uint32_t i = 0; i < G_N_ELEMENTS(cluster); i++) {
        g_autofree char *want = cluster_canonical(cluster[i]);
        char *text[] = {cluster_write(cluster[i]), cluster_json_text(cluster[i])};
        for (uint32_t k = 0; k < 2; k++) {
            g_autoptr(Cluster) again = parse(text[k]);
            g_autofree char *got = cluster_canonical(again);
            assert_string_equal(got, want);
            g_free(text[k]);
        }
        cluster_free(cluster[i]);
    }
}

/* --- options --- */

/* A planner that takes the option, and a value that is not the default. */
static const struct {
    const char *key, *value, *planner;
} OPTION[] = {
    {"ratios", "even", "hap"},
    {"mix", "0.5", "hap"},
    {"collectives", "padded", "hap"},
    {"search", "reference", "hap"},
    {"bucket", "1MiB", "hap"},
    {"beam", "7", "hap"},
    {"max_rounds", "3", "hap"},
    {"certify", "0.5", "hap"},
    {"budget_s", "9", "hap"},
    {"effort", "3", "hap"},
    {"labels", "9", "hap"},
    {"programs", "9", "hap"},
    {"moves", "9", "hap"},
    {"pipelines", "9", "joint"},
    {"boxes", "9", "hap"},
    {"duplex", "on", "hap"},
    {"backward", "serial", "hidup"},
    {"noise", "0.1", "hidup"},
    {"communication", "0.1", "hidup"},
    {"pin", "head.weight=identity", "hap"},
    {"segments", "layers", "hap"},
    {"dispatcher", "once", "hap"},
    {"pp", "2", "amp"},
    {"dp", "2", "amp"},
    {"tmp", "2", "amp"},
    {"most_tmp", "2", "amp"},
    {"mbs", "2", "amp"},
    {"schedule", "gpipe", "amp"},
    {"chunks", "3", "amp"},
    {"cost", "faithful", "amp"},
    {"balance", "parameters", "amp"},
    {"profile", "FILE", "amp"},
    {"steps", "3", "amp-sa"},
    {"trials", "3", "amp"},
    {"rank", "2", "amp"},
    {"placement", "domino", "amp-random"},
    {"groups", "9", "tag"},
    {"grouping", "metis", "tag"},
    {"evaluations", "9", "tag"},
    {"heat", "0.1", "flexflow"},
    {"branches", "9", "tag"},
    {"factors", "paper", "tag"},
    {"objective", "flow", "tag"},
    {"sets", "machines", "tag"},
    {"leave", "off", "tag"},
    {"priors", "gnn", "tag"},
    {"undecided", "last", "tag"},
    {"links", "own", "tag"},
    {"leaves", "8", "tag"},
    {"tp", "2", "manual"},
    {"cp", "2", "manual"},
    {"cp_comm", "a2a", "manual"},
    {"a2a_ranks", "2", "manual"},
    {"ep", "2", "manual"},
    {"micro_batch", "2", "manual"},
    {"microbatches", "2", "hap"},
    {"pieces", "2", "manual"},
    {"virtual_stages", "2", "manual"},
    {"layers", "1 2", "manual"},
    {"cuts", "1", "manual"},
    {"ranks", "0 1", "manual"},
    {"shares", "1 2", "manual"},
    {"pipeline_layers", "1; 2", "manual"},
    {"pipeline_shares", "1 2", "manual"},
    {"recompute", "full", "hap"},
    {"sequence_parallel", "on", "manual"},
    {"zero", "1", "manual"},
    {"zero_ranks", "2", "manual"},
    {"overlap", "off", "hap"},
    {"prefetch", "3", "hap"},
    {"order", "ready", "hap"},
    {"transfers", "free", "hap"},
    {"streams", "2", "hap"},
    {"first_bucket", "2MiB", "hap"},
    {"network", "crossbar", "hap"},
    {"algorithm", "all_reduce:tree", "hap"},
    {"host", "waits", "hap"},
    {"jitter", "0.1", "hap"},
    {"distribution", "gamma", "hap"},
    {"straggler", "any*2", "hap"},
    {"runtime", "pytorch-ddp", "hap"},
    {"costs", "shares", "hap"},
    {"slow_link", "a>b*2@1s", "hap"},
    {"fail", "fast-0@1s", "hap"},
    {"restart", "1s", "hap"},
    {"task_links", "free", "hap"},
    {"task_collectives", "free", "hap"},
    {"task_memory", "make-first", "hap"},
    {"layer_times", "FILE", "hap"},
    {"pins", "FILE", "hap"},
    {"for", "ddp", "hap"},
    {"work", "10", "hap"},
    {"etp", "2", "manual"},
    {"imbalance", "1.5", "manual"},
    {"expert_tokens", "1,2", "manual"},
    {"stage_tp", "2 1", "manual"},
    {"stage_dp", "1 2", "manual"},
    {"stage_cp", "1 2", "manual"},
    {"stage_ep", "1 2", "manual"},
    {"stage_zero", "1 0", "manual"},
    {"stage_micro_batch", "1 1", "manual"},
    {"offload", "optimizer", "manual"},
    {"sync_every", "4", "manual"},
};

/* A profile of layers, whose last number follows. */
#define LAYER_COLUMNS \
    "gpu,model,tmp,layer_index,layer_kind,fwd_time_s_per_sample\nv,m,1,0,x,"

static void test_every_option_counts(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *file = g_build_filename(box->folder, "file", NULL);
    g_autoptr(Cluster) cluster = parse(BUILT);
    g_autoptr(Cluster) sheets = cluster_load("dgx-h100", NULL);
    g_auto(GStrv) known = planner_options_keys();
    assert_true(g_strv_length(known) > 50);
    for (char **key = known; *key; key++) {
        uint32_t i = 0;
        while (i < G_N_ELEMENTS(OPTION) && strcmp(OPTION[i].key, *key) != 0)
            i++;
        if (i == G_N_ELEMENTS(OPTION)) {
            print_error("option %s: expected a row in OPTION\n", *key);
            fail();
        }
        const bool is_pins = strcmp(*key, "pins") == 0;
        sandbox_write(box, "file",
                      is_pins ? "head.weight=identity\n" : LAYER_COLUMNS "1\n");
        const bool is_file = strcmp(OPTION[i].value, "FILE") == 0;
        g_autofree char *set =
            g_strconcat(*key, "=", is_file ? file : OPTION[i].value, NULL);
        /* dispatcher needs experts, and GPUs of data sheets */
        const bool sends = strcmp(*key, "dispatcher") == 0;
        const char *model = sends ? "mixtral:layers=1,seq=16" : MODEL;
        const Cluster *on = sends ? sheets : cluster;
        g_autofree char *plain = hash_with(model, on, OPTION[i].planner, NULL);
        g_autofree char *hash = hash_with(model, on, OPTION[i].planner, set);
        if (strcmp(hash, plain) == 0) {
            print_error("option %s: the same hash\n", *key);
            fail();
        }
    }
}

/* The contents of a file count, not its name. */
static void test_every_file_counts(void **state)
{
    (void)state;
    static const struct {
        const char *key, *planner, *first, *second;
    } FILES[] = {{"profile", "amp", LAYER_COLUMNS "1\n", LAYER_COLUMNS "2\n"},
                 {"layer_times", "hap", LAYER_COLUMNS "1\n", LAYER_COLUMNS "2\n"},
                 {"pins", "hap", "head.weight=identity\n", "head.weight=gather(0)\n"},
                 {"segments", "hap", "*=1\n", "*=2\n"}};
    g_autoptr(Sandbox) box = sandbox_new();
    g_autoptr(Cluster) cluster = parse(BUILT);
    for (uint32_t i = 0; i < G_N_ELEMENTS(FILES); i++) {
        char *hash[3];
        for (uint32_t k = 0; k < 3; k++) {
            const char *name = k == 2 ? "other" : "file";
            g_autofree char *path = g_build_filename(box->folder, name, NULL);
            g_autofree char *set = g_strdup_printf("%s=%s", FILES[i].key, path);
            sandbox_write(box, name, k == 0 ? FILES[i].first : FILES[i].second);
            hash[k] = hash_on(cluster, FILES[i].planner, set);
        }
        assert_string_not_equal(hash[0], hash[1]);
        assert_string_equal(hash[1], hash[2]);
        for (uint32_t k = 0; k < 3; k++)
            g_free(hash[k]);
    }
}

static void test_default_tuning_counts(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autoptr(Cluster) cluster = parse(BUILT);
    g_autofree char *folder = g_build_filename(box->folder, "tuning", NULL);
    g_autofree char *text = NULL;
    assert_int_equal(g_mkdir(folder, 0777), 0);
    assert_true(
        g_file_get_contents(KILTER_HOME "/data/tuning/default.yaml", &text, NULL, NULL));
    g_autofree char *edited = replaced(text, "most_bytes: 1 MiB", "most_bytes: 2 MiB");
    g_autofree char *before = hash_on(cluster, "dp-ev", NULL);
    sandbox_write(box, "tuning/default.yaml", text);
    g_setenv("KILTER_PATH", box->folder, TRUE);
    g_autofree char *same = hash_on(cluster, "dp-ev", NULL);
    sandbox_write(box, "tuning/default.yaml", edited);
    g_autofree char *after = hash_on(cluster, "dp-ev", NULL);
    g_unsetenv("KILTER_PATH");
    assert_string_equal(before, same);
    assert_string_not_equal(before, after);
}

/* Files that the value of an option stands for: one found before them on the search path counts. */
static void test_named_files_count(void **state)
{
    (void)state;
    static const struct {
        const char *folder, *file, *planner, *set;
    } NAMED[] = {{"runtimes", "runtimes/pytorch.yaml", "hap", "runtime=pytorch"},
                 {"runtimes", "runtimes/fsdp.yaml", "hap", "runtime=fsdp/allocated"},
                 {"tag", "tag/network.txt", "tag", "priors=gnn"}};
    g_autoptr(Cluster) cluster = parse(BUILT);
    for (uint32_t i = 0; i < G_N_ELEMENTS(NAMED); i++) {
        g_autoptr(Sandbox) box = sandbox_new();
        g_autofree char *folder = g_build_filename(box->folder, NAMED[i].folder, NULL);
        g_autofree char *path =
            g_build_filename(KILTER_HOME "/data", NAMED[i].file, NULL);
        g_autofree char *text = NULL;
        assert_int_equal(g_mkdir(folder, 0777), 0);
        assert_true(g_file_get_contents(path, &text, NULL, NULL));
        g_autofree char *edited = g_strconcat("# edited\n", text, NULL);
        g_autofree char *before = hash_on(cluster, NAMED[i].planner, NAMED[i].set);
        sandbox_write(box, NAMED[i].file, text);
        g_setenv("KILTER_PATH", box->folder, TRUE);
        g_autofree char *same = hash_on(cluster, NAMED[i].planner, NAMED[i].set);
        sandbox_write(box, NAMED[i].file, edited);
        g_autofree char *after = hash_on(cluster, NAMED[i].planner, NAMED[i].set);
        g_unsetenv("KILTER_PATH");
        assert_string_equal(before, same);
        assert_string_not_equal(before, after);
    }
}

/* --- bundled files --- */

/* Questions that together read the bundled files on which an answer may depend. */
static const struct {
    const char *cluster, *planner, *option;
} ASKED[] = {
    {"hap-8", "dp-ev", NULL},         {"star:hosts=2", "dp-ev", NULL},
    {"random:seed=1", "dp-ev", NULL}, {"dgx-h100", "dp-ev", NULL},
    {"hap-8", "hap", "runtime=%s"},   {"hap-8", "tag", "priors=gnn"},
    {"hap-8", "tag", "priors=ahead"},
};

/* The identity of what is asked and, after a space, its answer, or the errors in their places. */
static void ask(uint32_t row, const char *file, char **identity, char **answer)
{
    GError *error = NULL;
    PlannerOptions options;
    planner_options_init(&options);
    g_autofree char *name = g_path_get_basename(file);
    *strchr(name, '.') = '\0';
    g_autofree char *set =
        ASKED[row].option ? g_strdup_printf(ASKED[row].option, name) : NULL;
    g_autoptr(Cluster) cluster = cluster_load(ASKED[row].cluster, &error);
    const Planner *planner = planner_find(ASKED[row].planner, NULL);
    *answer = *identity = NULL;
    if (!error && planner_can(planner, PLANNER_TREES)) {
        option_assign(&options, "search=mcts", &error);
        option_assign(&options, "evaluations=8", &error);
        option_assign(&options, "groups=4", &error);
    }
    g_autoptr(Configuration) c = NULL;
    if (!error && (!set || option_assign(&options, set, &error))) {
        const ConfigurationAsk ask = {.model = MODEL,
                                      .cluster_name = "it",
                                      .cluster = cluster,
                                      .granularity = GRANULARITY_MACHINE,
                                      .planner = planner,
                                      .fidelity = "flow",
                                      .options = &options};
        c = configuration_new(&ask, &error);
    }
    g_autoptr(StorePart) part = c ? question_cluster(cluster, &error) : NULL;
    if (part && result_identify(c, part, &error)) {
        g_auto(Result) result = {0};
        *identity = g_strdup(c->hash);
        if (result_evaluate(c, "x", &result, &error))
            *answer = g_strdup_printf("%.17g %s", result.row.iteration_time_s,
                                      result.row.message ? result.row.message : "");
    }
    if (!*identity)
        *identity = g_strdup(error->message);
    if (!*answer)
        *answer = g_strdup(error->message);
    g_clear_error(&error);
}

/* Each bundled file in turn is replaced by one of which nothing can be made: where an answer
 * changes, its identity does, or there is none. */
static void test_replaced_files_count(void **state)
{
    (void)state;
    static const char *const FILES[] = {
        "clusters/hap-8.yaml",    "devices/h100-sxm.yaml",      "links.yaml",
        "sustained.yaml",         "tuning/default.yaml",        "random/topologies.csv",
        "runtimes/pytorch.yaml",  "runtimes/fsdp.yaml",         "runtimes/horovod.yaml",
        "runtimes/megatron.yaml", "runtimes/pytorch-ddp.yaml",  "runtimes/deepspeed.yaml",
        "kernels.yaml",           "runtimes/tensorflow-1.yaml", "tag/network.txt",
        "tag/ahead.txt"};
    uint32_t n_read = 0;
    for (uint32_t f = 0; f < G_N_ELEMENTS(FILES); f++) {
        g_autoptr(Sandbox) box = sandbox_new();
        g_autofree char *folder = g_path_get_dirname(FILES[f]);
        g_autofree char *made = g_build_filename(box->folder, folder, NULL);
        const bool is_runtime = g_str_has_prefix(FILES[f], "runtimes/");
        bool read = false;
        g_mkdir(made, 0777);
        for (uint32_t row = 0; row < G_N_ELEMENTS(ASKED); row++) {
            g_autofree char *before = NULL, *was = NULL, *after = NULL, *is = NULL;
            if (is_runtime != (ASKED[row].option && strstr(ASKED[row].option, "%s")))
                continue;
            ask(row, FILES[f], &before, &was);
            sandbox_write(box, FILES[f], "nothing: [of, it\n");
            g_setenv("KILTER_PATH", box->folder, TRUE);
            ask(row, FILES[f], &after, &is);
            g_unsetenv("KILTER_PATH");
            const bool differs = strcmp(was, is) != 0;
            read |= differs;
            if (differs && strcmp(before, after) == 0)
                fail_msg("%s on %s with %s: another answer to the same question",
                         FILES[f], ASKED[row].cluster, ASKED[row].planner);
        }
        n_read += read;
        if (!read)
            print_message("%s: no question of this test reads it\n", FILES[f]);
    }
    assert_true(n_read + 1 >= G_N_ELEMENTS(FILES)); /* kernels.yaml */
}

/* --- the axes of an experiment --- */

static const struct {
    const char *section, *axis, *first, *second;
} AXIS[] = {
    {"grid", "model", "'" MODEL "'", "'" MODEL ",batch=3'"},
    {"grid", "cluster", "hap-8", "hap-16"},
    {"grid", "planner", "dp-ev", "dp-cp"},
    {"grid", "granularity", "machine", "gpu"},
    {"grid", "fidelity", "stage", "flow"},
    {"grid", "seed", "1", "2"},
    {"exchange", "kind", "all_gather", "all_to_all"},
    {"exchange", "bytes", "4 MB", "5 MB"},
    {"exchange", "share", "0.25", "0.5"},
    {"exchange", "cluster", "hap-8", "hap-16"},
    {"exchange", "granularity", "gpu", "machine"},
};

/* The hash of the one configuration whose `axis` has its second value. */
static char *hash_of_axis(const Sandbox *box, const char *section, const char *axis)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *path = g_build_filename(box->folder, "x.yaml", NULL);
    g_string_printf(text, "name: x\n%s:\n", section);
    for (uint32_t i = 0; i < G_N_ELEMENTS(AXIS); i++)
        if (strcmp(AXIS[i].section, section) == 0)
            g_string_append_printf(text, "  %s: [%s]\n", AXIS[i].axis,
                                   g_strcmp0(AXIS[i].axis, axis) == 0 ? AXIS[i].second
                                                                      : AXIS[i].first);
    sandbox_write(box, "x.yaml", text->str);
    GError *error = NULL;
    g_autoptr(Experiment) experiment = experiment_load(path, NULL, &error);
    assert_no_error(error);
    assert_int_equal(experiment_count(experiment), 1);
    return g_strdup(experiment_at(experiment, 0)->hash);
}

/* The names in "..., expected one of A, B, C". */
static char **names_in(const GError *error)
{
    const char *list = strstr(error->message, "expected one of ");
    assert_non_null(list);
    assert_null(strstr(list, " more"));
    list += strlen("expected one of ");
    g_autofree char *names = g_strndup(list, strcspn(list, ";"));
    return g_strsplit(names, ", ", -1);
}

static void check_axes(const Sandbox *box, const char *section)
{
    g_autofree char *path = g_build_filename(box->folder, "y.yaml", NULL);
    g_autofree char *text = g_strdup_printf("name: y\n%s:\n  none_such: [x]\n", section);
    g_autofree char *plain = hash_of_axis(box, section, NULL);
    g_autoptr(GError) error = NULL;
    sandbox_write(box, "y.yaml", text);
    assert_null(experiment_load(path, NULL, &error));
    g_auto(GStrv) known = names_in(error);
    for (char **axis = known; *axis; axis++) {
        uint32_t rows = 0;
        if (strchr(*axis,
                   '.')) /* a key of models, clusters or planners, with rows above */
            continue;
        for (uint32_t i = 0; i < G_N_ELEMENTS(AXIS); i++)
            rows +=
                strcmp(AXIS[i].section, section) == 0 && strcmp(AXIS[i].axis, *axis) == 0;
        g_autofree char *hash = hash_of_axis(box, section, *axis);
        if (rows != 1 || strcmp(hash, plain) == 0) {
            print_error("axis %s.%s: %u rows in AXIS, or the same hash\n", section, *axis,
                        rows);
            fail();
        }
    }
}

static void test_every_axis_counts(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    check_axes(box, "grid");
    check_axes(box, "exchange");
}

/* A cluster's file edited between two sweeps is another question under every fidelity. */
static void test_edited_cluster_is_evaluated(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *text = NULL;
    assert_true(
        g_file_get_contents(KILTER_HOME "/data/clusters/hap-8.yaml", &text, NULL, NULL));
    static const char *const NETWORK[] = {
        "topology: {builder: 'star:bandwidth=10Gb/s', source: x}\n",
        "topology: {builder: 'star:bandwidth=1Gb/s', source: x}\n",
        ("topology: {builder: 'star:bandwidth=1Gb/s', source: x}\n"
         "tuning: {rules: [{collective: all_reduce, algorithm: tree}], source: x}\n")};
    sandbox_write(box, "x.yaml",
                  "name: x\ngrid:\n  model: ['vgg19:width=8,fc=512']\n"
                  "  cluster: [./c.yaml]\n  planner: [dp-ev]\n  fidelity: [flow]\n");
    for (uint32_t i = 0; i < G_N_ELEMENTS(NETWORK); i++) {
        g_autofree char *whole = g_strconcat(text, NETWORK[i], NULL);
        sandbox_write(box, "c.yaml", whole);
        g_auto(Ran) first = program_run(box, "sweep x.yaml --db r.db");
        assert_int_equal(first.status, 0);
        assert_non_null(strstr(first.out, "0 already there, 1 evaluated"));
        g_auto(Ran) second = program_run(box, "sweep x.yaml --db r.db");
        assert_non_null(strstr(second.out, "1 already there, 0 evaluated"));
    }
}

/* An edited model file is another question, too, although its name is the same. */
static void test_edited_model_is_evaluated(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml",
                  "name: x\ngrid:\n  model: [m.json]\n  cluster: [hap-8]\n"
                  "  planner: [dp-ev]\n");
    for (uint32_t layers = 1; layers <= 2; layers++) {
        g_autofree char *write = g_strdup_printf(
            "models vit:layers=%u,hidden=64,heads=4,ffn=128 -o m.json", layers);
        program_runs(box, write);
        g_auto(Ran) first = program_run_good(box, "sweep x.yaml --db r.db");
        assert_non_null(strstr(first.out, "0 already there, 1 evaluated"));
        g_auto(Ran) second = program_run_good(box, "sweep x.yaml --db r.db");
        assert_non_null(strstr(second.out, "1 already there, 0 evaluated"));
    }
}

/* A time in a profile counts. */
static void test_edited_profile_is_evaluated(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml",
                  "name: x\ngrid:\n  model: ['profile:m.json']\n  cluster: [hap-a100-4]\n"
                  "  planner: [dp-ev]\n");
    for (uint32_t seconds = 1; seconds <= 2; seconds++) {
        g_autofree char *text = g_strdup_printf(
            "{\"format\": {\"name\": \"kilter-profile\", \"version\": 1}, \"batch\": 8, "
            "\"ops\": [{\"op\": \"a\", \"bytes\": 64, \"parameter_bytes\": 64, "
            "\"forward_s\": {\"a100\": %u}, \"backward_s\": {\"a100\": 1}}]}",
            seconds);
        sandbox_write(box, "m.json", text);
        g_auto(Ran) first = program_run_good(box, "sweep x.yaml --db r.db");
        assert_non_null(strstr(first.out, "0 already there, 1 evaluated"));
        g_auto(Ran) second = program_run_good(box, "sweep x.yaml --db r.db");
        assert_non_null(strstr(second.out, "1 already there, 0 evaluated"));
    }
}

/* --- what a release adds --- */

static void add_part(GString *text, const char *name, StorePart *part)
{
    assert_non_null(part);
    g_string_append_printf(text, "%s %s\n", name, store_part_text(part));
    store_part_unref(part);
}

/* The parts of the plainest questions: every model, two clusters, the method of each fidelity. */
static char *plain_parts(void)
{
    static const char *const FIDELITY[] = {"analytic", "stage", "flow"};
    g_autoptr(GString) text = g_string_new("");
    GError *error = NULL;
    PlannerOptions options;
    planner_options_init(&options);
    for (uint32_t m = 0; m < MODEL_TABLE_SIZE; m++) {
        g_autofree char *content = NULL;
        g_autofree char *model =
            model_resolve(MODEL_TABLE[m].info.name, 2, &content, &error);
        assert_no_error(error);
        add_part(text, "subject", question_model(model, content));
    }
    g_autoptr(Cluster) built = parse(BUILT);
    g_autoptr(Cluster) unlike = parse(UNLIKE);
    const Cluster *clusters[] = {built, unlike};
    for (uint32_t i = 0; i < G_N_ELEMENTS(clusters); i++) {
        g_autofree char *cluster = cluster_canonical(clusters[i]);
        add_part(text, "cluster", store_part_new(cluster));
    }
    for (uint32_t i = 0; i < G_N_ELEMENTS(FIDELITY); i++) {
        const ConfigurationAsk ask = {.model = MODEL,
                                      .cluster_name = "it",
                                      .cluster = built,
                                      .granularity = GRANULARITY_MACHINE,
                                      .planner = planner_find("hap", NULL),
                                      .fidelity = FIDELITY[i],
                                      .options = &options};
        g_autoptr(Configuration) c = configuration_new(&ask, &error);
        assert_no_error(error);
        add_part(text, "method", question_of_method(c, &error));
    }
    return g_strdup(text->str);
}

/* A part that changes takes every stored row away from its question: either what is new is left
 * out where it has the default by which answers stay as they were, or answers are others and
 * QUESTION_ANSWERS is raised. KILTER_RECORD=1 writes the file anew. */
static void test_questions_stay_as_they_are(void **state)
{
    (void)state;
    static const char file[] = KILTER_HOME "/tests/golden/identities.txt";
    g_autofree char *now = plain_parts(), *recorded = NULL;
    if (g_getenv("KILTER_RECORD"))
        assert_true(g_file_set_contents(file, now, -1, NULL));
    assert_true(g_file_get_contents(file, &recorded, NULL, NULL));
    g_auto(GStrv) got = g_strsplit(now, "\n", -1), want = g_strsplit(recorded, "\n", -1);
    for (uint32_t i = 0; got[i] && want[i]; i++)
        assert_string_equal(got[i], want[i]);
    assert_string_equal(now, recorded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_key_has_a_row),
        cmocka_unit_test(test_every_key_is_documented),
        cmocka_unit_test(test_every_key_counts),
        cmocka_unit_test(test_written_whole),
        cmocka_unit_test(test_every_option_counts),
        cmocka_unit_test(test_every_file_counts),
        cmocka_unit_test(test_named_files_count),
        cmocka_unit_test(test_replaced_files_count),
        cmocka_unit_test(test_default_tuning_counts),
        cmocka_unit_test(test_every_axis_counts),
        cmocka_unit_test(test_edited_cluster_is_evaluated),
        cmocka_unit_test(test_edited_model_is_evaluated),
        cmocka_unit_test(test_edited_profile_is_evaluated),
        cmocka_unit_test(test_questions_stay_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
