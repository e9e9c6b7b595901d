/* Runs a fuzz target on files and on damaged copies of them, in any build:
 *
 *     replay_READER [--mutants N] [--seed S] [--dict FILE] [--keep FILE] [--learnt] FILE|FOLDER...
 *
 * Files whose names begin with "bad" must be refused, all others accepted; with --learnt either.
 * Some of the damaged files must be accepted and some refused, or else the target does not reach
 * its reader. The current input can be kept in a file, to find the one that ends the program.
 * Prints the counts; exits with 1 if a condition does not hold. */
#include <stdio.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

typedef struct {
    GPtrArray *text; /* GString */
    gboolean right, learnt;
} Seeds;

static void free_text(gpointer text)
{
    g_string_free(text, TRUE);
}

static void add_file(Seeds *seeds, const char *path)
{
    gchar *bytes = NULL;
    gsize length;
    g_autofree char *name = g_path_get_basename(path);
    if (!g_file_get_contents(path, &bytes, &length, NULL)) {
        fprintf(stderr, "%s: cannot be read\n", path);
        seeds->right = FALSE;
        return;
    }
    if (fuzz_read(bytes, length) == g_str_has_prefix(name, "bad") && !seeds->learnt) {
        fprintf(stderr, "%s: is %s\n", path,
                g_str_has_prefix(name, "bad") ? "accepted" : "refused");
        seeds->right = FALSE;
    }
    g_ptr_array_add(seeds->text, g_string_new_len(bytes, (gssize)length));
    g_free(bytes);
}

static int by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add(Seeds *seeds, const char *path)
{
    g_autoptr(GDir) folder = g_dir_open(path, 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *name;
    if (!folder) {
        add_file(seeds, path);
        return;
    }
    while ((name = g_dir_read_name(folder)))
        g_ptr_array_add(names, g_build_filename(path, name, NULL));
    g_ptr_array_sort(names, by_name);
    for (guint i = 0; i < names->len; i++)
        add(seeds, names->pdata[i]);
}

/* g_file_set_contents would wait for the disk. */
static void keep_text(const char *file, const GString *text)
{
    FILE *to = fopen(file, "wbe");
    if (to) {
        fwrite(text->str, 1, text->len, to);
        fclose(to);
    }
}

/* The number of accepted seeds among `n` damaged ones. */
static gint64 replay(const Seeds *seeds, const GPtrArray *pieces, gint64 n, GRand *rand,
                     const char *keep)
{
    enum { DAMAGES = 4 };
    gint64 accepted = 0;
    for (gint64 i = 0; i < n; i++) {
        const GString *seed = seeds->text->pdata[i % seeds->text->len];
        g_autoptr(GString) text = g_string_new_len(seed->str, (gssize)seed->len);
        for (gint32 d = g_rand_int_range(rand, 1, DAMAGES + 1); d > 0; d--)
            fuzz_damage(text, pieces, rand);
        if (keep)
            keep_text(keep, text);
        accepted += fuzz_read(text->str, text->len);
    }
    return accepted;
}

/* Whether what happened is what the file says. With KILTER_RECORD set it is written instead. */
static bool same_outcomes(const char *file)
{
    g_autofree char *now = fuzz_outcomes(), *then = NULL;
    if (g_getenv("KILTER_RECORD"))
        return g_file_set_contents(file, now, -1, NULL);
    if (!g_file_get_contents(file, &then, NULL, NULL))
        then = g_strdup("");
    g_auto(GStrv) old = g_strsplit(then, "\n", -1), new = g_strsplit(now, "\n", -1);
    for (char **line = old; *line; line++)
        if (!g_strv_contains((const char *const *)new, *line))
            fprintf(stderr, "%s: no longer %s\n", file, *line);
    for (char **line = new; *line; line++)
        if (!g_strv_contains((const char *const *)old, *line))
            fprintf(stderr, "%s: now %s\n", file, *line);
    return strcmp(now, then) == 0;
}

int main(int argc, char **argv)
{
    gint64 mutants = 0;
    int seed = 1;
    Seeds seeds = {.text = g_ptr_array_new_with_free_func(free_text), .right = TRUE};
    g_autofree char *dictionary = NULL, *keep = NULL, *outcomes = NULL;
    const GOptionEntry entries[] = {
        {"mutants", 0, 0, G_OPTION_ARG_INT64, &mutants, "Damaged copies", "N"},
        {"seed", 0, 0, G_OPTION_ARG_INT, &seed, "Seed of the damage", "S"},
        {"dict", 0, 0, G_OPTION_ARG_FILENAME, &dictionary, "Pieces", "FILE"},
        {"keep", 0, 0, G_OPTION_ARG_FILENAME, &keep, "The last input", "FILE"},
        {"outcomes", 0, 0, G_OPTION_ARG_FILENAME, &outcomes, "What happens", "FILE"},
        {"learnt", 0, 0, G_OPTION_ARG_NONE, &seeds.learnt, "Files may be refused", NULL},
        G_OPTION_ENTRY_NULL};
    g_autoptr(GOptionContext) context = g_option_context_new("FILE|FOLDER...");
    g_option_context_add_main_entries(context, entries, NULL);
    g_unsetenv("KILTER_PATH");
    g_autoptr(GPtrArray) pieces = NULL;
    if (!g_option_context_parse(context, &argc, &argv, NULL) || argc < 2 ||
        (dictionary && !(pieces = fuzz_pieces(dictionary)))) {
        fprintf(stderr, "expected files or folders, and a dictionary that can be read\n");
        return 2;
    }
    if (outcomes)
        fuzz_count();
    for (int i = 1; i < argc; i++)
        add(&seeds, argv[i]);
    g_autoptr(GRand) rand = g_rand_new_with_seed((guint32)seed);
    const gint64 accepted =
        seeds.text->len ? replay(&seeds, pieces, mutants, rand, keep) : 0;
    const bool reaches = mutants < 100 || (accepted > 0 && accepted < mutants);
    printf("%u files, %" G_GINT64_FORMAT " damaged, of which %" G_GINT64_FORMAT
           " are accepted\n",
           seeds.text->len, mutants, accepted);
    g_ptr_array_unref(seeds.text);
    return seeds.right && reaches && (!outcomes || same_outcomes(outcomes)) ? 0 : 1;
}
