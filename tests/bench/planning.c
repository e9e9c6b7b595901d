/* The times for which a user waits: building a model, making a plan by each planner, simulating it,
 * for HAP's models on its testbed of 64 GPUs, and answering questions about unlike machines. */
#include "data/data.h"
#include "sim/sim.h"
#include "synth/answer/complete.h"
#include "synth/auto/portfolio.h"
#include "synth/planners/planner.h"
#include "tests/bench/bench.h"

static const char *const MODELS[] = {"vgg19", "vit", "bert-base", "bert-moe"};
static const char CLUSTER[] = "hap-64";

typedef struct {
    const char *model, *fidelity;
    const Planner *planner;
    ClusterView *view;
    Graph *graph; /* of `plan` */
    Plan *plan;
    GError *error;
} Job;

static void check(const Job *job)
{
    if (job->error)
        g_error("%s: %s", job->model, job->error->message);
}

static void build(void *data)
{
    Job *job = data;
    Graph *graph =
        model_build(job->model, cluster_gpus(job->view->cluster), NULL, &job->error);
    check(job);
    graph_free(graph);
}

static void plan(void *data)
{
    Job *job = data;
    PlannerOptions options;
    planner_options_init(&options);
    g_clear_pointer(&job->plan, plan_free);
    g_clear_pointer(&job->graph, graph_free);
    job->plan = planner_plan(job->planner, job->model, CLUSTER, job->view, &options,
                             &job->graph, &job->error);
    check(job);
}

static void simulate(void *data)
{
    Job *job = data;
    SimReport *report =
        sim_evaluate(job->plan, job->graph, job->view, job->fidelity, &job->error);
    check(job);
    sim_report_free(report);
}

static void bench_planner(Job *job)
{
    g_autofree char *name = g_strdup_printf("%s plan %s", job->model, job->planner->name);
    bench_run(name, plan, job);
    static const char *const names[] = {"analytic", "stage", "flow"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(names); i++) {
        job->fidelity = names[i];
        if (!strcmp(job->fidelity, "analytic") &&
            strcmp(plan_fidelity(job->plan), "analytic"))
            continue; /* the formula has no microbatches */
        g_autofree char *line = g_strdup_printf("%s simulate %s %s", job->model,
                                                job->planner->name, job->fidelity);
        bench_run(line, simulate, job);
    }
}

/* Models of 61 layers beside a Llama of as many ops, all of small widths: microseconds for each
 * op of the graph, on hap-16. */
static void bench_families(Job *job)
{
    static const struct {
        const char *name, *config;
    } family[] = {
        {"llama of 130 layers", "{\"model_type\":\"llama\",\"num_hidden_layers\":130}"},
        {"deepseek_v3 of 61", "{\"model_type\":\"deepseek_v3\"}"},
        {"qwen3_next of 61", "{\"model_type\":\"qwen3_next\",\"num_hidden_layers\":61}"},
    };
    static const char *const planner[] = {"hap", "hidup", "joint", "manual"};
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "kilter-bench.json", NULL);
    g_autofree char *model = g_strdup_printf("%s:small=2,seq=64,global_batch=64", path);
    job->model = model;
    for (uint32_t p = 0; p < G_N_ELEMENTS(planner); p++)
        for (uint32_t f = 0; f < G_N_ELEMENTS(family); f++) {
            if (!g_file_set_contents(path, family[f].config, -1, NULL))
                g_error("%s cannot be written", path);
            job->planner = planner_find(planner[p], NULL);
            g_autofree char *name =
                g_strdup_printf("%s plan %s", family[f].name, planner[p]);
            const double median_s = bench_run(name, plan, job);
            printf("%-36s %10.1f us for each of %u ops\n", "",
                   1e6 * median_s / graph_n_ops(job->graph), graph_n_ops(job->graph));
        }
}

/* A pipeline of 16 stages and 192 microbatches under `stage`: all of it, and the few microbatches
 * that are unlike each other. */
static void evaluate_shortly(void *data)
{
    Job *job = data;
    SimOptions options;
    sim_options_init(&options);
    SimReport *report = sim_evaluate_shortly(job->plan, job->graph, job->view,
                                             job->fidelity, &options, &job->error);
    check(job);
    sim_report_free(report);
}

static void bench_parts(void)
{
    static const char *const SCHEDULE[] = {"1f1b", "interleaved", "zb-h1"};
    Job job = {.model = "gpt2:layers=96,hidden=12288,heads=96,ffn=49152,seq=2048,"
                        "precision=mixed,global_batch=1536",
               .fidelity = "stage",
               .planner = planner_find("manual", NULL)};
    g_autoptr(Cluster) cluster = cluster_load("128x8xa100-80g@8xib-hdr", &job.error);
    check(&job);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    job.view = view;
    for (uint32_t s = 0; s < G_N_ELEMENTS(SCHEDULE); s++) {
        PlannerOptions options;
        planner_options_init(&options);
        planner_options_set(&options, "pp", "16", NULL);
        planner_options_set(&options, "tp", "8", NULL);
        planner_options_set(&options, "schedule", SCHEDULE[s], NULL);
        job.plan = planner_plan(job.planner, job.model, "bench", view, &options,
                                &job.graph, &job.error);
        check(&job);
        const double all_s = bench_run(SCHEDULE[s], simulate, &job),
                     part_s = bench_run("by a part", evaluate_shortly, &job);
        printf("%-36s %10.1f times as fast\n", "", all_s / part_s);
        g_clear_pointer(&job.plan, plan_free);
        g_clear_pointer(&job.graph, graph_free);
    }
}

/* Answers of auto on unlike machines: a first one where programs are long, and a normal one. */
static void answer(void *data)
{
    Job *job = data;
    const PortfolioOptions how = {.prune = true, .some = true, .flow = true};
    PlannerOptions options;
    planner_options_init(&options);
    planner_options_set(&options, "work", job->fidelity, NULL);
    options.effort = 1000;
    g_autoptr(Portfolio) portfolio =
        portfolio_new(job->model, job->view->cluster, &options, &how, &job->error);
    check(job);
}

static void bench_answers(Job *job)
{
    static const struct {
        const char *name, *model, *cluster, *work;
    } row[] = {
        {"Llama-70B on 48 mixed, first answer",
         "llama:layers=80,hidden=8192,heads=64,kv_heads=8,ffn=28672,vocab=128256,"
         "seq=8192,global_batch=512,precision=bf16",
         "4x8xh100-sxm@8xib-ndr+2x8xh20", "1"},
        {"Llama-70B on 48 mixed",
         "llama:layers=80,hidden=8192,heads=64,kv_heads=8,ffn=28672,vocab=128256,"
         "seq=8192,global_batch=512,precision=bf16",
         "4x8xh100-sxm@8xib-ndr+2x8xh20", "40"},
        {"GPT-3 175B on 1,024 A100",
         "gpt2:layers=96,hidden=12288,heads=96,ffn=49152,seq=2048,precision=mixed,"
         "global_batch=1536",
         "128x8xa100-80g@8xib-hdr", "40"},
        {"GPT of 1.3B on 24 mixed",
         "gpt2:layers=24,hidden=2048,heads=16,ffn=8192,seq=2048,precision=mixed,"
         "global_batch=64",
         "8xh100-sxm@ib-ndr+8xa100-80g+2x4xv100-32g", "40"},
        {"GPT-2 medium where no program without microbatches fits",
         "gpt2-medium:seq=1024,global_batch=128,precision=bf16", "2xa100-80g", "1"},
    };
    for (uint32_t r = 0; r < G_N_ELEMENTS(row); r++) {
        g_autoptr(Cluster) cluster = cluster_load(row[r].cluster, &job->error);
        check(job);
        g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
        job->view = view;
        job->model = row[r].model;
        job->fidelity = row[r].work;
        bench_run(row[r].name, answer, job);
    }
}

int main(void)
{
    Job job = {0};
    g_autoptr(Cluster) cluster = cluster_load(CLUSTER, &job.error);
    if (!cluster)
        g_error("%s", job.error->message);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    job.view = view;

    g_autofree char *what = g_strdup_printf("on %s", CLUSTER);
    bench_print_header(what);
    g_autoptr(Cluster) small = cluster_load("hap-16", &job.error);
    if (!small)
        g_error("%s", job.error->message);
    g_autoptr(ClusterView) gpus = cluster_view(small, GRANULARITY_GPU);
    bench_parts();
    bench_answers(&job);
    job.view = gpus;
    bench_families(&job);
    job.view = view;
    for (uint32_t m = 0; m < G_N_ELEMENTS(MODELS); m++) {
        job.model = MODELS[m];
        g_autofree char *name = g_strdup_printf("%s build", job.model);
        bench_run(name, build, &job);
        for (uint32_t p = 0; p < planner_count(); p++) {
            job.planner = planner_at(p);
            if (!planner_can(job.planner, PLANNER_GROUPS))
                bench_planner(&job);
        }
    }
    g_clear_pointer(&job.plan, plan_free);
    g_clear_pointer(&job.graph, graph_free);
    return 0;
}
