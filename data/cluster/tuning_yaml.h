/* Tuning tables in YAML: a file of their own, or a section of a cluster's file. Private to data. */
#pragma once

#include "data/cluster/members.h"
#include "data/cluster/tuning.h"

typedef struct {
    char *collective, *power_of_two, *algorithm;
    RULE_MEMBERS(MEMBER_TEXT)
} TuningRuleText;

typedef struct {
    TuningRuleText *rule;
    uint32_t rule_count;
    char *source;
    TUNING_MEMBERS(MEMBER_TEXT)
} TuningText;

extern const cyaml_schema_field_t TUNING_SCHEMA[]; /* schema of a TuningText */

/* Reads a table. `key`: the section's key, or "" if the file is the table. */
Tuning *tuning_read(const Yaml *yaml, const char *key, const TuningText *text);
