/* Stored results: finding one, and asking its question again. */
#include "experiments/sweep/stored.h"

#include <string.h>

#include "data/base/json.h"
#include "data/base/stream.h"
#include "data/base/units.h"
#include "experiments/sweep/result.h"

/* --- finding --- */

bool stored_is_file(const char *file)
{
    static const char MAGIC[] = "SQLite format 3";
    char head[sizeof MAGIC] = {0};
    gsize length;
    return stream_head(file, head, sizeof head, &length) &&
           memcmp(head, MAGIC, sizeof MAGIC) == 0;
}

/* Columns that hold JSON, and columns that hold numbers. */
static const char *const OBJECTS[] = {"axes",   "ratios",  "plan",    "detail",
                                      "config", "options", "subject", NULL};
static const char *const TEXTS[] = {
    "experiment", "hash",        "model",  "cluster", "entry", "planner",
    "fidelity",   "granularity", "status", "message", "spec",  "command",
    "version",    "revision",    "host",   "started", NULL};

static json_t *column_json(const char *column, const char *value)
{
    char *end;
    if (!value)
        return json_null();
    if (g_strv_contains(TEXTS, column))
        return json_string(value);
    if (g_strv_contains(OBJECTS, column))
        return json_loads(value, JSON_DECODE_ANY, NULL);
    if (strpbrk(value, ".eE"))
        return json_real(g_ascii_strtod(value, &end));
    return json_integer(g_ascii_strtoll(value, &end, 10));
}

/* Takes the first row, and from further rows with its hash the experiments. */
static void stored_take_row(uint32_t n_columns, char **value, char **column, void *data)
{
    json_t *found = data, *row = json_object();
    for (uint32_t i = 0; i < n_columns; i++)
        json_object_set_new(row, column[i], column_json(column[i], value[i]));
    json_t *name = json_object_get(row, "experiment");
    json_t *known =
        json_object_get(found, json_string_value(json_object_get(row, "hash")));
    if (!known) {
        json_object_set_new(row, "experiments", json_pack("[O]", name));
        json_object_set(found, json_string_value(json_object_get(row, "hash")), row);
    } else {
        json_array_append(json_object_get(known, "experiments"), name);
    }
    json_decref(row);
}

static const char ROW[] =
    "SELECT experiment, ordinal, hash, model, cluster, entry, axes, seed" ANSWER_COLUMNS(
        STORE_EXACT) ", config, options, subject, spec, command, version, revision, "
                     "host, started FROM result JOIN run ON run.id = result.run "
                     "WHERE hash GLOB '%s*' LIMIT 100";

json_t *stored_find(Store *store, const char *prefix, GError **error)
{
    g_autofree char *hash = g_ascii_strdown(prefix, -1);
    if (!*hash || hash[strspn(hash, "0123456789abcdef")] != '\0')
        return refused(error, "expected the beginning of a hash, hex digits, got '%s'",
                       prefix);
    g_auto(GStrv) part = g_strsplit(ROW, "%s", 2);
    g_autofree char *sql = g_strconcat(part[0], hash, part[1], NULL);
    json_t *found = json_object(), *row = NULL;
    if (store_query(store, sql, stored_take_row, found, error)) {
        members_each (key, value, found)
            row = value;
        if (json_object_size(found) != 1)
            refuse(error,
                   json_object_size(found) == 0
                       ? "no result has a hash that begins with '%s'"
                       : "several results have hashes that begin with '%s'",
                   prefix);
        else
            json_incref(row);
    }
    row = json_object_size(found) == 1 ? row : NULL;
    json_decref(found);
    return row;
}

/* --- asking again --- */

static const char *stored_text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* The cluster of the row. */
static Cluster *cluster_of(const json_t *row, GError **error)
{
    json_t *part = json_object_get(json_object_get(row, "config"), "cluster");
    json_t *content = json_object_get(part, "cluster");
    if (!content)
        return refused(error,
                       "the result has no cluster, so it cannot be evaluated again");
    char *text = json_dumps(content, JSON_COMPACT);
    Cluster *cluster = cluster_parse("the stored cluster", text, strlen(text), error);
    free(text);
    return cluster;
}

/* The options of the row, then those of `set`. The row knows a file only by its checksum. */
static bool options_of(const json_t *row, char **set, PlannerOptions *options,
                       GError **error)
{
    planner_options_init(options);
    options->seed = (uint64_t)json_integer_value(json_object_get(row, "seed"));
    members_each (key, value, json_object_get(row, "options")) {
        const char *text = json_string_value(value);
        bool given = false;
        for (char **pair = set; pair && *pair; pair++)
            given |= g_str_has_prefix(*pair, key) && (*pair)[strlen(key)] == '=';
        if (!given && *text && !planner_options_set(options, key, text, error))
            return false;
    }
    for (char **pair = set; pair && *pair; pair++)
        if (!option_assign(options, *pair, error))
            return false;
    return true;
}

static Configuration *exchange_of(const json_t *row, const json_t *exchange,
                                  const Cluster *cluster, Granularity granularity,
                                  GError **error)
{
    g_autofree char *bytes = units_exact(
        json_number_value(json_object_get(exchange, "bytes")), QUANTITY_BYTES);
    g_autofree char *share =
        number_exact(json_number_value(json_object_get(exchange, "share")));
    return configuration_of_exchange(stored_text_of(exchange, "collective"), bytes, share,
                                     stored_text_of(row, "cluster"), cluster, granularity,
                                     error);
}

static Configuration *configuration_of(const json_t *row, const Cluster *cluster,
                                       char **set, GError **error)
{
    const char *model = stored_text_of(row, "spec"),
               *fidelity = stored_text_of(row, "fidelity");
    PlannerOptions options;
    Granularity granularity;
    const json_t *exchange = json_object_get(json_object_get(row, "subject"), "exchange");
    if (!granularity_find(stored_text_of(row, "granularity"), &granularity, error))
        return NULL;
    if (exchange)
        return exchange_of(row, exchange, cluster, granularity, error);
    if (!model || json_object_get(json_object_get(row, "subject"), "trial"))
        return refused(error,
                       "the result is not a plan of a model, so it cannot be made again");
    const Planner *planner = planner_find(stored_text_of(row, "planner"), error);
    if (!planner || !options_of(row, set, &options, error))
        return NULL;
    const ConfigurationAsk ask = {.model = model,
                                  .cluster_name = stored_text_of(row, "cluster"),
                                  .cluster = cluster,
                                  .granularity = granularity,
                                  .planner = planner,
                                  .fidelity = fidelity,
                                  .options = &options};
    return configuration_new(&ask, error);
}

static void compare(json_t *differences, const char *column, json_t *stored, json_t *now)
{
    if (!json_equal(stored, now))
        json_array_append_new(differences, json_pack("{s:s, s:O, s:O}", "column", column,
                                                     "stored", stored, "now", now));
    json_decref(now);
}

static json_t *text_json(const char *text)
{
    return text ? json_loads(text, JSON_DECODE_ANY, NULL) : json_null();
}

/* All members of the report. */
static json_t *detail_json(const StoreResult *r)
{
    if (!r->detail && !r->common)
        return json_null();
    json_t *all = r->detail ? text_json(r->detail) : json_object();
    if (r->common) {
        json_auto_t *common = text_json(store_part_text(r->common));
        json_object_update(all, common);
    }
    return all;
}

/* The differences between the stored row and the result of evaluating it again. */
static json_t *compare_all(const json_t *row, const StoreResult *r)
{
    json_t *list = json_array();
#define COMPARE(name, kind, use, rule) COMPARE_##use(name, kind)
#define COMPARE_MAY(name, kind)
#define COMPARE_SAME(name, kind) \
    compare(list, #name, json_object_get(row, #name), NOW_##kind(r, name));
#define NOW_TEXT(r, name)  json_string((r)->name)
#define NOW_REAL(r, name)  json_number((r)->name)
#define NOW_COUNT(r, name) json_integer((r)->name)
#define NOW_BYTES(r, name) json_integer((json_int_t)(r)->name)
#define NOW_FLAG(r, name)  json_integer((r)->name)
    ANSWER_NUMBERS(COMPARE)
    compare(list, "plan", json_object_get(row, "plan"), text_json(r->plan));
    compare(list, "detail", json_object_get(row, "detail"), detail_json(r));
    return list;
}

json_t *stored_rerun(const json_t *row, char **set, GError **error)
{
    g_autoptr(Cluster) cluster = cluster_of(row, error);
    g_autoptr(Configuration) c =
        cluster ? configuration_of(row, cluster, set, error) : NULL;
    g_autoptr(StorePart) part = c ? question_cluster(cluster, error) : NULL;
    g_auto(Result) result = {0};
    if (!part || !result_identify(c, part, error) ||
        !result_evaluate(c, "rerun", &result, error))
        return NULL;
    json_t *differences = compare_all(row, &result.row);
    return json_pack("{s:b, s:b, s:s, s:o}", "same", json_array_size(differences) == 0,
                     "same_question", strcmp(c->hash, stored_text_of(row, "hash")) == 0,
                     "hash", c->hash, "differences", differences);
}
