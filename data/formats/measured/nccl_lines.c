/* Lines of logs of nccl-tests. */
#include "data/formats/measured/nccl_lines.h"

#include <math.h>
#include <string.h>

enum { PREFIX_MAX = 64 };

/* --- prefixes --- */

static void drop_colors(char *line)
{
    char *to = line;
    for (const char *from = line; *from;) {
        if (from[0] == '\033' && from[1] == '[') {
            from += 2 + strspn(from + 2, "0123456789;");
            from += *from != '\0';
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

/* The rest of the line if it begins with `digits` decimal digits and then `next`. */
static char *after_number(char *line, size_t digits, char next)
{
    const size_t n = strspn(line, "0123456789");
    return n > 0 && (digits == 0 || n == digits) && line[n] == next ? line + n + 1 : NULL;
}

/* "2024-05-01T10:20:30.5Z " */
static char *after_time(char *line)
{
    char *month = after_number(line, 4, '-');
    char *day = month ? after_number(month, 2, '-') : NULL;
    char *hour = day ? after_number(day, 2, 'T') : NULL;
    char *end = hour ? strchr(hour, ' ') : NULL;
    return end && end - line < PREFIX_MAX ? end + 1 : NULL;
}

static char *after_mark(char *line, const char *mark)
{
    char *at = strstr(line, mark);
    return at && at - line < PREFIX_MAX ? at + strlen(mark) : NULL;
}

char *nccl_line(char *line)
{
    char *rest = line;
    drop_colors(line);
    do {
        line = rest;
        rest = *line == '[' ? after_mark(line, "<stdout>:") : NULL;
        rest = rest ? rest : after_time(line);
        rest = rest ? rest : after_number(line, 0, ':');
        rest = rest ? rest : after_mark(line, " | ");
    } while (rest);
    return line;
}

/* --- tables without a name --- */

static bool near(double ratio, double expected, double tolerance)
{
    return fabs(ratio - expected) <= tolerance;
}

const char *nccl_guess(const NcclRow *row, uint32_t n, uint32_t ranks)
{
    const NcclRow *fastest = NULL;
    for (uint32_t i = 0; i < n; i++)
        if (row[i].algbw > 0 && row[i].busbw > 0 &&
            (!fastest || row[i].algbw > fastest->algbw))
            fastest = &row[i];
    if (!fastest || ranks < 2)
        return NULL;
    /* Bandwidths have two decimals; the ratios of tests differ by 1 / ranks. */
    const double rounding = 0.01, tolerance = fmin(0.02, 0.25 / ranks);
    const double ratio = fastest->busbw / fastest->algbw, part = (ranks - 1.0) / ranks;
    if (rounding / fastest->algbw > tolerance)
        return NULL;
    const bool rooted = fastest->root >= 0, reduces = fastest->reduces;
    if (reduces && !rooted && near(ratio, 2 * part, tolerance))
        return "all_reduce";
    if (reduces && !rooted && near(ratio, part, tolerance))
        return "reduce_scatter";
    if (rooted && near(ratio, 1, tolerance))
        return reduces ? "reduce" : "broadcast";
    return NULL;
}
