/* kilter validate: predicted against measured times of plans. */
#include "experiments/answers/validate.h"
#include "experiments/answers.h"
#include "experiments/cli/command.h"

/* clang-format off */
#define VALIDATE_OPTIONS(X)          \
    X(TEXT, cluster, "cluster", 'c') \
    X(FILE, plot, "plot", 0)
/* clang-format on */
COMMAND_OPTIONS(Own, validate_options, VALIDATE_OPTIONS)

bool cmd_validate(int argc, char **argv, GError **error)
{
    g_auto(Own) own = {0};
    const GOptionEntry entries[] = {VALIDATE_OPTIONS(COMMAND_ENTRY) G_OPTION_ENTRY_NULL};
    g_auto(CommandOptions) options = {0};
    if (!command_parse(entries, &argc, argv, &options, error))
        return false;
    const bool stored = validate_is_store(argv[1]);
    if (stored && own.cluster)
        return refuse(error, "--cluster is for a CSV with plan files; %s is a store",
                      argv[1]);
    g_autoptr(Validation) v = stored ? validate_store(argv[1], error)
                                     : validate_csv(argv[1], own.cluster, error);
    if (!v || (own.plot && !validate_draw(v, own.plot, error)))
        return false;
    command_report(&options, validate_json(v), ANSWER_VALIDATE, NULL);
    return v->left->len == 0 ||
           kilter_fail(error, KILTER_ERROR_FAILED, "%u of %u plans were left out",
                       v->left->len, v->left->len + v->row->len);
}
