/* Tuning tables: names, reading, and the algorithm that a rule chooses. */
#include "data/cluster/tuning.h"

#include <math.h>
#include <string.h>

#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/json.h"
#include "data/base/names.h"
#include "data/base/path.h"
#include "data/cluster/cluster_json.h"
#include "data/cluster/tuning_yaml.h"

/* --- names --- */

#define TRAFFIC_NAME_OF(id, name) [TRAFFIC_##id] = name,
static const char *const TRAFFIC_NAME[] = {TRAFFIC_TABLE(TRAFFIC_NAME_OF)};
#define ALGORITHM_NAME_OF(id, name) [ALGORITHM_##id] = name,
static const char *const ALGORITHM_NAME[] = {ALGORITHM_TABLE(ALGORITHM_NAME_OF)};

NAMES_FUNCTION(traffic_name, Traffic, TRAFFICS, TRAFFIC_NAME[of])

NAMES_FUNCTION(algorithm_name, Algorithm, ALGORITHMS, ALGORITHM_NAME[of])

NAMES_FINDER(traffic_find, Traffic, "collective",
             names_of(TRAFFIC_NAME, sizeof TRAFFIC_NAME[0], TRAFFICS))

NAMES_FINDER(algorithm_find, Algorithm, "algorithm",
             names_of(ALGORITHM_NAME, sizeof ALGORITHM_NAME[0], ALGORITHMS))

static bool does(Algorithm algorithm, Traffic traffic)
{
#define LOWERING_DOES(traffic, algorithm, how) \
    [ALGORITHM_##algorithm][TRAFFIC_##traffic] = true,
    static const bool DOES[ALGORITHMS][TRAFFICS] = {LOWERING_TABLE(LOWERING_DOES)};
    g_assert(algorithm < ALGORITHMS && traffic < TRAFFICS);
    return algorithm == ALGORITHM_AUTO || DOES[algorithm][traffic];
}

bool algorithm_check(Algorithm algorithm, Traffic traffic, GError **error)
{
    g_autoptr(GString) known = g_string_new(NULL);
    if (does(algorithm, traffic))
        return true;
    for (Algorithm i = ALGORITHM_AUTO + 1; i < ALGORITHMS; i++)
        if (does(i, traffic))
            g_string_append_printf(known, "%s%s", known->len ? ", " : "",
                                   ALGORITHM_NAME[i]);
    return refuse(error, "%s does not do %s; expected one of %s",
                  ALGORITHM_NAME[algorithm], TRAFFIC_NAME[traffic], known->str);
}

/* --- reading --- */

enum { TEXT_MAX_BYTES = 4000, RULES_MAX = 10000 };

static const Member RULE_MEMBER[] = {RULE_MEMBERS(MEMBER_ROW)},
                    TUNING_MEMBER[] = {TUNING_MEMBERS(MEMBER_ROW)};

static const cyaml_schema_field_t RULE[] = {
    TEXT("collective", TuningRuleText, collective, NAME_MAX_BYTES),
    RULE_MEMBERS(MEMBER_FIELD)
        OPTIONAL_TEXT("power_of_two", TuningRuleText, power_of_two, NAME_MAX_BYTES),
    TEXT("algorithm", TuningRuleText, algorithm, NAME_MAX_BYTES),
    CYAML_FIELD_END,
};

const cyaml_schema_field_t TUNING_SCHEMA[] = {
    LIST("rules", TuningText, rule, TuningRuleText, RULE, RULES_MAX),
    TUNING_MEMBERS(MEMBER_FIELD)
        OPTIONAL_TEXT("source", TuningText, source, TEXT_MAX_BYTES),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t SCHEMA = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, TuningText, TUNING_SCHEMA)};

static bool read_names(const Yaml *yaml, const char *key, const TuningRuleText *text,
                       TuningRule *rule)
{
    const char *algorithm = yaml_at(yaml, "%s.algorithm", key);
    g_autoptr(GError) failure = NULL;
    if (!traffic_find(text->collective, &rule->traffic, &failure))
        return yaml_wrong(yaml, yaml_at(yaml, "%s.collective", key), "%s",
                          failure->message);
    if (!algorithm_find(text->algorithm, &rule->algorithm, &failure))
        return yaml_wrong(yaml, algorithm, "%s", failure->message);
    if (rule->algorithm == ALGORITHM_AUTO)
        return yaml_wrong(yaml, algorithm, "expected the name of an algorithm");
    return algorithm_check(rule->algorithm, rule->traffic, &failure) ||
           yaml_wrong(yaml, algorithm, "%s", failure->message);
}

static void read_rule(const Yaml *yaml, const char *key, const TuningRuleText *text,
                      TuningRule *rule)
{
    *rule = (TuningRule){.most_ranks = UINT32_MAX, .most_bytes = INFINITY};
    read_names(yaml, key, text, rule);
    MEMBERS_READ(yaml, key, RULE_MEMBER, text, rule);
    if (text->power_of_two && strcmp(text->power_of_two, "true") != 0)
        yaml_wrong(yaml, yaml_at(yaml, "%s.power_of_two", key),
                   "expected true, or no such key");
    rule->power_of_two = text->power_of_two != NULL;
}

Tuning *tuning_read(const Yaml *yaml, const char *key, const TuningText *text)
{
    Tuning *tuning = g_new0(Tuning, 1);
    g_autofree char *rules = yaml_key(key, "rules");
    tuning->rule = g_new0(TuningRule, text->rule_count);
    tuning->source = g_strdup(text->source ? text->source : "");
    for (; tuning->n < text->rule_count; tuning->n++)
        read_rule(yaml, yaml_at(yaml, "%s[%u]", rules, tuning->n), &text->rule[tuning->n],
                  &tuning->rule[tuning->n]);
    MEMBERS_READ(yaml, key, TUNING_MEMBER, text, tuning);
    return tuning;
}

static Tuning *read_default(GError **error)
{
    g_autofree char *path = path_bundled("tuning/default.yaml", error);
    g_autoptr(Yaml) yaml = path ? yaml_read(path, &SCHEMA, error) : NULL;
    if (!yaml)
        return NULL;
    const TuningText *text = yaml_data(yaml);
    g_autoptr(Tuning) tuning = tuning_read(yaml, "", text);
    if (!text->piece || !text->least_piece)
        yaml_wrong(yaml, text->piece ? "least_piece" : "piece",
                   "missing; expected this key");
    return yaml_is_good(yaml, error) ? g_steal_pointer(&tuning) : NULL;
}

static json_t *rule_json(const TuningRule *rule)
{
    json_t *object = json_pack("{s:s}", "collective", traffic_name(rule->traffic));
    MEMBERS_JSON(RULE_MEMBER, rule, object);
    if (rule->power_of_two)
        json_object_set_new(object, "power_of_two", json_true());
    json_object_set_new(object, "algorithm",
                        json_string(algorithm_name(rule->algorithm)));
    return object;
}

json_t *tuning_json(const Tuning *tuning)
{
    json_t *rules = json_list(places_before(i, tuning->n), rule_json(&tuning->rule[i]));
    json_t *object = json_pack("{s:o}", "rules", rules);
    MEMBERS_JSON(TUNING_MEMBER, tuning, object);
    if (tuning->source && *tuning->source)
        json_object_set_new(object, "source", json_string(tuning->source));
    return object;
}

/* --- tables --- */

Tuning *tuning_of_cluster(const Cluster *cluster, GError **error)
{
    const Tuning *own = cluster->tuning;
    Tuning *tuning = read_default(error);
    if (!tuning || !own)
        return tuning;
    tuning->rule = g_renew(TuningRule, tuning->rule, own->n + tuning->n);
    memmove(&tuning->rule[own->n], tuning->rule, tuning->n * sizeof *tuning->rule);
    memcpy(tuning->rule, own->rule, own->n * sizeof *tuning->rule);
    tuning->n += own->n;
    if (own->piece_bytes > 0)
        tuning->piece_bytes = own->piece_bytes;
    if (own->least_piece_bytes > 0)
        tuning->least_piece_bytes = own->least_piece_bytes;
    return tuning;
}

FREE_DEFINE(tuning_free, Tuning, tuning, free_each(tuning->rule, tuning->source));

Algorithm tuning_choose(const Tuning *tuning, Traffic traffic, uint32_t ranks,
                        double bytes)
{
    g_assert(traffic < TRAFFICS && ranks > 0);
    items_each (const TuningRule, rule, tuning->rule, tuning->n)
        if (rule->traffic == traffic && ranks <= rule->most_ranks &&
            bytes <= rule->most_bytes &&
            (!rule->power_of_two || (ranks & (ranks - 1)) == 0))
            return rule->algorithm;
    return ALGORITHM_AUTO;
}
