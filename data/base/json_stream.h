/* JSON as tools write it, read as a stream.
 *
 * Values that JSON does not have are read as what they mean, or as null, and counted: `inf`, `NaN`,
 * `1.#IND`, `.5`, words such as None, escapes such as \x, control characters in strings, missing
 * commas. An item of the file's list that is damaged is passed over: reading goes on at the next
 * `{` that follows a comma or an item's end. A file that ends early gives all that is whole before
 * its end. */
#pragma once

#include <stdint.h>

#include "data/base/stream.h"

/* Called as values come; false, of the first, ends the reading. Texts are in UTF-8 as far as the
 * file is, without their escapes, and cut after JSON_TEXT_BYTES. `lost`: all that is open deeper
 * than `depth` was damaged, and does not end. */
typedef struct {
    bool (*begin)(void *context, bool array);
    void (*end)(void *context);
    void (*key)(void *context, const char *text, size_t length);
    void (*text)(void *context, const char *text, size_t length);
    void (*number)(void *context, double value);
    void (*lost)(void *context, uint32_t depth);
} JsonEvents;

enum { JSON_MAX_DEPTH = 64, JSON_TEXT_BYTES = 1 << 16 };

/* How often there was such a fault; line and column, from 1, of the first, and what was there. */
typedef struct {
    uint64_t n, line, column;
    char what[48];
} JsonFault;

typedef struct {
    JsonFault odd;  /* values that are no JSON */
    JsonFault lost; /* items that were passed over */
    /* at most one: the file does not go on from here, or makes no sense any more */
    JsonFault cut;
} JsonFaults;

/* The list whose items are passed over alone is the file's array, or the arrays in its object.
 * False if `begin` said so. The rest is in *faults. */
bool json_stream(Stream *stream, const JsonEvents *events, void *context,
                 JsonFaults *faults);

/* Lines for the user about what was odd, lost and cut (`item`: "event"), appended to a list that
 * owns its texts. */
void json_faults_say(const JsonFaults *faults, const char *item, GPtrArray *lines);
