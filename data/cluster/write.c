/* The texts of a cluster: its file in YAML, and its canonical form; data/cluster/read.c reads
 * both. */
#include <stdlib.h>
#include <string.h>

#include "data/base/json.h"
#include "data/cluster/cluster_json.h"

enum { INDENT = 2 };

/* Writes a quantity or number as it is, any other text in quotes. */
static void add_scalar(GString *out, const json_t *value)
{
    static const char PLAIN[] = G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS ".+-/ ";
    const char *text = json_string_value(value);
    if (text && g_ascii_isdigit(*text) && strspn(text, PLAIN) == strlen(text)) {
        g_string_append(out, text);
        return;
    }
    char *dump = json_dumps(value, JSON_ENCODE_ANY);
    g_string_append(out, dump); /* a JSON string is also a YAML string */
    free(dump);
}

static bool is_scalar(const json_t *value)
{
    return !json_is_object(value) && !json_is_array(value);
}

/* Whether all members are scalars, so that the entry fits on one line. */
static bool is_flat(const json_t *value)
{
    if (json_object_get(value, "source")) /* sources are long */
        return false;
    members_each (key, member, value) {
        if (!is_scalar(member))
            return false;
    }
    return true;
}

static void add_flow(GString *out, const json_t *object)
{
    const char *comma = "";
    g_string_append(out, "{");
    members_each (key, member, object) {
        g_string_append_printf(out, "%s%s: ", comma, key);
        add_scalar(out, member);
        comma = ", ";
    }
    g_string_append(out, "}\n");
}

static void add_value(GString *out, const json_t *value, int column);

/* Writes the members of a mapping from `column` on; the first line has begun. */
static void add_block(GString *out, const json_t *object, int column)
{
    bool begun = true;
    members_each (key, member, object) {
        g_string_append_printf(out, "%*s%s:", begun ? 0 : column, "", key);
        add_value(out, member, column + INDENT);
        begun = false;
    }
}

/* Writes the value that follows "key:" or the dash of a list, up to the end of its line. */
static void add_value(GString *out, const json_t *value, int column)
{
    if (is_scalar(value) || (json_is_object(value) && is_flat(value))) {
        g_string_append(out, " ");
        if (json_is_object(value)) {
            add_flow(out, value);
            return;
        }
        add_scalar(out, value);
        g_string_append(out, "\n");
        return;
    }
    g_string_append(out, "\n");
    if (json_is_object(value)) {
        g_string_append_printf(out, "%*s", column, "");
        add_block(out, value, column);
        return;
    }
    elements_each (entry, value) {
        g_string_append_printf(out, "%*s-", column, "");
        if (json_is_object(entry) && !is_flat(entry)) {
            g_string_append(out, " ");
            add_block(out, entry, column + INDENT);
        } else {
            add_value(out, entry, column);
        }
    }
}

char *cluster_write(const Cluster *cluster)
{
    GString *out = g_string_new(NULL);
    json_auto_t *object = cluster_json(cluster);
    add_block(out, object, 0);
    return g_string_free(out, FALSE);
}

/* Removes the members on which no time depends: sources and prices; peaks and power of a type whose
 * chip is not known. */
static json_t *without_sources(json_t *value)
{
    static const char *const TAKEN[] = {"source",      "description", "price",
                                        "preemptible", "peaks",       "power"};
    const size_t n = G_N_ELEMENTS(TAKEN) - (json_object_get(value, "chip") ? 2 : 0);
    for (size_t i = 0; i < n; i++)
        json_object_del(value, TAKEN[i]);
    members_each (key, member, value)
        without_sources(member);
    elements_each (member, value)
        without_sources(member);
    return value;
}

char *cluster_json_text(const Cluster *cluster)
{
    return json_canonical(cluster_json(cluster));
}

char *cluster_canonical(const Cluster *cluster)
{
    return json_canonical(without_sources(cluster_json(cluster)));
}

char *tuning_canonical(const Cluster *cluster, GError **error)
{
    g_autoptr(Tuning) tuning = tuning_of_cluster(cluster, error);
    return tuning ? json_canonical(without_sources(tuning_json(tuning))) : NULL;
}
