/* A lower bound on the joint optimum of program and ratios: min over Q and B of t(Q, B), of those that fit the memory.
 *
 * Branch and bound on boxes of ratios. Equal devices have equal ratios (for a fixed program t is convex in B and symmetric
 * in them, so averaging never hurts): a box is an interval a kind of device. synth_bound() bounds every program at
 * every ratio in a box; the smallest bound over boxes that cover everything is the certificate. The box with the
 * smallest bound is halved along the kind whose shares vary most, until the gap to the plan is small enough.
 *
 * Memory is a constraint with multipliers (Lagrange), of a kind of device at a point: for any of them >= 0
 *
 *     min t over plans that fit  >=  min over Q, B of  t + sum_j lambda_j (bytes_j - memory_j)
 *
 * The box of all ratios has the best that are alike for all devices; a part of it starts from its parent's and takes a
 * subgradient step (B. T. Polyak, "Minimization of unsmooth functionals", 1969).
 *
 * Boxes also show where better ratios are: now and then hap starts from the middle of the least box. */
#include "experiments/planners/make.h"
#include "synth/synth.h"

#include <math.h>
#include <string.h>

enum { MAX_KINDS = 8 };

typedef struct {
    double lo[MAX_KINDS], hi[MAX_KINDS];
    double bound_s;
    double charge[SYNTH_POINTS]
                 [MAX_KINDS]; /* multipliers: seconds a byte on one device */
    double excess[SYNTH_POINTS]
                 [MAX_KINDS]; /* subgradient: bytes that lack on one device */
} Box;

typedef struct {
    const Graph *graph;
    const ClusterView *view;
    const PlannerOptions *options;
    Plan *plan;
    double upper_s; /* of the plan, before rounding */
    bool tight;     /* memory may matter */
    uint32_t n_kinds;
    uint32_t kind_of[65536 / 64]; /* by device; larger views are not certified */
    uint32_t members[MAX_KINDS];
    GArray *boxes; /* Box */
} Certifier;

static bool find_kinds(Certifier *c)
{
    const Device *first[MAX_KINDS];
    if (c->view->n_devices > G_N_ELEMENTS(c->kind_of))
        return false;
    for (uint32_t j = 0; j < c->view->n_devices; j++) {
        uint32_t k = 0;
        while (k < c->n_kinds && device_compare(first[k], &c->view->device[j]) != 0)
            k++;
        if (k == MAX_KINDS)
            return false;
        if (k == c->n_kinds)
            first[c->n_kinds++] = &c->view->device[j];
        c->kind_of[j] = k;
        c->members[k]++;
    }
    return true;
}

/* Cuts off what cannot sum to 1; false if nothing is left. */
static bool tighten(const Certifier *c, Box *box)
{
    double lo = 0, hi = 0;
    for (uint32_t k = 0; k < c->n_kinds; k++) {
        lo += c->members[k] * box->lo[k];
        hi += c->members[k] * box->hi[k];
    }
    if (lo > 1 + 1e-12 || hi < 1 - 1e-12)
        return false;
    for (uint32_t k = 0; k < c->n_kinds; k++) {
        double n = c->members[k];
        double low = box->lo[k], high = box->hi[k];
        box->lo[k] = fmax(low, (1 - (hi - n * high)) / n);
        box->hi[k] = fmin(high, (1 - (lo - n * low)) / n);
    }
    return true;
}

/* One value a kind, for each device. Caller frees. */
static double *spread(const Certifier *c, const double *kind)
{
    double *device = g_new(double, c->view->n_devices);
    for (uint32_t j = 0; j < c->view->n_devices; j++)
        device[j] = fmax(0, kind[c->kind_of[j]]);
    return device;
}

static double *spread_charge(const Certifier *c, const Box *box)
{
    uint32_t n = c->view->n_devices;
    double *charge = g_new(double, SYNTH_POINTS *n);
    for (uint32_t p = 0; p < SYNTH_POINTS; p++)
        for (uint32_t j = 0; j < n; j++)
            charge[p * n + j] = box->charge[p][c->kind_of[j]];
    return charge;
}

/* What the program of a bound has too much of at the ratios in the box that are next to the plan's. */
static void find_excess(const Certifier *c, const SynthBound *bound, Box *box)
{
    for (uint32_t j = 0; j < c->view->n_devices; j++) {
        const Device *device = &c->view->device[j];
        uint32_t k = c->kind_of[j];
        double share = fmin(fmax(c->plan->ratio[j], box->lo[k]), box->hi[k]);
        for (uint32_t p = 0; p < SYNTH_POINTS; p++) {
            const SynthBytes *b = &bound->bytes[p];
            box->excess[p][k] = b->held + b->held_sharded * share +
                                (b->divided + b->divided_sharded * share) / device->gpus -
                                (double)device->memory_bytes;
        }
    }
}

/* Sets the bound of a box under its multipliers, and its excess. */
static bool bound_box(const Certifier *c, Box *box, GError **error)
{
    g_autofree double *lo = spread(c, box->lo), *hi = spread(c, box->hi);
    g_autofree double *charge = c->tight ? spread_charge(c, box) : NULL;
    SynthBox ratios = {.lo = lo,
                       .hi = hi,
                       .upper_s = c->upper_s,
                       .memory_s = charge,
                       .deadline_us = c->options->deadline_us};
    g_auto(SynthBound) bound = {0};
    if (!synth_bound(c->options->space, c->view, &ratios, &bound, error))
        return false;
    box->bound_s = bound.bound_s;
    find_excess(c, &bound, box);
    return true;
}

static bool is_closed(const Certifier *c, double bound_s)
{
    return c->upper_s <= bound_s * (1 + c->options->certify);
}

/* The multipliers `part` of a Polyak step further; false if there is nowhere to go. */
static bool step_charge(const Certifier *c, const Box *from, double part, Box *to)
{
    double norm = 0;
    for (uint32_t p = 0; p < SYNTH_POINTS; p++)
        for (uint32_t k = 0; k < c->n_kinds; k++)
            if (from->charge[p][k] > 0 || from->excess[p][k] > 0)
                norm += pow(c->members[k] * from->excess[p][k], 2);
    *to = *from;
    for (uint32_t p = 0; norm > 0 && p < SYNTH_POINTS; p++)
        for (uint32_t k = 0; k < c->n_kinds; k++)
            to->charge[p][k] =
                fmax(0, from->charge[p][k] + part * (c->upper_s - from->bound_s) / norm *
                                                 c->members[k] * from->excess[p][k]);
    return memcmp(to->charge, from->charge, sizeof to->charge) != 0;
}

/* Raises the bound of a box by one step of its multipliers, if that is upwards. */
static bool climb(const Certifier *c, Box *box, GError **error)
{
    Box next;
    if (is_closed(c, box->bound_s) || planner_is_late(c->options) ||
        !step_charge(c, box, 1, &next))
        return true;
    if (!bound_box(c, &next, error))
        return false;
    if (next.bound_s > box->bound_s)
        *box = next;
    return true;
}

/* Change of the bound as all devices' multipliers at a point grow alike. */
static double slope(const Certifier *c, const Box *box, uint32_t point)
{
    double sum = 0;
    for (uint32_t k = 0; k < c->n_kinds; k++)
        sum += c->members[k] * box->excess[point][k];
    return sum;
}

/* The best common multiplier at a point, for the box of all ratios, where nothing tells devices apart. The bound is concave
 * in it: the next one to try is where the tangents on both sides of the top meet. */
static bool find_charge(const Certifier *c, Box *box, uint32_t point, GError **error)
{
    enum { STEPS = 6 };
    static const double enough =
        1.002; /* times the bound: what a further step may still gain */
    Box low = *box, high = *box;
    bool bracketed = false;
    for (uint32_t i = 0; i < STEPS && slope(c, &low, point) > 0 &&
                         !is_closed(c, box->bound_s) && !planner_is_late(c->options);
         i++) {
        double rise = slope(c, &low, point), fall = slope(c, &high, point);
        double from = low.charge[point][0], ahead = (c->upper_s - low.bound_s) / rise;
        if (bracketed)
            ahead = (high.bound_s - low.bound_s - fall * (high.charge[point][0] - from)) /
                    (rise - fall);
        if (low.bound_s + rise * ahead <= box->bound_s * enough)
            break;
        Box next = low;
        for (uint32_t k = 0; k < c->n_kinds; k++)
            next.charge[point][k] = from + ahead;
        if (!bound_box(c, &next, error))
            return false;
        bool past = slope(c, &next, point) <= 0;
        *(past ? &high : &low) = next;
        bracketed |= past;
        if (next.bound_s > box->bound_s)
            *box = next;
    }
    return true;
}

/* Bounds a box and keeps it, if anything is left of it. */
static bool add_box(Certifier *c, Box box, GError **error)
{
    if (!tighten(c, &box))
        return true;
    double parent_s = box.bound_s;
    if (!bound_box(c, &box, error) || (c->tight && !climb(c, &box, error)))
        return false;
    box.bound_s = fmax(box.bound_s, parent_s);
    g_array_append_val(c->boxes, box);
    return true;
}

static uint32_t least_box(const Certifier *c)
{
    uint32_t least = 0;
    for (uint32_t i = 1; i < c->boxes->len; i++)
        if (g_array_index(c->boxes, Box, i).bound_s <
            g_array_index(c->boxes, Box, least).bound_s)
            least = i;
    return least;
}

static bool split(Certifier *c, uint32_t index, GError **error)
{
    Box box = g_array_index(c->boxes, Box, index);
    g_array_remove_index_fast(c->boxes, index);
    uint32_t widest = 0;
    double width = 0;
    for (uint32_t k = 0; k < c->n_kinds; k++)
        if (c->members[k] * (box.hi[k] - box.lo[k]) > width) {
            width = c->members[k] * (box.hi[k] - box.lo[k]);
            widest = k;
        }
    Box low = box, high = box;
    low.hi[widest] = high.lo[widest] = (box.lo[widest] + box.hi[widest]) / 2;
    return add_box(c, low, error) && add_box(c, high, error);
}

static double least_bound(const Certifier *c)
{
    return g_array_index(c->boxes, Box, least_box(c)).bound_s;
}

/* A plan from the middle of a box, if it is better. */
static bool improve(Certifier *c, const Box *box, GError **error)
{
    double middle[MAX_KINDS], sum = 0;
    for (uint32_t k = 0; k < c->n_kinds; k++) {
        middle[k] = (fmax(0, box->lo[k]) + box->hi[k]) / 2;
        sum += c->members[k] * middle[k];
    }
    for (uint32_t k = 0; k < c->n_kinds; k++)
        middle[k] /= sum;
    g_autofree double *ratio = spread(c, middle);
    g_autofree double *charge = c->tight ? spread_charge(c, box) : NULL;
    if (!plan_improve(c->plan, c->graph, c->view, c->options, ratio, charge, error))
        return false;
    c->upper_s = fmin(c->upper_s, c->plan->fractional_time_s);
    return true;
}

/* Halves boxes until the gap is small enough, or says why it is not. */
static bool close_gap(Certifier *c, GError **error)
{
    enum { MAX_BOXES = 400 };
    for (uint32_t n = 1;; n += 2) {
        double bound_s = least_bound(c);
        c->plan->certificate = is_closed(c, bound_s)         ? CERTIFICATE_REACHED
                               : planner_is_late(c->options) ? CERTIFICATE_BUDGET
                               : c->options->segments        ? CERTIFICATE_SEGMENTS
                               : n + 2 > MAX_BOXES           ? CERTIFICATE_BOXES
                                                             : CERTIFICATE_NONE;
        if (c->plan->certificate != CERTIFICATE_NONE)
            return true;
        uint32_t least = least_box(c);
        bool look = (n & (n + 1)) == 0; /* ever more rarely: 1, 3, 7, 15, ... boxes */
        if ((look && !improve(c, &g_array_index(c->boxes, Box, least), error)) ||
            !split(c, least, error))
            return false;
    }
}

/* Memory may matter where the plan needs a good part of it. */
static bool is_tight(const Plan *plan, const ClusterView *view)
{
    for (uint32_t j = 0; j < view->n_devices; j++)
        if ((double)plan->memory_bytes[j] > 0.5 * (double)view->device[j].memory_bytes)
            return true;
    return false;
}

/* NULL, with the reason in plan->certificate, where nothing is proved. */
static Certifier *certifier_new(Plan *plan, const Graph *graph, const ClusterView *view,
                                const PlannerOptions *options)
{
    g_autofree Certifier *c = g_new0(Certifier, 1);
    c->graph = graph;
    c->view = view;
    c->options = options;
    c->plan = plan;
    c->upper_s = plan->fractional_time_s;
    c->tight = is_tight(plan, view);
    bool kinds = find_kinds(c);
    if (plan->bucket_bytes > 0 || !kinds) {
        plan->certificate = kinds ? CERTIFICATE_BUCKETS : CERTIFICATE_KINDS;
        return NULL;
    }
    c->boxes = g_array_new(FALSE, FALSE, sizeof(Box));
    return g_steal_pointer(&c);
}

static void certifier_free(Certifier *c)
{
    g_array_free(c->boxes, TRUE);
    g_free(c);
}

/* Begins with the box of all ratios. */
static bool add_all(Certifier *c, GError **error)
{
    Box all = {0};
    for (uint32_t k = 0; k < c->n_kinds; k++)
        all.hi[k] = 1.0 / c->members[k];
    if (!bound_box(c, &all, error))
        return false;
    for (uint32_t p = 0; c->tight && p < SYNTH_POINTS; p++)
        if (!find_charge(c, &all, p, error))
            return false;
    g_array_append_val(c->boxes, all);
    return true;
}

bool plan_bound(Plan *plan, const Graph *graph, const ClusterView *view,
                const PlannerOptions *options, GError **error)
{
    Certifier *c = certifier_new(plan, graph, view, options);
    plan->certificate = CERTIFICATE_NONE; /* none was asked for */
    if (!c)
        return true;
    c->tight = false;
    bool done = add_all(c, error);
    if (done)
        plan->lower_bound_s = least_bound(c);
    certifier_free(c);
    return done;
}

bool plan_certify(Plan *plan, const Graph *graph, const ClusterView *view,
                  const PlannerOptions *options, GError **error)
{
    Certifier *c = certifier_new(plan, graph, view, options);
    if (!c)
        return true;
    bool done = add_all(c, error) && close_gap(c, error);
    if (done)
        plan->lower_bound_s = least_bound(c);
    if (done && plan->certificate == CERTIFICATE_REACHED &&
        plan->iteration_time_s > plan->lower_bound_s * (1 + options->certify))
        plan->certificate = CERTIFICATE_ROUNDING;
    certifier_free(c);
    return done;
}
