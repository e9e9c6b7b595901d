/* Remarks on a paper as a whole: where it contradicts itself, and what is not covered. */
#include "experiments/report/summary.h"

#include <string.h>

#include "data/base/csv.h"
#include "data/base/json.h"
#include "data/base/path.h"

/* A list of the answer, from the rows of a CSV file that are about the paper. */
static const struct {
    const char *list, *file,
        *key[4 + 1]; /* the file's columns, the first of which is the paper */
} REMARKS[] = {
    {"contradictions",
     "data/paper/contradictions.csv",
     {"paper", "place", "what", "shown", NULL}},
    {"uncovered", "data/paper/uncovered.csv", {"paper", "place", "what", "why", NULL}},
};

typedef struct {
    const char *const *key;
    const char *paper;
    json_t *list;
} RemarkList;

static bool add_remark(const Csv *csv, void *data, GError **error)
{
    const RemarkList *list = data;
    (void)error;
    if (strcmp(csv_text(csv, list->key[0]), list->paper) == 0)
        json_array_append_new(list->list,
                              json_pack("{s:o, s:o, s:o}", "place",
                                        json_text(csv_text(csv, list->key[1])), "what",
                                        json_text(csv_text(csv, list->key[2])), "why",
                                        json_text(csv_text(csv, list->key[3]))));
    return true;
}

bool report_remarks(json_t *row, const char *paper, GError **error)
{
    static const char *const others[] = {NULL};
    for (uint32_t i = 0; i < G_N_ELEMENTS(REMARKS); i++) {
        g_autofree char *path = path_find(REMARKS[i].file);
        RemarkList list = {REMARKS[i].key, paper, json_array()};
        json_object_set_new(row, REMARKS[i].list, list.list);
        g_autoptr(Csv) csv = path ? csv_read(path, error) : NULL;
        if (path && (!csv || !csv_expect(csv, list.key, others, error) ||
                     !csv_each(csv, add_remark, &list, error)))
            return false;
    }
    return true;
}
