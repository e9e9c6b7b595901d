/* Statistics of where a plan's ops run (TAG, Tables 4 and 6), part of a result's detail. */
#include "experiments/sweep/placement.h"

#include "data/base/json.h"

typedef struct {
    const Evaluation *evaluation;
    uint32_t n_groups, n_devices;
    DeviceGroup *group;
    double *on_type; /* [device type]: number of devices of each op, summed over ops */
    double n_ops;
    json_int_t n_served, n_reduced; /* parameters' gradients */
    json_t *duplicated;             /* {kind of op: number} */
} Placement;

static bool is_gradient(const Graph *graph, TensorId id)
{
    const Tensor *tensor = graph_tensor(graph, id);
    return tensor->role == ROLE_GRADIENT && tensor->of != GRAPH_NONE &&
           graph_tensor(graph, tensor->of)->role == ROLE_PARAMETER;
}

static void add_compute(Placement *p, const Instr *instr)
{
    const Op *op = graph_get_op(p->evaluation->graph, instr->op);
    const DeviceGroup *group = &p->group[instr->group];
    const uint32_t n = group->n_replicas * group->n_devices;
    if (instr->microbatch != 0 && instr->microbatch != PROGRAM_WHOLE)
        return;
    for (uint32_t k = 0; k < n; k++)
        p->on_type[p->evaluation->view->device[group->device[k]].type]++;
    p->n_ops++;
    if (op->pass == PASS_UPDATE || group->n_devices == 1 ||
        program_is_spmd(p->evaluation->plan->program))
        return;
    const char *kind = op_kind_name(op->kind);
    json_object_set_new(
        p->duplicated, kind,
        json_integer(json_integer_value(json_object_get(p->duplicated, kind)) + 1));
}

static void add(Placement *p, const Instr *instr)
{
    if (instr->kind == INSTR_COMPUTE)
        add_compute(p, instr);
    else if (instr->kind == INSTR_COLLECTIVE &&
             instr->collective == COLLECTIVE_ALL_REDUCE &&
             is_gradient(p->evaluation->graph, instr->tensor))
        instr->server ? p->n_served++ : p->n_reduced++;
}

json_t *placement_json(const Evaluation *evaluation)
{
    const Program *program = evaluation->plan->program;
    const Cluster *cluster = evaluation->view->cluster;
    g_autofree double *on_type = g_new0(double, cluster->n_types);
    Placement p = {.evaluation = evaluation,
                   .on_type = on_type,
                   .n_devices = evaluation->view->n_devices,
                   .duplicated = json_object()};
    p.group = program_groups(program, p.n_devices, &p.n_groups);
    for (uint32_t i = 0; i < program->n; i++)
        add(&p, &program->instr[i]);
    json_t *types = json_object();
    for (uint32_t t = 0; t < cluster->n_types; t++)
        json_object_set_new(types, cluster->type[t].name,
                            json_number(p.n_ops > 0 ? on_type[t] / p.n_ops : 0));
    program_groups_free(p.group, p.n_groups);
    return json_pack("{s:o, s:I, s:I, s:o}", "devices_an_op", types, "served", p.n_served,
                     "all_reduced", p.n_reduced, "duplicated", p.duplicated);
}
