/* Options that users set as KEY=VALUE. Each struct of options has one table, a macro with one row
 * per option, which yields the struct's members, their defaults, reader and writer. The help is data: a line
 * "  KEY  HELP" of data/commands/keys.txt for each key.
 *
 *     #define LAW_WORDS(X) X(LAW_NORMAL, "normal") X(LAW_GAMMA, "gamma")
 *     OPTION_WORDS(LAW_WORDS)
 *     #define NOISE_OPTION_TABLE(X)                    \
 *         X(CHOICE(LAW_WORDS), law, "law", "normal")    \
 *         X(NUMBER(0, 10), jitter, "jitter", "0")
 *
 *     typedef struct {
 *         NOISE_OPTION_TABLE(OPTION_MEMBER)
 *     } NoiseOptions;
 *
 *     static const Option row[] = {
 *     #define X(...) OPTION_ROW(NoiseOptions, __VA_ARGS__)
 *         NOISE_OPTION_TABLE(X)
 *     #undef X
 *     };
 *     const OptionTable noise_options = {row, G_N_ELEMENTS(row)};
 *
 *     type                  member          as text
 *     CHOICE(WORDS)         uint32_t        a word of the list, of which OPTION_WORDS makes the enum; kept: its index
 *     COUNT(least, most)    uint32_t        an integer
 *     NUMBER(least, most)   double          a number
 *     BYTES                 uint64_t        "25 MiB", or 0
 *     TIME                  double, s       "10 ms", or 0
 *     TEXT                  const char *    anything; kept interned
 *     DATA(reader)          const char *    a path of a file, or a bundled one's; as PARSED
 *     PARSED(reader)        const char *    any text that the OptionReader accepts
 *     BUNDLED(path, reader) const char *    the same, and up to a `/` it names a bundled file: "runtimes/%s.yaml"
 *     FILES(WORDS, paths, reader)           a CHOICE of bundled files, "|tag/network.txt|", or none
 *
 * Whatever a planner or the simulation reads by the value of an option has one of the last types or
 * DATA: so that it is known, before anything is planned, on which files an answer depends, and that
 * they can be read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/base/free.h"

typedef enum {
    OPTION_CHOICE,
    OPTION_COUNT,
    OPTION_NUMBER,
    OPTION_BYTES,
    OPTION_TIME,
    OPTION_TEXT,
    OPTION_DATA
} OptionType;

/* Reads the text of an option. *kept: in, the previous value, NULL at first; out, the new value,
 * interned. NULL stands for the default. KILTER_ERROR_INPUT says what was expected. */
typedef bool OptionReader(const char *text, const char **kept, GError **error);

typedef struct {
    OptionType type;
    double least, most;
    OptionReader *read; /* NULL: any text */
    const char *files;  /* as BUNDLED and FILES have them, or NULL */
    const char *words;  /* of a choice, "|own|even" */
    size_t offset;      /* of the member in the struct */
    const char *key, *value;
} Option; /* `value` is the default */

typedef struct {
    const Option *row;
    uint32_t n;
} OptionTable;

#define OPTION_MEMBER(type, member, key, value)   OPTION_MEMBER_##type member;
#define OPTION_MEMBER_CHOICE(words)               uint32_t
#define OPTION_MEMBER_COUNT(least, most)          uint32_t
#define OPTION_MEMBER_NUMBER(least, most)         double
#define OPTION_MEMBER_BYTES                       uint64_t
#define OPTION_MEMBER_TIME                        double
#define OPTION_MEMBER_TEXT                        const char *
#define OPTION_MEMBER_DATA(reader)                const char *
#define OPTION_MEMBER_PARSED(reader)              const char *
#define OPTION_MEMBER_BUNDLED(path, reader)       const char *
#define OPTION_MEMBER_FILES(words, paths, reader) uint32_t

#define OPTION_ROW(Struct, type, member, key, value) \
    {OPTION_ROW_##type, offsetof(Struct, member), key, value},
#define OPTION_ROW_CHOICE(words)         OPTION_CHOICE, 0, 0, NULL, NULL, words(OPTION_WORD)
#define OPTION_ROW_COUNT(least, most)    OPTION_COUNT, least, most, NULL, NULL, NULL
#define OPTION_ROW_NUMBER(least, most)   OPTION_NUMBER, least, most, NULL, NULL, NULL
#define OPTION_ROW_BYTES                 OPTION_BYTES, 0, 0, NULL, NULL, NULL
#define OPTION_ROW_TIME                  OPTION_TIME, 0, 0, NULL, NULL, NULL
#define OPTION_ROW_TEXT                  OPTION_TEXT, 0, 0, NULL, NULL, NULL
#define OPTION_ROW_DATA(reader)          OPTION_DATA, 0, 0, reader, NULL, NULL
#define OPTION_ROW_PARSED(reader)        OPTION_TEXT, 0, 0, reader, NULL, NULL
#define OPTION_ROW_BUNDLED(path, reader) OPTION_TEXT, 0, 0, reader, path, NULL
#define OPTION_ROW_FILES(words, paths, reader) \
    OPTION_CHOICE, 0, 0, reader, paths, words(OPTION_WORD)
#define OPTION_WORD(id, word) "|" word
#define OPTION_ID(id, word)   id,
#define OPTION_WORDS(words)   enum { words(OPTION_ID) };

/* A rule between options: where `wrong` holds, `option` needs something else, or excludes it.
 * `because` says why, or is NULL. */
typedef struct {
    bool wrong;
    const char *option, *expected, *because;
} OptionRule;
/* Refuses with the first rule that is wrong: "PREFIXoptionSUFFIX: expected EXPECTED, BECAUSE". */
bool options_obey(const OptionRule *rule, uint32_t n, const char *prefix,
                  const char *suffix, GError **error);

/* Sets every member of a table's struct to its default. */
void options_init(const OptionTable *table, void *options);

/* The option with this key, or NULL. */
const Option *options_find(const OptionTable *table, const char *key);

/* Sets a member from its text. KILTER_ERROR_INPUT names the option and what was expected. */
bool option_set(const Option *option, void *options, const char *value, GError **error);

/* The value as text that option_set takes. Caller frees. */
char *option_get(const Option *option, const void *options);

/* The bundled file, by the search path, that the value stands for, or NULL. Caller frees. */
char *option_file(const Option *option, const void *options);

bool option_is_default(const Option *option, const void *options);

/* Appends the keys, separated by ", ". */
void options_keys(const OptionTable *table, GString *text);

/* The option's help, or why it cannot be read: a user's folder may lack the file. Caller frees. */
char *option_help(const Option *option);
/* Appends a line per option: key, default, help. */
void options_help(const OptionTable *table, GString *text);
