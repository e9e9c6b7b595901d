/* The kind of a file, determined from its bytes (SQLite file format, Sec. 1.3). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/base/error.h"
#include "data/base/text.h"
#include "data/store/database.h"

enum {
    HEADER_BYTES = 100,
    PAGE_SIZE_AT = 16,
    PAGES_AT = 28,
    USER_VERSION_AT = 60,
    APPLICATION_ID_AT = 68,
};

static const char MAGIC[16] = "SQLite format 3";

bool store_refuse(const char *file, GError **error, const char *format, ...)
{
    TEXT_OF_ARGUMENTS(reason, format);
    return refuse(error, "%s: %s; left untouched", file, reason);
}

static uint32_t big_endian(const uint8_t *bytes, uint32_t n)
{
    g_assert(n <= sizeof(uint32_t));
    uint32_t value = 0;
    for (uint32_t i = 0; i < n; i++)
        value = value << 8 | bytes[i];
    return value;
}

bool store_check_identity(const char *file, int64_t application, int64_t version,
                          GError **error)
{
    if (application != STORE_APPLICATION_ID)
        return store_refuse(file, error, "not a Kilter store");
    if (version < STORE_VERSION_OLDEST || version > STORE_VERSION)
        return store_refuse(file, error,
                            "a Kilter store of schema version %" G_GINT64_FORMAT
                            ", expected version %d",
                            version, STORE_VERSION);
    return true;
}

bool store_has_journal(const char *file)
{
    static const char *const suffix[] = {"-journal", "-wal"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(suffix); i++) {
        g_autofree char *name = g_strconcat(file, suffix[i], NULL);
        struct stat status;
        if (stat(name, &status) == 0 && status.st_size > 0)
            return true;
    }
    return false;
}

static bool check_header(const char *file, const uint8_t *header, uint64_t n,
                         uint64_t size, GError **error)
{
    g_assert(n <= HEADER_BYTES);
    if (n < HEADER_BYTES)
        return store_refuse(file, error,
                            memcmp(header, MAGIC, MIN(n, sizeof MAGIC)) == 0
                                ? "a truncated database"
                                : "not a Kilter store");
    if (memcmp(header, MAGIC, sizeof MAGIC) != 0)
        return store_refuse(file, error, "not a Kilter store");
    if (!store_check_identity(file, (int32_t)big_endian(header + APPLICATION_ID_AT, 4),
                              (int32_t)big_endian(header + USER_VERSION_AT, 4), error))
        return false;
    uint32_t page = big_endian(header + PAGE_SIZE_AT, 2);
    uint64_t whole =
        (uint64_t)big_endian(header + PAGES_AT, 4) * (page == 1 ? 65536 : page);
    if (size < whole && !store_has_journal(file))
        return store_refuse(file, error,
                            "a truncated store of %" G_GUINT64_FORMAT
                            " bytes, expected %" G_GUINT64_FORMAT,
                            size, whole);
    return true;
}

/* Whether power was lost while the store was created: its first page is not there yet, and SQLite's
 * journal beside it takes the others back. */
static bool is_unborn(const char *file, const uint8_t *header, uint64_t n)
{
    static const uint8_t JOURNAL[] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    g_assert(n <= HEADER_BYTES);
    for (uint64_t i = 0; i < n; i++)
        if (header[i] != 0)
            return false;
    g_autofree char *name = g_strconcat(file, "-journal", NULL);
    uint8_t begin[sizeof JOURNAL] = {0};
    const int journal = open(name, O_RDONLY | O_CLOEXEC);
    const bool read =
        journal >= 0 && pread(journal, begin, sizeof begin, 0) == (ssize_t)sizeof begin;
    if (journal >= 0)
        close(journal);
    return read && memcmp(begin, JOURNAL, sizeof begin) == 0;
}

bool store_check_file(const char *file, bool create, GError **error)
{
    struct stat status;
    if (stat(file, &status) != 0) {
        if (create && errno == ENOENT)
            return true; /* SQLite reports it if the file cannot be created */
        return refuse(error, "%s: cannot open the store: %s", file, g_strerror(errno));
    }
    if (!S_ISREG(status.st_mode))
        return store_refuse(file, error, "not a regular file");
    if (status.st_size == 0)
        return create || store_refuse(file, error, "not a Kilter store, but empty");
    uint8_t header[HEADER_BYTES];
    int descriptor = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t n = descriptor < 0 ? -1 : pread(descriptor, header, sizeof header, 0);
    int cause = errno;
    if (descriptor >= 0)
        close(descriptor);
    if (n < 0)
        return refuse(error, "%s: cannot read the store: %s", file, g_strerror(cause));
    if (create && is_unborn(file, header, (uint64_t)n))
        return true;
    return check_header(file, header, (uint64_t)n, (uint64_t)status.st_size, error);
}
