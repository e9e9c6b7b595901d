/* Rows of data/families.yaml, and the facts that they read from a file (private to data). */
#pragma once

#include "data/formats/huggingface/expression.h"
#include "data/models/architecture.h"

enum { FAMILY_MOST_FACTS = 128 };

typedef struct {
    const char *file;
    json_t *root;       /* the text model's object */
    json_t *outer;      /* the file's */
    const char *nested; /* the key that holds the text's model, or NULL */
    GError **error;
    bool failed;
} Config;

/* Sets the error about a key, unless there is an earlier error. Returns false. */
bool config_wrong(Config *config, const char *key, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

typedef struct Families Families;
Families *families_read(GError **error);
AUTOPTR(families_free, Families)
/* All rows, by their names, and the list of ignored keys, a new reference; KILTER_ERROR_INPUT with
 * file and line if they are damaged. One row; NULL: there is none, or it is damaged. */
json_t *families_rows(const Families *families, GError **error);
const json_t *families_row(const Families *families, const char *name);
/* Appends to `text` the keys of an object that say something and that nothing was read from. */
void families_unread(const Families *families, const json_t *object, GHashTable *read,
                     GString *text);
bool families_has(const Families *families, const char *name);
/* "LlamaForCausalLM" is of the family "llama": the row of a class's name, or NULL. */
const char *families_of_class(const Families *families, const char *name);

bool family_is_fact(const char *name);

/* Fills in the architecture by a row, whose facts `facts` (a row, or NULL) replaces. */
bool family_read(const Families *families, Config *config, const char *name,
                 const json_t *facts, Architecture *architecture);

/* An object of the facts that are not 0; where layers differ as "attention x 12, delta x 36". */
json_t *family_facts(const Architecture *architecture);
