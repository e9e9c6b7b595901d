/* Backends that are modules of their own, opened when they are first asked for: the libraries that
 * they need take longer to load than most commands run (private to exec). */
#pragma once

#include <dlfcn.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether there is a module kilter_NAME.so. */
bool module_built(const char *name);

/* The address of a symbol of the module, opened with these flags of dlopen(). NULL with
 * KILTER_ERROR_FAILED: there is no module, as `absent` says, or it cannot be loaded here. */
void *module_find(const char *name, int flags, const char *symbol, const char *absent,
                  GError **error);
