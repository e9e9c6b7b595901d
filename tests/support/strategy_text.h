/* A strategy as a file for strategy_parse. */
#ifndef KILTER_TESTS_SUPPORT_STRATEGY_TEXT_H
#define KILTER_TESTS_SUPPORT_STRATEGY_TEXT_H

#include "data/base/each.h"
#include "data/strategy/strategy.h"

/* The keys that are not at their defaults. The caller frees the text. */
static inline char *strategy_write(const Strategy *strategy)
{
    GString *out = g_string_new("");
    items_each (const Option, option, strategy_table.row, strategy_table.n) {
        if (option_is_default(option, strategy))
            continue;
        g_autofree char *value = option_get(option, strategy);
        g_string_append_printf(out, "%s: %s\n", option->key, value);
    }
    if (out->len == 0)
        g_string_append(out, "{}\n");
    return g_string_free(out, FALSE);
}

#endif
