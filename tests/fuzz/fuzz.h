/* What fuzz targets share.
 *
 * A reader has one file, fuzz_READER.c, with fuzz_read(): it reads the bytes, holds what was made, or the refusal, to what the
 * reader promises, and says whether they were accepted. Small files that the reader accepts lie in seeds/READER/, what means
 * something to it in seeds/READER.dict (libFuzzer's format). With these
 *
 *     ctest -R fuzz_READER        replays the seeds and some thousands of damaged ones (replay.c), as does
 *     ctest -R fuzz_READER_long   with 100,000
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

/* Unlike assert, stays in release builds. */
void fuzz_check(bool holds, const char *what);

/* A refusal is an input error in one line of UTF-8 that says something; `file` (NULL: any) is named in it. */
void fuzz_check_refused(const GError *error, const char *file);

/* A path of a file in memory that holds the bytes until fuzz_file_close. Caller frees the path. */
char *fuzz_file_open(const void *bytes, size_t size, int *descriptor);
void fuzz_file_close(int descriptor);

/* Pieces of a dictionary in libFuzzer's format; NULL: the file cannot be read, or a line is not of it. Free with
 * g_ptr_array_unref. */
GPtrArray *fuzz_pieces(const char *file); /* of GString */

/* Damages a text, mostly so that its structure stays: tokens and lines are changed for others of it, or of the dictionary (NULL:
 * numbers and brackets only), bytes erased, set or copied. */
void fuzz_damage(GString *text, const GPtrArray *pieces, GRand *rand);

#endif
