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

static const char *const GIVEN_WORDS[] = {"own", "even", "proportional", "best", NULL};

static bool given_expects(const char *text, GError **error)
{
    g_autofree char *hint = names_hint(text, GIVEN_WORDS);
    return kilter_fail(error, KILTER_ERROR_INPUT,
                       "expected own, even, proportional, best, numbers of which one is "
                       "more than 0, or NAME=NUMBER for each, got '%s'%s",
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
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "expected 0, or a number from 1e-30 to %g, got '%s'",
                           GIVEN_MOST, number);
    *sum += value;
    return true;
}

bool given_read(const char *text, const char **kept, GError **error)
{
    double sum = 0;
    uint32_t n = 0;
    if (g_strv_contains(GIVEN_WORDS, text)) {
        *kept = g_intern_string(text);
        return true;
    }
    if (strlen(text) > GIVEN_MOST_BYTES)
        return kilter_fail(error, KILTER_ERROR_INPUT, "expected at most %d bytes",
                           GIVEN_MOST_BYTES);
    g_auto(GStrv) item = g_strsplit_set(text, ", ", -1);
    g_autoptr(GString) joined = g_string_new("");
    for (char **each = item; *each; each++) {
        if (!**each)
            continue;
        if (n++ == GIVEN_MOST_ITEMS)
            return kilter_fail(error, KILTER_ERROR_INPUT, "expected at most %d numbers",
                               GIVEN_MOST_ITEMS);
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
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "expected none, 0 (even), or a number from 1e-30 to 1 "
                           "(proportional), got '%s'",
                           text);
    g_autofree char *exact = number_exact(part);
    *kept = g_intern_string(exact);
    return true;
}

/* The GPUs of the view's devices in the same machine. */
static uint32_t given_gpus(const ClusterView *view, const Device *device)
{
    uint32_t gpus = 0;
    for (uint32_t j = 0; j < view->n_devices; j++)
        if (view->device[j].machine == device->machine)
            gpus += view->device[j].gpus;
    return gpus;
}

static const char *given_machine(const ClusterView *view, const Device *device)
{
    return view->cluster->machine[device->machine].name;
}

/* The weight that NAME=NUMBER gives a device, the nearest name counting; -1: none. */
static double given_by_name(const ClusterView *view, const Device *device, char **item,
                            bool *used)
{
    enum { TYPE, MACHINE, DEVICE };
    double weight = -1;
    int rank = -1;
    for (uint32_t i = 0; item[i]; i++) {
        const double number = g_ascii_strtod(given_number(item[i]), NULL);
        const size_t length = (size_t)(given_number(item[i]) - item[i]) - 1;
        g_autofree char *name = g_strndup(item[i], length);
        const int is = strcmp(name, device->name) == 0                  ? DEVICE
                       : strcmp(name, given_machine(view, device)) == 0 ? MACHINE
                       : strcmp(name, device->type_name) == 0           ? TYPE
                                                                        : -1;
        used[i] |= is >= 0;
        if (is < rank || is < 0)
            continue;
        rank = is;
        weight = is == DEVICE    ? number
                 : is == MACHINE ? number * device->gpus / given_gpus(view, device)
                                 : number * device->gpus;
    }
    return weight;
}

static bool given_by_names(const ClusterView *view, char **item, double *ratio,
                           GError **error)
{
    g_autofree bool *used = g_new0(bool, g_strv_length(item) + 1);
    for (uint32_t j = 0; j < view->n_devices; j++) {
        ratio[j] = given_by_name(view, &view->device[j], item, used);
        if (ratio[j] < 0)
            return kilter_fail(error, KILTER_ERROR_INPUT,
                               "option 'ratios': expected a number for %s, or for all %s",
                               view->device[j].name, view->device[j].type_name);
    }
    for (uint32_t i = 0; item[i]; i++)
        if (!used[i])
            return kilter_fail(
                error, KILTER_ERROR_INPUT,
                "option 'ratios': expected a device (such as %s), a machine "
                "(%s) or a type (%s), got '%s'",
                view->device[0].name, given_machine(view, &view->device[0]),
                view->device[0].type_name, item[i]);
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
        return kilter_fail(
            error, KILTER_ERROR_INPUT,
            "option 'ratios': expected %u numbers, one per device%s, got %u",
            view->n_devices, other, n);
    }
    for (uint32_t j = 0; j < view->n_devices; j++) {
        const Device *device = &view->device[j];
        const uint32_t at = n == view->n_devices ? j : device->machine;
        ratio[j] = g_ascii_strtod(item[at], NULL);
        if (n != view->n_devices)
            ratio[j] *= (double)device->gpus / given_gpus(view, device);
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
    if (sum <= 0) {
        kilter_fail(
            error, KILTER_ERROR_INPUT,
            "option 'ratios': expected a number above 0 for a device that there is");
        return NULL;
    }
    for (uint32_t j = 0; j < view->n_devices; j++)
        ratio[j] /= sum;
    return g_steal_pointer(&ratio);
}
