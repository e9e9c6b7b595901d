/* Shared by all fuzz targets.
 *
 * A reader has one file, fuzz_READER.c, with fuzz_read(): it reads the bytes, checks the result, or
 * the refusal, against the reader's promises, and returns whether they were accepted. Small files
 * that the reader accepts are in seeds/READER/, and words that mean something to it in
 * seeds/READER.dict (libFuzzer's format). With these
 *
 *     ctest -R fuzz_READER        replays the seeds and some thousands of damaged ones (replay.c)
 *     ctest -R fuzz_READER_long   the same with 100,000
 *     ./run fuzz READER SECONDS   lets libFuzzer look for inputs that reach more of the reader (libfuzzer.c)
 *
 * A broken property aborts. */
#ifndef KILTER_TESTS_FUZZ_FUZZ_H
#define KILTER_TESTS_FUZZ_FUZZ_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the reader took the bytes. */
bool fuzz_read(const void *bytes, size_t size);

/* Unlike assert, it stays in release builds. */
void fuzz_check(bool holds, const char *what);

/* Checks that a refusal is an input error in one non-empty line of UTF-8 that names `file` (NULL:
 * any). */
void fuzz_check_refused(const GError *error, const char *file);

/* From now on refusals and notes are counted. */
void fuzz_count(void);
/* Notes what was read, so that a reader that reads otherwise is noticed. */
void fuzz_note(const char *format, ...) G_GNUC_PRINTF(1, 2);
/* A line for each kind of refusal with its number, and one for all notes. Caller frees. */
char *fuzz_outcomes(void);

/* The path of a file in memory that holds the bytes until fuzz_file_close. Caller frees the
 * path. */
char *fuzz_file_open(const void *bytes, size_t size, int *descriptor);
void fuzz_file_close(int descriptor);

/* Pieces of a dictionary in libFuzzer's format; NULL if the file cannot be read or a line is not in
 * this format. Free with g_ptr_array_unref. */
GPtrArray *fuzz_pieces(const char *file); /* of GString */

/* Damages a text, mostly keeping its structure: moves numbers a little, replaces tokens and lines
 * by others of the text or of the dictionary (NULL: numbers and brackets only), changes the value
 * of a key, whatever its length, and erases, sets or copies bytes. Where there
 * are bytes of 0 it mostly changes bytes in place. */
void fuzz_damage(GString *text, const GPtrArray *pieces, GRand *rand);

#endif
