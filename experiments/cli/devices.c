/* kilter devices: the data sheets of devices. */
#include "data/base/json.h"
#include "data/cluster/sheet.h"
#include "experiments/answers.h"
#include "experiments/cli/command.h"

static json_t *devices_device_json(const DeviceSheet *sheet)
{
    json_t *peaks = json_object(), *links = json_array();
    for (uint32_t f = 0; f < SHEET_FORMATS; f++)
        if (sheet->peak[f] > 0)
            json_object_set_new(peaks, sheet_format_name((SheetFormat)f),
                                json_number(sheet->peak[f]));
    for (uint32_t i = 0; i < sheet->n_links; i++)
        json_array_append_new(links, json_pack("{s:s, s:i}", "link", sheet->link[i].name,
                                               "count", (int)sheet->link[i].count));
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:s}", "name",
                     sheet->name, "description", sheet->description, "aliases",
                     json_strings(sheet->alias), "products", json_strings(sheet->product),
                     "pci", json_strings(sheet->pci), "memory_bytes",
                     (json_int_t)sheet->memory_bytes, "memory_bandwidth",
                     json_number(sheet->chip.bandwidth), "peaks", peaks, "links", links,
                     "power_w", json_number(sheet->power_w), "source", sheet->source);
}

COMMAND_PLAIN(devices)
{
    g_autoptr(Sheets) sheets = sheets_load(error);
    const DeviceSheet *one =
        sheets && argc > 1 ? sheets_device(sheets, argv[1], error) : NULL;
    if (!sheets || (argc > 1 && !one))
        return false;
    json_t *list = json_array();
    for (uint32_t i = 0; i < sheets->n_devices; i++)
        if (!one || one == &sheets->device[i])
            json_array_append_new(list, devices_device_json(&sheets->device[i]));
    json_t *root = json_pack("{s:o}", "devices", list);
    if (one)
        json_object_update(root, json_array_get(list, 0));
    command_report(options, root, ANSWER_DEVICES, one ? ANSWER_DEVICE : NULL, NULL);
    return true;
}
