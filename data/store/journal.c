/* Whether other machines may see a file, so that it must not have a write-ahead log. */
#include <sys/vfs.h>

#include "data/base/each.h"
#include "data/store/database.h"

/* Kinds of file systems that are on one machine, as statfs(2) and the kernel's magic.h number them.
 * A kind that is not known may be shared. */
static const uint32_t LOCAL[] = {
    0xEF53,     /* ext2, ext3, ext4 */
    0x58465342, /* xfs */
    0x9123683E, /* btrfs */
    0x2FC12FC1, /* zfs */
    0xCA451A4E, /* bcachefs */
    0xF2F52010, /* f2fs */
    0x01021994, /* tmpfs */
    0x858458F6, /* ramfs */
    0x794C7630, /* overlayfs */
    0x52654973, /* reiserfs */
    0x3153464A, /* jfs */
    0x4D44,     /* fat */
    0x2011BAB0, /* exfat */
    0x7366746E, /* ntfs3 */
    0x9660,     /* iso9660 */
    0x73717368, /* squashfs */
};

bool store_is_shared(const char *file)
{
    const char *given = g_getenv("KILTER_SHARED_FILES");
    if (given && *given)
        return *given != '0';
    g_autofree char *path = g_canonicalize_filename(file, NULL);
    g_autofree char *folder = g_path_get_dirname(path);
    struct statfs status;
    if (statfs(folder, &status) != 0)
        return false; /* opening the file says why */
    return all_of(i, G_N_ELEMENTS(LOCAL), (uint32_t)status.f_type != LOCAL[i]);
}
