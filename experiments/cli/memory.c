/* kilter memory. */
#include "experiments/cli/plan_words.h"

static const char TEXT[] =
    "{model} on {cluster} with {planner}\n" PLAN_TEXT_STRATEGY PLAN_TEXT_MEMORY;

bool cmd_memory(int argc, char **argv, GError **error)
{
    g_auto(CommandOptions) options = {0};
    g_auto(CommandPlanning) how = {0};
    const GOptionEntry entries[] = {COMMAND_PLANNING_ENTRIES(how),
                                    COMMAND_CHANGE_ENTRIES(how),
                                    COMMAND_PIN_ENTRIES(&options), G_OPTION_ENTRY_NULL};
    const CommandSyntax syntax = {
        .name = "memory",
        .arguments = "MODEL CLUSTER | PLAN.json",
        .min_arguments = 1,
        .max_arguments = 2,
        .summary =
            "Says what the memory of the fullest GPU of each type holds at its "
            "peak, of a plan "
            "that is made\nas by kilter plan, or read.\n\n"
            "  weights      parameters as they lie between iterations\n"
            "  gradients    of parameters\n"
            "  optimizer    its states, with float32 copies of parameters\n"
            "  activations  what the forward makes and keeps for the backward\n"
            "  buffers      gradients of activations, gathered parameters and the "
            "like, in "
            "flight\n"
            "  runtime      what the cluster's file says that driver and "
            "libraries take\n\n"
            "With --set runtime=NAME (a file of data/runtimes, as pytorch-ddp) what "
            "that framework holds beside the\nplan counts, too: gradients between "
            "iterations, copies of gradients and logits as buffers, the rest as "
            "runtime.\n\n"
            "Nothing is offloaded to the host: that is not modelled. Exit status "
            "3 if the plan "
            "does not fit.",
        .example =
            "kilter memory gpt2:batch=8 hap-a100-4 --planner dp-ev --set recompute=full",
        .entries = entries,
    };
    g_auto(Evaluation) evaluation = {0};
    if (!command_parse(&syntax, &argc, argv, &options, error) ||
        !command_evaluate(&how, argc, argv, NULL, &options, &evaluation, error))
        return false;
    if (!command_is_silent(&options))
        command_report(&options, command_evaluation_json(&evaluation, options.verbose),
                       TEXT, NULL);
    /* The table is the answer, whether the plan fits or not; the exit status says which. */
    return command_check_fits(&evaluation, error);
}
