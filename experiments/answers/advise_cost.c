/* The costs of choices of machines. */
#include "experiments/answers/advise_cost.h"

#include <math.h>
#include <string.h>

#include "data/base/units.h"
#include "data/cluster/change.h"
#include "data/cluster/sheet.h"

enum { SECONDS_AN_HOUR = 3600, JOULES_A_KWH = 3600000 };

/* Reads the numbers that texts give for device types; the last one of a type counts. */
static bool advise_cost_read(char **texts, const char *option, const char *expected,
                             const Cluster *cluster, GHashTable *numbers, GError **error)
{
    g_autofree char *joined = texts ? g_strjoinv(",", texts) : NULL;
    g_auto(GStrv) parts = joined ? g_strsplit(joined, ",", -1) : NULL;
    if (parts && !*parts)
        return refuse(error, "%s: expected %s, got ''", option, expected);
    for (char **part = parts; part && *part; part++) {
        char *equals = strchr(*part, '=');
        double value;
        if (!equals || !number_read(equals + 1, 0, 1e6, &value))
            return refuse(error, "%s: expected %s, got '%s'", option, expected, *part);
        *equals = '\0';
        g_autofree char *pattern = cluster_types_named(cluster, *part, error);
        if (!pattern)
            return kilter_prefix(error, "%s: ", option);
        items_each (const DeviceType, type, cluster->type, cluster->n_types)
            if (g_pattern_match_simple(pattern, type->name))
                g_hash_table_insert(numbers, g_strdup(type->name),
                                    g_memdup2(&value, sizeof value));
    }
    return true;
}

/* NaN: none. */
static double advise_cost_number(GHashTable *numbers, const DeviceType *type)
{
    const double *number = g_hash_table_lookup(numbers, type->name);
    return number ? *number : NAN;
}

bool advise_prices_read(char **price, char **power, const Cluster *cluster,
                        AdvisePrices *prices, GError **error)
{
    prices->price = text_table(g_free);
    prices->power = text_table(g_free);
    return advise_cost_read(price, "--price",
                            "DEVICE=DOLLARS per GPU and hour, such as h100=2.5", cluster,
                            prices->price, error) &&
           advise_cost_read(power, "--power", "DEVICE=WATTS per GPU, such as h100=700",
                            cluster, prices->power, error);
}

CLEAR_DEFINE(advise_prices_clear, AdvisePrices, prices,
             let_go(prices->price, g_hash_table_unref),
             let_go(prices->power, g_hash_table_unref));

/* Dollars per hour of a machine; NaN: not known. */
static double machine_price(const AdvisePrices *prices, const Cluster *cluster,
                            const Machine *machine)
{
    const double sum =
        sum_over(double, t, cluster->n_types,
                 machine_gpus_of(machine, t) > 0
                     ? machine_gpus_of(machine, t) *
                           advise_cost_number(prices->price, &cluster->type[t])
                     : 0);
    return isnan(sum) && machine->price > 0 ? machine->price : sum;
}

char *advise_unpriced(const AdvisePrices *prices, const Cluster *cluster)
{
    g_autoptr(GString) names = g_string_new("");
    for (uint32_t t = 0; t < cluster->n_types; t++)
        for (uint32_t i = 0; i < cluster->n_machines; i++)
            if (machine_gpus_of(&cluster->machine[i], t) > 0 &&
                isnan(machine_price(prices, cluster, &cluster->machine[i]))) {
                g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "",
                                       cluster->type[t].name);
                break;
            }
    return names->len > 0 ? g_string_free(g_steal_pointer(&names), FALSE) : NULL;
}

/* Watts of a GPU of the type: as the user says, of the cluster's file, or of the data sheet; NaN:
 * not known. */
static double type_power(const AdvisePrices *prices, const Sheets *sheets,
                         const DeviceType *type)
{
    const DeviceSheet *sheet = sheets ? sheets_device(sheets, type->name, NULL) : NULL;
    const double watts = advise_cost_number(prices->power, type);
    if (isnan(watts) && type->power_w > 0)
        return type->power_w;
    return isnan(watts) && sheet && sheet->power_w > 0 ? sheet->power_w : watts;
}

/* Adds up the dollars per hour and watts of the choice's GPUs; NaN if one of them is not known. */
static void add_up(const AdvisePrices *prices, const Sheets *sheets,
                   const Cluster *cluster, AdviseRow *row)
{
    row->dollars_an_hour = row->power_w = 0;
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        row->dollars_an_hour += machine_price(prices, cluster, &cluster->machine[i]);
    for (uint32_t t = 0; t < cluster->n_types; t++) {
        const double watts = type_power(prices, sheets, &cluster->type[t]);
        for (uint32_t i = 0; i < cluster->n_machines; i++)
            if (machine_gpus_of(&cluster->machine[i], t) > 0)
                row->power_w += machine_gpus_of(&cluster->machine[i], t) * watts;
    }
}

static void find_binding(const SimReport *report, const ClusterView *view, AdviseRow *row)
{
    const uint32_t most = sim_busiest(report);
    row->busiest = view->device[most].type_name;
    row->computes = report->busy_s[most] / report->iteration_time_s;
    row->communicates = report->comm_busy_s[most] / report->iteration_time_s;
    row->idles = report->idle_s[most] / report->iteration_time_s;
}

/* priced: the prices of all machines are known, not only of this choice's. */
static void fill_row(const AdvisePrices *prices, const Sheets *sheets, bool priced,
                     AdviseRow *row)
{
    const PortfolioChoice *choice = row->choice;
    add_up(prices, sheets, choice->cluster, row);
    if (!priced)
        row->dollars_an_hour = NAN;
    row->dollars_per_million = row->kwh_per_million = NAN;
    if (!choice->report)
        return;
    const SimWorkload work = sim_workload(choice->plan, choice->graph, choice->view);
    row->iteration_s = row->takes_s = choice->report->iteration_time_s;
    row->samples_per_s = work.samples / row->iteration_s;
    row->tokens_per_s = work.tokens / row->iteration_s;
    row->mfu = work.peak > 0 ? work.model_flops / (work.peak * row->iteration_s) : 0;
    const double rate = work.tokens > 0 ? row->tokens_per_s : row->samples_per_s;
    row->dollars_per_million = (row->dollars_an_hour / SECONDS_AN_HOUR +
                                choice->report->toll / row->iteration_s) /
                               rate * 1e6;
    row->kwh_per_million = row->power_w / rate * 1e6 / JOULES_A_KWH;
    find_binding(choice->report, choice->view, row);
}

double advise_cost(const AdviseRow *row)
{
    return isnan(row->dollars_an_hour)
               ? row->choice->gpus
               : row->dollars_an_hour * row->iteration_s / SECONDS_AN_HOUR +
                     (row->choice->report ? row->choice->report->toll : 0);
}

AdviseRow *advise_rows(const AdvisePrices *prices, const Portfolio *portfolio)
{
    const uint32_t n = portfolio->choices->len;
    AdviseRow *row = g_new0(AdviseRow, n);
    g_autoptr(Sheets) sheets = sheets_load(NULL);
    bool priced = true;
    for (uint32_t i = 0; i < n; i++) {
        const PortfolioChoice *choice = g_ptr_array_index(portfolio->choices, i);
        g_autofree char *unpriced = advise_unpriced(prices, choice->cluster);
        priced = priced && !unpriced;
    }
    for (uint32_t i = 0; i < n; i++) {
        row[i] = (AdviseRow){.choice = g_ptr_array_index(portfolio->choices, i),
                             .iteration_s = INFINITY,
                             .takes_s = INFINITY};
        fill_row(prices, sheets, priced, &row[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        row[i].front = isfinite(row[i].iteration_s);
        for (uint32_t k = 0; k < n; k++)
            if (k != i && row[k].iteration_s <= row[i].iteration_s &&
                advise_cost(&row[k]) <= advise_cost(&row[i]) &&
                (row[k].iteration_s < row[i].iteration_s ||
                 advise_cost(&row[k]) < advise_cost(&row[i]) || k < i))
                row[i].front = false;
    }
    return row;
}

const AdviseRow *advise_within(const AdviseRow *row, uint32_t n, double target_s,
                               double tokens_per_s)
{
    const AdviseRow *best = NULL;
    for (uint32_t i = 0; i < n; i++)
        if (isfinite(row[i].takes_s) && row[i].takes_s <= target_s &&
            row[i].tokens_per_s >= tokens_per_s &&
            (!best || advise_cost(&row[i]) < advise_cost(best)))
            best = &row[i];
    return best;
}

char *advise_binds(const AdviseRow *row)
{
    if (!row->busiest)
        return NULL;
    if (row->communicates > row->computes && row->communicates > row->idles)
        return g_strdup("communication");
    if (row->idles > row->computes)
        return g_strdup("waiting");
    return g_strdup_printf("computation of %s", row->busiest);
}
