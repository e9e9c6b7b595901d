/* Measured kernels (../shared/measured/kernels) as rows of kernels, devices and times, for tests
 * of the laws. */
#ifndef KILTER_TESTS_SUPPORT_KERNEL_ROWS_H
#define KILTER_TESTS_SUPPORT_KERNEL_ROWS_H

#include "data/data.h"
#include "sim/cost/kernel.h"
#include "tests/support/kernel_device.h"

typedef struct {
    const char *device, *what, *op; /* interned */
    uint32_t index;                 /* of the device in KernelRows */
    Kernel kernel;
    double s;
    /* Of a benchmark of single calls, whose host records an event, launches and records another:
     * from event to event where nothing is computed, and what of that passes after the launch;
     * 0: replayed graphs */
    double host_s, after_s;
    bool zeros;  /* its inputs are zeros, for which lanes draw less power */
    double seen; /* place of a convolution's shape in its benchmark, from 1; others: 0 */
} KernelRow;

typedef struct {
    GArray *row;       /* KernelRow */
    GPtrArray *device; /* KernelDevice, or NULL: no such sheet */
    GPtrArray *name;
    GHashTable *seen; /* shape of a convolution -> its place, from 1 */
} KernelRows;

/* randint of Python's random: as many bits as the range has, until they are in it. */
static inline uint32_t kernel_rows_randint(GRand *rand, uint32_t low, uint32_t high)
{
    const uint32_t n = high - low + 1;
    uint32_t r;
    do
        r = g_rand_int(rand) >> (32 - g_bit_storage(n));
    while (r >= n);
    return low + r;
}

static inline char *kernel_rows_shape(double b, double m, double n, double image)
{
    return g_strdup_printf("%g %g %g %g", b, m, n, image);
}

/* The benchmark's convolutions in its order, which the rows have lost: 5,000 shapes of
 * random.seed(42), as NeuSight's generate_train_conv (neusight/Dataset/dims.py) draws them. */
static inline GHashTable *kernel_rows_seen(void)
{
    enum { SHAPES = 5000 };
    const guint32 seed = 42;
    GRand *rand = g_rand_new_with_seed_array(&seed, 1);
    GHashTable *seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    while (g_hash_table_size(seen) < SHAPES) {
        const double b = kernel_rows_randint(rand, 1, 64),
                     m = kernel_rows_randint(rand, 3, 2048),
                     n = kernel_rows_randint(rand, 3, 2048),
                     k = kernel_rows_randint(rand, 3, 3),
                     image = kernel_rows_randint(rand, 5, 256);
        for (uint32_t i = 0; i < 2; i++) /* stride and padding */
            kernel_rows_randint(rand, 1, 1);
        if (2 * m * n * k * k * image * image <= 1e9)
            g_hash_table_insert(seen, kernel_rows_shape(b, m, n, image),
                                GUINT_TO_POINTER(g_hash_table_size(seen) + 1));
    }
    g_rand_free(rand);
    return seen;
}

static inline KernelRows *kernel_rows_new(void)
{
    KernelRows *rows = g_new0(KernelRows, 1);
    rows->row = g_array_new(FALSE, TRUE, sizeof(KernelRow));
    rows->device = g_ptr_array_new_with_free_func((GDestroyNotify)kernel_device_free);
    rows->name = g_ptr_array_new();
    rows->seen = kernel_rows_seen();
    return rows;
}

static inline void kernel_rows_free(KernelRows *rows)
{
    g_array_unref(rows->row);
    g_ptr_array_unref(rows->device);
    g_ptr_array_unref(rows->name);
    g_hash_table_unref(rows->seen);
    g_free(rows);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KernelRows, kernel_rows_free)

static inline double kernel_rows_cell(const Csv *csv, const char *column)
{
    return g_ascii_strtod(csv_text(csv, column), NULL);
}

static inline void kernel_rows_add(KernelRows *rows, const Csv *csv, KernelRow row)
{
    row.device = g_intern_string(csv_text(csv, "device"));
    guint index;
    if (!g_ptr_array_find(rows->name, row.device, &index)) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Sheets) sheets = sheets_load(&error);
        assert_no_error(error);
        const bool known = sheets_device(sheets, row.device, &error) != NULL;
        index = rows->name->len;
        g_ptr_array_add(rows->name, (gpointer)row.device);
        g_ptr_array_add(rows->device, known ? kernel_device_of(row.device) : NULL);
        if (!known)
            print_message("no sheet of %s\n", row.device);
    }
    row.index = index;
    row.s = kernel_rows_cell(csv, "ms") * 1e-3;
    const KernelDevice *device = rows->device->pdata[index];
    if (device && device->peak[row.kernel.format] > 0 && row.s > 0)
        g_array_append_val(rows->row, row);
}

/* gemm_fp32.csv, elementwise_fp32.csv, conv_fp32.csv, models_shapes_fp32.csv: k is the output's
 * width, n is summed. */
static inline bool kernel_rows_fp32(const Csv *csv, void *data, GError **error)
{
    static const struct {
        const char *op;
        KernelKind kind;
        double read, host_us, after_us;
    } OP[] = {{"linear", KERNEL_PRODUCT, 0, 47.0838, 13},
              {"bmm", KERNEL_BATCHED, 0, 32.6907, 13},
              {"conv", KERNEL_CONVOLUTION, 0, 250, 0}, /* rough */
              {"ln", KERNEL_NORM, 0, 54.4746, 13},
              {"softmax", KERNEL_SOFTMAX, 0, 37.9208, 13},
              {"add", KERNEL_ELEMENTWISE, 8, 31.0659, 13},
              {"mul", KERNEL_ELEMENTWISE, 8, 31.0659, 13},
              {"div", KERNEL_ELEMENTWISE, 8, 31.0659, 13},
              {"pow", KERNEL_ELEMENTWISE, 8, 31.0659, 13},
              {NULL, KERNEL_ELEMENTWISE, 4, 31.0659, 13}};
    KernelRows *rows = data;
    g_autofree char *shape = NULL;
    const char *op = csv_text(csv, "op");
    uint32_t i = 0;
    while (OP[i].op && strcmp(op, OP[i].op) != 0)
        i++;
    const double b = kernel_rows_cell(csv, "b"), m = kernel_rows_cell(csv, "m"),
                 n = kernel_rows_cell(csv, "n"), k = kernel_rows_cell(csv, "k"),
                 image = kernel_rows_cell(csv, "image");
    KernelRow row = {.what = OP[i].kind == KERNEL_ELEMENTWISE ? "elementwise" : OP[i].op,
                     .op = g_intern_string(op),
                     .kernel = {.kind = OP[i].kind, .format = KERNEL_FP32, .alone = true},
                     .host_s = OP[i].host_us * 1e-6,
                     .after_s = OP[i].after_us * 1e-6,
                     .zeros = OP[i].kind == KERNEL_CONVOLUTION};
    Kernel *kernel = &row.kernel;
    (void)error;
    switch (OP[i].kind) {
    case KERNEL_CONVOLUTION:
        kernel->convolution.batch = b;
        kernel->convolution.in = m;
        kernel->convolution.out = n;
        kernel->convolution.height = kernel->convolution.width = image;
        kernel->convolution.rows = kernel->convolution.columns = k;
        shape = kernel_rows_shape(b, m, n, image);
        row.seen = GPOINTER_TO_UINT(g_hash_table_lookup(rows->seen, shape));
        assert_true(row.seen > 0);
        break;
    case KERNEL_NORM:
    case KERNEL_SOFTMAX:
        kernel->rows.rows = b;
        kernel->rows.width = m;
        break;
    case KERNEL_ELEMENTWISE:
        kernel->elementwise.elements = b * m;
        kernel->elementwise.read = OP[i].read;
        kernel->elementwise.written = 4;
        break;
    default:
        kernel->product.batch = b;
        kernel->product.m = OP[i].kind == KERNEL_PRODUCT ? b * m : m;
        kernel->product.n = k;
        kernel->product.k = n;
    }
    kernel_rows_add(data, csv, row);
    return true;
}

static inline KernelFormat kernel_rows_format(const char *name)
{
    KernelFormat format;
    if (strcmp(name, "fp8_block") == 0)
        return KERNEL_FP8;
    assert_true(kernel_format_find(name, &format, NULL));
    return format;
}

/* gemm_16bit.csv, gemm_8bit_4bit.csv, gemm_train_16bit.csv: [m,k] x [k,n]. */
static inline bool kernel_rows_product(const Csv *csv, void *data, GError **error)
{
    KernelRow row = {
        .what = g_intern_string(csv_has(csv, "layout") ? csv_text(csv, "layout")
                                                       : csv_text(csv, "format")),
        .kernel = {
            .kind = KERNEL_PRODUCT,
            .alone = true,
            .format = kernel_rows_format(csv_text(csv, "format")),
            .product = {.batch = 1,
                        .m = kernel_rows_cell(csv, "m"),
                        .n = kernel_rows_cell(csv, "n"),
                        .k = kernel_rows_cell(csv, "k"),
                        .accumulates = strcmp(csv_text(csv, "accumulate"), "True") == 0,
                        .converts = true,
                        .out_bytes = strcmp(csv_text(csv, "out"), "fp32") == 0 ? 4 : 2}}};
    (void)error;
    kernel_rows_add(data, csv, row);
    return true;
}

/* attention_fused.csv, attention_train.csv. */
static inline bool kernel_rows_attention(const Csv *csv, void *data, GError **error)
{
    const char *lib = csv_has(csv, "lib") ? csv_text(csv, "lib") : "training";
    const double s = kernel_rows_cell(csv, "seq");
    const bool causal = kernel_rows_cell(csv, "causal") > 0,
               plain = strcmp(lib, "trtllm") == 0;
    KernelRow row = {
        .what = g_intern_string(csv_has(csv, "kernel") ? csv_text(csv, "kernel")
                                                       : csv_text(csv, "pass")),
        .kernel = {.kind = KERNEL_ATTENTION,
                   .format = kernel_rows_format(csv_text(csv, "format")),
                   .backward = strcmp(csv_text(csv, "pass"), "bwd") == 0,
                   .attention = {.batch = kernel_rows_cell(csv, "batch"),
                                 .queries = s,
                                 .keys = s,
                                 .heads = kernel_rows_cell(csv, "heads"),
                                 .kv_heads = kernel_rows_cell(csv, "kv_heads"),
                                 .head_qk = kernel_rows_cell(csv, "head_qk"),
                                 .head_v = kernel_rows_cell(csv, "head_v"),
                                 .window = kernel_rows_cell(csv, "window"),
                                 .causal = causal,
                                 .cached = causal && strcmp(lib, "training") != 0,
                                 .library = plain ? KERNEL_ATTENTION_PLAIN
                                                  : KERNEL_ATTENTION_AUTO}}};
    (void)error;
    kernel_rows_add(data, csv, row);
    return true;
}

/* moe_grouped.csv; only where a rank holds all experts. */
static inline bool kernel_rows_experts(const Csv *csv, void *data, GError **error)
{
    const char *lib = csv_text(csv, "lib");
    KernelRow row = {
        .what = g_intern_string(lib),
        .kernel = {
            .kind = KERNEL_EXPERTS,
            .alone = true,
            .format = kernel_rows_format(csv_text(csv, "format")),
            .experts = {.tokens = kernel_rows_cell(csv, "tokens"),
                        .top_k = kernel_rows_cell(csv, "topk"),
                        .experts = kernel_rows_cell(csv, "experts"),
                        .hidden = kernel_rows_cell(csv, "hidden"),
                        .inner =
                            kernel_rows_cell(csv, "inter") / kernel_rows_cell(csv, "tp"),
                        .matrices = (uint32_t)kernel_rows_cell(csv, "matrices"),
                        .library = strcmp(lib, "trtllm") == 0 ? KERNEL_EXPERTS_TRTLLM
                                   : strcmp(lib, "vllm") == 0 ? KERNEL_EXPERTS_VLLM
                                                              : KERNEL_EXPERTS_SGLANG}}};
    (void)error;
    if (kernel_rows_cell(csv, "ep") == 1 && strcmp(csv_text(csv, "format"), "bf16") == 0)
        kernel_rows_add(data, csv, row);
    return true;
}

/* grouped_train.csv. Gradients of weights have the weights' extents, and sum over rows. */
static inline bool kernel_rows_grouped(const Csv *csv, void *data, GError **error)
{
    const bool adds = strcmp(csv_text(csv, "accumulate"), "True") == 0;
    KernelRow row = {.what = g_intern_string(csv_text(csv, "stage")),
                     .kernel = {.kind = KERNEL_GROUPED,
                                .alone = true,
                                .format = kernel_rows_format(csv_text(csv, "format")),
                                .product = {.batch = kernel_rows_cell(csv, "groups"),
                                            .m = kernel_rows_cell(csv, adds ? "k" : "m"),
                                            .n = kernel_rows_cell(csv, "n"),
                                            .k = kernel_rows_cell(csv, adds ? "m" : "k"),
                                            .layout = adds ? KERNEL_NT : KERNEL_TN,
                                            .out_bytes = adds ? 4 : 2,
                                            .accumulates = adds,
                                            .library = KERNEL_EXPERTS_TRAINING}}};
    (void)error;
    kernel_rows_add(data, csv, row);
    return true;
}

static inline void kernel_rows_read(KernelRows *rows, const char *file,
                                    bool (*take)(const Csv *, void *, GError **))
{
    g_autofree char *name = g_strconcat("measured/kernels/", file, NULL);
    const char *path = test_shared(name);
    g_autoptr(GError) error = NULL;
    g_autoptr(Csv) csv = path ? csv_read(path, &error) : NULL;
    assert_no_error(error);
    if (csv)
        csv_each(csv, take, rows, &error);
    assert_no_error(error);
}

/* The time that a benchmark of the row would show. */
static inline double kernel_rows_predict_s(const KernelDevice *device,
                                           const KernelRow *row)
{
    static const double ZERO_POWER =
        1.57839; /* FLOPs a joule of zeros, of normal numbers' */
    KernelDevice copy;
    if (row->zeros) {
        copy = *device;
        copy.constants.simt.flops_w *= ZERO_POWER;
        device = &copy;
    }
    return fmax(row->host_s,
                row->host_s - row->after_s + kernel_time_s(device, &row->kernel));
}

static inline double kernel_rows_median(GArray *of)
{
    g_array_sort(of, number_compare);
    return g_array_index(of, double, of->len / 2);
}

/* The line through points (x, y): the median of the slopes of all pairs, and of what is left
 * (Theil and Sen). */
static inline void kernel_rows_line(const GArray *x, const GArray *y, double line[2])
{
    g_autoptr(GArray) slope = g_array_new(FALSE, FALSE, sizeof(double)),
                      left = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < x->len; i++)
        for (guint j = 0; j < i; j++) {
            const double across =
                             g_array_index(x, double, i) - g_array_index(x, double, j),
                         up = g_array_index(y, double, i) - g_array_index(y, double, j),
                         by = up / across;
            if (across != 0)
                g_array_append_val(slope, by);
        }
    line[1] = kernel_rows_median(slope);
    for (guint i = 0; i < x->len; i++) {
        const double at =
            g_array_index(y, double, i) - line[1] * g_array_index(x, double, i);
        g_array_append_val(left, at);
    }
    line[0] = kernel_rows_median(left);
}

/* A benchmark's hosts are unlike: launches of a device's ops last what the shortest of them show,
 * the median over those whose law takes less than a quarter of the launch. With
 * cudnn.benchmark each shape makes all that follow slower: a line through rows whose law takes
 * less than such a launch. */
static inline void kernel_rows_host(const GPtrArray *of, GArray *ratio,
                                    const GArray *seen, const GArray *host)
{
    double line[2] = {0, 0};
    const double by = kernel_rows_median(ratio);
    if (seen->len > 0) {
        kernel_rows_line(seen, host, line);
        print_message(
            "  %s: a convolution's launch %.0f us, %.0f us more after 1,000 shapes\n",
            ((KernelRow *)of->pdata[0])->device, 1e6 * line[0], 1e9 * line[1]);
    }
    for (guint j = 0; j < of->len; j++) {
        KernelRow *row = of->pdata[j];
        row->host_s = seen->len > 0 ? line[0] + line[1] * row->seen : row->host_s * by;
    }
}

static inline void kernel_rows_hosts(KernelRows *rows)
{
    static const double SHORT = 0.25;
    enum { ENOUGH = 20 };
    g_autoptr(GHashTable) done = g_hash_table_new(g_direct_hash, g_direct_equal);
    for (guint i = 0; i < rows->row->len; i++) {
        const KernelRow *one = &g_array_index(rows->row, KernelRow, i);
        g_autofree char *key = g_strconcat(one->device, " ", one->op, NULL);
        if (one->host_s == 0 || !g_hash_table_add(done, (gpointer)g_intern_string(key)))
            continue;
        g_autoptr(GArray) ratio = g_array_new(FALSE, FALSE, sizeof(double)),
                          seen = g_array_new(FALSE, FALSE, sizeof(double)),
                          host = g_array_new(FALSE, FALSE, sizeof(double));
        g_autoptr(GPtrArray) of = g_ptr_array_new();
        for (guint j = i; j < rows->row->len; j++) {
            KernelRow *row = &g_array_index(rows->row, KernelRow, j);
            const KernelDevice *device = rows->device->pdata[row->index];
            if (row->device != one->device || row->op != one->op)
                continue;
            g_ptr_array_add(of, row);
            const double kernel_s = kernel_time_s(device, &row->kernel);
            if (kernel_s > (row->seen > 0 ? 1 : SHORT) * row->host_s)
                continue;
            const double r = row->s / kernel_rows_predict_s(device, row),
                         host_s = row->s - kernel_s;
            g_array_append_val(ratio, r);
            if (row->seen > 0) {
                g_array_append_val(seen, row->seen);
                g_array_append_val(host, host_s);
            }
        }
        if (ratio->len >= ENOUGH)
            kernel_rows_host(of, ratio, seen, host);
    }
}

typedef struct {
    uint32_t n;
    double mape, bias; /* mean |ratio - 1|, mean logarithm */
} KernelErrors;

/* Of the rows that `which` accepts. */
static inline KernelErrors kernel_rows_errors(const KernelRows *rows, const char *device,
                                              const char *what)
{
    KernelErrors errors = {0};
    for (guint i = 0; i < rows->row->len; i++) {
        const KernelRow *row = &g_array_index(rows->row, KernelRow, i);
        if ((device && strcmp(row->device, device) != 0) ||
            (what && strcmp(row->what, what) != 0))
            continue;
        const double ratio =
            kernel_rows_predict_s(rows->device->pdata[row->index], row) / row->s;
        errors.n++;
        errors.mape += fabs(ratio - 1);
        errors.bias += log(ratio);
    }
    errors.mape /= MAX(errors.n, 1);
    errors.bias /= MAX(errors.n, 1);
    return errors;
}

/* Prints the errors of all devices and kinds of rows. */
static inline void kernel_rows_print(const KernelRows *rows)
{
    g_autoptr(GHashTable) done = g_hash_table_new(g_direct_hash, g_direct_equal);
    for (guint i = 0; i < rows->row->len; i++) {
        const KernelRow *row = &g_array_index(rows->row, KernelRow, i);
        g_autofree char *key = g_strconcat(row->what, " ", row->device, NULL);
        if (!g_hash_table_add(done, (gpointer)g_intern_string(key)))
            continue;
        const KernelErrors e = kernel_rows_errors(rows, row->device, row->what);
        print_message("  %-36s %5u rows, %5.1f %%, bias %+.3f\n", key, e.n, 100 * e.mape,
                      e.bias);
    }
}

#endif
