/* The table of the planners that make plans themselves. Those that choose among plans of these come
 * after them, in synth/auto/choosers.c. */
#include "synth/planners/planner.h"

#include <math.h>
#include <string.h>

#include "data/base/path.h"
#include "data/base/units.h"
#include "synth/amp/make.h"
#include "synth/baselines/make.h"
#include "synth/hap/make.h"
#include "synth/hidup/make.h"
#include "synth/joint/make.h"
#include "synth/tag/make.h"

/* One program for all devices, with ratios that can be chosen; bounds hold for such plans. */
#define SPMD (PLANNER_RATIOS | PLANNER_CERTIFIES | PLANNER_TRIED)
/* One program, data parallel. */
#define REPLICAS (SPMD | PLANNER_ZERO)
/* Op groups on subsets of the devices. */
#define PLACES (PLANNER_RATIOS | PLANNER_GROUPS | PLANNER_PLACES)

#define ANY_SIZE 0, 0, 0, 0, 0

/* Name, abilities, make() with its variant, and sizes where there are any: planner.h. */
static const Planner planner[] = {
    {"hap",
     SPMD | PLANNER_PINS | PLANNER_SEGMENTS | PLANNER_BALANCES | PLANNER_SEARCHES |
         PLANNER_BOUNDS,
     hap_make, 0, 10000, 6000, 0, 0, 0},
    {"dp-ev", REPLICAS | PLANNER_EVEN, baselines_make, BASELINES_REPLICAS, ANY_SIZE},
    {"dp-cp", REPLICAS, baselines_make, BASELINES_REPLICAS, ANY_SIZE},
    {"deepspeed", SPMD | PLANNER_EVEN, baselines_make, BASELINES_DEEPSPEED, ANY_SIZE},
    {"gshard", SPMD | PLANNER_EVEN, baselines_make, BASELINES_GSHARD, ANY_SIZE},
    {"tensor-parallel", SPMD | PLANNER_EVEN, baselines_make, BASELINES_TENSOR_PARALLEL,
     ANY_SIZE},
    {"amp", PLANNER_PIPELINES | PLANNER_TRIED, amp_make, AMP_SEARCH, 0, 0, 4096, 2600,
     8192},
    {"amp-sa", PLANNER_PIPELINES | PLANNER_TRIED | PLANNER_LAST, amp_make, AMP_ANNEAL, 0,
     0, 512, 4096, 4096},
    {"megatron", PLANNER_PIPELINES | PLANNER_TRIED, amp_make, AMP_MEGATRON_LAYERS, 0, 0,
     10000, 16384, 0},
    {"amp-random", PLANNER_PIPELINES, amp_make, AMP_RANDOM, ANY_SIZE},
    {"manual", PLANNER_PIPELINES | PLANNER_WHOLE, baselines_make_manual, 0, ANY_SIZE},
    {"fastmoe", SPMD | PLANNER_EVEN, baselines_make, BASELINES_GSHARD, ANY_SIZE},
    {"ddp", REPLICAS | PLANNER_EVEN, baselines_make, BASELINES_DDP, ANY_SIZE},
    {"horovod", REPLICAS | PLANNER_EVEN, baselines_make, BASELINES_HOROVOD, ANY_SIZE},
    {"hidup", SPMD | PLANNER_EVEN | PLANNER_TURNS, hidup_make, 0, 10000, 10000, 0, 0, 0},
    {"tag", PLACES | PLANNER_TREES, tag_make, 0, 0, 0, 400, 4000, 16384},
    {"dp-nccl", REPLICAS | PLANNER_EVEN, baselines_make, BASELINES_REPLICAS, ANY_SIZE},
    {"dp-nccl-p", REPLICAS, baselines_make, BASELINES_REPLICAS, ANY_SIZE},
    {"dp-nccl-sfb", PLACES, tag_make_dp_factors, 0, 0, 0, 4000, 4000, 16384},
    {"flexflow", PLACES, tag_make_flexflow, 0, 0, 0, 4000, 4000, 16384},
    {"heterog", PLACES, tag_make_heterog, 0, 0, 0, 500, 4000, 16384},
    {"m-topo", PLANNER_GROUPS, tag_make_list, TAG_TOPO, 0, 0, 2000, 4000, 16384},
    {"m-etf", PLANNER_GROUPS, tag_make_list, TAG_ETF, 0, 0, 2000, 4000, 16384},
    {"m-sct", PLANNER_GROUPS, tag_make_list, TAG_SCT, 0, 0, 2000, 4000, 16384},
    {"joint",
     PLANNER_GROUPS | PLANNER_GPUS | PLANNER_SHARES | PLANNER_HOSTS | PLANNER_TRIED |
         PLANNER_FIRST,
     joint_make, 0, 9000, 9000, 65536, 65536, 0},
};

/* How many times a size is over its bound; 0 where there is none. */
static double size_excess(uint32_t n, uint32_t bound)
{
    return bound ? (double)n / bound : 0;
}

bool planner_takes_size(const Planner *of, const ClusterView *view, GError **error)
{
    enum { MOST_KINDS = 64 };
    const uint32_t gpus = cluster_gpus(view->cluster), most = of->most_gpus;
    if (most > 0 && gpus > most)
        return refuse(error,
                      "%s searches up to %u GPUs, the cluster has %u; use joint, or a "
                      "planner without a search",
                      of->name, most, gpus);
    g_auto(DeviceKinds) kinds = {0};
    return (of->devices == 0 && !planner_can(of, PLANNER_SEARCHES)) ||
           device_kinds(view, MOST_KINDS, &kinds) ||
           refuse(error,
                  "%s searches up to %u kinds of devices, the cluster has more; use a "
                  "planner without a search, such as dp-cp",
                  of->name, MOST_KINDS);
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

void planner_expects(const Planner *of, uint32_t ops, uint32_t devices, double *seconds,
                     double *bytes)
{
    const double by_ops = 2, by_devices = 1.5; /* powers that were measured */
    *seconds = USUAL_S * fmax(pow(size_excess(ops, of->ops), by_ops),
                              pow(size_excess(devices, of->devices), by_devices));
    *bytes = USUAL_BYTES * fmax(size_excess(ops, of->memory_ops),
                                size_excess(devices, of->memory_devices));
}

void planner_say_size(const Planner *of, const Graph *graph, const ClusterView *view)
{
    const uint32_t ops = graph_n_ops(graph), gpus = cluster_gpus(view->cluster);
    double seconds, bytes;
    planner_expects(of, ops, view->n_devices, &seconds, &bytes);
    g_autofree char *what =
        g_strdup_printf("%s on %u ops and %u GPUs", of->name, ops, gpus);
    planner_say(what, seconds, bytes);
}

char **planner_about(const Planner *of)
{
    g_autofree char *line = path_line("commands/methods.txt", of->name);
    g_autofree char *whole = g_strconcat(line, strstr(line, " | ") ? "" : " | ", NULL);
    return g_strsplit(whole, " | ", 2);
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
