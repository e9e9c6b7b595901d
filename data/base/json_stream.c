/* A reader of JSON that survives what tools make of it. */
#include "data/base/json_stream.h"

#include <math.h>
#include <string.h>

#include "data/base/assert.h"

enum { CHUNK = 1 << 16, END = -1, WORD_BYTES = 64 };

/* The next thing that may come. */
typedef enum { AT_VALUE, AT_FIRST, AT_NEXT, AT_AFTER, AT_END } State;

typedef struct {
    Stream *stream;
    const JsonEvents *events;
    void *context;
    JsonFaults *faults;
    unsigned char chunk[CHUNK];
    gsize n, at;
    uint64_t line, column; /* of the next byte */
    uint32_t depth,
        list; /* list: depth of the items' array; 0 before the file's first value */
    bool array[JSON_MAX_DEPTH + 1];
    State state;
    bool stopped;
    GString *text;
} Scan;

/* --- bytes --- */

static int peek(Scan *scan)
{
    if (scan->at < scan->n)
        return scan->chunk[scan->at];
    const char *trouble;
    scan->at = 0;
    scan->n = stream_read(scan->stream, scan->chunk, CHUNK, &trouble);
    if (scan->n > 0)
        return scan->chunk[0];
    if (trouble)
        g_strlcpy(scan->faults->cut.what, trouble, sizeof scan->faults->cut.what);
    return END;
}

static int stream_take(Scan *scan)
{
    const int c = peek(scan);
    if (c == END)
        return c;
    scan->at++;
    scan->column++;
    if (c == '\n') {
        scan->line++;
        scan->column = 1;
    }
    return c;
}

static int peek_after_blanks(Scan *scan)
{
    int c;
    while ((c = peek(scan)) == ' ' || c == '\t' || c == '\r' || c == '\n')
        stream_take(scan);
    return c;
}

/* --- faults --- */

static void note(JsonFault *fault, uint64_t line, uint64_t column, const char *what)
{
    if (fault->n++ > 0)
        return;
    fault->line = line;
    fault->column = column;
    if (*what)
        g_strlcpy(fault->what, what, sizeof fault->what);
    for (char *c = fault->what; *c; c++)
        *c = *c >= ' ' && *c <= '~' ? *c : '?';
}

static void cut(Scan *scan, const char *what)
{
    note(&scan->faults->cut, scan->line, scan->column, what);
    scan->state = AT_END;
}

/* Passes over the rest of the damaged item: the next one begins with a brace after a comma, or
 * after an item's end. */
static void recover(Scan *scan)
{
    const int damaged = peek(scan);
    const char what[] = {(char)damaged, '\0'};
    if (damaged == END) {
        cut(scan, "");
        return;
    }
    if (scan->list == 0 || scan->depth < scan->list || !scan->array[scan->list]) {
        cut(scan, what);
        return;
    }
    note(&scan->faults->lost, scan->line, scan->column, what);
    scan->depth = scan->list;
    scan->events->lost(scan->context, scan->depth);
    int c, before = stream_take(scan); /* so that each recovery gets further */
    while ((c = peek_after_blanks(scan)) != END &&
           !(c == '{' && (before == ',' || before == '}')))
        before = stream_take(scan);
    scan->state = AT_NEXT;
    if (c == END)
        cut(scan, "");
}

/* --- values --- */

static uint32_t hex_digits(Scan *scan)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < 4; i++) {
        const int c = peek(scan);
        if (c == END || !g_ascii_isxdigit(c))
            return UINT32_MAX;
        value = value * 16 + (uint32_t)g_ascii_xdigit_value((char)stream_take(scan));
    }
    return value;
}

static void add_character(Scan *scan, uint32_t c)
{
    if (scan->text->len < JSON_TEXT_BYTES && g_unichar_validate(c))
        g_string_append_unichar(scan->text, c);
}

/* The rest of an escape after the backslash. */
static void read_escape(Scan *scan, uint64_t line, uint64_t column)
{
    static const char FROM[] = "\"\\/bfnrt", TO[] = "\"\\/\b\f\n\r\t";
    const int c = stream_take(scan);
    const char *known = c > 0 ? strchr(FROM, c) : NULL;
    const char odd[] = {'\\', (char)c, '\0'};
    if (c == END)
        return;
    if (known) {
        add_character(scan, (unsigned char)TO[known - FROM]);
        return;
    }
    uint32_t code = c == 'u' ? hex_digits(scan) : UINT32_MAX;
    if (code == UINT32_MAX) {
        note(&scan->faults->odd, line, column, odd);
        add_character(scan, '\\');
        add_character(scan, c < 0x80 ? (uint32_t)c : 0xfffd);
        return;
    }
    if (code >= 0xd800 && code < 0xdc00 && peek(scan) == '\\') { /* the first of a pair */
        stream_take(scan);
        const uint32_t low =
            peek(scan) == 'u' ? (stream_take(scan), hex_digits(scan)) : 0;
        code = low >= 0xdc00 && low < 0xe000
                   ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)
                   : 0xfffd;
    }
    add_character(scan, code >= 0xd800 && code < 0xe000 ? 0xfffd : code);
}

/* Reads a string into `text`; false at the end of the file. */
static bool read_string(Scan *scan)
{
    g_string_truncate(scan->text, 0);
    stream_take(scan);
    for (;;) {
        const uint64_t line = scan->line, column = scan->column;
        const int c = stream_take(scan);
        if (c == END || c == '"')
            return c == '"';
        if (c == '\\') {
            read_escape(scan, line, column);
            continue;
        }
        if (c < ' ')
            note(&scan->faults->odd, line, column, "a control character in a string");
        if (scan->text->len < JSON_TEXT_BYTES)
            g_string_append_c(scan->text, (char)c);
    }
}

static bool stream_is_number(const char *word)
{
    const char *at = word + (*word == '-');
    const size_t whole = strspn(at, "0123456789");
    if (whole == 0 || (whole > 1 && *at == '0'))
        return false;
    at += whole;
    if (*at == '.') {
        const size_t digits = strspn(at + 1, "0123456789");
        if (digits == 0)
            return false;
        at += 1 + digits;
    }
    if (*at == 'e' || *at == 'E') {
        at++;
        at += *at == '+' || *at == '-';
        const size_t digits = strspn(at, "0123456789");
        at += digits;
        if (digits == 0)
            return false;
    }
    return *at == '\0';
}

/* A number, true, false, null, or what a tool wrote instead. False: none of it begins here. */
static bool read_word(Scan *scan)
{
    static const char PART[] = G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "+-._#()";
    const uint64_t line = scan->line, column = scan->column;
    char word[WORD_BYTES], *end;
    uint32_t n = 0;
    for (int c; (c = peek(scan)) > 0 && strchr(PART, c); stream_take(scan))
        if (n < WORD_BYTES - 1)
            word[n++] = (char)c;
    word[n] = '\0';
    if (n == 0)
        return false;
    if (peek(scan) == END) /* the rest of it may be missing */
        return false;
    const double value = g_ascii_strtod(word, &end);
    const bool whole = *end == '\0' && isfinite(value);
    if (stream_is_number(word) && isfinite(value)) {
        scan->events->number(scan->context, value);
    } else if (strcmp(word, "true") != 0 && strcmp(word, "false") != 0 &&
               strcmp(word, "null") != 0) {
        note(&scan->faults->odd, line, column, word);
        if (whole)
            scan->events->number(scan->context, value);
    }
    return true;
}

static void open_value(Scan *scan, bool array)
{
    if (scan->depth == JSON_MAX_DEPTH) {
        recover(scan);
        return;
    }
    stream_take(scan);
    scan->array[++scan->depth] = array;
    scan->list = scan->list ? scan->list : array ? 1 : 2;
    scan->state = AT_FIRST;
    if (!scan->events->begin(scan->context, array)) {
        scan->stopped = true;
        scan->state = AT_END;
    }
}

static void stream_read_value(Scan *scan)
{
    const int c = peek_after_blanks(scan);
    scan->state = AT_AFTER;
    if (c == '{' || c == '[') {
        open_value(scan, c == '[');
    } else if (c == '"' && read_string(scan)) {
        scan->events->text(scan->context, scan->text->str, scan->text->len);
    } else if (c == '"' || c == END || !read_word(scan)) {
        recover(scan);
    }
}

static void stream_read_member(Scan *scan)
{
    if (peek(scan) != '"' || !read_string(scan) || peek_after_blanks(scan) != ':') {
        recover(scan);
        return;
    }
    stream_take(scan);
    scan->events->key(scan->context, scan->text->str, scan->text->len);
    scan->state = AT_VALUE;
}

static void close_value(Scan *scan)
{
    stream_take(scan);
    scan->events->end(scan->context);
    scan->depth--;
    scan->state = AT_AFTER;
}

/* One step inside of an object or array. */
static void stream_step(Scan *scan)
{
    const int c = peek_after_blanks(scan);
    const bool array = scan->array[scan->depth];
    if (c == (array ? ']' : '}')) {
        close_value(scan);
    } else if (scan->state != AT_AFTER && c != ',') {
        if (array)
            stream_read_value(scan);
        else
            stream_read_member(scan);
    } else if (c == ',') {
        if (scan->state != AT_AFTER)
            note(&scan->faults->odd, scan->line, scan->column, ",");
        stream_take(scan);
        scan->state = AT_NEXT;
    } else if (c == '"' || c == '{' || c == '[') {
        note(&scan->faults->odd, scan->line, scan->column, "a missing comma");
        scan->state = AT_NEXT;
    } else {
        recover(scan);
    }
}

bool json_stream(Stream *stream, const JsonEvents *events, void *context,
                 JsonFaults *faults)
{
    static const int MARK[] = {0xef, 0xbb, 0xbf}; /* of the order of bytes */
    g_autofree Scan *scan = g_new0(Scan, 1);
    *faults = (JsonFaults){0};
    scan->stream = stream;
    scan->events = events;
    scan->context = context;
    scan->faults = faults;
    scan->line = scan->column = 1;
    scan->text = g_string_new(NULL);
    for (uint32_t i = 0; i < G_N_ELEMENTS(MARK) && peek(scan) == MARK[i]; i++)
        stream_take(scan);
    scan->state = AT_VALUE;
    while (scan->state != AT_END) {
        if (scan->state == AT_VALUE)
            stream_read_value(scan);
        else if (scan->depth == 0)
            scan->state = AT_END;
        else
            stream_step(scan);
        KILTER_ASSERT(scan->depth <= JSON_MAX_DEPTH);
    }
    const bool good = !scan->stopped;
    if (good && faults->cut.n == 0 && peek_after_blanks(scan) != END)
        note(&faults->lost, scan->line, scan->column, "more than one value");
    g_string_free(scan->text, TRUE);
    return good;
}

static void say(const JsonFault *fault, const char *one, const char *many,
                GPtrArray *lines)
{
    if (fault->n == 0)
        return;
    g_autofree char *there =
        *fault->what ? g_strdup_printf(": %s", fault->what) : g_strdup("");
    g_ptr_array_add(lines,
                    g_strdup_printf("%" G_GUINT64_FORMAT " %s, %s line %" G_GUINT64_FORMAT
                                    ", column %" G_GUINT64_FORMAT "%s",
                                    fault->n, fault->n > 1 ? many : one,
                                    fault->n > 1 ? "the first in" : "in", fault->line,
                                    fault->column, there));
}

void json_faults_say(const JsonFaults *faults, const char *item, GPtrArray *lines)
{
    g_autofree char *one = g_strdup_printf("damaged %s", item),
                    *many = g_strdup_printf("%ss", one);
    say(&faults->odd, "value that is no JSON", "values that are no JSON", lines);
    say(&faults->lost, one, many, lines);
    if (faults->cut.n > 0)
        g_ptr_array_add(lines,
                        g_strdup_printf("cut off in line %" G_GUINT64_FORMAT
                                        ", column %" G_GUINT64_FORMAT "%s%s",
                                        faults->cut.line, faults->cut.column,
                                        *faults->cut.what ? ": " : "", faults->cut.what));
}
