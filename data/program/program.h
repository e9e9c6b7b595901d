/* The program: a sequence of instructions that the devices run (HAP Sec. 4.1).
 *
 * An instruction is an op of the graph run under a rule, a collective (or free local) conversion of
 * one tensor from one form to another, or a transfer between groups. Inputs, parameters and
 * optimizer states enter by LOAD instructions in the form in which they lie at rest.
 *
 * A tensor may be held in several forms at once. An *instance* is a (group, microbatch, tensor,
 * form); an instruction makes instances and uses instances made before it. A program is complete
 * when it holds the loss in Reduce or Identity form and, for every parameter and optimizer state,
 * its next value in the form it was loaded in, in every group that loaded it.
 *
 * Stages (HAP Fig. 6): consecutive priced collectives open a (synchronised) stage; the computations
 * up to the next priced collective belong to it.
 *
 * Groups, replicas, microbatches. An instruction runs on one device group: n_replicas x n_devices
 * devices. Forms are over the devices of one replica; an instruction runs on all replicas at once,
 * each on its part of the batch. A pipeline stage is a group, its data parallelism the replicas,
 * its tensor parallelism the devices of each. A program that names no groups has one group of all
 * devices with one replica: an SPMD program.
 *
 * The batch is cut outermost: first into `n_microbatches` equal parts, and each of them over the
 * replicas by their share, the sum of their devices' ratios. The form of each tensor follows from
 * the op table (data/program/batch.h):
 *
 *   Gather     every (microbatch, replica) has its part: one instance per microbatch
 *   Identity   the same for all of them: one instance, of microbatch PROGRAM_WHOLE
 *   Reduce     a sum over the batch (gradients of parameters, the loss): the op that makes it adds
 *              to one buffer, microbatch after microbatch. When it has run for all of them, the
 *              instance of PROGRAM_WHOLE is there: partial over the replicas if there are several,
 *              until an all-reduce `across` them
 *
 * An all-reduce across replicas may have a *server*: at each position the device of that replica
 * gets the others' partial sums and sends the sum back (a parameter server). The result is the
 * same.
 *
 * So an op on the batch runs once per microbatch, and any other op runs once, as PROGRAM_WHOLE;
 * loads are PROGRAM_WHOLE and make the parts of all microbatches. Without microbatches, 0 and
 * PROGRAM_WHOLE are the same. An op may be computed again, for the same microbatch too, unless it
 * adds to a sum; the new instance replaces the old.
 *
 * Shards. Neighbouring replicas of a group, `n_shards` at a time, may share one part of the batch,
 * and divide among them the dims that the forms over the shards cut (data/graph/rule.h): the
 * sequence, the experts, or the states of parameters. Positions, shards and replicas are three
 * axes, a form over each; a collective converts over one of them and keeps the forms over the
 * others.
 *
 *   positions   the forms differ there
 *   shards      the forms differ over the shards: among the shards at each position
 *   replicas    `across`: among the devices at the same place of each set of shards. An all-reduce
 *               keeps the form; a gather or a scatter concerns tensors cut over the replicas, which
 *               only parameters, their gradients and states can be
 *
 * The same devices may be several groups that differ in their shards. A transfer between two of
 * these *regroups*: each device already has its part, and only its name changes. With a shards in
 * `group` and b in `to_group`, from and to are forms over the shards:
 *
 *   Identity -> Identity        the tensor is the same everywhere
 *   partial over the replicas   with a = 1, b > 1: Identity -> Reduce; with a > 1: Reduce -> Reduce
 *                               (b > a),
 *   (sums over the batch)       Reduce -> Identity (b = 1, a > 1)
 *   parts of the batch          a = 1: Identity -> Gather(the batch's dim); back with b = 1
 *
 * Moves. A regroup or a reduce-scatter that `moves` takes the sum over the batch accumulated so
 * far: the source starts again from zero, and the target adds up what it receives. The target is
 * complete when all microbatches have arrived.
 *
 * Unlike replicas. Replicas of the model may be cut into different stages, each with some of the
 * microbatches: then the sum over the batch of a group has its own microbatches only. A transfer
 * `across` joins the replicas of a group to a group that has them as neighbours among its own, or
 * leaves the larger group for the smaller one. Each device keeps what it has, and nothing is sent.
 *
 *   joins    moves the sum so far; the larger group's replicas join in their order. Its sum is
 *            complete when all microbatches have arrived, and partial over its replicas
 *   leaves   a tensor that is complete in the larger group, such as a gradient after an all-reduce
 *
 * A transfer brings an instance of `group` in form `from` to `to_group` in form `to`:
 *
 *   Identity, Gather(a) -> Identity, Gather(b)   every device gets the part that it needs
 *   Reduce -> Reduce                             device to device, of equally large replicas
 *
 * A part of the batch goes from the replicas that have it to those that need it, whatever their
 * numbers. A tensor that is partial over the replicas goes from replica to replica, of which there
 * must be equally many. A tensor that all replicas have goes to any number of replicas. */
#pragma once

#include "data/cluster/cluster.h"
#include "data/graph/rule.h"

typedef enum { INSTR_LOAD, INSTR_COMPUTE, INSTR_COLLECTIVE, INSTR_TRANSFER } InstrKind;

#define PROGRAM_WHOLE UINT16_MAX /* as a microbatch: all microbatches */

typedef struct {
    InstrKind kind;
    /* device group on which it runs; 0 is all devices in SPMD programs */
    uint16_t group;
    uint16_t to_group;   /* TRANSFER */
    uint16_t microbatch; /* or PROGRAM_WHOLE */
    uint8_t stream;      /* 0 computation, 1 communication */
    /* COLLECTIVE: an all-reduce over the replicas at each position; from == to, the form in which
     * it is held. TRANSFER: joins a group with more replicas, if it moves, else leaves one */
    bool across;
    /* COLLECTIVE, TRANSFER: moves the sum so far, and adds it to the target's */
    bool moves;
    /* if across: 1 + the replica that sums for the others; 0: none */
    uint16_t server;
    Collective collective;      /* COLLECTIVE */
    OpId op;                    /* COMPUTE */
    TensorId tensor;            /* LOAD, COLLECTIVE, TRANSFER */
    Form from, to;              /* COLLECTIVE, TRANSFER; LOAD: to */
    Form form[OP_MAX_OPERANDS]; /* COMPUTE: forms of inputs, then outputs */
} Instr;

/* An operand of an instruction: a tensor in a form. */
typedef struct {
    TensorId tensor;
    Form form;
} Operand;

typedef struct {
    uint32_t n_replicas, n_devices; /* n_devices: devices of each replica */
    uint32_t *device;               /* [replica * n_devices + position], all different */
    /* number of neighbouring replicas that share one part of the batch; divides n_replicas; 0 means
     * 1 */
    uint32_t n_shards;
    /* of the shards, neighbours that exchange heads where the others are in rings (the strategy's
     * a2a_ranks); 0: none. Programs do not say it, plans' layouts do */
    uint32_t n_heads;
} DeviceGroup;

static inline uint32_t group_shards(const DeviceGroup *group)
{
    return group->n_shards > 1 ? group->n_shards : 1;
}
/* The number of sets of shards, which is the number of parts into which the batch is cut. */
static inline uint32_t group_parts(const DeviceGroup *group)
{
    return group->n_replicas / group_shards(group);
}
/* Whether both are the same devices in the same places. */
bool group_is_alike(const DeviceGroup *a, const DeviceGroup *b);
static inline bool group_has(const DeviceGroup *group, uint32_t device)
{
    for (uint32_t i = 0; i < group->n_replicas * group->n_devices; i++)
        if (group->device[i] == device)
            return true;
    return false;
}

typedef struct {
    uint32_t n;
    uint32_t capacity;
    Instr *instr;
    uint32_t n_microbatches; /* 1: the batch is not cut in time */
    /* microbatches that do not run, beside those that do: the program stands for a longer one
     * (data/program/period.h) */
    uint32_t left_out;
    uint32_t n_groups; /* 0: one group, all devices as one replica */
    DeviceGroup *group;
    /* each device begins the next iteration when it has ended this one, so that the time of an
     * iteration is that between two of them */
    bool successive;
} Program;

Program *program_new(void);
Program *program_copy(const Program *program);
/* The same but for instructions, of which it has none. */
Program *program_copy_groups(const Program *program);
AUTOPTR(program_free, Program)

/* Adds a group (the ids are copied); returns its number. */
uint16_t program_add_group(Program *program, uint32_t n_replicas, uint32_t n_devices,
                           const uint32_t *device);

/* The number of the group, new or existing, with the same devices as `group` and n_shards. */
uint16_t program_add_shards(Program *program, uint16_t group, uint32_t n_shards);

/* The groups of a program for n_devices devices, at least one, each with its devices; *n gets their
 * number. */
DeviceGroup *program_groups(const Program *program, uint32_t n_devices, uint32_t *n);
void program_groups_free(DeviceGroup *group, uint32_t n);

/* The number of equal parts into which the batch is cut in time. */
static inline uint32_t program_parts(const Program *program)
{
    return program->n_microbatches + program->left_out;
}

/* Whether the batch is cut: there are microbatches, or a group has several replicas. */
bool program_cuts_batch(const Program *program);
/* Whether the program has one group without replicas, no microbatches, and names no devices. */
bool program_is_spmd(const Program *program);

/* Whether all groups' devices are below n_devices; else KILTER_ERROR_INPUT. */
bool program_check_devices(const Program *program, uint32_t n_devices, GError **error);

void program_append(Program *program, Instr instr);
/* Append an instruction on group 0, microbatch 0. */
void program_load(Program *program, TensorId tensor, Form form);
void program_compute(Program *program, OpId op, const Form *form, uint32_t n_operands);
void program_collective(Program *program, Collective kind, TensorId tensor, Form from,
                        Form to);

/* The operands that an instruction reads, and those that it makes; both functions return their
 * number. A load reads none, and an all-reduce `across` the replicas makes none, since it works in
 * place. */
uint32_t instr_uses(const Instr *instr, const Graph *graph, Operand use[OP_MAX_IN]);
uint32_t instr_makes(const Instr *instr, const Graph *graph, Operand make[OP_MAX_OUT]);

/* The axis over which a collective converts. The last two are parts of the shards, over which none
 * does: neighbours that exchange heads, and the rings of those at the same place among them. */
typedef enum {
    AXIS_POSITIONS,
    AXIS_SHARDS,
    AXIS_REPLICAS,
    AXIS_HEADS,
    AXIS_RINGS,
    AXES
} FormAxis;
FormAxis instr_axis(const Instr *instr);
/* The form over that axis. */
static inline Form form_on(FormAxis axis, Form form)
{
    return axis == AXIS_REPLICAS    ? form_replicas(form)
           : axis == AXIS_POSITIONS ? form_inside(form)
                                    : form_shards(form);
}

/* Whether a transfer only regroups, so that nothing is sent. */
bool instr_regroups(const Program *program, const Instr *instr);

/* The first of the neighbouring replicas of `whole` that are the replicas of `part`; UINT32_MAX if
 * there are none, or a group has shards. */
uint32_t group_find_replicas(const DeviceGroup *whole, const DeviceGroup *part);

/* Whether a transfer joins the replicas of its group to those of a larger group. */
static inline bool instr_joins(const Instr *instr)
{
    return instr->kind == INSTR_TRANSFER && instr->across && instr->moves;
}

/* Whether an instruction adds to its target instead of replacing it. */
static inline bool instr_moves(const Instr *instr)
{
    return instr->moves &&
           (instr->kind == INSTR_COLLECTIVE || instr->kind == INSTR_TRANSFER);
}

/* Whether `kind` turns `from` into `to` for some dims. */
bool collective_converts(Collective kind, Form from, Form to);

/* Checks the whole program against the graph's rules: every instance is made before it is used,
 * every computation follows a rule of its op, every conversion exists, sharded dims can be sharded,
 * and the program is complete: each op runs, on every microbatch. KILTER_ERROR_FAILED names the
 * first wrong instruction. Shares no code with the searches. */
bool program_check(const Program *program, const Graph *graph, GError **error);

/* One instruction as text, "y|gather(0) <- linear(x|gather(0), w|identity)", followed by its place,
 * " [group 1, microbatch 2]", unless both are 0. The caller frees it. */
char *instr_text(const Instr *instr, const Graph *graph);

/* The program as a picture in Graphviz' language: a box for each computation, an arrow for each
 * dependency, blue if the tensor is cut and red if it is partial; in large programs a box for each
 * layer and pass. The caller frees it. */
char *program_dot(const Program *program, const Graph *graph);
