/* Every key of a strategy changes the program, its time or its memory, whatever else the strategy
 * says and however ops are priced, or is refused with a reason that names it. */
#include <string.h>

#include "tests/support/made_plan.h"

#define GPT                                                                              \
    "gpt2:layers=4,hidden=16,heads=4,ffn=24,seq=8,vocab=24,global_batch=24,dropout=0.1," \
    "optimizer=adam"
#define MIXTRAL                                                                         \
    "mixtral:layers=4,hidden=16,heads=4,kv_heads=2,ffn=24,seq=8,vocab=24,global_batch=" \
    "24,experts=4,capacity_factor=0,optimizer=adam"

/* Devices without and with kernels, and what ops take on them. */
static const struct {
    const char *cluster, *costs;
} PRICED[] = {{"star:hosts=8,bandwidth=1Gb/s,latency=5us", ""},
              {"dgx-h100", "costs=shares runtime=none "},
              {"dgx-h100", "costs=kernels runtime=none "}};

/* Values that say something else than the defaults, separated by '|'. */
static const struct {
    const char *key, *values;
} VALUES[] = {
    {"pp", "2|4"},
    {"dp", "3|16"},
    {"tp", "2|4"},
    {"cp", "2"},
    {"cp_comm", "a2a|p2p|a2a+p2p"},
    {"a2a_ranks", "2"},
    {"ep", "2|4"},
    {"etp", "1"},
    {"imbalance", "1.5"},
    {"expert_tokens", "1,2,3,4|3,1,1,1|1,1,1,1;2,1,1,1;1,1,1,1;1,1,1,3"},
    {"micro_batch", "2"},
    {"microbatches", "2|4"},
    {"pieces", "2|3"},
    {"schedule",
     "gpipe|interleaved|zb-h1|zb-h2|breadth-first|zb-v|v-half|v-min|dualpipev|dualpipe"},
    {"virtual_stages", "3"},
    {"layers", "1,3|2,1,2,1"},
    {"cuts", "2|1,3,4"},
    {"stage_tp", "2,1|1,2,2,1"},
    {"stage_dp", "4,2|1,2,4,1"},
    {"stage_cp", "2,1|1,2|2,1,1"},
    {"stage_ep", "2,1|1,2|1,1,2"},
    {"stage_zero", "0,1|3,1|1,2,0"},
    {"stage_micro_batch", "2,2|1,2|1,2,1"},
    {"ranks", "7,6,5,4,3,2,1,0|4,5,6,7;0,1,2,3|6,7;4,5;2,3;0,1"},
    {"pipeline_layers", "4;2,2"},
    {"pipeline_shares", "2,1"},
    {"shares", "1,2|1,2,3,2"},
    {"recompute", "selective|full|full@1-2"},
    {"sequence_parallel", "on"},
    {"zero", "1|2|3"},
    {"zero_ranks", "1|2"},
    {"offload", "optimizer|activations|optimizer+activations"},
    {"sync_every", "4"},
};

static const char *const BASE[] = {
    "",
    "pp=2 tp=2 microbatches=4",
    "pp=4 tp=2 microbatches=4",
    "pp=4 tp=2 microbatches=4 sequence_parallel=on",
    "pp=4 microbatches=4 recompute=full",
    "pp=2 microbatches=4 schedule=zb-h1",
    "pp=2 tp=4 microbatches=2 schedule=interleaved sequence_parallel=on",
    "tp=2 zero=3 microbatches=2",
    "dp=2 cp=2 tp=2",
    "dp=2 cp=4 cp_comm=a2a+p2p a2a_ranks=2",
    "dp=4 ep=2 tp=2",
    "pp=2 dp=2 tp=2 ep=4",
    "pp=2 dp=4 zero=1",
    "pipeline_layers=4;2,2 microbatches=4",
    "stage_tp=2,1,1 stage_dp=2,2,2 microbatches=2",
    "stage_tp=1,1,1 stage_dp=4,2,2 microbatches=3 ep=2",
    "stage_dp=2,1,2 stage_cp=1,2,2 microbatches=2",
    "pp=2 dp=4 stage_ep=4,1 microbatches=2",
};

static bool is_like(const Made *a, const Made *b)
{
    const Program *x = a->plan->program, *y = b->plan->program;
    bool like = x->n == y->n && x->n_groups == y->n_groups &&
                x->n_microbatches == y->n_microbatches &&
                memcmp(x->instr, y->instr, x->n * sizeof *x->instr) == 0;
    for (uint32_t g = 0; like && g < x->n_groups; g++)
        like = x->group[g].n_replicas == y->group[g].n_replicas &&
               x->group[g].n_devices == y->group[g].n_devices &&
               memcmp(x->group[g].device, y->group[g].device,
                      (size_t)x->group[g].n_replicas * x->group[g].n_devices *
                          sizeof(uint32_t)) == 0;
    for (uint32_t j = 0; like && j < a->plan->n_devices; j++)
        like = a->plan->ratio[j] == b->plan->ratio[j] &&
               a->plan->memory_bytes[j] == b->plan->memory_bytes[j];
    return like && a->plan->iteration_time_s == b->plan->iteration_time_s;
}

static void check_value(const char *model, const char *cluster, const Made *base,
                        const char *set, const char *key, const char *value)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *with = g_strdup_printf("%s %s=%s", set, key, value);
    g_auto(Made) made = make("manual", model, cluster, with, &error);
    if (!made.plan && (error->code != KILTER_ERROR_INPUT || !*error->message))
        fail_msg("%s with %s: %s", model, with, error->message);
    if (made.plan && base->plan && is_like(&made, base))
        fail_msg("%s with %s: %s has no effect", model, with, key);
}

static bool has_key(const char *set, const char *key)
{
    g_auto(GStrv) pair = g_strsplit(set, " ", -1);
    for (uint32_t i = 0; pair[i]; i++)
        if (g_str_has_prefix(pair[i], key) && pair[i][strlen(key)] == '=')
            return true;
    return false;
}

static void check_base(const char *model, const char *cluster, const char *set)
{
    g_autoptr(GError) error = NULL;
    g_auto(Made) base = make("manual", model, cluster, set, &error);
    if (!base.plan)
        return;
    for (uint32_t k = 0; k < G_N_ELEMENTS(VALUES); k++) {
        g_auto(GStrv) value = g_strsplit(VALUES[k].values, "|", -1);
        /* attention whose queries and keys are one tensor takes heads under either value */
        if (strcmp(VALUES[k].key, "cp_comm") == 0 && strcmp(model, GPT) == 0)
            continue;
        for (uint32_t v = 0; !has_key(set, VALUES[k].key) && value[v]; v++)
            check_value(model, cluster, &base, set, VALUES[k].key, value[v]);
    }
}

static void test_every_key_has_an_effect(void **state)
{
    (void)state;
    for (uint32_t p = 0; p < G_N_ELEMENTS(PRICED); p++)
        for (uint32_t i = 0; i < G_N_ELEMENTS(BASE); i++) {
            g_autofree char *set = g_strconcat(PRICED[p].costs, BASE[i], NULL);
            check_base(GPT, PRICED[p].cluster, set);
            check_base(MIXTRAL, PRICED[p].cluster, set);
        }
}

static void test_every_key_is_tried(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < strategy_table.n; i++) {
        bool found = false;
        for (uint32_t k = 0; k < G_N_ELEMENTS(VALUES); k++)
            found |= strcmp(VALUES[k].key, strategy_table.row[i].key) == 0;
        if (!found)
            fail_msg("key %s: expected values to try", strategy_table.row[i].key);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_key_is_tried),
        cmocka_unit_test(test_every_key_has_an_effect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
