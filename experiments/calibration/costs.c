/* Costs, and clusters with these costs. */
#include "experiments/calibration/costs.h"

#include <math.h>
#include <string.h>

#include "data/base/names.h"

#define COST_ROW(id, name, unit, width, absent) [COST_##id] = {name, unit, width, absent},
static const CostInfo INFO[COSTS] = {COST_TABLE(COST_ROW)};

const CostInfo *cost_info(Cost cost)
{
    g_assert(cost < COSTS);
    return &INFO[cost];
}

bool cost_is_of_network(Cost cost)
{
    return cost == COST_OUTER_LATENCY || cost == COST_OUTER_BANDWIDTH;
}

/* --- starts --- */

/* Starting values, as parts of data sheet's numbers and in seconds (the header has the reasons). */
static const double PEAK_PART = 0.8, MEMORY_PART = 0.4, UNFUSED_PART = 0.1;
static const double LAUNCH_S = 100e-6, HANDOVER_S = 500e-6, OVERHEAD_S = 15e-6;

/* The sheet of that name, or the one whose rate is nearest to the type's. */
static const DeviceSheet *sheet_for(const Sheets *sheets, const DeviceType *type,
                                    bool *own)
{
    const DeviceSheet *nearest = NULL;
    double least = INFINITY;
    *own = false;
    items_each (const DeviceSheet, sheet, sheets->device, sheets->n_devices) {
        if (g_ascii_strcasecmp(sheet->name, type->name) == 0) {
            *own = true;
            return sheet;
        }
        const double rate = sheet->peak[SHEET_FP32] * sheet->share[SHEET_FP32];
        const double far = fabs(log(rate / type->rate));
        if (rate > 0 && far < least) {
            least = far;
            nearest = sheet;
        }
    }
    return nearest;
}

TypeStart type_start(const Sheets *sheets, DeviceType *type)
{
    static const SheetFormat format[NUMBERS] = {[NUMBERS_F32] = SHEET_FP32,
                                                [NUMBERS_F16] = SHEET_FP16,
                                                [NUMBERS_BF16] = SHEET_BF16,
                                                [NUMBERS_F8] = SHEET_FP8,
                                                [NUMBERS_F4] = SHEET_FP4};
    bool own;
    const DeviceSheet *sheet = sheet_for(sheets, type, &own);
    g_assert(sheet);
    const double sustained = sheet->peak[SHEET_FP32] * sheet->share[SHEET_FP32];
    const double bandwidth = sheet->chip.bandwidth * (own ? 1 : type->rate / sustained);
    for (Numbers n = 0; own && n < NUMBERS; n++)
        if (sheet->peak[format[n]] > 0)
            type->rates[n] = PEAK_PART * sheet->peak[format[n]];
    if (own)
        type->rate = type->rates[NUMBERS_F32];
    return (TypeStart){.bandwidth = MEMORY_PART * bandwidth,
                       .attention = UNFUSED_PART * bandwidth,
                       .loss = UNFUSED_PART * bandwidth,
                       .overhead_s = OVERHEAD_S,
                       .launch_s = LAUNCH_S,
                       .handover_s = HANDOVER_S,
                       .processors = own ? sheet->chip.processors : 0};
}

/* --- application --- */

/* The elements of an output that one processor computes at a time. */
enum { TILE = 128 * 128 };

static Cost rate_cost(Numbers numbers)
{
    return numbers == NUMBERS_F32  ? COST_RATE_F32
           : numbers >= NUMBERS_F8 ? COST_RATE_F8
                                   : COST_RATE_HALF;
}

/* Costs that are absent at first start from these; bandwidths are factors on the common one. */
static const double ABSENT_START[COSTS] = {
    [COST_PRODUCTS] = 2,    [COST_FILL] = 64,      [COST_UPDATE] = 2,
    [COST_CROWDING] = 0.02, [COST_SLOWDOWN] = 0.2, [COST_INTERFERENCE] = 0.2,
    [COST_ROUTING] = 0.2};

/* The value of such a cost; 0: it is absent. */
static double value_if_present(const TypeStart *start, const double *log, Cost cost)
{
    g_assert(INFO[cost].absent);
    const double unit =
        cost == COST_PRODUCTS || cost == COST_UPDATE ? start->bandwidth : 1;
    return log && !isinf(log[cost])
               ? unit * ABSENT_START[cost] * exp(start->shift[cost] + log[cost])
               : 0;
}

static bool is_product(OpKind kind)
{
    return *op_kind_linear(kind) && strcmp(op_kind_linear(kind), "0|1") == 0;
}

/* The cost that prices the bytes of an op. Frameworks compute some in several passes over large
 * values in between: attention over its scores, the loss over its logits. */
static Cost memory_cost(OpKind kind)
{
    switch (kind) {
    case OP_ATTENTION:
    case OP_ATTENTION_DX:
    case OP_GROUPED_ATTENTION:
    case OP_GROUPED_ATTENTION_DX:
        return COST_ATTENTION;
    case OP_SUM_EXP:
    case OP_CROSS_ENTROPY:
    case OP_CROSS_ENTROPY_DX:
        return COST_LOSS;
    default:
        return is_product(kind)        ? COST_PRODUCTS
               : op_kind_updates(kind) ? COST_UPDATE
                                       : COST_BANDWIDTH;
    }
}

/* More bytes than the operands of any op have, so that costs hold for all sizes. */
static const double LARGEST = 1e15;

static double factor(const double *log, Cost cost)
{
    return log ? exp(log[cost]) : 1;
}

/* The part of an update with master values that is not scaling and clipping: 32 bytes of operands
 * for each parameter (two of 2 bytes, seven of 4), and three more passes over its gradient of 4. */
static const double UNSCALED_PART = 32.0 / (32 + 3 * 4);

static double memory_bandwidth(const TypeStart *start, const double *log, OpKind kind)
{
    const Cost cost = memory_cost(kind);
    const double own = INFO[cost].absent ? value_if_present(start, log, cost) : 0;
    if (cost == COST_ATTENTION)
        return start->attention * factor(log, cost);
    if (cost == COST_LOSS)
        return start->loss * factor(log, cost);
    if (own == 0)
        return start->bandwidth * factor(log, COST_BANDWIDTH);
    const bool scales = cost == COST_UPDATE && op_kind_has_master(kind);
    return own * (scales ? UNSCALED_PART : 1);
}

static OpCost op_cost(const DeviceType *type, const TypeStart *start, const double *log,
                      OpKind kind)
{
    const bool routed = op_kind_is_of_experts(kind);
    const double fullest = routed ? 1 + value_if_present(start, log, COST_ROUTING) : 1;
    OpCost cost = {.rate = type->rate / fullest,
                   .bandwidth = memory_bandwidth(start, log, kind) / fullest,
                   .overhead_s = start->overhead_s * factor(log, COST_OVERHEAD),
                   .launch_s = start->launch_s * factor(log, COST_LAUNCH),
                   .fill = is_product(kind) ? value_if_present(start, log, COST_FILL) : 0,
                   .wave = start->processors * TILE,
                   .largest = LARGEST};
    if (op_kind_is_view(kind)) {
        cost.bandwidth = INFINITY;
        cost.overhead_s = 0;
    }
    return cost;
}

static void apply_type(const DeviceType *from, const TypeStart *start, const double *log,
                       DeviceType *to)
{
    for (Numbers n = 0; n < NUMBERS; n++)
        to->rates[n] = device_type_rate(from, n) * factor(log, rate_cost(n));
    to->rate = to->rates[NUMBERS_F16] > 0 ? to->rates[NUMBERS_F16] : from->rate;
    to->launch_s = start->launch_s * factor(log, COST_LAUNCH);
    to->handover_s = start->handover_s * factor(log, COST_HANDOVER);
    to->crowding = from->crowding + value_if_present(start, log, COST_CROWDING);
    to->slowdown = fmax(from->slowdown, 1 + value_if_present(start, log, COST_SLOWDOWN));
    to->interference =
        fmax(from->interference, 1 + value_if_present(start, log, COST_INTERFERENCE));
    if (!to->op)
        to->op = g_new(OpCost, OP_KINDS);
    for (OpKind kind = 0; kind < OP_KINDS; kind++)
        to->op[kind] = op_cost(to, start, log, kind);
}

static LinkCost scaled(LinkCost line, double latency, double bandwidth)
{
    return (LinkCost){line.latency_s * latency, line.bandwidth * bandwidth};
}

static void apply_network(const Cluster *from, const double *log, Cluster *to)
{
    const double latency = factor(log, COST_OUTER_LATENCY),
                 bandwidth = factor(log, COST_OUTER_BANDWIDTH);
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++) {
        to->collective[kind] = scaled(from->collective[kind], latency, bandwidth);
        /* a copy of one machine has none */
        for (uint32_t p = 0; p < to->pieces[kind].n; p++)
            to->pieces[kind].piece[p].line =
                scaled(from->pieces[kind].piece[p].line, latency, bandwidth);
    }
    to->transfer = scaled(from->transfer, latency, bandwidth);
    for (uint32_t i = 0; i < from->n_machines; i++) {
        const Port *port = &from->machine[i].port;
        to->machine[i].port = (Port){.bandwidth = port->bandwidth * bandwidth,
                                     .gpu = port->gpu * bandwidth,
                                     .base_s = port->base_s * latency,
                                     .hop_s = port->hop_s * latency,
                                     .nics = port->nics};
    }
    cluster_finish(to);
}

/* The type whose costs inside machines the curve has: its own, or the first. */
static uint32_t curve_type(const Cluster *cluster, const CollectiveCurve *curve)
{
    const uint32_t n = curve->device ? cluster->n_types : 0;
    const uint32_t t = NAME_PLACE(cluster->type, n, name, curve->device);
    return t < n ? t : 0;
}

static void apply_curve(const CollectiveCurve *from, const double *log,
                        CollectiveCurve *to)
{
    const bool outer = from->hosts > 1;
    curve_scale(from, factor(log, outer ? COST_OUTER_BANDWIDTH : COST_INNER_BANDWIDTH),
                factor(log, outer ? COST_OUTER_LATENCY : COST_INNER_LATENCY), to);
}

static void apply_curves(const Cluster *from, const double *log, Cluster *to)
{
    items_at (const CollectiveCurve, curve, i, from->curves.curve, from->curves.n) {
        const uint32_t type = curve->hosts > 1 ? 0 : curve_type(from, curve);
        apply_curve(curve, log ? log + (size_t)type * COSTS : NULL, &to->curves.curve[i]);
    }
}

void costs_apply(const Cluster *from, const TypeStart *start, const double *log,
                 Cluster *to)
{
    g_assert(from->n_types == to->n_types && from->n_machines == to->n_machines);
    for (uint32_t t = 0; t < from->n_types; t++)
        apply_type(&from->type[t], &start[t], log ? log + (size_t)t * COSTS : NULL,
                   &to->type[t]);
    for (uint32_t i = 0; i < from->n_machines; i++) {
        const double *own = log ? log + (size_t)from->machine[i].type * COSTS : NULL;
        to->machine[i].inner =
            scaled(from->machine[i].inner, factor(own, COST_INNER_LATENCY),
                   factor(own, COST_INNER_BANDWIDTH));
    }
    apply_network(from, log, to);
    apply_curves(from, log, to);
    if (from->n_machines == 1)
        for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
            to->collective[kind] = to->machine[0].inner;
}

void costs_shift(const double *shift, Cluster *cluster, TypeStart *start)
{
    items_at (DeviceType, type, t, cluster->type, cluster->n_types) {
        type->rate *= factor(shift, COST_RATE_F32);
        for (Numbers n = 0; n < NUMBERS; n++)
            type->rates[n] *= factor(shift, rate_cost(n));
        start[t].bandwidth *= factor(shift, COST_BANDWIDTH);
        start[t].attention *= factor(shift, COST_ATTENTION);
        start[t].loss *= factor(shift, COST_LOSS);
        start[t].overhead_s *= factor(shift, COST_OVERHEAD);
        start[t].launch_s *= factor(shift, COST_LAUNCH);
        start[t].handover_s *= factor(shift, COST_HANDOVER);
        for (Cost cost = 0; cost < COSTS; cost++)
            if (INFO[cost].absent)
                start[t].shift[cost] += shift ? shift[cost] : 0;
    }
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        cluster->machine[i].inner =
            scaled(cluster->machine[i].inner, factor(shift, COST_INNER_LATENCY),
                   factor(shift, COST_INNER_BANDWIDTH));
    apply_network(cluster, shift, cluster);
    for (uint32_t i = 0; i < cluster->curves.n; i++)
        apply_curve(&cluster->curves.curve[i], shift, &cluster->curves.curve[i]);
}

double cost_value(const Cluster *from, const TypeStart *start, uint32_t type, Cost cost,
                  double log)
{
    const DeviceType *t = &from->type[type];
    const LinkCost *outer = &from->collective[COLLECTIVE_ALL_REDUCE], *inner = NULL;
    for (uint32_t i = 0; i < from->n_machines && !inner; i++)
        if (from->machine[i].type == type)
            inner = &from->machine[i].inner;
    const double value[COSTS] = {
        [COST_LAUNCH] = start[type].launch_s,
        [COST_HANDOVER] = start[type].handover_s,
        [COST_OVERHEAD] = start[type].overhead_s,
        [COST_RATE_F32] = device_type_rate(t, NUMBERS_F32),
        [COST_RATE_HALF] = device_type_rate(t, NUMBERS_F16),
        [COST_RATE_F8] = device_type_rate(t, NUMBERS_F8),
        [COST_BANDWIDTH] = start[type].bandwidth,
        [COST_ATTENTION] = start[type].attention,
        [COST_LOSS] = start[type].loss,
        [COST_INNER_LATENCY] = inner ? inner->latency_s : 0,
        [COST_INNER_BANDWIDTH] = inner ? inner->bandwidth : 0,
        [COST_OUTER_LATENCY] = outer->latency_s,
        [COST_OUTER_BANDWIDTH] = outer->bandwidth,
    };
    if (!INFO[cost].absent)
        return value[cost] * exp(log);
    double own[COSTS] = {0};
    own[cost] = log;
    return value_if_present(&start[type], own, cost);
}
