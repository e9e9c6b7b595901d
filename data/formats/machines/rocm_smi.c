/* The tables of `rocm-smi --showtopo`: weights, hops and types of the links between GPUs; before or
 * after them, or alone, may be the products' names (--showproductname). */
#include <string.h>

#include "data/base/error.h"
#include "data/base/free.h"
#include "data/formats/machines/machine_file.h"

enum { MOST_GPUS = 256 };

/* Which table a row belongs to. */
typedef enum { TABLE_OTHER, TABLE_HOPS, TABLE_TYPE } Table;

typedef struct {
    MachineFile *machine;
    uint32_t line;
    Table table;
    uint32_t n; /* GPUs of the header that was read last */
    uint32_t number[MOST_GPUS];
    char (*type)[MOST_GPUS][8]; /* [GPU][GPU]; "" where the file says nothing */
    uint32_t (*hops)[MOST_GPUS];
    uint32_t n_gpus; /* largest number of a GPU, and 1 */
    char *product[MOST_GPUS];
} Rocm;

static bool rocm_fail(const Rocm *rocm, GError **error, const char *expected)
{
    return refuse(error, "%s:%u: rocm-smi: expected %s", rocm->machine->file, rocm->line,
                  expected);
}

/* The number in "GPU3"; UINT32_MAX: it is none. */
static uint32_t gpu_number(const char *word)
{
    char *end;
    if (!g_str_has_prefix(word, "GPU") || !g_ascii_isdigit(word[3]))
        return UINT32_MAX;
    const guint64 number = g_ascii_strtoull(word + 3, &end, 10);
    return *end == '\0' && number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

static bool rocm_smi_read_header(Rocm *rocm, char **word, GError **error)
{
    rocm->n = 0;
    for (; *word; word++) {
        if (!**word)
            continue;
        const uint32_t gpu = gpu_number(*word);
        if (gpu >= MOST_GPUS)
            return rocm_fail(rocm, error, "columns GPU0 to GPU255");
        rocm->number[rocm->n++] = gpu;
        rocm->n_gpus = MAX(rocm->n_gpus, gpu + 1);
        if (rocm->n == MOST_GPUS)
            break;
    }
    return true;
}

static bool rocm_smi_read_row(Rocm *rocm, uint32_t gpu, char **word, GError **error)
{
    uint32_t column = 0;
    if (gpu >= rocm->n_gpus)
        return rocm_fail(rocm, error, "rows of the GPUs in the header");
    for (; *word && column < rocm->n; word++) {
        if (!**word)
            continue;
        const uint32_t other = rocm->number[column++];
        if (rocm->table == TABLE_TYPE)
            g_strlcpy(rocm->type[gpu][other], *word, sizeof rocm->type[0][0]);
        else if (rocm->table == TABLE_HOPS)
            rocm->hops[gpu][other] =
                (uint32_t)MIN(g_ascii_strtoull(*word, NULL, 10), 100);
    }
    return column == rocm->n ||
           rocm_fail(rocm, error, "as many columns as in the header");
}

/* "GPU[0] : Card series: AMD Instinct MI250X" and the like. */
static void rocm_smi_read_product(Rocm *rocm, const char *line)
{
    static const char *const KEY[] = {
        "Card series:", "Card Series:", "Card model:", "Card Model:", "Product Name:"};
    char *end;
    if (!g_str_has_prefix(line, "GPU["))
        return;
    const guint64 gpu = g_ascii_strtoull(line + 4, &end, 10);
    for (size_t k = 0; gpu < MOST_GPUS && *end == ']' && k < G_N_ELEMENTS(KEY); k++) {
        const char *at = strstr(line, KEY[k]);
        if (at && !rocm->product[gpu])
            rocm->product[gpu] = g_strstrip(g_strdup(at + strlen(KEY[k])));
    }
}

static bool read_line(Rocm *rocm, char *line, GError **error)
{
    g_strstrip(line);
    if (g_str_has_prefix(line, "===")) {
        rocm->table = strstr(line, "Hops between")        ? TABLE_HOPS
                      : strstr(line, "Link Type between") ? TABLE_TYPE
                                                          : TABLE_OTHER;
        rocm->n = 0;
        return true;
    }
    rocm_smi_read_product(rocm, line);
    g_auto(GStrv) words = g_strsplit_set(line, " \t", -1);
    const uint32_t first = *words ? gpu_number(*words) : UINT32_MAX;
    if (first == UINT32_MAX)
        return true;
    char **second = words + 1;
    while (*second && !**second)
        second++;
    if (rocm->n == 0 || (*second && gpu_number(*second) != UINT32_MAX))
        return rocm_smi_read_header(rocm, words, error);
    return rocm_smi_read_row(rocm, first, second, error);
}

/* xGMI links of one hop: between dies of a package and neighbours the file does not tell how many
 * there are, so it is one. */
static bool rocm_smi_add_gpus(Rocm *rocm, GError **error)
{
    MachineFile *machine = rocm->machine;
    uint32_t xgmi = 0, pcie = 0;
    for (uint32_t a = 0; a < rocm->n_gpus; a++) {
        MachineGpu *gpu = machine_file_add_gpu(machine, rocm->product[a], error);
        if (!gpu)
            return false;
        gpu->group = a;
    }
    for (uint32_t a = 0; a < rocm->n_gpus; a++)
        for (uint32_t b = 0; b < rocm->n_gpus; b++) {
            const char *type = *rocm->type[a][b] ? rocm->type[a][b] : rocm->type[b][a];
            if (a == b || machine->listed)
                continue;
            if (strcmp(type, "XGMI") != 0 && strcmp(type, "PCIE") != 0)
                return refuse(error,
                              "%s: rocm-smi: expected the type of the link, XGMI or "
                              "PCIE, between GPU%u and GPU%u (rocm-smi --showtopo)",
                              machine->file, a, b);
            const bool links = *type == 'X';
            xgmi += links && a < b;
            pcie += !links && a < b;
            if (links)
                machine_file_join(machine, a, b);
            if (links && MAX(rocm->hops[a][b], rocm->hops[b][a]) <= 1) {
                machine_file_add_links(machine, a, b, 1);
                machine->gpu[a].links++;
                machine->xgmi_elements++;
                machine->xgmi_sum++;
            }
        }
    GString *pairs = g_string_new(NULL);
    if (pcie > 0)
        g_string_append_printf(pairs, "PCIE=%u", pcie);
    if (xgmi > 0)
        g_string_append_printf(pairs, "%sXGMI=%u", pairs->len ? ";" : "", xgmi);
    machine->gpu_pairs = g_string_free(pairs, FALSE);
    machine->gpu_nic = g_strdup("");
    return true;
}

bool rocm_smi_parse(const char *text, const Sheets *sheets, MachineFile *machine,
                    GError **error)
{
    (void)sheets;
    Rocm *rocm = g_new0(Rocm, 1);
    rocm->machine = machine;
    rocm->type = g_malloc0(sizeof *rocm->type * MOST_GPUS);
    rocm->hops = g_malloc0(sizeof *rocm->hops * MOST_GPUS);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    bool good = true;
    for (char **line = lines; good && *line; line++) {
        rocm->line++;
        good = read_line(rocm, *line, error);
    }
    machine->listed =
        rocm->n_gpus == 0; /* by their products only, with the links of sheets */
    while (machine->listed && rocm->n_gpus < MOST_GPUS && rocm->product[rocm->n_gpus])
        rocm->n_gpus++;
    if (good && rocm->n_gpus == 0)
        good = rocm_fail(rocm, error,
                         "tables with a header GPU0 GPU1 ... (rocm-smi --showtopo), or "
                         "products of GPU[0], GPU[1], ... (--showproductname)");
    good = good && rocm_smi_add_gpus(rocm, error);
    free_items(rocm->product, MOST_GPUS);
    free_each(rocm->type, rocm->hops, rocm);
    return good;
}
