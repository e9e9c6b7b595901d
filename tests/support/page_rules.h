/* Rules of pages: what stands in the text alone, colours that can be read, and, where Chromium is
 * installed, that no text leaves its box or overlaps another one at three widths. */
#ifndef KILTER_TESTS_SUPPORT_PAGE_RULES_H
#define KILTER_TESTS_SUPPORT_PAGE_RULES_H

#include <math.h>

#include "tests/support/program.h"

static inline uint32_t count_of(const char *text, const char *part)
{
    uint32_t n = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

/* Each tag that begins with `open` has one of the attributes. */
static inline void check_tags(const char *text, const char *open, const char *one,
                              const char * or)
{
    for (const char *at = text; (at = strstr(at, open)); at++) {
        g_autofree char *tag = g_strndup(at, strcspn(at, ">"));
        if (!strstr(tag, one) && !strstr(tag, or))
            TEST_FAIL_AT(__FILE__, __LINE__, "%.120s has neither %s nor %s", tag, one,
                         or);
    }
}

/* Whatever can be focused has a name, and so has every drawing that is not hidden. */
static inline void check_names(const char *text)
{
    g_autoptr(GRegex) focused =
        g_regex_new("<[a-z]+[^>]* tabindex=\"0\"[^>]*>", 0, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    for (g_regex_match(focused, text, 0, &match); g_match_info_matches(match);
         g_match_info_next(match, NULL)) {
        g_autofree char *tag = g_match_info_fetch(match, 0);
        if (!strstr(tag, "aria-label="))
            TEST_FAIL_AT(__FILE__, __LINE__, "%.120s has no aria-label", tag);
    }
    check_tags(text, "<svg ", "aria-label=", "aria-hidden=\"true\"");
}

/* --- colours --- */

static inline double luminance_of(const char *hex)
{
    double sum = 0;
    const double WEIGHT[] = {0.2126, 0.7152, 0.0722};
    const bool brief = strspn(hex, "0123456789abcdef") == 3;
    for (uint32_t i = 0; i < 3; i++) {
        const char digits[] = {hex[brief ? i : 2 * i], hex[brief ? i : 2 * i + 1], '\0'};
        const double c = (double)g_ascii_strtoull(digits, NULL, 16) / 255;
        sum += WEIGHT[i] * (c <= 0.03928 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4));
    }
    return sum;
}

/* The luminance of a variable in a part of the style sheet. */
static inline double colour_of(const char *css, const char *name)
{
    g_autofree char *key = g_strdup_printf("--%s:#", name);
    const char *at = strstr(css, key);
    if (!at)
        TEST_FAIL_AT(__FILE__, __LINE__, "no colour %s", name);
    return luminance_of(at + strlen(key));
}

static inline void check_contrast(double a, double b, double least, const char *what)
{
    const double contrast = (fmax(a, b) + 0.05) / (fmin(a, b) + 0.05);
    if (contrast < least)
        TEST_FAIL_AT(__FILE__, __LINE__, "%s: contrast %.2f", what, contrast);
}

/* Every colour of `names` on every one of `on`, each a list with blanks between. */
static inline void check_pairs(const char *css, const char *on, const char *names,
                               double least)
{
    g_auto(GStrv) below = g_strsplit(on, " ", -1);
    g_auto(GStrv) above = g_strsplit(names, " ", -1);
    for (uint32_t i = 0; below[i]; i++)
        for (uint32_t k = 0; above[k]; k++) {
            g_autofree char *what =
                g_strdup_printf("%s on %s in %.30s", above[k], below[i], css);
            check_contrast(colour_of(css, below[i]), colour_of(css, above[k]), least,
                           what);
        }
}

/* Rules that set a text's colour and what is behind it, such as the cells of a heat map. */
static inline void check_cells(const char *css)
{
    g_autoptr(GRegex) cell =
        g_regex_new("background:#([0-9a-f]+);color:#([0-9a-f]+)", 0, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    uint32_t n = 0;
    for (g_regex_match(cell, css, 0, &match); g_match_info_matches(match);
         g_match_info_next(match, NULL), n++) {
        g_autofree char *rule = g_match_info_fetch(match, 0);
        g_autofree char *back = g_match_info_fetch(match, 1);
        g_autofree char *text = g_match_info_fetch(match, 2);
        check_contrast(luminance_of(back), luminance_of(text), 4.5, rule);
    }
    assert_true(n >= 10); /* five cells, light and dark */
}

/* The contrast of WCAG of every pair of colours that meet: 4.5 for texts, 3 for marks; light, then
 * dark. */
static inline void check_contrasts(const char *css)
{
    const char *const part[] = {css, strstr(css, "prefers-color-scheme:dark")};
    assert_non_null(part[1]);
    for (uint32_t p = 0; p < 2; p++) {
        check_pairs(part[p], "bg panel good-bg bad-bg none-bg",
                    "text muted link good bad", 4.5);
        check_pairs(part[p], "s0c s1c s2c", "bg", 4.5);
        check_pairs(part[p], "bg none-bg", "c1 c2 c3 c4 c5 c6 m1 m2 m3", 3);
    }
    check_cells(css);
}

/* --- extents --- */

/* Lists texts outside of the page or of their box, and pairs that overlap, as the title of the page
 * around. Boxes that scroll may hold wide texts. */
static const char FAULTS_SCRIPT[] =
    "<script>addEventListener('load',()=>{const "
    "bad=[],W=document.documentElement.clientWidth,seen=[];"
    "document.querySelectorAll('details').forEach(d=>{d.open=true});"
    "if(document.documentElement.scrollWidth>W)bad.push('wide: "
    "'+document.documentElement.scrollWidth);"
    "const walk=document.createTreeWalker(document.body,NodeFilter.SHOW_TEXT);"
    "for(let t;(t=walk.nextNode());){const "
    "up=t.parentElement;if(!t.data.trim()||up.closest('script,style,option,title'))"
    "continue;"
    "const "
    "range=document.createRange();range.selectNodeContents(t);if(up.closest('.scroll,pre'"
    "))continue;"
    "const box=up.closest('.card,.machine,li,.pair,.banner,figcaption,dd,details');"
    "for(const r of range.getClientRects()){if(r.width<1)continue;const "
    "s=t.data.slice(0,30);"
    "if(r.left<-.5||r.right>W+.5)bad.push('outside: '+s);"
    "if(box){const "
    "c=box.getBoundingClientRect();if(r.right>c.right+1||r.left<c.left-1)bad.push('"
    "outside its box: '+s);}"
    "for(const [u,q,n] of "
    "seen)if(n!==t&&Math.min(r.right,q.right)-Math.max(r.left,q.left)>1&&Math.min(r."
    "bottom,q.bottom)-Math.max(r.top,q.top)>2)"
    "bad.push('overlap: '+s+' / '+u);seen.push([s,r,t]);}}"
    "const size=e=>e.getBoundingClientRect().height;"
    "document.querySelectorAll('button,input,select,summary,nav "
    "a').forEach(e=>{if(size(e)>0&&size(e)<24)bad.push('hard to hit: "
    "'+e.textContent);});"
    "document.querySelectorAll('th button').forEach(b=>{for(const order of "
    "['ascending','descending']){b.click();if(!b.textContent||b.closest('th')."
    "getAttribute('aria-sort')!==order)bad.push('does not sort: '+b.textContent);}});"
    "document.querySelectorAll('th.wideonly button').forEach(b=>bad.push('nothing to "
    "sort: '+b.textContent));"
    "parent.document.title='faults '+bad.length+' '+[...new Set(bad)].slice(0,8).join(' "
    "| ')})</script></body>";

static inline void check_width(const Sandbox *box, const char *chromium, const char *text,
                               uint32_t width)
{
    g_autofree char *frame = g_markup_escape_text(text, -1);
    g_autofree char *whole =
        g_strdup_printf("<!DOCTYPE html><title>none</title><iframe srcdoc=\"%s\" "
                        "style=\"border:0;width:%upx;height:20000px\"></iframe>",
                        frame, width);
    g_autofree char *address = g_strdup_printf("file://%s/frame.html", box->folder);
    g_autofree char *profile = g_strdup_printf("--user-data-dir=%s/profile", box->folder);
    const char *const argv[] = {chromium,
                                "--headless",
                                "--no-sandbox",
                                "--disable-gpu",
                                profile,
                                "--virtual-time-budget=4000",
                                "--window-size=1400,2000",
                                "--dump-dom",
                                address,
                                NULL};
    g_autofree char *said = NULL;
    sandbox_write(box, "frame.html", whole);
    assert_true(g_spawn_sync(NULL, (char **)argv, NULL,
                             G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL,
                             &said, NULL, NULL, NULL));
    const char *faults = strstr(said, "<title>faults ");
    if (!faults)
        print_message("%s does not run pages here\n", chromium);
    else if (!g_str_has_prefix(faults, "<title>faults 0 "))
        TEST_FAIL_AT(__FILE__, __LINE__, "at %u pixels: %.600s", width, faults);
}

static inline void check_widths(const Sandbox *box, const char *text)
{
    g_autofree char *chromium = g_find_program_in_path("chromium");
    g_auto(GStrv) parts = g_strsplit(text, "</body>", 2);
    g_autofree char *page = g_strconcat(parts[0], FAULTS_SCRIPT, parts[1], NULL);
    if (chromium) {
        check_width(box, chromium, page, 1280);
        check_width(box, chromium, page, 768);
        check_width(box, chromium, page, 390);
    } else {
        print_message("chromium is not here: widths of pages are not checked\n");
    }
}

#endif
