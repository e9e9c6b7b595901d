/* Writing: runs, answers, and the experiments that asked for them. */
#include "data/store/store.h"

#include <math.h>
#include <sys/stat.h>

#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/version.h"
#include "data/store/database.h"

bool store_begin_run(Store *store, const char *command, const char *revision,
                     GError **error)
{
    if (!store->writable)
        return kilter_fail(error, KILTER_ERROR_FAILED, "%s: opened for reading only",
                           store->file);
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    free_each(store->command, store->revision, store->started);
    store->command = g_strdup(command);
    store->revision = g_strdup(revision);
    store->started = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
    store->run = 0;
    return true;
}

/* --- parameters of statements: NULL texts and infinite reals are NULL --- */

static void bind_text(sqlite3_stmt *statement, int *at, const char *text)
{
    sqlite3_bind_text(statement, (*at)++, text, -1, SQLITE_STATIC);
}

static void bind_integer(sqlite3_stmt *statement, int *at, sqlite3_int64 value)
{
    sqlite3_bind_int64(statement, (*at)++, value);
}

static void bind_real(sqlite3_stmt *statement, int *at, double value)
{
    if (isfinite(value))
        sqlite3_bind_double(statement, (*at)++, value);
    else
        sqlite3_bind_null(statement, (*at)++);
}

#define BIND_TEXT  bind_text
#define BIND_JSON  bind_text
#define BIND_REAL  bind_real
#define BIND_COUNT bind_integer
#define BIND_BYTES(statement, at, value) \
    bind_integer(statement, at, (sqlite3_int64)(value))
#define BIND_FLAG bind_integer

/* --- the experiments that ask --- */

/* The answer's id; 0: there is none; -1: SQLite failed. */
static sqlite3_int64 find_answer(const Store *store, const char *hash)
{
    int at = 1;
    if (!store_bind_hash(store->find, at++, hash))
        return 0;
    const int code = sqlite3_step(store->find);
    const sqlite3_int64 id = code == SQLITE_ROW    ? sqlite3_column_int64(store->find, 0)
                             : code == SQLITE_DONE ? 0
                                                   : -1;
    sqlite3_reset(store->find);
    return id;
}

/* Binds values in the order of STORE_ASKED_COLUMNS. */
static void bind_asked(sqlite3_stmt *statement, const StoreAsked *asked,
                       sqlite3_int64 answer)
{
    int at = 1;
    bind_text(statement, &at, asked->experiment);
    bind_integer(statement, &at, answer);
    bind_integer(statement, &at, asked->ordinal);
    bind_text(statement, &at, asked->model);
    bind_text(statement, &at, asked->cluster);
    bind_text(statement, &at, asked->entry);
    bind_text(statement, &at, asked->axes ? asked->axes : "{}");
    g_assert(at == sqlite3_bind_parameter_count(statement) + 1);
}

static bool insert_asked(Store *store, const StoreAsked *asked, sqlite3_int64 answer)
{
    bind_asked(store->ask, asked, answer);
    return store_insert(store->ask) && store_axes_add(store, asked->axes);
}

bool store_find_one(Store *store, const StoreAsked *asked, bool *has)
{
    const sqlite3_int64 answer = find_answer(store, asked->hash);
    *has = answer > 0;
    if (answer <= 0 || !store->writable)
        return answer >= 0;
    bind_asked(store->is_asked, asked, answer);
    const int code = sqlite3_step(store->is_asked);
    sqlite3_reset(store->is_asked);
    return code == SQLITE_ROW ||
           (code == SQLITE_DONE && insert_asked(store, asked, answer));
}

bool store_find(Store *store, const StoreAsked *asked, uint32_t n, bool *has,
                GError **error)
{
    const bool own = sqlite3_get_autocommit(store->db);
    if (own && store->writable && !store_begin(store, error))
        return false;
    bool good = !own || store->writable || store_execute(store, "BEGIN");
    for (uint32_t i = 0; good && i < n; i++)
        good = store_find_one(store, &asked[i], &has[i]);
    if (good && (!own || store_execute(store, "COMMIT")))
        return true;
    store_failed(store, KILTER_ERROR_FAILED, "look up results", error);
    store_forget_transaction(store);
    return false;
}

/* --- answers --- */

static bool insert_run(const Store *store)
{
    int at = 1;
    bind_text(store->add_run, &at, store->command);
    bind_text(store->add_run, &at, KILTER_VERSION);
    bind_text(store->add_run, &at, store->revision);
    bind_text(store->add_run, &at, g_get_host_name());
    bind_text(store->add_run, &at, store->started);
    return store_insert(store->add_run);
}

/* The id of the part's row, which is inserted if there is none; 0 on failure. */
static sqlite3_int64 id_of(const Store *store, const StorePart *part)
{
    int at = 1;
    gpointer known = g_hash_table_lookup(store->part, part->hash);
    sqlite3_int64 id = GPOINTER_TO_SIZE(known);
    if (known || !store_bind_hash(store->add_part, at++, part->hash))
        return id;
    bind_text(store->add_part, &at, part->text);
    if (sqlite3_step(store->add_part) == SQLITE_ROW)
        id = sqlite3_column_int64(store->add_part, 0);
    if (sqlite3_reset(store->add_part) != SQLITE_OK)
        return 0;
    g_hash_table_insert(store->part, g_strdup(part->hash), GSIZE_TO_POINTER((gsize)id));
    g_ptr_array_add(store->made, g_strdup(part->hash));
    return id;
}

/* Of an answer's parts: three of its question, and what it shares with others (0: nothing). */
enum { COMMON = 3, PARTS };

/* Inserts an answer; binds values in the order of STORE_ANSWER_COLUMNS. */
static bool insert_answer(const Store *store, sqlite3_int64 run,
                          const sqlite3_int64 *part, const StoreResult *r)
{
    sqlite3_stmt *put = store->put;
    int at = 1;
    if (!store_bind_hash(put, at++, r->asked.hash))
        return false;
    for (uint32_t i = 0; i < COMMON; i++)
        bind_integer(put, &at, part[i]);
    bind_integer(put, &at, (sqlite3_int64)r->question.seed);
    bind_integer(put, &at, run);
#define BIND(name, kind, use, rule) BIND_##kind(put, &at, r->name);
    ANSWER_COLUMNS(BIND)
    if (part[COMMON])
        bind_integer(put, &at, part[COMMON]);
    else
        sqlite3_bind_null(put, at++);
    g_assert(at == sqlite3_bind_parameter_count(put) + 1);
    return store_insert(put);
}

/* Checks of a result that the schema cannot express. */
static bool check_result(const Store *store, const StoreResult *result, GError **error)
{
    struct stat status;
    if (!store->command)
        return kilter_fail(error, KILTER_ERROR_FAILED, "%s: a result without a run",
                           store->file);
    if (stat(store->file, &status) != 0 || status.st_dev != store->device ||
        status.st_ino != store->inode)
        return kilter_fail(error, KILTER_ERROR_FAILED,
                           "%s: the store was removed or replaced meanwhile",
                           store->file);
    if (result->question.seed > INT64_MAX)
        return refuse(error,
                      "%s: seed: expected at most %" G_GINT64_FORMAT
                      ", got %" G_GUINT64_FORMAT,
                      store->file, INT64_MAX, result->question.seed);
    g_autofree char *hash = store_question_hash(&result->question);
    if (g_strcmp0(hash, result->asked.hash) != 0)
        return kilter_fail(error, KILTER_ERROR_FAILED,
                           "%s: hash: expected %s, the SHA-256 of the question, got %s",
                           store->file, hash, result->asked.hash);
    return true;
}

/* Writes a result. An existing answer keeps its values, its run and its parts: then only the
 * experiment that asked is added. */
static bool write_result(Store *store, const StoreResult *result)
{
    const StoreQuestion *q = &result->question;
    sqlite3_int64 answer = find_answer(store, result->asked.hash);
    if (answer == 0) {
        if (store->run == 0) {
            if (!insert_run(store))
                return false;
            store->run = sqlite3_last_insert_rowid(store->db);
        }
        const sqlite3_int64 part[PARTS] = {
            id_of(store, q->subject), id_of(store, q->cluster), id_of(store, q->method),
            [COMMON] = result->common ? id_of(store, result->common) : 0};
        if (!part[0] || !part[1] || !part[2] || (result->common && !part[COMMON]) ||
            !insert_answer(store, store->run, part, result))
            return false;
        answer = sqlite3_last_insert_rowid(store->db);
    }
    return answer > 0 && insert_asked(store, &result->asked, answer) &&
           store_drop_attempt(store, result->asked.hash);
}

/* --- transactions --- */

bool store_begin(Store *store, GError **error)
{
    g_assert(sqlite3_get_autocommit(store->db));
    g_ptr_array_set_size(store->made, 0);
    store->run_before = store->run;
    return store_execute(store, "BEGIN IMMEDIATE") ||
           store_failed(store, KILTER_ERROR_FAILED, "write the store", error);
}

void store_forget_transaction(Store *store)
{
    store_roll_back(store);
    store_axes_forget(store);
    store->run = store->run_before;
    for (uint32_t i = 0; i < store->made->len; i++)
        g_hash_table_remove(store->part, store->made->pdata[i]);
    g_ptr_array_set_size(store->made, 0);
}

bool store_commit(Store *store, GError **error)
{
    if (store_execute(store, "COMMIT"))
        return true;
    store_failed(store, KILTER_ERROR_FAILED, "write the store", error);
    store_forget_transaction(store);
    return false;
}

/* The run's row is written with its first result, so that neither exists without the other. */
bool store_put(Store *store, const StoreResult *result, GError **error)
{
    const bool own = sqlite3_get_autocommit(store->db);
    if (!check_result(store, result, error) || (own && !store_begin(store, error)))
        return false;
    if (!write_result(store, result)) {
        store_failed(store, KILTER_ERROR_FAILED, "write a result", error);
        store_forget_transaction(store);
        return false;
    }
    return !own || store_commit(store, error);
}
