/* The contents of a store, experiment by experiment. */
#include "experiments/report/parts.h"

#include <string.h>

#include "data/base/free.h"
#include "data/base/names.h"
#include "data/base/order.h"
#include "data/base/path.h"
#include "data/store/store.h"

static FREE_DEFINE(part_free, ReportPart, own, free_each(own->name, own->paper),
                   experiment_free(own->experiment), claims_free(own->claims));

CLEAR_DEFINE(report_parts_clear, ReportParts, report,
             let_go(report->part, g_ptr_array_unref), let_go(report->store, store_close));

/* --- what there is --- */

static void add_name(uint32_t n_columns, char **value, char **column, void *names)
{
    (void)n_columns, (void)column;
    g_ptr_array_add(names, g_strdup(value[0]));
}

/* Chooses the requested experiments, which must be in the store. */
static bool parts_choose(const char *file, GPtrArray *there, const char *const *names,
                         GError **error)
{
    for (; names && *names; names++)
        if (!g_ptr_array_find_with_equal_func(there, *names, g_str_equal, NULL))
            return refuse(error, "%s holds no results of the experiment %s", file,
                          *names);
    return there->len > 0 || refuse(error, "%s holds no results", file);
}

static ReportPart *part_new(const char *name, GError **error)
{
    g_autofree char *relative = g_strdup_printf("experiments/%s.yaml", name);
    g_autofree char *figure = g_strdup_printf("plots/%s.sql", name);
    g_autofree char *path = path_find(relative);
    g_autofree char *query = path_find(figure);
    ReportPart *part = g_new0(ReportPart, 1);
    part->name = g_strdup(name);
    part->paper = g_strdup("");
    if (!path || !query)
        return part;
    put_block(part->paper, g_strndup(name, strcspn(name, "-")));
    part->experiment = experiment_load(path, &(ExperimentChange){0}, error);
    if (!part->experiment)
        g_clear_pointer(&part, part_free);
    return part;
}

/* Columns of our experiments come with them. */
static bool is_column(const char *name)
{
    const char *at = strchr(name, '@');
    if (!at)
        return false;
    g_autofree char *relative =
        g_strdup_printf("experiments/%.*s.yaml", (int)(at - name), name);
    g_autofree char *path = path_find(relative);
    return path != NULL;
}

static bool report_open(ReportParts *report, const char *file, const char *const *names,
                        GError **error)
{
    g_autoptr(GPtrArray) there = g_ptr_array_new_with_free_func(g_free);
    report->file = file;
    report->part = g_ptr_array_new_with_free_func((GDestroyNotify)part_free);
    report->store = store_open_read(file, error);
    if (!report->store ||
        !store_query(report->store,
                     "SELECT experiment FROM result GROUP BY experiment "
                     "ORDER BY experiment",
                     add_name, there, error) ||
        !parts_choose(file, there, names, error))
        return false;
    for (guint i = 0; i < there->len; i++) {
        if ((names && !g_strv_contains(names, there->pdata[i])) ||
            is_column(there->pdata[i]))
            continue;
        ReportPart *part = part_new(there->pdata[i], error);
        if (!part)
            return false;
        g_ptr_array_add(report->part, part);
    }
    return true;
}

/* The claims by the results of the experiment's columns; those without any say nothing. */
static bool judge_columns(ReportParts *report, ReportPart *part, GError **error)
{
    for (uint32_t i = 0; i < experiment_n_columns(part->experiment); i++) {
        const ExperimentChange change = {.column =
                                             experiment_column(part->experiment, i)};
        g_autoptr(Experiment) column = experiment_load(part->name, &change, error);
        if (!column || !experiment_select(column, report->store, error))
            return false;
        g_autoptr(Claims) judged = claims_judge(part->name, report->store, error);
        if (!judged ||
            !claims_add_column(part->claims, part->experiment, i, judged, error))
            return false;
    }
    return true;
}

/* Judges the claims by the configurations that the experiment asks for now. */
static bool parts_judge(ReportParts *report, ReportPart *part, GError **error)
{
    if (!part->experiment)
        return true;
    if (!experiment_select(part->experiment, report->store, error))
        return false;
    part->claims = claims_judge(part->name, report->store, error);
    if (!part->claims || !judge_columns(report, part, error))
        return false;
    claims_count(part->claims, &part->count);
    claims_count(part->claims, &report->count);
    return true;
}

static bool judge_all(ReportParts *report, GError **error)
{
    for (guint i = 0; i < report->part->len; i++)
        if (!parts_judge(report, report->part->pdata[i], error))
            return false;
    return true;
}

const char *const report_columns[] = {CLAIMS_CALIBRATED, CLAIMS_BEST, NULL};

const char *report_title(const char *paper)
{
    static const struct {
        const char *name, *title;
    } PAPER[] = {{"hap", "HAP (EuroSys'24)"},
                 {"hidup", "HiDup (SoCC'22)"},
                 {"amp", "AMP (NeurIPS'22)"},
                 {"tag", "TAG (TPDS'23)"}};
    const uint32_t i = NAME_PLACE(PAPER, G_N_ELEMENTS(PAPER), name, paper);
    return i < G_N_ELEMENTS(PAPER) ? PAPER[i].title : paper;
}

/* A name escaped for quotes in SQL, since a store may come from a stranger. Caller frees. */
char *report_quoted(const char *name)
{
    g_auto(GStrv) quotes = g_strsplit(name, "'", -1);
    return g_strjoinv("''", quotes);
}

/* Orders experiments so that those of a paper are together, and sweeps come last. */
static ORDER_POINTERS(by_paper, ReportPart, !*x->paper - !*y->paper, BY_NAME(paper),
                      BY_NAME(name));

bool report_parts_open(ReportParts *report, const char *file, const char *const *names,
                       GError **error)
{
    if (!report_open(report, file, names, error) || !judge_all(report, error))
        return false;
    g_ptr_array_sort(report->part, by_paper);
    return true;
}

bool report_parts_reopen(ReportParts *report, GError **error)
{
    store_close(report->store);
    report->store = store_open_read(report->file, error);
    return report->store != NULL;
}
