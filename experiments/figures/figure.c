/* Drawing a figure: its query, its data, gnuplot. */
#include "experiments/figures/figure.h"

#include <errno.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>

#include "experiments/figures/stamp.h"

/* Scripts without a query are parts of others, or draw something else than the store. */
char **figure_list(void)
{
    g_auto(GStrv) scripts = path_list("plots", ".gp");
    g_autoptr(GStrvBuilder) list = g_strv_builder_new();
    for (char **name = scripts; *name; name++) {
        g_autofree char *relative = g_strdup_printf("plots/%s.sql", *name);
        g_autofree char *query = path_find(relative);
        if (query)
            g_strv_builder_add(list, *name);
    }
    return g_strv_builder_end(list);
}

static char *find(const char *name, const char *suffix, GError **error)
{
    g_autofree char *relative = g_strdup_printf("plots/%s%s", name, suffix);
    char *path = strchr(name, '/') ? NULL : path_find(relative);
    if (path)
        return path;
    g_auto(GStrv) known = figure_list();
    uint32_t index;
    if (names_find("figure", name, (const char *const *)known, &index, error))
        kilter_fail(error, KILTER_ERROR_INPUT, "figure '%s' lacks %s", name, relative);
    return NULL;
}

static bool append_file(GString *text, const char *path, GError **error)
{
    g_autofree char *part = text_read(path, error);
    if (part)
        g_string_append(text, part);
    return part != NULL;
}

/* Lines `.read FILE` stand for the text of plots/FILE, which queries share. */
static char *with_parts(const char *path, const char *query, GError **error)
{
    static const char READ[] = ".read ";
    g_auto(GStrv) lines = g_strsplit(query, "\n", -1);
    g_autoptr(GString) text = g_string_new(NULL);
    for (char **line = lines; *line; line++) {
        if (!g_str_has_prefix(*line, READ)) {
            g_string_append_printf(text, "%s%s", *line, line[1] ? "\n" : "");
            continue;
        }
        const char *name = *line + strlen(READ);
        g_autofree char *relative = g_strdup_printf("plots/%s", name);
        g_autofree char *part = strstr(name, "..") ? NULL : path_find(relative);
        if (!part) {
            kilter_fail(error, KILTER_ERROR_INPUT,
                        "%s:%u: expected a file of plots/, got '%s'", path,
                        (uint32_t)(line - lines) + 1, name);
            return NULL;
        }
        if (!append_file(text, part, error))
            return NULL;
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

char *figure_query(const char *name, const char *suffix, GError **error)
{
    g_autofree char *path = find(name, suffix, error);
    g_autofree char *query = path ? text_read(path, error) : NULL;
    return query ? with_parts(path, query, error) : NULL;
}

/* --- data --- */

typedef struct {
    GString *text;
    uint32_t rows;
} Table;

static void add_cells(GString *text, uint32_t n, char **cell)
{
    for (uint32_t i = 0; i < n; i++)
        g_string_append_printf(text, "%s%s", i ? "\t" : "", cell[i] ? cell[i] : "NaN");
    g_string_append_c(text, '\n');
}

static void add_row(uint32_t n_columns, char **value, char **column, void *data)
{
    Table *table = data;
    if (table->rows++ == 0) {
        g_string_append(table->text, "# ");
        add_cells(table->text, n_columns, column);
    }
    add_cells(table->text, n_columns, value);
}

/* The data file of a stored figure. Caller frees. */
static char *query_data(const char *name, Store *store, GError **error)
{
    g_autofree char *sql = figure_query(name, ".sql", error);
    if (!sql)
        return NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    Table table = {.text = text};
    if (!store_query(store, sql, add_row, &table, error))
        return NULL;
    if (table.rows == 0) {
        kilter_fail(
            error, KILTER_ERROR_FAILED,
            "the database holds no results for %s; kilter reproduce %s makes them", name,
            name);
        return NULL;
    }
    return g_strdup(text->str);
}

/* --- drawing --- */

/* First line of what gnuplot said that is not an echo of the script or its pointer. */
static char *complaint(const char *output)
{
    g_auto(GStrv) lines = g_strsplit(output ? output : "", "\n", -1);
    for (char **line = lines; *line; line++)
        if (strstr(*line, "line ") && strchr(*line, ':'))
            return g_strdup(g_strstrip(*line));
    return g_strdup(lines[0] && *g_strstrip(lines[0]) ? lines[0] : "no message");
}

/* Names inside of the scratch folder. gnuplot takes a name that starts with | or < for a command, so it is told no other
 * ones than these and the script's absolute path. */
static const char DATA[] = "data.tsv", PICTURE[] = "picture";

/* Draws the scratch folder's data there. The user's start files are not read (-d): they could change any figure. */
static bool run_gnuplot(const char *script, const char *scratch, const char *terminal,
                        GError **error)
{
    g_autofree char *whole = g_canonicalize_filename(script, NULL);
    g_autofree char *folder = g_path_get_dirname(whole);
    g_autofree char *output = g_build_filename(scratch, PICTURE, NULL);
    g_autofree char *said = NULL;
    g_autoptr(GError) trouble = NULL;
    g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new(
        G_SUBPROCESS_FLAGS_STDOUT_SILENCE | G_SUBPROCESS_FLAGS_STDERR_PIPE);
    g_subprocess_launcher_set_cwd(launcher, scratch);
    g_autoptr(GSubprocess) gnuplot =
        g_subprocess_launcher_spawn(launcher, &trouble, "gnuplot", "-d", "-c", whole,
                                    DATA, PICTURE, terminal, folder, NULL);
    if (!gnuplot)
        return kilter_fail(
            error, KILTER_ERROR_FAILED,
            "cannot start gnuplot, which draws the figures (Debian: gnuplot-nox): %s",
            trouble->message);
    if (!g_subprocess_communicate_utf8(gnuplot, NULL, NULL, NULL, &said, &trouble))
        return kilter_fail(error, KILTER_ERROR_FAILED, "gnuplot: %s", trouble->message);
    if (!g_subprocess_get_successful(gnuplot) ||
        !g_file_test(output, G_FILE_TEST_EXISTS)) {
        g_autofree char *first = complaint(said);
        return kilter_fail(error, KILTER_ERROR_FAILED, "gnuplot failed on %s: %s", script,
                           first);
    }
    return true;
}

typedef struct {
    char *bytes;
    gsize length;
} Picture;

static bool draw_as(const char *name, const char *scratch, const char *terminal,
                    Picture *picture, GError **error)
{
    g_autofree char *script = find(name, ".gp", error);
    g_autofree char *output = g_build_filename(scratch, PICTURE, NULL);
    const bool good =
        script && run_gnuplot(script, scratch, terminal, error) &&
        g_file_get_contents(output, &picture->bytes, &picture->length, error);
    g_unlink(output);
    return good;
}

/* `stamp`: NULL for a picture of other things than stored results. */
static bool keep(const char *name, const char *suffix, const Picture *picture,
                 const Stamp *stamp, const char *folder, GError **error)
{
    g_autofree char *output = g_strdup_printf("%s/%s.%s", folder, name, suffix);
    gsize length = picture->length;
    g_autofree char *stamped =
        stamp ? stamp_picture(stamp, picture->bytes, &length) : NULL;
    return output_write(output, stamped ? stamped : picture->bytes, (gssize)length,
                        error);
}

/* Draws in the scratch folder; only what is drawn makes the folder and the files in it. */
static bool draw_in(const char *name, const char *text, const Stamp *stamp,
                    const char *scratch, const char *folder, GError **error)
{
    Picture png = {0}, svg = {0};
    g_autofree char *data = g_build_filename(scratch, DATA, NULL);
    bool good = g_file_set_contents(data, text, -1, error) &&
                draw_as(name, scratch, "pngcairo", &png, error) &&
                draw_as(name, scratch, "svg", &svg, error);
    if (good && g_mkdir_with_parents(folder, 0777) != 0)
        good = kilter_fail(error, KILTER_ERROR_INPUT, "cannot make the folder %s: %s",
                           folder, g_strerror(errno));
    good = good && keep(name, "png", &png, stamp, folder, error) &&
           keep(name, "svg", &svg, stamp, folder, error);
    g_free(png.bytes);
    g_free(svg.bytes);
    g_unlink(data);
    return good;
}

static bool draw_stamped(const char *name, const char *text, const Stamp *stamp,
                         const char *folder, GError **error)
{
    g_autofree char *scratch = g_dir_make_tmp("kilter-XXXXXX", error);
    if (!scratch)
        return false;
    const bool good = draw_in(name, text, stamp, scratch, folder, error);
    g_rmdir(scratch);
    return good;
}

bool figure_draw_text(const char *name, const char *text, const char *folder,
                      GError **error)
{
    return draw_stamped(name, text, NULL, folder, error);
}

/* --- where it is from --- */

static void add_hash(uint32_t n_columns, char **value, char **column, void *checksum)
{
    (void)n_columns, (void)column;
    g_checksum_update(checksum, (const guchar *)value[0], -1);
}

static void add_word(uint32_t n_columns, char **value, char **column, void *text)
{
    (void)n_columns, (void)column;
    g_string_append_printf(text, "%s%s", ((GString *)text)->len ? " " : "", value[0]);
}

/* Of the answers that queries see now. */
static bool stamp_of(const char *name, Store *store, Stamp *stamp, GError **error)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    g_autoptr(GString) commits = g_string_new("");
    if (!store_query(store, "SELECT hash FROM result ORDER BY hash", add_hash, sum,
                     error) ||
        !store_query(store,
                     "SELECT DISTINCT revision FROM run WHERE id IN (SELECT run FROM "
                     "result) AND revision <> '' ORDER BY revision",
                     add_word, commits, error))
        return false;
    *stamp = (Stamp){.command = g_strdup_printf("kilter reproduce %s", name),
                     .commit = g_strdup(commits->str),
                     .configuration = g_strdup(g_checksum_get_string(sum))};
    return true;
}

bool figure_draw(const char *name, Store *store, const char *folder, GError **error)
{
    g_auto(Stamp) stamp = {0};
    g_autofree char *text = query_data(name, store, error);
    return text && stamp_of(name, store, &stamp, error) &&
           draw_stamped(name, text, &stamp, folder, error);
}
