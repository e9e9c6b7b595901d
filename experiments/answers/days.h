/* Days of training with a plan, as an answer and as a figure. */
#ifndef KILTER_EXPERIMENTS_ANSWERS_DAYS_H
#define KILTER_EXPERIMENTS_ANSWERS_DAYS_H

#include <jansson.h>

#include "experiments/sweep/evaluation.h"
#include "sim/campaign/campaign.h"

/* The time to send one copy of parameters and optimizer states, an equal part through each
 * machine's port. */
double days_save_s(const Evaluation *evaluation, uint32_t machines);

/* The answer's member "campaign". */
json_t *days_json(const SimCampaign *of, const SimCampaignReport *report,
                  const Evaluation *evaluation);

/* Draws days.png and days.svg in the folder: goodput, and where the rest of the time goes, by the
 * interval between checkpoints, from a sixteenth of the one that was used to 16 times as much. */
bool days_draw(const SimCampaign *campaign, const SimCampaignReport *used,
               const char *folder, GError **error);

#endif
