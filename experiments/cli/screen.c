/* Text on a terminal: as wide as it is, and verdicts in colour. */
#include "experiments/cli/screen.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "data/base/each.h"
#include "data/base/names.h"
#include "data/base/text.h"

enum { NARROWEST = 40, GO_ON = 4, COLUMNS = 512 };

/* --- the terminal --- */

/* The choice of --color: an index of its words. */
static gint color_choice;

bool screen_set_color(const char *word, GError **error)
{
    static const char *const WORDS[] = {"auto", "always", "never", NULL};
    uint32_t index;
    if (!names_find("--color", word, WORDS, &index, error))
        return false;
    g_atomic_int_set(&color_choice, (gint)index);
    return true;
}

static bool screen_colors(FILE *file)
{
    const gint choice = g_atomic_int_get(&color_choice);
    const char *no = g_getenv("NO_COLOR"), *terminal = g_getenv("TERM");
    return choice == 1 || (choice == 0 && isatty(fileno(file)) && !(no && *no) &&
                           g_strcmp0(terminal, "dumb") != 0);
}

uint32_t screen_width(FILE *file)
{
    struct winsize size;
    if (!isatty(fileno(file)))
        return 0;
    if (ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return MAX(size.ws_col, NARROWEST);
    const char *columns = g_getenv("COLUMNS");
    return MAX(columns ? (uint32_t)g_ascii_strtoull(columns, NULL, 10) : 80, NARROWEST);
}

/* --- lines --- */

static bool is_mark(gunichar c)
{
    return c >= (guchar)SCREEN_GOOD[0] && c <= (guchar)SCREEN_END[0];
}

/* The place of a column in a line, behind the marks before it; the end of a shorter line. */
static const char *screen_at(const char *line, uint32_t column)
{
    for (; *line && (column > 0 || is_mark(g_utf8_get_char(line)));
         line = g_utf8_next_char(line))
        column -= !is_mark(g_utf8_get_char(line));
    return line;
}

static uint32_t screen_length(const char *line)
{
    uint32_t n = 0;
    for (; *line; line = g_utf8_next_char(line))
        n += !is_mark(g_utf8_get_char(line));
    return n;
}

static uint32_t screen_indent(const char *line)
{
    return (uint32_t)strspn(line, " ");
}

/* The bytes of a word: where it is longer than a line, up to its last comma, bar, slash or plus. */
static gsize screen_part(const char *word, gsize n, uint32_t room)
{
    gsize part = n;
    for (gsize i = 0; n > room && i < room; i++)
        if (strchr(",|/+", word[i]))
            part = i + 1;
    return part;
}

/* The bytes of a word; of a command, what is quoted belongs to it. */
static gsize screen_word(const char *at, bool command)
{
    gsize n = 0;
    for (bool quoted = false; at[n] && (at[n] != ' ' || quoted); n++)
        if (command && !quoted && at[n] == '\\' && at[n + 1])
            n++;
        else
            quoted ^= command && at[n] == '\'';
    return n;
}

/* Adds a line, folded at blanks; those that go on are indented by `indent`. */
static void screen_fold(GString *out, const char *line, uint32_t width, uint32_t indent)
{
    const uint32_t first = screen_indent(line);
    const bool command = first > 0 && g_str_has_prefix(line + first, "kilter ") &&
                         !strstr(line, "[OPTION"); /* one to be run */
    const uint32_t room = width - (command ? 2 : 0);
    uint32_t column = first, begin = MAX(first, indent);
    g_string_append_printf(out, "%*s", (int)first, "");
    for (const char *at = line + first; *at;) {
        const gsize blanks = strspn(at, " ");
        gsize n = screen_word(at + blanks, command);
        const gsize unit = 1 + strcspn(at + blanks + n + (at[blanks + n] != '\0'), " ");
        if (!command && g_ascii_isdigit(at[blanks + n - 1]) && at[blanks + n] == ' ' &&
            unit <= 4)
            n += unit; /* a number keeps its unit */
        /* a word of a command goes on without blanks */
        const uint32_t next = command && blanks == 0 ? 0 : indent;
        if (!command || !memchr(at + blanks, '\'', n))
            n = screen_part(at + blanks, n, room - next);
        g_autofree char *word = g_strndup(at + blanks, n);
        const uint32_t length = screen_length(word);
        if (column > begin && column + blanks + length > room) {
            begin = column = next;
            g_string_append(out, command && blanks ? " " : "");
            g_string_append_printf(out, "%s\n%*s", command ? "\\" : "", (int)begin, "");
        } else {
            g_string_append_printf(out, "%*s", (int)blanks, "");
            column += (uint32_t)blanks;
        }
        g_string_append(out, word);
        column += length;
        at += blanks + n;
    }
    g_string_append_c(out, '\n');
}

/* --- tables, of the first COLUMNS columns --- */

/* Clears the columns in which the line has a letter. */
static void mark_letters(const char *line, bool *blank, uint32_t n)
{
    for (uint32_t column = 0; *line && column < n; line = g_utf8_next_char(line)) {
        const gunichar c = g_utf8_get_char(line);
        if (is_mark(c))
            continue;
        blank[column] &= c == ' ';
        column++;
    }
}

/* Which of COLUMNS columns are blank in all n lines. */
static void blank_columns(char **line, uint32_t n, bool *blank)
{
    memset(blank, true, COLUMNS);
    for (uint32_t i = 0; i < n; i++)
        mark_letters(line[i], blank, COLUMNS);
}

/* Where columns end that fit: behind the last two blanks that stand below one another in all lines,
 * with letters before; 0: nowhere. */
static uint32_t gutter_of(const bool *blank, uint32_t width)
{
    for (uint32_t c = width; c > width / 3; c--)
        if (blank[c] && blank[c - 1])
            for (uint32_t before = c - 1; before > width / 3; before--)
                if (!blank[before])
                    return c;
    return 0;
}

/* The number of lines from the first on that are a table too wide for the screen; else 0. */
static uint32_t screen_table_at(char **line, uint32_t width)
{
    bool blank[COLUMNS], next[COLUMNS], wide = false;
    uint32_t n = 0;
    memset(blank, true, sizeof blank);
    for (; width < COLUMNS && line[n] && *line[n]; n++) {
        memcpy(next, blank, sizeof blank);
        mark_letters(line[n], next, COLUMNS);
        if (gutter_of(next, width) == 0)
            break;
        memcpy(blank, next, sizeof blank);
        wide |= screen_length(line[n]) > width;
    }
    return n > 1 && wide ? n : 0;
}

/* The end of the first gap behind a line's indentation; 0: it has none. */
static uint32_t screen_gap(const char *line)
{
    const char *gap = strstr(line + screen_indent(line), "  ");
    return gap ? (uint32_t)(gap - line) + screen_indent(gap) : 0;
}

/* Where a line that is too long goes on: below what stands behind its first gap, or indented. */
static uint32_t screen_hang(const char *line)
{
    enum { FARTHEST = 24, DEEP = 12 };
    const uint32_t at = screen_gap(line), indent = screen_indent(line);
    return at > 0 && at <= FARTHEST ? at : indent >= DEEP ? indent : indent + GO_ON;
}

static void screen_add_line(GString *out, const char *line, uint32_t width)
{
    if (screen_length(line) <= width)
        g_string_append_printf(out, "%s\n", line);
    else
        screen_fold(out, line, width, MIN(screen_hang(line), width / 2));
}

/* The line without the third and further ones of blank columns. */
static char *screen_squeeze(const char *line, const bool *blank)
{
    g_autoptr(GString) out = g_string_new(NULL);
    for (uint32_t column = 0; *line; line = g_utf8_next_char(line)) {
        const gunichar c = g_utf8_get_char(line);
        const bool spare = column >= 2 && column < COLUMNS && blank[column] &&
                           blank[column - 1] && blank[column - 2];
        if (is_mark(c) || !spare)
            g_string_append_unichar(out, c);
        column += !is_mark(c);
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}

/* Adds n rows with narrow gutters: the columns that fit, and in lines below the others. */
static void add_table(GString *out, char **line, uint32_t n, uint32_t width)
{
    bool blank[COLUMNS];
    g_autoptr(GPtrArray) row = g_ptr_array_new_with_free_func(g_free);
    uint32_t cut[COLUMNS] = {0}, n_cuts = 0, widest = 0;
    blank_columns(line, n, blank);
    for (uint32_t i = 0; i < n; i++) {
        g_ptr_array_add(row, screen_squeeze(line[i], blank));
        widest = MAX(widest, screen_length(row->pdata[i]));
    }
    blank_columns((char **)row->pdata, n, blank);
    for (uint32_t room = width; widest - cut[n_cuts] > room; room = width - GO_ON) {
        const uint32_t at = cut[n_cuts],
                       next = at + room < COLUMNS ? gutter_of(blank + at, room) : 0;
        if (next == 0)
            break;
        cut[++n_cuts] = at + next;
    }
    values_at (const char *, text, i, row->pdata, n)
        for (uint32_t k = 0; k <= n_cuts; k++) {
            const char *at = screen_at(text, cut[k]),
                       *end = k < n_cuts ? screen_at(text, cut[k + 1]) : at + strlen(at);
            g_autofree char *part = g_strndup(at, (gsize)(end - at)),
                            *shown = g_strdup_printf("%*s%s", k ? GO_ON : 0, "",
                                                     g_strchomp(part));
            if (k == 0 || *part)
                screen_add_line(out, shown, width);
        }
}

static char *with_colors(const char *text, bool color)
{
    GString *out = g_string_new(NULL);
    for (; *text; text++)
        if (!is_mark((guchar)*text))
            g_string_append_c(out, *text);
        else if (color)
            g_string_append(out, *text == SCREEN_GOOD[0]  ? "\033[32m"
                                 : *text == SCREEN_BAD[0] ? "\033[31m"
                                                          : "\033[0m");
    return g_string_free(out, FALSE);
}

char *screen_text(const char *text, uint32_t width, bool color)
{
    if (width == 0 || !g_utf8_validate(text, -1, NULL))
        return with_colors(text, color);
    g_auto(GStrv) line = g_strsplit(text, "\n", -1);
    g_autoptr(GString) out = g_string_new(NULL);
    char **wide = line; /* the next line that is too wide, or the end of this paragraph */
    for (char **at = line; *at;) {
        while (*wide && (wide < at || (**wide && screen_length(*wide) <= width)))
            wide++;
        const uint32_t n = *wide && **wide ? screen_table_at(at, width) : 0;
        if (n > 0) {
            add_table(out, at, n, width);
            at += n;
        } else {
            screen_add_line(out, *at++, width);
        }
    }
    g_string_truncate(out, out->len - 1); /* the text's last line had no end */
    return with_colors(out->str, color);
}

void screen_put(const char *text, FILE *file)
{
    g_autofree char *shown = screen_text(text, screen_width(file), screen_colors(file));
    fputs(shown, file);
}

void screen_print(FILE *file, const char *format, ...)
{
    TEXT_OF_ARGUMENTS(text, format);
    screen_put(text, file);
}

char *screen_paragraph(const char *text, uint32_t width, uint32_t indent, uint32_t most)
{
    g_autoptr(GString) out = g_string_new(NULL);
    screen_fold(out, text, width, indent);
    const char *end = out->str - 1;
    for (uint32_t i = 0; end && i < most; i++)
        end = strchr(end + 1, '\n');
    if (end && end[1]) {
        g_string_truncate(out, (gsize)(end - out->str));
        g_string_append(out, " ...");
    }
    return g_strchomp(g_strdup(out->str));
}

/* Where the explanation of a term begins: "  MFU     the model's FLOPs"; 0: there is none. */
static uint32_t screen_term(const char *line)
{
    return *line == ' ' ? screen_gap(line) : 0;
}

char **screen_paragraphs(const char *text)
{
    g_auto(GStrv) line = g_strsplit(text, "\n", -1);
    g_autoptr(GString) whole = g_string_new(NULL);
    uint32_t term = 0;
    for (char **at = line; *at; at++) {
        const uint32_t indent = screen_indent(*at);
        const bool prose = **at && indent == 0 && at > line && *at[-1] && *at[-1] != ' ';
        const bool explains = term > 0 && **at && indent >= term;
        if (at > line)
            g_string_append_c(whole, prose || explains ? ' ' : '\n');
        g_string_append(whole, explains ? *at + indent : *at);
        term = explains ? term : screen_term(*at);
    }
    return g_strsplit(whole->str, "\n", -1);
}

char *screen_refill(const char *text, uint32_t width)
{
    g_autoptr(GString) out = g_string_new(NULL);
    g_auto(GStrv) paragraph = screen_paragraphs(text);
    for (char **at = paragraph; *at; at++) {
        const uint32_t term = screen_term(*at);
        screen_fold(out, *at, width, term ? term : screen_indent(*at));
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}

bool screen_split_term(const char *paragraph, char **term, const char **text)
{
    const uint32_t at = screen_term(paragraph);
    if (at == 0)
        return false;
    *term = g_strstrip(g_strndup(paragraph, at));
    *text = paragraph + at;
    return true;
}
