/* kilter planners. */
#include "experiments/cli/command.h"
#include "experiments/cli/screen.h"

COMMAND_PLAIN(planners)
{
    command_report(options, planners_json(),
                   "[*planners:{name:-16} {description} ({source})\n]", NULL);
    g_autofree char *help = planner_options_help();
    if (!options->json && !options->quiet)
        screen_print(stdout, "\n%s\n", help);
    return true;
}
