/* The columns of an answer, beside its question: one row each. From a row follow the member of
 * StoreResult, the column of the table and of the views `result` and `configuration`, and what is
 * written, merged, shown and compared.
 *
 * X(name, kind, use, rule): kinds are TEXT, JSON (an object as text), REAL (NaN or infinite becomes
 * NULL), COUNT, BYTES and FLAG. Use: whether two answers to one question must agree in it, SAME, or
 * may differ in it, MAY (times by the clock, words). Rule: what the schema adds to the kind's type.
 * A new column: a row here, a step of data/store/upgrade.c, and whoever fills it in. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* clang-format off */
/* Who answers: it repeats the question's method. */
#define ANSWER_METHOD(X)                     \
    X(planner,           TEXT,  MAY,  " NOT NULL") \
    X(fidelity,          TEXT,  MAY,  " NOT NULL") \
    X(granularity,       TEXT,  MAY,  " NOT NULL") \
    X(gpus,              COUNT, MAY,  " CHECK (gpus > 0)")

/* The answer. */
#define ANSWER_NUMBERS(X)                                                                            \
    X(status,            TEXT,  SAME, " NOT NULL CHECK (status IN ('ok', 'oom', 'impossible', 'error'))") \
    X(message,           TEXT,  MAY,  "") /* why not ok */                                           \
    X(iteration_time_s,  REAL,  SAME, "")                                                            \
    X(fractional_time_s, REAL,  SAME, "") /* before rounding */                                      \
    X(lower_bound_s,     REAL,  SAME, "")                                                            \
    X(gap,               REAL,  SAME, "")                                                            \
    X(optimal,           FLAG,  SAME, "")                                                            \
    X(stages,            COUNT, SAME, "")                                                            \
    X(peak_memory_bytes, BYTES, SAME, "") /* of one GPU, largest over devices */                     \
    X(communication_s,   REAL,  SAME, "") /* parts of the iteration time */                          \
    X(computation_s,     REAL,  SAME, "")                                                            \
    X(search_time_s,     REAL,  MAY,  "") /* of the planner, wall clock, as the next */              \
    X(balance_time_s,    REAL,  MAY,  "")

/* The plan's strategy (ratios, stages, uneven counts), and a further report; an empty object is
 * NULL. What is left of the report when the members that many answers have in common are kept once,
 * as a part of its own. */
#define ANSWER_OBJECTS(X)                                                                            \
    X(plan,              JSON,  SAME, "")                                                            \
    X(detail,            JSON,  SAME, "")

#define ANSWER_COLUMNS(X) ANSWER_METHOD(X) ANSWER_NUMBERS(X) ANSWER_OBJECTS(X)
/* clang-format on */

#define STORE_TYPE_TEXT  const char *
#define STORE_TYPE_JSON  const char *
#define STORE_TYPE_REAL  double
#define STORE_TYPE_COUNT uint32_t
#define STORE_TYPE_BYTES uint64_t
#define STORE_TYPE_FLAG  bool

/* For lists in SQL: ", name"; the same with all digits of a real. */
#define STORE_NAME(name, kind, use, rule)  ", " #name
#define STORE_EXACT(name, kind, use, rule) STORE_EXACT_##kind(name)
#define STORE_EXACT_REAL(name) \
    ", CASE WHEN " #name " NOTNULL THEN printf('%!.17g', " #name ") END AS " #name
#define STORE_EXACT_TEXT(name)  ", " #name
#define STORE_EXACT_JSON(name)  ", " #name
#define STORE_EXACT_COUNT(name) ", " #name
#define STORE_EXACT_BYTES(name) ", " #name
#define STORE_EXACT_FLAG(name)  ", " #name
