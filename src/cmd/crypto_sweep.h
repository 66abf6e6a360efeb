/*
 * The arguments of `sallyport crypto sweep`.
 */
#ifndef SP_CMD_CRYPTO_SWEEP_H
#define SP_CMD_CRYPTO_SWEEP_H

#include "measure/sweep_report.h"
#include "measure/sweep_run.h"

struct crypto_sweep_args {
    /* Algorithms, modes, sizes, specs, rounds and in_place, and what stands behind the specs. */
    struct sweep_result *result;
    struct sweep_run *run;
    bool impls_named; /* by --impl; else every row that is no yardstick */
    uint64_t slice_ms; /* 0: of the budget */
    uint64_t seconds;  /* the budget; 0: the default */
    const char *csv, *json, *html; /* NULL: none */
    const char *compare_with;
    struct sweep_table *earlier; /* what it holds; NULL: not asked for */
    bool list, quiet, help;
};

extern const char crypto_sweep_usage[];

/*
 * 0; 2 after one message: a bad argument. result and run are empty before, and hold what has to be released after both;
 * so does `earlier`.
 */
int crypto_sweep_parse(struct crypto_sweep_args *a, int argc, char **argv);

/* The subcommand; argv[0] is "sweep". */
int crypto_sweep(int argc, char **argv);

#endif
