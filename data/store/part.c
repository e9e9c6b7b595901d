/* Parts of questions, and the identity of a question that follows from them. */
#include "data/store/database.h"

StorePart *store_part_new(const char *json)
{
    StorePart *part = g_atomic_rc_box_new0(StorePart);
    part->text = g_strdup(json);
    part->hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, json, -1);
    return part;
}

const char *store_part_text(const StorePart *part)
{
    return part->text;
}

StorePart *store_part_ref(StorePart *part)
{
    return g_atomic_rc_box_acquire(part);
}

static void clear(void *data)
{
    StorePart *part = data;
    g_free(part->text);
    g_free(part->hash);
}

void store_part_unref(StorePart *part)
{
    if (part)
        g_atomic_rc_box_release_full(part, clear);
}

char *store_question_hash(const StoreQuestion *question)
{
    g_autofree char *text = g_strdup_printf(
        "{\"cluster\":\"%s\",\"method\":\"%s\",\"seed\":%" G_GUINT64_FORMAT
        ",\"subject\":\"%s\"}",
        question->cluster->hash, question->method->hash, question->seed,
        question->subject->hash);
    return g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
}

void store_question_clear(StoreQuestion *question)
{
    g_clear_pointer(&question->subject, store_part_unref);
    g_clear_pointer(&question->cluster, store_part_unref);
    g_clear_pointer(&question->method, store_part_unref);
}
