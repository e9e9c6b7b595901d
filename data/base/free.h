/* Freeing what an object owns:
 *
 *     FREE_DEFINE(graph_free, Graph, graph, g_free(graph->name), unref_arrays(graph->ops));
 *
 * defines graph_free(Graph *graph), which frees what the list says and then the graph; of NULL it
 * frees nothing. CLEAR_DEFINE is for a part of another object: it leaves the part itself. The list
 * is one of calls, in the order in which they are made. */
#pragma once

#include <glib.h>
#include <string.h>

/* Declares graph_free, which g_autoptr(Graph) calls; and what clears a part, for g_auto. */
#define AUTOPTR(name, Type)  \
    void name(Type *object); \
    G_DEFINE_AUTOPTR_CLEANUP_FUNC(Type, name)
#define AUTOCLEAR(name, Type) \
    void name(Type *object);  \
    G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Type, name)

#define FREE_DEFINE(name, Type, object, ...) \
    void name(Type *object)                  \
    {                                        \
        if (!object)                         \
            return;                          \
        __VA_ARGS__;                         \
        g_free(object);                      \
    }                                        \
    G_STATIC_ASSERT(sizeof(Type) > 0)

#define CLEAR_DEFINE(name, Type, object, ...) \
    void name(Type *object)                   \
    {                                         \
        __VA_ARGS__;                          \
    }                                         \
    G_STATIC_ASSERT(sizeof(Type) > 0)

/* The same for a type of one file, with its use by g_autoptr and g_auto. */
#define OWN_FREE_DEFINE(name, Type, object, ...)         \
    static FREE_DEFINE(name, Type, object, __VA_ARGS__); \
    G_DEFINE_AUTOPTR_CLEANUP_FUNC(Type, name) G_STATIC_ASSERT(sizeof(Type) > 0)
#define OWN_CLEAR_DEFINE(name, Type, object, ...)         \
    static CLEAR_DEFINE(name, Type, object, __VA_ARGS__); \
    G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Type, name) G_STATIC_ASSERT(sizeof(Type) > 0)

static inline void free_blocks(void *const *block, gsize n)
{
    for (gsize i = 0; i < n; i++)
        g_free(block[i]);
}

static inline void unref_all(GArray *const *array, gsize n)
{
    for (gsize i = 0; i < n; i++)
        if (array[i])
            g_array_unref(array[i]);
}

static inline void release_pointers(void *const *pointer, gsize n, GDestroyNotify release)
{
    for (gsize i = 0; i < n; i++)
        release(pointer[i]);
}

static inline void clear_in_place(void *item, gsize size, gsize n, GDestroyNotify clear)
{
    for (gsize i = 0; i < n; i++)
        clear((char *)item + i * size);
}

static inline void free_members(const void *member, gsize size, gsize n)
{
    for (gsize i = 0; i < n; i++)
        g_free(*(void *const *)((const char *)member + i * size));
}

#define FREE_LIST(Type, ...) \
    (Type[]){__VA_ARGS__}, sizeof((Type[]){__VA_ARGS__}) / sizeof(Type)

/* Frees each of the blocks, which are g_malloc's or NULL. */
#define free_each(...) free_blocks(FREE_LIST(void *const, __VA_ARGS__))

/* Unrefs each of the GArrays, which may be NULL. */
#define unref_arrays(...) unref_all(FREE_LIST(GArray *const, __VA_ARGS__))

/* Frees a block and puts another one, not made of it, in its place. */
#define put_block(place, block) (g_free(place), (void)((place) = (block)))

/* Calls `free` for a pointer that is not NULL, and leaves NULL in its place. */
#define let_go(pointer, free) \
    ((void)((pointer) ? ((free)(pointer), (pointer) = NULL) : NULL))

/* Of `n` items: frees the pointers item[i]; calls `free` for each of them; calls `clear` for each
 * &item[i]; frees item[i].member. */
#define free_items(item, n) free_blocks((void *const *)(item), n)
#define release_items(item, n, free) \
    release_pointers((void *const *)(item), n, (GDestroyNotify)(free))
#define clear_items(item, n, clear) \
    clear_in_place(item, sizeof *(item), n, (GDestroyNotify)(clear))
#define free_column(item, n, member) \
    ((n) > 0 ? free_members(&(item)->member, sizeof *(item), n) : (void)0)

/* A table by texts, which are its own; `free`: for its values, or NULL. */
static inline GHashTable *text_table(GDestroyNotify free)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free);
}

/* A GArray of Type that calls `clear` for each element that it lets go; new ones are 0. */
#define array_owning(Type, clear) array_of_owned(sizeof(Type), (GDestroyNotify)(clear))
static inline GArray *array_of_owned(guint size, GDestroyNotify clear)
{
    GArray *array = g_array_new(FALSE, TRUE, size);
    g_array_set_clear_func(array, clear);
    return array;
}

/* For g_array_set_clear_func: frees the block to which an element's first member points. */
static inline void free_first(gpointer element)
{
    free_members(element, 0, 1);
}
