/* Days of training with a plan, as an answer and as a figure. */
#pragma once

#include <jansson.h>

#include "experiments/sweep/evaluation.h"
#include "sim/campaign/campaign.h"

/* The time to send one copy of parameters and optimizer states, an equal part through each
 * machine's port. */
double days_save_s(const Evaluation *evaluation);

/* The mean time between failures of a GPU: a time, or a published rate by its name in
 * data/failures.csv; NULL: that of Llama-3 405B. */
bool days_read_mtbf(const char *text, double *seconds, GError **error);

/* A number of tokens such as 1T, 300B, 15e12. */
bool days_read_tokens(const char *text, double *tokens, GError **error);
/* {tokens, iterations, days, goodput, failures, checkpoint_s, save_s, dollars, kwh}: a training on
 * so many tokens with the plan, with failures at the published rate, a day until a machine is
 * repaired and the checkpoints that lose least. dollars_an_hour and power_w of all machines; NaN or
 * 0: not known. KILTER_ERROR_INPUT for a model without tokens. */
json_t *days_training_json(const Evaluation *of, double tokens, double dollars_an_hour,
                           double power_w, GError **error);

/* The answer's member "campaign". */
json_t *days_json(const SimCampaign *of, const SimCampaignReport *report,
                  const Evaluation *evaluation);

/* Draws days.png and days.svg in the folder: goodput, and where the rest of the time goes, by the
 * interval between checkpoints, from a sixteenth of the one that was used to 16 times as much. */
bool days_draw(const SimCampaign *campaign, const SimCampaignReport *used,
               const char *folder, GError **error);
