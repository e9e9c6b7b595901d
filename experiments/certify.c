/* A lower bound on the joint optimum of program and ratios: min over Q and B of t(Q, B).
 *
 * Branch and bound on boxes of ratios. Equal devices have equal ratios (for a fixed program t is convex in B and symmetric
 * in them, so averaging never hurts): a box is an interval a kind of device. synth_bound() bounds every program at
 * every ratio in a box; the smallest bound over boxes that cover everything is the certificate. The box with the
 * smallest bound is halved along the kind whose shares vary most, until the gap to the plan is small enough. */
#include "experiments/planner_make.h"
#include "synth/synth.h"

#include <math.h>
#include <string.h>

enum { MAX_KINDS = 8 };

typedef struct {
    double lo[MAX_KINDS], hi[MAX_KINDS];
    double bound_s;
} Box;

typedef struct {
    const Graph *graph;
    const ClusterView *view;
    const PlannerOptions *options;
    double upper_s; /* of the plan, before rounding */
    uint32_t n_kinds;
    uint32_t kind_of[65536 / 64]; /* by device; larger views are not certified */
    uint32_t members[MAX_KINDS];
    GArray *boxes; /* Box */
} Certifier;

static bool same_kind(const Device *a, const Device *b)
{
    return a->rate == b->rate && a->fitted == b->fitted && a->stretch == b->stretch &&
           a->gpus == b->gpus && a->memory_bytes == b->memory_bytes &&
           a->inner.bandwidth == b->inner.bandwidth &&
           a->inner.latency_s == b->inner.latency_s;
}

static bool find_kinds(Certifier *c)
{
    const Device *first[MAX_KINDS];
    if (c->view->n_devices > G_N_ELEMENTS(c->kind_of))
        return false;
    for (uint32_t j = 0; j < c->view->n_devices; j++) {
        uint32_t k = 0;
        while (k < c->n_kinds && !same_kind(first[k], &c->view->device[j]))
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

/* Bounds a box and keeps it, if anything is left of it. */
static bool add_box(Certifier *c, Box box, GError **error)
{
    if (!tighten(c, &box))
        return true;
    g_autofree double *lo = g_new(double, c->view->n_devices),
                      *hi = g_new(double, c->view->n_devices);
    for (uint32_t j = 0; j < c->view->n_devices; j++) {
        lo[j] = fmax(0, box.lo[c->kind_of[j]]);
        hi[j] = box.hi[c->kind_of[j]];
    }
    double parent_s = box.bound_s;
    SynthBox space = {.lo = lo,
                      .hi = hi,
                      .upper_s = c->upper_s,
                      .pins = c->options->held,
                      .deadline_us = c->options->deadline_us};
    if (!synth_bound(c->graph, c->view, &space, &box.bound_s, error))
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

/* Halves boxes until the gap is small enough, or says why it is not. */
static bool close_gap(Certifier *c, Certificate *certificate, GError **error)
{
    enum { MAX_BOXES = 400 };
    double gap = c->options->certify;
    for (uint32_t n = 1;; n += 2) {
        double bound_s = least_bound(c);
        *certificate = c->upper_s <= bound_s * (1 + gap) ? CERTIFICATE_REACHED
                       : planner_is_late(c->options)     ? CERTIFICATE_BUDGET
                       : n + 2 > MAX_BOXES               ? CERTIFICATE_BOXES
                                                         : CERTIFICATE_NONE;
        if (*certificate != CERTIFICATE_NONE)
            return true;
        if (!split(c, least_box(c), error))
            return false;
    }
}

/* Begins with the box of all ratios; NULL, with the reason in *certificate, where nothing is proved. */
static Certifier *certifier_new(const Plan *plan, const Graph *graph,
                                const ClusterView *view, const PlannerOptions *options,
                                Certificate *certificate)
{
    g_autofree Certifier *c = g_new0(Certifier, 1);
    c->graph = graph;
    c->view = view;
    c->options = options;
    c->upper_s = plan->fractional_time_s;
    *certificate = plan->bucket_bytes > 0 ? CERTIFICATE_BUCKETS
                   : !find_kinds(c)       ? CERTIFICATE_KINDS
                                          : CERTIFICATE_NONE;
    if (*certificate != CERTIFICATE_NONE)
        return NULL;
    c->boxes = g_array_new(FALSE, FALSE, sizeof(Box));
    return g_steal_pointer(&c);
}

static void certifier_free(Certifier *c)
{
    g_array_free(c->boxes, TRUE);
    g_free(c);
}

static bool add_all(Certifier *c, GError **error)
{
    Box all = {0};
    for (uint32_t k = 0; k < c->n_kinds; k++)
        all.hi[k] = 1.0 / c->members[k];
    return add_box(c, all, error);
}

bool plan_bound(Plan *plan, const Graph *graph, const ClusterView *view,
                const PlannerOptions *options, GError **error)
{
    Certificate certificate;
    Certifier *c = certifier_new(plan, graph, view, options, &certificate);
    if (!c)
        return true;
    bool done = add_all(c, error);
    if (done)
        plan->lower_bound_s = least_bound(c);
    certifier_free(c);
    return done;
}

bool plan_certify(Plan *plan, const Graph *graph, const ClusterView *view,
                  const PlannerOptions *options, GError **error)
{
    Certifier *c = certifier_new(plan, graph, view, options, &plan->certificate);
    if (!c)
        return true;
    bool done = add_all(c, error) && close_gap(c, &plan->certificate, error);
    if (done)
        plan->lower_bound_s = least_bound(c);
    if (done && plan->certificate == CERTIFICATE_REACHED &&
        plan->iteration_time_s > plan->lower_bound_s * (1 + options->certify))
        plan->certificate = CERTIFICATE_ROUNDING;
    certifier_free(c);
    return done;
}
