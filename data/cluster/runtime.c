/* Reading what frameworks hold beside a plan. */
#include "data/cluster/runtime.h"

#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "data/base/names.h"
#include "data/base/path.h"
#include "data/cluster/members.h"

enum { SOURCE_MAX = 1000, MOST_COPIES = 16, MOST_LAYERS = 65535 };

/* clang-format off */
#define RUNTIME_MEMBERS(X)                                                                        \
    X(RuntimeText, Runtime, gradients, gradients, COUNT(0, 1), false, ALONE, 0)                   \
    X(RuntimeText, Runtime, bucket_copies, bucket_copies, COUNT(0, MOST_COPIES), false, ALONE, 0) \
    X(RuntimeText, Runtime, float_gradients, float_gradients, COUNT(0, 1), false, ALONE, 0)       \
    X(RuntimeText, Runtime, half_gradients, half_gradients, COUNT(0, 2), false, ALONE, 0)         \
    X(RuntimeText, Runtime, handed_gradients, handed_gradients, COUNT(0, 1), false, ALONE, 0)     \
    X(RuntimeText, Runtime, norms, norms, COUNT(0, MOST_COPIES), false, ALONE, 0)                 \
    X(RuntimeText, Runtime, gates, gates, COUNT(0, MOST_COPIES), false, ALONE, 0)                 \
    X(RuntimeText, Runtime, expert_bytes, expert_bytes, COUNT(0, MOST_COPIES), false, ALONE, 0)   \
    X(RuntimeText, Runtime, loss_copies, loss_copies, COUNT(0, MOST_COPIES), false, ALONE, 0)     \
    X(RuntimeText, Runtime, prefetch, prefetch, COUNT(0, MOST_LAYERS), false, ALONE, 0)           \
    X(RuntimeText, Runtime, bucket, bucket_bytes, BYTES(SMALLEST), false, ALONE, 0)               \
    X(RuntimeText, Runtime, context, context_bytes, BYTES(0), false, ALONE, 0)                    \
    X(RuntimeText, Runtime, workspace, workspace_bytes, BYTES(0), false, ALONE, 0)                \
    X(RuntimeText, Runtime, communicator, communicator_bytes, BYTES(0), false, ALONE, 0)          \
    X(RuntimeText, Runtime, host, host, FACTOR(LARGEST_SLOWDOWN), false, ALONE, 0)                \
    X(RuntimeText, Runtime, reserve, reserve, FACTOR(LARGEST_SLOWDOWN), false, ALONE, 0)
/* clang-format on */

#define STACK_MEMBER(key, unsaid, low, high) char *key;
typedef struct {
    char *name, *description, *source, *launch;
    RUNTIME_MEMBERS(MEMBER_TEXT)
    STACK_TABLE(STACK_MEMBER)
} RuntimeText;
#undef STACK_MEMBER

const Stack STACK_DEFAULT = {
#define X(key, unsaid, low, high) .key = unsaid,
    STACK_TABLE(X)
#undef X
        .launch_s = STACK_LAUNCH_S};

static const Member STACK[] = {
    MEMBER_ROW(RuntimeText, Stack, launch, launch_s, TIME, false, ALONE, NAN)
#define X(key, unsaid, low, high) \
    MEMBER_ROW(RuntimeText, Stack, key, key, NUMBER(low, high), false, ALONE, NAN)
        STACK_TABLE(X)
#undef X
};

static const Member MEMBERS[] = {RUNTIME_MEMBERS(MEMBER_ROW)};

static const cyaml_schema_field_t FIELDS[] = {
    TEXT("name", RuntimeText, name, NAME_MAX_BYTES),
    TEXT("description", RuntimeText, description, SOURCE_MAX),
    TEXT("source", RuntimeText, source, SOURCE_MAX),
    OPTIONAL_TEXT("launch", RuntimeText, launch, NAME_MAX_BYTES),
#define X(key, unsaid, low, high) OPTIONAL_TEXT(#key, RuntimeText, key, NAME_MAX_BYTES),
    STACK_TABLE(X)
#undef X
        RUNTIME_MEMBERS(MEMBER_FIELD) CYAML_FIELD_END,
};
static const cyaml_schema_value_t SCHEMA = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, RuntimeText, FIELDS)};

static const char FOLDER[] = "runtimes";

char **runtime_names(void)
{
    return path_list(FOLDER, ".yaml");
}

FREE_DEFINE(runtime_free, Runtime, runtime,
            free_each(runtime->name, runtime->description, runtime->source));

/* Closes the file. */
static Runtime *runtime_take(Yaml *file, GError **error)
{
    g_autoptr(Yaml) yaml = file;
    if (!yaml)
        return NULL;
    const RuntimeText *text = yaml_data(yaml);
    g_autoptr(Runtime) runtime = g_new0(Runtime, 1);
    runtime->name = g_strdup(text->name);
    runtime->description = g_strdup(text->description);
    runtime->source = g_strdup(text->source);
    runtime->stack = STACK_DEFAULT;
    runtime->bucket_bytes = RUNTIME_BUCKET;
    MEMBERS_READ(yaml, "", MEMBERS, text, runtime);
    MEMBERS_READ(yaml, "", STACK, text, &runtime->stack);
    return yaml_is_good(yaml, error) ? g_steal_pointer(&runtime) : NULL;
}

Runtime *runtime_parse(const char *file, const char *text, size_t length, GError **error)
{
    return runtime_take(yaml_parse(file, text, length, &SCHEMA, error), error);
}

Runtime *runtime_load(const char *name, GError **error)
{
    static const char ALLOCATED[] = "/allocated", RESERVED[] = "/reserved";
    const bool allocated = g_str_has_suffix(name, ALLOCATED),
               part = allocated || g_str_has_suffix(name, RESERVED);
    g_autofree char *own =
        g_strndup(name, part ? (gsize)(strrchr(name, '/') - name) : strlen(name));
    g_auto(GStrv) known = runtime_names();
    uint32_t index;
    if (!names_find("runtime", own, (const char *const *)known, &index, error))
        return NULL;
    g_autofree char *relative = g_strdup_printf(RUNTIME_FILE, known[index]);
    g_autofree char *file = path_find(relative);
    Runtime *runtime = runtime_take(yaml_read(file, &SCHEMA, error), error);
    if (!part || !runtime)
        return runtime;
    put_block(runtime->name, g_strdup(name));
    runtime->context_bytes = runtime->communicator_bytes = 0;
    if (allocated) {
        runtime->workspace_bytes = 0;
        runtime->reserve = 0;
    }
    return runtime;
}

uint64_t runtime_bucket_bytes(const Runtime *runtime, uint64_t asked_bytes)
{
    return asked_bytes > 0 ? asked_bytes
           : runtime       ? runtime->bucket_bytes
                           : RUNTIME_BUCKET;
}

static double runtime_fixed_bytes(const Runtime *runtime, bool fixed,
                                  uint32_t communicators)
{
    return fixed ? 0
                 : (double)runtime->context_bytes + (double)runtime->workspace_bytes +
                       communicators * (double)runtime->communicator_bytes;
}

double runtime_held_bytes(const Runtime *runtime, bool fixed, uint32_t communicators,
                          double peak_bytes)
{
    return runtime ? runtime_fixed_bytes(runtime, fixed, communicators) +
                         fmax(runtime->reserve - 1, 0) * peak_bytes
                   : 0;
}

uint64_t runtime_left_bytes(const Runtime *runtime, uint64_t capacity_bytes, bool fixed,
                            uint32_t communicators)
{
    /* The peak and what is held are rounded up to whole bytes. */
    const double left = ((double)capacity_bytes - 2 -
                         runtime_fixed_bytes(runtime, fixed, communicators)) /
                        fmax(runtime->reserve, 1);
    return left > 1 ? (uint64_t)left : 1;
}
