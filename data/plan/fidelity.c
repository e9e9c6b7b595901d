/* The table of fidelities (data/plan/fidelity.h). */
#include "data/plan/fidelity.h"

#include <stdint.h>
#include <string.h>

#include "data/base/names.h"

#define NAME(name, word, abilities, words)      #word,
#define ABILITIES(name, word, abilities, words) abilities,
static const char *const FIDELITY_NAME[] = {FIDELITY_TABLE(NAME) NULL};
static const unsigned FIDELITY_ABILITIES[] = {FIDELITY_TABLE(ABILITIES)};

NAMES_FUNCTION(fidelity_name, Fidelity, FIDELITIES, FIDELITY_NAME[of])

const char *fidelity_find(const char *name, GError **error)
{
    uint32_t index;
    return names_find("fidelity", name, FIDELITY_NAME, &index, error)
               ? FIDELITY_NAME[index]
               : NULL;
}

Fidelity fidelity_of(const char *name)
{
    Fidelity fidelity = 0;
    while (strcmp(fidelity_name(fidelity), name) != 0)
        fidelity++;
    return fidelity;
}

bool fidelity_can(const char *name, FidelityAbility ability)
{
    return (FIDELITY_ABILITIES[fidelity_of(name)] & (unsigned)ability) != 0;
}

char *fidelity_list(FidelityAbility ability)
{
    GString *list = g_string_new("");
    for (uint32_t i = 0; i < FIDELITIES; i++)
        if (FIDELITY_ABILITIES[i] & (unsigned)ability)
            g_string_append_printf(list, "%s%s", list->len > 0 ? " or " : "",
                                   FIDELITY_NAME[i]);
    return g_string_free(list, FALSE);
}
