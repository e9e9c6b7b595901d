/* Numbers of cluster files, and a list of all that is wrong with one. */
#include "data/cluster/cluster_reader.h"

bool reader_note(ClusterReader *reader, bool good)
{
    if (!good)
        g_string_append_printf(reader->failures, "%s%s",
                               reader->failures->len ? "; " : "",
                               reader->failure->message);
    g_clear_error(&reader->failure);
    return good;
}

bool reader_members(ClusterReader *reader, const char *key, const Member *member,
                    uint32_t n, const void *text, void *value)
{
    bool good = true;
    for (uint32_t i = 0; i < n; i++) {
        good &= reader_note(reader, member_read(reader->yaml, key, &member[i], text,
                                                value, &reader->failure));
    }
    return good;
}

bool reader_link(const ClusterReader *reader, const char *key, const LinkText *text,
                 LinkCost *link, GError **error)
{
    return members_read(reader->yaml, key, LINK_MEMBER, LINK_NUMBERS, text, link, error);
}
