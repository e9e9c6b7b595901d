/* The names of collectives, and the forms that each of them converts. */
#include "data/base/names.h"
#include "data/program/program.h"

#define COLLECTIVE_NAME(id, name) [COLLECTIVE_##id] = name,
static const char *const NAME[COLLECTIVES] = {COLLECTIVE_TABLE(COLLECTIVE_NAME)};

NAMES_FUNCTION(collective_name, Collective, COLLECTIVES, NAME[of])

Collective collective_from_name(const char *name)
{
    return TEXT_PLACE(NAME, COLLECTIVES, name);
}

bool collective_converts(Collective kind, Form from, Form to)
{
    if (from >= FORM_MAX || to >= FORM_MAX)
        return false;
    switch (kind) {
    case COLLECTIVE_ALL_REDUCE:
        return from == FORM_REDUCE && to == FORM_IDENTITY;
    case COLLECTIVE_ALL_GATHER:
    case COLLECTIVE_GROUPED_ALL_GATHER:
        return form_is_gather(from) && to == FORM_IDENTITY;
    case COLLECTIVE_REDUCE_SCATTER:
    case COLLECTIVE_GROUPED_REDUCE_SCATTER:
        return from == FORM_REDUCE && form_is_gather(to);
    case COLLECTIVE_ALL_TO_ALL:
        return form_is_gather(from) && form_is_gather(to) && from != to;
    case COLLECTIVE_SLICE:
        return from == FORM_IDENTITY && form_is_gather(to);
    case COLLECTIVE_KEEP:
        return from == FORM_IDENTITY && to == FORM_REDUCE;
    case COLLECTIVE_PAD:
        return form_is_gather(from) && to == FORM_REDUCE;
    case COLLECTIVES:
        break;
    }
    return false;
}
