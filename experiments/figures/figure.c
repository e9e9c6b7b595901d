/* Drawing a figure: its query, its data, gnuplot. */
#include "experiments/figures/figure.h"

#include <errno.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/output.h"
#include "data/store/store.h"
#include "experiments/figures/claims.h"

/* --- stamps inside pictures --- */

/* The stamp inside a picture: the command, the commit and the configurations that it is made from.
 *
 * PNG has them as tEXt chunks after its header, SVG as <metadata>. Viewers pass over both;
 * `exiftool`, `identify -verbose` and text editors show them. */

typedef struct {
    char *command; /* the command that makes the picture */
    char *commit;  /* of the program that computed the results, "" if it is not known */
    char *configuration; /* SHA-256 (hex) of the hashes of all results in the picture */
} Stamp;

OWN_CLEAR_DEFINE(stamp_clear, Stamp, stamp, let_go(stamp->command, g_free),
                 let_go(stamp->commit, g_free), let_go(stamp->configuration, g_free));

/* --- PNG (ISO/IEC 15948) --- */

static const char SIGNATURE[] = "\x89PNG\r\n\x1a\n";

enum { SIGNATURE_BYTES = 8, CHUNK_BYTES = 12, HEADER_BYTES = 13 };

/* CRC-32 of a chunk's type and data (Annex D), bit by bit: stamps are short. */
static guint32 checksum(const char *bytes, gsize length)
{
    static const guint32 polynomial = 0xedb88320;
    guint32 crc = 0xffffffff;
    for (gsize i = 0; i < length; i++) {
        crc ^= (guint8)bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ polynomial : crc >> 1;
    }
    return ~crc;
}

static void add_number(GByteArray *out, guint32 number)
{
    const guint32 big = GUINT32_TO_BE(number);
    g_byte_array_append(out, (const guint8 *)&big, sizeof big);
}

/* tEXt: keyword, zero, text. */
static void add_chunk(GByteArray *out, const char *keyword, const char *text)
{
    g_autoptr(GString) chunk = g_string_new("tEXt");
    g_string_append(chunk, keyword);
    g_string_append_c(chunk, '\0');
    g_string_append(chunk, text);
    add_number(out, (guint32)(chunk->len - strlen("tEXt")));
    g_byte_array_append(out, (const guint8 *)chunk->str, (guint)chunk->len);
    add_number(out, checksum(chunk->str, chunk->len));
}

static char *stamp_png(const Stamp *stamp, const char *bytes, gsize *length)
{
    const guint head = SIGNATURE_BYTES + CHUNK_BYTES + HEADER_BYTES;
    GByteArray *out = g_byte_array_new();
    g_byte_array_append(out, (const guint8 *)bytes, head);
    add_chunk(out, "Software", "kilter");
    add_chunk(out, "Command", stamp->command);
    add_chunk(out, "Commit", stamp->commit);
    add_chunk(out, "Configuration", stamp->configuration);
    g_byte_array_append(out, (const guint8 *)bytes + head, (guint)(*length - head));
    *length = out->len;
    return (char *)g_byte_array_free(out, FALSE);
}

/* --- SVG --- */

static char *stamp_svg(const Stamp *stamp, const char *bytes, const char *end,
                       gsize *length)
{
    g_autofree char *metadata = g_markup_printf_escaped(
        "\n<metadata>\n<kilter xmlns=\"urn:kilter\" command=\"%s\" commit=\"%s\" "
        "configuration=\"%s\"/>\n</metadata>",
        stamp->command, stamp->commit, stamp->configuration);
    GString *out = g_string_new_len(bytes, end - bytes);
    g_string_append(out, metadata);
    g_string_append_len(out, end, (gssize)(*length - (gsize)(end - bytes)));
    *length = out->len;
    return g_string_free(out, FALSE);
}

/* The picture with the stamp; bytes that are neither PNG nor SVG come back unchanged. *length is
 * set to the length of the result, which the caller frees. */
static char *stamp_picture(const Stamp *stamp, const char *bytes, gsize *length)
{
    if (*length > SIGNATURE_BYTES + CHUNK_BYTES + HEADER_BYTES &&
        memcmp(bytes, SIGNATURE, SIGNATURE_BYTES) == 0)
        return stamp_png(stamp, bytes, length);
    const char *svg = g_strstr_len(bytes, (gssize)*length, "<svg");
    const char *end = svg ? memchr(svg, '>', *length - (gsize)(svg - bytes)) : NULL;
    return end ? stamp_svg(stamp, bytes, end + 1, length) : g_memdup2(bytes, *length);
}

/* --- data --- */

typedef struct {
    GString *text;
    uint32_t rows;
} Table;

static void figure_add_cells(GString *text, uint32_t n, char **cell)
{
    for (uint32_t i = 0; i < n; i++)
        g_string_append_printf(text, "%s%s", i ? "\t" : "", cell[i] ? cell[i] : "NaN");
    g_string_append_c(text, '\n');
}

static void figure_add_row(uint32_t n_columns, char **value, char **column, void *data)
{
    Table *table = data;
    const uint32_t n = /* drawn: all but FIGURE_ROWS, which is the last one */
        n_columns - (strcmp(column[n_columns - 1], FIGURE_ROWS) == 0);
    if (table->rows++ == 0) {
        g_string_append(table->text, "# ");
        figure_add_cells(table->text, n, column);
    }
    figure_add_cells(table->text, n, value);
}

/* The data file of a stored figure. Caller frees. */
static char *query_data(const char *name, Store *store, GError **error)
{
    g_autofree char *sql = figure_query(name, ".sql", error);
    g_autoptr(GString) text = g_string_new(NULL);
    Table table = {.text = text};
    if (!sql || !store_query(store, sql, figure_add_row, &table, error))
        return NULL;
    if (table.rows == 0) {
        kilter_fail(error, KILTER_ERROR_FAILED,
                    "the database holds no results for what %s asks now; kilter "
                    "reproduce %s makes them",
                    name, name);
        return NULL;
    }
    return g_strdup(text->str);
}

/* --- drawing --- */

/* The first line of gnuplot's output that is no echo of the script and no pointer into it. */
static char *complaint(const char *output)
{
    g_auto(GStrv) lines = g_strsplit(output ? output : "", "\n", -1);
    for (char **line = lines; *line; line++)
        if (strstr(*line, "line ") && strchr(*line, ':'))
            return g_strdup(g_strstrip(*line));
    return g_strdup(lines[0] && *g_strstrip(lines[0]) ? lines[0] : "no message");
}

/* Names inside the scratch folder. gnuplot takes a name that starts with | or < for a command, so
 * it gets only these names and the script's absolute path. */
static const char DATA[] = "data.tsv", PICTURE[] = "picture", CLAIMS[] = "claims.tsv";

/* Draws the data of the scratch folder into the same folder. The user's start files are not read
 * (-d), since they could change any figure. */
static bool run_gnuplot(const char *script, const char *scratch, const char *terminal,
                        bool bare, GError **error)
{
    g_autofree char *setting = g_strdup_printf(
        "px = %s; bare = %d", strcmp(terminal, "pdfcairo") == 0 ? "1.0 / 96" : "1", bare);
    g_autofree char *whole = g_canonicalize_filename(script, NULL);
    g_autofree char *folder = g_path_get_dirname(whole);
    g_autofree char *output = g_build_filename(scratch, PICTURE, NULL);
    g_autofree char *said = NULL;
    g_autoptr(GError) trouble = NULL;
    g_auto(GStrv) environment =
        g_environ_setenv(g_get_environ(), "GNUPLOT_LIB", folder, TRUE);
    const char *const command[] = {"gnuplot", "-d",    "-e",     setting, "-c", whole,
                                   DATA,      PICTURE, terminal, folder,  NULL};
    int status;
    if (!g_spawn_sync(scratch, (char **)command, environment,
                      G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL, NULL,
                      &said, &status, &trouble))
        return kilter_fail(
            error, KILTER_ERROR_FAILED,
            "cannot start gnuplot, which draws the figures (Debian: gnuplot-nox): %s",
            trouble->message);
    if (status != 0 || !g_file_test(output, G_FILE_TEST_EXISTS)) {
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
                    bool bare, Picture *picture, GError **error)
{
    g_autofree char *script = figure_file(name, ".gp", error);
    g_autofree char *output = g_build_filename(scratch, PICTURE, NULL);
    const bool good =
        script && run_gnuplot(script, scratch, terminal, bare, error) &&
        g_file_get_contents(output, &picture->bytes, &picture->length, error);
    g_unlink(output);
    return good;
}

/* The formats of pictures, the first two of which a folder gets, and gnuplot's terminals. */
static const struct {
    const char *suffix, *terminal;
} FORMAT[] = {{".png", "pngcairo"}, {".svg", "svg"}, {".pdf", "pdfcairo"}};
enum { USUAL_FORMATS = 2 };

/* The format that the name of a file ends with, or -1 for a folder. */
static int figure_format_of(const char *target)
{
    for (int i = 0; i < (int)G_N_ELEMENTS(FORMAT); i++)
        if (g_str_has_suffix(target, FORMAT[i].suffix))
            return i;
    return -1;
}

char *figure_path(const char *name, const char *target, int which)
{
    if (figure_format_of(target) >= 0)
        return which == 0 ? g_strdup(target) : NULL;
    return which < USUAL_FORMATS
               ? g_strconcat(target, "/", name, FORMAT[which].suffix, NULL)
               : NULL;
}

/* Stores the picture; `stamp` is NULL for a picture that is not of stored results. */
static bool keep(const char *output, const Picture *picture, const Stamp *stamp,
                 GError **error)
{
    gsize length = picture->length;
    g_autofree char *stamped = stamp && !g_str_has_suffix(output, ".pdf")
                                   ? stamp_picture(stamp, picture->bytes, &length)
                                   : NULL;
    return output_write(output, stamped ? stamped : picture->bytes, (gssize)length,
                        error);
}

/* The text of a figure's data file, and what is drawn below the figure. */
typedef struct {
    const char *data, *claims;
    const Stamp *stamp; /* NULL for a picture of other things than stored results */
    bool bare;          /* without what is drawn below */
} Drawing;

/* Draws in the scratch folder; the target folder and its files are made only after success. */
static bool draw_in(const char *name, const Drawing *drawing, const char *scratch,
                    const char *target, GError **error)
{
    Picture picture[USUAL_FORMATS] = {0};
    const int only = figure_format_of(target), n = only >= 0 ? 1 : USUAL_FORMATS;
    g_autofree char *data = g_build_filename(scratch, DATA, NULL);
    g_autofree char *claims = g_build_filename(scratch, CLAIMS, NULL);
    bool good = g_file_set_contents(data, drawing->data, -1, error) &&
                g_file_set_contents(claims, drawing->claims, -1, error);
    for (int i = 0; good && i < n; i++)
        good = draw_as(name, scratch, FORMAT[only >= 0 ? only : i].terminal,
                       drawing->bare, &picture[i], error);
    if (good && only < 0 && g_mkdir_with_parents(target, 0777) != 0)
        good = refuse(error, "cannot make the folder %s: %s", target, g_strerror(errno));
    for (int i = 0; i < n; i++) {
        g_autofree char *output = figure_path(name, target, i);
        good = good && keep(output, &picture[i], drawing->stamp, error);
        g_free(picture[i].bytes);
    }
    g_unlink(data);
    g_unlink(claims);
    return good;
}

static bool draw(const char *name, const Drawing *drawing, const char *folder,
                 GError **error)
{
    g_autofree char *scratch = g_dir_make_tmp("kilter-XXXXXX", error);
    if (!scratch)
        return false;
    const bool good = draw_in(name, drawing, scratch, folder, error);
    g_rmdir(scratch);
    return good;
}

/* --- claims --- */

/* Always the first row, so that the file has data. */
static const char NO_CLAIM[] = "-\t0\t0\tNaN\tNaN\t-\t-\t-\n";

/* One row: id, the paper's value, what is allowed, our value, our distance in that, whether it
 * holds, text, numbers in words. */
static void add_claim(GString *text, const Claim *claim)
{
    g_autofree char *theirs = claims_value_text(claim, claim->value),
                    *ours = isnan(claim->ours) ? g_strdup("no result")
                                               : claims_value_text(claim, claim->ours);
    g_autofree char *words = claims_words(claim);
    const double distance =
        claim->allowed > 0 ? (claim->ours - claim->value) / claim->allowed : NAN;
    g_string_append_printf(text, "%s\t%.9g\t%.9g\t", claim->claim, claim->value,
                           claim->allowed);
    g_string_append_printf(text, isnan(claim->ours) ? "NaN\t" : "%.9g\t", claim->ours);
    g_string_append_printf(text, isnan(distance) ? "NaN\t" : "%.9g\t", distance);
    g_string_append_printf(text, "%s\t%s\t%s: paper %s", claims_verdict(claim), words,
                           claim->where, theirs);
    if (claim->allowed > 0)
        g_string_append_printf(text, " \u00b1 %.4g", claim->allowed);
    g_string_append_printf(text, ", here %s\n", ours);
}

static char *claims_text(const Claims *claims)
{
    g_autoptr(GString) text = g_string_new(NO_CLAIM);
    for (uint32_t i = 0; claims && i < claims->n; i++)
        add_claim(text, &claims->claim[i]);
    return g_strdup(text->str);
}

bool figure_draw_text(const char *name, const char *text, const char *folder,
                      GError **error)
{
    return draw(name, &(Drawing){.data = text, .claims = NO_CLAIM}, folder, error);
}

/* --- where it is from --- */

static void keep_text(uint32_t n_columns, char **value, char **column, void *text)
{
    (void)n_columns, (void)column;
    *(char **)text = g_strdup(value[0] ? value[0] : "");
}

/* The stamp of the results that queries see now. */
static bool stamp_of(const char *name, Store *store, Stamp *stamp, GError **error)
{
    g_autofree char *hashes = NULL;
    if (!store_query(store,
                     "SELECT group_concat(hash, '') FROM (SELECT hash FROM result ORDER "
                     "BY hash)",
                     keep_text, &hashes, error) ||
        !store_query(store,
                     "SELECT group_concat(revision, ' ') FROM (SELECT DISTINCT revision "
                     "FROM run WHERE id IN (SELECT run FROM result) AND revision <> '' "
                     "ORDER BY revision)",
                     keep_text, &stamp->commit, error))
        return false;
    stamp->command = g_strdup_printf("kilter reproduce %s", name);
    stamp->configuration = g_compute_checksum_for_string(G_CHECKSUM_SHA256, hashes, -1);
    return true;
}

bool figure_draw(const char *name, Store *store, const Claims *claims, bool bare,
                 const char *folder, GError **error)
{
    g_auto(Stamp) stamp = {0};
    g_autofree char *text = query_data(name, store, error);
    g_autofree char *below = claims_text(claims);
    const Drawing drawing = {text, below, &stamp, bare};
    return text && stamp_of(name, store, &stamp, error) &&
           draw(name, &drawing, folder, error);
}
