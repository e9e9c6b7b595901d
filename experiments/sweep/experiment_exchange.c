/* Experiments on collectives alone. */
#include "experiments/sweep/experiment_parts.h"

#include "experiments/sweep/result.h"

static bool add_exchange(const Source *source, const Cluster *cluster, uint32_t index,
                         Granularity granularity, GError **error)
{
    const Exchanges *e = &source->file->exchange;
    const char *name = e->cluster[index];
    for (uint32_t i = 0; i < e->n_kind * e->n_bytes * e->n_share; i++) {
        GError *cause = NULL;
        Configuration *configuration = configuration_of_exchange(
            e->kind[i / e->n_share / e->n_bytes], e->bytes[i / e->n_share % e->n_bytes],
            e->share[i % e->n_share], name, cluster, granularity, &cause);
        if (!configuration)
            return experiment_fail_entry(source, "exchange.kind",
                                         i / e->n_share / e->n_bytes, cause, error);
        experiment_add_configuration(source->experiment, configuration);
        if (!result_identify(configuration, source->experiment->parts->pdata[index],
                             error))
            return false;
    }
    return true;
}

bool experiment_fill_exchanges(const Source *source, GError **error)
{
    const Exchanges *e = &source->file->exchange;
    if (!e->n_kind || !e->n_bytes || !e->n_share || !e->n_cluster)
        return yaml_fail(source->yaml, error, "exchange",
                         "expected at least one kind, bytes, share and cluster");
    Granularity granularity = GRANULARITY_GPU;
    const char *wanted = source->change->granularity ? source->change->granularity
                         : e->n_granularity          ? e->granularity[0]
                                                     : "gpu";
    if (e->n_granularity > 1)
        return yaml_fail(source->yaml, error, "exchange.granularity",
                         "expected one granularity");
    if (!granularity_find(wanted, &granularity, error))
        return false;
    for (uint32_t i = 0; i < e->n_cluster; i++) {
        GError *cause = NULL;
        Cluster *cluster = cluster_load(e->cluster[i], &cause);
        if (!cluster)
            return experiment_fail_entry(source, "exchange.cluster", i, cause, error);
        g_ptr_array_add(source->experiment->clusters, cluster);
        if (!experiment_add_part(source->experiment, cluster, error) ||
            !add_exchange(source, cluster, i, granularity, error))
            return false;
    }
    return true;
}
