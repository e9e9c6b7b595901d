/* The record of an event-driven simulation, with times: part of sim's public interface, included by
 * sim/sim.h.
 *
 * A span is one computation on a lane, or one collective of a team of lanes, or a transfer to a
 * team, or the launch of one of these by a lane's host. A lane is a set of devices that do the same
 * at the same time. Stream 0 of a device computes, the others communicate. Spans of one lane and
 * stream do not overlap, except for transfers. */
#pragma once

#include "data/plan/buffers.h"

#define SIM_TEAM    UINT32_MAX
#define SIM_NO_SPAN UINT32_MAX

/* Whether a device computes, or copies to its host or from it. */
typedef enum { SIM_COPIES_NOTHING, SIM_TO_HOST, SIM_FROM_HOST } SimCopy;

typedef struct {
    uint32_t instr;   /* of the program; for a bucket its first instruction */
    uint32_t n_fused; /* number of instructions: 1 except for buckets */
    uint32_t stage;   /* stage (sim/sim.h); in a program with groups the group */
    uint32_t lane;    /* SIM_TEAM: communication */
    uint32_t team;    /* whose lanes communicate */
    bool launch;      /* a launch by the host, which works beside all streams */
    uint8_t copies;   /* SimCopy */
    uint8_t stream;
    /* the span at whose end this one started; SIM_NO_SPAN: it started at 0 */
    uint32_t cause;
    double start_s, end_s;
} SimSpan;

/* From time_s on a device has `bytes` in memory, of which each category has a part. */
typedef struct {
    double time_s, bytes;
    float category[MEMORY_CATEGORIES];
    /* the instruction that made, or last used, the buffers that changed */
    uint32_t instr;
} SimMemoryStep;

/* One direction of a link. */
typedef struct {
    char *name;       /* "host-0>switch" */
    double bandwidth; /* bytes/s */
    double bytes;     /* bytes that it carried */
    double busy_s;    /* time during which it carried bytes */
} SimLinkUse;

typedef struct {
    uint32_t n, *lane;
} SimTimelineTeam;

typedef struct {
    uint32_t n_devices, n_lanes, n_teams, n_streams, n_spans;
    uint32_t *lane; /* [device]: its lane */
    SimTimelineTeam *team;
    SimSpan *span;
    bool has_launches;
    /* [lane]: SimMemoryStep in time order, for one GPU of each of its devices. NULL: not
     * recorded */
    GArray **memory;
    uint32_t n_links; /* 0: no network was simulated */
    SimLinkUse *link;
    double lost_s; /* time lost to a failure before its start; 0: none failed */
    uint32_t n_instrs;
    uint32_t *bucket; /* [instr]: the span that it was fused into, or SIM_NO_SPAN */
} SimTimeline;

SimTimeline *sim_timeline_new(uint32_t n_devices, uint32_t n_lanes, uint32_t n_teams,
                              uint32_t n_spans, uint32_t n_instrs);

/* The lanes of a span; *n gets their number. */
const uint32_t *sim_span_lanes(const SimTimeline *timeline, const SimSpan *span,
                               uint32_t *n);
AUTOPTR(sim_timeline_free, SimTimeline)

/* End of the last span. */
double sim_timeline_end_s(const SimTimeline *timeline);

/* The time of an iteration of the program: its end or, where iterations follow one another at once
 * (Program.successive), the time from one to the next if each device begins it when it has ended
 * this one, and repeats what it did: from the first task of a device, or of its host, to its last
 * one, received data apart. *lane then gets the device that takes longest. */
double sim_timeline_time_s(const SimTimeline *timeline, const Program *program,
                           uint32_t *lane);

/* Where a device's time goes: compute + exposed + idle = the timeline's end. */
typedef struct {
    double compute_s;
    double exposed_s; /* it communicates and does not compute */
    double hidden_s;  /* it communicates while it computes */
    double idle_s;    /* neither */
} SimBreakdown;

/* of: out, [lane]. */
void sim_timeline_breakdown(const SimTimeline *timeline, SimBreakdown *of);

/* The first step of a lane at which the most bytes are alive, or NULL if there is no record. */
const SimMemoryStep *sim_timeline_memory_peak(const SimTimeline *timeline, uint32_t lane);

/* The spans that bound the iteration, in time order: the first starts at 0, each starts
 * when the one before it ends (equal doubles), and the last one ends last. Caller frees.
 */
uint32_t *sim_timeline_critical_path(const SimTimeline *timeline, uint32_t *n);

/* "all_reduce of layer1.weight.grad and 4 more", "layer1.dx", "layer1.out inside the
 * machine". Caller frees. */
char *sim_span_text(const SimTimeline *timeline, uint32_t span, const Program *program,
                    const Graph *graph);

/* "forward", "backward", "update", "inside" a machine, "communication" or "launch". */
const char *sim_span_category(const SimSpan *span, const Program *program,
                              const Graph *graph);

/* Chrome trace JSON, which Perfetto opens: one process per device, one thread per stream, times in
 * microseconds; or, with `packets`, the same in Perfetto's own format. shown: [device], whether the
 * trace has it; NULL: the first device of each lane, whose name says how many do the same. whole:
 * [microbatch], whether it is written op by op, or as a slice for all that a stream does for it in
 * a row; NULL: all are, or of a long trace the first and the last ones. The same timeline gives
 * the same bytes. */
GByteArray *sim_timeline_trace(const SimTimeline *timeline, const Program *program,
                               const Graph *graph, const ClusterView *view,
                               const bool *shown, const bool *whole, bool packets);

/* A part of the critical path: computation or launches of one lane, a kind of collectives, all
 * transfers; or what it does for one layer of the model. */
typedef struct {
    /* "computation", "launch", "transfer", the collective's or layer's name */
    const char *kind;
    uint32_t lane; /* SIM_TEAM: communication, or a layer */
    uint32_t n;    /* spans */
    double time_s, communication_s;
} SimLimit;

/* The parts (SimLimit), longest first, by kinds or by layers. Free with g_array_unref. */
GArray *sim_timeline_limits(const SimTimeline *timeline, const Program *program,
                            const Graph *graph, bool by_layers);

/* Says in words what bounds the iteration. The caller frees the text. */
char *sim_timeline_explain(const SimTimeline *timeline, const Program *program,
                           const Graph *graph, const ClusterView *view);
