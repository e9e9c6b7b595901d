/* The ranges of the options of planning, strategy and simulation, from their tables. */
#ifndef KILTER_TESTS_SUPPORT_OPTION_RANGES_H
#define KILTER_TESTS_SUPPORT_OPTION_RANGES_H

#include "synth/planners/planner.h"

typedef struct {
    const char *key;
    bool number, whole;
    double least, most;
    const char *words; /* instead: "|word|word" */
} Range;

#define RANGE_COUNT(least, most)    true, true, least, most, NULL
#define RANGE_NUMBER(least, most)   true, false, least, most, NULL
#define RANGE_BYTES                 false, false, 0, 0, "|0|1 B|1 PiB"
#define RANGE_TIME                  false, false, 0, 0, "|0s|1 ns|1000000 s"
#define RANGE_CHOICE(words)         false, false, 0, 0, words(OPTION_WORD)
#define RANGE_FILES(words, ...)     false, false, 0, 0, words(OPTION_WORD)
#define RANGE_TEXT                  false, false, 0, 0, "|"
#define RANGE_DATA(reader)          false, false, 0, 0, "|"
#define RANGE_PARSED(reader)        false, false, 0, 0, "|"
#define RANGE_BUNDLED(path, reader) false, false, 0, 0, "|"
#define X(type, member, key, value) {key, RANGE_##type},
/* clang-format off */
static const Range RANGES[] = {
    PLANNER_OPTION_TABLE(X)
    SPECIAL_OPTION_TABLE(X)
    AMP_OPTION_TABLE(X)
    TAG_PLAN_OPTION_TABLE(X)
    SIM_OPTION_TABLE(X)
    STRATEGY_TABLE(X)
};
/* clang-format on */
#undef X

/* The values to try, as texts; of a number above 0 the least one that is read is an end as well.
 * Caller frees. */
static inline char **range_ends(const Range *range)
{
    if (!range->number)
        return g_strsplit(range->words + 1, "|", -1);
    const char *format = range->whole ? "%.0f|%.0f" : "%.17g|%.17g|1e-30|1e-29";
    g_autofree char *text = g_strdup_printf(format, range->least, range->most);
    return g_strsplit(text, "|", -1);
}

#endif
