/* Subjects: resolving a spec once, sharing its graph. */
#include "experiments/sweep/subject.h"

#include "data/base/free.h"
#include "data/models/model.h"
#include "data/store/question.h"
#include "experiments/sweep/question.h"

struct Subject {
    char *model;   /* canonical, or as asked for */
    char *message; /* why the model is impossible; NULL if it is possible */
    uint32_t gpus;
    StorePart *part;
    GMutex mutex;      /* protects the two members below */
    Graph *graph;      /* NULL while unused */
    uint32_t expected; /* number of graphs still to be taken */
};

Subject *subject_new(const char *model, uint32_t gpus)
{
    Subject *subject = g_new0(Subject, 1);
    g_autoptr(GError) cause = NULL;
    g_autofree char *content = NULL;
    g_mutex_init(&subject->mutex);
    subject->gpus = gpus;
    subject->model = model_resolve(model, gpus, &content, &cause);
    if (!subject->model) {
        subject->model = g_strdup(model);
        subject->message = g_strdup(cause->message);
    }
    subject->part = question_model(subject->model, content);
    return subject;
}

FREE_DEFINE(subject_free, Subject, subject, store_part_unref(subject->part),
            graph_free(subject->graph), g_mutex_clear(&subject->mutex),
            free_each(subject->model, subject->message));

const char *subject_model(const Subject *subject)
{
    return subject->model;
}

StorePart *subject_part(const Subject *subject)
{
    return subject->part;
}

void subject_expect(Subject *subject)
{
    g_mutex_lock(&subject->mutex);
    subject->expected++;
    g_mutex_unlock(&subject->mutex);
}

/* While one thread builds the graph, the others wait for it. */
Graph *subject_take(Subject *subject, GError **error)
{
    Graph *taken = NULL;
    g_mutex_lock(&subject->mutex);
    if (!subject->graph && (!subject->message || refuse(error, "%s", subject->message)))
        subject->graph = model_build(subject->model, subject->gpus, NULL, error);
    if (subject->graph)
        taken = graph_ref(subject->graph);
    if (subject->expected > 0)
        subject->expected--;
    if (subject->expected == 0)
        g_clear_pointer(&subject->graph, graph_free);
    g_mutex_unlock(&subject->mutex);
    return taken;
}
