/* The program of a plan file: names become ids, then the checker has its say. */
#include "data/plan_json.h"
#include "data/plan_reader.h"

#include <string.h>

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

/* What the instruction is about: its second item. NULL, with the error set, if that is no string. */
static const char *named(const Reader *r, size_t i, const json_t *array, const char *what)
{
    const json_t *name = json_array_get(array, 1);
    if (!json_is_string(name))
        reader_expected(r, "program", i, what, name);
    return json_string_value(name);
}

/* ["compute", "op", [forms of inputs], [forms of outputs]] */
static bool read_compute(const Reader *r, size_t i, const json_t *array, Instr *instr)
{
    const char *name = named(r, i, array, "an op's name");
    if (!name)
        return false;
    instr->op = reader_op(r, name);
    if (instr->op == GRAPH_NONE)
        return reader_fail(r, "program", i, "unknown op '%s'", name);
    const Op *op = graph_get_op(r->graph, instr->op);
    return read_forms(r, i, json_array_get(array, 2), op->n_in, instr->form) &&
           read_forms(r, i, json_array_get(array, 3), op->n_out, instr->form + op->n_in);
}

/* ["load", "tensor", to] or ["all_reduce", "tensor", from, to] */
static bool read_moved(const Reader *r, size_t i, const json_t *array, Instr *instr)
{
    const char *name = named(r, i, array, "a tensor's name");
    if (!name)
        return false;
    instr->tensor = graph_find(r->graph, name);
    if (instr->tensor == GRAPH_NONE)
        return reader_fail(r, "program", i, "unknown tensor '%s'", name);
    json_t *forms =
        instr->kind == INSTR_LOAD
            ? json_pack("[O?]", json_array_get(array, 2))
            : json_pack("[O?, O?]", json_array_get(array, 2), json_array_get(array, 3));
    Form form[2] = {0};
    bool ok = read_forms(r, i, forms, (uint32_t)json_array_size(forms), form);
    json_decref(forms);
    instr->from = instr->kind == INSTR_LOAD ? 0 : form[0];
    instr->to = instr->kind == INSTR_LOAD ? form[0] : form[1];
    return ok;
}

/* The optional last item, {"group": 1, "microbatch": 2, "stream": 0}. */
static bool read_placement(const Reader *r, size_t i, json_t *object, Instr *instr)
{
    uint64_t group = 0, microbatch = 0, stream = instr->stream;
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        uint64_t *target = strcmp(key, "group") == 0        ? &group
                           : strcmp(key, "microbatch") == 0 ? &microbatch
                           : strcmp(key, "stream") == 0     ? &stream
                                                            : NULL;
        if (!target || !reader_integer_value(
                           value, target == &stream ? UINT8_MAX : UINT16_MAX, target))
            return reader_expected(r, "program", i,
                                   "{\"group\", \"microbatch\", \"stream\"} at the end",
                                   object);
    }
    instr->group = (uint16_t)group;
    instr->microbatch = (uint16_t)microbatch;
    instr->stream = (uint8_t)stream;
    return true;
}

static bool read_kind(const Reader *r, size_t i, const json_t *value, Instr *instr)
{
    const char *name = json_string_value(value);
    if (!name)
        return reader_expected(r, "program", i, "an instruction's name", value);
    if (strcmp(name, "load") == 0)
        instr->kind = INSTR_LOAD;
    else if (strcmp(name, "compute") == 0)
        instr->kind = INSTR_COMPUTE;
    else if (strcmp(name, "transfer") == 0)
        instr->kind = INSTR_TRANSFER;
    else {
        instr->kind = INSTR_COLLECTIVE;
        instr->collective = collective_from_name(name);
        if (instr->collective == COLLECTIVES)
            return reader_fail(r, "program", i,
                               "expected load, compute or a collective, got '%s'", name);
    }
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

bool reader_program(const Reader *r)
{
    json_t *array;
    if (!reader_array(r, "program", &array))
        return false;
    size_t n = json_array_size(array);
    Program *program = r->plan->program = program_new();
    program->instr = g_new0(Instr, n);
    program->capacity = (uint32_t)n;
    for (size_t i = 0; i < n; i++)
        if (!read_instr(r, i, json_array_get(array, i), &program->instr[program->n++]))
            return false;
    GError *wrong = NULL;
    if (program_check(program, r->graph, &wrong))
        return true;
    reader_fail(r, "program", READER_WHOLE, "%s", wrong->message);
    g_error_free(wrong);
    return false;
}
