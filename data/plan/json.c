/* Writing plan files. */
#include "data/base/json.h"
#include "data/plan/fold.h"
#include "data/plan/json.h"

#include <jansson.h>
#include <stddef.h>

uint8_t plan_json_stream(InstrKind kind, Collective collective)
{
    return kind == INSTR_TRANSFER ||
           (kind == INSTR_COLLECTIVE && collective < (Collective)COLLECTIVES_PRICED);
}

const char *const PLAN_SPLIT_KEY[SPLIT_KINDS] = {NULL, "batch", "shards", "replicas",
                                                 "nested"};

const char *const PLAN_INSTR[PLAN_INSTRS] = {[INSTR_LOAD] = "load",
                                             [INSTR_COMPUTE] = "compute",
                                             [INSTR_COLLECTIVE] = "",
                                             [INSTR_TRANSFER] = "transfer"};

uint32_t plan_split_devices(const Plan *plan, const Split *split)
{
    if (plan->program->n_groups == 0)
        return plan->n_devices;
    const DeviceGroup *group = &plan->program->group[split->group];
    return group->n_replicas * group->n_devices;
}

static json_t *form_json(Form form)
{
    char text[FORM_TEXT];
    return json_string(form_text(form, text));
}

static json_t *forms_json(const Form *form, uint32_t n)
{
    return json_list(places_before(i, n), form_json(form[i]));
}

/* --- the program --- */

/* {"group": ...} for an instruction that is not at its kind's default place, or NULL. */
static json_t *placement_json(const Instr *instr)
{
    json_t *object = json_object();
    if (instr->group)
        json_object_set_new(object, "group", json_integer(instr->group));
    if (instr->microbatch)
        json_object_set_new(object, "microbatch",
                            instr->microbatch == PROGRAM_WHOLE
                                ? json_string(PLAN_WHOLE)
                                : json_integer(instr->microbatch));
    if (instr->kind == INSTR_TRANSFER)
        json_object_set_new(object, "to_group", json_integer(instr->to_group));
    if (instr->across)
        json_object_set_new(object, "across", json_true());
    if (instr->moves)
        json_object_set_new(object, "moves", json_true());
    if (instr->server)
        json_object_set_new(object, "server", json_integer(instr->server - 1));
    if (instr->stream != plan_json_stream(instr->kind, instr->collective))
        json_object_set_new(object, "stream", json_integer(instr->stream));
    if (json_object_size(object) > 0)
        return object;
    json_decref(object);
    return NULL;
}

static json_t *instr_json(const Instr *instr, const Graph *graph)
{
    json_t *array = json_array();
    json_array_append_new(array, json_string(instr->kind == INSTR_COLLECTIVE
                                                 ? collective_name(instr->collective)
                                                 : PLAN_INSTR[instr->kind]));
    if (instr->kind == INSTR_COMPUTE) {
        const Op *op = graph_get_op(graph, instr->op);
        json_array_append_new(array, json_text(op->name));
        json_array_append_new(array, forms_json(instr->form, op->n_in));
        json_array_append_new(array, forms_json(instr->form + op->n_in, op->n_out));
    } else {
        json_array_append_new(array, json_text(graph_tensor(graph, instr->tensor)->name));
        if (instr->kind != INSTR_LOAD)
            json_array_append_new(array, form_json(instr->from));
        json_array_append_new(array, form_json(instr->to));
    }
    json_t *placement = placement_json(instr);
    if (placement)
        json_array_append_new(array, placement);
    return array;
}

/* ["repeat", 96, 48, {"layer": 1, "microbatch": 1, "group": 1}]. */
static json_t *repeat_json(const PlanPiece *piece)
{
    const PlanShift by = piece->shift;
    json_t *shift = json_object();
    if (by.layer)
        json_object_set_new(shift, "layer", json_integer(by.layer));
    if (by.microbatch)
        json_object_set_new(shift, "microbatch", json_integer(by.microbatch));
    if (by.group)
        json_object_set_new(shift, "group", json_integer(by.group));
    return json_pack("[s, I, I, o]", PLAN_REPEAT, (json_int_t)piece->n,
                     (json_int_t)piece->back, shift);
}

static json_t *program_json(const Plan *plan, const Graph *graph)
{
    const Program *program = plan->program;
    json_t *array = json_array();
    g_autoptr(GArray) pieces = plan_fold(program, graph);
    for (uint32_t k = 0, i = 0; k < pieces->len; k++) {
        const PlanPiece *piece = &g_array_index(pieces, PlanPiece, k);
        if (piece->back)
            json_array_append_new(array, repeat_json(piece));
        for (uint32_t j = 0; !piece->back && j < piece->n; j++)
            json_array_append_new(array, instr_json(&program->instr[i + j], graph));
        i += piece->n;
    }
    return array;
}

/* [group][replica][device]. */
static json_t *groups_json(const Plan *plan, const Graph *graph G_GNUC_UNUSED)
{
    const Program *program = plan->program;
    if (program->n_groups == 0)
        return NULL;
    json_t *groups = json_array();
    items_each (const DeviceGroup, group, program->group, program->n_groups) {
        json_t *replicas =
            json_list(places_before(r, group->n_replicas),
                      json_integers(&group->device[(size_t)r * group->n_devices],
                                    group->n_devices));
        json_array_append_new(groups, group_shards(group) == 1
                                          ? replicas
                                          : json_pack("{s: i, s: o}", "shards",
                                                      (int)group->n_shards, "replicas",
                                                      replicas));
    }
    return groups;
}

/* --- the rest --- */

json_t *plan_ratios_json(const Plan *plan)
{
    return json_list(places_before(k, plan->n_segments),
                     json_numbers(&plan->ratio[k * plan->n_devices], plan->n_devices));
}

/* A member that is one value; NULL: it is left out. */
#define PLAN_VALUE(name, value)                                                    \
    static json_t *name##_json(const Plan *plan, const Graph *graph G_GNUC_UNUSED) \
    {                                                                              \
        return value;                                                              \
    }
PLAN_VALUE(ratios, plan_ratios_json(plan))

static json_t *segments_json(const Plan *plan, const Graph *graph)
{
    json_t *array = json_array();
    for (OpId id = 0; id < plan->n_ops; id++)
        if (id == 0 || plan->segment[id] != plan->segment[id - 1])
            json_array_append_new(
                array, json_pack("[o, i]", json_text(graph_get_op(graph, id)->name),
                                 (int)plan->segment[id]));
    return array;
}

static json_t *splits_json(const Plan *plan, const Graph *graph G_GNUC_UNUSED)
{
    json_t *array = json_array();
    items_each (const Split, split, plan->split, plan->n_splits) {
        const uint32_t n = plan_split_devices(plan, split);
        json_t *object = json_pack(
            "{s: I, s: I, s: o}", "segment", (json_int_t)split->segment, "units",
            (json_int_t)split->units, "count", json_integers(split->count, n));
        if (split->group)
            json_object_set_new(object, "group", json_integer(split->group));
        if (split->kind != SPLIT_POSITIONS)
            json_object_set_new(object, PLAN_SPLIT_KEY[split->kind], json_true());
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *memory_json(const Plan *plan, const Graph *graph G_GNUC_UNUSED)
{
    return json_list(places_before(j, plan->n_devices),
                     json_unsigned(plan->memory_bytes[j]));
}

PLAN_VALUE(format,
           json_pack("{s: s, s: i}", "format", PLAN_FORMAT, "version",
                     plan->program->n > PLAN_WRITTEN_OUT ? PLAN_VERSION
                                                         : PLAN_VERSION_WRITTEN_OUT))
PLAN_VALUE(granularity, json_string(granularity_name(plan->granularity)))
PLAN_VALUE(fidelity, json_string(plan_fidelity(plan)))
PLAN_VALUE(gap, json_number(plan_gap(plan)))
PLAN_VALUE(certificate, json_string(certificate_name(plan->certificate)))
PLAN_VALUE(plan_strategy,
           strategy_is_default(&plan->strategy) ? NULL : strategy_json(&plan->strategy))
PLAN_VALUE(microbatches, plan->program->n_microbatches == 1
                             ? NULL
                             : json_integer(plan->program->n_microbatches))
PLAN_VALUE(successive, plan->program->successive ? json_true() : NULL)

/* --- the table of members --- */

/* clang-format off */
#define AT(name, of, at) {.key = name, .kind = MEMBER_##of, .offset = offsetof(Plan, at)}
#define MAYBE(name, of, at) \
    {.key = name, .kind = MEMBER_##of, .offset = offsetof(Plan, at), .may_lack = true}
#define PART(name, to) {.key = name, .kind = MEMBER_PART, .json = to}

static const PlanMember MEMBERS[] = {
    PART("kilter", format_json),
    AT("model", TEXT, model),
    MAYBE("model_content", OBJECT, content),
    AT("cluster", TEXT, cluster),
    MAYBE("cluster_content", OBJECT, cluster_text),
    PART("granularity", granularity_json),
    AT("planner", TEXT, planner),
    MAYBE("made_by", TEXT, maker),
    MAYBE("runtime", TEXT, runtime),
    PART("fidelity", fidelity_json),
    AT("iteration_time_s", SECONDS_OR_NEVER, iteration_time_s),
    AT("fractional_time_s", SECONDS_OR_NEVER, fractional_time_s),
    AT("lower_bound_s", SECONDS, lower_bound_s),
    MAYBE("bound_over", TEXT, bound_over),
    PART("gap", gap_json),
    AT("optimal", BOOL, optimal),
    PART("certificate", certificate_json),
    AT("stages", COUNT, stages),
    AT("feasible", BOOL, feasible),
    PART("memory_bytes", memory_json),
    AT("search_time_s", SECONDS, search_time_s),
    AT("balance_time_s", SECONDS, balance_time_s),
    MAYBE("certificate_time_s", SECONDS, certificate_time_s),
    AT("seed", INTEGER, seed),
    AT("version", TEXT, version),
    MAYBE("revision", TEXT, revision),
    MAYBE("options", TEXT, options),
    MAYBE("for", TEXT, target),
    MAYBE("any_time_s", SECONDS, any_time_s),
    MAYBE("any_why", TEXT, any_why),
    MAYBE("exports", TEXT, exports),
    PART("strategy", plan_strategy_json),
    AT("bucket_bytes", INTEGER, bucket_bytes),
    PART("ratios", ratios_json),
    PART("segments", segments_json),
    PART("splits", splits_json),
    PART("microbatches", microbatches_json),
    PART("successive", successive_json),
    PART("groups", groups_json),
    PART("program", program_json),
    PART(PLAN_SEAL, NULL),
};
/* clang-format on */

const PlanMember *plan_member(uint32_t i)
{
    return i < G_N_ELEMENTS(MEMBERS) ? &MEMBERS[i] : NULL;
}

/* The JSON of a member; NULL if it is left out. */
static json_t *member_json(const PlanMember *member, const Plan *plan, const Graph *graph)
{
    g_assert(member->kind == MEMBER_PART || member->offset < sizeof(Plan));
    const void *at = (const char *)plan + member->offset;
    switch (member->kind) {
    case MEMBER_TEXT:
        return *(char *const *)at ? json_text(*(char *const *)at) : NULL;
    case MEMBER_OBJECT:
        return *(char *const *)at ? json_loads(*(char *const *)at, 0, NULL) : NULL;
    case MEMBER_SECONDS:
    case MEMBER_SECONDS_OR_NEVER:
        return member->may_lack && !(*(const double *)at > 0)
                   ? NULL
                   : json_number(*(const double *)at);
    case MEMBER_BOOL:
        return json_boolean(*(const bool *)at);
    case MEMBER_COUNT:
        return json_integer(*(const uint32_t *)at);
    case MEMBER_INTEGER:
        return json_unsigned(*(const uint64_t *)at);
    case MEMBER_PART:
        return member->json ? member->json(plan, graph) : NULL;
    }
    g_assert_not_reached();
}

/* --- the seal --- */

/* A digest of the values of keys (NULL: all keys except the seal itself and wall-clock times). The
 * caller frees it. */
static char *digest(const json_t *root, const char *const *keys)
{
    enum { DIGITS = 16 };
    static const char *const open[] = {PLAN_SEAL,        "search_time_s",
                                       "balance_time_s", "certificate_time_s",
                                       "revision",       NULL};
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
    members_each (key, value, root) {
        if (keys ? !g_strv_contains(keys, key) : g_strv_contains(open, key))
            continue;
        g_autoptr(GString) text = g_string_new(key);
        json_append(text, value, true);
        g_checksum_update(checksum, (const guchar *)text->str, (gssize)text->len);
    }
    return g_strndup(g_checksum_get_string(checksum), DIGITS);
}

static const char *const SHARDS[] = {"ratios", "segments", "splits", "groups", NULL};

static json_t *plan_json(const Plan *plan, const Graph *graph)
{
    json_t *root = json_object();
    for (uint32_t i = 0; i < G_N_ELEMENTS(MEMBERS); i++) {
        json_t *value = member_json(&MEMBERS[i], plan, graph);
        if (value)
            json_object_set_new(root, MEMBERS[i].key, value);
    }
    g_autofree char *shards = digest(root, SHARDS), *all = digest(root, NULL);
    json_object_set_new(root, PLAN_SEAL,
                        json_pack("{s: s, s: s}", "shards", shards, "plan", all));
    return root;
}

static bool is_sealed(const json_t *root, const char *part, const char *digest)
{
    const json_t *seal = json_object_get(root, PLAN_SEAL);
    return g_strcmp0(json_string_value(json_object_get(seal, part)), digest) == 0;
}

void plan_json_seals(const json_t *root, bool *shards, bool *all)
{
    g_autofree char *of_shards = digest(root, SHARDS), *of_all = digest(root, NULL);
    *shards = is_sealed(root, "shards", of_shards);
    *all = is_sealed(root, "plan", of_all);
}

/* --- text --- */

/* Writes one key per line, and arrays of arrays or objects with one element per line. */
static void append_value(GString *text, const json_t *value)
{
    const json_t *first = json_array_get(value, 0);
    if (!json_is_array(first) && !json_is_object(first)) {
        json_append(text, value, false);
        return;
    }
    g_string_append(text, "[");
    for (size_t i = 0; i < json_array_size(value); i++) {
        g_string_append(text, i ? ",\n    " : "\n    ");
        json_append(text, json_array_get(value, i), false);
    }
    g_string_append(text, "\n  ]");
}

char *plan_write(const Plan *plan, const Graph *graph)
{
    g_autoptr(GString) text = g_string_new("{");
    json_t *root = plan_json(plan, graph);
    members_each (key, value, root) {
        g_string_append_printf(text, "%s\n  \"%s\": ", text->len > 1 ? "," : "", key);
        append_value(text, value);
    }
    json_decref(root);
    g_string_append(text, "\n}\n");
    return g_strdup(text->str);
}
