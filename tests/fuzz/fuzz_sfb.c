/* Fuzz target: JSON as cases of sufficient factor broadcasting is refused with one line, or each
 * case has an optimum that is no worse than duplicating nothing by both prices. */
#include <math.h>

#include "synth/tag/sfb_file.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_read(const void *data, size_t size)
{
    enum { MOST_OPS = 200 };
    int memory;
    g_autoptr(GError) error = NULL;
    g_autofree char *file = fuzz_file_open(data, size, &memory);
    g_autoptr(GPtrArray) cases = sfb_file_read(file, &error);
    fuzz_file_close(memory);
    fuzz_check(!cases == !!error, "either cases or an error");
    if (!cases) {
        fuzz_check_refused(error, file);
        return false;
    }
    for (guint i = 0; i < cases->len; i++) {
        const SfbCase *sfb = cases->pdata[i];
        g_autofree bool *duplicated = g_new0(bool, sfb->n_ops + 1);
        if (sfb->n_ops > MOST_OPS)
            continue;
        const double gain_s = sfb_case_solve(sfb, SFB_PAPER, duplicated);
        fuzz_check(gain_s <= 0, "a gain, or nothing");
        fuzz_note("%.9g", gain_s);
        for (uint32_t k = 0; k < sfb->n_ops; k++)
            fuzz_check(!(duplicated[k] && sfb->never[k]), "never means never");
    }
    return true;
}
