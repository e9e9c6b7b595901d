/* kilter links: the links that data sheets and clusters name. */
#include <string.h>

#include "data/base/json.h"
#include "data/cluster/sheet.h"
#include "experiments/answers.h"
#include "experiments/cli/command.h"

static json_t *links_link_json(const Sheets *sheets, const LinkSheet *link)
{
    json_t *devices = json_array();
    for (uint32_t i = 0; i < sheets->n_devices; i++)
        for (uint32_t k = 0; k < sheets->device[i].n_links; k++)
            if (strcmp(sheets->device[i].link[k].name, link->name) == 0)
                json_array_append_new(devices, json_string(sheets->device[i].name));
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:s}", "name", link->name,
                     "bandwidth", json_number(link->bandwidth), "share",
                     json_number(link->share), "base_s", json_number(link->base_s),
                     "hop_s", json_number(link->hop_s), "sums",
                     link->sums > 0 ? json_number(link->sums) : json_null(), "devices",
                     devices, "source", link->source, "share_source",
                     link->share_source ? link->share_source : "");
}

COMMAND_PLAIN(links)
{
    g_autoptr(Sheets) sheets = sheets_load(error);
    if (!sheets)
        return false;
    json_t *list = json_list(places_before(i, sheets->n_links),
                             links_link_json(sheets, &sheets->link[i]));
    command_report(options, list, ANSWER_LINKS, NULL);
    return true;
}
