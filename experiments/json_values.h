/* Values of JSON are in data/base/json.h; this header stands for files that still include it by its old name. */
#ifndef KILTER_EXPERIMENTS_JSON_VALUES_H
#define KILTER_EXPERIMENTS_JSON_VALUES_H

#include <jansson.h>

#include "data/data.h"

#endif
