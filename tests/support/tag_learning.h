/* How TAG's network learns (TPDS 2023, Sec. 4.2.5): for ./run train-tag, which makes the bundled
 * weights, and tests. */
#ifndef KILTER_TESTS_TAG_LEARNING_H
#define KILTER_TESTS_TAG_LEARNING_H

#include "synth/tag/net.h"
#include "synth/tag/search_state.h"

/* A network with random weights. */
TagNet *tag_net_new(NetShape shape, uint64_t seed);
/* The text of a file that tag_net_read reads. */
char *tag_net_text(const TagNet *net, const char *comment);
/* Returns the cross entropy with target [n_actions], a distribution over actions, and adds its
 * gradient to gradient [net->n]. */
double tag_net_learn(const TagNet *net, const NetView *view, const double *target,
                     double *gradient);
/* Sets what running the strategy says to 0 (TAG's Fig. 7). */
void net_view_forget_feedback(NetView *view);

void net_lesson_free(NetLesson *lesson);

/* A search that looks one step ahead (TAG_OWN), and keeps a lesson of each vertex. */
void tag_search_ahead(TagState *t);

/* How lessons are learnt: by Adam, in batches, in an order drawn anew for each epoch. */
typedef struct {
    uint32_t epochs, batch;
    double rate;
    uint64_t seed;
    uint32_t threads; /* 0: the number of processors; weights do not depend on it */
    /* called after each epoch with the mean loss of its lessons before they were learnt; or NULL */
    void (*after)(void *context, const TagNet *net, uint32_t epoch, double loss);
    void *context;
} NetTraining;

void tag_net_train(TagNet *net, NetLesson *const *lesson, uint32_t n,
                   const NetTraining *training);
/* The mean cross entropy of lessons. */
double tag_net_mean_loss(const TagNet *net, NetLesson *const *lesson, uint32_t n);

#endif
