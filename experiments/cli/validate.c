/* kilter validate: predicted against measured times of plans. */
#include "experiments/answers/validate.h"
#include "experiments/answers.h"
#include "experiments/cli/command.h"
#include "experiments/sweep/stored.h"

/* clang-format off */
#define VALIDATE_OPTIONS(X)          \
    X(TEXT, cluster, "cluster", 'c') \
    X(FILE, plot, "plot", 0)
/* clang-format on */
COMMAND_OPTIONS(Own, validate_options, VALIDATE_OPTIONS)

COMMAND(validate, Own, VALIDATE_OPTIONS, 0)
{
    const bool stored = stored_is_file(argv[1]);
    if (stored && own->cluster)
        return refuse(error, "--cluster is for a CSV with plan files; %s is a store",
                      argv[1]);
    g_autoptr(Validation) v = stored ? validate_store(argv[1], error)
                                     : validate_csv(argv[1], own->cluster, error);
    if (!v || (own->plot && !validate_draw(v, own->plot, error)))
        return false;
    command_report(options, validate_json(v), ANSWER_VALIDATE, NULL);
    return v->left->len == 0 ||
           kilter_fail(error, KILTER_ERROR_FAILED, "%u of %u plans were left out",
                       v->left->len, v->left->len + v->row->len);
}
