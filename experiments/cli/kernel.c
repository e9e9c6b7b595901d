/* kilter kernel: the time of one kernel on one device. */
#include <math.h>

#include "data/base/json.h"
#include "data/base/version.h"
#include "data/cluster/sheet.h"
#include "experiments/answers.h"
#include "experiments/cli/command.h"
#include "experiments/figures/figure.h"
#include "sim/cost/kernel.h"

/* clang-format off */
#define KERNEL_OPTIONS(X)            \
    X(TEXT, m, "m", 0)               \
    X(TEXT, n, "n", 0)               \
    X(TEXT, k, "k", 0)               \
    X(TEXT, batch, "batch", 0)       \
    X(TEXT, queries, "queries", 0)   \
    X(TEXT, keys, "keys", 0)         \
    X(TEXT, heads, "heads", 0)       \
    X(TEXT, kv_heads, "kv-heads", 0) \
    X(TEXT, head, "head", 0)         \
    X(TEXT, window, "window", 0)     \
    X(TEXT, elements, "elements", 0) \
    X(TEXT, read, "read", 0)         \
    X(TEXT, written, "written", 0)   \
    X(TEXT, rows, "rows", 0)         \
    X(TEXT, width, "width", 0)       \
    X(TEXT, height, "height", 0)     \
    X(TEXT, in, "in", 0)             \
    X(TEXT, out, "out", 0)           \
    X(TEXT, filter, "filter", 0)     \
    X(TEXT, stride, "stride", 0)     \
    X(TEXT, groups, "groups", 0)     \
    X(TEXT, tokens, "tokens", 0)     \
    X(TEXT, experts, "experts", 0)   \
    X(TEXT, top_k, "top-k", 0)       \
    X(TEXT, hidden, "hidden", 0)     \
    X(TEXT, inner, "inner", 0)       \
    X(TEXT, format, "format", 0)     \
    X(FLAG, causal, "causal", 0)     \
    X(FLAG, backward, "backward", 0) \
    X(FILE, plot, "plot", 0)
/* clang-format on */
COMMAND_OPTIONS(KernelOptions, kernel_options, KERNEL_OPTIONS)

/* The extents of each kind: the option that says it, where the kernel has it, what it is if it is
 * not said (NAN: it must be; 0: as the law takes it). */
#define KERNEL_EXTENTS(X)                               \
    X(PRODUCT, m, product.m, NAN)                       \
    X(PRODUCT, n, product.n, NAN)                       \
    X(PRODUCT, k, product.k, NAN)                       \
    X(PRODUCT, batch, product.batch, 1)                 \
    X(ATTENTION, batch, attention.batch, 1)             \
    X(ATTENTION, queries, attention.queries, NAN)       \
    X(ATTENTION, keys, attention.keys, 0)               \
    X(ATTENTION, heads, attention.heads, NAN)           \
    X(ATTENTION, kv_heads, attention.kv_heads, 0)       \
    X(ATTENTION, head, attention.head_qk, 128)          \
    X(ATTENTION, window, attention.window, 0)           \
    X(ELEMENTWISE, elements, elementwise.elements, NAN) \
    X(ELEMENTWISE, read, elementwise.read, 1)           \
    X(ELEMENTWISE, written, elementwise.written, 1)     \
    X(SOFTMAX, rows, rows.rows, NAN)                    \
    X(SOFTMAX, width, rows.width, NAN)                  \
    X(NORM, rows, rows.rows, NAN)                       \
    X(NORM, width, rows.width, NAN)                     \
    X(CONVOLUTION, batch, convolution.batch, NAN)       \
    X(CONVOLUTION, in, convolution.in, NAN)             \
    X(CONVOLUTION, out, convolution.out, NAN)           \
    X(CONVOLUTION, height, convolution.height, NAN)     \
    X(CONVOLUTION, width, convolution.width, NAN)       \
    X(CONVOLUTION, filter, convolution.rows, 3)         \
    X(CONVOLUTION, stride, convolution.stride, 1)       \
    X(CONVOLUTION, groups, convolution.groups, 1)       \
    X(EXPERTS, tokens, experts.tokens, NAN)             \
    X(EXPERTS, experts, experts.experts, NAN)           \
    X(EXPERTS, top_k, experts.top_k, 1)                 \
    X(EXPERTS, hidden, experts.hidden, NAN)             \
    X(EXPERTS, inner, experts.inner, NAN)

typedef struct {
    KernelKind kind;
    size_t option, member;
    double unsaid;
} KernelExtent;

#define KERNEL_EXTENT_ENTRY(kind, option, member, unsaid) \
    {KERNEL_##kind, offsetof(KernelOptions, option), offsetof(Kernel, member), unsaid},
static const KernelExtent EXTENT[] = {KERNEL_EXTENTS(KERNEL_EXTENT_ENTRY)};

/* The options of extents and flags by name. */
typedef struct {
    const char *name;
    size_t at;
} KernelWord;
#define KERNEL_WORD_TEXT(member, name) {name, offsetof(KernelOptions, member)},
#define KERNEL_WORD_FLAG(member, name)
#define KERNEL_WORD_FILE(member, name)
#define KERNEL_WORD(kind, member, name, ...) KERNEL_WORD_##kind(member, name)
static const KernelWord WORD[] = {KERNEL_OPTIONS(KERNEL_WORD)};

static const struct {
    const char *name;
    KernelKind kind;
    bool backward; /* it has one of its own */
} KIND[] = {{"matmul", KERNEL_PRODUCT, false},
            {"attention", KERNEL_ATTENTION, true},
            {"elementwise", KERNEL_ELEMENTWISE, false},
            {"softmax", KERNEL_SOFTMAX, true},
            {"norm", KERNEL_NORM, true},
            {"conv", KERNEL_CONVOLUTION, false},
            {"experts", KERNEL_EXPERTS, false}};

enum { MOST_EXTENT = 1 << 30, PLOT_POINTS = 129, GATED_MATRICES = 3 };

/* A question: the kernel at the lowest value of its range. */
typedef struct {
    const char *word; /* the kind */
    Kernel kernel;
    const char *ranged; /* the option that has a range; NULL: none */
    size_t ranged_at;   /* of its extent in the kernel */
    double low, high;
} KernelQuestion;

static double *kernel_number(Kernel *kernel, size_t at)
{
    return (double *)(void *)((char *)kernel + at);
}

static const KernelExtent *kernel_extent_find(KernelKind kind, size_t option)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(EXTENT); i++)
        if (EXTENT[i].kind == kind && EXTENT[i].option == option)
            return &EXTENT[i];
    return NULL;
}

/* --- reading --- */

static bool kernel_read_range(const char *name, const char *text,
                              const KernelExtent *extent, KernelQuestion *q,
                              GError **error)
{
    guint64 low, high;
    g_auto(GStrv) ends = g_strsplit(text, ":", 3);
    const bool range = g_strv_length(ends) == 2;
    if (!*ends || ends[1 + range * (ends[1] != NULL)] != NULL ||
        !g_ascii_string_to_unsigned(ends[0], 10, 1, MOST_EXTENT, &low, NULL) ||
        (range &&
         (!g_ascii_string_to_unsigned(ends[1], 10, 1, MOST_EXTENT, &high, NULL) ||
          high <= low)))
        return refuse(error,
                      "--%s: expected a whole number from 1 to %d, or LOW:HIGH with "
                      "--plot, got '%.60s'",
                      name, MOST_EXTENT, text);
    *kernel_number(&q->kernel, extent->member) = (double)low;
    if (!range)
        return true;
    if (q->ranged)
        return refuse(error, "--%s: expected one range, --%s is one", name, q->ranged);
    q->ranged = name;
    q->ranged_at = extent->member;
    q->low = (double)low;
    q->high = (double)high;
    return true;
}

static bool kernel_read_extents(const KernelOptions *own, KernelQuestion *q,
                                GError **error)
{
    items_each (const KernelWord, word, WORD, G_N_ELEMENTS(WORD)) {
        const KernelExtent *extent = kernel_extent_find(q->kernel.kind, word->at);
        const char *text = *(char *const *)(const void *)((const char *)own + word->at);
        if (word->at == offsetof(KernelOptions, format) || (!text && !extent))
            continue;
        if (!extent)
            return refuse(error,
                          "--%s: kilter kernel %s has none; see kilter kernel --help",
                          word->name, q->word);
        if (!text && isnan(extent->unsaid))
            return refuse(error, "kilter kernel %s: expected --%s", q->word, word->name);
        if (!text)
            *kernel_number(&q->kernel, extent->member) = extent->unsaid;
        else if (!kernel_read_range(word->name, text, extent, q, error))
            return false;
    }
    return true;
}

/* Sets the members that follow from extents. */
static void kernel_settle(Kernel *kernel)
{
    const double bytes = kernel_format_bytes(kernel->format);
    switch (kernel->kind) {
    case KERNEL_PRODUCT:
    case KERNEL_BATCHED:
        kernel->kind = kernel->product.batch > 1 ? KERNEL_BATCHED : KERNEL_PRODUCT;
        kernel->product.converts = true;
        break;
    case KERNEL_ELEMENTWISE:
        kernel->elementwise.read *= bytes;
        kernel->elementwise.written *= bytes;
        break;
    case KERNEL_ATTENTION:
        kernel->attention.head_v = kernel->attention.head_qk;
        if (kernel->attention.keys == 0)
            kernel->attention.keys = kernel->attention.queries;
        if (kernel->attention.kv_heads == 0)
            kernel->attention.kv_heads = kernel->attention.heads;
        break;
    case KERNEL_CONVOLUTION:
        kernel->convolution.columns = kernel->convolution.rows;
        break;
    case KERNEL_EXPERTS:
        kernel->experts.matrices = GATED_MATRICES;
        kernel->experts.library = KERNEL_EXPERTS_TRAINING;
        break;
    default:
        break;
    }
}

static bool kernel_read_format(const KernelOptions *own, const KernelDevice *device,
                               KernelQuestion *q, GError **error)
{
    KernelFormat *format = &q->kernel.format;
    *format = device->peak[KERNEL_BF16] > 0   ? KERNEL_BF16
              : device->peak[KERNEL_FP16] > 0 ? KERNEL_FP16
                                              : KERNEL_FP32;
    if (own->format && !kernel_format_find(own->format, format, error))
        return kilter_prefix(error, "--format: ");
    if (device->peak[*format] > 0)
        return true;
    g_autoptr(GString) known = g_string_new(NULL);
    for (KernelFormat f = 0; f < KERNEL_FORMATS; f++)
        if (device->peak[f] > 0)
            g_string_append_printf(known, "%s%s", known->len ? ", " : "",
                                   kernel_format_name(f));
    return refuse(error, "--format: expected what %s computes in (%s), got %s",
                  device->name, known->str, kernel_format_name(*format));
}

/* A message about extents that do not go together; NULL: they do. */
static const char *kernel_misfit(const Kernel *kernel)
{
    if (kernel->kind == KERNEL_ATTENTION &&
        fmod(kernel->attention.heads, kernel->attention.kv_heads) != 0)
        return "--kv-heads: expected a divisor of --heads";
    if (kernel->kind == KERNEL_ATTENTION && kernel->attention.causal &&
        kernel->attention.keys < kernel->attention.queries)
        return "--keys: expected at least --queries where --causal";
    if (kernel->kind == KERNEL_CONVOLUTION &&
        (fmod(kernel->convolution.in, kernel->convolution.groups) != 0 ||
         fmod(kernel->convolution.out, kernel->convolution.groups) != 0))
        return "--groups: expected a divisor of --in and --out";
    return NULL;
}

static bool kernel_read(const char *kind, const KernelOptions *own,
                        const KernelDevice *device, KernelQuestion *q, GError **error)
{
    g_autofree const char **known = NAMES_OF(KIND, name);
    uint32_t i;
    if (!names_find("kernel", kind, known, &i, error))
        return false;
    *q = (KernelQuestion){.word = KIND[i].name, .kernel = {.kind = KIND[i].kind}};
    q->kernel.backward = own->backward;
    if (own->backward && !KIND[i].backward)
        return refuse(error, "--backward: kilter kernel %s has no backward of its own",
                      kind);
    if (own->causal && q->kernel.kind != KERNEL_ATTENTION)
        return refuse(error, "--causal: expected kilter kernel attention");
    if (!kernel_read_format(own, device, q, error) || !kernel_read_extents(own, q, error))
        return false;
    if (q->kernel.kind == KERNEL_ATTENTION)
        q->kernel.attention.causal = own->causal;
    if ((own->plot != NULL) != (q->ranged != NULL))
        return refuse(
            error, "--plot: expected a folder and one extent that is a range, LOW:HIGH");
    Kernel ends[] = {q->kernel, q->kernel};
    if (q->ranged)
        *kernel_number(&ends[1], q->ranged_at) = q->high;
    for (uint32_t e = 0; e < G_N_ELEMENTS(ends); e++) {
        kernel_settle(&ends[e]);
        if (kernel_misfit(&ends[e]))
            return refuse(error, "%s", kernel_misfit(&ends[e]));
    }
    return true;
}

/* --- answering --- */

/* The part of the roofline that it reaches: the least time by peak and bandwidth, over the time. */
static double kernel_reach(const KernelReport *report)
{
    return fmax(report->flops / report->peak, report->bytes / report->bandwidth) /
           report->time_s;
}

static KernelReport kernel_answer(const KernelDevice *device, const KernelQuestion *q,
                                  double at)
{
    Kernel kernel = q->kernel;
    if (q->ranged)
        *kernel_number(&kernel, q->ranged_at) = at;
    kernel_settle(&kernel);
    return kernel_report(device, &kernel);
}

static json_t *kernel_report_json(const KernelReport *report)
{
    json_t *tiles = NULL;
    if (report->tiles > 0)
        tiles = json_pack("{s:f, s:f, s:f, s:f, s:f}", "rows", report->tile_m, "columns",
                          report->tile_n, "count", report->tiles, "waves", report->waves,
                          "splits", report->splits);
    return json_pack(
        "{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:{s:o, s:o, s:o, s:o, s:o}, "
        "s:o*}",
        "time_s", json_number(report->time_s), "limit", kernel_limit_name(report->limit),
        "flops", json_number(report->flops), "bytes", json_number(report->bytes), "rate",
        json_number(report->flops / report->time_s), "bandwidth",
        json_number(report->bytes / report->time_s), "share_of_peak",
        json_number(report->flops / report->time_s / report->peak), "share_of_bandwidth",
        json_number(report->bytes / report->time_s / report->bandwidth), "share_of_roof",
        json_number(kernel_reach(report)), "parts", "compute_s",
        json_number(report->compute_s), "power_s", json_number(report->power_s),
        "memory_s", json_number(report->memory_s), "cache_s",
        json_number(report->cache_s), "start_s", json_number(report->start_s), "tiles",
        tiles);
}

/* Steps of equal factors, whole numbers, each once. */
static bool kernel_plot(const KernelDevice *device, const KernelQuestion *q,
                        const char *folder, json_t *points, GError **error)
{
    g_autoptr(GString) text =
        g_string_new("# extent\tflop/byte\tFLOP/s\tB/s\ttime_s\tshare\tpeak\tbandwidth\t"
                     "limit\n");
    double last = 0;
    for (int i = 0; i < PLOT_POINTS; i++) {
        const double at =
            round(q->low * pow(q->high / q->low, i / (double)(PLOT_POINTS - 1)));
        if (at == last)
            continue;
        last = at;
        const KernelReport report = kernel_answer(device, q, at);
        g_string_append_printf(
            text, "%.0f\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\t%s\n", at,
            report.flops / report.bytes, report.flops / report.time_s,
            report.bytes / report.time_s, report.time_s, kernel_reach(&report),
            report.peak, report.bandwidth, kernel_limit_name(report.limit));
        json_t *point = kernel_report_json(&report);
        json_object_set_new(point, "at", json_number(at));
        json_array_append_new(points, point);
    }
    return figure_draw_text("kernel", text->str, folder, error);
}

static bool kernel_say(const KernelDevice *device, const KernelQuestion *q,
                       const KernelOptions *own, const CommandOptions *options,
                       GError **error)
{
    json_t *points = json_array();
    const KernelReport report = kernel_answer(device, q, q->low);
    if (own->plot && !kernel_plot(device, q, own->plot, points, error)) {
        json_decref(points);
        return false;
    }
    json_t *object = kernel_report_json(&report);
    json_object_update_new(object,
                           json_pack("{s:s, s:s, s:s, s:s*, s:s, s:O*}", "kernel",
                                     q->word, "device", device->name, "number_format",
                                     kernel_format_name(q->kernel.format), "missing",
                                     device->missing, "version", KILTER_VERSION, "points",
                                     own->plot ? points : NULL));
    json_decref(points);
    command_report(options, object, ANSWER_KERNEL, NULL);
    return true;
}

COMMAND(kernel, KernelOptions, KERNEL_OPTIONS, 0)
{
    g_autoptr(Sheets) sheets = sheets_load(error);
    const DeviceSheet *sheet = sheets ? sheets_device(sheets, argv[2], error) : NULL;
    if (!sheet)
        return false;
    DeviceType type = device_sheet_type(sheet);
    g_autoptr(GError) failed = NULL;
    g_autoptr(KernelDevice) device = kernel_device_new(&type, &failed);
    g_free(type.name);
    g_free(type.source);
    if (failed) {
        g_propagate_error(error, g_steal_pointer(&failed));
        return false;
    }
    if (!device)
        return refuse(error,
                      "%s: its data sheet has no bandwidth, or neither clock nor "
                      "processors; times of kernels follow from these",
                      sheet->name);
    KernelQuestion question;
    return kernel_read(argv[1], own, device, &question, error) &&
           kernel_say(device, &question, own, options, error);
}
