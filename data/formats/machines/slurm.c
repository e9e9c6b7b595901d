/* Reading lists of Slurm's or Kubernetes' nodes, and clusters of them. */
#include "data/formats/machines/slurm.h"

#include <string.h>

#include "data/base/assert.h"
#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/text.h"
#include "data/cluster/network_spec.h"

enum { MOST_COLUMNS = 64, MOST_NODE_GPUS = 1024, NAME_BYTES = 90 };

static FREE_DEFINE(node_free, SlurmNode, node, free_each(node->name, node->features),
                   g_array_unref(node->gpus));

FREE_DEFINE(slurm_free, SlurmFile, slurm, g_free(slurm->file),
            g_ptr_array_unref(slurm->node));

uint32_t slurm_gpus(const SlurmFile *slurm)
{
    uint32_t gpus = 0;
    pointers_each (const SlurmNode, node, slurm->node) {
        for (guint k = 0; k < node->gpus->len; k++)
            gpus += g_array_index(node->gpus, SlurmGpus, k).gpus;
    }
    return gpus;
}

/* --- generic resources --- */

/* "gpu:a100:4(S:0-1)" or "gpu:2"; other resources count nothing. */
static bool read_item(const char *item, SlurmNode *node)
{
    g_autofree char *text = g_strndup(item, strcspn(item, "("));
    g_auto(GStrv) part = g_strsplit(text, ":", -1);
    const guint n = g_strv_length(part);
    if (n == 0 || strcmp(part[0], "gpu") != 0)
        return true;
    char *end = NULL;
    guint64 count = n > 1 ? g_ascii_strtoull(part[n - 1], &end, 10) : 1;
    const bool counted = n > 1 && end != part[n - 1] && *end == '\0';
    if (!counted)
        count = 1;
    if (count > MOST_NODE_GPUS)
        return false;
    const char *type = n > 2 || (n == 2 && !counted) ? part[1] : "";
    const SlurmGpus gpus = {g_strdup(type), (uint32_t)count};
    if (count > 0)
        g_array_append_val(node->gpus, gpus);
    else
        g_free(gpus.type);
    return true;
}

/* Items are separated by commas outside of parentheses. */
static bool read_resources(const char *text, SlurmNode *node)
{
    g_auto(GStrv) item = g_regex_split_simple(",(?![^(]*\\))", text, G_REGEX_RAW, 0);
    bool good = true;
    for (char **at = item; good && *at; at++)
        good = read_item(*at, node);
    return good;
}

static bool is_down(const char *state)
{
    static const char *const DOWN[] = {"down", "drain", "drng",         "fail",
                                       "unk",  "maint", "unschedulable"};
    g_autofree char *lower = g_ascii_strdown(state, -1);
    return any_of(i, G_N_ELEMENTS(DOWN), strstr(lower, DOWN[i]));
}

/* Adds a node that is not there yet. */
static bool add_node(SlurmFile *slurm, GHashTable *seen, uint32_t line, const char *name,
                     const char *gres, const char *features, const char *state,
                     GError **error)
{
    if (g_hash_table_contains(seen, name))
        return true;
    g_hash_table_add(seen, g_strdup(name));
    SlurmNode *node = g_new0(SlurmNode, 1);
    node->name = g_strdup(name);
    node->features = g_strdup(*features == '(' ? "" : features);
    node->gpus = array_owning(SlurmGpus, free_first);
    node->down = is_down(state);
    const bool good = *name && strlen(name) <= NAME_BYTES && read_resources(gres, node) &&
                      slurm->node->len < SLURM_MOST_NODES;
    if (good && node->gpus->len > 0) {
        slurm->n_down += node->down;
        g_ptr_array_add(slurm->node, node);
        return true;
    }
    node_free(node);
    slurm->n_without += good;
    return good || refuse(error,
                          "%s:%u: expected at most %d nodes, with names of up to %d "
                          "bytes and up to %d GPUs of a type, got '%.40s' with '%.40s'",
                          slurm->file, line, SLURM_MOST_NODES, NAME_BYTES, MOST_NODE_GPUS,
                          name, gres);
}

/* --- records: scontrol show node; kubectl get nodes -o yaml or json, kubectl describe node --- */

/* How a node begins, and the values of its fields; a list of Kubernetes begins as a node does, and
 * has no name. Labels are `key: value`, `"key": "value"` or `key=value`. */
#define LABEL "\"?[=:]\\s*\"?([\\w.-]+)"
enum { FIELD_NAME, FIELD_GRES, FIELD_TYPE, FIELD_FEATURES, FIELD_STATE, FIELDS };
static const struct {
    const char *begin, *field[FIELDS];
} RECORDS[] = {{"(?:^|\\s)NodeName=",
                {"^(\\S+)", "\\sGres=(\\S+)", "^$()", "\\s(?:Available)?Features=(\\S+)",
                 "\\sState=(\\S+)"}},
               {"(?m)^(?:Name:|[-\\s]*\"?apiVersion\"?:)",
                {"(?:kubernetes\\.io/hostname|[\\s\"]name)" LABEL,
                 "\\.com/gpu(?:\\.count)?\"?[=:]\\s*\"?([0-9]+)",
                 "(?:\\.com/gpu\\.product(?:-name)?|gke-accelerator|/gpu-type)" LABEL,
                 "io/instance-type" LABEL, "(unschedulable): true"}}};

/* The text in a pattern's brackets in a record; "" if it is missing. Caller frees. */
static char *field_of(const char *record, const GRegex *pattern)
{
    g_autoptr(GMatchInfo) match = NULL;
    g_regex_match(pattern, record, 0, &match);
    char *value = g_match_info_fetch(match, 1);
    return value ? value : g_strdup("");
}

static bool read_record(SlurmFile *slurm, GHashTable *seen, uint32_t line,
                        const char *record, bool kubernetes, GRegex *const *pattern,
                        GError **error)
{
    char *value[FIELDS];
    for (uint32_t f = 0; f < FIELDS; f++)
        value[f] = field_of(record, pattern[f]);
    if (kubernetes && *value[FIELD_GRES]) {
        char *all = g_strdup_printf("gpu:%s:%s", value[FIELD_TYPE], value[FIELD_GRES]);
        put_block(value[FIELD_GRES], all);
    }
    const bool good = (kubernetes && !*value[FIELD_NAME]) ||
                      add_node(slurm, seen, line, value[FIELD_NAME], value[FIELD_GRES],
                               value[FIELD_FEATURES], value[FIELD_STATE], error);
    free_items(value, FIELDS);
    return good;
}

static bool read_records(SlurmFile *slurm, GHashTable *seen, const char *text,
                         bool kubernetes, GError **error)
{
    GRegex *pattern[FIELDS];
    g_auto(GStrv) record =
        g_regex_split_simple(RECORDS[kubernetes].begin, text, G_REGEX_RAW, 0);
    uint32_t line = 1;
    bool good = true;
    for (uint32_t f = 0; f < FIELDS; f++)
        pattern[f] = g_regex_new(RECORDS[kubernetes].field[f], G_REGEX_RAW, 0, NULL);
    for (uint32_t i = 1; good && record[0] && record[i]; i++) {
        for (const char *at = record[i - 1]; *at; at++)
            line += *at == '\n';
        line += i > 1 && !kubernetes; /* the end of the line before */
        good = read_record(slurm, seen, line, record[i], kubernetes, pattern, error);
    }
    release_items(pattern, FIELDS, g_regex_unref);
    return good;
}

/* --- sinfo, kubectl get nodes -L --- */

/* Appends the names in "gpu[001-003,7],login1". False: malformed, or too many. */
static bool expand(const char *list, GPtrArray *names)
{
    for (const char *at = list; *at;) {
        const size_t plain = strcspn(at, "[,");
        g_autofree char *prefix = g_strndup(at, plain);
        at += plain;
        if (*at != '[') {
            g_ptr_array_add(names, g_strdup(prefix));
            at += *at == ',';
            continue;
        }
        const char *close = strchr(at, ']');
        if (!close)
            return false;
        g_autofree char *inside = g_strndup(at + 1, (gsize)(close - at - 1));
        const size_t rest = strcspn(close + 1, "[,");
        g_autofree char *suffix = g_strndup(close + 1, rest);
        at = close + 1 + rest;
        g_auto(GStrv) range = g_strsplit(inside, ",", -1);
        for (char **r = range; *r; r++) {
            char *dash, *end;
            const guint64 from = g_ascii_strtoull(*r, &dash, 10);
            const guint64 to = *dash == '-' ? g_ascii_strtoull(dash + 1, &end, 10) : from;
            const int width = (int)MIN(dash - *r, 20);
            if (!g_ascii_isdigit(**r) || to > UINT32_MAX || /* no sign, no blanks */
                (*dash == '-' ? !g_ascii_isdigit(dash[1]) || *end : *dash) || to < from ||
                to - from >= SLURM_MOST_NODES || names->len > SLURM_MOST_NODES)
                return false;
            for (guint64 i = from; i <= to; i++)
                g_ptr_array_add(names,
                                g_strdup_printf("%s%0*" G_GUINT64_FORMAT "%s", prefix,
                                                width, (guint64)i, suffix));
        }
        if (*at == '[')
            return false;
        at += *at == ',';
    }
    return names->len <= SLURM_MOST_NODES;
}

/* The column that has one of two names; -1: none has. */
static int32_t column_of(char *const *word, uint32_t n, const char *a, const char *b)
{
    for (uint32_t i = 0; i < n; i++)
        if (g_ascii_strcasecmp(word[i], a) == 0 || g_ascii_strcasecmp(word[i], b) == 0)
            return (int32_t)i;
    return -1;
}

static const char *word_at(char *const *word, uint32_t n, int32_t column)
{
    return column >= 0 && (uint32_t)column < n ? word[column] : "";
}

static bool slurm_read_table(SlurmFile *slurm, GHashTable *seen, const char *text,
                             GError **error)
{
    int32_t nodes = -1, gres = -1, count = -1, features = -1, state = -1;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    uint32_t l = 0;
    for (; lines[l]; l++) {
        char *word[MOST_COLUMNS];
        const uint32_t n =
            text_split(g_strdelimit(lines[l], "|", ' '), word, MOST_COLUMNS);
        if (n == 0)
            continue;
        if (nodes < 0) {
            nodes = column_of(word, n, "NODELIST", "HOSTNAMES");
            nodes = nodes < 0 ? column_of(word, n, "NAME", "NODE") : nodes;
            gres = column_of(word, n, "GRES", "GPU.PRODUCT");
            count = column_of(word, n, "GPU.COUNT", "GPU");
            features = column_of(word, n, "AVAIL_FEATURES", "FEATURES");
            state = column_of(word, n, "STATE", "STATECOMPACT");
            if (nodes >= 0 && gres < 0)
                break;
            continue;
        }
        g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
        if (!expand(word_at(word, n, nodes), names))
            return refuse(error,
                          "%s:%u: expected names of at most %d nodes such as gpu[01-04], "
                          "got '%.60s'",
                          slurm->file, l + 1, SLURM_MOST_NODES, word_at(word, n, nodes));
        g_autofree char *gpus = g_strdup(word_at(word, n, gres));
        if (count >= 0 && !g_str_has_prefix(gpus, "gpu") && *gpus != '<')
            put_block(gpus, g_strdup_printf("gpu:%s:%s", word_at(word, n, gres),
                                            word_at(word, n, count)));
        for (guint i = 0; i < names->len; i++)
            if (!add_node(slurm, seen, l + 1, names->pdata[i], gpus,
                          word_at(word, n, features), word_at(word, n, state), error))
                return false;
    }
    return (nodes >= 0 && gres >= 0) ||
           refuse(error,
                  "%s:%u: expected a column GRES with the GPUs and one NODELIST, below "
                  "their names, as of sinfo -N -o '%%N %%G %%f'",
                  slurm->file, MAX(l, 1));
}

SlurmFile *slurm_parse(const char *file, const char *text, GError **error)
{
    g_autoptr(SlurmFile) slurm = g_new0(SlurmFile, 1);
    g_autoptr(GHashTable) seen = text_table(NULL);
    slurm->file = g_strdup(file);
    slurm->node = g_ptr_array_new_with_free_func((GDestroyNotify)node_free);
    if (!g_utf8_validate(text, -1, NULL))
        return refused(error, "%s: expected text in UTF-8", file);
    const bool records = g_regex_match_simple(RECORDS[0].begin, text, G_REGEX_RAW, 0),
               labels = g_regex_match_simple("\\.com/gpu|kubernetes\\.io/", text,
                                             G_REGEX_RAW, 0);
    if (records || labels ? !read_records(slurm, seen, text, !records, error)
                          : !slurm_read_table(slurm, seen, text, error))
        return NULL;
    if (slurm->node->len == 0)
        return refused(error,
                       "%s: no GPUs: %u nodes without them, as in Gres=gpu:a100:4 or "
                       "nvidia.com/gpu: 4",
                       file, slurm->n_without);
    return g_steal_pointer(&slurm);
}

/* --- clusters --- */

/* The sheet of a type with one more word of a node, "a100" with "40gb", of "gpu_mem:40gb", too;
 * `text` then has the word. NULL: there is none. */
static const DeviceSheet *sheet_with(const Sheets *sheets, GString *text,
                                     const char *feature)
{
    for (const char *word = feature, *end;; word = end + 1) {
        g_autofree char *more =
            g_strconcat(text->str, text->len > 0 ? " " : "", word, NULL);
        const DeviceSheet *sheet = sheets_device(sheets, more, NULL);
        if (sheet)
            g_string_assign(text, more);
        end = strpbrk(word, ":_");
        if (sheet || !end)
            return sheet;
    }
}

const DeviceSheet *slurm_sheet(const SlurmNode *node, const SlurmGpus *gpus,
                               const Sheets *sheets)
{
    g_auto(GStrv) features = g_strsplit_set(node->features, ",&|", -1);
    g_autoptr(GString) text = g_string_new(gpus->type);
    const bool typed = *gpus->type != '\0';
    const DeviceSheet *found = typed ? sheets_device(sheets, gpus->type, NULL) : NULL;
    const guint n = g_strv_length(features);
    for (guint i = 0; i < 2 * n && (found || !typed);
         i++) { /* "pcie" after "40gb", too */
        const DeviceSheet *sheet = sheet_with(sheets, text, features[i % n]),
                          *other = typed || sheet || i >= n
                                       ? NULL
                                       : sheets_device(sheets, features[i], NULL);
        if (other && other != found)
            return NULL;
        found = sheet ? sheet : found;
    }
    g_autofree char *machine = machines_instance(node->features), /* 8xh100-sxm@... */
        *device = g_strndup(machine, strcspn(machine, "@"));
    const char *times = typed ? NULL : strchr(device, 'x');
    return found || !times ? found : sheets_device(sheets, times + 1, NULL);
}

/* The network cards of a node as asked for, or of its instance, "32xeth-100"; "": not known. Caller
 * frees. */
static char *cards_of(const SlurmNode *node, const MachineImport *import)
{
    g_autofree char *machine = machines_instance(node->features);
    const char *cards = strchr(machine, '@');
    return import->nic ? g_strdup_printf("%ux%s", MAX(import->nics, 1), import->nic->name)
                       : g_strdup(cards ? cards + 1 : "");
}

/* Appends the node as an entry of a cluster file's machines. */
static bool add_machine(const SlurmFile *slurm, const SlurmNode *node,
                        const Sheets *sheets, const MachineImport *import, GString *out,
                        GError **error)
{
    g_autofree char *name = g_strescape(node->name, NULL);
    g_string_append_printf(out, "  - {name: \"%s\", devices: [", name);
    array_at (const SlurmGpus, gpus, i, node->gpus) {
        const DeviceSheet *sheet =
            import->sheet ? import->sheet : slurm_sheet(node, gpus, sheets);
        if (!sheet)
            return refuse(
                error,
                "%s: node %s: the type of its %u GPUs is not known (type '%.40s', "
                "features '%.60s'); expected --gpu NAME, as in --gpu h100-sxm",
                slurm->file, node->name, gpus->gpus, gpus->type, node->features);
        g_string_append_printf(out, "%s{device: %s, gpus: %u}", i ? ", " : "",
                               sheet->name, gpus->gpus);
    }
    g_string_append(out, "]");
    g_autofree char *cards = cards_of(node, import);
    const char *times = g_ascii_isdigit(*cards) ? strchr(cards, 'x') : NULL;
    if (!*cards && slurm->node->len > 1)
        return refuse(
            error,
            "%s: the list does not say how its %u nodes are connected; expected --nic "
            "NAME, as in --nic ib-ndr",
            slurm->file, slurm->node->len);
    if (*cards)
        g_string_append_printf(out, ", nic: %s, nics: %" G_GUINT64_FORMAT,
                               times ? times + 1 : cards,
                               times ? g_ascii_strtoull(cards, NULL, 10) : 1);
    g_string_append_printf(out, ", source: \"list of nodes; links by data sheets\"}\n");
    return true;
}

Cluster *slurm_cluster(const SlurmFile *slurm, const Sheets *sheets,
                       const MachineImport *import, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *name = g_strescape(import->name, NULL);
    g_string_append_printf(text, "name: \"%s\"\nmachines:\n", name);
    for (guint i = 0; i < slurm->node->len; i++)
        if (!add_machine(slurm, slurm->node->pdata[i], sheets, import, text, error))
            return NULL;
    Cluster *cluster = cluster_parse(slurm->file, text->str, text->len, error);
    KILTER_ASSERT(!cluster || cluster->n_machines == slurm->node->len);
    return cluster;
}
