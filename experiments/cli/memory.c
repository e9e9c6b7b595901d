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
            "Shows what the memory of the fullest GPU of each type holds at its peak, "
            "for a plan that is\n"
            "read or made as by kilter plan.\n"
            "\n"
            "  weights      parameters as they are kept between iterations\n"
            "  gradients    gradients of parameters\n"
            "  optimizer    optimizer states, with float32 copies of parameters\n"
            "  activations  results of the forward pass that the backward pass needs\n"
            "  buffers      short-lived tensors: gradients of activations, gathered "
            "parameters, ...\n"
            "  runtime      memory of the driver and libraries, from the cluster's file\n"
            "\n"
            "With --set runtime=NAME (a file of data/runtimes, such as pytorch-ddp) the "
            "memory that the\n"
            "framework holds beside the plan counts too: gradients between iterations, "
            "copies of gradients\n"
            "and logits (as buffers), and the rest (as runtime).\n"
            "\n"
            "Offloading to the host is not modelled. The exit status is 3 if the plan "
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
    /* The table is printed whether the plan fits or not; the exit status says whether it does. */
    return command_check_fits(&evaluation, error);
}
