/* The reader of plan files (plan_read). Simulations and replays trust a plan, so the reader trusts
 * nothing in the file: every value is checked against the model that the file names, and the
 * program is checked as a planner's is. */
#include "data/plan/cut.h"
#include "data/plan/json.h"
#include "data/plan/reader.h"

#include "data/base/error.h"
#include "data/base/json.h"
#include "data/cluster/runtime.h"
#include "data/models/model.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

/* The relative tolerance within which the gap must agree with the times. */
static const double TOLERANCE = 1e-9;

/* --- the kind of file, and its model --- */

static bool read_format(const Reader *r)
{
    static const char what[] =
        "{\"format\": \"" PLAN_FORMAT "\", \"version\": " G_STRINGIFY(
            PLAN_VERSION_WRITTEN_OUT) " or " G_STRINGIFY(PLAN_VERSION) "}";
    const json_t *kilter = json_object_get(r->root, "kilter");
    const char *format = json_string_value(json_object_get(kilter, "format"));
    const json_t *version = json_object_get(kilter, "version");
    return (json_object_size(kilter) == 2 && g_strcmp0(format, PLAN_FORMAT) == 0 &&
            json_is_integer(version) &&
            json_integer_value(version) >= PLAN_VERSION_WRITTEN_OUT &&
            json_integer_value(version) <= PLAN_VERSION) ||
           reader_expected(r, "kilter", READER_WHOLE, what, kilter);
}

static bool read_keys(const Reader *r)
{
    const PlanMember *member;
    keys_each (key, r->root) {
        uint32_t i = 0;
        while ((member = plan_member(i)) && strcmp(member->key, key) != 0)
            i++;
        if (!member)
            return reader_fail(r, key, READER_WHOLE, "unknown key");
    }
    return true;
}

static bool read_object(const Reader *r, const char *key, char **text)
{
    const json_t *object = json_object_get(r->root, key);
    if (!json_is_object(object))
        return reader_expected(r, key, READER_WHOLE, "an object", object);
    *text = json_canonical(json_incref((json_t *)object));
    return true;
}

static bool read_member(const Reader *r, const PlanMember *member)
{
    void *at = (char *)r->plan + member->offset;
    uint64_t count = 0;
    if (member->may_lack && !json_object_get(r->root, member->key))
        return true;
    switch (member->kind) {
    case MEMBER_TEXT:
        return reader_text(r, member->key, at);
    case MEMBER_OBJECT:
        return read_object(r, member->key, at);
    case MEMBER_SECONDS:
    case MEMBER_SECONDS_OR_NEVER:
        return reader_seconds(r, member->key, member->kind == MEMBER_SECONDS_OR_NEVER,
                              at);
    case MEMBER_BOOL:
        return reader_bool(r, member->key, at);
    case MEMBER_INTEGER:
        return reader_integer(r, member->key, UINT64_MAX, at);
    case MEMBER_COUNT:
        if (!reader_integer(r, member->key, UINT32_MAX, &count))
            return false;
        *(uint32_t *)at = (uint32_t)count;
        return true;
    case MEMBER_PART:
        return true;
    }
    g_assert_not_reached();
}

static bool read_members(const Reader *r)
{
    const PlanMember *member;
    for (uint32_t i = 0; (member = plan_member(i)); i++)
        if (!read_member(r, member))
            return false;
    return true;
}

static Graph *read_model(const Reader *r)
{
    Plan *plan = r->plan;
    g_autofree char *canonical = NULL;
    g_autoptr(Graph) graph =
        model_build_from(plan->model, plan->content, 1, &canonical, r->error);
    if (!graph) {
        kilter_prefix(r->error, "%s: model: ", r->file);
        return NULL;
    }
    if (strcmp(plan->model, canonical) != 0) {
        reader_fail(r, "model", READER_WHOLE,
                    "expected every parameter, as in '%s', got '%s'", canonical,
                    plan->model);
        return NULL;
    }
    return g_steal_pointer(&graph);
}

/* Reads a key of the strategy: a number, or a text as for --set. */
static bool read_strategy_key(const Reader *r, const char *key, const json_t *value)
{
    const Option *option = options_find(&strategy_table, key);
    g_autofree char *name = g_strdup_printf("strategy.%.40s", key);
    g_autofree char *text =
        json_is_integer(value)
            ? g_strdup_printf("%" JSON_INTEGER_FORMAT, json_integer_value(value))
            : g_strdup(json_string_value(value));
    g_autoptr(GError) wrong = NULL;
    if (!option)
        return reader_fail(r, name, READER_WHOLE, "unknown key");
    if (!text || json_is_integer(value) != (option->type == OPTION_COUNT))
        return reader_expected(r, name, READER_WHOLE, "a value of this key", value);
    return option_set(option, &r->plan->strategy, text, &wrong) ||
           reader_fail(r, name, READER_WHOLE, "%s", wrong->message);
}

static bool read_strategy(const Reader *r)
{
    const json_t *object = json_object_get(r->root, "strategy");
    if (object && !json_is_object(object))
        return reader_expected(r, "strategy", READER_WHOLE, "an object", object);
    members_each (key, value, object) {
        if (!read_strategy_key(r, key, value))
            return false;
    }
    return true;
}

static bool read_granularity(const Reader *r)
{
    g_autofree char *granularity = NULL;
    return reader_text(r, "granularity", &granularity) &&
           (granularity_parse(granularity, &r->plan->granularity) ||
            reader_fail(r, "granularity", READER_WHOLE,
                        "expected machine or gpu, got '%s'", granularity));
}

/* Checks the fidelity, once the program's groups are known. */
static bool check_fidelity(const Reader *r)
{
    const char *expected = plan_fidelity(r->plan);
    g_autofree char *fidelity = NULL;
    return reader_text(r, "fidelity", &fidelity) &&
           (strcmp(fidelity, expected) == 0 ||
            reader_fail(r, "fidelity", READER_WHOLE, "expected %s, got '%s'", expected,
                        fidelity));
}

/* --- costs --- */

static bool read_memory(const Reader *r)
{
    Plan *plan = r->plan;
    json_t *array;
    if (!reader_array(r, "memory_bytes", &array))
        return false;
    if (json_array_size(array) != plan->n_devices)
        return reader_fail(r, "memory_bytes", READER_WHOLE,
                           "expected %u sizes, one per device, got %zu", plan->n_devices,
                           json_array_size(array));
    plan->memory_bytes = g_new0(uint64_t, plan->n_devices);
    for (uint32_t j = 0; j < plan->n_devices; j++)
        if (!reader_integer_value(json_array_get(array, j), UINT64_MAX,
                                  &plan->memory_bytes[j]))
            return reader_expected(r, "memory_bytes", j, "bytes",
                                   json_array_get(array, j));
    return true;
}

static bool check_runtime(const Reader *r)
{
    g_autoptr(GError) wrong = NULL;
    g_autoptr(Runtime) runtime =
        r->plan->runtime ? runtime_load(r->plan->runtime, &wrong) : NULL;
    return runtime || !wrong ||
           reader_fail(r, "runtime", READER_WHOLE, "%s", wrong->message);
}

/* Checks the gap, which is derived: the file only repeats it for human readers. */
static bool check_gap(const Reader *r)
{
    const json_t *value = json_object_get(r->root, "gap");
    double gap = plan_gap(r->plan), got = json_number_value(value);
    if (isfinite(gap)
            ? json_is_number(value) && fabs(got - gap) <= TOLERANCE * (1 + fabs(gap))
            : json_is_null(value))
        return true;
    g_autofree char *what =
        isfinite(gap) ? g_strdup_printf("%.9g", gap) : g_strdup("null");
    return reader_expected(r, "gap", READER_WHOLE, what, value);
}

/* Reads the certificate, which old plans lack. */
static bool read_certificate(const Reader *r)
{
    const json_t *value = json_object_get(r->root, "certificate");
    if (!value)
        return true;
    for (Certificate c = 0; c < CERTIFICATES; c++)
        if (g_strcmp0(json_string_value(value), certificate_name(c)) == 0) {
            r->plan->certificate = c;
            return true;
        }
    return reader_expected(r, "certificate", READER_WHOLE, "one such as \"reached\"",
                           value);
}

/* --- whole plans --- */

/* A split that the instruction needs and the plan lacks, or NULL. */
static const Split *missing_split(const Plan *plan, GArray *needed)
{
    for (uint32_t i = 0; i < needed->len; i++)
        if (!plan_find_split(plan, &g_array_index(needed, Split, i)))
            return &g_array_index(needed, Split, i);
    return NULL;
}

/* Checks that all cuts that the program needs are there; if none is, the ratios are rounded. */
static bool check_splits(const Reader *r)
{
    if (!json_object_get(r->root, "splits"))
        return plan_round(r->plan, r->graph, r->error);
    const Program *program = r->plan->program;
    g_autofree uint16_t *segment = plan_segments(program, r->graph, r->plan->segment);
    g_autoptr(BatchForms) batch = NULL;
    batch_forms_of_program(program, r->graph, &batch, NULL);
    g_autoptr(GArray) needed = plan_needed_splits(r->plan, r->graph, batch);
    const bool all = !missing_split(r->plan, needed);
    for (uint32_t i = 0; !all && i < program->n; i++) {
        g_array_set_size(needed, 0);
        plan_instr_splits(r->plan, r->graph, batch, segment, &program->instr[i], needed);
        const Split *missing = missing_split(r->plan, needed);
        if (!missing)
            continue;
        g_autofree char *text = instr_text(&program->instr[i], r->graph);
        return reader_fail(r, "splits", READER_WHOLE,
                           "expected one of segment %u, %u units: instruction %u (%s) "
                           "needs it",
                           missing->segment, missing->units, i, text);
    }
    return true;
}

/* Checks that the counts differ from the rounded ratios by at most a unit. */
static bool check_rounding(const Reader *r)
{
    const Plan *plan = r->plan;
    g_autoptr(Plan) rounded = plan_new();
    rounded->program = program_copy(plan->program);
    rounded->n_devices = plan->n_devices;
    rounded->n_segments = plan->n_segments;
    rounded->ratio = g_memdup2(plan->ratio, (gsize)plan->n_segments * plan->n_devices *
                                                sizeof(double));
    rounded->n_ops = plan->n_ops;
    rounded->segment = g_memdup2(plan->segment, plan->n_ops * sizeof *plan->segment);
    if (!plan_round(rounded, r->graph, r->error))
        return false;
    for (uint32_t i = 0; i < plan->n_splits; i++) {
        const Split *split = &plan->split[i], *exact = plan_find_split(rounded, split);
        for (uint32_t j = 0; exact && j < plan_split_devices(plan, split); j++)
            if (split->count[j] > exact->count[j] + 1 ||
                exact->count[j] > split->count[j] + 1)
                return reader_fail(
                    r, "splits", i,
                    "expected what the ratios say: %u of %u units on device "
                    "%u of the group, got %u; leave out splits to have the "
                    "ratios rounded",
                    exact->count[j], split->units, j, split->count[j]);
    }
    return true;
}

/* Checks the seal: proofs and rounding hold only for the plan as written. */
static bool check_seal(const Reader *r)
{
    bool shards, all;
    plan_json_seals(r->root, &shards, &all);
    if (!all)
        plan_drop_proofs(r->plan);
    return shards || check_rounding(r);
}

static bool check_groups(const Reader *r)
{
    g_autoptr(GError) wrong = NULL;
    return plan_check_groups(r->plan, &wrong) ||
           reader_fail(r, "groups", READER_WHOLE, "%s", wrong->message);
}

static bool read_plan(Reader *r, Graph **graph)
{
    if (!read_format(r) || !read_keys(r) || !read_members(r) || !(*graph = read_model(r)))
        return false;
    r->graph = *graph;
    return read_granularity(r) && read_strategy(r) && reader_ratios(r) &&
           reader_groups(r) && check_groups(r) && check_fidelity(r) &&
           reader_segments(r) && reader_splits(r) && reader_program(r) &&
           read_memory(r) && check_runtime(r) && check_gap(r) && read_certificate(r) &&
           check_splits(r) && check_seal(r);
}

Plan *plan_read(const char *file, Graph **graph, GError **error)
{
    json_t *root = json_read_file(file, "plan", error);
    if (!root)
        return NULL;
    g_autoptr(Plan) plan = plan_new();
    g_autoptr(Graph) built = NULL;
    g_autoptr(GHashTable) shifted = g_hash_table_new(g_direct_hash, g_direct_equal);
    Reader r = {
        .file = file, .root = root, .shifted = shifted, .plan = plan, .error = error};
    bool ok = read_plan(&r, &built);
    json_decref(root);
    if (!ok)
        return NULL;
    if (graph)
        *graph = g_steal_pointer(&built);
    return g_steal_pointer(&plan);
}
