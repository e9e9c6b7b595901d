/* The parts of a question as canonical JSON. */
#include "experiments/sweep/question.h"

#include "data/base/json.h"
#include "data/cluster/tuning.h"
#include "data/store/question.h"

StorePart *question_part(json_t *object)
{
    g_autofree char *text = json_canonical(object);
    return store_part_new(text);
}

StorePart *question_method(json_t *object)
{
    json_object_set_new(object, "answers", json_integer(QUESTION_ANSWERS));
    return question_part(object);
}

StorePart *question_cluster(const Cluster *cluster, GError **error)
{
    g_autofree char *content = cluster_canonical(cluster);
    g_autofree char *tuning = tuning_canonical(cluster, error);
    if (!tuning)
        return NULL;
    g_autofree char *text =
        g_strdup_printf("{\"cluster\":%s,\"tuning\":%s}", content, tuning);
    return store_part_new(text);
}

StorePart *question_model(const char *model, const char *content)
{
    json_t *subject = json_pack("{s:s}", "model", model);
    if (content) {
        g_autofree char *sum =
            g_compute_checksum_for_string(G_CHECKSUM_SHA256, content, -1);
        json_object_set_new(subject, "content", json_string(sum));
    }
    return question_part(subject);
}
