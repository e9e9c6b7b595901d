/* Planners by regret. */
#include "experiments/sweep/league.h"

#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "data/base/order.h"
#include "data/models/model.h"
#include "data/store/store.h"

/* The outcome of one configuration of an experiment. */
typedef struct {
    bool known;
    double time_s, planning_s; /* INFINITY: no plan */
    char *reason;              /* why there is none; NULL: there is one */
} Outcome;

static CLEAR_DEFINE(clear_outcome, Outcome, data, g_free(data->reason));

typedef struct {
    const Experiment *experiment;
    Outcome *outcome;     /* [configuration] */
    GHashTable *by_order; /* ordinal -> 1 + configuration */
    uint32_t known;
} Reading;

static void take_row(uint32_t n_columns, char **value, char **column, void *data)
{
    Reading *r = data;
    (void)column;
    g_assert(n_columns == 5);
    const uint32_t ordinal = (uint32_t)g_ascii_strtoull(value[0], NULL, 10);
    const uint32_t at =
        GPOINTER_TO_UINT(g_hash_table_lookup(r->by_order, GUINT_TO_POINTER(ordinal)));
    if (at == 0)
        return;
    const bool fits = value[1] && value[2] && strcmp(value[1], "ok") == 0;
    r->known += !r->outcome[at - 1].known;
    clear_outcome(&r->outcome[at - 1]);
    r->outcome[at - 1] =
        (Outcome){.known = true,
                  .time_s = fits ? g_ascii_strtod(value[2], NULL) : INFINITY,
                  .planning_s = value[3] ? g_ascii_strtod(value[3], NULL) : 0,
                  .reason = fits       ? NULL
                            : value[4] ? g_strdup(value[4])
                                       : g_strdup(value[1])};
}

static bool read_outcomes(Reading *r, Store *store, GError **error)
{
    const uint32_t n = experiment_count(r->experiment);
    for (uint32_t i = 0; i < n; i++)
        g_hash_table_insert(r->by_order,
                            GUINT_TO_POINTER(experiment_at(r->experiment, i)->ordinal),
                            GUINT_TO_POINTER(i + 1));
    return experiment_select(r->experiment, store, error) &&
           store_query(store,
                       "SELECT ordinal, status, iteration_time_s, search_time_s + "
                       "balance_time_s, message FROM result ORDER BY ordinal",
                       take_row, r, error);
}

/* --- meetings --- */

static bool meet(const Configuration *a, const Configuration *b)
{
    return a->cluster == b->cluster && g_strcmp0(a->fidelity, b->fidelity) == 0 &&
           strcmp(a->canonical_model, b->canonical_model) == 0;
}

/* The least time of a configuration's meeting, and the bound there; NaN: not known. */
typedef struct {
    double best_s, bound_s;
} Meeting;

/* No plan of the configuration is faster; 0: not known. Planners that choose a planner may take any
 * runtime. */
static double bound_of(const Configuration *c, const Graph *graph)
{
    const char *own =
        c->planner ? planner_runtime(c->planner, c->options, c->cluster) : NULL;
    const bool any = c->planner && !own && cluster_is_bare(c->cluster);
    const char *const only[] = {own, NULL};
    g_auto(GStrv) all = any ? runtime_names() : NULL;
    const char *const *name = all ? (const char *const *)all : only;
    double least_s = INFINITY;
    do {
        g_autoptr(ClusterView) view =
            planner_view(c->options, *name, c->cluster, granularity_default(c->cluster));
        least_s = fmin(least_s, view ? sim_compute_bound_s(graph, view) : 0);
    } while (*name && *++name);
    return least_s;
}

/* The least time of the configurations that meet this one, and their least bound. */
static Meeting meeting_of(const Reading *r, uint32_t i)
{
    const Configuration *c = experiment_at(r->experiment, i);
    g_autoptr(Graph) graph =
        model_build(c->canonical_model, cluster_gpus(c->cluster), NULL, NULL);
    Meeting m = {INFINITY, graph ? INFINITY : 0};
    for (uint32_t k = i; k < experiment_count(r->experiment); k++) {
        const Configuration *other = experiment_at(r->experiment, k);
        if (!meet(other, c))
            continue;
        if (r->outcome[k].known)
            m.best_s = fmin(m.best_s, r->outcome[k].time_s);
        if (graph &&
            (k == i || cluster_is_bare(c->cluster))) /* prices differ by runtime */
            m.bound_s = fmin(m.bound_s, bound_of(other, graph));
    }
    m.bound_s = m.bound_s > 0 && isfinite(m.bound_s) ? m.bound_s : NAN;
    return m;
}

static Meeting *find_meetings(const Reading *r)
{
    const uint32_t n = experiment_count(r->experiment);
    Meeting *meeting = g_new(Meeting, n);
    for (uint32_t i = 0; i < n; i++) {
        const Configuration *c = experiment_at(r->experiment, i);
        uint32_t first = 0;
        while (!meet(experiment_at(r->experiment, first), c))
            first++;
        if (first < i) {
            meeting[i] = meeting[first];
            continue;
        }
        meeting[i] = meeting_of(r, i);
    }
    return meeting;
}

/* --- rows --- */

static CLEAR_DEFINE(clear_row, LeagueRow, data, g_array_unref(data->refusal));

static LeagueRow *row_of(GArray *rows, const char *entry)
{
    for (uint32_t i = 0; i < rows->len; i++)
        if (strcmp(g_array_index(rows, LeagueRow, i).entry, entry) == 0)
            return &g_array_index(rows, LeagueRow, i);
    LeagueRow row = {.entry = entry, .refusal = array_owning(LeagueRefusal, free_first)};
    g_array_append_val(rows, row);
    return &g_array_index(rows, LeagueRow, rows->len - 1);
}

static void add_refusal(LeagueRow *row, const char *reason)
{
    array_each (LeagueRefusal, known, row->refusal) {
        if (strcmp(known->reason, reason) == 0) {
            known->results++;
            return;
        }
    }
    const LeagueRefusal refusal = {g_strdup(reason), 1};
    g_array_append_val(row->refusal, refusal);
}

static ORDER_DEFINE(by_results, LeagueRefusal, DESCENDING(results), BY_NAME(reason));

static void add_outcome(LeagueRow *row, const Outcome *outcome, const Meeting *meeting)
{
    row->asked += outcome->known;
    if (outcome->reason)
        add_refusal(row, outcome->reason);
    if (!outcome->known || outcome->reason)
        return;
    const double regret = outcome->time_s / meeting->best_s,
                 gap = outcome->time_s / meeting->bound_s;
    row->plans++;
    row->firsts += outcome->time_s == meeting->best_s;
    row->regret += log(regret);
    row->gap += log(gap);
    row->worst_regret = fmax(row->worst_regret, regret - 1);
    row->worst_gap = fmax(row->worst_gap, gap - 1);
    row->planning_s += outcome->planning_s;
}

static gint by_rank(gconstpointer a, gconstpointer b)
{
    const LeagueRow *x = a, *y = b;
    if (x->plans != y->plans)
        return x->plans > y->plans ? -1 : 1;
    const bool bounds = !isnan(x->gap) && !isnan(y->gap);
    const double s = bounds ? x->gap : x->regret, t = bounds ? y->gap : y->regret;
    if (s != t)
        return s < t ? -1 : 1;
    return strcmp(x->entry, y->entry);
}

GArray *league_of(const Experiment *experiment, Store *store, uint32_t *missing,
                  GError **error)
{
    const uint32_t n = experiment_count(experiment);
    g_autoptr(GArray) outcomes = array_owning(Outcome, clear_outcome);
    g_array_set_size(outcomes, n);
    Outcome *outcome = (Outcome *)(void *)outcomes->data;
    g_autoptr(GHashTable) by_order = g_hash_table_new(NULL, NULL);
    Reading r = {experiment, outcome, by_order, 0};
    for (uint32_t i = 0; i < n; i++)
        if (!experiment_at(experiment, i)->planner)
            return refused(error, "experiment %s has no planners to compare",
                           experiment_name(experiment));
    if (!read_outcomes(&r, store, error))
        return NULL;
    *missing = n - r.known;
    if (r.known == 0) {
        kilter_fail(error, KILTER_ERROR_FAILED,
                    "the store has none of the %u results of experiment %s; kilter sweep "
                    "makes them",
                    n, experiment_name(experiment));
        return NULL;
    }
    g_autofree Meeting *meeting = find_meetings(&r);
    GArray *rows = array_owning(LeagueRow, clear_row);
    for (uint32_t i = 0; i < n; i++) {
        const Configuration *c = experiment_at(experiment, i);
        add_outcome(row_of(rows, configuration_asked(c, "").entry), &outcome[i],
                    &meeting[i]);
    }
    array_each (LeagueRow, row, rows) {
        row->regret = row->plans > 0 ? exp(row->regret / row->plans) - 1 : NAN;
        row->gap = row->plans > 0 ? exp(row->gap / row->plans) - 1 : NAN;
        row->planning_s = row->plans > 0 ? row->planning_s / row->plans : 0;
        g_array_sort(row->refusal, by_results);
    }
    g_array_sort(rows, by_rank);
    return rows;
}
