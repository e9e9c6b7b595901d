/* kilter plan. */
#include <stdio.h>
#include <string.h>

#include "data/base/json.h"
#include "data/base/output.h"
#include "data/cluster/runtime.h"
#include "data/formats/export/export.h"
#include "data/formats/launch/launch.h"
#include "data/models/model.h"
#include "experiments/answers.h"
#include "experiments/answers/days.h"
#include "experiments/answers/evaluation_report.h"
#include "experiments/cli/command.h"
#include "experiments/cli/screen.h"
#include "experiments/explain/explain.h"
#include "experiments/render.h"

/* Whether the spec's list "a=1,b=2" has the key of a pair "b=3". */
static bool has_key(const char *list, const char *pair)
{
    g_autofree char *all = g_strconcat(",", list, NULL),
                    *key = g_strdup_printf(",%.*s", (int)strcspn(pair, "=") + 1, pair);
    return strstr(all, key) != NULL;
}

/* The spec with the keys of the launch that it has not. */
static char *spec_with(const char *spec, const Launch *launch, uint32_t gpus)
{
    g_autofree char *keys = launch_model_keys(launch, gpus);
    g_auto(GStrv) pair = g_strsplit(keys, ",", -1);
    GString *text = g_string_new(spec);
    const char *list = model_spec_list(spec);
    bool any = *list;
    for (uint32_t i = 0; pair[i]; i++)
        if (*pair[i] && !has_key(list, pair[i])) {
            g_string_append_printf(text, "%s%s", any ? "," : ":", pair[i]);
            any = true;
        }
    return g_string_free(text, FALSE);
}

/* Reads the launch, sets the strategy of the options and the planner manual on single GPUs, and
 * puts into *spec the keys of the model that the launch gives and the spec has not (interned).
 * *like gets {file, framework, model, unknown: names without meaning here}. KILTER_ERROR_INPUT
 * names the file and what contradicts. */
static bool plan_like(const char *file, char **spec, const char *cluster,
                      CommandPlanning *how, CommandOptions *options, json_t **like,
                      GError **error)
{
    g_auto(CommandSetting) setting = {0};
    if (options->strategy || (how->planner && strcmp(how->planner, "manual") != 0))
        return refuse(error,
                      "--like with %s: expected one of them, since a launch is a "
                      "strategy of its own",
                      options->strategy ? "--strategy" : "--planner");
    g_autoptr(Launch) launch = launch_read(file, error);
    if (!launch)
        return false;
    put_block(how->planner, g_strdup("manual"));
    if (!command_setting(how, cluster, &setting, error))
        return false;
    const uint32_t gpus = cluster_gpus(setting.cluster);
    g_autofree char *full = spec_with(*spec, launch, gpus);
    g_autoptr(Graph) graph = model_build(full, gpus, NULL, error);
    g_autoptr(Runtime) runtime =
        graph && *launch->runtime ? runtime_load(launch->runtime, error) : NULL;
    Strategy strategy;
    if (!graph || (*launch->runtime && !runtime))
        return false;
    if (!launch_strategy(launch, graph, gpus, &strategy, error))
        return kilter_prefix(error, "%s: ", file);
    g_autoptr(ClusterView) view = cluster_view(setting.cluster, GRANULARITY_GPU);
    launch_place(launch, view, &strategy);
    options->planner.strategy = strategy;
    options->planner.bucket_bytes =
        runtime_bucket_bytes(runtime, options->planner.bucket_bytes);
    if (!*options->planner.sim.runtime && cluster_is_bare(setting.cluster))
        options->planner.sim.runtime = launch->runtime;
    SimOptions *sim = &options->planner.sim;
    if (launch_dispatcher(launch) && cluster_is_bare(setting.cluster) &&
        sim->dispatcher == SIM_DISPATCHER_RUNTIME && sim->costs == SIM_COSTS_KERNELS &&
        !sim_options_set(sim, "dispatcher", launch_dispatcher(launch), error))
        return false;
    *spec = (char *)g_intern_string(full);
    *like =
        json_pack("{s:s, s:s, s:s, s:o}", "file", file, "framework", launch->framework,
                  "model", full, "unknown", json_texts(launch->unknown));
    return true;
}

/* Why a launch fails may be in its names that were not read: false. */
static bool plan_tell_unread(const json_t *like, GError **error)
{
    g_autofree char *unread = like ? render("[*unknown<6/, :{.}]", like) : g_strdup("");
    if (*unread && error && *error) {
        char *both =
            g_strdup_printf("%s; %s has names that were not read: %s", (*error)->message,
                            json_string_value(json_object_get(like, "file")), unread);
        put_block((*error)->message, both);
    }
    return false;
}

/* clang-format off */
#define PLAN_OPTIONS(X)              \
    X(PLANNING, how)                 \
    X(FILE, output, "output", 'o')   \
    X(SLOWDOWN, how)                 \
    X(CHANGES, how)                  \
    X(TEXT, certify, "certify", 0)   \
    X(TEXT, segments, "segments", 0) \
    X(TEXT, budget, "budget", 0)     \
    X(TEXT, target, "for", 0)        \
    X(FILE, like, "like", 0)         \
    X(TEXT, effort, "effort", 0)     \
    X(TEXT, tokens, "tokens", 0)     \
    X(FLAG, explain, "explain", 'e') \
    X(PINS, options)
/* clang-format on */
COMMAND_OPTIONS(Own, plan_own, PLAN_OPTIONS)

/* The question that the plan answers, and the frameworks that take the answer. */
static void note_question(const Evaluation *evaluation, const CommandOptions *options)
{
    Plan *plan = evaluation->plan;
    plan->exports = plan_exports(plan, evaluation->graph, evaluation->view);
    plan->options = options->set && *options->set ? g_strjoinv(" ", options->set) : NULL;
    plan->revision = *command_revision() ? g_strdup(command_revision()) : NULL;
}

/* The training on so many tokens. */
static json_t *plan_training(const Evaluation *evaluation, const char *text,
                             GError **error)
{
    const SimWorkload work =
        sim_workload(evaluation->plan, evaluation->graph, evaluation->view);
    double tokens;
    return days_read_tokens(text, &tokens, error)
               ? days_training_json(evaluation, tokens, work.price, work.power_w, error)
               : NULL;
}

static bool plan_report(Evaluation *evaluation, const Own *own, bool made, json_t *like,
                        const CommandOptions *options, GError **error)
{
    if (!evaluation_check_fits(evaluation, error))
        return false;
    json_auto_t *training =
        own->tokens ? plan_training(evaluation, own->tokens, error) : NULL;
    if (own->tokens && !training)
        return false;
    if (made)
        note_question(evaluation, options);
    if (own->output && !output_take(own->output, evaluation_plan_text(evaluation), error))
        return false;
    if (command_is_silent(options))
        return true;
    json_t *object = evaluation_json(evaluation, options->verbose);
    g_autofree char *text = g_strdup("");
    if (like)
        json_object_set(object, "like", like);
    if (training)
        json_object_set(object, "training", training);
    if (own->explain) {
        evaluation_record(evaluation);
        json_t *explanation = explain_plan(evaluation->plan, evaluation->graph,
                                           evaluation->view, evaluation->report);
        g_autofree char *waits =
            evaluation->report->timeline ? evaluation_waits_text(evaluation) : NULL;
        put_block(text, explain_text(explanation, waits));
        json_object_set_new(object, "explanation", explanation);
    }
    command_report(options, object, ANSWER_EVALUATION, ANSWER_LIKE, ANSWER_TRAINING,
                   NULL);
    if (!options->json)
        screen_put(text, stdout);
    return true;
}

/* --certify, --segments and --budget, which are options of the planner by name. */
static bool take_options(const Own *own, PlannerOptions *options, GError **error)
{
    if (own->certify && !planner_options_set(options, "certify", own->certify, error))
        return kilter_prefix(error, "--certify: ");
    if (own->segments && !planner_options_set(options, "segments", own->segments, error))
        return kilter_prefix(error, "--segments: ");
    if (own->budget && !planner_options_set(options, "budget_s", own->budget, error))
        return kilter_prefix(error, "--budget: ");
    return true;
}

/* Refuses options of planning for a plan from a file, which is shown, not made again. */
static bool check_shown(const char *file, const Own *own, const CommandOptions *options,
                        GError **error)
{
    if (own->how.planner || own->how.granularity || own->output || own->certify ||
        own->budget || own->effort || own->segments || own->like || own->target ||
        options->set || options->pin || options->pins || options->strategy)
        return refuse(
            error,
            "--planner, --granularity, --output, --certify, --budget, --effort, "
            "--segments, --for, --like, --set, "
            "--pin, --pins and --strategy are for MODEL CLUSTER; %s is a plan already",
            file);
    return g_file_test(file, G_FILE_TEST_EXISTS) ||
           refuse(error,
                  "expected MODEL CLUSTER or a plan's file, and there is no file "
                  "'%s'; see kilter plan --help",
                  file);
}

COMMAND(plan, Own, PLAN_OPTIONS, 0)
{
    g_auto(Evaluation) evaluation = {0};
    json_auto_t *like = NULL;
    double tokens;
    return take_options(own, &options->planner, error) &&
           (argc > 2 || check_shown(argv[1], own, options, error)) &&
           (!own->tokens || days_read_tokens(own->tokens, &tokens, error)) &&
           command_for(options, own->target, error) &&
           (!own->like ||
            plan_like(own->like, &argv[1], argv[2], &own->how, options, &like, error)) &&
           command_ask(&own->how, argc, own->effort, own->certify || own->segments,
                       options, error) &&
           (!own->output || output_check(own->output, error)) &&
           ((command_evaluate(&own->how, argc, argv, NULL, options, &evaluation, error) &&
             plan_report(&evaluation, own, argc > 2, like, options, error)) ||
            plan_tell_unread(like, error));
}
