/* The state of the program checker (private to data). */
#ifndef KILTER_DATA_PROGRAM_CHECK_H
#define KILTER_DATA_PROGRAM_CHECK_H

#include "data/program/batch.h"

typedef struct {
    const Program *program;
    const Graph *graph;
    uint32_t n_groups;
    const BatchForms *batch; /* NULL: the batch is not cut */
    const Instances *instances;
    uint32_t at;      /* instruction being checked */
    uint8_t *held;    /* [place]: bit f: the group holds it in form f, */
    uint8_t *partial; /* [place]: and it is partial over the replicas */
    /* [place * FORM_MAX + form]: microbatches that have added to a sum */
    uint32_t *added;
    Form *rest;   /* [group * n_tensors + tensor]: form it was loaded in */
    bool *loaded; /* likewise */
    bool *ran;    /* [op * n_microbatches + microbatch] */
    GError **error;
} Check;

static inline const char *tensor_name(const Check *check, TensorId tensor)
{
    return graph_tensor(check->graph, tensor)->name;
}

/* After the last instruction: every op ran, the loss is there, and updated values lie where the old
 * ones lay. */
bool check_complete(const Check *check);

#endif
