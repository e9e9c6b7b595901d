/* Walking all elements of a list, where their places do not matter:
 *
 *     items_each (const Machine, machine, cluster->machine, cluster->n_machines)
 *         gpus += machine->gpus;
 *
 * `machine` points to one element after the other. The list must not grow meanwhile. array_each is
 * for a GArray of the elements, pointers_each for a GPtrArray of pointers to them. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define items_each(Type, item, first, n)                                     \
    for (Type *item = (first), *const item##_end = item ? item + (n) : item; \
         item < item##_end; item++)

/* The same with the place of each element:
 *
 *     items_at (const Machine, machine, m, cluster->machine, cluster->n_machines)
 *         first[m] = machine->gpus;
 *
 * Here the list may grow. A break leaves the walk. */
#define items_at(Type, item, place, first, n)                                    \
    for (uint32_t place = 0, place##_on = 1; place##_on && place < (n); place++) \
        for (Type *item = (place##_on = 0, &(first)[place]); !place##_on; place##_on = 1)

/* The same of a list of numbers or pointers, by value. */
#define values_at(Type, item, place, first, n)                                   \
    for (uint32_t place = 0, place##_on = 1; place##_on && place < (n); place++) \
        for (Type item = (place##_on = 0, (first)[place]); !place##_on; place##_on = 1)

#define array_at(Type, item, place, array) \
    items_at (Type, item, place, (Type *)(void *)(array)->data, (array)->len)

#define array_each(Type, item, array) \
    items_each (Type, item, (Type *)(void *)(array)->data, (array)->len)

#ifndef __cplusplus /* which has names of its own for these */
/* Whether a condition holds for some of the places from 0 to before `n`, or for all of them; the
 * sum of a term over them, and the largest or the least of it and `from`:
 *
 *     any_of(m, cluster->n_machines, cluster->machine[m].gpus > 1)
 *     sum_over(double, j, n, ratio[j] * rate[j])
 *     most_over(double, j, n, 0, report->busy_s[j])
 *
 * any_in, all_in, sum_in, most_in and least_in go along a walk:
 *
 *     any_in(array_each (const Span, span, spans), span->late)
 *
 * Places behind the one that decides are not looked at. */
#define any_in(walk, condition) \
    __extension__({             \
        bool any_held = false;  \
        walk if (condition)     \
        {                       \
            any_held = true;    \
            break;              \
        }                       \
        any_held;               \
    })
#define all_in(walk, condition) (!any_in(walk, !(condition)))
#define sum_in(Type, walk, term) \
    __extension__({              \
        Type term_sum = 0;       \
        walk term_sum += (term); \
        term_sum;                \
    })
#define best_in(Type, walk, from, term, better) \
    __extension__({                             \
        Type best_term = (from);                \
        walk                                    \
        {                                       \
            const Type next_term = (term);      \
            if (next_term better best_term)     \
                best_term = next_term;          \
        }                                       \
        best_term;                              \
    })
#define most_in(Type, walk, from, term)  best_in(Type, walk, from, term, >)
#define least_in(Type, walk, from, term) best_in(Type, walk, from, term, <)
#define places_before(place, n)          for (uint32_t place = 0; place < (n); place++)
#define any_of(place, n, condition)      any_in(places_before(place, n), condition)
#define all_of(place, n, condition)      all_in(places_before(place, n), condition)
#define sum_over(Type, place, n, term)   sum_in(Type, places_before(place, n), term)
#define most_over(Type, place, n, from, term) \
    most_in(Type, places_before(place, n), from, term)
#define least_over(Type, place, n, from, term) \
    least_in(Type, places_before(place, n), from, term)
#endif

/* All entries of a GHashTable in its order, keys and values as void *; it must not change. */
#define table_each(key, value, table)                                           \
    for (GHashTableIter key##_iter,                                             \
         *key##_on = (g_hash_table_iter_init(&key##_iter, table), &key##_iter); \
         key##_on; key##_on = NULL)                                             \
        for (void *key, *value; g_hash_table_iter_next(&key##_iter, &key, &value);)

#define pointers_each(Type, item, array)                                             \
    for (Type **item##_at = (Type **)(void *)(array)->pdata,                         \
              **const item##_end = item##_at ? item##_at + (array)->len : item##_at, \
              *item;                                                                 \
         item##_at < item##_end && ((item = *item##_at), true); item##_at++)
