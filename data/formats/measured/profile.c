/* Bins of a profile's times. */
#include "data/formats/measured/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/base/assert.h"
#include "data/base/free.h"
#include "data/base/units.h"

enum { MOST_RANKS = 65536 };

static FREE_DEFINE(bin_free, ProfileBin, bin, g_free(bin->what.shape),
                   g_array_unref(bin->seconds));

Profile *profile_new(void)
{
    Profile *profile = g_new(Profile, 1);
    profile->bin = text_table((GDestroyNotify)bin_free);
    profile->order = g_ptr_array_new();
    return profile;
}

FREE_DEFINE(profile_free, Profile, profile, g_ptr_array_unref(profile->order),
            g_hash_table_unref(profile->bin));

static ProfileBin *bin_of(Profile *profile, const char *key, const Measurement *what)
{
    ProfileBin *bin = g_hash_table_lookup(profile->bin, key);
    if (bin)
        return bin;
    bin = g_new0(ProfileBin, 1);
    bin->what = *what;
    bin->what.shape = g_strdup(key);
    bin->seconds = g_array_new(FALSE, FALSE, sizeof(double));
    g_hash_table_insert(profile->bin, g_strdup(key), bin);
    g_ptr_array_add(profile->order, bin);
    return bin;
}

/* Bytes of a number of the type that a profiler names so ("BFloat16", "c10::Half", "f16"); 4 for
 * names that it does not know. */
static double profile_number_bytes(const char *type)
{
    static const struct {
        const char *part;
        double bytes;
    } TYPE[] = {{"BFloat16", 2}, {"bf16", 2},   {"Half", 2}, {"half", 2}, {"f16", 2},
                {"fp16", 2},     {"Float8", 1}, {"e4m3", 1}, {"e5m2", 1}, {"Double", 8},
                {"double", 8},   {"f64", 8},    {"Long", 8}, {"long", 8}, {"i64", 8},
                {"Int8", 1},     {"Byte", 1},   {"Bool", 1}, {"u8", 1}};
    for (size_t i = 0; i < G_N_ELEMENTS(TYPE); i++)
        if (strstr(type, TYPE[i].part))
            return TYPE[i].bytes;
    return 4;
}

ProfileBin *profile_product(Profile *profile, const double *a, const double *b,
                            const char *type)
{
    if (a[1] != b[0] || !(a[0] * a[1] * b[1] > 0) || !isfinite(a[0] * a[1] * b[1]))
        return NULL;
    const double size = profile_number_bytes(type);
    g_autofree char *key =
        g_strdup_printf("%.0fx%.0f;%.0fx%.0f %s", a[0], a[1], b[0], b[1], type);
    g_strdelimit(key, ",#\"\r\n", ' ');
    const Measurement what = {.op = OP_LINEAR,
                              .collective = COLLECTIVES,
                              .ranks = 1,
                              .share = 1,
                              .flops = 2 * a[0] * a[1] * b[1],
                              .bytes = size * (a[0] * a[1] + b[0] * b[1] + a[0] * b[1])};
    return bin_of(profile, key, &what);
}

/* Ops of PyTorch that do the same with each element, and the number of tensors of the operand's
 * size that they read or write. */
static const struct {
    const char *name;
    OpKind op;
    uint32_t tensors;
} ELEMENTWISE[] = {
    {"aten::native_layer_norm", OP_LAYER_NORM, 2},
    {"aten::rms_norm", OP_RMS_NORM, 2},
    {"aten::_fused_rms_norm", OP_RMS_NORM, 2},
    {"aten::gelu", OP_GELU, 2},
    {"aten::gelu_backward", OP_GELU_DX, 3},
    {"aten::relu", OP_RELU, 2},
    {"aten::clamp_min", OP_RELU, 2},
    {"aten::threshold_backward", OP_RELU_DX, 3},
    {"aten::silu", OP_SILU, 2},
    {"aten::silu_backward", OP_SILU_DX, 3},
    {"aten::add", OP_ADD, 3},
    {"aten::native_dropout", OP_DROPOUT, 2},
};

/* Whether the text is the name, or begins with it and a comma. */
static bool is_named(const char *text, const char *name)
{
    const size_t n = strlen(name);
    return strncmp(text, name, n) == 0 && (text[n] == '\0' || text[n] == ',');
}

ProfileBin *profile_elementwise(Profile *profile, const char *name,
                                const ProfileOperands *operands, const char *type)
{
    const double *dim = operands->dim[0];
    const uint32_t n = operands->n > 0 ? operands->n_dims[0] : 0;
    uint32_t row = 0;
    double elements = n > 0 && n <= PROFILE_MAX_DIMS ? 1 : 0;
    while (row < G_N_ELEMENTS(ELEMENTWISE) && !is_named(name, ELEMENTWISE[row].name))
        row++;
    if (row == G_N_ELEMENTS(ELEMENTWISE))
        return NULL;
    if (ELEMENTWISE[row].op == OP_ADD &&
        (operands->n < 2 || operands->n_dims[1] != n ||
         memcmp(dim, operands->dim[1], sizeof operands->dim[1]) != 0))
        return NULL;
    g_autoptr(GString) key = g_string_new(op_kind_name(ELEMENTWISE[row].op));
    for (uint32_t i = 0; elements > 0 && i < n; i++) {
        elements *= dim[i];
        g_string_append_printf(key, "%c%.0f", i > 0 ? 'x' : ' ', dim[i]);
    }
    if (!(elements > 0) || !isfinite(elements))
        return NULL;
    g_string_append_printf(key, " %s", type);
    g_strdelimit(key->str, ",#\"\r\n", ' ');
    const OpKind op = ELEMENTWISE[row].op;
    /* the op's only term: so many FLOPs for each element (data/graph/op.h) */
    const double each = g_ascii_strtod(op_kind_flops(op), NULL);
    const Measurement what = {.op = op,
                              .collective = COLLECTIVES,
                              .ranks = 1,
                              .share = 1,
                              .flops = each * elements,
                              .bytes = ELEMENTWISE[row].tensors * elements *
                                       profile_number_bytes(type)};
    return bin_of(profile, key->str, &what);
}

/* The collective of that name, or COLLECTIVES. *numbers gets those of the whole tensor. */
static Collective collective_of(const char *name, double before, double after,
                                double ranks, double *numbers)
{
    static const struct {
        const char *part;
        Collective kind;
        enum { BEFORE, AFTER, OF_EACH } size; /* what the whole tensor's size is */
    } KIND[] = {{"allreduce", COLLECTIVE_ALL_REDUCE, BEFORE},
                {"all_reduce", COLLECTIVE_ALL_REDUCE, BEFORE},
                {"allgather", COLLECTIVE_ALL_GATHER, AFTER},
                {"all_gather", COLLECTIVE_ALL_GATHER, AFTER},
                {"reduce_scatter", COLLECTIVE_REDUCE_SCATTER, BEFORE},
                {"all_to_all", COLLECTIVE_ALL_TO_ALL, OF_EACH}};
    for (size_t i = 0; i < G_N_ELEMENTS(KIND); i++)
        if (strstr(name, KIND[i].part)) {
            *numbers = KIND[i].size == AFTER     ? after
                       : KIND[i].size == OF_EACH ? before * ranks
                                                 : before;
            return KIND[i].kind;
        }
    return COLLECTIVES;
}

ProfileBin *profile_collective(Profile *profile, const char *name, double before,
                               double after, double ranks, const char *type)
{
    double numbers = 0;
    const Collective kind = collective_of(name, before, after, ranks, &numbers);
    const double bytes = numbers * profile_number_bytes(type);
    if (kind == COLLECTIVES || !(bytes > 0) || !isfinite(bytes) || !(ranks >= 2) ||
        ranks > MOST_RANKS)
        return NULL;
    KILTER_ASSERT((int)kind < COLLECTIVES_PRICED);
    g_autofree char *key =
        g_strdup_printf("%s %.0f of %.0f", collective_name(kind), bytes, ranks);
    const Measurement what = {.op = OP_KINDS,
                              .collective = kind,
                              .ranks = (uint32_t)ranks,
                              .share = 1 / ranks,
                              .bytes = bytes};
    return bin_of(profile, key, &what);
}

void profile_add(ProfileBin *bin, double seconds)
{
    if (seconds > 0 && isfinite(seconds))
        g_array_append_val(bin->seconds, seconds);
}

static void profile_add_row(const ProfileBin *bin, const char *device, GArray *list)
{
    const uint32_t n = bin->seconds->len;
    double *s = (double *)(void *)bin->seconds->data;
    const bool waits = bin->what.op == OP_KINDS;
    Measurement m = bin->what;
    KILTER_ASSERT(n > 0);
    qsort(s, n, sizeof *s, number_compare);
    m.device = g_strdup(device);
    m.shape = g_strdup(bin->what.shape);
    m.repeats = n;
    m.low_s = waits ? s[0] : s[n / 4];
    m.median_s = waits ? s[n / 4] : s[n / 2];
    m.high_s = waits ? s[n / 2] : s[3 * n / 4];
    g_assert(m.low_s > 0 && m.low_s <= m.median_s && m.median_s <= m.high_s);
    g_array_append_val(list, m);
}

void profile_rows(const Profile *profile, const char *device, GArray *list,
                  double *smallest, double *largest)
{
    *smallest = INFINITY;
    *largest = 0;
    pointers_each (const ProfileBin, bin, profile->order) {
        if (bin->seconds->len == 0)
            continue;
        *smallest = fmin(*smallest, bin->what.bytes);
        *largest = fmax(*largest, bin->what.bytes);
        profile_add_row(bin, device, list);
    }
}
