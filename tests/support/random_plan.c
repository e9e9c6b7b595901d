/* Random clusters with random costs, and random plans on them. */
#include "tests/support/random_plan.h"

#include <math.h>

/* A number drawn log-uniformly between the two. */
static double between(GRand *rand, double low, double high)
{
    return exp(g_rand_double_range(rand, log(low), log(high)));
}

static LinkCost random_link(GRand *rand)
{
    return (LinkCost){between(rand, 1e-6, 1e-3), between(rand, 1e6, 1e9)};
}

/* Fitted costs of about half of the op kinds. */
static OpCost *random_ops(GRand *rand, double rate)
{
    OpCost *op = g_new0(OpCost, OP_KINDS);

    for (uint32_t kind = 0; kind < OP_KINDS; kind++)
        if (g_rand_boolean(rand))
            op[kind] = (OpCost){
                .overhead_s = between(rand, 1e-7, 1e-4),
                .rate =
                    g_rand_boolean(rand) ? between(rand, rate / 4, rate * 4) : INFINITY,
                .bandwidth = g_rand_boolean(rand) ? between(rand, 1e8, 1e10) : INFINITY,
                .smallest = 1,
                .largest = 1e9};
    return op;
}

static CollectivePieces random_pieces(GRand *rand)
{
    CollectivePieces pieces = {
        .n = (uint32_t)g_rand_int_range(rand, 0, 3), .smallest = 1, .largest = 1e6};
    double up_to = 16;

    pieces.piece = g_new0(CollectivePiece, pieces.n);
    for (uint32_t i = 0; i < pieces.n; i++)
        pieces.piece[i] =
            (CollectivePiece){up_to *= between(rand, 2, 100), random_link(rand)};
    return pieces;
}

Cluster *random_cluster(GRand *rand, uint32_t max_machines)
{
    Cluster *cluster = g_new0(Cluster, 1);

    cluster->name = g_strdup("random");
    cluster->description = g_strdup("random numbers");
    cluster->collective_source = g_strdup("random numbers");
    cluster->n_types = (uint32_t)g_rand_int_range(rand, 1, 4);
    cluster->type = g_new0(DeviceType, cluster->n_types);
    for (uint32_t i = 0; i < cluster->n_types; i++)
        cluster->type[i] = (DeviceType){
            .name = g_strdup_printf("type%u", i),
            .rate = between(rand, 1e8, 1e10),
            .memory_bytes = (uint64_t)between(rand, 1e4, 1e6),
            .source = g_strdup("random numbers"),
        };
    cluster->n_machines = (uint32_t)g_rand_int_range(rand, 1, (gint32)max_machines + 1);
    cluster->machine = g_new0(Machine, cluster->n_machines);
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        cluster->machine[i] = (Machine){
            .name = g_strdup_printf("machine%u", i),
            .type = (uint32_t)g_rand_int_range(rand, 0, (gint32)cluster->n_types),
            .gpus = (uint32_t)g_rand_int_range(rand, 1, 5),
            .inner = random_link(rand),
            .source = g_strdup("random numbers"),
        };
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
        cluster->collective[kind] = random_link(rand);
    return cluster;
}

void random_fit(const GRand *rand, Cluster *cluster)
{
    GRand *own = g_rand_copy((GRand *)rand);

    for (uint32_t i = 0; i < cluster->n_types; i++) {
        if (g_rand_boolean(own))
            cluster->type[i].op = random_ops(own, cluster->type[i].rate);
        if (cluster->n_machines % 2)
            cluster->type[i].rates[NUMBERS_F16] = 3 * cluster->type[i].rate;
    }
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
        cluster->pieces[kind] = random_pieces(own);
    g_rand_free(own);
}

/* Ratios that sum to 1, some of them 0. */
static void random_ratios(GRand *rand, uint32_t n, double *ratio)
{
    double sum = 0;

    for (uint32_t j = 0; j < n; j++) {
        ratio[j] =
            g_rand_int_range(rand, 0, 5) == 0 ? 0 : g_rand_double_range(rand, 0.1, 1);
        sum += ratio[j];
    }
    for (uint32_t j = 0; j < n; j++)
        ratio[j] = sum > 0 ? ratio[j] / sum : 1.0 / n;
}

/* Deals units to devices, each by a draw from the ratios. */
static Split random_split(GRand *rand, const SimSplit *key, uint32_t n,
                          const double *ratio)
{
    Split split = {
        .segment = key->segment, .units = key->units, .count = g_new0(uint32_t, n)};

    for (uint32_t u = 0; u < key->units; u++) {
        double draw = g_rand_double(rand);
        uint32_t j = 0;
        for (; j + 1 < n && draw >= ratio[j]; j++)
            draw -= ratio[j];
        split.count[j]++;
    }
    return split;
}

Plan *random_plan(GRand *rand, const Graph *graph, const ClusterView *view,
                  Program *program)
{
    Plan *plan = plan_new();
    const uint32_t n = view->n_devices, n_ops = graph_n_ops(graph);

    plan->program = program;
    plan->n_devices = n;
    plan->n_segments = (uint32_t)g_rand_int_range(rand, 1, 3);
    plan->ratio = g_new(double, plan->n_segments *n);
    for (uint32_t k = 0; k < plan->n_segments; k++)
        random_ratios(rand, n, &plan->ratio[k * n]);
    plan->n_ops = n_ops;
    plan->segment = g_new0(uint16_t, n_ops);
    const uint32_t cut = (uint32_t)g_rand_int_range(rand, 0, (gint32)n_ops);
    for (OpId id = cut; id < n_ops && plan->n_segments > 1; id++)
        plan->segment[id] = 1;
    plan->bucket_bytes = g_rand_boolean(rand) ? 0 : (uint64_t)between(rand, 10, 1e4);

    g_autoptr(SimLinear) linear = sim_linear(program, graph, view, plan->segment, 0);
    plan->n_splits = linear->n_splits;
    plan->split = g_new(Split, linear->n_splits);
    for (uint32_t i = 0; i < linear->n_splits; i++)
        plan->split[i] = random_split(rand, &linear->split[i], n,
                                      &plan->ratio[linear->split[i].segment * n]);
    return plan;
}
