/* GLPK, and all that is peculiar about it:
 *
 *   - it indexes from 1, and knows the kind of a bound by a code instead of an infinity;
 *   - on an error it prints, calls a hook and aborts unless the hook leaves by longjmp; the
 *     environment is then good for nothing but glp_free_env, which takes every problem of the
 *     thread along. Hence there is one Lp per thread, which owns the thread's environment, and one
 *     guarded entry, lp_solve;
 *   - its terminal output is switched off, but not that of errors: the terminal hook
 *     catches it as the message;
 *   - success of the call and status of the solution are separate codes. */
#include "balance/lp.h"

#include <glpk.h>
#include <math.h>
#include <setjmp.h>

#include "data/base/assert.h"
#include "data/base/each.h"
#include "data/base/error.h"
#include "data/base/free.h"

typedef struct {
    double lower, upper, cost;
} Column;

typedef struct {
    double lower, upper;
    uint32_t first, n; /* in index and value */
} Row;

struct Lp {
    glp_prob *problem; /* NULL after an error */
    uint32_t n_columns, n_rows;
    uint32_t solved_columns, solved_rows; /* that were there at the last solve */
    GArray *column, *row;                 /* not yet given to GLPK */
    GArray *index,
        *value; /* entries of these rows, column indices from 1; element 0 is unused */
    int code, status; /* of the last solve */
    jmp_buf escape;
    char message[200]; /* first line GLPK printed since the solve began */
};

static int hook_terminal(void *data, const char *text)
{
    Lp *lp = data;
    if (lp->message[0] == '\0' && text[0] != '\n') {
        g_strlcpy(lp->message, text, sizeof lp->message);
        g_strdelimit(lp->message, "\n", '\0');
    }
    return 1;
}

static void hook_error(void *data)
{
    Lp *lp = data;
    longjmp(lp->escape, 1);
}

static const char *code_text(int code)
{
    switch (code) {
    case GLP_EBADB:
        return "the basis has the wrong size";
    case GLP_ESING:
        return "the basis matrix is singular";
    case GLP_ECOND:
        return "the basis matrix is ill-conditioned";
    case GLP_EBOUND:
        return "a lower bound is above its upper bound";
    case GLP_EFAIL:
        return "the solver failed";
    case GLP_EITLIM:
        return "too many iterations";
    case GLP_EOBJLL:
    case GLP_EOBJUL:
        return "the objective reached its limit";
    default:
        return "the solver stopped";
    }
}

static int bound_kind(double lower, double upper)
{
    if (isinf(lower))
        return isinf(upper) ? GLP_FR : GLP_UP;
    if (isinf(upper))
        return GLP_LO;
    return lower == upper ? GLP_FX : GLP_DB;
}

static void forget_pending(Lp *lp)
{
    g_array_set_size(lp->column, 0);
    g_array_set_size(lp->row, 0);
    g_array_set_size(lp->index, 1);
    g_array_set_size(lp->value, 1);
}

Lp *lp_new(GError **error)
{
    int code = glp_init_env();
    if (code != 0) {
        kilter_fail(error, KILTER_ERROR_FAILED, "LP: %s",
                    code == 1 ? "this thread has one open already" : "out of memory");
        return NULL;
    }
    Lp *lp = g_new0(Lp, 1);
    glp_term_out(GLP_OFF);
    glp_term_hook(hook_terminal, lp);
    glp_error_hook(hook_error, lp);
    lp->problem = glp_create_prob();
    lp->column = g_array_new(FALSE, FALSE, sizeof(Column));
    lp->row = g_array_new(FALSE, FALSE, sizeof(Row));
    lp->index = g_array_new(FALSE, TRUE, sizeof(int));
    lp->value = g_array_new(FALSE, TRUE, sizeof(double));
    forget_pending(lp);
    return lp;
}

void lp_free(Lp *lp)
{
    if (lp == NULL)
        return;
    if (lp->problem != NULL) {
        glp_delete_prob(lp->problem);
        glp_free_env();
    }
    unref_arrays(lp->column, lp->row, lp->index, lp->value);
    g_free(lp);
}

uint32_t lp_column(Lp *lp, double lower, double upper, double cost)
{
    g_assert(lower <= upper && !isnan(cost));
    Column column = {lower, upper, cost};
    g_array_append_val(lp->column, column);
    return lp->n_columns++;
}

uint32_t lp_row(Lp *lp, double lower, double upper, uint32_t n, const uint32_t *column,
                const double *value)
{
    g_assert(lower <= upper);
    Row row = {lower, upper, lp->index->len, n};
    g_array_append_val(lp->row, row);
    for (uint32_t i = 0; i < n; i++) {
        int index = (int)column[i] + 1;
        g_array_append_val(lp->index, index);
    }
    g_array_append_vals(lp->value, value, n);
    return lp->n_rows++;
}

uint32_t lp_columns(const Lp *lp)
{
    return lp->n_columns;
}

uint32_t lp_rows(const Lp *lp)
{
    return lp->n_rows;
}

/* Gives GLPK the columns and rows added since the last solve. */
static void load(Lp *lp)
{
    if (lp->column->len > 0) {
        int first = glp_add_cols(lp->problem, (int)lp->column->len);
        array_at (const Column, c, i, lp->column) {
            glp_set_col_bnds(lp->problem, first + (int)i, bound_kind(c->lower, c->upper),
                             c->lower, c->upper);
            glp_set_obj_coef(lp->problem, first + (int)i, c->cost);
        }
    }
    if (lp->row->len > 0) {
        int first = glp_add_rows(lp->problem, (int)lp->row->len);
        array_at (const Row, r, i, lp->row) {
            /* GLPK reads entries 1..n of the arrays it is given. */
            const int *index = (const int *)(void *)lp->index->data + r->first - 1;
            const double *value = (const double *)(void *)lp->value->data + r->first - 1;
            glp_set_row_bnds(lp->problem, first + (int)i, bound_kind(r->lower, r->upper),
                             r->lower, r->upper);
            glp_set_mat_row(lp->problem, first + (int)i, (int)r->n, index, value);
        }
    }
    forget_pending(lp);
    lp->solved_columns = lp->n_columns;
    lp->solved_rows = lp->n_rows;
}

static void balance_solve(Lp *lp)
{
    glp_smcp options;
    glp_init_smcp(&options);
    options.msg_lev = GLP_MSG_OFF;
    options.meth = GLP_DUALP;
    options.tol_bnd = LP_TOLERANCE;
    options.tol_dj = LP_TOLERANCE;
    options.it_lim =
        (int)MIN(1000u + 100u * (lp->n_rows + lp->n_columns), (uint32_t)G_MAXINT);
    load(lp);
    lp->code = glp_simplex(lp->problem, &options);
    if (lp->code != 0 || glp_get_status(lp->problem) != GLP_OPT) {
        /* The last basis may have become singular with the new rows, or led the dual simplex
         * astray: so try once more from the slack basis. */
        glp_std_basis(lp->problem);
        options.meth = GLP_PRIMAL;
        lp->code = glp_simplex(lp->problem, &options);
    }
    lp->status = glp_get_status(lp->problem);
}

static LpStatus fail(Lp *lp, GError **error, const char *what)
{
    kilter_fail(error, KILTER_ERROR_FAILED, "LP of %u rows and %u columns: %s",
                lp->n_rows, lp->n_columns, what);
    return LP_FAILED;
}

/* GLPK does not notice a NaN, so it is found here. Bounds are numbers: lp_column and lp_row see to
 * it. */
static bool numbers_are_finite(const Lp *lp)
{
    bool finite =
        all_of(i, lp->value->len, isfinite(g_array_index(lp->value, double, i)));
    for (guint i = 0; i < lp->column->len; i++)
        finite = finite && isfinite(g_array_index(lp->column, Column, i).cost);
    return finite;
}

LpStatus lp_solve(Lp *lp, GError **error)
{
    if (lp->problem == NULL)
        return fail(lp, error, "an earlier solve failed");
    if (!numbers_are_finite(lp))
        return fail(lp, error, "a coefficient or cost is not a number");
    lp->message[0] = '\0';
    if (setjmp(lp->escape) != 0) {
        lp->problem = NULL; /* goes with the environment */
        glp_free_env();
        return fail(lp, error, lp->message);
    }
    balance_solve(lp);
    if (lp->code != 0)
        return fail(lp, error, code_text(lp->code));
    switch (lp->status) {
    case GLP_OPT:
        return LP_OPTIMAL;
    case GLP_NOFEAS:
        return LP_INFEASIBLE;
    case GLP_UNBND:
        return LP_UNBOUNDED;
    default:
        /* The dual simplex proves that there is no solution without telling it apart from
         * unbounded. */
        if (glp_get_prim_stat(lp->problem) == GLP_NOFEAS)
            return LP_INFEASIBLE;
        return fail(lp, error, "the solver stopped without an answer");
    }
}

double lp_objective(const Lp *lp)
{
    return glp_get_obj_val(lp->problem);
}

double lp_value(const Lp *lp, uint32_t column)
{
    KILTER_ASSERT(column < lp_columns(lp));
    return column < lp->solved_columns ? glp_get_col_prim(lp->problem, (int)column + 1)
                                       : 0;
}

double lp_price(const Lp *lp, uint32_t row)
{
    KILTER_ASSERT(row < lp_rows(lp));
    return row < lp->solved_rows ? glp_get_row_dual(lp->problem, (int)row + 1) : 0;
}
