/* The places in a cluster that measurements are fitted for. */
#include "experiments/calibration/place.h"

#include <math.h>
#include <string.h>

#include "data/base/names.h"
#include "data/base/text.h"
#include "data/measured/measurement.h"

NAMES_LIST(place_name, Place, PLACE_SEND + 1, "not used", "op", "between machines",
           "inside machines", "transfers between machines")

/* No host has more GPUs: a machine with more is a domain of several hosts. */
enum { HOST_MOST_GPUS = 16 };

typedef struct {
    const GArray *measurements;
    const Cluster *cluster;
    const Sheets *sheets;
    uint32_t gpus, most_gpus; /* GPUs of the cluster; most of a machine or a domain */
    uint32_t units;           /* machines, and domains of them */
    bool domains;
    Placing *placing;
} Work;

static const Measurement *row(const Work *work, uint32_t i)
{
    return &g_array_index(work->measurements, Measurement, i);
}

/* Whether a log names unlike GPUs, as "T4 + V100". */
static bool is_unlike(const char *device)
{
    return strstr(device, " + ") != NULL;
}

/* The cluster's device type that has this name, or whose data sheet has this product name, or its
 * only type where no sheet has the name; UINT32_MAX if there is none. */
static uint32_t type_of(const Work *work, const char *device)
{
    const DeviceSheet *sheet = sheets_find_product(work->sheets, device);
    for (uint32_t t = 0; t < work->cluster->n_types; t++) {
        const char *name = work->cluster->type[t].name;
        if (strcmp(name, device) == 0 || (sheet && strcmp(name, sheet->name) == 0))
            return t;
    }
    return !sheet && !is_unlike(device) && work->cluster->n_types == 1 ? 0 : UINT32_MAX;
}

static Placing none(const char *format, ...) G_GNUC_PRINTF(1, 2);
static Placing none(const char *format, ...)
{
    TEXT_OF_ARGUMENTS(text, format);
    return (Placing){.place = PLACE_NONE, .reason = g_intern_string(text)};
}

/* Why times inside machines with these GPUs say nothing of the cluster's: by the sheets their links
 * are others; NULL: they may be the same. */
static const char *other_links(const Work *work, const Measurement *m)
{
    const DeviceSheet *sheet = sheets_find_product(work->sheets, m->device);
    const DeviceSheet *own = NULL;
    bool equal = is_unlike(m->device);
    for (uint32_t i = 0; equal && i < work->cluster->n_machines; i++)
        equal = work->cluster->machine[i].n_parts == 0;
    if (equal)
        return none("unlike GPUs in a machine, and the cluster's have equal ones").reason;
    for (uint32_t t = 0; sheet && t < work->cluster->n_types; t++) {
        own = sheets_device(work->sheets, work->cluster->type[t].name, NULL);
        if (!own || strcmp(own->link[0].name, sheet->link[0].name) == 0)
            return NULL;
    }
    return own ? none("of %s with %s, and the cluster's %s have %s", sheet->name,
                      sheet->link[0].name, own->name, own->link[0].name)
                     .reason
               : NULL;
}

/* The number of machines of the ranks; 0 if neither the file nor the cluster says. */
static uint32_t hosts_of(const Work *work, const Measurement *m)
{
    const uint32_t machines = work->cluster->n_machines;
    if (m->hosts > 0)
        return m->hosts;
    if (machines > 1 && (m->ranks == machines || m->ranks == work->gpus))
        return machines;
    return m->ranks <= work->most_gpus ? 1 : 0;
}

/* Measured times are not shorter than the links let them be: their sustained bandwidths are half of
 * the peaks at least, those of ports four fifths. */
static const double INNER_PEAK = 2, PORT_PEAK = 1.25;

/* Why a collective is faster than its links; NULL: it is not. */
static const char *too_fast(const Work *work, const Measurement *m,
                            const Placing *placing)
{
    const Cluster *cluster = work->cluster;
    const bool inside = placing->place == PLACE_INNER;
    const uint32_t hosts = inside ? 1 : m->ranks / MAX(placing->a_host, 1);
    double limit = 0, sent = m->bytes; /* by each link at least */
    if (m->send)
        sent = m->bytes;
    else if (m->collective == COLLECTIVE_ALL_TO_ALL)
        sent *= curve_wire(m->collective, (CurvePlace){NULL, m->ranks, hosts}, 0, 0);
    else
        sent *= inside ? (m->ranks - 1.0) / m->ranks : (hosts - 1.0) / hosts;
    items_each (const Machine, machine, cluster->machine, cluster->n_machines) {
        if (inside && isfinite(machine->inner.bandwidth))
            limit =
                fmax(limit, INNER_PEAK * fmax(machine->inner.bandwidth,
                                              machine->peer.bandwidth * PEERS_MAX_LINKS));
        if (!inside && machine->port.bandwidth > 0)
            limit = fmax(limit, PORT_PEAK * machine->port.bandwidth);
    }
    return limit > 0 && sent / m->median_s > limit
               ? none("faster than its links: %.3g GB/s, and they have at most %.3g",
                      sent / m->median_s / 1e9, limit / 1e9)
                     .reason
               : NULL;
}

static Placing find_place(const Work *work, const Measurement *m)
{
    const Cluster *cluster = work->cluster;
    const uint32_t hosts = hosts_of(work, m);
    if (m->op < OP_KINDS)
        return (Placing){.place = PLACE_OP};
    if (m->ranks == 1)
        return none("one rank alone sends nothing");
    /* With one GPU per machine, ranks on one host stand for machines. */
    const bool alone = work->most_gpus == 1;
    const bool in_domain = hosts > 1 && m->ranks <= work->most_gpus &&
                           (work->domains || work->most_gpus > HOST_MOST_GPUS);
    if (in_domain)
        return (Placing){.place = PLACE_INNER, .type = type_of(work, m->device)};
    if (hosts == 1 &&
        !(alone && cluster->n_machines > 1 && m->ranks == cluster->n_machines)) {
        if (m->ranks > work->most_gpus)
            return none("%u ranks on one machine, and the cluster's have %u GPUs",
                        m->ranks, work->most_gpus);
        return (Placing){.place = PLACE_INNER, .type = type_of(work, m->device)};
    }
    if (work->units == 1)
        return none("%u ranks on several machines, and the cluster has one", m->ranks);
    const uint32_t a_host = hosts > 1 ? MAX(m->ranks / hosts, 1) : 1;
    return (Placing){.place = m->send ? PLACE_SEND : PLACE_BETWEEN, .a_host = a_host};
}

static Placing place_of(const Work *work, const Measurement *m)
{
    const Placing placing = find_place(work, m);
    const char *reason = placing.place == PLACE_INNER ? other_links(work, m) : NULL;
    if (!reason && placing.place > PLACE_OP && work->cluster->wired)
        reason = too_fast(work, m, &placing);
    return reason ? (Placing){.place = PLACE_NONE, .reason = reason} : placing;
}

/* How much the ranks differ from the cluster; smaller is better. */
static double distance(const Work *work, uint32_t i)
{
    const Measurement *m = row(work, i);
    const Placing *placing = &work->placing[i];
    const double all = 1e-3, least = 1e-6;
    if (placing->place == PLACE_INNER)
        return (work->most_gpus - m->ranks) + (m->send ? 0.5 : 0);
    const double hosts = (double)m->ranks / placing->a_host;
    const double off = fabs(log(hosts / work->units));
    if (off > 0)
        return off - least * m->ranks;
    return placing->a_host == 1 ? 0 : placing->a_host == work->most_gpus ? all / 2 : all;
}

/* Whether two rows are fitted together, provided that their ranks are the same. */
static bool same_fit(const Work *work, uint32_t i, uint32_t j)
{
    const Placing *a = &work->placing[i], *b = &work->placing[j];
    const Measurement *m = row(work, i), *other = row(work, j);
    if (a->place != b->place)
        return false;
    return a->place == PLACE_INNER ? a->type == b->type
                                   : m->collective == other->collective;
}

static bool same_ranks(const Work *work, uint32_t i, uint32_t j)
{
    const Measurement *m = row(work, i), *other = row(work, j);
    const bool inner = work->placing[i].place == PLACE_INNER;
    return m->ranks == other->ranks &&
           (inner ? m->collective == other->collective
                  : work->placing[i].a_host == work->placing[j].a_host);
}

/* The preference of a row. An inner link has one line for all collectives: that of all-reduce, to
 * which all costs are relative, if it was measured. */
static double preference(const Work *work, uint32_t i)
{
    const Measurement *m = row(work, i);
    const bool inner = work->placing[i].place == PLACE_INNER;
    return distance(work, i) + (inner && m->collective != COLLECTIVE_ALL_REDUCE
                                    ? 0.1 + m->collective * 0.01
                                    : 0);
}

/* Chooses, for the fit of each row, the row whose ranks are taken. There are few fits, so a row is
 * compared with the first row of each. */
static void place_choose(Work *work)
{
    const uint32_t n = work->measurements->len;
    g_autofree uint32_t *best = g_new(uint32_t, n + 1); /* [first row of a fit] */
    g_autofree uint32_t *fit = g_new(uint32_t, n + 1);  /* [row]: first row of its fit */
    g_autofree uint32_t *first = g_new(uint32_t, n + 1);
    uint32_t n_first = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (work->placing[i].place <= PLACE_OP)
            continue;
        uint32_t f = 0;
        while (f < n_first && !same_fit(work, first[f], i))
            f++;
        if (f == n_first) {
            first[n_first++] = i;
            best[i] = i;
        }
        fit[i] = first[f];
        if (preference(work, i) < preference(work, best[fit[i]]))
            best[fit[i]] = i;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (work->placing[i].place <= PLACE_OP)
            continue;
        work->placing[i].nearest = same_ranks(work, i, best[fit[i]]);
        if (work->placing[i].nearest || !row(work, i)->send)
            continue;
        const Measurement *taken = row(work, best[fit[i]]);
        const bool other = taken->ranks == row(work, i)->ranks;
        work->placing[i].reason =
            other
                ? none("%s among the same ranks is used", measurement_kind(taken)).reason
                : none("%u ranks are more like the cluster's", taken->ranks).reason;
    }
    for (uint32_t i = 0; i < n; i++)
        if (work->placing[i].reason)
            work->placing[i].place = PLACE_NONE;
}

Placing *place_measurements(const GArray *measurements, const Cluster *cluster,
                            const Sheets *sheets)
{
    Work work = {.measurements = measurements,
                 .cluster = cluster,
                 .sheets = sheets,
                 .gpus = cluster_gpus(cluster),
                 .placing = g_new0(Placing, measurements->len + 1)};
    g_autofree uint32_t *of_unit = g_new0(uint32_t, cluster->n_machines);
    items_at (const Machine, machine, i, cluster->machine, cluster->n_machines) {
        const uint32_t unit = cluster_unit(cluster, i);
        of_unit[unit] += machine->gpus;
        work.units += unit == i;
        work.domains |= machine->domain != NULL;
        work.most_gpus = MAX(work.most_gpus, of_unit[unit]);
    }
    for (uint32_t i = 0; i < measurements->len; i++)
        work.placing[i] = place_of(&work, row(&work, i));
    place_choose(&work);
    return work.placing;
}
