/* kilter doctor: what is installed, where data come from, and how fast this machine plans. */
#include <unistd.h>

#include "data/base/json.h"
#include "data/base/path.h"
#include "data/base/version.h"
#include "data/formats/format.h"
#include "exec/exec.h"
#include "experiments/answers.h"
#include "experiments/cli/command.h"

/* A part that works without others, and the package of Debian that brings it. */
static void doctor_add(json_t *parts, json_t *missing, const char *name, bool found,
                       const char *purpose, const char *package)
{
    json_array_append_new(parts,
                          json_pack("{s:s, s:b, s:s, s:s?}", "name", name, "found",
                                    (int)found, "purpose", purpose, "install", package));
    bool known = found || !package;
    for (size_t i = 0; !known && i < json_array_size(missing); i++)
        known = strcmp(json_string_value(json_array_get(missing, i)), package) == 0;
    if (!known)
        json_array_append_new(missing, json_string(package));
}

static bool doctor_has(const char *program)
{
    g_autofree char *path = g_find_program_in_path(program);
    return path != NULL;
}

static json_t *doctor_parts(json_t *missing)
{
    json_t *parts = json_array();
    doctor_add(parts, missing, "gnuplot", doctor_has("gnuplot"), "draws figures",
               "gnuplot-nox");
    doctor_add(parts, missing, "sqlite3", doctor_has("sqlite3"),
               "queries results by hand", "sqlite3");
    doctor_add(parts, missing, "mpi", exec_mpi_built() && doctor_has("mpirun"),
               "runs plans on ranks: kilter exec, profile",
               "libopenmpi-dev openmpi-bin libopenblas-dev");
    doctor_add(parts, missing, "cuda", exec_cuda_built(),
               "runs plans on GPUs; a build with nvcc and NCCL has it", NULL);
    for (FileFormat f = 0; f < FORMATS; f++) {
        const FormatRow *row = format_row(f);
        if (row->library && *row->library)
            doctor_add(parts, missing, row->name, row->built, row->what, row->library);
    }
    return parts;
}

/* The folders in which names are looked up, in this order. */
static json_t *doctor_folders(void)
{
    json_t *list = json_array();
    g_auto(GStrv) folder = path_folders();
    for (char **path = folder; *path; path++)
        json_array_append_new(list,
                              json_pack("{s:s, s:b}", "path", *path, "exists",
                                        (int)g_file_test(*path, G_FILE_TEST_IS_DIR)));
    return list;
}

json_t *command_environment(void)
{
    g_autofree char *file = path_bundled("commands/environment.json", NULL);
    json_t *list = file ? json_read_file(file, "list", NULL) : NULL;
    elements_each (row, list) {
        const char *value = g_getenv(json_word(row, "name"));
        json_object_set_new(row, "value", value ? json_text(value) : json_null());
    }
    return list ? list : json_array();
}

/* Seconds that a search of moderate length takes. */
static bool doctor_speed(const CommandOptions *options, double *plan_s, GError **error)
{
    char *question[] = {(char *)"plan", (char *)"vgg19", (char *)"hap-16", NULL};
    const CommandPlanning how = {.planner = (char *)"hap"};
    g_auto(Evaluation) evaluation = {0};
    const gint64 start = g_get_monotonic_time();
    if (!command_evaluate(&how, 3, question, NULL, options, &evaluation, error))
        return false;
    *plan_s = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    return true;
}

COMMAND_PLAIN(doctor)
{
    double plan_s = 0;
    if (!doctor_speed(options, &plan_s, error))
        return false;
    json_t *missing = json_array(), *parts = doctor_parts(missing);
    const double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    command_report(options,
                   json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:i, s:f, s:f}", "version",
                             KILTER_VERSION, "revision", command_revision(), "parts",
                             parts, "missing", missing, "folders", doctor_folders(),
                             "environment", command_environment(), "processors",
                             (int)g_get_num_processors(), "memory_bytes", bytes, "plan_s",
                             plan_s),
                   ANSWER_DOCTOR, NULL);
    return true;
}
