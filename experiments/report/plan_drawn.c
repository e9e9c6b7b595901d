/* The timeline of a plan for its page: what each row of equal devices does when, memory over time,
 * what limits the iteration, transfers and links. Places are in thousandths of the width. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/base/free.h"
#include "data/base/json.h"
#include "data/base/order.h"
#include "data/base/units.h"
#include "experiments/report/plan_facts.h"

enum {
    MOST_ROWS = 16,
    MOST_BLOCKS = 1600, /* of a figure */
    MOST_PANELS = 4,
    MOST_LIMITS = 7,
    MOST_LINKS = 12,
    MOST_HOPS = 12,
    BINS = 400,
    WIDTH = 1000,
    LOW = 44,  /* the foot of the lane of communication */
    HIGH = 16, /* its height */
    MICROBATCHES_SHOWN = 9
};

typedef struct {
    const Evaluation *evaluation;
    const SimTimeline *timeline;
    double end_s;
    uint32_t *stage; /* [device]: in the pipeline; UINT32_MAX: none */
    uint32_t **span; /* [lane]: its spans, by start */
    uint32_t *n_spans;
} Drawn;

/* --- axes --- */

static void add_tick(json_t *ticks, double at, const char *label, const char *class)
{
    json_array_append_new(ticks, json_pack("{s:o, s:s, s:s}", "at", json_number(at),
                                           "label", label, "class", class));
}

/* Round numbers from 0 to `end`, at most 8, as {at: percent, label}, the last one `last` at the end
 * where it is given. */
static json_t *round_ticks(double end, double unit, const char *last)
{
    json_t *ticks = json_array();
    const double rough = end / unit / 7, size = pow(10, floor(log10(rough)));
    const double step = size * (rough <= size       ? 1
                                : rough <= 2 * size ? 2
                                : rough <= 5 * size ? 5
                                                    : 10);
    const int digits = MAX(0, (int)-floor(log10(step) + 1e-9));
    for (uint32_t i = 0; i * step <= end / unit * (1 + 1e-9); i++) {
        const double at = 100 * i * step * unit / end;
        g_autofree char *label = g_strdup_printf("%.*f", digits, i * step);
        if (!last || at < 82)
            add_tick(ticks, at, i ? label : last ? "0 s" : "0", "");
    }
    if (last)
        add_tick(ticks, 100, last, "end");
    return ticks;
}

static json_t *time_ticks(double end_s)
{
    g_autofree char *last = units_format(end_s, QUANTITY_TIME);
    const double unit = end_s >= 1 ? 1 : end_s >= 1e-3 ? 1e-3 : 1e-6;
    return round_ticks(end_s, unit, last);
}

/* The area between two lines of equally wide steps. Caller frees. */
static char *area_path(const double *top, const double *bottom, uint32_t n)
{
    g_autoptr(GString) path = g_string_new(NULL);
    g_string_printf(path, "M0 %.1f", top[0]);
    double step = (double)WIDTH / n, y = top[0]; /* drawn so far: slow moves add up */
    for (uint32_t i = 1; i < n; i++)
        if (fabs(top[i] - y) >= 0.05)
            g_string_append_printf(path, "H%.4gV%.1f", i * step, y = top[i]);
    g_string_append_printf(path, "H%dV%.1f", WIDTH, y = bottom[n - 1]);
    for (uint32_t i = n - 1; i > 0; i--)
        if (fabs(bottom[i - 1] - y) >= 0.05)
            g_string_append_printf(path, "H%.4gV%.1f", i * step, y = bottom[i - 1]);
    g_string_append(path, "H0Z");
    return g_string_free(g_steal_pointer(&path), FALSE);
}

/* --- spans --- */

static int drawn_by_start(gconstpointer a, gconstpointer b, gpointer spans)
{
    const SimSpan *x = &((SimSpan *)spans)[*(const uint32_t *)a],
                  *y = &((SimSpan *)spans)[*(const uint32_t *)b];
    return (x->start_s > y->start_s) - (x->start_s < y->start_s);
}

/* Sorts the spans of each lane; launches and what takes no time are left out. */
static void drawn_sort(Drawn *d)
{
    const SimTimeline *t = d->timeline;
    g_autofree GArray **of = g_new(GArray *, t->n_lanes);
    for (uint32_t l = 0; l < t->n_lanes; l++)
        of[l] = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (uint32_t i = 0; i < t->n_spans; i++) {
        uint32_t n;
        const uint32_t *lane = sim_span_lanes(t, &t->span[i], &n);
        const bool seen = !t->span[i].launch && t->span[i].end_s > t->span[i].start_s;
        for (uint32_t k = 0; seen && k < n; k++)
            g_array_append_val(of[lane[k]], i);
    }
    d->span = g_new(uint32_t *, t->n_lanes);
    d->n_spans = g_new(uint32_t, t->n_lanes);
    for (uint32_t l = 0; l < t->n_lanes; l++) {
        g_array_sort_with_data(of[l], drawn_by_start, t->span);
        d->n_spans[l] = of[l]->len;
        d->span[l] = (uint32_t *)(void *)g_array_free(of[l], FALSE);
    }
}

static bool is_communication(const Drawn *d, const SimSpan *span)
{
    return span->lane == SIM_TEAM ||
           d->evaluation->plan->program->instr[span->instr].kind != INSTR_COMPUTE;
}

/* Says which stage of the pipeline the device is in. */
static void set_stage(const Drawn *d, uint32_t device, json_t *json)
{
    if (d->stage[device] != UINT32_MAX)
        json_object_set_new(json, "stage", json_sprintf("%u", d->stage[device]));
}

/* --- rows --- */

typedef struct {
    uint32_t device, n; /* the one that computes longest, and how many alike */
} Row;

static double busy_of(const Drawn *d, uint32_t device)
{
    return d->evaluation->report->busy_s[device];
}

/* Whether two devices are one row: of one stage and type, with equal times unless `coarse`. */
static bool is_alike(const Drawn *d, uint32_t a, uint32_t b, bool coarse)
{
    const Device *x = &d->evaluation->view->device[a],
                 *y = &d->evaluation->view->device[b];
    return d->stage[a] == d->stage[b] && x->type == y->type &&
           (coarse || fabs(busy_of(d, a) - busy_of(d, b)) <= 1e-3 * busy_of(d, a));
}

/* All rows, or, unless `coarse`, the first ones if they are more than are drawn. */
static GArray *fold_rows(const Drawn *d, bool coarse)
{
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(Row));
    for (uint32_t j = 0; j < d->timeline->n_devices && (coarse || rows->len <= MOST_ROWS);
         j++) {
        Row *row = (Row *)(void *)rows->data;
        uint32_t k = 0;
        while (k < rows->len && !is_alike(d, row[k].device, j, coarse))
            k++;
        if (k < rows->len) {
            row[k].n++;
            if (busy_of(d, j) > busy_of(d, row[k].device))
                row[k].device = j;
        } else {
            const Row fresh = {j, 1};
            g_array_append_val(rows, fresh);
        }
    }
    return rows;
}

/* The rows in the order of stages; *slow gets the one that computes longest, which is always among
 * those that are drawn. */
static GArray *drawn_rows(const Drawn *d, uint32_t *slow, uint32_t *left_out)
{
    GArray *rows = fold_rows(d, false);
    if (rows->len > MOST_ROWS) {
        g_array_unref(rows);
        rows = fold_rows(d, true);
    }
    for (guint i = 1; i < rows->len; i++) /* stages are numbered by layers */
        for (guint k = i; k > 0; k--) {
            Row *row = (Row *)(void *)rows->data;
            if (d->stage[row[k - 1].device] <= d->stage[row[k].device])
                break;
            const Row swap = row[k];
            row[k] = row[k - 1];
            row[k - 1] = swap;
        }
    *slow = 0;
    for (guint i = 0; i < rows->len; i++)
        if (busy_of(d, g_array_index(rows, Row, i).device) >
            busy_of(d, g_array_index(rows, Row, *slow).device))
            *slow = i;
    *left_out = rows->len > MOST_ROWS ? rows->len - MOST_ROWS : 0;
    if (*left_out > 0) {
        if (*slow >= MOST_ROWS) {
            g_array_index(rows, Row, MOST_ROWS - 1) = g_array_index(rows, Row, *slow);
            *slow = MOST_ROWS - 1;
        }
        g_array_set_size(rows, MOST_ROWS);
    }
    return rows;
}

/* --- blocks of a row --- */

typedef enum { FORWARD, BACKWARD, UPDATE, PHASES } Phase;
static const char *const PHASE[PHASES] = {"forward", "backward", "update"};

typedef struct {
    Phase phase;
    uint32_t microbatch;
    double from_s, to_s;
} Block;

static Phase phase_of(const Drawn *d, const SimSpan *span)
{
    const Pass pass = graph_get_op(d->evaluation->graph,
                                   d->evaluation->plan->program->instr[span->instr].op)
                          ->pass;
    return pass == PASS_FORWARD ? FORWARD : pass == PASS_BACKWARD ? BACKWARD : UPDATE;
}

/* Runs of computations of one pass and microbatch; what is shorter than `least_s` joins the block
 * before it, if that is near. */
static GArray *blocks_of(const Drawn *d, uint32_t lane, double least_s)
{
    GArray *blocks = g_array_new(FALSE, FALSE, sizeof(Block));
    for (uint32_t i = 0; i < d->n_spans[lane]; i++) {
        const SimSpan *span = &d->timeline->span[d->span[lane][i]];
        if (is_communication(d, span))
            continue;
        const Block next = {phase_of(d, span),
                            d->evaluation->plan->program->instr[span->instr].microbatch,
                            span->start_s, span->end_s};
        Block *last = blocks->len ? &g_array_index(blocks, Block, blocks->len - 1) : NULL;
        const bool near = last && next.from_s - last->to_s < least_s;
        const bool same =
            near && last->phase == next.phase && last->microbatch == next.microbatch;
        if (same || (near && next.to_s - next.from_s < least_s / 4 &&
                     last->to_s - last->from_s < least_s))
            last->to_s = fmax(last->to_s, next.to_s);
        else
            g_array_append_val(blocks, next);
    }
    return blocks;
}

/* The blocks of all rows, few enough for a page. Free each array, then the list. */
static GPtrArray *all_blocks(const Drawn *d, const GArray *rows)
{
    GPtrArray *all = NULL;
    guint n = MOST_BLOCKS + 1;
    for (double least_s = d->end_s / 500; n > MOST_BLOCKS; least_s *= 2) {
        if (all)
            g_ptr_array_unref(all);
        all = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
        n = 0;
        array_each (const Row, row, rows) {
            GArray *blocks = blocks_of(d, d->timeline->lane[row->device], least_s);
            g_ptr_array_add(all, blocks);
            n += blocks->len;
        }
    }
    return all;
}

static json_t *block_json(const Drawn *d, const Block *block, const char *device,
                          double until_s)
{
    const double x = WIDTH * block->from_s / until_s,
                 end = WIDTH * fmin(block->to_s, until_s) / until_s;
    g_autofree char *took = units_format(block->to_s - block->from_s, QUANTITY_TIME);
    g_autofree char *from = units_format(block->from_s, QUANTITY_TIME);
    const bool cut = block->microbatch != PROGRAM_WHOLE &&
                     d->evaluation->plan->program->n_microbatches > 1;
    json_t *json =
        json_pack("{s:o, s:o, s:s, s:s, s:s, s:s}", "x", json_number(x), "w",
                  json_number(fmax(end - x, 0.3)), "phase", PHASE[block->phase], "device",
                  device, "time", took, "from", from);
    if (cut)
        json_object_update_new(json, json_pack("{s:i, s:o, s:b}", "microbatch",
                                               (int)block->microbatch, "middle",
                                               json_number((x + end) / 20), "paler",
                                               block->microbatch % 2));
    if (cut && end - x > 22)
        json_object_set_new(json, "number", json_sprintf("%u", block->microbatch));
    return json;
}

/* The part of each bin of the time to until_s in which the lane communicates, as a path. */
static char *communication_of(const Drawn *d, uint32_t lane, double until_s)
{
    double top[BINS] = {0}, bottom[BINS];
    const double bin_s = until_s / BINS;
    for (uint32_t i = 0; i < d->n_spans[lane]; i++) {
        const SimSpan *span = &d->timeline->span[d->span[lane][i]];
        if (!is_communication(d, span) || span->start_s >= until_s)
            continue;
        const uint32_t first = MIN((uint32_t)(span->start_s / bin_s), BINS - 1),
                       last = MIN((uint32_t)(span->end_s / bin_s), BINS - 1);
        for (uint32_t b = first; b <= last; b++)
            top[b] +=
                (fmin(span->end_s, (b + 1) * bin_s) - fmax(span->start_s, b * bin_s)) /
                bin_s;
    }
    for (uint32_t b = 0; b < BINS; b++) {
        top[b] = LOW - HIGH * CLAMP(top[b], 0, 1);
        bottom[b] = LOW;
    }
    return area_path(top, bottom, BINS);
}

static json_t *drawn_row_json(const Drawn *d, const Row *row, const GArray *blocks,
                              double until_s, json_t *pipeline)
{
    const Device *device = &d->evaluation->view->device[row->device];
    const double whole_s = d->evaluation->report->iteration_time_s;
    const uint32_t stage = d->stage[row->device];
    g_autofree char *path = communication_of(d, d->timeline->lane[row->device], until_s);
    json_t *list = json_array();
    array_each (const Block, block, blocks)
        if (block->from_s < until_s)
            json_array_append_new(list, block_json(d, block, device->name, until_s));
    json_t *json = json_pack(
        "{s:s, s:s, s:I, s:o, s:s, s:o, s:o}", "device", device->name, "type",
        device->type_name, "gpus", (json_int_t)row->n * device->gpus, "busy_s",
        json_number(busy_of(d, row->device)), "communication", path, "blocks", list,
        "busy", json_number(whole_s > 0 ? busy_of(d, row->device) / whole_s : 0));
    set_stage(d, row->device, json);
    if (stage != UINT32_MAX) {
        enum { LONGEST = 60 }; /* letters beside a row */
        const json_t *of = json_array_get(pipeline, stage);
        const char *range = json_word(of, "range");
        const int layers = (int)json_integer_value(json_object_get(of, "blocks"));
        json_object_set_new(json, "range",
                            strlen(range) <= LONGEST
                                ? json_string(range)
                                : json_sprintf("%d layers, listed below", layers));
    }
    return json;
}

/* When the slowest row has ended its first few blocks: what a second picture shows, or 0. */
static double beginning_s(const Drawn *d, const GArray *blocks)
{
    if (d->evaluation->plan->program->n_microbatches < 4 ||
        blocks->len < 2 * MICROBATCHES_SHOWN)
        return 0;
    return g_array_index(blocks, Block, MICROBATCHES_SHOWN).from_s;
}

static json_t *figure_json(const Drawn *d, const GArray *rows, const GPtrArray *blocks,
                           uint32_t slow, double until_s, json_t *answer)
{
    json_t *list = json_array(), *pipeline = json_object_get(answer, "pipeline");
    for (guint i = 0; i < rows->len; i++) {
        json_t *row = drawn_row_json(d, &g_array_index(rows, Row, i), blocks->pdata[i],
                                     until_s, pipeline);
        if (i == slow && rows->len > 1)
            json_object_set_new(row, "slow", json_true());
        json_array_append_new(list, row);
    }
    return json_pack("{s:o, s:o, s:o}", "rows", list, "until_s", json_number(until_s),
                     "ticks", time_ticks(until_s));
}

static void add_timeline(const Drawn *d, json_t *answer)
{
    uint32_t slow, left_out;
    g_autoptr(GArray) rows = drawn_rows(d, &slow, &left_out);
    g_autoptr(GPtrArray) blocks = all_blocks(d, rows);
    const double begin_s = beginning_s(d, blocks->pdata[slow]);
    json_t *timeline = figure_json(d, rows, blocks, slow, d->end_s, answer);
    json_object_set_new(timeline, "left_out", json_integer(left_out));
    json_object_set(timeline, "slow",
                    json_array_get(json_object_get(timeline, "rows"), slow));
    json_object_set_new(answer, "timeline", timeline);
    if (begin_s > 0)
        json_object_set_new(answer, "beginning",
                            figure_json(d, rows, blocks, slow, begin_s, answer));
}

/* --- memory over time --- */

/* [bin]: the step with the most bytes of those in it, or in force when it begins. Caller frees. */
static const SimMemoryStep **bins_of(const Drawn *d, uint32_t lane)
{
    const GArray *steps = d->timeline->memory[lane];
    const SimMemoryStep **bin = g_new0(const SimMemoryStep *, BINS), *now = NULL;
    guint i = 0;
    for (uint32_t b = 0; b < BINS; b++) {
        bin[b] = now;
        for (; i < steps->len; i++) {
            const SimMemoryStep *step = &g_array_index(steps, SimMemoryStep, i);
            if (step->time_s > d->end_s * (b + 1) / BINS && b + 1 < BINS)
                break;
            /* of steps at one time only the last is in force */
            const bool passing =
                i + 1 < steps->len && (step + 1)->time_s == step->time_s && !now;
            now = step;
            if (!passing && (!bin[b] || step->bytes > bin[b]->bytes))
                bin[b] = step;
        }
    }
    return bin;
}

static json_t *panel_json(const Drawn *d, const SimMemoryRow *row)
{
    const double capacity = (double)row->capacity_bytes,
                 most = 1.125 * fmax(capacity, (double)row->total_bytes);
    g_autofree const SimMemoryStep **bin = bins_of(d, d->timeline->lane[row->device]);
    const Device *device = &d->evaluation->view->device[row->device];
    double foot[BINS], head[BINS], sum[BINS] = {0};
    json_t *areas = json_array();
    for (uint32_t k = 0; k < MEMORY_CATEGORIES; k++) {
        const MemoryCategory c = plan_layers[k].category;
        double peak = 0;
        for (uint32_t b = 0; b < BINS; b++) {
            const double bytes = c == MEMORY_RUNTIME ? (double)row->bytes[c]
                                 : bin[b]            ? bin[b]->category[c]
                                                     : 0;
            foot[b] = 100 - 100 * sum[b] / most;
            sum[b] += bytes;
            head[b] = 100 - 100 * sum[b] / most;
            peak = fmax(peak, bytes);
        }
        g_autofree char *path = area_path(head, foot, BINS);
        if (peak > 0)
            json_array_append_new(areas, json_pack("{s:s, s:s, s:s, s:o}", "name",
                                                   plan_layers[k].name, "color",
                                                   plan_layers[k].color, "path", path,
                                                   "most", json_number(peak)));
    }
    uint32_t at = 0;
    for (uint32_t b = 0; b < BINS; b++)
        at = sum[b] > sum[at] ? b : at;
    json_t *json = json_pack(
        "{s:s, s:s, s:i, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "device", device->name,
        "type", device->type_name, "alike", (int)row->n_alike * (int)device->gpus,
        "total", (json_int_t)row->total_bytes, "capacity",
        (json_int_t)row->capacity_bytes, "areas", areas, "ys",
        round_ticks(most, 1 << 30, NULL), "xs", time_ticks(d->end_s), "limit",
        json_number(100 * capacity / most), "limit_y",
        json_number(100 - 100 * capacity / most), "peak",
        json_pack(
            "{s:o, s:o}", "left", json_number(CLAMP(100.0 * at / BINS, 1, 70)), "bottom",
            json_number(fmin(100 * sum[at] / most + 1, 100 * capacity / most - 9))));
    set_stage(d, row->device, json);
    return json;
}

/* The fullest device first, then one of each other type and stage. */
static void drawn_memory(const Drawn *d, json_t *answer)
{
    const Evaluation *e = d->evaluation;
    g_autoptr(GArray) rows =
        d->timeline->memory
            ? sim_memory_table(e->plan, e->graph, e->view, e->report->runtime, true,
                               e->report->memory_bytes, NULL)
            : NULL;
    json_t *panels = json_array();
    for (guint k = 0; rows && k < rows->len && k < MOST_PANELS; k++) {
        guint most = k;
        for (guint i = k; i < rows->len; i++) {
            const SimMemoryRow *x = &g_array_index(rows, SimMemoryRow, i),
                               *y = &g_array_index(rows, SimMemoryRow, most);
            if ((double)x->total_bytes / x->capacity_bytes >
                (double)y->total_bytes / y->capacity_bytes)
                most = i;
        }
        const SimMemoryRow row = g_array_index(rows, SimMemoryRow, most);
        g_array_index(rows, SimMemoryRow, most) = g_array_index(rows, SimMemoryRow, k);
        g_array_index(rows, SimMemoryRow, k) = row;
        json_array_append_new(panels, panel_json(d, &row));
    }
    json_object_set_new(answer, "memory_series", panels);
}

/* --- limits, transfers, links --- */

static json_t *limit_json(const Drawn *d, const SimLimit *limit, double most_s)
{
    json_t *json = json_pack("{s:s, s:i, s:o, s:o, s:o, s:o}", "kind", limit->kind, "n",
                             (int)limit->n, "time_s", json_number(limit->time_s),
                             "communication_s", json_number(limit->communication_s),
                             "share", json_number(limit->time_s / d->end_s), "width",
                             json_number(100 * limit->time_s / most_s));
    if (limit->lane == SIM_TEAM)
        return json;
    uint32_t first = UINT32_MAX, alike = 0;
    for (uint32_t j = 0; j < d->timeline->n_devices; j++)
        if (d->timeline->lane[j] == limit->lane) {
            first = MIN(first, j);
            alike++;
        }
    const Device *device = &d->evaluation->view->device[first];
    json_object_update_new(json,
                           json_pack("{s:s, s:s, s:i}", "device", device->name, "type",
                                     device->type_name, "alike", (int)alike));
    set_stage(d, first, json);
    return json;
}

static json_t *limits_json(const Drawn *d, bool by_layers)
{
    g_autoptr(GArray) limits = sim_timeline_limits(
        d->timeline, d->evaluation->plan->program, d->evaluation->graph, by_layers);
    json_t *list = json_array();
    for (guint i = 0; i < MIN(limits->len, MOST_LIMITS); i++)
        json_array_append_new(list,
                              limit_json(d, &g_array_index(limits, SimLimit, i),
                                         g_array_index(limits, SimLimit, 0).time_s));
    return list;
}

/* Transfers between the stages: how many of one iteration, and how long one takes. */
static json_t *hops_json(const Drawn *d)
{
    const Program *program = d->evaluation->plan->program;
    g_autoptr(GHashTable) index = g_hash_table_new(NULL, NULL);
    json_t *list = json_array();
    items_each (const SimSpan, span, d->timeline->span, d->timeline->n_spans) {
        const Instr *instr = &program->instr[span->instr];
        if (span->launch || instr->kind != INSTR_TRANSFER ||
            instr_regroups(program, instr) || !(span->end_s > span->start_s))
            continue;
        const uint32_t from = d->stage[program->group[instr->group].device[0]],
                       to = d->stage[program->group[instr->to_group].device[0]];
        gpointer key = GUINT_TO_POINTER((from + 1) * 65536 + to + 1);
        json_t *hop = g_hash_table_lookup(index, key);
        if (!hop && (from == to || from == UINT32_MAX || to == UINT32_MAX ||
                     json_array_size(list) >= MOST_HOPS))
            continue;
        if (!hop) {
            hop = json_pack("{s:i, s:i, s:i, s:f}", "from", (int)from, "to", (int)to, "n",
                            0, "sum_s", 0.0);
            json_array_append_new(list, hop);
            g_hash_table_insert(index, key, hop);
        }
        const double sum_s = json_number_value(json_object_get(hop, "sum_s")) +
                             span->end_s - span->start_s;
        const json_int_t n = json_integer_value(json_object_get(hop, "n")) + 1;
        json_object_update_new(hop, json_pack("{s:I, s:f, s:f}", "n", n, "sum_s", sum_s,
                                              "mean_s", sum_s / (double)n));
    }
    return list;
}

static ORDER_DEFINE(by_use, SimLinkUse, DESCENDING(busy_s), BY_NAME(name));

/* The busiest links of a simulated network; those with equal use are one row. */
static json_t *drawn_links(const Drawn *d)
{
    const uint32_t n = d->timeline->n_links;
    g_autofree SimLinkUse *link = g_memdup2(d->timeline->link, n * sizeof *link);
    json_t *list = json_array(), *last = NULL;
    if (n > 0) /* else there is no array */
        qsort(link, n, sizeof *link, by_use);
    for (uint32_t i = 0; i < n && link[i].bytes > 0; i++) {
        const bool same = i > 0 &&
                          fabs(link[i].busy_s - link[i - 1].busy_s) <= 1e-9 * d->end_s &&
                          link[i].bandwidth == link[i - 1].bandwidth &&
                          fabs(link[i].bytes - link[i - 1].bytes) < 1;
        if (same) {
            json_t *alike = json_object_get(last, "alike");
            json_integer_set(alike, json_integer_value(alike) + 1);
            continue;
        }
        if (json_array_size(list) >= MOST_LINKS)
            break;
        last = json_pack("{s:s, s:i, s:f, s:f, s:f, s:f}", "name", link[i].name, "alike",
                         1, "bytes_per_s", link[i].bandwidth, "bytes", link[i].bytes,
                         "busy", link[i].busy_s / d->end_s, "used",
                         link[i].bytes / (link[i].bandwidth * d->end_s));
        json_array_append_new(list, last);
    }
    return list;
}

void plan_drawn_add(json_t *answer, const Evaluation *evaluation, const SimReport *report)
{
    const SimTimeline *timeline = report->timeline;
    Drawn d = {.evaluation = evaluation,
               .timeline = timeline,
               .end_s = timeline ? sim_timeline_end_s(timeline) : 0};
    if (!(d.end_s > 0))
        return;
    d.stage = plan_facts_stages(answer, timeline->n_devices, NULL);
    drawn_sort(&d);
    json_object_set_new(answer, "drawn_fidelity", json_string(report->fidelity));
    json_object_set_new(answer, "drawn_s", json_number(d.end_s));
    json_object_set_new(answer, "ahead",
                        json_boolean(d.end_s > 1.005 * report->iteration_time_s));
    add_timeline(&d, answer);
    drawn_memory(&d, answer);
    json_object_set_new(answer, "limits", limits_json(&d, false));
    json_object_set_new(answer, "limits_by_layer", limits_json(&d, true));
    json_object_set_new(answer, "hops", hops_json(&d));
    json_object_set_new(answer, "links", drawn_links(&d));
    free_items(d.span, timeline->n_lanes);
    free_each(d.span, d.n_spans, d.stage);
}
