/* Reading and writing measured collectives. */
#include "data/cluster/curve_yaml.h"
#include "data/base/json.h"

enum { POINTS_MAX = 1000, SOURCE_MAX_BYTES = 4000 };

static const Member POINT_MEMBER[] = {POINT_MEMBERS(MEMBER_ROW)},
                    CURVE_MEMBER[] = {CURVE_MEMBERS(MEMBER_ROW)};

static const cyaml_schema_field_t POINT[] = {POINT_MEMBERS(MEMBER_FIELD) CYAML_FIELD_END};

static const cyaml_schema_field_t CURVE[] = {
    TEXT("collective", CurveText, collective, NAME_MAX_BYTES),
    OPTIONAL_TEXT("device", CurveText, device, NAME_MAX_BYTES),
    CURVE_MEMBERS(MEMBER_FIELD)
        LIST("points", CurveText, point, CurvePointText, POINT, POINTS_MAX),
    OPTIONAL_TEXT("source", CurveText, source, SOURCE_MAX_BYTES),
    CYAML_FIELD_END,
};
const cyaml_schema_value_t CURVE_SCHEMA = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, CurveText, CURVE)};

/* Reads the points, whose sizes must rise and whose times must not fall. */
static bool curve_read_points(const Yaml *yaml, const char *parent, const CurveText *text,
                              CollectiveCurve *curve)
{
    curve->point = g_new0(CurvePoint, text->point_count);
    items_at (CurvePoint, point, i, curve->point, text->point_count) {
        g_autofree char *key = g_strdup_printf("%s.points[%u]", parent, i);
        if (!MEMBERS_READ(yaml, key, POINT_MEMBER, &text->point[i], point))
            return false;
        if (i > 0 &&
            !(point->bytes > point[-1].bytes && point->seconds >= point[-1].seconds))
            return yaml_wrong(yaml, key,
                              "expected a larger size than that of the point before, and "
                              "no shorter time");
        curve->n++;
    }
    return true;
}

static bool same_place(const CollectiveCurve *a, const CollectiveCurve *b)
{
    return a->kind == b->kind && g_strcmp0(a->device, b->device) == 0 &&
           a->ranks == b->ranks && a->hosts == b->hosts;
}

static bool read_curve(const Yaml *yaml, const char *key, const CurveText *text,
                       const CollectiveCurves *before, CollectiveCurve *curve)
{
    g_autofree char *kind = yaml_key(key, "collective");
    curve->kind = collective_from_name(text->collective);
    curve->device = g_strdup(text->device);
    curve->source = g_strdup(text->source ? text->source : "");
    if ((int)curve->kind >= COLLECTIVES_PRICED)
        return yaml_wrong(
            yaml, kind,
            "expected all_reduce, all_gather, grouped_all_gather, "
            "reduce_scatter, grouped_reduce_scatter or all_to_all, got '%s'",
            text->collective);
    if (!MEMBERS_READ(yaml, key, CURVE_MEMBER, text, curve))
        return false;
    if (curve->hosts > curve->ranks)
        return yaml_wrong(yaml, yaml_at(yaml, "%s.hosts", key),
                          "expected at most the number of ranks, %u", curve->ranks);
    if (curve->device && curve->hosts > 1)
        return yaml_wrong(yaml, yaml_at(yaml, "%s.device", key),
                          "not expected: the ranks are on several machines");
    for (uint32_t i = 0; i < before->n; i++)
        if (same_place(&before->curve[i], curve))
            return yaml_wrong(
                yaml, kind,
                "expected a collective, ranks and hosts that were not given "
                "yet");
    return curve_read_points(yaml, key, text, curve);
}

bool curves_read(const Yaml *yaml, const char *key, uint32_t n, const CurveText *text,
                 CollectiveCurves *curves)
{
    curves->curve = g_new0(CollectiveCurve, n);
    for (uint32_t i = 0; i < n; i++) {
        CollectiveCurve *curve = &curves->curve[i];
        const bool good =
            read_curve(yaml, yaml_at(yaml, "%s[%u]", key, i), &text[i], curves, curve);
        curves->n++;
        if (!good)
            return false;
    }
    return true;
}

bool curve_check(const CollectiveCurve *curve, const char *what, GError **error)
{
    bool good = MEMBERS_CHECK(CURVE_MEMBER, curve, what, error);
    for (uint32_t i = 0; good && i < curve->n; i++)
        good = MEMBERS_CHECK(POINT_MEMBER, &curve->point[i], what, error);
    return good;
}

static json_t *curve_json(const CollectiveCurve *curve)
{
    json_t *object = json_pack("{s:s, s:s*}", "collective", collective_name(curve->kind),
                               "device", curve->device),
           *list = json_array();
    MEMBERS_JSON(CURVE_MEMBER, curve, object);
    for (uint32_t i = 0; i < curve->n; i++) {
        json_t *point = json_object();
        MEMBERS_JSON(POINT_MEMBER, &curve->point[i], point);
        json_array_append_new(list, point);
    }
    json_object_set_new(object, "points", list);
    if (curve->source && *curve->source)
        json_object_set_new(object, "source", json_string(curve->source));
    return object;
}

json_t *curves_json(const CollectiveCurves *curves)
{
    return json_list(places_before(i, curves->n), curve_json(&curves->curve[i]));
}
