/* Extents of the texts of a picture of gnuplot (SVG), by an estimate of their widths: none may
 * leave the picture, and no two may overlap. */
#ifndef KILTER_TESTS_SUPPORT_EXTENTS_H
#define KILTER_TESTS_SUPPORT_EXTENTS_H

#include <math.h>

#include "tests/test.h"

typedef struct {
    double left, right, top, bottom;
    char *text;
} TextBox;

static inline void text_box_clear(void *box)
{
    g_free(((TextBox *)box)->text);
}

/* The mean width of a character of DejaVu Sans in its size, and the height of capitals with what
 * hangs below the line. */
static const double EXTENT_WIDTH = 0.58, EXTENT_UP = 0.76, EXTENT_DOWN = 0.1;

static inline double extent_number(const GMatchInfo *match, const char *name)
{
    g_autofree char *text = g_match_info_fetch_named(match, name);
    return text && *text ? g_ascii_strtod(text, NULL) : 0;
}

static inline GArray *extents_of(const char *svg)
{
    static const char TEXT[] =
        "<g transform=\"translate\\((?<x>[-0-9.]+),(?<y>[-0-9.]+)\\)(?: "
        "rotate\\((?<turn>[-0-9.]+)\\))?\"[^>]*"
        "font-size=\"(?<size>[0-9.]+)\"[^>]*text-anchor=\"(?<anchor>[a-z]+)\"[^>]*>\\s*<"
        "text>(?<text>.*?)</text>";
    g_autoptr(GRegex) texts = g_regex_new(TEXT, G_REGEX_DOTALL, 0, NULL);
    g_autoptr(GRegex) tags = g_regex_new("<[^>]*>", 0, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    GArray *boxes = g_array_new(FALSE, FALSE, sizeof(TextBox));
    g_array_set_clear_func(boxes, text_box_clear);
    for (g_regex_match(texts, svg, 0, &match); g_match_info_matches(match);
         g_match_info_next(match, NULL)) {
        g_autofree char *inner = g_match_info_fetch_named(match, "text"),
                        *anchor = g_match_info_fetch_named(match, "anchor");
        g_autofree char *raw = g_regex_replace_literal(tags, inner, -1, 0, "", 0, NULL);
        g_auto(GStrv) parts = g_strsplit(raw, "&", -1); /* an entity is one character */
        long n = g_utf8_strlen(g_strstrip(raw), -1);
        for (char **part = parts + 1; parts[0] && *part; part++)
            n -= (long)strcspn(*part, ";") + 1;
        const double size = extent_number(match, "size"),
                     w = EXTENT_WIDTH * size * (double)n, x = extent_number(match, "x"),
                     y = extent_number(match, "y");
        const double before = strcmp(anchor, "start") == 0 ? 0
                              : strcmp(anchor, "end") == 0 ? w
                                                           : w / 2;
        const bool turned = fabs(extent_number(match, "turn")) > 45;
        /* a text that is turned by -90 degrees runs upwards */
        const TextBox box =
            turned ? (TextBox){x - EXTENT_UP * size, x + EXTENT_DOWN * size,
                               y - (w - before), y + before, g_strdup(raw)}
                   : (TextBox){x - before, x + w - before, y - EXTENT_UP * size,
                               y + EXTENT_DOWN * size, g_strdup(raw)};
        if (n > 0)
            g_array_append_val(boxes, box);
        else
            g_free(box.text);
    }
    return boxes;
}

/* Fails with the texts of `picture` that are cut or that overlap. */
static inline void check_extents(const char *picture, const char *svg)
{
    const char *size = strstr(svg, "viewBox=\"0 0 ");
    assert_non_null(size);
    char *end;
    const double width = g_ascii_strtod(size + strlen("viewBox=\"0 0 "), &end),
                 height = g_ascii_strtod(end, NULL);
    g_autoptr(GArray) boxes = extents_of(svg);
    assert_true(boxes->len > 0);
    const double touching = 1; /* pixel */
    for (guint i = 0; i < boxes->len; i++) {
        const TextBox *a = &g_array_index(boxes, TextBox, i);
        if (a->left < 0 || a->right > width || a->top < 0 || a->bottom > height)
            TEST_FAIL_AT(__FILE__, __LINE__,
                         "%s: '%s' is cut: %.0f to %.0f, %.0f to %.0f of %.0f x %.0f",
                         picture, a->text, a->left, a->right, a->top, a->bottom, width,
                         height);
        for (guint k = 0; k < i; k++) {
            const TextBox *b = &g_array_index(boxes, TextBox, k);
            if (fmin(a->right, b->right) - fmax(a->left, b->left) > touching &&
                fmin(a->bottom, b->bottom) - fmax(a->top, b->top) > touching)
                TEST_FAIL_AT(__FILE__, __LINE__, "%s: '%s' and '%s' overlap", picture,
                             a->text, b->text);
        }
    }
}

#endif
