/* The cluster: machines of devices, mostly equal ones, their capabilities, and the network between
 * them.
 *
 * A cluster file (YAML, data/clusters/) gives every number with unit and source. Planning looks at
 * a cluster through a *view*: either a device is a machine (HAP's virtual device: its GPUs run data
 * parallelism among themselves, Sec. 3 and 6) or a single GPU. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "data/cluster/curve.h"
#include "data/cluster/fitted.h"
#include "data/cluster/stack.h"
#include "data/graph/graph.h"

/* The time of an op of a kind on one device: overhead + FLOPs / rate + bytes / bandwidth, where
 * bytes count all operands. An infinite rate or bandwidth removes its term. The host takes launch_s
 * to launch it, while the device may still run earlier launches (sim/sim.h).
 *
 * A device makes `wave` elements of an output at a time: its processors' tiles. The last wave takes
 * as long as a full one and is half full on average, so half a wave is added, at most as much as
 * the output itself: min(wave / 2, elements) (FLOPs / elements) / rate. 0: no waves.
 *
 * Before a tile computes at full speed its first operands are loaded, and at its end it is written:
 * each element of an output takes as long as `fill` more terms of its sum do, 2 elements fill /
 * rate. A product with k terms has k / (k + fill) of the rate. 0: products of all k have the same
 * rate. */
typedef struct {
    double overhead_s, rate, bandwidth;
    double launch_s, fill;
    uint32_t wave;
    double smallest,
        /* range of bytes that were measured; largest 0: the kind is not fitted */
        largest;
} OpCost;

/* The most device types with fitted ops, or rates of their own per format, in one cluster. */
enum { CLUSTER_MAX_FITTED = 16 };

enum { CLUSTER_MAX_STRETCH = 1000 };

/* Numbers of a data sheet beside the peaks: times of kernels follow from it
 * (data/cluster/kernel_device.h). 0: not known. */
typedef struct {
    uint32_t sm, gcn;    /* compute capability x 10, or AMD's number */
    uint32_t processors; /* streaming multiprocessors or compute units */
    /* bits of the memory's bus: 1024 and more are stacks of HBM, less is GDDR */
    uint32_t bus;
    double bandwidth;    /* of the memory, bytes/s */
    double clock_hz;     /* boost */
    double l2_bytes;     /* the cache that all processors share */
    double process_nm;   /* nm, as energy goes: 16 and 12 are 12, N6 is 7, 4N is 5 */
    double tf32;         /* peak of a format that models are not held in, FLOP/s */
    double memory_share; /* measured: the part of `bandwidth` that streams reach */
    double sustained; /* measured: FLOP/s of large fp32 products at the board's power */
    /* measured: the part of fp32 instructions that are not displaced by others */
    double issue;
    /* measured: the part of the 16-bit peak that the best product reaches */
    double reach;
} Chip;

/* Whether times of kernels follow: they do from the number of processors, or the clock, and the
 * bandwidth. */
bool chip_is_known(const Chip *chip);

/* The classes of kernels, each with a factor on its times (sim/cost/op_kernels.h). */
#define KERNEL_CLASS_TABLE(X) \
    X(PRODUCTS, products)     \
    X(EXPERTS, experts)       \
    X(ATTENTION, attention)   \
    X(MEMORY, memory)         \
    X(LOSS, loss)             \
    X(UPDATE, update)

#define KERNEL_CLASS_ID(id, name) KERNEL_CLASS_##id,
typedef enum { KERNEL_CLASS_TABLE(KERNEL_CLASS_ID) KERNEL_CLASSES } KernelClass;

#define KERNEL_CLASS_MEMBER(id, name) double name;
typedef struct {
    KERNEL_CLASS_TABLE(KERNEL_CLASS_MEMBER)
} KernelFactors;

struct KernelDevice; /* data/cluster/kernel_device.h */

typedef struct {
    char *name;
    double rate; /* FLOP/s, true FLOPs over a whole training step */
    /* rates of ops on numbers of each format; 0: `rate` for F32 and F16, impossible for the others.
     * In the file `half_rate` is short for the rate of F16 */
    double rates[NUMBERS];
    double peaks[NUMBERS]; /* FLOP/s on the data sheet; 0: not known */
    double power_w;        /* most power of a board; 0: not known */
    Chip chip;
    /* of the chip, made when the cluster is complete (cluster_set_kernels): ops take the times of
     * their kernels, with these factors on the times of each class. NULL: they take FLOPs /
     * rate, or what was fitted */
    struct KernelDevice *kernels;
    KernelFactors kernel_times; /* 0: 1 */
    uint64_t memory_bytes;      /* memory of one device */
    /* the part of it that driver, libraries and allocator take with any plan; 0: not known */
    uint64_t runtime_bytes;
    char *source;
    double slowdown; /* of its computations while it communicates; up to 1: none */
    /* of a collective or transfer while the device computes; up to 1: none */
    double interference;
    /* each further GPU of the machine adds this part to the launch times, as processes share the
     * host's cores; 0: none */
    double crowding;
    /* the host's launch time for a collective, a transfer, or an op whose kind is not fitted; 0:
     * none */
    double launch_s;
    /* the host's time at a transfer of a pipeline, beside the launch: for the sender and for the
     * receiver each; 0: none */
    double handover_s;
    /* [OP_KINDS]; kinds that are not fitted take FLOPs / rate. NULL: no kind is fitted */
    OpCost *op;
} DeviceType;

/* FLOP/s of ops on numbers of that format; 0: the device has no such format. */
double device_type_rate(const DeviceType *type, Numbers numbers);
/* The fitted cost of ops of the kind; NULL: they take FLOPs / rate. */
const OpCost *device_type_cost(const DeviceType *type, OpKind kind);
/* Whether some kind of ops does not take FLOPs / rate. */
bool device_type_is_fitted(const DeviceType *type);
/* Frees what the type owns. */
void device_type_clear(DeviceType *type);

/* Neighbouring GPUs of one type, in a machine of unlike GPUs. */
typedef struct {
    uint32_t type, gpus;
} MachinePart;

typedef struct {
    char *name;
    uint32_t type; /* index in Cluster.type; of the first GPU if they are unlike */
    uint32_t gpus; /* devices in the machine, at least 1 */
    /* unlike GPUs in their order, neighbours of different types; 0: all are of `type` */
    uint32_t n_parts;
    MachinePart *part;
    LinkCost inner; /* between devices of the machine */
    /* in front of `inner`, where bandwidths are not 0: one direct link between two GPUs, of which a
     * ring among some of them has several; and what those have that find no ring */
    LinkCost peer, across;
    /* its GPUs' direct links (data/cluster/peers.h); NULL: a switch, or not known */
    char *peers;
    /* how much longer a byte takes where its switch sums up, alone and in trees between machines;
     * 0: it does not */
    double sums, tree_sums;
    Port port; /* to other machines */
    /* the domain of direct links, larger than a machine, and the region that it is in; NULL:
     * none */
    char *domain, *region;
    /* 1 + the first machine of its domain; 0: it is in none (cluster_finish) */
    uint32_t unit;
    char *source;
    double stretch; /* factor on all its computation; up to 1: none */
    /* the host's memory; what a GPU's link to it carries in each direction, and what that memory
     * gives all GPUs of the machine together; 0: not known */
    uint64_t host_memory_bytes;
    double host_link, host_bandwidth;
    /* US dollars an hour, and where it may be taken away at any time; 0: not known */
    double price, preemptible;
} Machine;

/* The links between two regions, in both directions. */
typedef struct {
    char *from, *to;
    LinkCost link;
    double toll; /* US dollars a byte */
    char *source;
} RegionLink;

typedef struct NetworkSpec NetworkSpec; /* data/cluster/topology.h */
struct Tuning;                          /* data/cluster/tuning.h */
struct PeersMemo;                       /* data/cluster/peers.h */

typedef struct {
    char *name;
    char *description;
    uint32_t n_types;
    DeviceType *type;
    uint32_t n_machines;
    Machine *machine;
    LinkCost collective[COLLECTIVES_PRICED]; /* between machines */
    CollectivePieces pieces[COLLECTIVES_PRICED];
    CollectiveCurves curves; /* measured collectives, inside machines and between them */
    /* a message between devices of two machines; bandwidth 0: the broadcast's line */
    LinkCost transfer;
    /* the ports of the machines price what goes between them (data/cluster/price.h), and
     * `collective` follows from them; else `collective` was stated */
    bool wired;
    uint32_t n_region_links;
    RegionLink *region_link;
    char *collective_source;
    NetworkSpec *network;    /* NULL: one port per machine, see data/cluster/topology.h */
    struct Tuning *tuning;   /* its own rules; NULL: the default rules only */
    Fitted *fitted;          /* the trials its costs were fitted to; NULL: none */
    struct PeersMemo *rings; /* that were counted before on `peers` of its machines */
} Cluster;

/* Reads a cluster by name (looked up as NAME.yaml on the search path, see data/base/path.h), or by
 * the path of a file, or builds it from a spec such as "star:hosts=8,bandwidth=10Gb/s,latency=5us"
 * (data/cluster/spec.c). KILTER_ERROR_INPUT with file, line, key and what was expected. */
Cluster *cluster_load(const char *name, GError **error);
Cluster *cluster_read(const char *file, GError **error);
/* The same from text; messages call it `file`. */
Cluster *cluster_parse(const char *file, const char *text, size_t length, GError **error);
AUTOPTR(cluster_free, Cluster)

uint32_t cluster_gpus(const Cluster *cluster);

/* Whether data sheets describe some of its GPUs, and nothing was measured of them, so that it is
 * not known what is held there. */
bool cluster_is_bare(const Cluster *cluster);

/* Frees what a machine owns. */
void machine_clear(Machine *machine);
/* Makes a machine of these GPUs; neighbours of one type become one part. */
void machine_set_parts(Machine *machine, uint32_t n, const MachinePart *part);
/* The type of one of its GPUs, and how many it has of a type. */
uint32_t machine_type_at(const Machine *machine, uint32_t gpu);
uint32_t machine_gpus_of(const Machine *machine, uint32_t type);
/* "h100-sxm", or "2 rtx-a6000 + 2 rtx-3090" where they are unlike. Caller frees. */
char *machine_types(const Cluster *cluster, const Machine *machine);
/* The GPUs of each type, "2 v100, 6 p100". Caller frees. */
char *cluster_kinds_text(const Cluster *cluster);
/* The first machine of unlike GPUs; NULL: there is none. */
const Machine *cluster_mixed(const Cluster *cluster);
/* Keeps the GPUs for which keep[gpu] is set, at least one, counted machine by machine; direct links
 * between those that stay are kept. KILTER_ERROR_INPUT where a machine that is cut names links of
 * its GPUs. */
bool cluster_keep_gpus(Cluster *cluster, const bool *keep, GError **error);

/* The first machine of the machine's domain; itself where it is in none. */
static inline uint32_t cluster_unit(const Cluster *cluster, uint32_t machine)
{
    const uint32_t unit = cluster->machine[machine].unit;
    return unit > 0 ? unit - 1 : machine;
}

/* Whether its direct links do not join all GPUs, so that a ring among all takes another way. */
bool machine_is_split(const Machine *machine);

/* Computes what follows from the machines: the rings on their peers (data/cluster/curve.h), and the
 * lines of a wired cluster. To be called when machines or ports were changed. */
void cluster_finish(Cluster *cluster);

/* Whether every device type of the cluster computes in that precision; KILTER_ERROR_INPUT names the
 * first type that cannot. */
bool cluster_check_precision(const Cluster *cluster, Precision precision, GError **error);

/* The cluster's file in YAML, from which cluster_parse makes an equal cluster. Comments are not
 * kept. The caller frees it. */
char *cluster_write(const Cluster *cluster);
/* The same file as one line of JSON with sorted keys, which is also YAML. The caller frees it. */
char *cluster_json_text(const Cluster *cluster);
/* The same without description and sources, for the identity of results: clusters that give equal
 * answers have equal texts. The caller frees it. */
char *cluster_canonical(const Cluster *cluster);

typedef enum { GRANULARITY_MACHINE, GRANULARITY_GPU } Granularity;
/* Machines; single GPUs where a machine has unlike ones. */
Granularity granularity_default(const Cluster *cluster);
/* KILTER_ERROR_INPUT names a machine of unlike GPUs, which is no device: each of a device's GPUs
 * gets an equal part of its work. */
bool granularity_check(const Cluster *cluster, Granularity granularity, GError **error);
const char *granularity_name(Granularity granularity);
bool granularity_parse(const char *text, Granularity *granularity);

/* "1=2": stretches the computation of device 1 of the view by 2, from 1 to 1000. KILTER_ERROR_INPUT
 * if the text is malformed, or the device is one of several GPUs of a machine. */
bool cluster_stretch(Cluster *cluster, Granularity granularity, const char *text,
                     GError **error);
/* Reads the two numbers of such a text, for n devices. */
bool stretch_parse(const char *text, uint32_t n, uint32_t *device, double *factor,
                   GError **error);

/* Makes the kernels of all types whose chip is known and whose ops were not fitted.
 * KILTER_ERROR_INPUT: data/kernels.yaml cannot be read. */
bool cluster_set_kernels(Cluster *cluster, GError **error);

/* How ops are priced on the GPUs of a type by their kernels. */
typedef struct {
    const struct KernelDevice *device; /* borrowed from the cluster; NULL: they are not */
    double factor[KERNEL_CLASSES];     /* on the kernels' times */
    Stack stack;
    double working; /* the share of a GPU at which prices for searches are right */
    uint64_t key;   /* a hash of the rest and of the device's numbers; 0: not known */
} KernelPricing;

/* A device as planners see it. */
typedef struct {
    const char *name;      /* borrowed from the view */
    const char *type_name; /* borrowed from the cluster */
    uint32_t type;
    uint32_t machine; /* index in Cluster.machine */
    double rate;      /* FLOP/s of all its GPUs together */
    uint32_t gpus;    /* GPUs inside; 1 for a plain device */
    /* of ONE of its GPUs, less the runtime's part: the memory for plans and, in a view with a
     * runtime, what that leaves of it */
    uint64_t capacity_bytes, memory_bytes;
    uint64_t runtime_bytes; /* as in its type */
    double peaks[NUMBERS];  /* FLOP/s of all its GPUs: data sheet, else the type's rate */
    LinkCost inner;         /* between its GPUs; unused when gpus is 1 */
    double slowdown;        /* of its computations while it communicates; up to 1: none */
    double interference;    /* of communication while it computes; up to 1: none */
    double crowd;           /* factor on launches for the GPUs that share its host */
    uint32_t fitted; /* 1 + index in ClusterView.fitted; 0: FLOPs / rate for all ops */
    double stretch;  /* factor on fitted overheads (`rate` contains it); 0: none */
    double launch_s, handover_s; /* as in its type; the launch of a crowded host */
    /* the machine of unlike GPUs that is this device, whose rates are their sums; else NULL */
    const Machine *mixed;
    /* borrowed from the view; NULL: FLOPs / rate, or what was fitted */
    const KernelPricing *kernels;
} Device;

/* Orders devices by everything that planning sees of them, fastest first; 0: of one kind. */
int device_compare(const Device *a, const Device *b);

typedef struct {
    const Cluster *cluster; /* must outlive the view, unless `owned` */
    Cluster *owned;         /* the cluster if the view owns it and frees it; else NULL */
    Granularity granularity;
    uint32_t n_devices;
    Device *device;
    /* what is held beside plans (cluster_view_held); borrowed; NULL: nothing */
    const struct Runtime *runtime;
    /* ports, switches or direct links price collectives among some of the devices
     * (data/cluster/price.h) */
    bool priced;
    /* sites: the regions of a wired cluster, or the switches of its topology that machines are at.
     * [machine] its site, [from * n_sites + to] the link between, its bandwidth INFINITY if nothing
     * is known to be narrow there, and [machine] its cables of the topology, or INFINITY */
    uint32_t n_sites, *site;
    LinkCost *between;
    /* [from * n_sites + to] US dollars a byte from region to region; NULL: free */
    double *toll;
    double *cable;
    LinkCost collective[COLLECTIVES_PRICED]; /* among the view's devices */
    CollectivePieces pieces[COLLECTIVES_PRICED];
    uint32_t n_fitted;
    const DeviceType *fitted[CLUSTER_MAX_FITTED]; /* borrowed from the cluster */
    KernelPricing pricing[CLUSTER_MAX_FITTED];    /* of the types in `fitted` */
} ClusterView;

/* The kinds of a view's devices (device_compare), in the order of their first devices. */
typedef struct {
    uint32_t n;
    uint32_t *of;    /* [device] its kind */
    uint32_t *first; /* [kind] a device */
    uint32_t *count; /* [kind] number of its devices */
} DeviceKinds;

/* False if there are more than `most`; the kinds must be cleared all the same. */
bool device_kinds(const ClusterView *view, uint32_t most, DeviceKinds *kinds);
AUTOCLEAR(device_kinds_clear, DeviceKinds)

/* At GPU granularity the GPUs of a machine share its network port: with g the largest GPU count, an
 * all-to-all's bandwidth per GPU is the machine's times (n - 1) / (n - g) / g, since g devices each
 * send n - g of their n - 1 parts through it; rings pass each port once and keep their bandwidth. A
 * cluster of one machine communicates over its inner link. */
ClusterView *cluster_view(const Cluster *cluster, Granularity granularity);
void cluster_view_free(ClusterView *view);
/* A graph that has ops with measured times (graph_set_times) is planned on a view whose devices are
 * all `fitted`, by the type: a copy, which borrows the cluster. The check comes first:
 * KILTER_ERROR_INPUT names the op and the type of a device that it was not measured on. */
bool cluster_view_check_times(const ClusterView *view, const Graph *graph,
                              GError **error);
ClusterView *cluster_view_measured(const ClusterView *view);
/* A copy, which borrows the cluster, with ops by their kernels or by FLOPs / rate, and the stack of
 * a runtime (NULL: the view's stack). */
ClusterView *cluster_view_priced(const ClusterView *view, bool kernels,
                                 const Stack *stack);
/* A copy, which borrows the cluster and the runtime: of each device's memory is left what the
 * runtime leaves with so many kinds of communicators (runtime_left_bytes). */
ClusterView *cluster_view_held(const ClusterView *view, const struct Runtime *runtime,
                               uint32_t communicators);
/* The bytes that a finished plan may take on a device of the view, with what is held beside it. */
uint64_t cluster_view_capacity(const ClusterView *view, uint32_t device);
/* Whether some device's ops are priced by their kernels. */
bool cluster_view_has_kernels(const ClusterView *view);
/* Makes the view own its cluster. */
void cluster_view_own(ClusterView *view, Cluster *cluster);

/* Seconds that the host of a device takes to launch an op of that kind; 0 for views
 * (op_kind_is_view). */
double cluster_view_launch_s(const ClusterView *view, const Device *device, OpKind kind);
/* Whether an op of any kind takes time to launch on any device. */
bool cluster_view_launches(const ClusterView *view);

/* The line that prices a collective of all devices on a tensor of `bytes`. */
LinkCost cluster_view_line(const ClusterView *view, Collective kind, double bytes);
/* The same among some of them, which are on place.hosts machines like the device's, while `sets`
 * such sets share their ports. */
LinkCost cluster_view_set_line(const ClusterView *view, const Device *device,
                               CurvePlace place, uint32_t sets, Collective kind,
                               double bytes);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ClusterView, cluster_view_free)
