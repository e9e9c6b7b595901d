/* Fuzz target: lines "key=value" set options of planners and the simulation, or are refused;
 * setting an option to its own text again changes nothing. */
#include <string.h>

#include "experiments/sweep/configuration.h"
#include "tests/fuzz/fuzz.h"

/* Options that name files are read elsewhere. */
static bool names_file(const char *line)
{
    return strchr(line, '/') != NULL;
}

static void check_again(const PlannerOptions *options)
{
    PlannerOptions again;
    g_auto(GStrv) list = planner_options_list(options, NULL);
    planner_options_init(&again);
    for (char **pair = list; pair && pair[0]; pair += 2)
        if (*pair[1] && strlen(pair[1]) != 64) /* unless it is the checksum of a file */
            fuzz_check(planner_options_set(&again, pair[0], pair[1], NULL),
                       "an option's text can be set");
}

bool fuzz_read(const void *data, size_t size)
{
    g_autofree char *text = g_strndup(data, size);
    g_auto(GStrv) lines = g_strsplit(text, "\n", 16);
    PlannerOptions options;
    bool good = true;
    planner_options_init(&options);
    for (char **line = lines; good && *line; line++) {
        g_autoptr(GError) error = NULL;
        if (!**line)
            continue;
        if (names_file(*line))
            return false;
        good = option_assign(&options, *line, &error);
        fuzz_check(good == !error, "either it is set or an error");
        if (!good)
            fuzz_check_refused(error, NULL);
    }
    if (good)
        check_again(&options);
    return good;
}
