/* An explanation of what bounds an iteration: the parts of the critical path. */

#include "data/base/free.h"
#include "data/base/order.h"
#include "data/base/units.h"
#include "sim/flow/timeline.h"

/* Keys of kinds: first collectives, then transfers, lanes, and the lanes' hosts. */
enum { LONGEST_SHOWN = 5, TRANSFERS = COLLECTIVES, LANES };

/* Spans of the critical path that have something in common. */
typedef struct {
    /* a Collective, TRANSFERS, LANES + lane (+ n_lanes: its host); or a stage; or a layer */
    uint32_t key;
    uint32_t n, first; /* number of spans, and the first of them */
    double seconds, comm_s;
} Part;

typedef struct {
    const SimTimeline *timeline;
    const Program *program;
    const Graph *graph;
    const ClusterView *view;
    double end_s;
    uint32_t n_path;
    uint32_t *path;  /* spans */
    uint32_t *layer; /* [tensor] */
    GArray *kinds;   /* Parts, longest first: by kind of collective, or by lane */
    GArray *stages;  /* by stage */
    GArray *layers;  /* by layer of the model */
    GString *text;
} Explain;

static double seconds(const SimSpan *span)
{
    return span->end_s - span->start_s;
}

static double percent(const Explain *e, double s)
{
    return e->end_s > 0 ? 100 * s / e->end_s : 0;
}

/* --- parts of the critical path --- */

static bool is_collective(const SimSpan *span)
{
    return span->lane == SIM_TEAM;
}

static uint32_t kind_of(const Explain *e, const SimSpan *span)
{
    const Instr *instr = &e->program->instr[span->instr];
    if (!is_collective(span))
        return LANES + span->lane + (span->launch ? e->timeline->n_lanes : 0);
    return instr->kind == INSTR_TRANSFER ? TRANSFERS : (uint32_t)instr->collective;
}

static uint32_t stage_of(const Explain *e, const SimSpan *span)
{
    (void)e;
    return span->stage;
}

static uint32_t layer_of(const Explain *e, const SimSpan *span)
{
    const Instr *instr = &e->program->instr[span->instr];
    return instr->kind == INSTR_COMPUTE ? graph_get_op(e->graph, instr->op)->layer
                                        : e->layer[instr->tensor];
}

static ORDER_DEFINE(longest_part, Part, DESCENDING(seconds), ASCENDING(key));

typedef uint32_t (*KeyOf)(const Explain *e, const SimSpan *span);

static GArray *collect_parts(const Explain *e, KeyOf key_of)
{
    GArray *parts = g_array_new(false, false, sizeof(Part));
    g_autoptr(GHashTable) index = g_hash_table_new(NULL, NULL); /* key -> place + 1 */
    for (uint32_t i = 0; i < e->n_path; i++) {
        const SimSpan *span = &e->timeline->span[e->path[i]];
        if (!(seconds(span) > 0))
            continue;
        const Part fresh = {key_of(e, span), 0, e->path[i], 0, 0};
        gpointer key = GUINT_TO_POINTER(fresh.key);
        if (!g_hash_table_contains(index, key)) {
            g_array_append_val(parts, fresh);
            g_hash_table_insert(index, key, GUINT_TO_POINTER(parts->len));
        }
        const guint place = GPOINTER_TO_UINT(g_hash_table_lookup(index, key)) - 1;
        Part *part = &g_array_index(parts, Part, place);
        part->n++;
        part->seconds += seconds(span);
        part->comm_s += is_collective(span) ? seconds(span) : 0;
    }
    g_array_sort(parts, longest_part);
    return parts;
}

/* --- in words --- */

static bool is_host(const Explain *e, const Part *part)
{
    return part->key >= LANES + e->timeline->n_lanes;
}

static const char *kind_text(const Explain *e, const Part *part)
{
    if (part->key >= LANES)
        return is_host(e, part) ? "launch" : "computation";
    return part->key == TRANSFERS ? "transfer" : collective_name((Collective)part->key);
}

/* "fast-0 (v100)", "fast-0 (v100) and 3 like it". Caller frees. */
static char *lane_text(const Explain *e, uint32_t lane)
{
    KILTER_ASSERT(e->timeline->n_lanes > 0);
    uint32_t first = SIM_NO_SPAN, n = 0;
    lane %= e->timeline->n_lanes;
    for (uint32_t j = 0; j < e->timeline->n_devices; j++) {
        if (e->timeline->lane[j] != lane)
            continue;
        first = first == SIM_NO_SPAN ? j : first;
        n++;
    }
    const Device *device = &e->view->device[first];
    if (n == 1)
        return g_strdup_printf("%s (%s)", device->name, device->type_name);
    return g_strdup_printf("%s (%s) and %u like it", device->name, device->type_name,
                           n - 1);
}

static void say_kinds(const Explain *e)
{
    array_each (const Part, part, e->kinds) {
        const bool collective = part->key < LANES;
        g_autofree char *time = units_format(part->seconds, QUANTITY_TIME);
        g_autofree char *lane = collective ? NULL : lane_text(e, part->key - LANES);
        g_string_append_printf(e->text, "  %9s  %5.1f %%  %u %s%s%s%s\n", time,
                               percent(e, part->seconds), part->n, kind_text(e, part),
                               collective || part->n < 2 ? ""
                               : is_host(e, part)        ? "es"
                                                         : "s",
                               lane ? " on " : "", lane ? lane : "");
    }
}

/* "  586 ms   64.2 %  stage 1: all communication, from ..." */
static void say_parts(const Explain *e, const char *title, const GArray *parts,
                      bool layers)
{
    if (parts->len < 2)
        return;
    g_string_append_printf(e->text, "%s:\n", title);
    for (uint32_t i = 0; i < MIN(parts->len, LONGEST_SHOWN); i++) {
        const Part *part = &g_array_index(parts, Part, i);
        g_autofree char *time = units_format(part->seconds, QUANTITY_TIME);
        g_autofree char *comm = units_format(part->comm_s, QUANTITY_TIME);
        g_autofree char *first =
            sim_span_text(e->timeline, part->first, e->program, e->graph);
        g_string_append_printf(e->text, "  %9s  %5.1f %%  ", time,
                               percent(e, part->seconds));
        if (layers)
            g_string_append(e->text, graph_layer_name(e->graph, part->key));
        else
            g_string_append_printf(e->text, "%u, from %s on", part->key, first);
        g_string_append_printf(e->text, "; communication %s\n", comm);
    }
}

/* Says the first sentence: whether communication or computation bounds the iteration, which, and
 * where. */
static void say_bound(const Explain *e)
{
    const Part *kind = &g_array_index(e->kinds, Part, 0);
    const Part *stage = &g_array_index(e->stages, Part, 0);
    const Part *layer = &g_array_index(e->layers, Part, 0);
    double comm_s = 0, launch_s = 0;
    array_each (const Part, part, e->kinds) {
        comm_s += part->comm_s;
        launch_s += is_host(e, part) ? part->seconds : 0;
    }
    uint32_t slowest;
    g_autofree char *time = units_format(e->end_s, QUANTITY_TIME),
                    *each = units_format(
                        sim_timeline_time_s(e->timeline, e->program, &slowest),
                        QUANTITY_TIME);
    const bool ahead = strcmp(each, time) != 0; /* the next one begins before its end */
    g_autofree char *lane = kind->key < LANES ? NULL : lane_text(e, kind->key - LANES);
    g_string_append_printf(
        e->text, "The iteration (%s%s%s) is bound by %s %s: %.1f %%.\n", time,
        ahead ? " from its first op to its last, one every " : "", ahead ? each : "",
        is_host(e, kind) ? "launching on"
        : lane           ? "computation on"
                         : "communication, mostly",
        lane ? lane : kind_text(e, kind), percent(e, kind->seconds));
    g_string_append_printf(
        e->text,
        "Most of its time is in stage %u (%.1f %%) and, of the model's "
        "layers, in %s (%.1f %%).\n",
        stage->key, percent(e, stage->seconds), graph_layer_name(e->graph, layer->key),
        percent(e, layer->seconds));
    g_string_append_printf(e->text, "Its critical path has %.1f %% communication, ",
                           percent(e, comm_s));
    if (launch_s > 0)
        g_string_append_printf(e->text, "%.1f %% launching, ", percent(e, launch_s));
    g_string_append_printf(e->text, "%.1f %% computation:\n",
                           100 - percent(e, comm_s + launch_s));
}

static int longest_span(const void *a, const void *b, void *data)
{
    const SimSpan *span = data;
    const SimSpan *x = &span[*(const uint32_t *)a], *y = &span[*(const uint32_t *)b];
    if (seconds(x) != seconds(y))
        return seconds(x) > seconds(y) ? -1 : 1;
    return x < y ? -1 : 1;
}

static void say_longest(const Explain *e)
{
    g_autofree uint32_t *span = g_memdup2(e->path, e->n_path * sizeof *span);
    g_qsort_with_data(span, (gint)e->n_path, sizeof *span, longest_span,
                      e->timeline->span);
    g_string_append(e->text, "Longest parts of the path:\n");
    for (uint32_t i = 0; i < MIN(e->n_path, LONGEST_SHOWN); i++) {
        const SimSpan *s = &e->timeline->span[span[i]];
        g_autofree char *time = units_format(seconds(s), QUANTITY_TIME);
        g_autofree char *what = sim_span_text(e->timeline, span[i], e->program, e->graph);
        if (seconds(s) > 0)
            g_string_append_printf(e->text, "  %9s  %5.1f %%  %s\n", time,
                                   percent(e, seconds(s)), what);
    }
}

static void say_device(const Explain *e, const char *which, uint32_t lane,
                       const SimBreakdown *of)
{
    KILTER_ASSERT(e->timeline->n_lanes > 0);
    g_autofree char *name = lane_text(e, lane);
    g_string_append_printf(e->text,
                           "  %s %s: %.1f %% computing, %.1f %% waiting for "
                           "communication, %.1f %% idle; %.1f %% communicating while "
                           "it computes\n",
                           which, name, percent(e, of->compute_s),
                           percent(e, of->exposed_s), percent(e, of->idle_s),
                           percent(e, of->hidden_s));
}

static void say_devices(const Explain *e)
{
    const uint32_t n = e->timeline->n_lanes;
    g_autofree SimBreakdown *of = g_new(SimBreakdown, n);
    uint32_t idle = 0, busy = 0;
    sim_timeline_breakdown(e->timeline, of);
    for (uint32_t l = 1; l < n; l++) {
        idle = of[l].idle_s > of[idle].idle_s ? l : idle;
        busy = of[l].idle_s < of[busy].idle_s ? l : busy;
    }
    g_string_append(e->text, "Devices:\n");
    say_device(e, "most idle", idle, &of[idle]);
    if (idle != busy)
        say_device(e, "least idle", busy, &of[busy]);
}

/* The utilisation of a link: the bytes it carried over the bytes it could have carried, 0 to 1. */
static double used(const Explain *e, const SimLinkUse *link)
{
    return e->end_s > 0 ? link->bytes / (link->bandwidth * e->end_s) : 0;
}

static int most_used(const void *a, const void *b, void *data)
{
    const SimLinkUse *x = *(const SimLinkUse *const *)a,
                     *y = *(const SimLinkUse *const *)b;
    const double used_x = used(data, x), used_y = used(data, y);
    if (used_x != used_y)
        return used_x > used_y ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void say_links(const Explain *e)
{
    const uint32_t n = e->timeline->n_links;
    g_autofree const SimLinkUse **link = g_new(const SimLinkUse *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        link[i] = &e->timeline->link[i];
    g_qsort_with_data(link, (gint)n, sizeof *link, most_used, (gpointer)e);
    if (n == 0 || link[0]->bytes == 0)
        return;
    g_string_append(e->text, "Links with the largest part of their capacity in use:\n");
    for (uint32_t i = 0; i < MIN(n, LONGEST_SHOWN) && link[i]->bytes > 0; i++) {
        g_autofree char *bytes = units_format(link[i]->bytes, QUANTITY_BYTES);
        g_string_append_printf(e->text, "  %9s  %5.1f %%  %s, busy %.1f %% of the time\n",
                               bytes, 100 * used(e, link[i]), link[i]->name,
                               percent(e, link[i]->busy_s));
    }
}

static void say_lost(const Explain *e)
{
    if (e->timeline->lost_s == 0)
        return;
    g_autofree char *time = units_format(e->timeline->lost_s, QUANTITY_TIME);
    g_string_append_printf(
        e->text, "Before it %s were lost to a failure and the restart.\n", time);
}

static void say_memory(const Explain *e)
{
    const SimMemoryStep *peak = NULL;
    uint32_t lane = 0;
    for (uint32_t l = 0; l < e->timeline->n_lanes; l++) {
        const SimMemoryStep *other = sim_timeline_memory_peak(e->timeline, l);
        if (!other || (peak && other->bytes <= peak->bytes))
            continue;
        peak = other;
        lane = l;
    }
    if (!peak)
        return;
    g_autofree char *bytes = units_format(peak->bytes, QUANTITY_BYTES);
    g_autofree char *time = units_format(peak->time_s, QUANTITY_TIME);
    g_autofree char *what = instr_text(&e->program->instr[peak->instr], e->graph);
    g_autofree char *where = lane_text(e, lane);
    g_string_append_printf(e->text, "Memory: the peak is %s on %s, at %s, during %s.\n",
                           bytes, where, time, what);
}

GArray *sim_timeline_limits(const SimTimeline *timeline, const Program *program,
                            const Graph *graph, bool by_layers)
{
    Explain e = {.timeline = timeline, .program = program, .graph = graph};
    GArray *limits = g_array_new(false, false, sizeof(SimLimit));
    e.path = sim_timeline_critical_path(timeline, &e.n_path);
    e.layer = graph_tensor_layers(graph);
    g_autoptr(GArray) parts = collect_parts(&e, by_layers ? layer_of : kind_of);
    array_each (const Part, part, parts) {
        const bool alone = by_layers || part->key < LANES;
        const SimLimit limit = {
            by_layers ? graph_layer_name(graph, part->key) : kind_text(&e, part),
            alone ? SIM_TEAM : (part->key - LANES) % timeline->n_lanes, part->n,
            part->seconds, part->comm_s};
        g_array_append_val(limits, limit);
    }
    free_each(e.layer, e.path);
    return limits;
}

char *sim_timeline_explain(const SimTimeline *timeline, const Program *program,
                           const Graph *graph, const ClusterView *view)
{
    Explain e = {.timeline = timeline,
                 .program = program,
                 .graph = graph,
                 .view = view,
                 .end_s = sim_timeline_end_s(timeline),
                 .text = g_string_new(NULL)};
    e.path = sim_timeline_critical_path(timeline, &e.n_path);
    e.layer = graph_tensor_layers(graph);
    e.kinds = collect_parts(&e, kind_of);
    e.stages = collect_parts(&e, stage_of);
    e.layers = collect_parts(&e, layer_of);
    if (e.kinds->len == 0) {
        g_string_append(e.text, "The iteration takes no time.\n");
    } else {
        say_bound(&e);
        say_kinds(&e);
        say_parts(&e, "Stages", e.stages, false);
        say_parts(&e, "Layers", e.layers, true);
        say_longest(&e);
        say_devices(&e);
        say_lost(&e);
        say_links(&e);
        say_memory(&e);
    }
    unref_arrays(e.kinds, e.stages, e.layers);
    free_each(e.layer, e.path);
    return g_string_free(e.text, false);
}
