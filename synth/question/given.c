/* Ratios that a user gives, from their text to a number for each device. */
#include "synth/question/given.h"

#include <string.h>

#include "data/base/error.h"
#include "data/base/names.h"
#include "data/base/units.h"

/* No quotient of two numbers of a text is beyond what whole units can express. */
static const double GIVEN_MOST = 1e18;
enum { GIVEN_MOST_ITEMS = 65536, GIVEN_MOST_BYTES = 1 << 20 };

/* The number of an item, "0.4" or "v100=0.4". */
static const char *given_number(const char *item)
{
    const char *equals = strrchr(item, '=');
    return equals ? equals + 1 : item;
}

#define X(id, word) word,
static const char *const GIVEN_WORDS[] = {RATIOS_WORDS(X) NULL};
#undef X

RatiosChoice given_choice(const char *text)
{
    return TEXT_PLACE(GIVEN_WORDS, G_N_ELEMENTS(GIVEN_WORDS) - 1, text);
}

static bool given_expects(const char *text, GError **error)
{
    g_autofree char *hint = names_hint(text, GIVEN_WORDS);
    return refuse(
        error,
        "expected own, even, proportional, best, numbers with at least one above "
        "0, or NAME=NUMBER for each, got '%s'%s",
        text, hint);
}

static bool given_is_item(const char *item, bool named, double *sum, GError **error)
{
    const char *number = given_number(item);
    double value;
    if (!g_utf8_validate(item, -1, NULL) || (number != item) != named || *item == '=' ||
        (!named && g_ascii_isalpha(*item)))
        return given_expects(item, error);
    if (!number_read(number, 0, GIVEN_MOST, &value))
        return refuse(error, "expected 0, or a number from 1e-30 to %g, got '%s'",
                      GIVEN_MOST, number);
    *sum += value;
    return true;
}

bool given_read(const char *text, const char **kept, GError **error)
{
    double sum = 0;
    uint32_t n = 0;
    if (given_choice(text) != RATIOS_GIVEN) {
        *kept = g_intern_string(text);
        return true;
    }
    if (strlen(text) > GIVEN_MOST_BYTES)
        return refuse(error, "expected at most %d bytes", GIVEN_MOST_BYTES);
    g_auto(GStrv) item = g_strsplit_set(text, ", ", -1);
    g_autoptr(GString) joined = g_string_new("");
    for (char **each = item; *each; each++) {
        if (!**each)
            continue;
        if (n++ == GIVEN_MOST_ITEMS)
            return refuse(error, "expected at most %d numbers", GIVEN_MOST_ITEMS);
        if (!given_is_item(*each, strchr(text, '=') != NULL, &sum, error))
            return false;
        g_string_append_printf(joined, "%s%s", joined->len ? " " : "", *each);
    }
    if (sum <= 0)
        return given_expects(text, error);
    *kept = g_intern_string(joined->str);
    return true;
}

bool given_read_mix(const char *text, const char **kept, GError **error)
{
    double part;
    if (strcmp(text, "none") == 0) {
        *kept = NULL;
        return true;
    }
    if (!number_read(text, 0, 1, &part))
        return refuse(error,
                      "expected none, 0 (even), or a number from 1e-30 to 1 "
                      "(proportional), got '%s'",
                      text);
    g_autofree char *exact = number_exact(part);
    *kept = g_intern_string(exact);
    return true;
}

static char *given_name(const char *item)
{
    return g_strndup(item, (gsize)(given_number(item) - item) - 1);
}

/* The device's weight by the nearest of its names that has a number (texts by name), the names with
 * a number being added to those in use; -1: none has. */
static double given_weight(const ClusterView *view, const Device *device,
                           GHashTable *number, GHashTable *used)
{
    const Machine *machine = &view->cluster->machine[device->machine];
    const struct {
        const char *name;
        uint32_t gpus, of; /* the number's part that is the device's */
    } level[] = {{device->name, 1, 1},
                 {machine->name, device->gpus, machine->gpus},
                 {device->type_name, device->gpus, 1}};
    double weight = -1;
    for (uint32_t k = 0; k < G_N_ELEMENTS(level); k++) {
        const char *text = g_hash_table_lookup(number, level[k].name);
        if (text)
            g_hash_table_add(used, (gpointer)level[k].name);
        if (text && weight < 0)
            weight = g_ascii_strtod(text, NULL) * level[k].gpus / level[k].of;
    }
    return weight;
}

static bool given_by_names(const ClusterView *view, char **item, double *ratio,
                           GError **error)
{
    g_autoptr(GHashTable) used = g_hash_table_new(g_str_hash, g_str_equal),
                          number = text_table(NULL);
    const Device *first = &view->device[0];
    for (uint32_t i = 0; item[i]; i++) /* the last one of a name counts */
        g_hash_table_insert(number, given_name(item[i]), (gpointer)given_number(item[i]));
    for (uint32_t j = 0; j < view->n_devices; j++) {
        ratio[j] = given_weight(view, &view->device[j], number, used);
        if (ratio[j] < 0)
            return refuse(error,
                          "option 'ratios': expected a number for %s, or for all %s",
                          view->device[j].name, view->device[j].type_name);
    }
    for (uint32_t i = 0; item[i]; i++) {
        g_autofree char *name = given_name(item[i]);
        if (!g_hash_table_contains(used, name))
            return refuse(error,
                          "option 'ratios': expected a device (such as %s), a machine "
                          "(%s) or a type (%s), got '%s'",
                          first->name, view->cluster->machine[first->machine].name,
                          first->type_name, item[i]);
    }
    return true;
}

static bool given_in_order(const ClusterView *view, char **item, double *ratio,
                           GError **error)
{
    const uint32_t n = g_strv_length(item), machines = view->cluster->n_machines;
    if (n != view->n_devices && n != machines) {
        g_autofree char *other =
            machines == view->n_devices
                ? g_strdup("")
                : g_strdup_printf(", or %u, one per machine", machines);
        return refuse(error,
                      "option 'ratios': expected %u numbers, one per device%s, got %u",
                      view->n_devices, other, n);
    }
    items_at (const Device, device, j, view->device, view->n_devices) {
        const uint32_t at = n == view->n_devices ? j : device->machine;
        ratio[j] = g_ascii_strtod(item[at], NULL);
        if (n != view->n_devices)
            ratio[j] *=
                (double)device->gpus / view->cluster->machine[device->machine].gpus;
    }
    return true;
}

double *given_ratios(const char *text, const ClusterView *view, GError **error)
{
    g_auto(GStrv) item = g_strsplit(text, " ", -1);
    g_autofree double *ratio = g_new(double, view->n_devices);
    double sum = 0;
    if (!(strchr(text, '=') ? given_by_names : given_in_order)(view, item, ratio, error))
        return NULL;
    for (uint32_t j = 0; j < view->n_devices; j++)
        sum += ratio[j];
    if (sum <= 0)
        return refused(
            error,
            "option 'ratios': expected a number above 0 for a device that there is");
    for (uint32_t j = 0; j < view->n_devices; j++)
        ratio[j] /= sum;
    return g_steal_pointer(&ratio);
}
