/* The option `segments`: from its text to the segment of every op. */
#include "synth/question/segments.h"

#include <string.h>

#include "balance/balance.h"
#include "data/base/text.h"

static bool is_count(const char *text, uint64_t max, uint64_t *count)
{
    return g_ascii_string_to_unsigned(text, 10, 0, max, count, NULL);
}

/* "PATTERN=NUMBER" */
static bool check_entry(const char *entry, GError **error)
{
    const char *equals = strrchr(entry, '=');
    uint64_t number;
    if (!g_utf8_validate(entry, -1, NULL)) /* patterns need UTF-8 */
        return refuse(error, "expected UTF-8, got '%s'", entry);
    return (equals && equals > entry && is_count(equals + 1, G_MAXUINT16 - 1, &number)) ||
           refuse(error,
                  "expected OP=NUMBER with an op's name or a pattern and a number from 0 "
                  "to %d, got '%s'",
                  G_MAXUINT16 - 1, entry);
}

/* Entries, one per line or between `;`, without comments and spaces, joined by ';'. NULL on an
 * error. */
static char *canonical(const char *text, GError **error)
{
    g_auto(GStrv) line = g_strsplit_set(text, "\n;", -1);
    g_autoptr(GString) result = g_string_new("");
    for (char **p = line; *p; p++) {
        (*p)[strcspn(*p, "#")] = '\0';
        g_strstrip(*p);
        if (!**p)
            continue;
        if (!check_entry(*p, error))
            return NULL;
        g_string_append_printf(result, "%s%s", result->len ? ";" : "", *p);
    }
    return g_strdup(result->str);
}

bool segments_parse(const char *text, const char **segments, GError **error)
{
    uint64_t count;
    g_autofree char *content = NULL;
    if (strcmp(text, "none") == 0 || strcmp(text, "layers") == 0 ||
        strcmp(text, "ops") == 0 ||
        (g_str_has_prefix(text, "metis:") &&
         is_count(text + strlen("metis:"), G_MAXUINT16 - 1, &count) && count > 0)) {
        *segments = strcmp(text, "none") == 0 ? NULL : g_intern_string(text);
        return true;
    }
    if (!strchr(text, '=') && !g_file_test(text, G_FILE_TEST_EXISTS))
        return refuse(error,
                      "expected none, layers, ops, metis:K, OP=NUMBER or a file of such "
                      "lines, got '%s'",
                      text);
    if (!strchr(text, '=') && !(content = text_read(text, error)))
        return false;
    g_autofree char *entries = canonical(content ? content : text, error);
    if (!entries)
        return false;
    *segments = *entries ? g_intern_string(entries) : NULL;
    return true;
}

static bool match(const Graph *graph, const char *entries, uint16_t *segment,
                  GError **error)
{
    g_auto(GStrv) entry = g_strsplit(entries, ";", -1);
    for (char **p = entry; *p; p++) {
        char *equals = strrchr(*p, '=');
        *equals = '\0';
        bool any = false;
        ops_each (op, id, graph) {
            if (op->pass == PASS_FORWARD && g_pattern_match_simple(*p, op->name)) {
                segment[id] = (uint16_t)g_ascii_strtoull(equals + 1, NULL, 10);
                any = true;
            }
        }
        if (!any)
            return refuse(error, "option 'segments': no forward op is called '%s'", *p);
    }
    return true;
}

bool segments_make(const char *segments, const Graph *graph, uint16_t *segment,
                   GError **error)
{
    uint64_t count;
    memset(segment, 0, graph_n_ops(graph) * sizeof *segment);
    if (!segments)
        return true;
    if (g_str_has_prefix(segments, "metis:") &&
        is_count(segments + strlen("metis:"), G_MAXUINT16, &count))
        return balance_segments_metis(graph, (uint32_t)count, segment, error);
    bool layers = strcmp(segments, "layers") == 0, ops = strcmp(segments, "ops") == 0;
    if (!layers && !ops && !match(graph, segments, segment, error))
        return false;
    if (graph_n_ops(graph) > G_MAXUINT16 || graph_n_layers(graph) > G_MAXUINT16)
        return refuse(error, "option 'segments': expected at most %d ops", G_MAXUINT16);
    for (OpId id = 0; (layers || ops) && id < graph_n_ops(graph); id++)
        segment[id] = (uint16_t)(ops ? id : graph_get_op(graph, id)->layer);
    if (!ops)
        balance_segments_follow(graph, segment);
    return true;
}
