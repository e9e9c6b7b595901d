/* What choices of machines cost: time, throughput, money, energy. */
#ifndef KILTER_EXPERIMENTS_CLI_ADVISE_COST_H
#define KILTER_EXPERIMENTS_CLI_ADVISE_COST_H

#include "experiments/planners/portfolio.h"

/* DEVICE=NUMBER texts as the command line has them; NULL: none. */
typedef struct {
    char **price; /* dollars a GPU and hour */
    char **power; /* watts of a GPU; without: its data sheet's */
} AdvisePrices;

typedef struct {
    const PortfolioChoice *choice;
    double iteration_s, samples_per_s, tokens_per_s, mfu;
    double dollars_an_hour, dollars_per_million; /* tokens, or samples of models without a sequence; NaN */
    double power_w, kwh_per_million;             /* all GPUs at their full power; NaN: of one it is not known */
    /* of the device that computes longest: its type, and the part of the iteration that it computes, waits for
     * communication, and neither */
    const char *busiest;
    double computes, communicates, idles;
    bool front; /* no other choice is both faster and cheaper (in dollars, else in GPUs) */
} AdviseRow;

/* Whether the texts are well formed; KILTER_ERROR_INPUT. */
bool advise_prices_check(const AdvisePrices *prices, GError **error);
/* A row for each choice, in their order; caller frees. */
AdviseRow *advise_rows(const AdvisePrices *prices, const Portfolio *portfolio);
/* Dollars of an iteration, or GPUs where a price is not known. */
double advise_cost(const AdviseRow *row);
/* The fewest GPUs, or the cheapest where prices are given, of those with at most so much time and at least so many tokens a
 * second; NULL: none. */
const AdviseRow *advise_within(const AdviseRow *row, uint32_t n, double target_s,
                               double tokens_per_s);
/* "computation of h100", "communication", "waiting". Caller frees. */
char *advise_binds(const AdviseRow *row);

#endif
