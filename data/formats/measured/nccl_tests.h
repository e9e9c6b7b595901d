/* Output of nccl-tests as measurements (private to data; data/measured/measurement.h lists the
 * tests that are read). */
#pragma once

#include "data/measured/measurement.h"

/* Both append to `list` and `tables`, which is not NULL. */
bool nccl_tests_parse_text(const char *file, const char *text, GArray *list,
                           GArray *tables, GError **error);
bool nccl_tests_parse_json(const char *file, const char *text, size_t length,
                           GArray *list, GArray *tables, GError **error);
