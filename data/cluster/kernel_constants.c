/* Reads data/kernels.yaml:
 *
 *     laws:
 *       - law: simt
 *         source: what its constants were fitted to
 *         constants:
 *           - {name: share, value: 1.06, unit: "1"}             # as the table has it
 *           - {name: issue, value: 0.80, unit: "1", source: another} */
#include "data/cluster/kernel_constants.h"

#include <cyaml/cyaml.h>
#include <string.h>

#include "data/base/names.h"
#include "data/base/path.h"
#include "data/cluster/members.h"

enum { SOURCE_MAX = 1000, LAWS_MAX = 100, CONSTANTS_MAX = 100 };

/* --- tables --- */

/* The laws and their constants. */
typedef struct {
    const char *name, *unit;
    double low, high;
} KernelConstant;
typedef struct {
    const char *name;
    size_t offset; /* of the law in KernelConstants */
    uint32_t n;
    const KernelConstant *constant;
} KernelLaw;

#define ROW(member, unit, low, high) {#member, unit, low, high},
#define Y(Struct, constants) \
    static const KernelConstant constants[] = {constants##_CONSTANTS(ROW)};
KERNEL_LAW_TABLE(Y)
#undef Y

#define LAW_ROW(text, member, rows)                                       \
    {                                                                     \
        text, offsetof(KernelConstants, member), G_N_ELEMENTS(rows), rows \
    }
static const KernelLaw LAWS[] = {LAW_ROW("simt", simt, PRODUCT),
                                 LAW_ROW("tensor", tensor, PRODUCT),
                                 LAW_ROW("lane", lane, LANE),
                                 LAW_ROW("stream", stream, STREAM),
                                 LAW_ROW("memory", memory, MEMORY),
                                 LAW_ROW("convolution", convolution, CONVOLUTION),
#define X(id, name) LAW_ROW(name, attention[KERNEL_ATTENTION_##id], ATTENTION),
                                 KERNEL_ATTENTION_TABLE(X)
#undef X
#define X(id, name) LAW_ROW(name, experts[KERNEL_EXPERTS_##id], EXPERT),
                                     KERNEL_EXPERTS_TABLE(X)
#undef X
};

static double *kernel_constant_at(KernelConstants *constants, const KernelLaw *law,
                                  uint32_t row)
{
    return (double *)(void *)((char *)constants + law->offset) + row;
}

/* --- reading --- */

#define GENERATION_MEMBERS(X)                                                           \
    X(GenerationText, KernelGeneration, sm, sm, COUNT(1, 10000), false, ALONE, 0)       \
    X(GenerationText, KernelGeneration, gcn, gcn, COUNT(1, 10000), false, ALONE, 0)     \
    X(GenerationText, KernelGeneration, lanes, lanes, NUMBER(1, 1e5), true, ALONE, NAN) \
    X(GenerationText, KernelGeneration, threads, threads, NUMBER(1, 1e6), true, ALONE,  \
      NAN)                                                                              \
    X(GenerationText, KernelGeneration, l2, l2_bytes, SIZE, true, ALONE, NAN)           \
    X(GenerationText, KernelGeneration, process, process_nm, NUMBER(0.1, 1000), true,   \
      ALONE, NAN)

typedef struct {
    char *name, *value, *unit, *source;
} ConstantText;
typedef struct {
    char *law, *source;
    ConstantText *constant;
    uint32_t constant_count;
} LawText;
typedef struct {
    GENERATION_MEMBERS(MEMBER_TEXT)
} GenerationText;
typedef struct {
    LawText *law;
    GenerationText *generation;
    uint32_t law_count, generation_count;
} LawsText;

static const Member GENERATION_MEMBER[] = {GENERATION_MEMBERS(MEMBER_ROW)};

static const cyaml_schema_field_t CONSTANT_FIELD[] = {
    TEXT("name", ConstantText, name, NAME_MAX_BYTES),
    TEXT("value", ConstantText, value, NAME_MAX_BYTES),
    TEXT("unit", ConstantText, unit, NAME_MAX_BYTES),
    OPTIONAL_TEXT("source", ConstantText, source, SOURCE_MAX),
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t LAW_FIELD[] = {
    TEXT("law", LawText, law, NAME_MAX_BYTES),
    TEXT("source", LawText, source, SOURCE_MAX),
    LIST("constants", LawText, constant, ConstantText, CONSTANT_FIELD, CONSTANTS_MAX),
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t GENERATION_FIELD[] = {GENERATION_MEMBERS(MEMBER_FIELD)
                                                            CYAML_FIELD_END};
static const cyaml_schema_field_t LAWS_FIELD[] = {
    LIST("generations", LawsText, generation, GenerationText, GENERATION_FIELD,
         KERNEL_GENERATIONS_MAX),
    LIST("laws", LawsText, law, LawText, LAW_FIELD, LAWS_MAX),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t LAWS_SCHEMA = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, LawsText, LAWS_FIELD)};

static bool constants_read_row(const Yaml *yaml, const char *key,
                               const ConstantText *text, const KernelLaw *law,
                               KernelConstants *constants)
{
    g_autofree char *name = yaml_key(key, "name");
    uint32_t row = NAME_PLACE(law->constant, law->n, name, text->name);
    if (row == law->n || !isnan(*kernel_constant_at(constants, law, row)))
        return yaml_wrong(
            yaml, name,
            "expected a constant of the law %s that was not given yet, got '%s'",
            law->name, text->name);
    const KernelConstant *constant = &law->constant[row];
    if (strcmp(text->unit, constant->unit) != 0)
        return yaml_wrong(yaml, yaml_at(yaml, "%s.unit", key), "expected '%s', got '%s'",
                          constant->unit, text->unit);
    return yaml_number(yaml, yaml_at(yaml, "%s.value", key), text->value, constant->low,
                       constant->high, kernel_constant_at(constants, law, row));
}

static bool constants_read_law(const Yaml *yaml, const char *key, const LawText *text,
                               KernelConstants *constants)
{
    g_autofree char *name = yaml_key(key, "law");
    uint32_t l = NAME_PLACE(LAWS, G_N_ELEMENTS(LAWS), name, text->law);
    if (l == G_N_ELEMENTS(LAWS))
        return yaml_wrong(yaml, name, "unknown law '%s'", text->law);
    return all_of(i, text->constant_count,
                  constants_read_row(yaml, yaml_at(yaml, "%s.constants[%u]", key, i),
                                     &text->constant[i], &LAWS[l], constants));
}

/* Rows of one maker must rise. */
static bool constants_read_generations(const Yaml *yaml, const LawsText *text,
                                       KernelConstants *constants)
{
    constants->n_generations = text->generation_count;
    for (uint32_t i = 0; i < text->generation_count; i++) {
        g_autofree char *key = g_strdup_printf("generations[%u]", i);
        KernelGeneration *row = &constants->generation[i];
        *row = (KernelGeneration){0};
        if (!MEMBERS_READ(yaml, key, GENERATION_MEMBER, &text->generation[i], row))
            return false;
        if ((row->sm > 0) == (row->gcn > 0) ||
            (i > 0 && (row[-1].gcn > 0) == (row->gcn > 0) &&
             row->sm + row->gcn <= row[-1].sm + row[-1].gcn))
            return yaml_wrong(yaml, key, "expected either sm or gcn, rising");
    }
    return true;
}

static bool constants_read(const Yaml *yaml, KernelConstants *constants, GError **error)
{
    const LawsText *text = yaml_data(yaml);
    constants_read_generations(yaml, text, constants);
    for (uint32_t l = 0; l < G_N_ELEMENTS(LAWS); l++)
        for (uint32_t i = 0; i < LAWS[l].n; i++)
            *kernel_constant_at(constants, &LAWS[l], i) = NAN;
    for (uint32_t i = 0; i < text->law_count; i++)
        constants_read_law(yaml, yaml_at(yaml, "laws[%u]", i), &text->law[i], constants);
    for (uint32_t l = 0; l < G_N_ELEMENTS(LAWS); l++)
        for (uint32_t i = 0; yaml_is_good(yaml, NULL) && i < LAWS[l].n; i++)
            if (isnan(*kernel_constant_at(constants, &LAWS[l], i)))
                yaml_wrong(yaml, "laws", "expected the constant %s of the law %s",
                           LAWS[l].constant[i].name, LAWS[l].name);
    return yaml_is_good(yaml, error);
}

typedef struct {
    char *path;
    KernelConstants constants;
} ConstantsFile;

/* The first file that a process reads; NULL: it cannot be read. */
static void *constants_first(void *path)
{
    ConstantsFile *first = g_new0(ConstantsFile, 1);
    g_autoptr(Yaml) yaml = yaml_read(path, &LAWS_SCHEMA, NULL);
    if (yaml && constants_read(yaml, &first->constants, NULL)) {
        first->path = g_strdup(path);
        return first;
    }
    g_free(first);
    return NULL;
}

bool kernel_constants_load(KernelConstants *constants, GError **error)
{
    static GOnce once = G_ONCE_INIT;
    g_autofree char *path = path_bundled("kernels.yaml", error);
    if (!path)
        return false;
    const ConstantsFile *first = g_once(&once, constants_first, path);
    if (first && strcmp(first->path, path) == 0) {
        *constants = first->constants;
        return true;
    }
    g_autoptr(Yaml) yaml = yaml_read(path, &LAWS_SCHEMA, error);
    return yaml && constants_read(yaml, constants, error);
}
