/* A proof that no program of the space fits the memory, whatever the ratios: the search, with
 * memory as its only cost, finds the least bytes that some devices must hold together, and these
 * are more than the devices have. */
#include "data/base/units.h"
#include "synth/answer/ratios.h"
#include "synth/hap/make.h"
#include "synth/hap/search.h"

#include <float.h>
#include <math.h>

typedef struct {
    uint32_t first, n; /* the first device of the group, and their number */
    SynthPoint point;
    double missing; /* bytes missing per GPU, averaged over the group */
} Lack;

/* The cluster where nothing takes time, or next to nothing. */
static ClusterView timeless(const ClusterView *view, Device *device)
{
    /* Not infinite: speeds are summed and multiplied by shares and sizes, and neither result may
     * overflow. */
    const double at_once = sqrt(DBL_MAX);
    ClusterView copy = *view;
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
        copy.collective[kind] = (LinkCost){.latency_s = 0, .bandwidth = at_once};
    for (uint32_t j = 0; j < view->n_devices; j++) {
        device[j] = view->device[j];
        device[j].rate = at_once;
        device[j].inner = (LinkCost){.latency_s = 0, .bandwidth = at_once};
    }
    copy.device = device;
    return copy;
}

/* The bytes that the devices of a kind, or after the last kind all devices, lack at least at some
 * point. view: the timeless one. */
static bool find_lack(const Question *question, const Answer *answer,
                      const ClusterView *view, const DeviceKinds *kinds, uint32_t kind,
                      Lack *lack, GError **error)
{
    uint32_t n = view->n_devices;
    g_autofree double *pinned = ratios_pinned(question->view, question->options);
    g_autofree double *lo = g_new0(double, n), *hi = g_new(double, n),
                      *weight = g_new0(double, SYNTH_POINTS *n);
    double memory = 0;
    lack->first = kind < kinds->n ? kinds->first[kind] : 0;
    lack->n = 0;
    for (uint32_t j = 0; j < n; j++) {
        lo[j] = pinned ? pinned[j] : 0;
        hi[j] = pinned ? pinned[j] : 1;
        if (kind < kinds->n && kinds->of[j] != kind)
            continue;
        weight[lack->point * n + j] = 1;
        memory += (double)view->device[j].memory_bytes;
        lack->n++;
    }
    /* Seconds stand for bytes here. The search may stop at far more bytes than the devices have,
     * since the answer is clear then. */
    enum { ENOUGH = 16 };
    SynthBox box = {.lo = lo,
                    .hi = hi,
                    .upper_s = ENOUGH * memory,
                    .memory_s = weight,
                    .deadline_us = answer->deadline_us};
    g_auto(SynthBound) bound = {0};
    if (!synth_bound(answer->space, view, &box, &bound, error))
        return false;
    lack->missing = bound.bound_s / lack->n;
    return true;
}

static char *describe(const ClusterView *view, const Lack *lack)
{
    const Device *device = &view->device[lack->first];
    g_autofree char *missing = units_format(lack->missing, QUANTITY_BYTES);
    g_autofree char *who =
        lack->n == view->n_devices && lack->n > 1
            ? g_strdup_printf("a GPU of the %u devices", lack->n)
            : g_strdup_printf("a GPU of device %s (%s, %u of this kind)", device->name,
                              device->type_name, lack->n);
    return g_strdup_printf("%s lacks at least %.0f bytes (%s) at the end of the %s, "
                           "whatever the program and ratios",
                           who, lack->missing, missing,
                           lack->point == SYNTH_POINT_FORWARD ? "forward" : "backward");
}

bool hap_disprove(const Question *question, Answer *answer, GError **error)
{
    const ClusterView *view = question->view;
    if (answer->proof_tried)
        return true;
    answer->proof_tried = true;
    g_autofree Device *device = g_new(Device, view->n_devices);
    ClusterView free_view = timeless(view, device);
    Lack worst = {0};
    g_auto(DeviceKinds) kinds = {0};
    device_kinds(view, UINT32_MAX, &kinds);
    const uint32_t n_groups = kinds.n > 1 ? kinds.n + 1 : 1; /* one kind is all devices */
    for (SynthPoint point = 0; point < SYNTH_POINTS && worst.missing < 1; point++)
        for (uint32_t kind = 0; kind < n_groups; kind++) {
            Lack lack = {.point = point};
            if (!find_lack(question, answer, &free_view, &kinds, kind, &lack, error))
                return false;
            if (lack.missing > worst.missing)
                worst = lack;
        }
    /* A lack of less than a byte may be a rounding error. */
    answer->misfit = worst.missing >= 1 ? describe(view, &worst) : NULL;
    return true;
}
