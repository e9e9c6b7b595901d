/* Reading config.json of Hugging Face: one flat object per model, whose `model_type` names the
 * family (private to data). Families spell keys differently, written "a|b|c" here; the first
 * spelling that is there counts; a missing or null key takes the family's default.
 *
 * The first error sticks: functions return the default from then on, and config_good() is false.
 * Messages: "FILE: KEY: expected ..., got ...". */
#ifndef KILTER_DATA_MODELS_CONFIG_H
#define KILTER_DATA_MODELS_CONFIG_H

#include "data/models/architecture.h"

#include <jansson.h>

/* Bounds on the sizes in a file, checked before anything is built from them. */
enum { CONFIG_MOST_LAYERS = 4096, CONFIG_MOST_SIZE = 1 << 24 };

typedef struct {
    const char *file;
    json_t *root;       /* the text model's object */
    const char *nested; /* the key that holds it, or NULL */
    GError **error;
    bool failed;
} Config;

bool config_good(const Config *config);

/* Sets the error about a key, unless there is an earlier error. Returns false. */
bool config_wrong(Config *config, const char *key, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* An integer from `least` (0 or 1) to CONFIG_MOST_SIZE. */
uint32_t config_size(Config *config, const char *keys, uint32_t least,
                     uint32_t otherwise);
/* The same where null stands for none, 0. */
uint32_t config_size_or_none(Config *config, const char *key, uint32_t least,
                             uint32_t otherwise);
double config_number(Config *config, const char *keys, double most, double otherwise);
bool config_flag(Config *config, const char *keys, bool otherwise);
/* A text of the file, borrowed; NULL if missing. */
const char *config_text(Config *config, const char *keys);
/* The value of the first of the keys that is there and not null, or NULL. */
const json_t *config_value(const Config *config, const char *keys);

/* The object of a file that is a model's configuration. NULL with an error, or, without an error
 * and with *is_config false, for another kind of JSON. */
Architecture *config_read(const char *path, json_t *root, GError **error);

/* Fills the architecture by the family of that name (data/models/family.c); false: an error, which
 * names model_type if the family is unknown. */
bool config_family(Config *config, const char *model_type, Architecture *architecture);
bool config_knows_family(const char *model_type);

#endif
