/* The ratio LP: rows over classes of equal devices, interior point or cutting planes,
 * prices back to devices, check. */
#include <math.h>
#include <string.h>

#include "balance/balance.h"
#include "balance/check.h"
#include "balance/cuts.h"
#include "balance/interior.h"
#include "data/base/units.h"

/* --- input --- */

static bool is_amount(double value)
{
    return isfinite(value) && value >= 0;
}

static bool check_amounts(const double *value, size_t n, const char *what, GError **error)
{
    for (size_t i = 0; i < n; i++) {
        if (!is_amount(value[i]))
            return refuse(error, "balance: %s %zu is %g: expected a finite number >= 0",
                          what, i, value[i]);
    }
    return true;
}

static bool check_device(const Device *device, GError **error)
{
    if (!is_amount(device->rate))
        return refuse(error,
                      "balance: rate of device %s is %g: expected a finite number >= 0",
                      device->name, device->rate);
    if (device->gpus == 0)
        return refuse(error, "balance: device %s has no GPUs", device->name);
    if (device->gpus > 1 &&
        !(is_amount(device->inner.latency_s) && device->inner.bandwidth > 0))
        return refuse(error,
                      "balance: inner link of device %s has no latency or bandwidth",
                      device->name);
    return true;
}

static bool check_devices(const SimLinear *linear, const ClusterView *view,
                          GError **error)
{
    bool any = false;
    items_each (const Device, device, view->device, view->n_devices) {
        if (!check_device(device, error))
            return false;
        any = any || device->rate > 0;
        for (uint32_t i = 0; device->rate == 0 && i < linear->n_stages; i++) {
            if (linear->stage[i].fixed.flops > 0)
                return refuse(error,
                              "balance: device %s has rate 0, but stage %u has "
                              "replicated computation",
                              device->name, i);
        }
    }
    return any || refuse(error, "balance: no device has a rate above 0");
}

static bool check_input(const SimLinear *linear, const SimMemory *memory,
                        const ClusterView *view, uint32_t n_segments, GError **error)
{
    size_t cells = (size_t)linear->n_stages * linear->n_splits;
    if (n_segments == 0)
        return refuse(error, "balance: no segments");
    for (uint32_t s = 0; s < linear->n_splits; s++) {
        if (linear->split[s].segment >= n_segments)
            return refuse(error, "balance: split %u is of segment %u, of %u segments", s,
                          linear->split[s].segment, n_segments);
    }
    items_at (const SimStage, stage, i, linear->stage, linear->n_stages) {
        if (!is_amount(stage->comm_s) || !is_amount(stage->fixed.flops) ||
            !is_amount(stage->fixed.inner_bytes))
            return refuse(error,
                          "balance: stage %u has %g s, %g FLOPs, %g inner bytes: "
                          "expected finite numbers >= 0",
                          i, stage->comm_s, stage->fixed.flops, stage->fixed.inner_bytes);
    }
    for (uint32_t t = 0; t < linear->n_terms; t++) {
        if (!check_amounts(&linear->term[t].seconds, 1, "seconds of a term", error))
            return false;
    }
    if (!check_amounts(linear->flops, cells, "FLOPs at stage x split", error) ||
        !check_amounts(linear->inner_bytes, cells, "inner bytes at stage x split",
                       error) ||
        !check_devices(linear, view, error))
        return false;
    if (!memory)
        return true;
    cells = (size_t)memory->n_points * memory->n_splits;
    return check_amounts(memory->held, memory->n_points, "bytes of point", error) &&
           check_amounts(memory->divided, memory->n_points, "bytes of point", error) &&
           check_amounts(memory->held_sharded, cells, "bytes at point x split", error) &&
           check_amounts(memory->divided_sharded, cells, "bytes at point x split", error);
}

/* --- solution --- */

typedef struct {
    const SimLinear *linear;
    const SimMemory *memory;
    const ClusterView *view;
    uint32_t n_segments;
    BalanceClasses *classes;
    BalanceRows *rows;
    double piece_factor, limit_factor; /* factors that scaled the rows */
    BalanceCuts cuts;
} Balance;

static double pieces_at(const BalanceRows *rows, const double *x)
{
    double sum = 0;
    uint32_t r;
    for (guint i = 0; i < rows->piece->len; i++)
        sum += balance_piece_at(rows, i, x, &r);
    return sum;
}

/* The pieces' rows in units of the objective at the present point. */
static void scale_pieces(Balance *b)
{
    double value = pieces_at(b->rows, b->cuts.x);
    if (value > 0) {
        balance_rows_scale(b->rows, 1 / value, 1);
        b->piece_factor /= value;
    }
}

/* The limits in units of the largest memory. */
static void scale_limits(Balance *b)
{
    const double memory = most_over(double, j, b->view->n_devices, 1,
                                    (double)b->view->device[j].memory_bytes);
    balance_rows_scale(b->rows, 1, 1 / memory);
    b->limit_factor = 1 / memory;
}

/* The first of the rows whose prices are the prices of term t. */
static uint32_t first_of_term(const BalanceRows *rows, uint32_t t)
{
    return rows->term_share[t] == BALANCE_NONE
               ? g_array_index(rows->piece, BalancePiece, rows->term_piece[t]).first
               : g_array_index(rows->share, BalanceShare, rows->term_share[t]).first;
}

static bool is_of_two_segments(const BalanceRows *rows, uint32_t t)
{
    const BalanceShare *share =
        &g_array_index(rows->share, BalanceShare, rows->term_share[t]);
    return share->from != share->to;
}

/* Prices of classes' rows, each shared evenly by the devices of its class. */
static void spread_prices(const Balance *b, BalancePrices *prices)
{
    uint32_t n = b->view->n_devices, n_classes = b->classes->n;
    const double *price = b->cuts.price;
    values_at (uint32_t, c, j, b->classes->of_device, n) {
        double share = 1.0 / b->classes->count[c];
        for (uint32_t i = 0; i < b->linear->n_stages; i++)
            prices->stage[(size_t)i * n + j] = share * price[(size_t)i * n_classes + c];
        items_at (const SimTerm, term, t, b->linear->term, b->linear->n_terms) {
            const double *of = price + first_of_term(b->rows, t);
            prices->from[(size_t)t * n + j] = share * of[c];
            if (b->rows->term_share[t] == BALANCE_NONE ? term->from != term->to
                                                       : is_of_two_segments(b->rows, t))
                prices->to[(size_t)t * n + j] = share * of[n_classes + c];
        }
        /* In seconds per byte, as limits and objective were scaled. */
        double seconds = share * b->limit_factor / b->piece_factor;
        for (uint32_t p = 0; b->memory && p < b->memory->n_points; p++)
            prices->memory[(size_t)p * n + j] =
                seconds * price[b->rows->first_limit + (size_t)p * n_classes + c];
    }
}

/* Ratios of devices into `ratio`, then the check of them and of the prices. */
static bool finish(const Balance *b, double *ratio, BalanceReport *report, GError **error)
{
    uint32_t n = b->view->n_devices, n_stages = b->linear->n_stages,
             n_terms = b->linear->n_terms;
    for (uint32_t k = 0; k < b->n_segments; k++) {
        for (uint32_t j = 0; j < n; j++)
            ratio[(size_t)k * n + j] =
                b->cuts.x[k * b->classes->n + b->classes->of_device[j]];
    }
    size_t n_points = b->memory ? b->memory->n_points : 0;
    const size_t n_prices = ((size_t)n_stages + 2 * (size_t)n_terms + n_points) * n;
    g_autofree double *all = g_new0(double, n_prices + 1); /* never NULL */
    BalancePrices prices = {all, all + (size_t)n_stages * n,
                            all + ((size_t)n_stages + n_terms) * n,
                            all + ((size_t)n_stages + 2 * (size_t)n_terms) * n};
    spread_prices(b, &prices);
    report->rows = b->cuts.rows;
    report->columns = b->cuts.columns;
    BalanceSolution solution = {
        .n_segments = b->n_segments, .ratio = ratio, .prices = &prices};
    if (!balance_check(b->linear, b->memory, b->view, &solution, error))
        return false;
    report->time_s = solution.time_s;
    report->dual_s = solution.bound_s;
    return true;
}

/* Names the devices and the bytes that they lack: the smallest possible largest violation of (3),
 * and in it the limit of the highest price. */
static bool fail_infeasible(const Balance *b, GError **error)
{
    if (b->rows->first_limit == b->rows->row->len)
        return kilter_fail(error, KILTER_ERROR_FAILED,
                           "balance: the solver finds no ratios where all are allowed");
    g_autoptr(BalanceRows) violation = balance_rows_violation(b->rows);
    double factor = b->limit_factor;
    g_autofree double *x = g_memdup2(violation->start, violation->n_columns * sizeof *x);
    g_autofree double *price = g_new0(double, violation->row->len);
    BalanceCuts cuts = {.x = x, .price = price};
    if (balance_cuts(violation, &cuts, error) != LP_OPTIMAL)
        return false;
    double missing = ceil(cuts.value / factor);
    if (missing < 1)
        return kilter_fail(error, KILTER_ERROR_FAILED,
                           "balance: the memory rows are too tight to solve");
    uint32_t worst = 0;
    for (uint32_t r = 1; r < violation->row->len; r++)
        worst = price[r] > price[worst] ? r : worst;
    uint32_t c = worst % b->classes->n, point = worst / b->classes->n;
    const Device *device = &b->view->device[b->classes->device[c]];
    g_autofree char *amount = units_format(missing, QUANTITY_BYTES);
    return kilter_fail(
        error, KILTER_ERROR_INFEASIBLE,
        "no ratios fit the memory: device %s (%s, %u of this kind) lacks at "
        "least %s (%.0f bytes) per GPU at instruction %u",
        device->name, device->type_name, b->classes->count[c], amount, missing,
        b->memory->instr[point]);
}

/* The time of cutting planes, which end at a vertex, grows with the classes more than with the
 * stages; the time of the interior point grows with the stages more (measured in tests/bench). */
static bool favours_interior(const BalanceRows *rows)
{
    enum { FEW = 4, PIECES = 16 };
    return rows->n_segments == 1 && rows->n_classes > FEW &&
           rows->piece->len <= PIECES * rows->n_classes * rows->n_classes;
}

/* Returns false when the cutting planes have to solve the problem or to say what is wrong. */
static bool solve_interior(Balance *b, double *ratio, BalanceReport *report)
{
    if (!favours_interior(b->rows))
        return false;
    scale_pieces(b);
    return balance_interior(b->rows, &b->cuts) && finish(b, ratio, report, NULL);
}

static bool ratios_solve(Balance *b, double *ratio, BalanceReport *report, GError **error)
{
    enum { ATTEMPTS = 3 }; /* each from a better point */
    /* The start is ratios proportional to speed; segments that cost nothing keep them. */
    memcpy(b->cuts.x, b->rows->start, b->rows->n_columns * sizeof *b->cuts.x);
    scale_limits(b);
    if (solve_interior(b, ratio, report))
        return true;
    for (uint32_t attempt = 0;; attempt++) {
        g_autoptr(GError) failed = NULL;
        scale_pieces(b);
        LpStatus status = balance_cuts(b->rows, &b->cuts, &failed);
        if (status == LP_INFEASIBLE)
            return fail_infeasible(b, error);
        if (status == LP_OPTIMAL && finish(b, ratio, report, &failed))
            return true;
        /* The start may have cost so much more that its unit was too coarse: try again from the
         * point found. */
        if (attempt + 1 == ATTEMPTS) {
            g_propagate_error(error, g_steal_pointer(&failed));
            return false;
        }
    }
}

/* Equal devices have nothing to decide: even ratios, if they fit the memory. */
static bool take_even(const SimLinear *linear, const SimMemory *memory,
                      const ClusterView *view, uint32_t n_segments, double *ratio,
                      BalanceReport *report)
{
    g_assert(view->n_devices > 0 && n_segments > 0);
    for (size_t i = 0; i < (size_t)n_segments * view->n_devices; i++)
        ratio[i] = 1.0 / view->n_devices;
    g_autofree double *share = sim_shares(linear, view, ratio);
    if (memory && sim_memory_peak(memory, view, share, 0, NULL) >
                      (double)view->device[0].memory_bytes)
        return false;
    report->time_s = report->dual_s = sim_linear_time(linear, view, share, NULL, NULL);
    report->rows = report->columns = 0;
    return true;
}

bool balance_ratios(const SimLinear *linear, const SimMemory *memory,
                    const ClusterView *view, uint32_t n_segments, double *ratio,
                    BalanceReport *report, GError **error)
{
    gint64 begin = g_get_monotonic_time();
    if (!check_input(linear, memory, view, n_segments, error))
        return false;
    g_autoptr(BalanceClasses) classes = balance_classes(view);
    if (classes->n == 1 && take_even(linear, memory, view, n_segments, ratio, report)) {
        report->solve_s = 1e-6 * (double)(g_get_monotonic_time() - begin);
        return true;
    }
    g_autoptr(BalanceRows) rows = balance_rows(linear, memory, view, classes, n_segments);
    g_autofree double *x = g_new0(double, rows->n_columns);
    g_autofree double *price = g_new0(double, rows->row->len);
    Balance b = {
        linear, memory, view, n_segments, classes, rows, 1, 1, {.x = x, .price = price}};
    bool ok = ratios_solve(&b, ratio, report, error);
    report->solve_s = 1e-6 * (double)(g_get_monotonic_time() - begin);
    return ok;
}
