/* TAG (Zhang et al., TPDS 2023): groups of ops, each on a subset of the cluster's devices. Part of
 * synth's public interface, included by synth/synth.h.
 *
 * A strategy (Sec. 4.2.2) gives each op group an action: a subset of the device sets, and an
 * option,
 *
 *     AR          replicas on the subset's devices; gradients are all-reduced
 *     PS          the same; each gradient is summed by one of them, the server, and sent back
 *     DUPLICATE   every device does all of it, on the whole batch; gradients need no sum
 *     MP          the group's ops are cut in runs of about equal time, one per device
 *     ONE         everything on one device of any set (from HeteroG, CoNEXT'20, not TAG)
 *
 * A set with a single device has AR only. Device sets are machines, or, in clusters of many
 * machines, all machines of a kind (Sec. 5.2; as in the artifact).
 *
 *     synth_tag_space()     device sets, and the actions on them
 *     synth_tag_place()     a strategy -> each op's device group and each gradient's server
 *     synth_tag_program()   the program of a placement: tensors between groups are transferred,
 *                           split, gathered or summed by the forms that both have; the parameter
 *                           rests where its update runs
 *     synth_tag_search()    the strategies */
#pragma once

#include "sim/sim.h"
#include "sim/tasks/quick.h"

enum { TAG_MOST_SETS = 8 };

typedef enum { TAG_AR, TAG_PS, TAG_DUPLICATE, TAG_MP, TAG_ONE, TAG_OPTIONS } TagOption;

typedef struct {
    uint16_t subset; /* bit s: device set s is in it; for ONE: the device */
    TagOption option;
} TagAction;

/* A cluster as TAG sees it. Device groups are as in programs: replicas of one device each, or one
 * replica of all devices (DUPLICATE). */
typedef struct {
    const ClusterView *view;
    uint32_t n_sets;
    uint32_t *set; /* [device] */
    /* in the order of falling numbers of devices, AR before the others */
    uint32_t n_actions;
    TagAction *action;
    uint32_t n_groups;
    DeviceGroup *group;
    uint16_t *replicas, *whole; /* [subset]: device group; equal for one device */
    uint16_t *single;           /* [device]: device group */
} TagSpace;

/* merged: machines of a kind are one set, which they are in any case if there would be more than
 * TAG_MOST_SETS sets. KILTER_ERROR_INPUT if there are too many kinds. */
TagSpace *synth_tag_space(const ClusterView *view, bool merged, GError **error);
AUTOPTR(synth_tag_space_free, TagSpace)

/* Adds single devices to the actions; TAG has them through MP only. */
void synth_tag_add_ones(TagSpace *space);
/* Keeps only the actions of HeteroG's network (CoNEXT'20, Sec. 3.2): replicas on all devices that
 * all-reduce or have servers, and single devices. */
void synth_tag_all_or_one(TagSpace *space);
/* Keeps only replicas that all-reduce, on all subsets: FlexFlow's sample dimension. */
void synth_tag_all_reduced(TagSpace *space);

/* The action of data parallelism: all devices as replicas that all-reduce. */
uint32_t tag_data_parallel(const TagSpace *space);

/* The graph to place, in op groups. */
typedef struct {
    const Graph *graph;
    const BatchForms *batch;
    uint32_t n_groups;
    const uint16_t *group; /* [op] */
    /* [op]: seconds on some fixed device, to cut and order groups */
    const double *time_s;
    /* [layer]: what is computed again before its backward (synth/tag/program.c); NULL: nothing */
    const Recompute *recompute;
    /* of programs; 0, 1: the batch is not cut. More need batch_forms_of_microbatches(); searches
     * and bounds are of one */
    uint32_t n_microbatches;
} TagWork;

/* The place of every op and every sum. */
typedef struct {
    uint16_t *group; /* [op]: device group of the space */
    /* [tensor]: for a summed gradient 1 + the serving replica; 0: all-reduce */
    uint16_t *server;
} TagPlacement;

TagPlacement *synth_tag_placement_new(const Graph *graph);
AUTOPTR(synth_tag_placement_free, TagPlacement)

/* action: [op group], indices of actions. The server of a gradient is the replica with the fewest
 * bytes to sum, the first of several. */
void synth_tag_place(const TagSpace *space, const TagWork *work, const uint16_t *action,
                     TagPlacement *placement);

/* Baechi's placements on single devices (Jeon et al., SoCC'20, Sec. 3), within the memory:
 *
 *     TOPO    in execution order, one device after the other filled with its part of all bytes
 *     ETF     the group that can start first, on the device where it can start first
 *     SCT     the same, but a device waits for the favourite child of its last group, unless an
 *             urgent group is there, whose inputs could be on any device by then */
typedef enum { TAG_TOPO, TAG_ETF, TAG_SCT } TagListRule;

/* Bytes that go from one op group's forward ops to another's. */
typedef struct {
    uint32_t from, to; /* op groups */
    double *seconds;   /* [device * n_devices + device] */
    double longest_s;
} TagArc;

/* Op groups as list schedulers see them. Groups consist of whole layers, so that they have an
 * order. */
typedef struct {
    uint32_t n, n_devices, n_arcs;
    double *forward_s; /* [group * n_devices + device] */
    double *mean_s;    /* [group]: mean of forward_s */
    uint64_t *bytes;   /* [group]: parameters, their gradients and states, activations */
    TagArc *arc;       /* by `to`, then `from` */
    uint32_t *first_arc; /* [group + 1]: range of the arcs to the group */
} TagList;

TagList *synth_tag_list(const TagSpace *space, const TagWork *work, SimQuick *quick);
AUTOPTR(synth_tag_list_free, TagList)

/* favourite: [group], the favourite child, or UINT32_MAX; NULL except for SCT. device: out,
 * [group]. If no device has enough memory, the device with the most memory left takes the group. */
void synth_tag_list_place(const TagList *list, const ClusterView *view, TagListRule rule,
                          const uint32_t *favourite, uint32_t *device);

/* Whether the tensor is a gradient that a parameter's update reads. */
bool tag_is_final_sum(const Graph *graph, TensorId tensor);

/* The program of a placement, which passes program_check. Its device groups are the groups that it
 * uses, or, with `all_groups`, the groups of the space, by number. */
Program *synth_tag_program(const TagSpace *space, const TagWork *work,
                           const TagPlacement *placement, bool all_groups);
