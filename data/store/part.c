/* Parts of questions, and the identity of a question that follows from them. */
#include "data/base/free.h"
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

static CLEAR_DEFINE(clear, StorePart, part, free_each(part->text, part->hash));

void store_part_unref(StorePart *part)
{
    if (part)
        g_atomic_rc_box_release_full(part, (GDestroyNotify)clear);
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

CLEAR_DEFINE(store_question_clear, StoreQuestion, question,
             let_go(question->subject, store_part_unref),
             let_go(question->cluster, store_part_unref),
             let_go(question->method, store_part_unref));
