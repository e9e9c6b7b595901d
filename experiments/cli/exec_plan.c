/* The plan that kilter exec runs. */
#include "experiments/cli/exec_plan.h"

#include "data/base/free.h"

CLEAR_DEFINE(exec_plan_clear, ExecPlan, source, command_planning_clear(&source->how),
             let_go(source->plan, plan_free), let_go(source->graph, graph_free));

static bool read_file(ExecPlan *source, const char *file, const CommandOptions *options,
                      GError **error)
{
    if (source->how.planner || source->how.granularity || options->set ||
        command_changes(&source->how))
        return refuse(error,
                      "--planner, --granularity, --set, --only, --without, --add and "
                      "--scale are for MODEL CLUSTER; %s is a plan already",
                      file);
    source->plan = plan_read(file, &source->graph, error);
    return source->plan != NULL;
}

static bool plan_model(ExecPlan *source, const char *model, const char *cluster_name,
                       const CommandOptions *options, GError **error)
{
    g_auto(CommandSetting) setting = {0};
    if (!command_setting(&source->how, cluster_name, &setting, error))
        return false;
    g_autoptr(ClusterView) view = cluster_view(setting.cluster, setting.granularity);
    g_autoptr(Question) question =
        question_open(setting.planner, model, view, &options->planner, error);
    g_autoptr(Answer) answer =
        question ? question_answer(question, cluster_name, NULL, error) : NULL;
    if (!answer)
        return false;
    g_autoptr(ClusterView) chosen = answer_take_view(answer);
    source->plan = answer_take_plan(answer);
    source->plan->cluster_text = cluster_json_text((chosen ? chosen : view)->cluster);
    source->graph = question_graph(question);
    return true;
}

bool exec_plan_obtain(ExecPlan *source, int argc, char **argv,
                      const CommandOptions *options, GError **error)
{
    return argc == 2 ? read_file(source, argv[1], options, error)
                     : plan_model(source, argv[1], argv[2], options, error);
}

bool exec_plan_half(const Graph *graph, bool cuda, ExecNumbers *half, GError **error)
{
    const Precision precision = graph_precision(graph);
    const StateFormats states = graph_states(graph);
    const Numbers numbers = precision_numbers(precision);
    *half = EXEC_PLAIN;
    for (StateKind state = 0; state < STATE_KINDS; state++)
        if (states.of[state] > DTYPE_F32 && states.of[state] != DTYPE_NONE)
            return refuse(error,
                          "model '%s': %s: expected fp32 or formats of two bytes where "
                          "something is timed",
                          graph_name(graph), STATE_KEYS[MIN(state, STATE_MOMENT)]);
    if (states.of[STATE_WEIGHTS] == DTYPE_NONE)
        return refuse(error,
                      "model '%s': weights: expected ones that lie there where something "
                      "is timed, not such as are made from a master copy",
                      graph_name(graph));
    if (numbers == NUMBERS_F32)
        return true;
    *half = numbers == NUMBERS_BF16 ? EXEC_BF16 : EXEC_FP16;
    return (cuda && precision_least_numbers(precision) == numbers) ||
           refuse(error,
                  "model '%s': precision=%s: %s runs in float32 or float64; time it with "
                  "precision=single%s",
                  graph_name(graph), precision_name(precision),
                  cuda ? "what is timed in other than fp16 and bf16"
                       : "what is timed on CPUs",
                  cuda ? "" : ", or on GPUs (--backend cuda)");
}
