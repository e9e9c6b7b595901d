/* The program of a plan file: names become ids, and the checker checks the result. */
#include "data/base/json.h"
#include "data/base/names.h"
#include "data/plan/fold.h"
#include "data/plan/json.h"
#include "data/plan/reader.h"

#include <string.h>

/* The limit of a program's length, so that a short file cannot fill the memory. */
enum { PLAN_INSTRS_MAX = 1 << 25 };

static bool read_forms(const Reader *r, size_t i, const json_t *texts, uint32_t n,
                       Form *form)
{
    if (!json_is_array(texts) || json_array_size(texts) != n)
        return reader_fail(r, "program", i, "expected %u forms, got %zu", n,
                           json_array_size(texts));
    for (uint32_t f = 0; f < n; f++) {
        const json_t *text = json_array_get(texts, f);
        if (!json_is_string(text) || !form_parse(json_string_value(text), &form[f]))
            return reader_expected(r, "program", i, "identity, reduce or gather(DIM)",
                                   text);
    }
    return true;
}

/* The name of the op or tensor of an instruction, its second item. NULL, with the error set, if
 * that is not a string. */
static const char *read_named(const Reader *r, size_t i, const json_t *array,
                              const char *what)
{
    const json_t *name = json_array_get(array, 1);
    if (!json_is_string(name))
        reader_expected(r, "program", i, what, name);
    return json_string_value(name);
}

/* Reads ["compute", "op", [forms of inputs], [forms of outputs]]. */
static bool read_compute(const Reader *r, size_t i, const json_t *array, Instr *instr)
{
    const char *name = read_named(r, i, array, "an op's name");
    if (!name)
        return false;
    instr->op = graph_find_op(r->graph, name);
    if (instr->op == GRAPH_NONE)
        return reader_fail(r, "program", i, "unknown op '%s'", name);
    const Op *op = graph_get_op(r->graph, instr->op);
    return read_forms(r, i, json_array_get(array, 2), op->n_in, instr->form) &&
           read_forms(r, i, json_array_get(array, 3), op->n_out, instr->form + op->n_in);
}

/* Reads ["load", "tensor", to] or ["all_reduce", "tensor", from, to]. */
static bool read_moved(const Reader *r, size_t i, const json_t *array, Instr *instr)
{
    const char *name = read_named(r, i, array, "a tensor's name");
    if (!name)
        return false;
    instr->tensor = graph_find(r->graph, name);
    if (instr->tensor == GRAPH_NONE)
        return reader_fail(r, "program", i, "unknown tensor '%s'", name);
    json_auto_t *forms =
        instr->kind == INSTR_LOAD
            ? json_pack("[O?]", json_array_get(array, 2))
            : json_pack("[O?, O?]", json_array_get(array, 2), json_array_get(array, 3));
    Form form[2] = {0};
    bool ok = read_forms(r, i, forms, (uint32_t)json_array_size(forms), form);
    instr->from = instr->kind == INSTR_LOAD ? 0 : form[0];
    instr->to = instr->kind == INSTR_LOAD ? form[0] : form[1];
    return ok;
}

/* Reads one key of the optional last item. */
static bool read_place(const char *key, const json_t *value, Instr *instr)
{
    const bool whole = g_strcmp0(json_string_value(value), PLAN_WHOLE) == 0;
    const bool flag = json_is_true(value);
    uint64_t number = PROGRAM_WHOLE;
    if (!whole && !flag && !reader_integer_value(value, UINT16_MAX - 1, &number))
        return false;
    if (strcmp(key, "microbatch") == 0)
        instr->microbatch = (uint16_t)number;
    else if (strcmp(key, "across") == 0)
        instr->across = flag && instr->kind >= INSTR_COLLECTIVE;
    else if (strcmp(key, "moves") == 0)
        instr->moves = flag && instr->kind >= INSTR_COLLECTIVE;
    else if (whole)
        return false;
    else if (strcmp(key, "group") == 0)
        instr->group = (uint16_t)number;
    else if (strcmp(key, "server") == 0 && instr->kind == INSTR_COLLECTIVE)
        instr->server = (uint16_t)(number + 1);
    else if (strcmp(key, "stream") == 0 && number <= UINT8_MAX)
        instr->stream = (uint8_t)number;
    else if (strcmp(key, "to_group") == 0 && instr->kind == INSTR_TRANSFER)
        instr->to_group = (uint16_t)number;
    else
        return false;
    return strcmp(key, "across") == 0  ? instr->across
           : strcmp(key, "moves") == 0 ? instr->moves
                                       : !flag;
}

/* Reads the optional last item, {"group": 1, "microbatch": 2, "stream": 0}. */
static bool read_placement(const Reader *r, size_t i, json_t *object, Instr *instr)
{
    members_each (key, value, object) {
        if (!read_place(key, value, instr))
            return reader_expected(r, "program", i,
                                   "{\"group\", \"microbatch\", \"stream\"} at the end",
                                   object);
    }
    return true;
}

static bool read_kind(const Reader *r, size_t i, const json_t *value, Instr *instr)
{
    const char *name = json_string_value(value);
    if (!name)
        return reader_expected(r, "program", i, "an instruction's name", value);
    const uint32_t kind = TEXT_PLACE(PLAN_INSTR, PLAN_INSTRS, name);
    instr->kind = kind < PLAN_INSTRS ? (InstrKind)kind : INSTR_COLLECTIVE;
    if (instr->kind == INSTR_COLLECTIVE)
        instr->collective = collective_from_name(name);
    if (instr->collective == COLLECTIVES)
        return reader_fail(r, "program", i,
                           "expected load, compute or a collective, got '%s'", name);
    instr->stream = plan_json_stream(instr->kind, instr->collective);
    return true;
}

static bool read_instr(const Reader *r, size_t i, const json_t *array, Instr *instr)
{
    if (!json_is_array(array))
        return reader_expected(r, "program", i, "an array", array);
    if (!read_kind(r, i, json_array_get(array, 0), instr))
        return false;
    size_t n = instr->kind == INSTR_LOAD ? 3 : 4; /* items before the placement */
    json_t *placement = json_array_get(array, n);
    if (json_array_size(array) < n || json_array_size(array) > n + 1 ||
        (placement && !json_is_object(placement)))
        return reader_fail(r, "program", i, "expected %zu items, got %zu", n,
                           json_array_size(array));
    return (instr->kind == INSTR_COMPUTE ? read_compute(r, i, array, instr)
                                         : read_moved(r, i, array, instr)) &&
           (!placement || read_placement(r, i, placement, instr));
}

/* --- repetition --- */

/* The name with `by` added to its first number, or NULL. The caller frees it. */
static char *shift_name(const char *name, int32_t by)
{
    uint32_t number;
    const char *rest, *at = plan_name_number(name, &number, &rest);
    if (!at)
        return g_strdup(name);
    const int64_t to = (int64_t)number + by;
    return to < 0 ? NULL
                  : g_strdup_printf("%.*s%" G_GINT64_FORMAT "%s", (int)(at - name), name,
                                    to, rest);
}

/* Adds `by` to the number in the name of an instruction's op or tensor. */
static bool shift_layer(const Reader *r, size_t i, int32_t by, Instr *instr)
{
    const bool is_op = instr->kind == INSTR_COMPUTE;
    const uint64_t place = (uint64_t)(is_op ? instr->op : instr->tensor) * 2 + is_op;
    const gpointer key = GSIZE_TO_POINTER((uint64_t)(uint32_t)by << 32 | place);
    const uint32_t known = GPOINTER_TO_UINT(g_hash_table_lookup(r->shifted, key));
    if (known > 0) {
        *(is_op ? &instr->op : &instr->tensor) = known - 1;
        return true;
    }
    const char *name = is_op ? graph_get_op(r->graph, instr->op)->name
                             : graph_tensor(r->graph, instr->tensor)->name;
    g_autofree char *to = shift_name(name, by);
    const uint32_t found = !to     ? GRAPH_NONE
                           : is_op ? graph_find_op(r->graph, to)
                                   : graph_find(r->graph, to);
    if (found == GRAPH_NONE)
        return reader_fail(r, "program", i, "'%s' has no counterpart %+d layers from it",
                           name, by);
    const Op *old = is_op ? graph_get_op(r->graph, instr->op) : NULL;
    const Op *op = is_op ? graph_get_op(r->graph, found) : NULL;
    if (is_op && (old->n_in != op->n_in || old->n_out != op->n_out))
        return reader_fail(r, "program", i, "'%s' has other operands than '%s'", to,
                           name);
    *(is_op ? &instr->op : &instr->tensor) = found;
    g_hash_table_insert(r->shifted, key, GUINT_TO_POINTER(found + 1));
    return true;
}

static bool shift_instr(const Reader *r, size_t i, PlanShift by, Instr *instr)
{
    const int64_t microbatch = (int64_t)instr->microbatch + by.microbatch,
                  group = (int64_t)instr->group + by.group,
                  to_group = (int64_t)instr->to_group + by.group;
    const bool whole = instr->microbatch == PROGRAM_WHOLE,
               transfer = instr->kind == INSTR_TRANSFER;
    if (group < 0 || group >= UINT16_MAX ||
        (!whole && (microbatch < 0 || microbatch >= PROGRAM_WHOLE)) ||
        (transfer && (to_group < 0 || to_group >= UINT16_MAX)))
        return reader_fail(r, "program", i, "expected groups and microbatches from 0 on");
    instr->group = (uint16_t)group;
    instr->microbatch = whole ? PROGRAM_WHOLE : (uint16_t)microbatch;
    instr->to_group = transfer ? (uint16_t)to_group : instr->to_group;
    return by.layer == 0 || shift_layer(r, i, by.layer, instr);
}

static bool read_shift(const Reader *r, size_t i, json_t *object, PlanShift *by)
{
    members_each (key, value, object) {
        const json_int_t number = json_integer_value(value);
        int32_t *at = strcmp(key, "layer") == 0        ? &by->layer
                      : strcmp(key, "microbatch") == 0 ? &by->microbatch
                      : strcmp(key, "group") == 0      ? &by->group
                                                       : NULL;
        if (!at || !json_is_integer(value) || number < -UINT16_MAX || number > UINT16_MAX)
            return reader_expected(r, "program", i,
                                   "{\"layer\", \"microbatch\", \"group\"} at the end",
                                   object);
        *at = (int32_t)number;
    }
    return true;
}

/* Reads ["repeat", 96, 48, {"layer": 1, "microbatch": 1, "group": 1}]. */
static bool read_repeat(const Reader *r, size_t i, const json_t *item)
{
    Program *program = r->plan->program;
    uint64_t n = 0, back = 0;
    PlanShift by = {0};
    if (json_array_size(item) != 4 || !json_is_object(json_array_get(item, 3)) ||
        !reader_integer_value(json_array_get(item, 1), PLAN_INSTRS_MAX - program->n,
                              &n) ||
        !reader_integer_value(json_array_get(item, 2), program->n, &back) || back == 0)
        return reader_expected(r, "program", i,
                               "[\"repeat\", a number of instructions, how many before, "
                               "{\"layer\", \"microbatch\", \"group\"}]",
                               item);
    if (!read_shift(r, i, json_array_get(item, 3), &by))
        return false;
    for (uint64_t k = 0; k < n; k++) {
        Instr instr = program->instr[program->n - back];
        if (!shift_instr(r, i, by, &instr))
            return false;
        program_append(program, instr);
    }
    return true;
}

/* --- groups --- */

static bool read_replica(const Reader *r, size_t g, const json_t *ids, uint32_t n,
                         GArray *devices)
{
    g_assert(g < UINT16_MAX);
    if (!json_is_array(ids) || json_array_size(ids) == 0 || json_array_size(ids) != n)
        return reader_expected(r, "groups", g, "replicas of equally many devices", ids);
    for (uint32_t p = 0; p < n; p++) {
        uint64_t id;
        if (!reader_integer_value(json_array_get(ids, p), r->plan->n_devices - 1, &id))
            return reader_expected(r, "groups", g, "the number of a device",
                                   json_array_get(ids, p));
        const uint32_t device = (uint32_t)id;
        g_array_append_val(devices, device);
    }
    return true;
}

/* Reads a group: a list of replicas, or {"shards", "replicas"}. */
static bool program_read_group(const Reader *r, size_t g, const json_t *group)
{
    const json_t *shards = json_object_get(group, "shards");
    const json_t *replicas =
        json_is_object(group) ? json_object_get(group, "replicas") : group;
    uint64_t n_shards = 1;
    if (json_is_object(group) &&
        (json_object_size(group) != 2 ||
         !reader_integer_value(shards, UINT16_MAX, &n_shards) || n_shards < 2))
        return reader_expected(r, "groups", g, "{\"shards\", \"replicas\"}", group);
    const uint32_t n_replicas = (uint32_t)json_array_size(replicas);
    const uint32_t n = (uint32_t)json_array_size(json_array_get(replicas, 0));
    g_autoptr(GArray) devices = g_array_new(false, false, sizeof(uint32_t));
    if (n_replicas == 0)
        return reader_expected(r, "groups", g, "a list of replicas", replicas);
    for (uint32_t i = 0; i < n_replicas; i++)
        if (!read_replica(r, g, json_array_get(replicas, i), n, devices))
            return false;
    program_add_group(r->plan->program, n_replicas, n,
                      (const uint32_t *)(const void *)devices->data);
    r->plan->program->group[g].n_shards = (uint32_t)n_shards;
    return n_replicas % n_shards == 0 ||
           reader_fail(r, "groups", g, "expected shards that divide %u replicas, got %u",
                       n_replicas, (uint32_t)n_shards);
}

bool reader_groups(const Reader *r)
{
    Program *program = r->plan->program = program_new();
    uint64_t n = 1;
    if (json_object_get(r->root, "microbatches") &&
        !reader_integer(r, "microbatches", PROGRAM_WHOLE - 1, &n))
        return false;
    program->n_microbatches = (uint32_t)n;
    if (json_object_get(r->root, "successive") &&
        !reader_bool(r, "successive", &program->successive))
        return false;
    json_t *groups = json_object_get(r->root, "groups");
    if (!groups)
        return true;
    if (json_array_size(groups) == 0 || json_array_size(groups) >= UINT16_MAX)
        return reader_expected(r, "groups", READER_WHOLE, "a list of groups", groups);
    for (size_t g = 0; g < json_array_size(groups); g++)
        if (!program_read_group(r, g, json_array_get(groups, g)))
            return false;
    return true;
}

/* --- the program --- */

bool reader_program(const Reader *r)
{
    json_t *array;
    if (!reader_array(r, "program", &array))
        return false;
    Program *program = r->plan->program;
    elements_at (item, i, array) {
        Instr instr = {0};
        if (g_strcmp0(json_string_value(json_array_get(item, 0)), PLAN_REPEAT) == 0) {
            if (!read_repeat(r, i, item))
                return false;
        } else if (read_instr(r, i, item, &instr))
            program_append(program, instr);
        else
            return false;
    }
    g_autoptr(GError) wrong = NULL;
    return program_check(program, r->graph, &wrong) ||
           reader_fail(r, "program", READER_WHOLE, "%s", wrong->message);
}
