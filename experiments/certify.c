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
    double upper_s; /* of the plan */
    uint32_t n_kinds;
    uint32_t kind_of[65536 / 64]; /* by device; larger views are not certified */
    uint32_t members[MAX_KINDS];
    GArray *boxes; /* Box */
} Certificate;

static bool same_kind(const Device *a, const Device *b)
{
    return a->rate == b->rate && a->gpus == b->gpus &&
           a->memory_bytes == b->memory_bytes &&
           a->inner.bandwidth == b->inner.bandwidth &&
           a->inner.latency_s == b->inner.latency_s;
}

static bool find_kinds(Certificate *c)
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
static bool tighten(const Certificate *c, Box *box)
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
static bool add_box(Certificate *c, Box box, GError **error)
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
    if (!synth_bound(c->graph, c->view, lo, hi, c->upper_s, &box.bound_s, error))
        return false;
    box.bound_s = fmax(box.bound_s, parent_s);
    g_array_append_val(c->boxes, box);
    return true;
}

static uint32_t least_box(const Certificate *c)
{
    uint32_t least = 0;
    for (uint32_t i = 1; i < c->boxes->len; i++)
        if (g_array_index(c->boxes, Box, i).bound_s <
            g_array_index(c->boxes, Box, least).bound_s)
            least = i;
    return least;
}

static bool split(Certificate *c, uint32_t index, GError **error)
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

static bool certify(Certificate *c, double gap, uint32_t max_boxes, double *bound_s,
                    GError **error)
{
    Box all = {0};
    for (uint32_t k = 0; k < c->n_kinds; k++)
        all.hi[k] = 1.0 / c->members[k];
    if (!add_box(c, all, error))
        return false;
    for (uint32_t n = 1;; n += 2) {
        uint32_t least = least_box(c);
        *bound_s = g_array_index(c->boxes, Box, least).bound_s;
        if (c->upper_s <= *bound_s * (1 + gap) || n + 2 > max_boxes)
            return true;
        if (!split(c, least, error))
            return false;
    }
}

bool plan_certify(Plan *plan, const Graph *graph, const ClusterView *view, double gap,
                  uint32_t max_boxes, GError **error)
{
    g_autofree Certificate *c = g_new0(Certificate, 1);
    c->graph = graph;
    c->view = view;
    c->upper_s = plan->iteration_time_s;
    if (plan->bucket_bytes > 0 || !find_kinds(c))
        return true; /* nothing is proved */
    c->boxes = g_array_new(FALSE, FALSE, sizeof(Box));
    bool done = certify(c, gap, max_boxes, &plan->lower_bound_s, error);
    g_array_free(c->boxes, TRUE);
    return done;
}
