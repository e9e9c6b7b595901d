/* The table of the planners that make plans themselves. Those that choose among plans of these come
 * after them, in synth/auto/choosers.c. */
#include "synth/planners/planner.h"

#include <math.h>
#include <string.h>

#include "data/base/units.h"
#include "synth/amp/make.h"
#include "synth/auto/make.h"
#include "synth/baselines/make.h"
#include "synth/hap/make.h"
#include "synth/hidup/make.h"
#include "synth/joint/make.h"
#include "synth/tag/make.h"

/* One program for all devices, with ratios that can be chosen; bounds hold for such plans. */
#define SPMD (PLANNER_RATIOS | PLANNER_CERTIFIES | PLANNER_TRIED)
/* Stages and replicas of single GPUs. */
#define PIPELINES (PLANNER_STRATEGY | PLANNER_GROUPS | PLANNER_GPUS | PLANNER_ZERO)
/* One program, data parallel. */
#define REPLICAS (SPMD | PLANNER_ZERO)

static const Planner planner[] = {
    {"hap", "program and ratios by alternating search and linear program",
     "HAP (EuroSys'24), Sec. 3-5",
     SPMD | PLANNER_PINS | PLANNER_SEGMENTS | PLANNER_BALANCES | PLANNER_SEARCHES |
         PLANNER_BOUNDS,
     hap_make, 0},
    {"dp-ev", "data parallelism, equal shares per GPU", "HAP Sec. 7.1",
     REPLICAS | PLANNER_EVEN, baselines_make, BASELINES_REPLICAS},
    {"dp-cp", "data parallelism, shares proportional to speed", "HAP Sec. 7.1", REPLICAS,
     baselines_make, BASELINES_REPLICAS},
    {"deepspeed", "ZeRO data parallelism and expert parallelism, equal shares per GPU",
     "HAP Sec. 7.1; ZeRO (SC'20)", SPMD | PLANNER_EVEN, baselines_make,
     BASELINES_DEEPSPEED},
    {"gshard",
     "data parallelism, experts sharded and tokens exchanged, equal shares per GPU",
     "GShard (ICLR'21)", SPMD | PLANNER_EVEN, baselines_make, BASELINES_GSHARD},
    {"tensor-parallel", "every device in one tensor parallel group, equal shares per GPU",
     "Megatron-LM (2019), Sec. 3", SPMD | PLANNER_EVEN, baselines_make,
     BASELINES_TENSOR_PARALLEL},
    {"amp", "pipelines, replicas and tensor parallelism, layers assigned exactly",
     "AMP (NeurIPS'22), Algorithm 1", PIPELINES | PLANNER_TRIED, amp_make, AMP_SEARCH},
    {"amp-sa", "like amp, with the devices placed by simulated annealing", "AMP Sec. 4.2",
     PIPELINES | PLANNER_TRIED | PLANNER_LAST, amp_make, AMP_ANNEAL},
    {"megatron",
     "Megatron's heuristics: least tensor and pipeline parallelism, even cuts",
     "AMP Sec. 4.1; Megatron-LM (SC'21)", PIPELINES | PLANNER_TRIED, amp_make,
     AMP_MEGATRON_LAYERS},
    {"amp-random", "degrees, placement and cuts at random, by the seed", "AMP Sec. 4.5",
     PIPELINES, amp_make, AMP_RANDOM},
    {"manual", "a strategy of your own: --strategy FILE, or its keys by --set",
     "Megatron-LM (SC'21); ZeRO (SC'20)", PIPELINES, baselines_make_manual, 0},
    {"fastmoe",
     "expert parallelism for the expert layers, data parallelism for the others",
     "FastMoE (2021); HiDup Sec. 6.1", SPMD | PLANNER_EVEN, baselines_make,
     BASELINES_GSHARD},
    {"ddp", "data parallelism, gradients in buckets of 25 MiB, as in PyTorch",
     "HiDup Sec. 6.1", REPLICAS | PLANNER_EVEN, baselines_make, BASELINES_DDP},
    {"horovod", "data parallelism, gradients fused up to 64 MiB",
     "Horovod (2018); HiDup Sec. 6.1", REPLICAS | PLANNER_EVEN, baselines_make,
     BASELINES_HOROVOD},
    {"hidup",
     "best program found for two microbatches that take turns, equal shares per GPU",
     "HiDup (SoCC'22), Sec. 3-4", SPMD | PLANNER_EVEN | PLANNER_TURNS, hidup_make, 0},
    {"tag", "op groups, each on a subset of the devices, with servers and duplicates",
     "TAG (TPDS 2023), Sec. 4",
     PLANNER_RATIOS | PLANNER_GROUPS | PLANNER_PLACES | PLANNER_TREES, tag_make, 0},
    {"dp-nccl", "data parallelism, equal shares per GPU, gradients one by one",
     "TAG (TPDS 2023), Sec. 5.2", REPLICAS | PLANNER_EVEN, baselines_make,
     BASELINES_REPLICAS},
    {"dp-nccl-p", "data parallelism, shares proportional to speed, gradients one by one",
     "TAG Sec. 5.2", REPLICAS, baselines_make, BASELINES_REPLICAS},
    {"dp-nccl-sfb", "data parallelism, with sufficient factors broadcast where that pays",
     "TAG Sec. 4.2.3, 5.6", PLANNER_RATIOS | PLANNER_GROUPS | PLANNER_PLACES,
     tag_make_dp_factors, 0},
    {"flexflow",
     "replicas of op groups on subsets, by a Markov chain, as if devices were equal",
     "FlexFlow (MLSys'19), Sec. 6; TAG Sec. 5.2",
     PLANNER_RATIOS | PLANNER_GROUPS | PLANNER_PLACES, tag_make_flexflow, 0},
    {"heterog", "op groups replicated on all devices, with or without servers, or on one",
     "HeteroG (CoNEXT'20), Sec. 3; TAG Sec. 5.2",
     PLANNER_RATIOS | PLANNER_GROUPS | PLANNER_PLACES, tag_make_heterog, 0},
    {"m-topo",
     "layers on single devices in order, each filled with its part of the bytes",
     "Baechi (SoCC'20), Sec. 3", PLANNER_GROUPS, tag_make_list, TAG_TOPO},
    {"m-etf", "layers on single devices, the earliest start first, within the memory",
     "Baechi Sec. 3", PLANNER_GROUPS, tag_make_list, TAG_ETF},
    {"m-sct", "like m-etf, with favourite children by a linear program",
     "Baechi Sec. 3.3; Hanen and Munier (1995)", PLANNER_GROUPS, tag_make_list, TAG_SCT},
    {"joint",
     "pipelines whose stages differ in devices, programs, layers and recomputation",
     "AMP (NeurIPS'22), Sec. 3; HAP (EuroSys'24), Sec. 8",
     PLANNER_GROUPS | PLANNER_GPUS | PLANNER_SHARES | PLANNER_TRIED | PLANNER_FIRST,
     joint_make, 0},
};

/* The sizes of questions up to which a search takes about 20 s and 2 GiB; 0: any. Where nothing fits
 * a device, a search holds many more states, so that its memory has a number of ops of its own. */
typedef struct {
    const char *planner;
    uint32_t ops, memory_ops; /* of the model with backward pass and updates */
    uint32_t devices, memory_devices;
    uint32_t most_gpus; /* beyond, the planner refuses; 0: never */
} Size;

static const Size SIZE[] = {{"hap", 10000, 6000, 0, 0, 0},
                            {"hidup", 10000, 10000, 0, 0, 0},
                            {"amp", 0, 0, 1024, 1024, 8192},
                            {"amp-sa", 0, 0, 512, 512, 4096},
                            {"megatron", 0, 0, 10000, 16384, 0},
                            {"tag", 0, 0, 400, 4000, 16384},
                            {"flexflow", 0, 0, 4000, 4000, 16384},
                            {"heterog", 0, 0, 500, 4000, 16384},
                            {"dp-nccl-sfb", 0, 0, 4000, 4000, 16384},
                            {"m-topo", 0, 0, 2000, 4000, 16384},
                            {"m-etf", 0, 0, 2000, 4000, 16384},
                            {"m-sct", 0, 0, 2000, 4000, 16384},
                            {"joint", 9000, 9000, 4096, 4096, 0}};

/* How many times a size is over its bound; 0 where there is none. */
static double size_excess(uint32_t n, uint32_t bound)
{
    return bound ? (double)n / bound : 0;
}

static Size planner_size(const Planner *of)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(SIZE); i++)
        if (strcmp(SIZE[i].planner, of->name) == 0)
            return SIZE[i];
    return (Size){0};
}

bool planner_takes_size(const Planner *of, const ClusterView *view, GError **error)
{
    const uint32_t gpus = cluster_gpus(view->cluster), most = planner_size(of).most_gpus;
    return most == 0 || gpus <= most ||
           refuse(error,
                  "%s searches up to %u GPUs, the cluster has %u; use joint, or a "
                  "planner without a search",
                  of->name, most, gpus);
}

static PlannerHear planner_hear;

void planner_tell(PlannerHear hear)
{
    planner_hear = hear;
}

enum { USUAL_S = 20 };
#define USUAL_BYTES 0x1p31

void planner_say(const char *what, double seconds, double bytes)
{
    if (!planner_hear || (seconds <= USUAL_S && bytes <= USUAL_BYTES))
        return;
    g_autofree char *memory = units_format(bytes, QUANTITY_BYTES);
    g_autofree char *words = g_strdup_printf(
        "%s may take %.0f s or more%s%s%s", what, seconds, bytes > 0 ? ", and " : "",
        bytes > 0 ? memory : "", bytes > 0 ? " of memory" : "");
    planner_hear(seconds, words);
}

void planner_say_size(const Planner *of, const Graph *graph, const ClusterView *view)
{
    const Size size = planner_size(of);
    const uint32_t ops = graph_n_ops(graph), gpus = cluster_gpus(view->cluster);
    const double excess = fmax(size_excess(ops, size.ops),
                               size_excess(view->n_devices, size.devices));
    g_autofree char *what =
        g_strdup_printf("%s on %u ops and %u GPUs", of->name, ops, gpus);
    planner_say(what, USUAL_S * excess * excess,
                USUAL_BYTES * fmax(size_excess(ops, size.memory_ops),
                                   size_excess(view->n_devices, size.memory_devices)));
}

const Planner *planner_makers(uint32_t *n)
{
    *n = G_N_ELEMENTS(planner);
    return planner;
}

char *planners_that(uint32_t ability)
{
    g_autoptr(GString) names = g_string_new("");
    uint32_t n = 0;
    for (uint32_t i = 0; i < G_N_ELEMENTS(planner); i++)
        if (planner_can(&planner[i], ability))
            g_string_append_printf(names, "%s%s", n++ ? ", " : "", planner[i].name);
    return g_strdup_printf("%s %s", n == 1 ? "planner" : "one of the planners",
                           names->str);
}
