/* Bytes as a file in memory, for readers that take names of files. */
#ifndef KILTER_TESTS_MEMORY_FILE_H
#define KILTER_TESTS_MEMORY_FILE_H

#include <glib.h>
#include <sys/mman.h>
#include <unistd.h>

/* The path of a file that holds the bytes until *descriptor is closed. Caller frees the path. */
static inline char *memory_file_open(const void *bytes, size_t size, int *descriptor)
{
    *descriptor = memfd_create("memory", MFD_CLOEXEC);
    g_assert_true(*descriptor >= 0 && write(*descriptor, bytes, size) == (ssize_t)size);
    return g_strdup_printf("/proc/self/fd/%d", *descriptor);
}

#endif
