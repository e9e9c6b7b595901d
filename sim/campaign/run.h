/* One run of days, and how its events are drawn. Private to sim/campaign. */
#pragma once

#include "sim/campaign/campaign.h"

/* An event of the whole run, known before the run begins. */
typedef struct {
    double time_s;
    bool slow; /* true: a straggler comes or goes; false: something fails */
    /* change of the number of stragglers, 1 or -1; number of machines that a failure takes out */
    int more;
} SimCampaignEvent;

typedef enum {
    SIM_CAMPAIGN_AS_GIVEN,
    SIM_CAMPAIGN_AGAIN, /* other draws; a log's failures in a new order */
} SimCampaignDraw;

/* The events of run `number`, SimCampaignEvent, sorted by time. Caller frees. */
GArray *sim_campaign_draw(const SimCampaign *of, uint32_t number, SimCampaignDraw draw);
/* Whether the log has failures at different times. */
bool sim_campaign_can_draw_again(const SimCampaign *of);

SimCampaignRun sim_campaign_run(const SimCampaign *of, double interval_s,
                                const GArray *events);

/* Sets the interval that loses least, and its confidence where it is found by simulation; the
 * report has the system's time between failures. */
bool sim_campaign_choose(const SimCampaign *of, SimCampaignReport *report,
                         GError **error);
