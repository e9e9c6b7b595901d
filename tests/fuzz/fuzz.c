/* Checks, files in memory, and damage that keeps structure. */
#include "tests/fuzz/fuzz.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/base/error.h"
#include "tests/support/memory_file.h"

/* --- outcomes --- */

static GHashTable *outcomes; /* what happened -> how often; NULL: not counted */
static GChecksum *content;   /* of all that was noted */

void fuzz_count(void)
{
    outcomes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    content = g_checksum_new(G_CHECKSUM_SHA256);
}

void fuzz_note(const char *format, ...)
{
    va_list list;
    if (!content)
        return;
    va_start(list, format);
    g_autofree char *text = g_strdup_vprintf(format, list);
    va_end(list);
    g_checksum_update(content, (const guchar *)text, (gssize)strlen(text) + 1);
}

/* The expectation of a refusal, without the place and what was there. */
static char *kind_of(const char *message)
{
    GString *kind = g_string_new("");
    const char *from = strstr(message, "expected"), *last = strrchr(message, ':');
    const char *at = from ? from : last ? last + 1 : message;
    while (*at && !g_str_has_prefix(at, ", got") && !g_str_has_prefix(at, " near ")) {
        const char *end = *at == '\'' ? strrchr(at + 1, '\'') : NULL;
        g_string_append(kind, end ? "'" : "");
        at = end ? end : at;
        g_string_append_c(kind, *at++);
        if (g_str_has_suffix(kind->str, "0x")) /* one of many bytes */
            at += strspn(at, "0123456789abcdef");
    }
    return g_string_free(kind, FALSE);
}

static void count_refusal(const char *message, const char *file)
{
    if (!outcomes)
        return;
    char *kind = kind_of(message);
    const guint n = GPOINTER_TO_UINT(g_hash_table_lookup(outcomes, kind));
    const char *name = file ? strstr(message, file) : NULL;
    fuzz_note("%s", name ? name + strlen(file) : kind);
    g_hash_table_insert(outcomes, kind, GUINT_TO_POINTER(n + 1));
}

char *fuzz_outcomes(void)
{
    g_autoptr(GList) kinds = g_hash_table_get_keys(outcomes);
    GString *text = g_string_new("");
    kinds = g_list_sort(kinds, (GCompareFunc)strcmp);
    for (GList *kind = kinds; kind; kind = kind->next)
        g_string_append_printf(
            text, "%u %s\n", GPOINTER_TO_UINT(g_hash_table_lookup(outcomes, kind->data)),
            (const char *)kind->data);
    g_string_append_printf(text, "%.16s what is read\n", g_checksum_get_string(content));
    return g_string_free(text, FALSE);
}

void fuzz_check(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "property broken: %s\n", what);
    abort();
}

void fuzz_check_refused(const GError *error, const char *file)
{
    fuzz_check(error && error->domain == KILTER_ERROR, "a refusal says why");
    if (error->code != KILTER_ERROR_INPUT || strpbrk(error->message, "\r\n") ||
        !*error->message)
        fprintf(stderr, "status %d: %s\n", error->code, error->message);
    fuzz_check(error->code == KILTER_ERROR_INPUT, "it is an input error");
    fuzz_check(*error->message && !strpbrk(error->message, "\r\n"),
               "its message is a line");
    fuzz_check(g_utf8_validate(error->message, -1, NULL), "its message is UTF-8");
    fuzz_check(!file || strstr(error->message, file), "its message names the file");
    count_refusal(error->message, file);
}

char *fuzz_file_open(const void *bytes, size_t size, int *descriptor)
{
    return memory_file_open(bytes, size, descriptor);
}

void fuzz_file_close(int descriptor)
{
    close(descriptor);
}

/* --- dictionaries --- */

static void free_piece(gpointer piece)
{
    g_string_free(piece, TRUE);
}

/* The text between the first and the last quote of a line, with \xNN, \\ and \". NULL if the line
 * is not of this form. */
static GString *piece_of(const char *line)
{
    const char *at = strchr(line, '"'), *end = strrchr(line, '"');
    if (!at || at == end)
        return NULL;
    GString *piece = g_string_new("");
    for (at++; at < end; at++) {
        const bool hex = at[0] == '\\' && at[1] == 'x' && g_ascii_isxdigit(at[2]) &&
                         g_ascii_isxdigit(at[3]);
        if (hex)
            g_string_append_c(piece, (char)(16 * g_ascii_xdigit_value(at[2]) +
                                            g_ascii_xdigit_value(at[3])));
        else
            g_string_append_c(piece, *at == '\\' ? at[1] : *at);
        at += hex ? 3 : *at == '\\';
    }
    return piece;
}

GPtrArray *fuzz_pieces(const char *file)
{
    g_autofree char *text = NULL;
    g_autoptr(GPtrArray) pieces = g_ptr_array_new_with_free_func(free_piece);
    if (!g_file_get_contents(file, &text, NULL, NULL))
        return NULL;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        GString *piece = **line && **line != '#' ? piece_of(*line) : NULL;
        if (piece)
            g_ptr_array_add(pieces, piece);
        else if (**line && **line != '#')
            return NULL;
    }
    return g_steal_pointer(&pieces);
}

/* --- damage --- */

static uint32_t below(GRand *rand, gsize n)
{
    return n > 1 ? (uint32_t)g_rand_int_range(rand, 0, (gint32)MIN(n, G_MAXINT32)) : 0;
}

/* Pieces that mean something in most formats. */
static void insert_piece(GString *text, gsize at, const GPtrArray *pieces, GRand *rand)
{
    static const char *const COMMON[] = {
        "0",          "1",   "-1",         "2",  "0.5", "1e400", "1e-300",
        "4294967296", "nan", "9999999999", "",   "[",   "]",     "{",
        "}",          ",",   ":",          "\"", "\n",  "  ",    "\xff"};
    if (pieces && pieces->len && below(rand, 2)) {
        const GString *piece = pieces->pdata[below(rand, pieces->len)];
        g_string_insert_len(text, (gssize)at, piece->str, (gssize)piece->len);
    } else {
        g_string_insert(text, (gssize)at, COMMON[below(rand, G_N_ELEMENTS(COMMON))]);
    }
}

/* Bytes between tokens. */
static const char OUTSIDE[] = "[]{}()<>:;, \t\r\n\"'=|";

/* Finds a token. Returns its length; *at: its place. */
static gsize random_token(const GString *text, GRand *rand, gsize *at)
{
    gsize n = 0;
    *at = below(rand, text->len);
    while (*at > 0 && !memchr(OUTSIDE, text->str[*at - 1], sizeof OUTSIDE))
        --*at;
    while (*at + n < text->len && !memchr(OUTSIDE, text->str[*at + n], sizeof OUTSIDE))
        n++;
    return n;
}

/* Moves a number a little: to its neighbours, its double or its opposite. Returns whether it is
 * one. */
static bool nudge(GString *text, gsize at, gsize n, GRand *rand)
{
    g_autofree char *token = g_strndup(text->str + at, n);
    char *end;
    const double number = g_ascii_strtod(token, &end);
    if (n == 0 || *end)
        return false;
    const double to[] = {number + 1, number - 1, 2 * number, -number};
    char digits[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_dtostr(digits, sizeof digits, to[below(rand, G_N_ELEMENTS(to))]);
    g_string_erase(text, (gssize)at, (gssize)n);
    g_string_insert(text, (gssize)at, digits);
    return true;
}

/* The end of the first `key:` or `"key":` from `from` on; *begin, *n: the key. NULL: there is
 * none. */
static const char *next_key(const char *from, const char **begin, gsize *n)
{
    for (const char *at = strchr(from, ':'); at; at = strchr(at + 1, ':')) {
        const char *end = at > from && at[-1] == '"' ? at - 1 : at;
        *begin = end;
        while (*begin > from && (g_ascii_isalnum((*begin)[-1]) || (*begin)[-1] == '_'))
            --*begin;
        *n = (gsize)(end - *begin);
        if (*n > 0)
            return at + 1;
    }
    return NULL;
}

/* The place behind a key of JSON or YAML, each name as likely as any other, however long its
 * value is; 0: there is none. */
static gsize random_member(const GString *text, GRand *rand)
{
    g_autoptr(GHashTable) places =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    const char *begin;
    gsize n;
    uint32_t seen = 0;
    for (const char *at = text->str; (at = next_key(at, &begin, &n)); seen++) {
        char *name = g_strndup(begin, n);
        const bool known = g_hash_table_contains(places, name);
        if (!known)
            g_ptr_array_add(names, name);
        if (!known || below(rand, 2)) /* one of the places of the name */
            g_hash_table_insert(places, name, GSIZE_TO_POINTER(at - text->str));
        else
            g_free(name);
    }
    if (names->len == 0)
        return 0;
    return GPOINTER_TO_SIZE(
        g_hash_table_lookup(places, names->pdata[below(rand, names->len)]));
}

/* Changes one of the first tokens of a member's value. Returns whether there is a member. */
static bool change_member(GString *text, const GPtrArray *pieces, GRand *rand)
{
    gsize at = random_member(text, rand), n = 0;
    for (bool further = true; at > 0 && further; further = below(rand, 2)) {
        at += n;
        at += strspn(text->str + at, OUTSIDE);
        n = strcspn(text->str + at, OUTSIDE);
    }
    if (n == 0 || nudge(text, at, n, rand))
        return at > 0;
    g_string_erase(text, (gssize)at, (gssize)n);
    insert_piece(text, at, pieces, rand);
    return true;
}

/* Replaces a token by a piece, or by another token of the text, or moves it. */
static void change_token(GString *text, const GPtrArray *pieces, GRand *rand)
{
    gsize at = 0, from = 0;
    const gsize n = random_token(text, rand, &at), m = random_token(text, rand, &from);
    g_autofree char *other = g_memdup2(text->str + from, m + 1);
    if (below(rand, 4) == 0 && nudge(text, at, n, rand))
        return;
    g_string_erase(text, (gssize)at, (gssize)n);
    if (below(rand, 2))
        g_string_insert_len(text, (gssize)at, other, (gssize)m);
    else
        insert_piece(text, at, pieces, rand);
}

/* The line at a random place: *begin, and its length including its end. */
static gsize random_line(const GString *text, GRand *rand, gsize *begin)
{
    *begin = below(rand, text->len);
    while (*begin > 0 && text->str[*begin - 1] != '\n')
        --*begin;
    const char *end = memchr(text->str + *begin, '\n', text->len - *begin);
    return end ? (gsize)(end + 1 - text->str) - *begin : text->len - *begin;
}

/* Drops a line, doubles it, or puts another in its place. */
static void change_line(GString *text, GRand *rand)
{
    gsize at = 0, from = 0;
    const gsize n = random_line(text, rand, &at), m = random_line(text, rand, &from);
    g_autofree char *other = g_memdup2(text->str + from, m + 1);
    if (below(rand, 2))
        g_string_erase(text, (gssize)at, (gssize)n);
    if (below(rand, 2))
        g_string_insert_len(text, (gssize)MIN(at, text->len), other, (gssize)m);
}

/* A random part in brackets, such as an item of a list: *begin, and its length with both; 0:
 * there is none. */
static gsize random_part(const GString *text, GRand *rand, gsize *begin)
{
    uint32_t seen = 0;
    for (gsize i = 0; i < text->len; i++)
        if ((text->str[i] == '{' || text->str[i] == '[') && below(rand, ++seen) == 0)
            *begin = i;
    if (seen == 0)
        return 0;
    const char open = text->str[*begin], close = open == '{' ? '}' : ']';
    gsize end = *begin;
    for (int32_t depth = 0; end < text->len; end++) {
        depth += (text->str[end] == open) - (text->str[end] == close);
        if (depth == 0)
            return end + 1 - *begin;
    }
    return 0;
}

/* Doubles a part, copies it behind another, or puts it in the other's place. Returns whether
 * there are parts. */
static bool copy_part(GString *text, GRand *rand)
{
    gsize at = 0, from = 0;
    const gsize m = random_part(text, rand, &from);
    gsize n = m;
    if (below(rand, 2))
        n = random_part(text, rand, &at);
    else
        at = from;
    if (n == 0 || m == 0)
        return false;
    g_autofree char *other = g_memdup2(text->str + from, m + 1);
    if (below(rand, 4) == 0) {
        g_string_erase(text, (gssize)at, (gssize)n);
        g_string_insert_len(text, (gssize)at, other, (gssize)m);
    } else {
        g_string_insert_len(text, (gssize)(at + n), other, (gssize)m);
        g_string_insert_len(text, (gssize)(at + n), ", ", 2);
    }
    return true;
}

static void change_bytes(GString *text, const GPtrArray *pieces, GRand *rand)
{
    enum { MOST = 40, MOST_COPIED = 200 };
    const gsize at = below(rand, text->len + 1), most = MIN(text->len - at, MOST);
    const gsize from = below(rand, text->len);
    const uint32_t how = below(rand, 4);
    if (how == 0 && at < text->len) {
        text->str[at] = (char)below(rand, 256);
    } else if (how == 1) {
        insert_piece(text, at, pieces, rand);
    } else if (how == 2 && text->len > 0) {
        const gsize wanted = 1 + below(rand, MOST_COPIED),
                    n = MIN(text->len - from, wanted);
        g_autofree char *copy = g_memdup2(text->str + from, n);
        g_string_insert_len(text, (gssize)at, copy, (gssize)n);
    } else {
        g_string_erase(text, (gssize)at, (gssize)below(rand, most + 1));
    }
}

/* One of the first bytes behind a name, as binary formats put there its value; each name is as
 * likely as any other. 0: there is none. */
static gsize behind_name(const GString *text, GRand *rand)
{
    enum { SHORTEST = 3, BEHIND = 8 };
    g_autoptr(GHashTable) seen = g_hash_table_new(g_bytes_hash, g_bytes_equal);
    g_autoptr(GPtrArray) names =
        g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    g_autoptr(GArray) ends = g_array_new(FALSE, FALSE, sizeof(gsize));
    for (gsize i = 0, n = 0; i < text->len; n = 0) {
        while (i + n < text->len &&
               (g_ascii_isalnum(text->str[i + n]) || text->str[i + n] == '_'))
            n++;
        i += n + 1;
        if (n < SHORTEST)
            continue;
        const gsize end = i - 1;
        GBytes *name = g_bytes_new_static(text->str + end - n, n);
        g_ptr_array_add(names, name);
        if (!g_hash_table_contains(seen, name)) {
            g_hash_table_add(seen, name);
            g_array_append_val(ends, end);
        }
    }
    return ends->len == 0 ? 0
                          : MIN(g_array_index(ends, gsize, below(rand, ends->len)) +
                                    below(rand, 1 + below(rand, BEHIND)),
                                text->len - 1);
}

/* Changes bytes without moving others, as binary formats say lengths and places. */
static void change_in_place(GString *text, GRand *rand)
{
    static const char EDGES[] = {0, 1, 2, 0x7f, (char)0x80, (char)0xff};
    enum { MOST_COPIED = 8 };
    const gsize named = below(rand, 2) ? behind_name(text, rand) : 0,
                at = named ? named : below(rand, text->len),
                from = below(rand, text->len);
    const uint32_t how = below(rand, named ? 3 : 4);
    if (how == 0) {
        text->str[at] ^= (char)(1u << below(rand, 8));
    } else if (how == 1) {
        text->str[at] = EDGES[below(rand, sizeof EDGES)];
    } else if (how == 2) {
        text->str[at] = (char)(text->str[at] + (below(rand, 2) ? 1 : -1));
    } else {
        const gsize most = MIN(text->len - MAX(at, from), MOST_COPIED);
        memmove(text->str + at, text->str + from, 1 + below(rand, most));
    }
}

void fuzz_damage(GString *text, const GPtrArray *pieces, GRand *rand)
{
    const uint32_t how = below(rand, 8);
    const bool is_binary = memchr(text->str, '\0', text->len);
    if (is_binary && below(rand, 8) > 0)
        change_in_place(text, rand);
    else if (how < 2 && change_member(text, pieces, rand))
        return;
    else if (how < 4)
        change_token(text, pieces, rand);
    else if (how == 4 && copy_part(text, rand))
        return;
    else if (how < 6)
        change_line(text, rand);
    else
        change_bytes(text, pieces, rand);
}
