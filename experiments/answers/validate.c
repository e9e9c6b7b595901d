/* Predicted beside measured times of plans, as an answer and as a figure. */
#include "experiments/answers/validate.h"

#include "data/base/each.h"
#include "data/base/json.h"
#include "data/base/version.h"
#include "experiments/figures/figure.h"

static json_t *validate_rows_json(const Validation *v)
{
    json_t *rows = json_array();
    array_each (const ValidationRow, row, v->row)
        json_array_append_new(
            rows,
            json_pack("{s:s, s:s, s:f, s:f, s:o, s:i, s:o, s:o, s:o, s:o}", "plan",
                      row->plan, "group", row->group, "predicted_s", row->predicted_s,
                      "measured_s", row->measured_s, "error",
                      json_number(row->predicted_s / row->measured_s - 1), "unmeasured",
                      (int)row->unmeasured, "interval_90_s",
                      row->high_s > 0 ? json_pack("[f, f]", row->low_s, row->high_s)
                                      : json_null(),
                      "predicted_bytes", json_number(row->predicted_bytes),
                      "measured_bytes", json_number(row->measured_bytes), "memory_error",
                      json_number(row->predicted_bytes / row->measured_bytes - 1)));
    return rows;
}

json_t *validate_json(const Validation *v)
{
    json_t *groups = json_array();
    array_each (const ValidationGroup, group, v->group)
        json_array_append_new(
            groups, json_pack("{s:s, s:i, s:s, s:s, s:o, s:o}", "group", group->name,
                              "plans", (int)group->n, "chosen", group->chosen, "fastest",
                              group->fastest, "regret", json_number(group->regret),
                              "spearman", json_number(group->spearman)));
    json_t *answer = statistics_json(&v->agreement, "plans");
    json_object_update_new(
        answer,
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "left_out",
                  json_texts(v->left), "regret_mean", json_number(v->mean_regret),
                  "regret_worst", json_number(v->worst_regret), "within_5_percent",
                  json_number(v->within), "memory_mape", json_number(v->memory.mape),
                  "memory_worst", json_number(v->memory.worst), "rows",
                  validate_rows_json(v), "groups", groups, "version", KILTER_VERSION));
    return answer;
}

bool validate_draw(const Validation *v, const char *folder, GError **error)
{
    g_autoptr(GString) text = g_string_new("# measured_s\tpredicted_s\tlow_s\thigh_s\n");
    array_each (const ValidationRow, row, v->row)
        g_string_append_printf(text, "%.9g\t%.9g\t%.9g\t%.9g\n", row->measured_s,
                               row->predicted_s, row->low_s, row->high_s);
    return figure_draw_text("hap-fig18", text->str, folder, error);
}
