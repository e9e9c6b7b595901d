/* kilter collective. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/base/order.h"
#include "data/base/units.h"
#include "data/base/version.h"
#include "experiments/answers.h"
#include "experiments/cli/command.h"
#include "sim/network/collective_run.h"
#include "synth/planners/planner.h"

/* clang-format off */
#define COLLECTIVE_OPTIONS(X)                               \
    X(TEXT, bytes, "bytes", 'b')                            \
    X(TEXT, algorithm, "algorithm", 'a')                    \
    X(TEXT, shares, "shares", 0)                            \
    X(TEXT, root, "root", 0)                                \
    X(TEXT, ranks, "ranks", 0)                              \
    X(TEXT, skew, "skew", 0)                                \
    X(TEXT, granularity, "granularity", 0)                  \
    X(CHANGED, how)                                         \
    X(OWNED, share, GArray *, g_array_unref)   /* double */ \
    X(OWNED, device, GArray *, g_array_unref)  /* uint32_t */
/* clang-format on */
COMMAND_OPTIONS(Own, collective_options, COLLECTIVE_OPTIONS)

static const double SHARE_MAX = 1e12;

/* Orders links by the used part of their bandwidth, the largest first, then by name. */
static ORDER_DEFINE(by_use, SimLinkReport,
                    (x->bytes / x->bandwidth < y->bytes / y->bandwidth) -
                        (x->bytes / x->bandwidth > y->bytes / y->bandwidth),
                    BY_NAME(name));

/* Switches that sum up make a ring's bytes fewer, so that its links count more than they carry. */
static double utilization(const SimCollectiveRun *run, const SimLinkReport *link)
{
    return run->time_s > 0 ? fmin(link->bytes / (link->bandwidth * run->time_s), 1) : 0;
}

static json_t *run_json(const char *kind, const char *cluster, double bytes,
                        const SimCollectiveRun *run, uint64_t seed)
{
    json_t *links = json_array(), *ends = json_array();
    items_each (const SimLinkReport, link, run->link, run->n_links)
        json_array_append_new(
            links, json_pack("{s:s, s:f, s:f, s:f, s:f}", "name", link->name, "bandwidth",
                             link->bandwidth, "bytes", link->bytes, "busy_s",
                             link->busy_s, "utilization", utilization(run, link)));
    for (uint32_t r = 0; r < run->n_ranks; r++)
        json_array_append_new(ends, json_pack("{s:f, s:f}", "arrival_s",
                                              run->arrival_s[r], "end_s", run->end_s[r]));
    return json_pack(
        "{s:s, s:s, s:s, s:f, s:i, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:I, s:s}",
        "collective", kind, "cluster", cluster, "algorithm", run->algorithm, "bytes",
        bytes, "ranks", (int)run->n_ranks, "time_s", run->time_s, "tensor_bandwidth",
        run->time_s > 0 ? bytes / run->time_s : 0.0, "last_arrival_s",
        run->last_arrival_s, "latency_s", run->latency_s, "sent_bytes", run->sent_bytes,
        "links", links, "rank_times", ends, "seed", (json_int_t)seed, "version",
        KILTER_VERSION);
}

static bool parse_shares(Own *own, SimCollectiveOptions *what, GError **error)
{
    own->share = g_array_new(FALSE, FALSE, sizeof(double));
    g_auto(GStrv) words = g_strsplit(own->shares ? own->shares : "", ",", -1);
    double sum = 0;
    for (char **word = words; *word; word++) {
        double share;
        if (!number_read(*word, 0, SHARE_MAX, &share))
            return refuse(error, "--shares: expected numbers from 0 to %g, got '%.60s'",
                          SHARE_MAX, *word);
        sum += share;
        g_array_append_val(own->share, share);
    }
    if (own->shares && !(sum > 0))
        return refuse(error, "--shares: expected one above 0");
    what->share = own->shares ? (const double *)(void *)own->share->data : NULL;
    what->n_shares = own->share->len;
    return true;
}

static bool parse_root(const Own *own, SimCollectiveOptions *what, GError **error)
{
    guint64 root;
    if (!own->root)
        return true;
    if (strcmp(own->root, "all") == 0) {
        what->root = SIM_EVERY_RANK;
        return true;
    }
    if (!g_ascii_string_to_unsigned(own->root, 10, 0, UINT32_MAX - 1, &root, NULL))
        return refuse(error, "--root: expected a rank or all, got '%.60s'", own->root);
    what->root = (uint32_t)root;
    return true;
}

static bool parse_sizes(const Own *own, SimCollectiveOptions *what,
                        Granularity *granularity, GError **error)
{
    *granularity = GRANULARITY_GPU;
    if (!own->bytes)
        return refuse(error, "expected --bytes; see kilter collective --help");
    if (!units_parse(own->bytes, QUANTITY_BYTES, &what->bytes, error))
        return kilter_prefix(error, "--bytes: ");
    if (own->skew && !units_parse(own->skew, QUANTITY_TIME, &what->skew_s, error))
        return kilter_prefix(error, "--skew: ");
    if (own->granularity && !granularity_parse(own->granularity, granularity))
        return refuse(error, "--granularity: expected machine or gpu, got '%.60s'",
                      own->granularity);
    return true;
}

/* "0,1,4-7": the devices of the view that take part, each once. */
static bool parse_ranks(Own *own, uint32_t n, SimCollectiveOptions *what, GError **error)
{
    if (!own->ranks)
        return true;
    own->device = command_ranks("--ranks", own->ranks, n, error);
    if (!own->device)
        return false;
    what->device = (const uint32_t *)(const void *)own->device->data;
    what->n_devices = own->device->len;
    return true;
}

/* Says first that messages take long: alike ones are one, unless ranks start apart. */
static void collective_say_size(const SimCollectiveOptions *what, uint32_t ranks)
{
    const bool direct = g_strcmp0(what->algorithm, "direct") == 0;
    g_autofree char *words =
        g_strdup_printf("messages of %u ranks, each to each,", ranks);
    if (what->skew_s > 0 && (direct || strcmp(what->kind, "all_to_all") == 0))
        planner_say(words, 10 * pow(ranks / 256.0, 3.5), 0); /* as measured in trees */
}

static bool collective_simulate(const char *cluster_name, Own *own,
                                SimCollectiveOptions *what, Granularity granularity,
                                const CommandOptions *options, GError **error)
{
    g_autoptr(Cluster) cluster = cluster_load(cluster_name, error);
    if (!cluster || !command_change(cluster, &own->how, error))
        return false;
    g_autoptr(ClusterView) view = cluster_view(cluster, granularity);
    if (!parse_ranks(own, view->n_devices, what, error))
        return false;
    collective_say_size(what, what->device ? what->n_devices : view->n_devices);
    g_autoptr(SimCollectiveRun) run = sim_collective_run(view, what, error);
    if (!run)
        return false;
    if (run->n_links > 1)
        qsort(run->link, run->n_links, sizeof *run->link, by_use);
    command_report(options,
                   run_json(what->kind, cluster_name, what->bytes, run, what->seed),
                   ANSWER_COLLECTIVE, NULL);
    return true;
}

COMMAND(collective, Own, COLLECTIVE_OPTIONS, 0)
{
    SimCollectiveOptions what = {.kind = argv[1], .algorithm = own->algorithm};
    Granularity granularity;
    what.seed = options->planner.seed;
    return parse_sizes(own, &what, &granularity, error) &&
           parse_shares(own, &what, error) && parse_root(own, &what, error) &&
           collective_simulate(argv[2], own, &what, granularity, options, error);
}
