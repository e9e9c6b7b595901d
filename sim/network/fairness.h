/* Max-min fair rates of flows over links: equation (1) of sim/network/network.h. Private to sim.
 * The solver knows times, but no events.
 *
 * Rates are max-min fair if and only if each flow has a bottleneck: a full link on which no flow is
 * faster. A flow's rate is then the level of its bottleneck, so all flows bound to one link have
 * one rate, and a change concerns links, not single flows:
 *
 *   - Each link has a clock V, the integral of its level. A flow that is bound to the link with r
 *     bytes left gets the tag V + r and ends when the clock reads V + r. A heap of tags per link,
 *     and a heap of links by their next end, find the next flow to end. A change of a level moves
 *     one link in the second heap (sim/network/clock.c).
 *   - The coupling weight(l, m) sums the weights on link l of the flows that are bound to m. The
 *     level of l solves sum_m weight(l, m) min(level_m, level_l) = bandwidth_l, which reads one row
 *     of the coupling and no flow (sim/network/coupling.c).
 *   - When flows start or end, or a bandwidth changes, only the links that this can reach
 *     are solved for again (sim/network/level.c).
 *
 * A flow that is alone on all of its links is kept apart, without clock and coupling. Of the links
 * on which another flow is alone only the tightest can hold it back: the others are slack, and not
 * in the coupling until a second flow comes. */
#pragma once

#include "sim/network/keyed_heap.h"
#include "sim/network/network.h"

enum {
    NEAR_USES = 6, /* uses whose places fit in the flow itself */
    NO_LINK = UINT32_MAX,
    SLACK = UINT32_MAX,
    ALONE = UINT32_MAX - 1, /* bottleneck of a flow that is alone on its links */
};

typedef struct {
    const SimUse *use;
    uint32_t n_uses;
    bool active, waiting;
    uint32_t bottleneck; /* a link, ALONE, or SimShare.n_links: not bound yet */
    double stretch;      /* 1 / efficiency */
    /* of a bound flow the clock's reading at which it ends, else the bytes left at since_s */
    double tag;
    double since_s,
        /* rate of a flow that is alone; since_s of a waiting flow is the end of its latency */
        rate;
} Sharer;

/* The handler to call when a flow is done. */
typedef struct {
    SimHandler handler; /* may be NULL */
    void *context;
    uint64_t argument;
} SharerDone;

/* Where the coupling keeps a use of a flow: the pair, and the place among its members. pair: SLACK
 * for a use of a slack link. */
typedef struct {
    uint32_t pair, at;
} UsePlace;

/* The members of a flow that are used less often. */
typedef struct {
    SharerDone done;
    double bytes, payload;
    UsePlace *far_place; /* [use]; NULL: near_place */
    UsePlace near_place[NEAR_USES];
} SharerRest;

typedef struct {
    SimFlowId flow;
    uint32_t use; /* index among the flow's uses */
} Member;

/* The flows on `link` that are bound to `bottleneck`. */
typedef struct {
    uint32_t link, bottleneck;
    uint32_t in_row, in_column; /* its places in its row and column */
    uint32_t n, capacity,
        n_left; /* n_left: members that left since the weights were summed */
    Member *member;
} Pair;

/* An entry of the hash of pairs. */
typedef struct {
    uint32_t link, bottleneck;
    uint32_t pair; /* its number + 1; 0: empty */
} PairSlot;

/* An entry of a row, where `other` is the bottleneck, or of a column, where it is the link. */
typedef struct {
    double weight;
    uint32_t other, pair;
} Term;

typedef struct {
    Term *term;
    uint32_t n, capacity;
    bool hashed; /* of a row: its pairs are in the hash */
} Terms;

typedef struct {
    Pair *pair;
    uint32_t n_pairs, capacity;
    GArray *free_pairs;
    Terms *row, *column; /* [n_links + 1]: the last is for flows that are not bound */
    PairSlot *slot;      /* hash table with open addressing: the pairs of long rows */
    uint32_t n_slots, n_used;
} Coupling;

typedef struct {
    double bandwidth;
    double load;    /* sum over the row of weight x assumed level of the bottleneck */
    double assumed; /* the level at which the loads count its flows */
    uint32_t n;     /* number of active flows on it */
    uint32_t n_bound;
    uint32_t alone; /* the only flow on it, if that flow is alone, or UINT32_MAX */
    /* the only flow on it, which a link of its own holds back more, and the use by which it is on
     * this one; or UINT32_MAX */
    uint32_t slack_for, slack_use;
    bool inner, waiting, seeded, touched;
} SharedLink;

/* A link's clock reads `reading` at since_s and then runs at `speed`. */
typedef struct {
    double reading, speed, since_s;
    uint32_t n_ended; /* flows ended since the clock was last restarted */
    KeyedHeap tags;
} Clock;

typedef struct {
    uint32_t n_links, n_flows, flow_capacity, n_active;
    SharedLink *link;
    double *cap; /* [n_links + 1]: level; INFINITY while the link waits */
    Clock *clock;
    Sharer *flow;
    SharerRest *rest; /* [flow] */
    Coupling coupling;
    uint64_t n_solved;
    GArray *seeds;       /* links that changed and have to be solved for */
    GArray *flows_alone; /* flows alone on their links that have no rate yet */
    GArray *touched;     /* links whose clocks are to be set */
    GArray *to_wait;     /* scratch of level.c */
    GArray *terms;       /* likewise */
    KeyedHeap levels;    /* waiting links by a lower bound of their level */
    /* next ends of links, and ends of flows that are alone, as n_links + flow */
    KeyedHeap ends;
    uint32_t *level_place, *end_place, *tag_place;
} SimShare;

void share_init(SimShare *share, const Topology *topology);
void share_clear(SimShare *share);

/* Makes a flow that does not share yet, with number `id`, or a new number if id is UINT32_MAX. */
SimFlowId share_new(SimShare *share, SimFlowId id, const SimFlow *flow);
void share_release(SimShare *share, SimFlowId id);

/* Begins and ends sharing; rates are stale until share_solve. Links left without flows are appended
 * to `emptied` (uint32_t). */
void share_add(SimShare *share, SimFlowId id, double now_s);
void share_remove(SimShare *share, const SimFlowId *id, uint32_t n, GArray *emptied);
void share_set_bandwidth(SimShare *share, uint32_t link, double bandwidth);
void share_solve(SimShare *share, double now_s);

/* Takes an active flow off its clock before it ends; share_remove must still be called. Returns the
 * bytes left. */
double share_take_back(SimShare *share, SimFlowId id, double now_s);

double share_next_end_s(const SimShare *share); /* INFINITY if no flow ends */

/* Takes the flows that end by until_s off their clocks and appends them to `due`, in the order of
 * their numbers; share_remove must still be called. */
void share_take_due(SimShare *share, double until_s, GArray *due);

double share_rate(const SimShare *share, SimFlowId flow);
/* Payload in bytes that the active flows have moved over the link until now. */
double share_link_moved(const SimShare *share, uint32_t link, double now_s);

/* Whether rates are max-min fair: no link exceeds its bandwidth, and each flow is bound to a full
 * link on which no flow is faster. Reads every flow, so it is for tests. */
bool share_is_fair(const SimShare *share, double tolerance);

/* --- the parts of the solver: coupling.c, clock.c, level.c --- */

/* The weight of a use on its link. */
static inline double share_weight(const SimShare *share, SimFlowId id, uint32_t use)
{
    const Sharer *f = &share->flow[id];
    const SimUse *u = &f->use[use];
    return share->link[u->link].inner ? u->weight : u->weight * f->stretch;
}

/* [use]: where the coupling keeps the uses of a flow. */
static inline UsePlace *share_places(const SimShare *share, SimFlowId id)
{
    SharerRest *rest = &share->rest[id];
    return rest->far_place ? rest->far_place : rest->near_place;
}

void coupling_init(Coupling *coupling, uint32_t n_links);
void coupling_clear(Coupling *coupling, uint32_t n_links);
/* Add and remove the uses of a flow at its bottleneck, but those of slack links. */
void coupling_join_use(SimShare *share, SimFlowId id, uint32_t use, uint32_t bottleneck);
void coupling_join(SimShare *share, SimFlowId id, uint32_t bottleneck);
void coupling_leave(SimShare *share, SimFlowId id);

/* The bytes that a flow has left. */
double clock_left(const SimShare *share, SimFlowId id, double now_s);
/* Binds a flow that is on no clock to a link, with `left` bytes to move. */
void clock_add(SimShare *share, SimFlowId id, uint32_t link, double left, double now_s);
void clock_remove(SimShare *share, SimFlowId id);
void clock_set_speed(SimShare *share, uint32_t link, double speed, double now_s);
/* Sets the rate from now on of a flow that is alone. */
void clock_set_alone(SimShare *share, SimFlowId id, double rate, double now_s);
