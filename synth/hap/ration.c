/* Multipliers that limit the memory of programs. */
#include "synth/hap/ration.h"

#include <string.h>

/* The bound at one value of a multiplier, with the others fixed, and its slope there. */
typedef struct {
    double charge, bound_s, slope;
    SynthBytes bytes[SYNTH_POINTS]; /* of the program that attains the bound */
} Tangent;

typedef struct {
    SynthSpace *space;
    const ClusterView *view;
    const SynthBox *at;
    double *memory_s;
    SynthPoint point;
} Climb;

static void set_charge(const Climb *c, double charge)
{
    for (uint32_t j = 0; j < c->view->n_devices; j++)
        c->memory_s[c->point * c->view->n_devices + j] = charge;
}

/* Bytes by which the program of a bound exceeds the memory, over all devices. */
static double excess(const Climb *c, const SynthBytes *b)
{
    double sum = 0;
    items_at (const Device, device, j, c->view->device, c->view->n_devices) {
        double share = c->at->lo[j];
        sum += b->held + b->held_sharded * share +
               (b->divided + b->divided_sharded * share) / device->gpus -
               (double)device->memory_bytes;
    }
    return sum;
}

static bool find_tangent(const Climb *c, double charge, Tangent *at, GError **error)
{
    static const double tolerance = 1e-3; /* the charge itself is not better known */
    SynthBox box = {.lo = c->at->lo,
                    .hi = c->at->hi,
                    .upper_s = c->at->upper_s,
                    .memory_s = c->memory_s,
                    .tolerance = tolerance,
                    .deadline_us = c->at->deadline_us};
    g_auto(SynthBound) bound = {0};
    set_charge(c, charge);
    if (!synth_bound(c->space, c->view, &box, &bound, error))
        return false;
    *at = (Tangent){
        charge, bound.bound_s, excess(c, &bound.bytes[c->point]), {{0, 0, 0, 0}}};
    memcpy(at->bytes, bound.bytes, sizeof at->bytes);
    return true;
}

/* The bound is concave in the multiplier: the next one to try is where the tangents on both sides
 * of the top meet. best: the tangent at no charge for the point; out, the best one. */
static bool ration_climb(const Climb *c, Tangent *best, GError **error)
{
    enum { STEPS = 6 }; /* each is a search of its own */
    static const double enough =
        1.0005; /* factor on the bound: a further step must be able to gain this much */
    Tangent low = *best, high = {0};
    low.charge = 0;
    low.slope = excess(c, &low.bytes[c->point]);
    for (uint32_t i = 0; i < STEPS && low.slope > 0 && best->bound_s < c->at->upper_s;
         i++) {
        double ahead = (c->at->upper_s - low.bound_s) / low.slope;
        if (high.charge > 0)
            ahead =
                (high.bound_s - low.bound_s - high.slope * (high.charge - low.charge)) /
                (low.slope - high.slope);
        if (low.bound_s + low.slope * ahead <= best->bound_s * enough)
            break;
        Tangent next;
        if (!find_tangent(c, low.charge + ahead, &next, error))
            return false;
        *(next.slope > 0 ? &low : &high) = next;
        if (next.bound_s > best->bound_s)
            *best = next;
    }
    set_charge(c, best->charge);
    return true;
}

bool ration_multipliers(SynthSpace *space, const ClusterView *view, const SynthBox *at,
                        double *memory_s, GError **error)
{
    Climb c = {space, view, at, memory_s, 0};
    for (uint32_t i = 0; i < SYNTH_POINTS * view->n_devices; i++)
        memory_s[i] = 0;
    Tangent best;
    if (!find_tangent(&c, 0, &best, error))
        return false;
    for (; c.point < SYNTH_POINTS; best.charge = 0, c.point++)
        if (!ration_climb(&c, &best, error))
            return false;
    return true;
}
