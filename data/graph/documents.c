/* Lengths of the documents of packed sequences. */
#include "data/graph/documents.h"

#include <glib.h>
#include <math.h>

bool documents_are(const char *text)
{
    return g_regex_match_simple("^[1-9]\\d{0,7}(\\+[1-9]\\d{0,7})*$", text, 0, 0);
}

/* The end of the document that begins at `begin`; *at: the text, or where the last call left it. */
static uint64_t document_end(const char *text, const char **at, uint64_t begin)
{
    char *end;
    const guint64 length = g_ascii_strtoull(*at, &end, 10);
    *at = *end ? end + 1 : text;
    return begin + length;
}

uint64_t documents_first(const char *text, uint64_t token)
{
    uint64_t begin = 0;
    const char *at = text;
    for (uint64_t end; text && (end = document_end(text, &at, begin)) <= token;)
        begin = end;
    return begin;
}

double documents_pairs(const char *text, uint64_t n, uint64_t span)
{
    double pairs = 0;
    const char *at = text;
    for (uint64_t begin = 0, end; begin < n; begin = end) {
        end = text ? document_end(text, &at, begin) : n;
        end = MIN(end, n);
        const double length = (double)(end - begin),
                     most = span > 0 ? fmin((double)span, length) : length;
        pairs += most * (most + 1) / 2 + (length - most) * most;
    }
    return pairs;
}

double documents_fullest(const char *text, uint64_t seq, uint64_t span, uint32_t parts)
{
    double most = 0;
    for (uint64_t c = 0, all = 2ull * parts; c < parts; c++)
        most = fmax(most, documents_pairs(text, seq * (c + 1) / all, span) -
                              documents_pairs(text, seq * c / all, span) +
                              documents_pairs(text, seq * (all - c) / all, span) -
                              documents_pairs(text, seq * (all - c - 1) / all, span));
    return most * parts / documents_pairs(text, seq, span);
}
