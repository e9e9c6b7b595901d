/* The workload of an iteration in samples, tokens and FLOPs, and the peak rates of its devices. */
#include "sim/sim.h"

#include <string.h>

/* FLOPs that all devices do for one computation of the program. */
static double instr_flops(const Plan *plan, const Graph *graph, const BatchForms *batch,
                          const Instr *instr)
{
    const Program *program = plan->program;
    const DeviceGroup *group = program->n_groups ? &program->group[instr->group] : NULL;
    const double n_devices = group ? group->n_devices : plan->n_devices;
    const double n_replicas = group ? group->n_replicas : 1;
    const bool cut = batch && batch->loop[instr->op] >= 0;
    const double n_shards = group ? group_shards(group) : 1;
    Rule rule, shards, replicas;
    if (!op_rule_find(graph, instr->op, instr->form, &rule) ||
        !op_rule_of_shards(graph, instr->op, instr->form, &shards) ||
        !op_rule_of_replicas(graph, instr->op, instr->form, &replicas))
        return 0;
    return (rule.flops_replicated * n_devices + rule.flops_sharded) *
           (cut ? n_shards / program_parts(program) : n_replicas) /
           (shards.loop >= 0 ? n_shards : 1) /
           (replicas.loop >= 0 ? n_replicas / n_shards : 1);
}

/* Microbatches repeat their computations, which are counted once. */
static double program_flops(const Plan *plan, const Graph *graph)
{
    g_autoptr(BatchForms) batch = NULL;
    batch_forms_of_program(plan->program, graph, &batch, NULL);
    g_autofree const Instr **last = g_new0(const Instr *, graph_n_ops(graph));
    g_autofree double *last_flops = g_new(double, graph_n_ops(graph));
    double flops = 0;
    items_each (const Instr, instr, plan->program->instr, plan->program->n) {
        if (instr->kind != INSTR_COMPUTE ||
            graph_get_op(graph, instr->op)->pass == PASS_UPDATE)
            continue;
        const Instr *before = last[instr->op];
        if (!before || before->group != instr->group ||
            memcmp(before->form, instr->form, sizeof instr->form) != 0)
            last_flops[instr->op] = instr_flops(plan, graph, batch, instr);
        last[instr->op] = instr;
        flops += last_flops[instr->op];
    }
    return flops;
}

static double power_of(const ClusterView *view)
{
    double sum = 0;
    for (uint32_t j = 0; j < view->n_devices; j++) {
        const double power = view->cluster->type[view->device[j].type].power_w;
        if (!(power > 0))
            return 0;
        sum += view->device[j].gpus * power;
    }
    return sum;
}

/* Of all machines together, the preemptible price where that is asked for and known; 0: not known.
 */
static double price_of(const Cluster *cluster, bool preemptible)
{
    double sum = 0;
    bool any = !preemptible;
    items_each (const Machine, machine, cluster->machine, cluster->n_machines) {
        const bool lower = preemptible && machine->preemptible > 0;
        if (!(machine->price > 0) && !lower)
            return 0;
        sum += lower ? machine->preemptible : machine->price;
        any = any || lower;
    }
    return any ? sum : 0;
}

SimWorkload sim_workload(const Plan *plan, const Graph *graph, const ClusterView *view)
{
    const Tensor *input = graph_tensor(graph, graph_first_input(graph));
    const Numbers numbers = precision_numbers(graph_precision(graph));
    SimWorkload work = {.samples = input->dim[0]};
    if (input->dtype == DTYPE_I64 && input->rank == 2)
        work.tokens = (double)tensor_elements(input);
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        if (graph_get_op(graph, id)->pass != PASS_UPDATE)
            work.model_flops += graph_op_flops(graph, id);
    work.run_flops = program_flops(plan, graph);
    work.of_peaks = true;
    items_each (const Device, device, view->device, view->n_devices) {
        work.gpus += device->gpus;
        work.peak += device->peaks[numbers];
        work.of_peaks &= view->cluster->type[device->type].peaks[numbers] > 0;
    }
    work.power_w = power_of(view);
    work.price = price_of(view->cluster, false);
    work.preemptible = price_of(view->cluster, true);
    return work;
}
