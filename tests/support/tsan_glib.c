/* Tells ThreadSanitizer about GLib, which is built without it: a mutex, a queue and a count of
 * references hand over all that was written before. Loaded before the program (LD_PRELOAD) by
 * tests of the preset tsan; GLib's own functions do the work. */
#include <dlfcn.h>
#include <glib.h>

/* Absent in programs without the sanitizer, which tests start, too. */
void __tsan_acquire(void *address) __attribute__((weak));
void __tsan_release(void *address) __attribute__((weak));

static void acquire(void *address)
{
    if (__tsan_acquire)
        __tsan_acquire(address);
}

static void release(void *address)
{
    if (__tsan_release)
        __tsan_release(address);
}

/* GLib's function of that name. */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* --- mutexes --- */

void g_mutex_lock(GMutex *mutex)
{
    REAL(g_mutex_lock)(mutex);
    acquire(mutex);
}

void g_mutex_unlock(GMutex *mutex)
{
    release(mutex);
    REAL(g_mutex_unlock)(mutex);
}

/* --- queues --- */

void g_async_queue_push(GAsyncQueue *queue, gpointer data)
{
    release(queue);
    REAL(g_async_queue_push)(queue, data);
}

gpointer g_async_queue_pop(GAsyncQueue *queue)
{
    gpointer data = REAL(g_async_queue_pop)(queue);
    acquire(queue);
    return data;
}

gpointer g_async_queue_try_pop(GAsyncQueue *queue)
{
    gpointer data = REAL(g_async_queue_try_pop)(queue);
    acquire(queue);
    return data;
}

gpointer g_async_queue_timeout_pop(GAsyncQueue *queue, guint64 timeout)
{
    gpointer data = REAL(g_async_queue_timeout_pop)(queue, timeout);
    acquire(queue);
    return data;
}

/* --- counts of references --- */

gboolean(g_atomic_ref_count_dec)(gatomicrefcount *count)
{
    release(count);
    const gboolean last = REAL(g_atomic_ref_count_dec)(count);
    if (last)
        acquire(count);
    return last;
}

/* Clears within the call, so what others wrote must be known before. */
void g_atomic_rc_box_release_full(gpointer block, GDestroyNotify clear)
{
    release(block);
    acquire(block);
    REAL(g_atomic_rc_box_release_full)(block, clear);
}
