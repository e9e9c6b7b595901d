/* The rows of the linear program, over classes of equal devices. */
#include "balance/rows.h"

#include "data/base/free.h"

#include <math.h>
#include <string.h>

/* --- rows --- */

/* Takes ownership of `share`. */
static BalanceRows *rows_new(uint32_t n_segments, uint32_t n_classes, GArray *share)
{
    BalanceRows *rows = g_new0(BalanceRows, 1);
    rows->n_segments = n_segments;
    rows->n_classes = n_classes;
    rows->n_ratios = n_segments * n_classes;
    rows->share = share;
    rows->n_columns = rows->n_ratios + share->len;
    rows->count = g_new0(double, rows->n_columns);
    rows->idle = g_new0(bool, rows->n_columns);
    rows->start = g_new0(double, rows->n_columns);
    rows->entry = g_array_new(FALSE, FALSE, sizeof(BalanceEntry));
    rows->row = g_array_new(FALSE, FALSE, sizeof(BalanceRow));
    rows->piece = g_array_new(FALSE, FALSE, sizeof(BalancePiece));
    return rows;
}

FREE_DEFINE(balance_rows_free, BalanceRows, rows,
            free_each(rows->count, rows->idle, rows->start),
            unref_arrays(rows->entry, rows->row, rows->piece, rows->share),
            free_each(rows->term_piece, rows->term_share, rows->flat));

static void begin_row(BalanceRows *rows, double base)
{
    BalanceRow row = {base, rows->entry->len, 0};
    g_array_append_val(rows->row, row);
}

/* Adds value * x[column] to the last row. */
static void add_to_column(BalanceRows *rows, uint32_t column, double value)
{
    BalanceRow *row = &g_array_index(rows->row, BalanceRow, rows->row->len - 1);
    if (value == 0 || rows->idle[column])
        return;
    /* Splits are sorted by segment, so the splits of one segment add up in one entry. */
    if (row->n > 0) {
        BalanceEntry *last =
            &g_array_index(rows->entry, BalanceEntry, rows->entry->len - 1);
        if (last->column == column) {
            last->value += value;
            return;
        }
    }
    BalanceEntry entry = {column, value};
    g_array_append_val(rows->entry, entry);
    row->n++;
}

static void add_entry(BalanceRows *rows, uint32_t segment, uint32_t class, double value)
{
    KILTER_ASSERT(class < rows->n_classes);
    add_to_column(rows, segment * rows->n_classes + class, value);
}

static uint32_t segment_of_column(const BalanceRows *rows, uint32_t column)
{
    KILTER_ASSERT(column < rows->n_columns);
    return column < rows->n_ratios
               ? column / rows->n_classes
               : g_array_index(rows->share, BalanceShare, column - rows->n_ratios).from;
}

/* Ends a piece, which consists of the rows since `first`. */
static void end_piece(BalanceRows *rows, uint32_t first)
{
    g_assert(first <= rows->row->len);
    BalancePiece piece = {first, rows->row->len - first, 0, true};
    for (uint32_t r = first; r < rows->row->len; r++)
        piece.flat &= g_array_index(rows->row, BalanceRow, r).n <= 1;
    for (uint32_t r = first; r < rows->row->len; r++) {
        const BalanceRow *row = &g_array_index(rows->row, BalanceRow, r);
        if (row->n > 0) {
            piece.segment = segment_of_column(
                rows, g_array_index(rows->entry, BalanceEntry, row->first).column);
            break;
        }
    }
    g_array_append_val(rows->piece, piece);
}

/* Seconds per unit of share that split s of stage i takes on a device: (2) and (3) of sim/sim.h. */
static double slope(const SimLinear *linear, uint32_t stage, uint32_t split,
                    const Device *device)
{
    size_t at = (size_t)stage * linear->n_splits + split;
    const double flops = sim_linear_flops(linear, at, device);
    double seconds = flops > 0 ? flops / device->rate : 0;
    if (device->gpus > 1 && linear->stage[stage].fixed.inner_messages > 0)
        seconds += (device->gpus - 1.0) / device->gpus * linear->inner_bytes[at] /
                   device->inner.bandwidth;
    return seconds;
}

/* T_i >= (R_i + sum_k S_ik B_kj) / rate_j + inner_ij   every stage i, device j   (1) */
static void add_stage(BalanceRows *rows, const SimLinear *linear, const ClusterView *view,
                      const BalanceClasses *classes, uint32_t i)
{
    for (uint32_t c = 0; c < classes->n; c++) {
        const Device *device = &view->device[classes->device[c]];
        begin_row(rows, sim_work_s(&linear->stage[i].fixed, device, 0));
        for (uint32_t s = 0; s < linear->n_splits; s++)
            add_entry(rows, linear->split[s].segment, c, slope(linear, i, s, device));
    }
}

/* T >= comm up to stage i + comp_ij + comp_kj of later k   every i of the turn, device j  (1) */
static void add_turn(BalanceRows *rows, const SimLinear *linear, const ClusterView *view,
                     const BalanceClasses *classes, uint32_t first, uint32_t end)
{
    g_assert(first < end && end <= linear->n_stages);
    g_autofree double *comm = g_new0(double, rows->share->len);
    double comm_s = 0;
    uint32_t t = 0;
    while (t < linear->n_terms && linear->term[t].stage < first)
        t++;
    for (uint32_t i = first; i < end; i++) {
        comm_s += linear->stage[i].comm_s;
        for (; t < linear->n_terms && linear->term[t].stage == i; t++)
            comm[rows->term_share[t]] += linear->term[t].seconds;
        for (uint32_t c = 0; c < classes->n; c++) {
            const Device *device = &view->device[classes->device[c]];
            double base = comm_s;
            for (uint32_t k = i; k < end; k++)
                if (k == i || !linear->stage[k].beside)
                    base += sim_work_s(&linear->stage[k].fixed, device, 0);
            begin_row(rows, base);
            for (uint32_t s = 0; s < linear->n_splits; s++)
                for (uint32_t k = i; k < end; k++)
                    if (k == i || !linear->stage[k].beside)
                        add_entry(rows, linear->split[s].segment, c,
                                  slope(linear, k, s, device));
            for (uint32_t q = 0; q < rows->share->len; q++)
                add_to_column(rows, rows->n_ratios + q, comm[q]);
        }
    }
}

static void add_stages(BalanceRows *rows, const SimLinear *linear,
                       const ClusterView *view, const BalanceClasses *classes)
{
    for (uint32_t i = 0, end; i < linear->n_stages; i = end) {
        uint32_t first = rows->row->len;
        end = sim_turn_end(linear, i);
        if (end == i + 1)
            add_stage(rows, linear, view, classes, i);
        else
            add_turn(rows, linear, view, classes, i, end);
        end_piece(rows, first);
    }
}

/* factor B_kj, k of a split, on all classes */
static void add_share_rows(BalanceRows *rows, uint32_t segment, double factor,
                           uint32_t share)
{
    for (uint32_t c = 0; c < rows->n_classes; c++) {
        begin_row(rows, 0);
        add_entry(rows, segment, c, factor);
        if (share != BALANCE_NONE)
            add_to_column(rows, rows->n_ratios + share, -1);
    }
}

/* M_t >= B_kj      every term t, its k, j     (2), with M_t in seconds */
static void add_terms(BalanceRows *rows, const SimLinear *linear)
{
    items_at (const SimTerm, term, t, linear->term, linear->n_terms) {
        uint32_t first = rows->row->len;
        rows->term_piece[t] =
            rows->term_share[t] == BALANCE_NONE ? rows->piece->len : BALANCE_NONE;
        if (rows->term_share[t] != BALANCE_NONE)
            continue;
        add_share_rows(rows, linear->split[term->from].segment, term->seconds,
                       BALANCE_NONE);
        if (term->to != term->from)
            add_share_rows(rows, linear->split[term->to].segment, term->seconds,
                           BALANCE_NONE);
        end_piece(rows, first);
    }
}

/* B_kj <= L_q      every largest share q, its k, j     (5) */
static void add_shares(BalanceRows *rows)
{
    array_at (BalanceShare, share, q, rows->share) {
        share->first = rows->row->len;
        add_share_rows(rows, share->from, 1, q);
        if (share->to != share->from)
            add_share_rows(rows, share->to, 1, q);
    }
}

/* held_j + sum_k bytes_kj B_kj <= memory_j      every memory point, j     (3) */
static void add_limits(BalanceRows *rows, const SimLinear *linear,
                       const SimMemory *memory, const ClusterView *view,
                       const BalanceClasses *classes)
{
    for (uint32_t p = 0; p < memory->n_points; p++) {
        for (uint32_t c = 0; c < classes->n; c++) {
            const Device *device = &view->device[classes->device[c]];
            begin_row(rows, memory->held[p] + memory->divided[p] / device->gpus -
                                (double)device->memory_bytes);
            for (uint32_t s = 0; s < memory->n_splits; s++) {
                size_t at = (size_t)p * memory->n_splits + s;
                add_entry(rows, linear->split[s].segment, c,
                          memory->held_sharded[at] +
                              memory->divided_sharded[at] / device->gpus);
            }
        }
    }
}

/* Copies the rows of flat pieces. */
static void flatten(BalanceRows *rows)
{
    if (!rows->flat)
        rows->flat = g_new0(BalanceFlat, MAX(rows->row->len, 1));
    array_at (const BalanceRow, row, r, rows->row) {
        rows->flat[r].base = row->base;
        if (row->n == 0)
            continue;
        const BalanceEntry *entry = &g_array_index(rows->entry, BalanceEntry, row->first);
        rows->flat[r].value = entry->value;
        rows->flat[r].column = entry->column;
    }
}

/* The largest shares that terms inside of turns depend on. term_share [term]: out. */
static GArray *find_shares(const SimLinear *linear, uint32_t *term_share)
{
    GArray *shares = g_array_new(FALSE, FALSE, sizeof(BalanceShare));
    items_at (const SimTerm, term, t, linear->term, linear->n_terms) {
        const BalanceShare share = {linear->split[term->from].segment,
                                    linear->split[term->to].segment, 0};
        uint32_t q = 0;
        term_share[t] = BALANCE_NONE;
        if (!linear->stage[term->stage].joins &&
            sim_turn_end(linear, term->stage) == term->stage + 1)
            continue;
        while (q < shares->len &&
               (g_array_index(shares, BalanceShare, q).from != share.from ||
                g_array_index(shares, BalanceShare, q).to != share.to))
            q++;
        if (q == shares->len)
            g_array_append_val(shares, share);
        term_share[t] = q;
    }
    return shares;
}

/* Ratios proportional to speed, and which columns are idle. */
static void set_columns(BalanceRows *rows, const ClusterView *view,
                        const BalanceClasses *classes)
{
    double rates = 0, largest = 0;
    for (uint32_t c = 0; c < classes->n; c++) {
        const double rate = view->device[classes->device[c]].rate;
        rates += classes->count[c] * rate;
        largest = fmax(largest, rate);
    }
    for (uint32_t column = 0; column < rows->n_columns; column++) {
        const bool ratio = column < rows->n_ratios;
        uint32_t c = column % classes->n;
        double rate = ratio ? view->device[classes->device[c]].rate : largest;
        rows->count[column] = ratio ? classes->count[c] : 0;
        rows->idle[column] = rate == 0;
        rows->start[column] = rate / rates;
    }
}

BalanceRows *balance_rows(const SimLinear *linear, const SimMemory *memory,
                          const ClusterView *view, const BalanceClasses *classes,
                          uint32_t n_segments)
{
    uint32_t *term_share = g_new(uint32_t, linear->n_terms);
    BalanceRows *rows = rows_new(n_segments, classes->n, find_shares(linear, term_share));
    rows->term_share = term_share;
    rows->term_piece = g_new(uint32_t, linear->n_terms);
    set_columns(rows, view, classes);
    add_stages(rows, linear, view, classes);
    add_terms(rows, linear);
    rows->first_limit = rows->row->len;
    if (memory != NULL)
        add_limits(rows, linear, memory, view, classes);
    rows->first_share = rows->row->len;
    add_shares(rows);
    flatten(rows);
    return rows;
}

BalanceRows *balance_rows_violation(const BalanceRows *rows)
{
    BalanceRows *violation = rows_new(rows->n_segments, rows->n_classes,
                                      g_array_new(FALSE, FALSE, sizeof(BalanceShare)));
    memcpy(violation->count, rows->count, rows->n_ratios * sizeof *rows->count);
    memcpy(violation->idle, rows->idle, rows->n_ratios * sizeof *rows->idle);
    memcpy(violation->start, rows->start, rows->n_ratios * sizeof *rows->start);
    for (uint32_t r = rows->first_limit; r < rows->first_share; r++) {
        const BalanceRow *row = &g_array_index(rows->row, BalanceRow, r);
        BalanceRow copy = {row->base, violation->entry->len, row->n};
        g_array_append_val(violation->row, copy);
        g_array_append_vals(violation->entry,
                            &g_array_index(rows->entry, BalanceEntry, row->first),
                            row->n);
    }
    end_piece(violation, 0);
    violation->first_limit = violation->first_share = violation->row->len;
    flatten(violation);
    return violation;
}

void balance_rows_scale(BalanceRows *rows, double pieces, double limits)
{
    g_assert(pieces > 0 && limits > 0);
    for (uint32_t r = 0; r < rows->first_share; r++) {
        BalanceRow *row = &g_array_index(rows->row, BalanceRow, r);
        double factor = r < rows->first_limit ? pieces : limits;
        row->base *= factor;
        for (uint32_t e = row->first; e < row->first + row->n; e++)
            g_array_index(rows->entry, BalanceEntry, e).value *= factor;
    }
    flatten(rows);
}

/* The inner loop of the cutting planes, hence plain pointers. */
static inline double row_at(const BalanceRow *row, const BalanceEntry *entry,
                            const double *x)
{
    double value = row->base;
    for (uint32_t e = row->first; e < row->first + row->n; e++)
        value += entry[e].value * x[entry[e].column];
    return value;
}

double balance_row_at(const BalanceRows *rows, uint32_t row, const double *x)
{
    KILTER_ASSERT(row < rows->row->len);
    return row_at(&g_array_index(rows->row, BalanceRow, row),
                  (const BalanceEntry *)(const void *)rows->entry->data, x);
}

static double flat_at(const BalanceFlat *flat, const BalancePiece *piece, const double *x,
                      uint32_t *row)
{
    double largest = -INFINITY;
    uint32_t at = 0;
    for (uint32_t i = 0; i < piece->n; i++) {
        double value = flat[i].base + flat[i].value * x[flat[i].column];
        at = value > largest ? i : at;
        largest = value > largest ? value : largest;
    }
    *row = piece->first + at;
    return largest;
}

double balance_piece_at(const BalanceRows *rows, uint32_t piece, const double *x,
                        uint32_t *row)
{
    KILTER_ASSERT(piece < rows->piece->len);
    const BalancePiece *p = &g_array_index(rows->piece, BalancePiece, piece);
    if (p->flat)
        return flat_at(&rows->flat[p->first], p, x, row);
    const BalanceRow *all = (const BalanceRow *)(const void *)rows->row->data;
    const BalanceEntry *entry = (const BalanceEntry *)(const void *)rows->entry->data;
    double largest = -INFINITY;
    for (uint32_t r = p->first; r < p->first + p->n; r++) {
        double value = row_at(&all[r], entry, x);
        if (value > largest) {
            largest = value;
            *row = r;
        }
    }
    return largest;
}
