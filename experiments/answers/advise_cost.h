/* The costs of choices of machines: time, throughput, money, energy. */
#pragma once

#include "synth/auto/portfolio.h"

/* Numbers (double) by device type's name. */
typedef struct {
    GHashTable *price; /* dollars per GPU and hour */
    GHashTable *power; /* watts per GPU; of others the data sheet's */
} AdvisePrices;

typedef struct {
    const PortfolioChoice *choice;
    double iteration_s, samples_per_s, tokens_per_s, mfu;
    struct json_t *training; /* on --tokens; NULL: not asked, or no plan */
    double takes_s; /* what --target limits: the iteration, or the training on --tokens */
    double dollars_an_hour,
        dollars_per_million;         /* per million tokens, or samples of models without
                                                  * a sequence; NaN: the price of some
                                                  * machine of the cluster is unknown */
    double power_w, kwh_per_million; /* of all GPUs at full power; NaN: unknown for one
                                                  * of them */
    /* of the device that computes longest: its type, and the parts of the iteration in which it
     * computes, waits for communication, or does neither */
    const char *busiest;
    double computes, communicates, idles;
    /* no other choice is both faster and cheaper (in dollars, else in GPUs) */
    bool front;
} AdviseRow;

/* Reads texts DEVICE=NUMBER with commas between several; NULL: none. KILTER_ERROR_INPUT if one is
 * not well formed, or no device type of the cluster has that name. */
bool advise_prices_read(char **price, char **power, const Cluster *cluster,
                        AdvisePrices *prices, GError **error);
AUTOCLEAR(advise_prices_clear, AdvisePrices)
/* The device types of the cluster's machines without a price, "h100, a100". NULL: none. Caller
 * frees. */
char *advise_unpriced(const AdvisePrices *prices, const Cluster *cluster);
/* One row per choice, in the same order; caller frees. */
AdviseRow *advise_rows(const AdvisePrices *prices, const Portfolio *portfolio);
/* Dollars per iteration, or the number of GPUs where a price is not known. */
double advise_cost(const AdviseRow *row);
/* The row with the fewest GPUs, or the cheapest where prices are given, of those that take at most
 * target_s and have at least the target tokens per second; NULL: there is none. */
const AdviseRow *advise_within(const AdviseRow *row, uint32_t n, double target_s,
                               double tokens_per_s);
/* "computation of h100", "communication", "waiting". Caller frees. */
char *advise_binds(const AdviseRow *row);
