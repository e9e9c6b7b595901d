/* The stamp inside a picture: the command, the commit and the configurations that it is made from.
 *
 * PNG has them as tEXt chunks after its header, SVG as <metadata>. Viewers pass over both;
 * `exiftool`, `identify -verbose` and text editors show them. */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct {
    char *command; /* the command that makes the picture */
    char *commit;  /* of the program that computed the results, "" if it is not known */
    char *configuration; /* SHA-256 (hex) of the hashes of all results in the picture */
} Stamp;

void stamp_clear(Stamp *stamp);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Stamp, stamp_clear)

/* The picture with the stamp; bytes that are neither PNG nor SVG come back unchanged. *length is
 * set to the length of the result, which the caller frees. */
char *stamp_picture(const Stamp *stamp, const char *bytes, gsize *length);
