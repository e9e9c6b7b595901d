/* No text of a paper's figure leaves its page or lies on another one. The figures are drawn from
 * the recorded lines (tests/golden/PAPER.csv), and widths of texts are estimated. */
#include "data/data.h"
#include "experiments/figures/figure.h"
#include "tests/support/program.h"

/* Of DejaVu Sans, in parts of the font's size: the mean width of a letter, its height above and
 * below the line. PNG draws letters larger than SVG's units. */
static const double LETTER = 0.62, ABOVE = 0.8, BELOW = 0.2, LETTER_OF_PNG = 0.7;

typedef struct {
    double left, top, right, bottom;
    char *text;
} Extent;

static void extent_clear(Extent *extent)
{
    g_free(extent->text);
}

/* The figure's data file from its recorded lines: FIGURE,drawn,"N","a | b | c". */
static char *drawn(const char *recorded, const char *figure)
{
    g_autofree char *start = g_strdup_printf("%s,drawn,", figure);
    g_auto(GStrv) line = g_strsplit(recorded, "\n", -1);
    GString *text = g_string_new("");
    for (char **each = line; *each; each++) {
        if (!g_str_has_prefix(*each, start))
            continue;
        const char *values = strstr(*each, "\",\"") + 3;
        g_autofree char *row = g_strndup(values, strlen(values) - 1);
        g_auto(GStrv) cell = g_strsplit(row, " | ", -1);
        for (char **c = cell; *c; c++)
            g_string_append_printf(text, "%s%s", c > cell ? "\t" : "",
                                   strcmp(*c, "-") == 0 ? "NaN" : *c);
        g_string_append_c(text, '\n');
    }
    return g_string_free(text, FALSE);
}

/* Texts that stand or lie; slanted ones are left out. */
static GArray *extents(const char *svg)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(Extent));
    g_array_set_clear_func(list, (GDestroyNotify)extent_clear);
    g_autoptr(GRegex) regex =
        g_regex_new("<g transform=\"translate\\(([-\\d.]+),([-\\d.]+)\\)(?: "
                    "rotate\\(([-\\d.]+)\\))?\""
                    "[^>]*font-size=\"([\\d.]+)\"\\s+text-anchor=\"(\\w+)\"[^>]*>\\s*<"
                    "text>(?:<!\\[CDATA\\[)?"
                    "\\s*(.*?)\\s*(?:\\]\\]>)?</text>",
                    G_REGEX_DOTALL, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    for (g_regex_match(regex, svg, 0, &match); g_match_info_matches(match);
         g_match_info_next(match, NULL)) {
        char *part[7];
        for (int i = 0; i < 7; i++)
            part[i] = g_match_info_fetch(match, i);
        const double x = g_ascii_strtod(part[1], NULL), y = g_ascii_strtod(part[2], NULL),
                     turn = fabs(g_ascii_strtod(part[3], NULL)),
                     size = g_ascii_strtod(part[4], NULL),
                     width = LETTER * size * (double)g_utf8_strlen(part[6], -1);
        const double back = strcmp(part[5], "start") == 0    ? 0
                            : strcmp(part[5], "middle") == 0 ? width / 2
                                                             : width;
        Extent extent = {x - back, y - ABOVE * size, x - back + width, y + BELOW * size,
                         g_strdup(part[6])};
        if (turn > 80) /* upwards */
            extent = (Extent){x - ABOVE * size, y + back - width, x + BELOW * size,
                              y + back, extent.text};
        if (*part[6] && (turn == 0 || turn > 80))
            g_array_append_val(list, extent);
        else
            g_free(extent.text);
        for (int i = 0; i < 7; i++)
            g_free(part[i]);
    }
    return list;
}

static void check_page(const char *figure, const char *svg)
{
    const double edge = 1, touch = 3; /* rounding; pixels of two texts that may share */
    const char *box = strstr(svg, "viewBox=\"0 0 ");
    assert_non_null(box);
    char *end = NULL;
    const double width = g_ascii_strtod(box + strlen("viewBox=\"0 0 "), &end),
                 height = g_ascii_strtod(end, NULL);
    g_autoptr(GArray) list = extents(svg);
    if (list->len < 5 || width < 100 || height < 100)
        TEST_FAIL_AT(__FILE__, __LINE__, "%s: %u texts on a page of %g x %g", figure,
                     list->len, width, height);
    for (guint i = 0; i < list->len; i++) {
        const Extent *a = &g_array_index(list, Extent, i);
        if (a->left < -edge || a->top < -edge || a->right > width + edge ||
            a->bottom > height + edge)
            TEST_FAIL_AT(__FILE__, __LINE__, "%s: '%s' leaves the page", figure, a->text);
        for (guint k = 0; k < i; k++) {
            const Extent *b = &g_array_index(list, Extent, k);
            if (fmin(a->right, b->right) - fmax(a->left, b->left) > touch &&
                fmin(a->bottom, b->bottom) - fmax(a->top, b->top) > touch &&
                strcmp(a->text, b->text) != 0)
                TEST_FAIL_AT(__FILE__, __LINE__, "%s: '%s' lies on '%s'", figure, a->text,
                             b->text);
        }
    }
}

static double page_width(const char *svg)
{
    const char *box = strstr(svg, "viewBox=\"0 0 ");
    assert_non_null(box);
    return g_ascii_strtod(box + strlen("viewBox=\"0 0 "), NULL);
}

typedef struct {
    const char *figure;
    double width;
    uint32_t n;
} Strip;

/* A claim's text ends before the longest verdict begins (plots/close.gp). */
static bool check_claim(const Csv *csv, void *data, GError **error)
{
    (void)error;
    static const char LONGEST[] = "does not hold", KIND[] = " (1: yes)";
    Strip *strip = data;
    const char *text = csv_text(csv, "text");
    if (strcmp(csv_text(csv, "figure"), strip->figure) != 0)
        return true;
    const double edge = 16,
                 letters = (double)g_utf8_strlen(text, -1) -
                           (g_str_has_suffix(text, KIND) ? strlen(KIND) : 0),
                 most = strip->width - 2 * edge - LETTER_OF_PNG * 10 * strlen(LONGEST);
    if (LETTER_OF_PNG * 11 * letters > most)
        TEST_FAIL_AT(__FILE__, __LINE__, "%s: '%s' lies on its verdict", strip->figure,
                     text);
    strip->n++;
    return true;
}

static uint32_t check_strip(const char *figure, const char *paper, const char *svg)
{
    Strip strip = {figure, page_width(svg), 0};
    GError *error = NULL;
    g_autofree char *file = g_strdup_printf("%s/data/paper/%s.csv", KILTER_HOME, paper);
    g_autoptr(Csv) csv = csv_read(file, &error);
    assert_no_error(error);
    csv_each(csv, check_claim, &strip, &error);
    assert_no_error(error);
    return strip.n;
}

static void test_figures(void **state)
{
    (void)state;
    GError *error = NULL;
    uint32_t n = 0, n_claims = 0;
    g_autoptr(Sandbox) box = sandbox_new();
    g_auto(GStrv) names = path_list("experiments", ".yaml");
    for (char **name = names; *name; name++) {
        g_autofree char *paper = g_strndup(*name, strcspn(*name, "-"));
        g_autofree char *file =
            g_strdup_printf("%s/tests/golden/%s.csv", KILTER_HOME, paper);
        g_autofree char *recorded = NULL;
        assert_true(g_file_get_contents(file, &recorded, NULL, NULL));
        g_autofree char *text = drawn(recorded, *name);
        assert_true(*text != '\0');
        g_autofree char *output = g_build_filename(box->folder, "picture.svg", NULL);
        figure_draw_text(*name, text, output, &error);
        assert_no_error(error);
        g_autofree char *svg = NULL;
        assert_true(g_file_get_contents(output, &svg, NULL, NULL));
        check_page(*name, svg);
        n_claims += check_strip(*name, paper, svg);
        n++;
    }
    assert_true(n > 30 && n_claims > 100);
}

/* A title that is too long is seen. */
static void test_long_title(void **state)
{
    (void)state;
    static const char SVG[] =
        "<g transform=\"translate(450,24)\" fill=\"x\" font-size=\"16.00\"  "
        "text-anchor=\"middle\"><text>Sharding ratios on 2 A100 and 2 P100 (ViT under "
        "ZeRO, "
        "batches of 40 to 2,560 samples, simulated)</text>";
    g_autoptr(GArray) list = extents(SVG);
    assert_int_equal(list->len, 1);
    assert_true(g_array_index(list, Extent, 0).left < 0);
    assert_true(g_array_index(list, Extent, 0).right > 900);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_long_title),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
