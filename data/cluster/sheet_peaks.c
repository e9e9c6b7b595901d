/* Warnings about a cluster's numbers: what its sheets lack, and rates that equal a data
 * sheet's peak, which no training reaches. */
#include <math.h>
#include <string.h>

#include "data/base/names.h"
#include "data/base/path.h"
#include "data/base/text.h"
#include "data/base/units.h"
#include "data/cluster/kernel_device.h"
#include "data/cluster/sheet.h"

/* Whether a rate is meant to be that peak. */
static bool equals(double rate, double peak)
{
    static const double within = 1e-3;
    return peak > 0 && fabs(rate / peak - 1) < within;
}

/* --- whether a sheet has such a peak at all --- */

static bool cluster_has_rate(const Cluster *cluster, double peak)
{
    for (uint32_t i = 0; i < cluster->n_types; i++) {
        if (equals(cluster->type[i].rate, peak))
            return true;
        for (Numbers n = 0; n < NUMBERS; n++)
            if (equals(cluster->type[i].rates[n], peak))
                return true;
    }
    return false;
}

/* The beginning of the quantity that ends at `end`: a number, spaces, the prefix of a unit. */
static const char *quantity_begin(const char *text, const char *end)
{
    while (end > text && g_ascii_isalpha(end[-1]))
        end--;
    while (end > text && g_ascii_isspace(end[-1]))
        end--;
    while (end > text && (g_ascii_isalnum(end[-1]) || strchr(".+-", end[-1])))
        end--;
    return end;
}

/* Whether the text of a sheet has a rate of the cluster, as a peak or otherwise. */
static bool text_has_rate(const char *text, const Cluster *cluster)
{
    static const char unit[] = "FLOP/s";
    for (const char *at = strstr(text, unit); at; at = strstr(at + 1, unit)) {
        const char *from = quantity_begin(text, at);
        g_autofree char *quantity = g_strndup(from, (gsize)(at - from) + strlen(unit));
        double value;
        if (units_parse(quantity, QUANTITY_RATE, &value, NULL) &&
            cluster_has_rate(cluster, value))
            return true;
    }
    return false;
}

/* Whether any sheet has one. Reading all of them as YAML takes a hundred times as long, which would
 * be a fifth of a planning, and most clusters have no such rate. */
static bool is_any_near(const Cluster *cluster)
{
    enum { MOST_BYTES = 1 << 20 };
    g_auto(GStrv) names = path_list("devices", ".yaml");
    for (char **name = names; *name; name++) {
        g_autofree char *file = g_strdup_printf("devices/%s.yaml", *name);
        g_autofree char *path = path_find(file);
        gsize length;
        g_autofree char *text = path ? file_read(path, MOST_BYTES, &length, NULL) : NULL;
        if (!text || text_has_rate(text, cluster))
            return true;
    }
    return false;
}

/* --- warnings --- */

/* The device and format whose peak equals the rate: for a type that has a sheet's name only that
 * sheet's, as among all sheets many a rate equals some peak by chance, and none in fp64, which is
 * not trained in. NULL: none. */
static const DeviceSheet *peak_of(const Sheets *sheets, const char *type, double rate,
                                  SheetFormat *format)
{
    const bool named = NAME_ROW(sheets->device, sheets->n_devices, name, type);
    for (uint32_t i = 0; i < sheets->n_devices; i++)
        for (uint32_t f = SHEET_FP32; f < SHEET_FORMATS; f++) {
            *format = (SheetFormat)f;
            if (equals(rate, sheets->device[i].peak[f]) &&
                (!named || strcmp(sheets->device[i].name, type) == 0))
                return &sheets->device[i];
        }
    return NULL;
}

static void warn_of(GPtrArray *list, const Sheets *sheets, const DeviceType *type,
                    const char *what, double rate)
{
    SheetFormat format;
    const DeviceSheet *sheet = peak_of(sheets, type->name, rate, &format);
    if (sheet)
        g_ptr_array_add(
            list,
            g_strdup_printf("device type %s: %s of %.4g TFLOP/s is the peak of %s in %s; "
                            "training reaches about %.2g of it (data/sustained.yaml)",
                            type->name, what, rate / 1e12, sheet->name,
                            sheet_format_name(format), sheet->share[format]));
}

/* Of the first machine with more GPUs than any that is sold: most are several machines. */
static void warn_of_machines(GPtrArray *list, const Cluster *cluster)
{
    enum { USUAL = 8 }; /* no sheet has fewer */
    const DeviceSheet *sheet = NULL;
    g_autoptr(Sheets) sheets = NULL;
    for (uint32_t i = 0; i < cluster->n_machines && list->len == 0; i++) {
        const Machine *m = &cluster->machine[i];
        const char *name = cluster->type[m->type].name;
        if (m->gpus > USUAL && m->n_parts == 0 &&
            (sheets || (sheets = sheets_open(NULL))))
            sheet = sheets_open_device(sheets, name, NULL);
        if (sheet && sheet->most_gpus && m->gpus > sheet->most_gpus)
            g_ptr_array_add(
                list, g_strdup_printf("machine %s: %u GPUs in one; the largest with %s "
                                      "have %u, and two of these are 2x%ux%s@ib-ndr",
                                      m->name, m->gpus, name, sheet->most_gpus,
                                      sheet->most_gpus, name));
    }
}

/* Of the first machine whose many GPUs, joined by far faster links, share one card: a text says so
 * that leaves their number out. */
static void warn_of_cards(GPtrArray *list, const Cluster *cluster)
{
    enum { MANY = 8 };
    static const double far = 4; /* NVLink over cards; PCIe is 2 times as fast at most */
    for (uint32_t i = 0; i < cluster->n_machines && cluster->n_machines > 1; i++) {
        const Machine *m = &cluster->machine[i];
        if (m->gpus < MANY || m->port.nics != 1 || cluster->network ||
            cluster->type[m->type].chip.bandwidth == 0 ||
            m->inner.bandwidth < far * m->port.bandwidth)
            continue;
        g_ptr_array_add(list,
                        g_strdup_printf("machine %s: one network card for %u GPUs; most "
                                        "such machines have one for each, as in "
                                        "@%uxib-ndr",
                                        m->name, m->gpus, m->gpus));
        return;
    }
}

void sheets_gaps(const Cluster *cluster, GPtrArray *list)
{
    warn_of_machines(list, cluster);
    warn_of_cards(list, cluster);
    items_each (const DeviceType, type, cluster->type, cluster->n_types) {
        if (type->op || type->chip.bandwidth == 0)
            continue;
        if (!type->kernels)
            g_ptr_array_add(
                list,
                g_strdup_printf(
                    "device type %s: its data sheet has neither processors nor clock, of "
                    "which times of kernels follow; ops take FLOPs over a share of "
                    "the peak (costs=shares)",
                    type->name));
        else if (*type->kernels->missing)
            g_ptr_array_add(
                list, g_strdup_printf("device type %s: times of kernels are of numbers "
                                      "that its data sheet lacks: %s",
                                      type->name, type->kernels->missing));
    }
}

GPtrArray *sheets_warnings(const Cluster *cluster, GError **error)
{
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(g_free);
    if (!is_any_near(cluster))
        return g_steal_pointer(&list);
    g_autoptr(Sheets) sheets = sheets_load(error);
    if (!sheets)
        return NULL;
    items_each (const DeviceType, type, cluster->type, cluster->n_types) {
        warn_of(list, sheets, type, "rate", type->rate);
        for (Numbers n = 0; n < NUMBERS; n++) {
            g_autofree char *what = g_strconcat("rates.", numbers_name(n), NULL);
            if (type->rates[n] > 0)
                warn_of(list, sheets, type, what, type->rates[n]);
        }
    }
    return g_steal_pointer(&list);
}
