/* Max-min fair rates of flows over links, by water-filling: equation (1) of sim/network/network.h.
 * Private to sim; knows times, but no events.
 *
 * All rates rise together until a link is full; the flows on it keep the rate they have,
 * the others rise on. Which link is next: room / weight is its level, with room the
 * bandwidth that the fixed flows leave and weight the sum over the others. Levels only
 * rise as flows are fixed, so a heap of levels that are brought up to date when they come
 * to the top finds it. Levels that differ by rounding only count as one, so that equal
 * flows get the same rate to the bit.
 *
 * Only what a change can reach is solved for again: the flows on the links that changed,
 * the links of those flows, and so on. Rates are max-min fair if and only if each flow has
 * a bottleneck, a full link on which none is faster; so a flow that leaves changes nothing
 * unless it leaves a bottleneck of a flow that stays. */
#ifndef KILTER_SIM_NETWORK_FAIRNESS_H
#define KILTER_SIM_NETWORK_FAIRNESS_H

#include "sim/network/network.h"

enum { NEAR_USES = 6 }; /* whose places a flow holds without more memory */

/* What solving reads: one line of the cache. */
typedef struct {
    const SimUse *use;
    uint32_t n_uses : 29;
    bool fixed : 1, active : 1, waiting : 1;
    uint32_t epoch;                  /* solve that has met it */
    double next_rate;                /* while solving */
    double stretch;                  /* 1 / efficiency */
    double rate, remaining, since_s; /* bytes left at since_s; then rate bytes/s */
    uint32_t place;                  /* in the heap of ends */
    uint32_t bottleneck; /* the full link that keeps its rate down; UINT32_MAX: none */
} Sharer;

/* Whom to tell when a flow is done. */
typedef struct {
    SimHandler handler; /* may be NULL */
    void *context;
    uint64_t argument;
} SharerDone;

/* The rest of a flow. */
typedef struct {
    SharerDone done;
    double bytes, payload;
    SimUse *own_use; /* of a flow that brings none that stay */
    uint32_t *at;    /* [use]: place among the link's entries; NULL: near_at */
    uint32_t near_at[NEAR_USES];
} SharerRest;

typedef struct {
    SimFlowId flow;
    uint32_t use; /* of the flow's */
} Entry;

typedef struct {
    double bandwidth;
    Entry *entry; /* active flows on it */
    uint32_t n, capacity;
    bool inner, dirty, relieved;
    uint32_t n_bound; /* flows whose bottleneck it is */
    uint32_t leaving; /* flows, while some are removed */
    /* while solving */
    uint32_t epoch, left; /* flows not fixed */
    double room, weight;
} SharedLink;

typedef struct {
    double key;
    uint32_t item;
} HeapItem;

typedef struct {
    uint32_t n_links, n_flows, flow_capacity, n_active;
    SharedLink *link;
    Sharer *flow;
    SharerRest *rest; /* [flow] */
    uint64_t n_solved;
    uint32_t epoch;
    GArray *dirty;    /* links that changed, */
    GArray *relieved; /* or that flows only left */
    uint32_t n_found_links, n_found_flows;
    uint32_t *found_link;  /* scratch: the part that is solved for, [n_links] */
    SimFlowId *found_flow; /* and [flow_capacity] */
    HeapItem *level;       /* scratch: [n_links] */
    HeapItem *end;         /* heap of when active flows end; never-ending ones too */
    uint32_t n_ends, end_capacity;
} SimShare;

void share_init(SimShare *share, const Topology *topology);
void share_clear(SimShare *share);

/* A flow that does not share yet, as number `id`, or a new one if that is UINT32_MAX.
 * `own`: uses to copy, if the flow brings none that stay. */
SimFlowId share_new(SimShare *share, SimFlowId id, const SimFlow *flow,
                    const SimUse *own);
void share_release(SimShare *share, SimFlowId id);

/* Begins and ends sharing; rates are stale until share_solve. Links that have no flow any
 * more are appended to `emptied` (uint32_t). */
void share_add(SimShare *share, SimFlowId id, double now_s);
void share_remove(SimShare *share, const SimFlowId *id, uint32_t n, GArray *emptied);
void share_set_bandwidth(SimShare *share, uint32_t link, double bandwidth);
void share_solve(SimShare *share, double now_s);

/* Takes an active flow out of the heap of ends, before its time; share_remove is still to be
 * called. Returns the bytes that it has left. */
double share_take_back(SimShare *share, SimFlowId id, double now_s);

double share_next_end_s(const SimShare *share); /* INFINITY if none ends */

/* Takes the flows that end until then out of the heap of ends, in the order of their
 * numbers; share_remove is still to be called. */
void share_take_due(SimShare *share, double until_s, GArray *due);

uint32_t share_stalled(const SimShare *share);
double share_link_rate(const SimShare *share, uint32_t link);
/* Payload that the active flows have moved over the link until now. */
double share_link_moved(const SimShare *share, uint32_t link, double now_s);

#endif
