/* Errors: one GError domain; the code is the process's exit status. */
#pragma once

#include <glib.h>
#include <stdbool.h>

#define KILTER_ERROR (kilter_error_quark())

typedef enum {
    KILTER_ERROR_FAILED = 1, /* the work failed */
    KILTER_ERROR_INPUT =
        2, /* bad usage or bad input: names file, line, key, what was expected */
    KILTER_ERROR_INFEASIBLE =
        3, /* no feasible plan: names the device and the bytes missing */
} KilterError;

GQuark kilter_error_quark(void);

/* Sets *error in our domain; always returns false, so `return kilter_fail(...)` reads well. */
bool kilter_fail(GError **error, KilterError code, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
/* The same for bad usage or bad input, by far the most frequent reason. */
bool refuse(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* The same where a pointer is returned: NULL. */
void *refused(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Puts a text before the message of *error (NULL, or unset: nothing); returns false, too. As the
 * message, it becomes one line of valid UTF-8. */
bool kilter_prefix(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);
