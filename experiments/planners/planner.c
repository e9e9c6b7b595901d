/* The table of planners. */
#include "experiments/planners/planner.h"

#include <string.h>

#include "experiments/planners/make.h"

/* One program for all devices, with ratios that can be chosen; bounds hold for such plans. */
#define SPMD (PLANNER_RATIOS | PLANNER_CERTIFIES | PLANNER_TRIED)
/* Stages and replicas of single GPUs. */
#define PIPELINES (PLANNER_STRATEGY | PLANNER_GROUPS | PLANNER_GPUS | PLANNER_ZERO)
/* One program, data parallel. */
#define REPLICAS (SPMD | PLANNER_ZERO)

static const Planner planner[] = {
    {"hap", "best program and ratios by alternating search and linear program",
     "HAP (EuroSys'24), Sec. 3-5",
     SPMD | PLANNER_PINS | PLANNER_SEGMENTS | PLANNER_BALANCES | PLANNER_SEARCHES |
         PLANNER_BOUNDS,
     plan_make_hap},
    {"dp-ev", "data parallelism, equal shares a GPU", "HAP Sec. 7.1",
     REPLICAS | PLANNER_EVEN, plan_make_dp_even},
    {"dp-cp", "data parallelism, shares proportional to speed", "HAP Sec. 7.1", REPLICAS,
     plan_make_dp_proportional},
    {"deepspeed", "ZeRO data parallelism and expert parallelism, equal shares a GPU",
     "HAP Sec. 7.1; ZeRO (SC'20)", SPMD | PLANNER_EVEN, plan_make_deepspeed},
    {"gshard",
     "data parallelism, experts sharded and tokens exchanged, equal shares a GPU",
     "GShard (ICLR'21)", SPMD | PLANNER_EVEN, plan_make_gshard},
    {"tensor-parallel", "every device in one tensor parallel group, equal shares a GPU",
     "Megatron-LM (2019), Sec. 3", SPMD | PLANNER_EVEN, plan_make_tensor_parallel},
    {"amp", "pipelines, replicas and tensor parallelism, layers assigned exactly",
     "AMP (NeurIPS'22), Algorithm 1", PIPELINES | PLANNER_TRIED, plan_make_amp},
    {"amp-sa", "the same with the devices placed by simulated annealing", "AMP Sec. 4.2",
     PIPELINES | PLANNER_TRIED | PLANNER_LAST, plan_make_amp_annealed},
    {"megatron",
     "Megatron's heuristics: least tensor and pipeline parallelism, even cuts",
     "AMP Sec. 4.1; Megatron-LM (SC'21)", PIPELINES | PLANNER_TRIED, plan_make_megatron},
    {"amp-random", "degrees, placement and cuts at random, by the seed", "AMP Sec. 4.5",
     PIPELINES, plan_make_amp_random},
    {"manual", "a strategy of one's own: --strategy FILE, or its keys by --set",
     "Megatron-LM (SC'21); ZeRO (SC'20)", PIPELINES, plan_make_manual},
    {"fastmoe",
     "expert parallelism for the expert layers, data parallelism for the others",
     "FastMoE (2021); HiDup Sec. 6.1", SPMD | PLANNER_EVEN, plan_make_fastmoe},
    {"ddp", "data parallelism, gradients in buckets of 25 MiB, as in PyTorch",
     "HiDup Sec. 6.1", REPLICAS | PLANNER_EVEN, plan_make_ddp},
    {"horovod", "data parallelism, gradients fused up to 64 MiB",
     "Horovod (2018); HiDup Sec. 6.1", REPLICAS | PLANNER_EVEN, plan_make_horovod},
    {"hidup", "best program for two microbatches that take turns, equal shares a GPU",
     "HiDup (SoCC'22), Sec. 3-4", SPMD | PLANNER_EVEN | PLANNER_TURNS, plan_make_hidup},
    {"tag",
     "groups of ops, each on the best subset of the devices, with servers and duplicates",
     "TAG (TPDS 2023), Sec. 4",
     PLANNER_RATIOS | PLANNER_GROUPS | PLANNER_PLACES | PLANNER_TREES, plan_make_tag},
    {"dp-nccl", "data parallelism, equal shares a GPU, gradients one by one",
     "TAG (TPDS 2023), Sec. 5.2", REPLICAS | PLANNER_EVEN, plan_make_dp_even},
    {"dp-nccl-p", "data parallelism, shares proportional to speed, gradients one by one",
     "TAG Sec. 5.2", REPLICAS, plan_make_dp_proportional},
    {"dp-nccl-sfb", "data parallelism with sufficient factors broadcast where that pays",
     "TAG Sec. 4.2.3, 5.6", PLANNER_GROUPS | PLANNER_PLACES, plan_make_dp_factors},
    {"flexflow",
     "replicas of op groups on subsets, by a Markov chain, devices taken for equal",
     "FlexFlow (MLSys'19), Sec. 6; TAG Sec. 5.2", PLANNER_GROUPS | PLANNER_PLACES,
     plan_make_flexflow},
    {"heterog", "op groups replicated on all devices, with or without servers, or on one",
     "HeteroG (CoNEXT'20), Sec. 3; TAG Sec. 5.2",
     PLANNER_RATIOS | PLANNER_GROUPS | PLANNER_PLACES, plan_make_heterog},
    {"m-topo",
     "layers on single devices in order, each filled with its part of the bytes",
     "Baechi (SoCC'20), Sec. 3", PLANNER_GROUPS, plan_make_m_topo},
    {"m-etf", "layers on single devices, the earliest start first, within the memory",
     "Baechi Sec. 3", PLANNER_GROUPS, plan_make_m_etf},
    {"m-sct", "the same with favourite children by a linear program",
     "Baechi Sec. 3.3; Hanen and Munier (1995)", PLANNER_GROUPS, plan_make_m_sct},
    {"joint",
     "pipelines of unlike stages: groups, degrees, layers, recomputation of each",
     "AMP (NeurIPS'22), Sec. 3; HAP (EuroSys'24), Sec. 8",
     PLANNER_GROUPS | PLANNER_GPUS | PLANNER_TRIED | PLANNER_FIRST, plan_make_joint},
    {"auto", "the best plan of all planners on any of the machines",
     "HAP (EuroSys'24); AMP (NeurIPS'22)", PLANNER_GROUPS | PLANNER_CHOOSES,
     plan_make_auto},
};

uint32_t planner_count(void)
{
    return G_N_ELEMENTS(planner);
}

const Planner *planner_at(uint32_t index)
{
    return &planner[index];
}

const Planner *planner_find(const char *name, GError **error)
{
    g_autofree const char **known = NAMES_OF(planner, name);
    uint32_t index;
    return names_find("planner", name, known, &index, error) ? &planner[index] : NULL;
}

char *planners_that(uint32_t ability)
{
    g_autoptr(GString) names = g_string_new("");
    uint32_t n = 0;
    for (uint32_t i = 0; i < G_N_ELEMENTS(planner); i++)
        if (planner_can(&planner[i], ability))
            g_string_append_printf(names, "%s%s", n++ ? ", " : "", planner[i].name);
    return g_strdup_printf("%s %s", n == 1 ? "planner" : "one of the planners",
                           names->str);
}
