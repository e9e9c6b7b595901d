/* What bounds an iteration, in words: the parts of the critical path. */
#include <stdlib.h>

#include "sim/timeline.h"

enum { LONGEST_SHOWN = 5 };

/* A part of the critical path: all spans of one kind of collective, or all computations
 * of one lane. */
typedef struct {
    bool collective;
    uint32_t key; /* Collective, or lane */
    uint32_t n;
    double seconds;
} Part;

typedef struct {
    const SimTimeline *timeline;
    const Program *program;
    const Graph *graph;
    const ClusterView *view;
    double end_s;
    uint32_t n_path;
    uint32_t *path; /* spans */
    GArray *parts;  /* Part, longest first */
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

static int longest_part(const void *a, const void *b)
{
    const Part *x = a, *y = b;

    if (x->seconds != y->seconds)
        return x->seconds > y->seconds ? -1 : 1;
    if (x->collective != y->collective)
        return x->collective ? -1 : 1;
    return (x->key > y->key) - (x->key < y->key);
}

static void add_to_part(Explain *e, const SimSpan *span)
{
    const bool collective = span->lane == SIM_ALL_LANES;
    const uint32_t key =
        collective ? (uint32_t)e->program->instr[span->instr].collective : span->lane;
    Part *part = NULL;

    for (uint32_t i = 0; i < e->parts->len && !part; i++) {
        Part *other = &g_array_index(e->parts, Part, i);
        if (other->collective == collective && other->key == key)
            part = other;
    }
    if (!part) {
        const Part fresh = {collective, key, 0, 0};
        g_array_append_val(e->parts, fresh);
        part = &g_array_index(e->parts, Part, e->parts->len - 1);
    }
    part->n++;
    part->seconds += seconds(span);
}

static void collect_parts(Explain *e)
{
    e->parts = g_array_new(false, false, sizeof(Part));
    for (uint32_t i = 0; i < e->n_path; i++)
        if (seconds(&e->timeline->span[e->path[i]]) > 0)
            add_to_part(e, &e->timeline->span[e->path[i]]);
    g_array_sort(e->parts, longest_part);
}

/* "fast-0 (v100)", "fast-0 (v100) and 3 alike". Caller frees. */
static char *lane_text(const Explain *e, uint32_t lane)
{
    uint32_t first = SIM_NO_SPAN, n = 0;

    for (uint32_t j = 0; j < e->timeline->n_devices; j++) {
        if (e->timeline->lane[j] != lane)
            continue;
        first = first == SIM_NO_SPAN ? j : first;
        n++;
    }
    const Device *device = &e->view->device[first];
    if (n == 1)
        return g_strdup_printf("%s (%s)", device->name, device->type_name);
    return g_strdup_printf("%s (%s) and %u alike", device->name, device->type_name,
                           n - 1);
}

static void say_parts(const Explain *e)
{
    for (uint32_t i = 0; i < e->parts->len; i++) {
        const Part *part = &g_array_index(e->parts, Part, i);
        g_autofree char *time = units_format(part->seconds, QUANTITY_TIME);
        g_autofree char *lane = part->collective ? NULL : lane_text(e, part->key);
        g_string_append_printf(e->text, "  %9s  %5.1f %%  %u %s%s%s\n", time,
                               percent(e, part->seconds), part->n,
                               part->collective ? collective_name((Collective)part->key)
                                                : "computations",
                               lane ? " on " : "", lane ? lane : "");
    }
}

static void say_bound(const Explain *e)
{
    double comm_s = 0;

    for (uint32_t i = 0; i < e->parts->len; i++)
        if (g_array_index(e->parts, Part, i).collective)
            comm_s += g_array_index(e->parts, Part, i).seconds;
    const Part *largest = &g_array_index(e->parts, Part, 0);
    g_autofree char *time = units_format(e->end_s, QUANTITY_TIME);
    g_autofree char *lane = largest->collective ? NULL : lane_text(e, largest->key);
    if (largest->collective)
        g_string_append_printf(
            e->text,
            "The iteration (%s) is bound by communication, mostly %s: %.1f %%.\n", time,
            collective_name((Collective)largest->key), percent(e, largest->seconds));
    else
        g_string_append_printf(
            e->text, "The iteration (%s) is bound by computation on %s: %.1f %%.\n", time,
            lane, percent(e, largest->seconds));
    g_string_append_printf(
        e->text, "Its critical path has %.1f %% communication, %.1f %% computation:\n",
        percent(e, comm_s), 100 - percent(e, comm_s));
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
    g_string_append(e->text, "The longest on it:\n");
    for (uint32_t i = 0; i < MIN(e->n_path, LONGEST_SHOWN); i++) {
        const SimSpan *s = &e->timeline->span[span[i]];
        g_autofree char *time = units_format(seconds(s), QUANTITY_TIME);
        g_autofree char *what = sim_span_text(e->timeline, span[i], e->program, e->graph);
        if (seconds(s) > 0)
            g_string_append_printf(e->text, "  %9s  %5.1f %%  %s\n", time,
                                   percent(e, seconds(s)), what);
    }
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
    g_autofree char *idle_text = lane_text(e, idle), *busy_text = lane_text(e, busy);
    g_string_append_printf(e->text,
                           "Devices: %s idles %.1f %% of the time, computes %.1f %%, "
                           "waits for communication %.1f %%",
                           idle_text, percent(e, of[idle].idle_s),
                           percent(e, of[idle].compute_s),
                           percent(e, of[idle].exposed_s));
    if (idle != busy)
        g_string_append_printf(e->text, "; least idle is %s, %.1f %%", busy_text,
                               percent(e, of[busy].idle_s));
    g_string_append_printf(e->text, ". Hidden under its computation: %.1f %%.\n",
                           percent(e, of[busy].hidden_s));
}

static void say_links(const Explain *e)
{
    const SimLinkUse *busiest = NULL;

    for (uint32_t i = 0; i < e->timeline->n_links; i++) {
        const SimLinkUse *link = &e->timeline->link[i];
        if (!busiest ||
            link->bytes * busiest->bandwidth > busiest->bytes * link->bandwidth)
            busiest = link;
    }
    if (!busiest || busiest->bytes == 0)
        return;
    g_autofree char *bytes = units_format(busiest->bytes, QUANTITY_BYTES);
    g_string_append_printf(
        e->text,
        "Links: the most used is %s, %s: %.1f %% of what it can carry, busy %.1f %% of "
        "the time.\n",
        busiest->name, bytes, percent(e, busiest->bytes / busiest->bandwidth),
        percent(e, busiest->busy_s));
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
    g_string_append_printf(e->text, "Memory: most is %s on %s, at %s, with %s.\n", bytes,
                           where, time, what);
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
    collect_parts(&e);
    if (e.parts->len == 0) {
        g_string_append(e.text, "The iteration takes no time.\n");
    } else {
        say_bound(&e);
        say_parts(&e);
        say_longest(&e);
        say_devices(&e);
        say_lost(&e);
        say_links(&e);
        say_memory(&e);
    }
    g_array_free(e.parts, true);
    g_free(e.path);
    return g_string_free(e.text, false);
}
