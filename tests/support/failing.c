/* A library to preload, in which the n-th call that writes, reads or allocates fails.
 *
 *     KILTER_FAIL=write:3:full     the third write (pwrite, fsync, ftruncate) fails: the disk is full
 *     KILTER_FAIL=write:3:part     ... writes only one byte
 *     KILTER_FAIL=write:3:signal   ... was interrupted by a signal
 *     KILTER_FAIL=read:3:signal    the third read was interrupted;  read:3:part  gives one byte
 *     KILTER_FAIL=memory:3:full    the third allocation fails; counted from main's call of setlocale on
 *     KILTER_FAIL_COUNT=FILE       gets the number of calls of that kind when the program ends
 */
#include <dlfcn.h>
#include <errno.h>
#include <locale.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

enum { WRITE, READ, MEMORY, KINDS };
enum { FULL, PART, SIGNAL };

static atomic_long calls;
static atomic_bool in_main;
static int kind = KINDS, how;
static long when;

/* Kinds and ways are read from the environment once, before main. */
__attribute__((constructor)) static void begin(void)
{
    static const char *const names[] = {"write:", "read:", "memory:"};
    const char *text = getenv("KILTER_FAIL");
    char *end;
    for (int k = 0; text && k < KINDS; k++)
        if (strncmp(text, names[k], strlen(names[k])) == 0) {
            when = strtol(text + strlen(names[k]), &end, 10);
            how = strcmp(end, ":part") == 0     ? PART
                  : strcmp(end, ":signal") == 0 ? SIGNAL
                                                : FULL;
            kind = k;
        }
}

__attribute__((destructor)) static void end(void)
{
    const char *file = getenv("KILTER_FAIL_COUNT");
    kind = KINDS;
    FILE *to = file ? fopen(file, "w") : NULL;
    if (to) {
        fprintf(to, "%ld\n", atomic_load(&calls));
        fclose(to);
    }
}

/* Whether this call of that kind fails. */
static bool fails(int of)
{
    if (of != kind || (of == MEMORY && !atomic_load(&in_main)))
        return false;
    const long n = atomic_fetch_add(&calls, 1) + 1;
    return n == when;
}

static ssize_t failed(int of)
{
    errno = how == SIGNAL ? EINTR : of == MEMORY ? ENOMEM : ENOSPC;
    return -1;
}

/* The next function of that name. */
#define NEXT(name, type)     \
    static type name##_next; \
    if (!name##_next)        \
    *(void **)&name##_next = dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *bytes, size_t n)
{
    typedef ssize_t (*Function)(int, const void *, size_t);
    NEXT(write, Function);
    if (!fails(WRITE))
        return write_next(fd, bytes, n);
    return how == PART ? write_next(fd, bytes, n > 0) : failed(WRITE);
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off_t at)
{
    typedef ssize_t (*Function)(int, const void *, size_t, off_t);
    NEXT(pwrite64, Function);
    if (!fails(WRITE))
        return pwrite64_next(fd, bytes, n, at);
    return how == PART ? pwrite64_next(fd, bytes, n > 0, at) : failed(WRITE);
}

int fsync(int fd)
{
    typedef int (*Function)(int);
    NEXT(fsync, Function);
    return how != PART && fails(WRITE) ? (int)failed(WRITE) : fsync_next(fd);
}

int fdatasync(int fd)
{
    typedef int (*Function)(int);
    NEXT(fdatasync, Function);
    return how != PART && fails(WRITE) ? (int)failed(WRITE) : fdatasync_next(fd);
}

ssize_t read(int fd, void *bytes, size_t n)
{
    typedef ssize_t (*Function)(int, void *, size_t);
    NEXT(read, Function);
    if (!fails(READ))
        return read_next(fd, bytes, n);
    return how == PART ? read_next(fd, bytes, n > 0) : failed(READ);
}

/* Libraries that set up before main cannot report a failure. */
char *setlocale(int category, const char *locale)
{
    typedef char *(*Function)(int, const char *);
    NEXT(setlocale, Function);
    char *name = setlocale_next(category, locale);
    atomic_store(&in_main, true);
    return name;
}

/* Where an allocation failed there is no room for pages either: a program that crashes in a library
 * which does not look at what malloc returns (PCRE by GLib) sees by this why. */
void *mmap(void *at, size_t size, int protection, int flags, int file, off_t offset)
{
    typedef void *(*Function)(void *, size_t, int, int, int, off_t);
    NEXT(mmap, Function);
    const bool full = kind == MEMORY && when > 0 && atomic_load(&calls) >= when;
    if (full && (flags & MAP_ANONYMOUS) != 0) {
        failed(MEMORY);
        return MAP_FAILED;
    }
    return mmap_next(at, size, protection, flags, file, offset);
}

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size)
{
    return fails(MEMORY) ? (failed(MEMORY), NULL) : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails(MEMORY) ? (failed(MEMORY), NULL) : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    return fails(MEMORY) ? (failed(MEMORY), NULL) : __libc_realloc(old, size);
}
