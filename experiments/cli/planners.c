/* kilter planners. */
#include "experiments/cli/command.h"
#include "experiments/cli/screen.h"

COMMAND_PLAIN(planners)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < planner_count(); i++) {
        g_auto(GStrv) about = planner_about(planner_at(i));
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s}", "name", planner_at(i)->name,
                                        "description", about[0], "source", about[1]));
    }
    command_report(options, list, "[*planners:{name:-16} {description} ({source})\n]",
                   NULL);
    g_autofree char *help = planner_options_help();
    if (!options->json && !options->quiet)
        screen_print(stdout, "\n%s\n", help);
    return true;
}
