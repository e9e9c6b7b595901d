/* Reading config.json of Hugging Face: one flat object a model, whose `model_type` names the family
 * (private to data). Keys have several spellings by family, written "a|b|c" here, the first one
 * that is there counts; a missing or null key takes the family's default.
 *
 * The first error sticks: functions return the default from then on, and config_good() is false.
 * Messages: "FILE: KEY: expected ..., got ...". */
#ifndef KILTER_DATA_MODELS_CONFIG_H
#define KILTER_DATA_MODELS_CONFIG_H

#include "data/models/architecture.h"

#include <jansson.h>

/* Sizes that a file may name are bounded before anything is built from them. */
enum { CONFIG_MOST_LAYERS = 4096, CONFIG_MOST_SIZE = 1 << 24 };

typedef struct {
    const char *file;
    json_t *root;       /* the text model's object */
    const char *nested; /* the key that holds it, or NULL */
    GError **error;
    bool failed;
} Config;

bool config_good(const Config *config);

/* Says what is wrong with a key, unless something was before. Returns false. */
bool config_wrong(Config *config, const char *key, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* An integer from 1 (0 where `least` is 0) to CONFIG_MOST_SIZE. */
uint32_t config_size(Config *config, const char *keys, uint32_t least,
                     uint32_t otherwise);
double config_number(Config *config, const char *keys, double most, double otherwise);
bool config_flag(Config *config, const char *keys, bool otherwise);
/* NULL if missing; belongs to the file. */
const char *config_text(Config *config, const char *keys);
/* The value of the first of the keys that is there and not null, or NULL. */
const json_t *config_value(const Config *config, const char *keys);

/* The object of a file that is a model's configuration. NULL: an error, or, with *is_config false and
 * none, another kind of JSON. */
Architecture *config_read(const char *path, json_t *root, GError **error);

/* Fills the architecture by the family of that name (data/models/family.c); false: an error, which
 * names model_type where the family is not known. */
bool config_family(Config *config, const char *model_type, Architecture *architecture);

#endif
