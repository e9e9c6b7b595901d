/* The matrix of `nvidia-smi topo -m`, as found in terminals, logs and bug reports: with the
 * escape codes of its underlined header, indented, after a prompt, with tabs or blanks, with
 * rows missing; or only a list of the GPUs, as nvidia-smi prints with -L or -q, as a table
 * or as CSV, or as lspci does. */
#include <string.h>

#include "data/base/assert.h"
#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/names.h"
#include "data/base/text.h"
#include "data/formats/machines/machine_file.h"

enum { MAX_COLUMNS = 512, CODE_BYTES = 8 };
#define MOST_GPUS "at most 512 GPUs of one machine"

typedef struct {
    MachineFile *machine;
    uint32_t line;
    uint32_t n, n_gpus; /* columns, GPUs first */
    char *name[MAX_COLUMNS];
    uint32_t order[MAX_COLUMNS]; /* [column of the file]: index in `name` */
    char (*code)[CODE_BYTES];    /* [n][n]; "" where the file has no code */
    char *product[MAX_COLUMNS];  /* [GPU], of nvidia-smi -L; NULL: not there */
    const Sheets *sheets;
    uint32_t n_listed; /* products of other lists */
    char *cut;         /* a name "Tesla V100-SXM2..." whose memory is in the next line */
} Matrix;

static bool smi_matrix_fail(const Matrix *matrix, GError **error, const char *expected)
{
    return refuse(error, "%s:%u: expected %s", matrix->machine->file, matrix->line,
                  expected);
}

/* "GPU12" */
static bool is_gpu(const char *word)
{
    return g_str_has_prefix(word, "GPU") && word[3] &&
           word[3 + strspn(word + 3, "0123456789")] == '\0';
}

/* Reads the columns of a header, up to "CPU Affinity", "NUMA Affinity" or "GPU NUMA ID". GPUs come
 * first in `name`, whatever the file's order. */
static bool read_header(Matrix *matrix, char **word, uint32_t n, GError **error)
{
    uint32_t columns = 0;
    while (columns < n && strcmp(word[columns], "CPU") != 0 &&
           strcmp(word[columns], "NUMA") != 0 && strcmp(word[columns], "GPU") != 0)
        columns++;
    if (columns >= MAX_COLUMNS)
        return smi_matrix_fail(matrix, error, "fewer columns");
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < columns; i++)
            if (is_gpu(word[i]) == (pass == 0)) {
                for (uint32_t j = 0; j < matrix->n; j++)
                    if (strcmp(matrix->name[j], word[i]) == 0)
                        return smi_matrix_fail(matrix, error,
                                               "columns with names of their own");
                matrix->order[i] = matrix->n;
                matrix->n_gpus += pass == 0;
                matrix->name[matrix->n++] = g_strdup(word[i]);
            }
    matrix->code = g_malloc0_n((gsize)matrix->n * matrix->n, sizeof *matrix->code);
    return true;
}

/* The number of bonded NVLinks of a code, 0 for other codes; -1: not a code. */
static int32_t links_of(const char *code)
{
    static const char *const KNOWN[] = {"X",    "PIX", "PXB", "PHB",
                                        "NODE", "SYS", "SOC", NULL};
    if (g_str_has_prefix(code, "NV") && g_ascii_isdigit(code[2]) && strlen(code) < 6 &&
        code[2 + strspn(code + 2, "0123456789")] == '\0')
        return (int)g_ascii_strtoull(code + 2, NULL, 10);
    return g_strv_contains(KNOWN, code) ? 0 : -1;
}

static bool read_row(Matrix *matrix, char **word, uint32_t n, GError **error)
{
    uint32_t row = TEXT_PLACE(matrix->name, matrix->n, word[0]);
    if (row == matrix->n)
        return true; /* the line is a legend, or the table has ended */
    for (uint32_t i = 0; i < matrix->n && i + 1 < n; i++) {
        const char *code = word[i + 1];
        if (links_of(code) < 0)
            return smi_matrix_fail(matrix, error,
                                   "codes such as X, NV4, PIX, PXB, PHB, NODE or SYS");
        const uint32_t column = matrix->order[i];
        if ((strcmp(code, "X") == 0) != (column == row))
            return smi_matrix_fail(matrix, error,
                                   "X where row and column are the same, and only there");
        g_strlcpy(matrix->code[(size_t)row * matrix->n + column], code, CODE_BYTES);
    }
    return true;
}

/* A line of nvidia-smi -L; a further list of the GPUs, as of another node, must be the same. */
static bool read_product(Matrix *matrix, const char *line, GError **error)
{
    char *end;
    const guint64 gpu = g_ascii_strtoull(line + strlen("GPU "), &end, 10);
    if (*end != ':' || !g_ascii_isspace(end[1])) /* or an address, GPU 00000000:18:00.0 */
        return true;
    if (gpu >= MAX_COLUMNS)
        return smi_matrix_fail(matrix, error, MOST_GPUS);
    g_autofree char *name = g_strstrip(g_strdup(end + 1));
    char *parenthesis = strstr(name, " (");
    if (parenthesis)
        *parenthesis = '\0';
    if (!matrix->product[gpu])
        matrix->product[gpu] = g_steal_pointer(&name);
    else if (strcmp(matrix->product[gpu], name) != 0)
        return smi_matrix_fail(
            matrix, error,
            "one list of GPUs; a GPU of this number has another name above");
    return true;
}

/* The product that a cell names, or, by its memory, the name that was cut short before it: old
 * tables have 18 characters. */
static const char *product_of(Matrix *matrix, const char *cell)
{
    const char *of = strstr(cell, "MiB / ");
    if (g_str_has_suffix(cell, "...") && strlen(cell) > strlen("NVIDIA ...")) {
        put_block(matrix->cut, g_strdup(cell));
        return NULL;
    }
    if (!of || !matrix->cut)
        return sheets_find_product(matrix->sheets, cell) ? cell : NULL;
    g_autofree char *cut = g_steal_pointer(&matrix->cut);
    const DeviceSheet *sheet = sheets_find_cut(
        matrix->sheets, cut, g_ascii_strtod(of + strlen("MiB / "), NULL) * 0x1p20);
    return sheet ? sheet->product[0] : NULL;
}

/* A line of another list: its cells that name a product. */
static bool read_cells(Matrix *matrix, const char *line, GError **error)
{
    /* raw: a check of the whole line before each cell takes n^2 */
    g_auto(GStrv) cell =
        g_regex_split_simple("\\s*[]|,[]\\s*|\\s+:\\s+|\\s{2,}", line, G_REGEX_RAW, 0);
    for (char **at = cell; *at; at++) {
        const char *product = product_of(matrix, *at);
        if (product && matrix->n_listed >= MAX_COLUMNS)
            return smi_matrix_fail(matrix, error, MOST_GPUS);
        if (product && !matrix->product[matrix->n_listed])
            matrix->product[matrix->n_listed++] = g_strdup(product);
    }
    return true;
}

/* Reads the rows. A legend's "NIC0: mlx5_0" is not a row; "GPU 0: NVIDIA H100 80GB HBM3 (UUID:
 * ...)" is output of nvidia-smi -L. */
static bool read_lines(Matrix *matrix, char *text, GError **error)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        matrix->line++;
        text_uncolour(*line);
        const char *product = g_strstr_len(*line, 40, "GPU ");
        if (product && g_ascii_isdigit(product[4]) &&
            !read_product(matrix, product, error))
            return false;
        if (g_str_has_prefix(g_strchug(*line), "MIG ") && g_ascii_isdigit((*line)[4]))
            return smi_matrix_fail(
                matrix, error,
                "whole GPUs (nvidia-smi -mig 0), not instances of one, which no data "
                "sheet describes");
        if (!matrix->code && !product && !read_cells(matrix, *line, error))
            return false;
        char *word[MAX_COLUMNS];
        const uint32_t n = text_split(*line, word, MAX_COLUMNS);
        if (n == 0)
            continue;
        if (!matrix->code && is_gpu(word[0]) && (n == 1 || links_of(word[1]) < 0)) {
            if (!read_header(matrix, word, n, error))
                return false;
        } else if (matrix->code && !read_row(matrix, word, n, error)) {
            return false;
        }
    }
    return true;
}

/* --- facts in the matrix --- */

/* The code of a pair, from either of its rows. */
static const char *code_at(const Matrix *matrix, uint32_t a, uint32_t b)
{
    KILTER_ASSERT(a < matrix->n && b < matrix->n);
    const char *code = matrix->code[(size_t)a * matrix->n + b];
    return *code ? code : matrix->code[(size_t)b * matrix->n + a];
}

static int by_text(const void *a, const void *b, void *data)
{
    (void)data;
    return strcmp(a, b);
}

/* Counts the codes of the pairs of rows with columns from first to last, as "NODE=12;PXB=4". The
 * caller frees it. */
static char *count_pairs(const Matrix *matrix, uint32_t first, uint32_t last)
{
    KILTER_ASSERT(last <= matrix->n);
    g_autoptr(GTree) counts = g_tree_new_full(by_text, NULL, g_free, NULL);
    for (uint32_t a = 0; a < matrix->n_gpus; a++)
        for (uint32_t b = MAX(first, a + 1); b < last; b++) {
            const char *code = code_at(matrix, a, b);
            const guint before = GPOINTER_TO_UINT(g_tree_lookup(counts, code));
            if (*code)
                g_tree_insert(counts, g_strdup(code), GUINT_TO_POINTER(before + 1));
        }
    GString *out = g_string_new(NULL);
    for (GTreeNode *node = g_tree_node_first(counts); node; node = g_tree_node_next(node))
        g_string_append_printf(out, "%s%s=%u", out->len ? ";" : "",
                               (const char *)g_tree_node_key(node),
                               GPOINTER_TO_UINT(g_tree_node_value(node)));
    return g_string_free(out, FALSE);
}

/* Adds the GPUs with their NVLinks. Through a switch every pair shows all links, so their sum
 * counts the links once per peer. */
static bool add_gpus(const Matrix *matrix, uint32_t most_links, GError **error)
{
    MachineFile *machine = matrix->machine;
    for (uint32_t a = 0; a < matrix->n_gpus; a++) {
        const guint64 number = g_ascii_strtoull(matrix->name[a] + 3, NULL, 10);
        MachineGpu *gpu = machine_file_add_gpu(
            machine, number < MAX_COLUMNS ? matrix->product[number] : NULL, error);
        if (!gpu)
            return false;
        gpu->group = a;
    }
    for (uint32_t a = 0; a < matrix->n_gpus; a++) {
        uint32_t sum = 0, most = 0;
        for (uint32_t b = 0; b < matrix->n_gpus; b++) {
            const char *code = code_at(matrix, a, b);
            if (a != b && !*code)
                return refuse(error, "%s: expected a code for %s and %s", machine->file,
                              matrix->name[a], matrix->name[b]);
            const uint32_t links = (uint32_t)MAX(links_of(code), 0);
            if (links > most_links)
                return refuse(error, "%s: %s and %s: expected at most %u NVLinks, got %s",
                              machine->file, matrix->name[a], matrix->name[b], most_links,
                              code);
            machine_file_add_links(machine, a, b, links);
            sum += links;
            most = MAX(most, links);
        }
        machine->nvswitch = machine->nvswitch || sum > most_links;
        machine->gpu[a].links = sum > most_links ? most : sum;
    }
    return true;
}

/* Where the list of names is shorter than the matrix, the GPUs that it leaves out are taken to be
 * like those that it has, if these are equal. */
static void name_others(MachineFile *machine)
{
    const char *one = "";
    uint32_t named = 0;
    for (uint32_t i = 0; i < machine->n_gpus; i++) {
        const char *product = machine->gpu[i].product;
        named += *product != '\0';
        if (*product && *one && strcmp(product, one) != 0)
            return;
        one = *product ? product : one;
    }
    if (named == 0 || named == machine->n_gpus)
        return;
    machine_file_warn(machine,
                      "the list names %u of %u GPUs; the others count as '%s', too",
                      named, machine->n_gpus, one);
    for (uint32_t i = 0; i < machine->n_gpus; i++)
        if (!*machine->gpu[i].product) {
            char *copy = g_strdup(one);
            put_block(machine->gpu[i].product, copy);
        }
}

static void count_near(const Matrix *matrix)
{
    for (uint32_t nic = matrix->n_gpus; nic < matrix->n; nic++) {
        const bool near = any_of(gpu, matrix->n_gpus,
                                 strcmp(code_at(matrix, gpu, nic), "PIX") == 0 ||
                                     strcmp(code_at(matrix, gpu, nic), "PXB") == 0);
        matrix->machine->nics_near += near;
    }
}

/* Adds the GPUs of a list; links are those of data sheets. */
static bool add_listed(const Matrix *matrix, GError **error)
{
    MachineFile *machine = matrix->machine;
    for (uint32_t i = 0; i < MAX_COLUMNS; i++) {
        if (!matrix->product[i])
            continue;
        if (i > machine->n_gpus)
            return refuse(error, "%s: expected GPU %u in the list, which has GPU %u",
                          machine->file, machine->n_gpus, i);
        if (!machine_file_add_gpu(machine, matrix->product[i], error))
            return false;
    }
    machine->listed = true;
    if (machine->n_gpus == 0 && matrix->cut)
        return smi_matrix_fail(matrix, error,
                               "the memory below a name that is cut short, "
                               "or the output of nvidia-smi -L");
    return machine->n_gpus > 0 ||
           refuse(error,
                  "%s: expected the XML of NCCL's topology, the matrix of nvidia-smi "
                  "topo -m "
                  "with a header GPU0 GPU1 ..., the GPUs that nvidia-smi lists, or the "
                  "tables of rocm-smi --showtopo",
                  machine->file);
}

static bool smi_matrix_finish(const Matrix *matrix, uint32_t most_links, GError **error)
{
    MachineFile *machine = matrix->machine;
    if (matrix->n_gpus == 0)
        return add_listed(matrix, error);
    machine->nics = matrix->n - matrix->n_gpus;
    machine->gpu_pairs = count_pairs(matrix, 0, matrix->n_gpus);
    machine->gpu_nic = count_pairs(matrix, matrix->n_gpus, matrix->n);
    count_near(matrix);
    if (!add_gpus(matrix, most_links, error))
        return false;
    name_others(machine);
    return true;
}

bool smi_matrix_parse(const char *text, const Sheets *sheets, MachineFile *machine,
                      GError **error)
{
    g_autofree char *copy = g_strdup(text);
    Matrix matrix = {.machine = machine, .sheets = sheets};
    const bool good = read_lines(&matrix, copy, error) &&
                      smi_matrix_finish(&matrix, sheets->most_nvlinks, error);
    free_items(matrix.name, matrix.n);
    free_items(matrix.product, MAX_COLUMNS);
    g_free(matrix.code);
    g_free(matrix.cut);
    return good;
}
