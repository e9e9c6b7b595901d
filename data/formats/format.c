/* Telling formats by the first bytes of a file. */
#include "data/formats/format.h"

#include <string.h>

#include "data/base/json.h"
#include "data/base/stream.h"
#include "data/base/text.h"
#include "data/formats/measured/training_log.h"
#include "data/formats/trace/trace.h"

enum { HEAD_BYTES = 1 << 18 };

/* The beginning of a file. */
typedef struct {
    const char *file;  /* NULL: a text without a file */
    const char *text;  /* ends in '\0' */
    const char *start; /* its first character that is no byte-order mark or blank */
    gsize length;
} FormatHead;

static bool head_holds(const FormatHead *head, const char *pattern)
{
    return g_regex_match_simple(pattern, head->text, G_REGEX_RAW, 0);
}

static bool head_is_named(const FormatHead *head, const char *ending)
{
    return head->file && g_str_has_suffix(head->file, ending);
}

static bool head_is_sqlite(const FormatHead *head)
{
    static const char MAGIC[] = "SQLite format 3";
    return head->length > sizeof MAGIC && memcmp(head->text, MAGIC, sizeof MAGIC) == 0;
}

/* An object of JSON with a member of this name, which may be anywhere in the file. */
static bool head_has_member(const FormatHead *head, const char *key)
{
    g_autofree char *quoted = g_strdup_printf("\"%s\"", key);
    return *head->start == '{' &&
           (head->file ? json_file_has(head->file, key) : !!strstr(head->text, quoted));
}

/* --- a sniffer per format --- */

#define SNIFF(id, holds)                                                \
    static bool format_sniff_##id(G_GNUC_UNUSED const FormatHead *head) \
    {                                                                   \
        return holds;                                                   \
    }

/* The program's number at byte 68 of SQLite is "Kltr" (data/store/schema.sql). */
static bool format_sniff_STORE(const FormatHead *head)
{
    enum { PROGRAM = 68 };
    return head_is_sqlite(head) && head->length >= PROGRAM + 4 &&
           memcmp(head->text + PROGRAM, "Kltr", 4) == 0;
}

SNIFF(NSYS, head_is_sqlite(head))
SNIFF(ONNX, head_is_named(head, ".onnx"))
SNIFF(TORCH, head_is_named(head, ".pt2"))
SNIFF(CHAKRA, head->file != NULL && trace_is(head->file))
SNIFF(NCCL_TOPOLOGY, *head->start == '<' && !g_str_has_prefix(head->start, "<algo "))
SNIFF(PLAN, head_has_member(head, "kilter"))

static bool head_is_marked(const FormatHead *head, FileFormat format)
{
    g_autofree char *mark = g_strdup_printf("\"%s\"", format_row(format)->mark);
    return *head->start == '{' && strstr(head->text, mark);
}

SNIFF(GRAPH, head_is_marked(head, FORMAT_GRAPH))
SNIFF(PROFILE, head_is_marked(head, FORMAT_PROFILE))
SNIFF(HUGGINGFACE, head_has_member(head, "model_type") ||
                       head_has_member(head, "architectures") ||
                       head_has_member(head, "_class_name"))
SNIFF(CHECKPOINT, head_has_member(head, "weight_map"))
SNIFF(BLOCKS,
      (head_is_named(head, ".yaml") || head_is_named(head, ".yml")) &&
          (g_str_has_prefix(head->start, "like:") || strstr(head->text, "\nlike:")))
SNIFF(PROFILE_TABLE, head_is_named(head, "-ops.csv"))

static bool format_sniff_KINETO(const FormatHead *head)
{
    const bool object =
        *head->start == '{' &&
        head_holds(head, "\"(?:schemaVersion|traceEvents|deviceProperties|"
                         "distributedInfo|schema)\"");
    const bool list = *head->start == '[' &&
                      head->start[1 + strspn(head->start + 1, " \t\r\n")] == '{' &&
                      head_holds(head, "\"(?:ph|ts|cat)\"");
    return (object || list) && !strstr(head->text, "\"config\"");
}

SNIFF(SNAPSHOT, *head->text == '\x80' || head_has_member(head, "segments"))
SNIFF(TASKS, head_has_member(head, "task"))

/* The first line that is not a comment names the columns. */
SNIFF(MEASUREMENTS, head_holds(head, "\\A(?:[#\r][^\n]*\n|\n)*+(?![#\r])(?=[^\r\n]*,)"
                                     "[^\r\n]*median_s"))
SNIFF(NCCL_TESTS,
      *head->start != '{' && strstr(head->text, "busbw") && strstr(head->text, "algbw"))
SNIFF(NCCL_TESTS_JSON, *head->start == '{' && head_holds(head, "\"(?:config|results)\""))

/* Not a table whose cells say what a log would. */
SNIFF(TRAINING_LOG, !head_is_named(head, ".csv") &&
                        training_log_parse(head->text, (double[LOG_QUANTITIES]){0}))

/* A record of scontrol, the header of sinfo, or nodes of Kubernetes. */
SNIFF(SLURM, head_holds(head, "(?:\\A|\\s)NodeName=") ||
                 (head_holds(head, "NODELIST|HOSTNAMES|GPU\\.PRODUCT|"
                                   "(?:nvidia|amd)\\.com/gpu|kubernetes\\.io/hostname") &&
                  !strstr(head->text, "<system")))
SNIFF(ROCM_SMI, head_holds(head, "(?:Link Type|Hops|Weight) between two GPUs|"
                                 "ROCm System Management Interface"))
SNIFF(NVIDIA_SMI,
      head_holds(head, "GPU0|GPU 0: |NVIDIA-SMI ") && !strchr("{[", *head->start))

/* Formats that are only written. */
SNIFF(GOAL, false)
SNIFF(TIMELINE, false)
SNIFF(DOT, false)
SNIFF(FRAMEWORK, false)

/* --- the table --- */

#ifdef KILTER_PROTOBUF_C
#define HAS_PROTOBUF true
#else
#define HAS_PROTOBUF false
#endif

#define FORMAT_ENTRY(id, name, noun, mark, reads, writes, library, what) \
    {name,    mark, reads,         writes,                               \
     library, what, FORMAT_##noun, HAS_PROTOBUF || sizeof library == 1},
static const FormatRow ROW[] = {FORMAT_TABLE(FORMAT_ENTRY)};

const FormatRow *format_row(FileFormat format)
{
    g_assert(format < FORMATS);
    return &ROW[format];
}

static FileFormat format_of_head(const FormatHead *head, FormatNoun nouns)
{
#define FORMAT_SNIFF(id, ...) format_sniff_##id,
    static bool (*const SNIFF[])(const FormatHead *) = {FORMAT_TABLE(FORMAT_SNIFF)};
    for (FileFormat f = 0; f < FORMATS; f++)
        if ((ROW[f].noun & nouns) && SNIFF[f](head))
            return f;
    return FORMATS;
}

static FormatHead format_head(const char *file, const char *text, gsize length)
{
    const char *start = text + (g_str_has_prefix(text, "\xef\xbb\xbf") ? 3 : 0);
    return (FormatHead){file, text, start + strspn(start, " \t\r\n"), length};
}

FileFormat format_of_file(const char *file, FormatNoun nouns)
{
    g_autofree char *text = g_malloc(HEAD_BYTES + 1);
    gsize length = 0, n = 0;
    if (!stream_head(file, text, HEAD_BYTES, &length))
        return FORMATS;
    text[length] = '\0';
    g_autofree char *converted = text_from_utf16(text, length & ~(gsize)1, &n);
    const FormatHead head =
        converted ? format_head(file, converted, n) : format_head(file, text, length);
    return format_of_head(&head, nouns);
}

FileFormat format_of_text(const char *text, gsize length, FormatNoun nouns)
{
    g_assert(text[length] == '\0');
    const FormatHead head = format_head(NULL, text, length);
    return format_of_head(&head, nouns);
}

FileFormat format_of_model(const json_t *root)
{
    const char *name =
        json_string_value(json_object_get(json_object_get(root, "format"), "name"));
    for (FileFormat f = 0; name && f < FORMATS; f++)
        if (ROW[f].mark && strcmp(ROW[f].mark, name) == 0)
            return f;
    return FORMAT_HUGGINGFACE;
}

char *format_hint(const char *file, const char *text, gsize length)
{
    const FileFormat f = file ? format_of_file(file, FORMAT_ANY)
                              : format_of_text(text, length, FORMAT_ANY);
    if (f == FORMATS || !*ROW[f].reads)
        return g_strdup("");
    g_autofree char *command = g_strndup(ROW[f].reads, strcspn(ROW[f].reads, ","));
    return g_strdup_printf("; it looks like a %s, which kilter %s reads", ROW[f].what,
                           command);
}
