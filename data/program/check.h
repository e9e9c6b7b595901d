/* The state of the program checker (private to data). */
#pragma once

#include "data/base/assert.h"
#include "data/program/batch.h"

typedef struct {
    const Program *program;
    const Graph *graph;
    uint32_t n_groups;
    const BatchForms *batch; /* NULL: the batch is not cut */
    const Instances *instances;
    uint32_t at;      /* the instruction being checked */
    uint8_t *held;    /* [place]: bit f: the group holds it in form f */
    uint8_t *partial; /* [place]: bit f: that instance is partial over the replicas */
    /* [place * FORM_MAX + form]: number of microbatches added to a sum */
    uint32_t *added;
    uint32_t *joined; /* likewise: number of replicas that have joined it */
    Form *rest;       /* [group * n_tensors + tensor]: form in which it was loaded */
    bool *loaded;     /* likewise: it was loaded */
    bool *ran;        /* [op * n_microbatches + microbatch] */
    GError **error;
} Check;

static inline const char *tensor_name(const Check *check, TensorId tensor)
{
    return graph_tensor(check->graph, tensor)->name;
}

static inline const Instr *check_current(const Check *check)
{
    KILTER_ASSERT(check->at < check->program->n);
    return &check->program->instr[check->at];
}

/* Fails: "instruction 12 (text): reason". */
bool check_wrong(const Check *check, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Check that an instruction's tensor, form and group are possible. */
bool check_tensor(const Check *check, TensorId tensor);
bool check_form(const Check *check, TensorId id, Form form);
bool check_axes(const Check *check, uint32_t group, TensorId id, Form form);
bool check_group(const Check *check, uint16_t group);
/* Checks that the microbatch suits the op or tensor, which has one part per microbatch or is
 * whole. */
bool check_microbatch(const Check *check, bool has_parts);

/* Whether the batch is cut over the group's replicas, and the tensor is a sum over the batch. */
bool check_has_replicas(const Check *check, uint32_t group);
bool check_is_sum(const Check *check, TensorId tensor);

/* The place of the tensor's instance of the instruction's microbatch; whether the group holds it,
 * and whether it is partial. */
uint32_t check_place(const Check *check, uint32_t group, TensorId tensor, Form form);
bool check_held(const Check *check, TensorId tensor, Form form);
bool check_is_partial(const Check *check, TensorId tensor, Form form);

void check_make(Check *check, TensorId tensor, Form form, bool partial);
void check_make_at(Check *check, uint32_t where, Form form, bool partial);
/* Adds n microbatches to a sum, which is complete once all have been added. */
void check_add_to(Check *check, uint32_t group, TensorId tensor, Form form, uint32_t n);

bool check_collective(Check *check);
bool check_transfer(Check *check);

/* Checks after the last instruction that every op ran, the loss exists, and updated values lie
 * where the old values lay. */
bool check_complete(const Check *check);
