/* Included by files whose statements are watched (tests/mutate/reach.awk): KILTER_REACHED(n) sets
 * byte n of the file KILTER_REACHED_FILE, in every process of a test, however it ends. */
#ifndef KILTER_REACHED
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#pragma GCC optimize("O1") // these files are compiled once more

static volatile unsigned char *kilter_reached_bytes;

__attribute__((constructor)) static void kilter_reached_open(void)
{
    int fd = open(KILTER_REACHED_FILE, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    void *bytes = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    kilter_reached_bytes = bytes == MAP_FAILED ? NULL : bytes;
    close(fd);
}

#define KILTER_REACHED(n) \
    (kilter_reached_bytes ? (void)(kilter_reached_bytes[n] = 1) : (void)0)
#endif
