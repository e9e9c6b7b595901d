/* kilter league: the planners of an experiment, ranked. */
#include <stdio.h>

#include "data/base/json.h"
#include "data/store/store.h"
#include "experiments/answers.h"
#include "experiments/cli/command.h"
#include "experiments/figures/figure.h"
#include "experiments/sweep/league.h"

/* clang-format off */
#define LEAGUE_OPTIONS(X)      \
    X(FILE, database, "db", 0) \
    X(FILE, folder, "plot", 0)
/* clang-format on */
COMMAND_OPTIONS(Own, league_options, LEAGUE_OPTIONS)

static json_t *refusals_json(const GArray *refusals)
{
    json_t *list = json_array();
    array_each (const LeagueRefusal, refusal, refusals)
        json_array_append_new(list,
                              json_pack("{s:i, s:s}", "results", (int)refusal->results,
                                        "reason", refusal->reason));
    return list;
}

static json_t *league_rows_json(const GArray *rows)
{
    json_t *list = json_array();
    array_at (const LeagueRow, row, i, rows) {
        const bool any = row->plans > 0;
        json_array_append_new(
            list,
            json_pack("{s:i, s:s, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "rank",
                      (int)i + 1, "planner", row->entry, "results", (int)row->asked,
                      "plans", (int)row->plans, "fastest", (int)row->firsts, "regret",
                      json_number(row->regret), "worst_regret",
                      any ? json_number(row->worst_regret) : json_null(), "gap",
                      json_number(row->gap), "worst_gap",
                      any ? json_number(row->worst_gap) : json_null(), "planning_s",
                      json_number(row->planning_s), "refusals",
                      refusals_json(row->refusal)));
    }
    return list;
}

/* One row per planner: place, name, regret, worst regret, gap in percent. */
static bool league_draw(const GArray *rows, const char *folder, GError **error)
{
    g_autoptr(GString) text = g_string_new("# rank\tplanner\tregret\tworst\tgap\n");
    array_at (const LeagueRow, row, i, rows) {
        if (row->plans > 0)
            g_string_append_printf(text, "%u\t%s\t%.6g\t%.6g\t%.6g\n", i, row->entry,
                                   100 * row->regret, 100 * row->worst_regret,
                                   100 * row->gap);
    }
    return figure_draw_text("league", text->str, folder, error);
}

COMMAND(league, Own, LEAGUE_OPTIONS, 0)
{
    const ExperimentChange change = command_experiment_change(options, NULL);
    g_autoptr(Experiment) experiment = experiment_load(argv[1], &change, error);
    if (!experiment)
        return false;
    g_autofree char *usual = g_strdup_printf("out/%s.db", experiment_name(experiment));
    g_autoptr(Store) store =
        store_open_read(own->database ? own->database : usual, error);
    uint32_t missing;
    g_autoptr(GArray) rows = store ? league_of(experiment, store, &missing, error) : NULL;
    if (!rows || (own->folder && !league_draw(rows, own->folder, error)))
        return false;
    g_autofree char *figure = own->folder ? g_strdup_printf("%s/league.png %s/league.svg",
                                                            own->folder, own->folder)
                                          : NULL;
    command_report(options,
                   json_pack("{s:s, s:o, s:s, s:i, s:s?}", "experiment",
                             experiment_name(experiment), "planners",
                             league_rows_json(rows), "bound_over",
                             "every plan: computation alone, on all devices at once",
                             "missing", (int)missing, "figure", figure),
                   ANSWER_LEAGUE, NULL);
    return true;
}
