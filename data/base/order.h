/* Orders of items, for qsort, g_array_sort and their like:
 *
 *     static ORDER_DEFINE(by_time, Task, ASCENDING(time_s), DESCENDING(device));
 *
 * defines by_time(const void *, const void *), which compares up to five members of two Tasks: the
 * first that differ decide. ORDER_POINTERS is for a list of pointers to them, ORDER_VALUES for one
 * of numbers. */
#pragma once

#include <glib.h>

#define ORDER_DEFINE(name, Type, ...) \
    ORDER_OF(name, Type, (const Type *)left, (const Type *)right, __VA_ARGS__)
#define ORDER_POINTERS(name, Type, ...)                                           \
    ORDER_OF(name, Type, *(const Type *const *)left, *(const Type *const *)right, \
             __VA_ARGS__)
#define ORDER_VALUES(name, Type) \
    ORDER_OF(name, Type, (const Type *)left, (const Type *)right, (*x > *y) - (*x < *y))

#define ORDER_OF(name, Type, first, second, ...)                         \
    int name(const void *left, const void *right)                        \
    {                                                                    \
        const Type *x = first, *y = second;                              \
        return ORDER_BY(__VA_ARGS__, ORDER_5, ORDER_4, ORDER_3, ORDER_2, \
                        ORDER_1, )(__VA_ARGS__);                         \
    }                                                                    \
    _Static_assert(sizeof(Type) > 0, "the type of the items")

#define ASCENDING(member)  ((x->member > y->member) - (x->member < y->member))
#define DESCENDING(member) ((x->member < y->member) - (x->member > y->member))
#define BY_NAME(member)    g_strcmp0(x->member, y->member)

#define ORDER_BY(a, b, c, d, e, order, ...) order
#define ORDER_1(a)                          a
#define ORDER_2(a, ...)                     (a ?: ORDER_1(__VA_ARGS__))
#define ORDER_3(a, ...)                     (a ?: ORDER_2(__VA_ARGS__))
#define ORDER_4(a, ...)                     (a ?: ORDER_3(__VA_ARGS__))
#define ORDER_5(a, ...)                     (a ?: ORDER_4(__VA_ARGS__))
