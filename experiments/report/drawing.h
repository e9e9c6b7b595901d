/* The common parts of the drawings of a plan. Private to experiments/report. */
#ifndef KILTER_EXPERIMENTS_REPORT_DRAWING_H
#define KILTER_EXPERIMENTS_REPORT_DRAWING_H

#include <jansson.h>

#include "experiments/sweep/configuration.h"

/* Pixels: of a picture, of the labels at its left. */
enum { DRAWING_WIDTH = 1200, DRAWING_LABEL = 180 };

typedef struct {
    const Evaluation *evaluation;
    const SimTimeline *timeline; /* NULL: the fidelity has none */
    GString *page;
    double end_s; /* of the timeline */
} Drawing;

/* The name of a device, how many do the same, and their type. Caller frees. */
char *drawing_label(const Drawing *drawing, uint32_t device);
void drawing_text(GString *page, double x, double y, const char *text);
/* One entry of a legend, with what follows it. */
void drawing_legend(GString *page, const char *color, const char *name, bool last);

/* Memory by category over time, of the fullest device of each type (drawing_memory.c). */
void drawing_add_memory(const Drawing *drawing);
/* The machines with their GPUs, coloured by stage, and a table of the stages
 * (drawing_cluster.c). */
void drawing_add_cluster(const Drawing *drawing);

/* Where the time of days of training goes, and the picture of what the interval between checkpoints
 * changes (drawing_days.c). `campaign`: the member of the answer of `kilter simulate --days`;
 * `svg`: the picture. */
void drawing_add_days(GString *page, const json_t *campaign, const char *svg);

#endif
