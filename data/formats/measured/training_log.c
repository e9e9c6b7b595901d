/* Reading logs of training. */
#include "data/formats/measured/training_log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/base/free.h"
#include "data/base/text.h"
#include "data/base/units.h"

/* Times in the order in which they are believed. */
static const struct {
    const char *phrase;
    LogQuantity quantity;
    double unit;
    const char *after; /* what follows the number */
} PHRASE[] = {
    {"elapsed time per iteration (ms):", LOG_SECONDS, 1e-3, ""}, /* Megatron-LM */
    {"elapsed_time_per_iteration_ms:", LOG_SECONDS, 1e-3, ""},   /* nanotron */
    {"train_step_timing in s:", LOG_SECONDS, 1, ""},             /* NeMo */
    {"iter time (s):", LOG_SECONDS, 1, ""},                      /* Megatron-DeepSpeed */
    {"tps:", LOG_TOKENS_PER_S_PER_GPU, 1, ""},                   /* torchtitan */
    {"throughput/device/tokens_per_sec:", LOG_TOKENS_PER_S_PER_GPU, 1,
     ""}, /* llm-foundry */
    {"throughput/tokens_per_sec:", LOG_TOKENS_PER_S, 1, ""},
    {"CurrSamplesPerSec=", LOG_SAMPLES_PER_S, 1, ""},       /* DeepSpeed */
    {"train_samples_per_second", LOG_SAMPLES_PER_S, 1, ""}, /* Transformers */
    {"max allocated:", LOG_PEAK_BYTES, 1 << 20, ""}, /* Megatron-LM: in MiB, called MB */
    {"MaxMemAllocated=", LOG_PEAK_BYTES, 1 << 30, ""}, /* DeepSpeed: in GiB, called GB */
    {"memory:", LOG_PEAK_BYTES, 1 << 30, "GiB"},       /* torchtitan */
};

/* The phrase where no longer word ends in it, as "https:" does; NULL: not there. */
static const char *phrase_after(const char *text, const char *phrase)
{
    for (const char *at = text; (at = strstr(at, phrase)); at++)
        if (at == text || !g_ascii_isalnum(at[-1]))
            return at + strlen(phrase);
    return NULL;
}

/* "5,762", "': 26.5" or "1.2K"; NAN: none above 0, or something else than `after` follows. */
static double number_after(const char *at, const char *after)
{
    char digits[32] = "";
    size_t n = 0;
    for (at += strspn(at, " \t'\":="); n + 1 < sizeof digits; at++)
        if (*at && strchr("0123456789.eE+-", *at))
            digits[n++] = *at;
        else if (*at != ',' || !g_ascii_isdigit(at[1]))
            break;
    const double value = g_ascii_strtod(digits, NULL) * (*at == 'K' ? 1e3 : 1);
    return isfinite(value) && value > 0 && g_str_has_prefix(at, after) ? value : NAN;
}

bool training_log_parse(const char *text, double value[LOG_QUANTITIES])
{
    g_autofree char *plain = g_strdup(text);
    g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(double));
    bool timed = false;
    text_uncolour(plain);
    for (guint k = 0; k < LOG_QUANTITIES; k++)
        value[k] = NAN;
    for (guint i = 0; i < G_N_ELEMENTS(PHRASE); i++) {
        const bool peak = PHRASE[i].quantity == LOG_PEAK_BYTES;
        const char *at = plain;
        g_array_set_size(found, 0);
        while (timed == peak && (at = phrase_after(at, PHRASE[i].phrase))) {
            const double number = number_after(at, PHRASE[i].after) * PHRASE[i].unit;
            if (!isnan(number))
                g_array_append_val(found, number);
        }
        const guint first = !peak && found->len > 1, n = found->len - first;
        if (n == 0)
            continue;
        double *number = (double *)(void *)found->data + first;
        qsort(number, n, sizeof *number, number_compare);
        value[PHRASE[i].quantity] =
            peak ? number[n - 1] : (number[(n - 1) / 2] + number[n / 2]) / 2;
        timed |= !peak;
    }
    return timed;
}
