/* AMP's published predictions: the faithful reading of its cost model on the profile, the clusters
 * and the strategies of its artifact, all of them (../shared/measured/amp). The layers are the
 * profile's, with the parameters and messages of model_specs.csv; the numbers may change only with
 * that file. */
#include "synth/synth.h"
#include "tests/support/rows.h"

static const double TOLERANCE_S = 2e-3;

enum { MAX_LAYERS = 64, DEVICES = 16, DEGREES = 3, BYTES = 4 };

/* One of the artifact's experiments: the rows of its layers, by index of the profile. */
typedef struct {
    const char *name, *cluster, *model, *type;
    uint32_t global_batch;
    double output;    /* elements */
    double embedding; /* parameters of the first layer */
} Experiment;

static const Experiment EXPERIMENTS[] = {
    {"homogeneous", "amp-homogeneous", "gpt2", "t4", 32, 1024 * 1024, 52256.0 * 1024},
    {"het_model", "amp-het-model", "transgan", "v100", 64, 1024 * 81, 0},
};

typedef struct {
    AmpModel *model;
    AmpCluster *cluster;
    uint32_t index[MAX_LAYERS]; /* index of each layer in the profile */
} Setup;

static double parameters_of(const Experiment *e, const LayerTime *time)
{
    const bool narrow = strcmp(time->kind, "transformer_h16") == 0;
    const double width = narrow ? 16 : 1024;
    return g_str_has_prefix(time->kind, "transformer") ? 12 * width * width
           : time->layer == 0                          ? e->embedding
                                                       : 0;
}

/* The layers of the profile that count: all of gpt2, and the first and the transformer layers of
 * transgan. */
static AmpModel *read_model(const Experiment *e, const LayerProfile *profile,
                            uint32_t *index)
{
    AmpModel *model = NULL;
    for (uint32_t g = 0; g < DEGREES; g++) {
        g_autoptr(GPtrArray) times =
            layer_profile_select(profile, e->type, e->model, 1u << g, 1);
        assert_in_range(times->len, 25, 30);
        if (!model)
            model = synth_amp_model_new(times->len, 1, DEGREES, 1);
        model->degree[g] = 1u << g;
        for (guint l = 0; l < times->len; l++) {
            const LayerTime *time = times->pdata[l];
            const size_t at = g * (size_t)times->len + l;
            index[l] = time->layer;
            synth_amp_times(model, 0, g, 0)[l] = 3 * time->forward_s;
            model->gradient[at] = BYTES * parameters_of(e, time) / model->degree[g];
            model->output[at] = BYTES * (strcmp(time->kind, "embed2v") == 0
                                             ? 1024.0 * 52256 / model->degree[g]
                                             : e->output);
        }
    }
    model->size[0] = 1;
    model->global_batch = e->global_batch;
    return model;
}

static AmpCluster *load_cluster(const char *name)
{
    GError *error = NULL;
    g_autoptr(Cluster) cluster = cluster_load(name, &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    AmpCluster *amp = synth_amp_cluster(view, &error);
    assert_no_error(error);
    assert_true(synth_amp_connect(amp, view, &error));
    return amp;
}

/* The layers at which the stages of "0 9 15 21 30" start. */
static void read_cuts(const Setup *setup, const char *text, uint32_t *first)
{
    g_auto(GStrv) cut = g_strsplit(text, " ", -1);
    for (uint32_t i = 0; cut[i]; i++) {
        const uint32_t at = (uint32_t)g_ascii_strtoull(cut[i], NULL, 10);
        first[i] = 0;
        while (first[i] < setup->model->n_layers && setup->index[first[i]] < at)
            first[i]++;
    }
}

static uint32_t count_in(const Csv *csv, const char *column)
{
    return (uint32_t)test_number(csv, column);
}

/* The search result with which the rows of an experiment are compared. */
typedef struct {
    const Experiment *experiment;
    Setup setup;
    AmpOptions options;
    GArray *found; /* AmpCandidate */
    uint32_t rows;
} Check;

static void check_cost(Check *check, const Csv *csv)
{
    uint32_t first[DEVICES + 1], device[DEVICES];
    for (uint32_t d = 0; d < DEVICES; d++)
        device[d] = d;
    const AmpModel *model = check->setup.model;
    const AmpStrategy strategy = {.pp = count_in(csv, "pp"),
                                  .dp = count_in(csv, "dp"),
                                  .tmp = count_in(csv, "tmp"),
                                  .mbs = count_in(csv, "mbs"),
                                  .chunks = 1,
                                  .first = first,
                                  .device = device};
    read_cuts(&check->setup, csv_text(csv, "ds_partition"), first);
    assert_int_equal(first[strategy.pp], model->n_layers);
    const AmpCost cost =
        synth_amp_cost(model, check->setup.cluster, &check->options, &strategy);
    const struct {
        const char *column;
        double got;
    } term[] = {{"bubble_term_(B-1)max", cost.bubble_s},
                {"sum_exec", cost.stages_s},
                {"sum_p2p", cost.transfers_s},
                {"dp_allreduce", cost.sync_s},
                {"total", cost.total_s}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(term); i++)
        if (!(fabs(term[i].got - test_number(csv, term[i].column)) <= TOLERANCE_S))
            fail_msg("%s %s: %s is %.5f", check->experiment->name,
                     csv_text(csv, "pred_rank"), term[i].column, term[i].got);
}

/* The strategy is found, with an objective (the paper's Eq. 5) no higher than the artifact's. */
static void check_found(const Check *check, const Csv *csv)
{
    bool seen = false;
    for (guint k = 0; k < check->found->len; k++) {
        const AmpCandidate *c = &g_array_index(check->found, AmpCandidate, k);
        if (c->strategy.pp != count_in(csv, "pp") ||
            c->strategy.dp != count_in(csv, "dp") ||
            c->strategy.mbs != count_in(csv, "mbs"))
            continue;
        seen = true;
        assert_at_most(c->cost.bubble_s + c->cost.stages_s + c->cost.transfers_s,
                       test_number(csv, "bubble_term_(B-1)max") +
                           test_number(csv, "sum_exec") + test_number(csv, "sum_p2p") +
                           5e-5);
    }
    assert_true(seen);
}

static bool check_row(const Csv *csv, void *data, GError **error)
{
    (void)error;
    Check *check = data;
    if (!test_is(csv, "experiment", check->experiment->name))
        return true;
    check_cost(check, csv);
    check_found(check, csv);
    check->rows++;
    return true;
}

/* The artifact's strategies have the artifact's costs; the search finds all of them and no
 * others. */
static void test_published_predictions(void **state)
{
    (void)state;
    const char *terms = test_shared("measured/amp/predicted_cost_terms.csv"),
               *costs = test_shared("measured/amp/known_cost.csv");
    if (!terms || !costs)
        skip();
    g_autoptr(GError) error = NULL;
    g_autoptr(LayerProfile) profile = layer_profile_read(costs, &error);
    assert_no_error(error);
    uint32_t rows = 0;
    for (uint32_t i = 0; i < G_N_ELEMENTS(EXPERIMENTS); i++) {
        Check check = {.experiment = &EXPERIMENTS[i], .options = {.faithful = true}};
        Setup *setup = &check.setup;
        setup->cluster = load_cluster(EXPERIMENTS[i].cluster);
        setup->model = read_model(&EXPERIMENTS[i], profile, setup->index);
        check.found = synth_amp_search(setup->model, setup->cluster, &check.options,
                                       AMP_SEARCH, NULL, &error);
        assert_no_error(error);
        test_rows(terms, check_row, &check);
        assert_int_equal(check.rows, check.found->len);
        rows += check.rows;
        g_array_unref(check.found);
        synth_amp_model_free(setup->model);
        synth_amp_cluster_free(setup->cluster);
    }
    assert_int_equal(rows, 118);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_predictions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
