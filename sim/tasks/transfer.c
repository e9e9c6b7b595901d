/* The pieces of a transfer between two groups. */
#include "sim/tasks/transfer.h"

#include <math.h>

#include "data/base/free.h"
#include "data/cluster/price.h"
#include "sim/tasks/piece.h"

/* Parts smaller than this are rounding errors. */
static const double NOTHING = 1e-12;

typedef struct {
    double low, high;
} Range;

static const Range WHOLE = {0, 1};

static double length(Range range)
{
    return range.high - range.low;
}

static double common(Range a, Range b)
{
    KILTER_ASSERT(a.low <= a.high && b.low <= b.high);
    const double both = fmin(a.high, b.high) - fmax(a.low, b.low);
    return both > NOTHING ? both : 0;
}

/* --- replicas --- */

/* start: of each replica, [replica + 1]; NULL: the batch is not cut, and replicas come one after
 * another. */
static Range replica_range(const double *start, uint32_t replica)
{
    return start ? (Range){start[replica], start[replica + 1]}
                 : (Range){replica, replica + 1.0};
}

/* The first of n replicas whose part ends behind `low`. */
static uint32_t first_behind(const double *start, uint32_t n, double low)
{
    uint32_t from = 0, end = n;
    while (from < end) {
        const uint32_t middle = (from + end) / 2;
        if (replica_range(start, middle).high > low)
            end = middle;
        else
            from = middle + 1;
    }
    return from;
}

void sim_transfer_sources(const SimParts *parts, uint32_t group, uint32_t to_group,
                          bool has_parts, uint32_t replica, uint32_t *first,
                          uint32_t *end)
{
    const uint32_t n = parts->layout.group[group].n_replicas,
                   to_n = parts->layout.group[to_group].n_replicas,
                   n_shards = group_shards(&parts->layout.group[group]);
    *first = n == to_n ? replica : (uint32_t)((uint64_t)replica * n / to_n);
    *end = *first + 1;
    if (!has_parts || n_shards > 1)
        return;
    const double *start = sim_part_starts(parts, group);
    const double *to_start = sim_part_starts(parts, to_group);
    const Range need = to_start ? replica_range(to_start, replica) : WHOLE;
    *first = *end = n;
    for (uint32_t r = first_behind(start, n, need.low); r < n; r++) {
        if (common(need, replica_range(start, r)) > 0) {
            *first = MIN(*first, r);
            *end = r + 1;
        } else if (*first < n) {
            break;
        }
    }
    if (*first == n)
        *end = n;
}

/* --- devices --- */

/* The ranges of a microbatch, and of the dim that its form cuts, that each device of a group has:
 * [replica * n_devices + position]. */
typedef struct {
    Range *batch, *inner;
} Held;

static Held find_held(const SimParts *parts, uint32_t group, TensorId tensor, Form form,
                      const PlanCut *cut)
{
    g_assert(group < parts->layout.n_groups);
    const uint32_t n = parts->layout.group[group].n_devices,
                   n_replicas = parts->layout.group[group].n_replicas,
                   n_shards = group_shards(&parts->layout.group[group]);
    Held held = {g_new(Range, (size_t)n_replicas * n),
                 g_new(Range, (size_t)n_replicas * n)};
    double replica_low = 0;
    for (uint32_t r = 0; r < n_replicas; r++) {
        const SimPart of = sim_part(parts, group, tensor, form, r * n);
        const double whole =
            cut->has_parts ? of.batch * program_parts(parts->layout.plan->program) : 1;
        double low = 0;
        for (uint32_t p = 0; p < n; p++) {
            const uint32_t i = r * n + p;
            const double part = sim_part_inside(parts, group, tensor, form, i);
            const Range inside = {low, low + part};
            held.inner[i] = cut->is_cut ? inside : WHOLE;
            held.batch[i] = !cut->has_parts  ? WHOLE
                            : cut->to_device ? (Range){replica_low + whole * low,
                                                       replica_low + whole * (low + part)}
                                             : (Range){replica_low, replica_low + whole};
            low += part;
        }
        replica_low +=
            (r + 1) % n_shards == 0 ? whole : 0; /* the shards of a set share one part */
    }
    return held;
}

static CLEAR_DEFINE(held_clear, Held, held, free_each(held->batch, held->inner));

/* The part of the tensor that source i has and receiver k needs. */
static double piece_part(const SimTransfer *t, const Held *have, uint32_t i,
                         const Held *need, uint32_t k, double of_microbatch)
{
    const bool same_dim = t->from == t->to || !t->cut.is_cut || !t->to_cut.is_cut;
    const double batch = common(have->batch[i], need->batch[k]);
    const double inner = same_dim ? common(have->inner[i], need->inner[k])
                                  : length(have->inner[i]) * length(need->inner[k]);
    return batch * inner * (t->cut.has_parts ? of_microbatch : 1);
}

/* Whether the device has the whole tensor as one of the senders. */
static bool sends_whole(const SimTransfer *t, const DeviceGroup *from, uint32_t device)
{
    return !t->cut.has_parts && t->from == FORM_IDENTITY && group_has(from, device);
}

static void add_pieces(const SimParts *parts, SimTransfer *t, const Held *have,
                       const Held *need, uint32_t replica)
{
    const DeviceGroup *from = &parts->layout.group[t->group],
                      *to = &parts->layout.group[t->to_group];
    const double of_microbatch = 1.0 / program_parts(parts->layout.plan->program);
    uint32_t first, end;
    sim_transfer_sources(parts, t->group, t->to_group, t->cut.has_parts, replica, &first,
                         &end);
    for (uint32_t p = 0; p < to->n_devices; p++)
        for (uint32_t s = first; s < end; s++)
            for (uint32_t q = 0; q < from->n_devices; q++) {
                const uint32_t i = s * from->n_devices + q,
                               k = replica * to->n_devices + p;
                const double outer = t->shard_part;
                /* If all devices of a replica have the same data, one of them sends them. */
                if (!form_is_gather(t->from) &&
                    q != (uint64_t)p * from->n_devices / to->n_devices)
                    continue;
                const SimPiece piece = {
                    from->device[i], to->device[k], replica,
                    outer * piece_part(t, have, i, need, k, of_microbatch)};
                if (piece.from != piece.to && piece.part > 0 &&
                    !sends_whole(t, from, piece.to))
                    g_array_append_val(t->pieces, piece);
            }
}

/* --- what it takes --- */

/* Latency and seconds per byte of a message between machines: over its own link, and through a port
 * that has all of the machine's NICs. */
static void add_between(const Cluster *cluster, const Machine *machine,
                        double machine_part, double device_part, double *latency_s,
                        double *byte_s)
{
    const LinkCost *stated = &cluster->collective[COLLECTIVE_GROUPED_ALL_GATHER];
    const LinkCost port = cluster->wired
                              ? (LinkCost){machine->port.base_s + machine->port.hop_s,
                                           machine->port.bandwidth}
                              : *stated;
    const LinkCost own = cluster->transfer.bandwidth > 0 ? cluster->transfer
                         : cluster->wired && machine->port.gpu > 0
                             ? (LinkCost){port.latency_s, machine->port.gpu}
                             : port;
    const double all = cluster->transfer.bandwidth > 0
                           ? fmax(port.bandwidth, own.bandwidth)
                           : port.bandwidth;
    *latency_s = fmax(*latency_s, own.latency_s);
    *byte_s = fmax(*byte_s, machine_part / all);
    if (cluster->wired || cluster->transfer.bandwidth > 0)
        *byte_s = fmax(*byte_s, device_part / own.bandwidth);
}

/* The link between two devices of a machine. */
static LinkCost inside_line(const ClusterView *view, uint32_t from, uint32_t to)
{
    const uint32_t m = view->device[from].machine;
    const Machine *machine = &view->cluster->machine[m];
    if (!machine->peers) {
        LinkCost line = view->device[from].inner;
        line.bandwidth *= view->device[from].gpus;
        return line;
    }
    uint32_t first = MIN(from, to);
    while (first > 0 && view->device[first - 1].machine == m)
        first--;
    return machine_line(view->cluster, machine,
                        1U << (from - first) | 1U << (to - first));
}

/* Sums the bytes through each port, as parts of the tensor: out of and into machines, then out of
 * and into devices, inside machines and between them. */
void sim_pieces_time(const ClusterView *view, const GArray *pieces, double *latency_s,
                     double *byte_s)
{
    const uint32_t n_machines = view->cluster->n_machines, n = view->n_devices;
    const uint32_t n_sites = view->n_sites;
    g_autofree double *port = g_new0(double, 2 * (size_t)(n_machines + 2 * n));
    g_autofree double *crossing = g_new0(double, (size_t)n_sites *n_sites + 1);
    double *inside = port + 2 * n_machines, *between = inside + 2 * n;
    double far_s = 0;
    *latency_s = *byte_s = 0;
    array_each (const SimPiece, piece, pieces) {
        const Device *from = &view->device[piece->from], *to = &view->device[piece->to];
        if (cluster_unit(view->cluster, from->machine) ==
            cluster_unit(view->cluster, to->machine)) {
            double *out = &inside[2 * piece->from], *in = &inside[2 * piece->to + 1];
            *out += piece->part;
            *in += piece->part;
            const LinkCost line = inside_line(view, piece->from, piece->to);
            *latency_s = fmax(*latency_s, line.latency_s);
            *byte_s = fmax(*byte_s, fmax(*out, *in) / line.bandwidth);
            continue;
        }
        double *out = &port[2 * from->machine], *in = &port[2 * to->machine + 1];
        double *own_out = &between[2 * piece->from],
               *own_in = &between[2 * piece->to + 1];
        *out += piece->part;
        *in += piece->part;
        *own_out += piece->part;
        *own_in += piece->part;
        add_between(view->cluster, &view->cluster->machine[from->machine], *out, *own_out,
                    latency_s, byte_s);
        add_between(view->cluster, &view->cluster->machine[to->machine], *in, *own_in,
                    latency_s, byte_s);
        if (n_sites < 2)
            continue;
        const size_t way =
            (size_t)view->site[from->machine] * n_sites + view->site[to->machine];
        crossing[way] += piece->part;
        far_s = fmax(far_s, view->between[way].latency_s);
        *byte_s = fmax(*byte_s, crossing[way] / view->between[way].bandwidth);
    }
    *latency_s += far_s;
}

static bool same_cut(const PlanCut *a, const PlanCut *b)
{
    return a->has_parts == b->has_parts && a->to_device == b->to_device &&
           a->is_cut == b->is_cut && plan_compare_splits(&a->batch, &b->batch) == 0 &&
           plan_compare_splits(&a->inner, &b->inner) == 0;
}

const SimTransfer *sim_transfer_of(const SimParts *parts, const ClusterView *view,
                                   const Instr *instr, GPtrArray *known)
{
    const PlanCut cut =
        plan_layout_cut(&parts->layout, instr->group, instr->tensor, instr->from);
    const PlanCut to_cut =
        plan_layout_cut(&parts->layout, instr->to_group, instr->tensor, instr->to);
    pointers_each (const SimTransfer, t, known)
        if (t->group == instr->group && t->to_group == instr->to_group &&
            t->from == instr->from && t->to == instr->to && same_cut(&t->cut, &cut) &&
            same_cut(&t->to_cut, &to_cut))
            return t;
    SimTransfer *t = g_new0(SimTransfer, 1);
    *t = (SimTransfer){
        .group = instr->group,
        .to_group = instr->to_group,
        .from = instr->from,
        .to = instr->to,
        .cut = cut,
        .to_cut = to_cut,
        .shard_part = sim_part(parts, instr->group, instr->tensor, instr->from, 0).shards,
        .pieces = g_array_new(false, false, sizeof(SimPiece))};
    Held have = find_held(parts, t->group, instr->tensor, t->from, &cut);
    Held need = find_held(parts, t->to_group, instr->tensor, t->to, &to_cut);
    for (uint32_t r = 0; r < parts->layout.group[t->to_group].n_replicas; r++)
        add_pieces(parts, t, &have, &need, r);
    held_clear(&have);
    held_clear(&need);
    sim_pieces_time(view, t->pieces, &t->latency_s, &t->byte_s);
    g_ptr_array_add(known, t);
    return t;
}

FREE_DEFINE(sim_transfer_free, SimTransfer, t, g_array_unref(t->pieces));
