/* One member of a zip archive, found by the directory at the archive's end. */
#include "data/base/zip.h"

#include "data/base/error.h"

#include <string.h>

/* The archive's bytes; numbers in it have their lowest byte first. */
typedef struct {
    const char *path;
    const guint8 *byte;
    guint64 size;
} Zip;

typedef struct {
    guint64 size, at; /* `at`: of its header */
    bool packed;
} Member;

/* The number of `n` bytes at a place; 0 beyond the end. */
static guint64 number(const Zip *zip, guint64 at, guint n)
{
    guint64 value = 0;
    for (guint i = 0; i < n && at < zip->size && n <= zip->size - at; i++)
        value |= (guint64)zip->byte[at + i] << 8 * i;
    return value;
}

/* Where the directory begins, and how many members it has: by the last record of its end, or where
 * that has no room for them by the one of 64 bits before it. */
static bool directory(const Zip *zip, guint64 *at, guint64 *members)
{
    enum { END = 0x06054b50, END64 = 0x06064b50, LOCATOR = 0x07064b50 };
    enum { END_BYTES = 22, LOCATOR_BYTES = 20, MOST_COMMENT = 0xffff };
    for (guint64 back = END_BYTES; back <= zip->size && back <= END_BYTES + MOST_COMMENT;
         back++) {
        const guint64 end = zip->size - back;
        if (number(zip, end, 4) != END)
            continue;
        const guint64 locator = end - MIN(end, LOCATOR_BYTES),
                      end64 = number(zip, locator + 8, 8);
        const bool wide =
            number(zip, locator, 4) == LOCATOR && number(zip, end64, 4) == END64;
        *members = wide ? number(zip, end64 + 32, 8) : number(zip, end + 10, 2);
        *at = wide ? number(zip, end64 + 48, 8) : number(zip, end + 16, 4);
        return true;
    }
    return false;
}

/* Numbers that need 64 bits lie in a field of their own behind the name: size twice, and place. */
static void widen(const Zip *zip, guint64 at, guint64 end, Member *member)
{
    enum { ZIP64 = 1, NO_ROOM = 0xffffffff };
    while (at + 4 <= end && number(zip, at, 2) != ZIP64)
        at += 4 + number(zip, at + 2, 2);
    const bool size = member->size == NO_ROOM;
    if (member->at == NO_ROOM && at < end)
        member->at = number(zip, at + (size ? 20 : 4), 8);
    if (size && at < end)
        member->size = number(zip, at + 4, 8);
}

static bool find_member(const Zip *zip, bool (*is_wanted)(const char *), Member *found)
{
    enum { ENTRY = 0x02014b50, ENTRY_BYTES = 46 };
    guint64 at, members;
    if (!directory(zip, &at, &members))
        return false;
    for (guint64 i = 0; i < members && number(zip, at, 4) == ENTRY; i++) {
        const guint64 name = number(zip, at + 28, 2), extra = number(zip, at + 30, 2),
                      comment = number(zip, at + 32, 2), text = at + ENTRY_BYTES;
        if (name + extra > zip->size - MIN(text, zip->size))
            return false;
        g_autofree char *is = g_strndup((const char *)zip->byte + text, name);
        *found = (Member){number(zip, at + 24, 4), number(zip, at + 42, 4),
                          number(zip, at + 10, 2) != 0};
        widen(zip, text + name, text + name + extra, found);
        if (is_wanted(is))
            return true;
        at = text + name + extra + comment;
    }
    return false;
}

static char *content(const Zip *zip, const Member *member, gsize most, gsize *length,
                     GError **error)
{
    enum { HEADER = 0x04034b50, HEADER_BYTES = 30 };
    const guint64 at = member->at + HEADER_BYTES + number(zip, member->at + 26, 2) +
                       number(zip, member->at + 28, 2);
    if (number(zip, member->at, 4) != HEADER || at > zip->size || member->packed ||
        member->size > MIN(most, zip->size - at))
        return refused(error,
                       "%s: expected its graph whole, not packed, of at most %zu bytes",
                       zip->path, most);
    *length = member->size;
    char *text = g_malloc(*length + 1);
    memcpy(text, zip->byte + at, *length);
    text[*length] = '\0';
    return text;
}

char *zip_member(const char *path, bool (*is_wanted)(const char *name), gsize most,
                 gsize *length, GError **error)
{
    g_autoptr(GError) failure = NULL;
    g_autoptr(GMappedFile) file = g_mapped_file_new(path, false, &failure);
    if (!file)
        return refused(error, "%s", failure->message);
    const Zip zip = {path, (const guint8 *)g_mapped_file_get_contents(file),
                     g_mapped_file_get_length(file)};
    Member member;
    if (find_member(&zip, is_wanted, &member))
        return content(&zip, &member, most, length, error);
    return refused(
        error, "%s: expected an archive of torch.export with its graph as JSON", path);
}
