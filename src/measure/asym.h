/*
 * How many private-key operations a second: the crypto queue's backends beside OpenSSL's own calls, in
 * one interleaved run.
 */
#ifndef SP_MEASURE_ASYM_H
#define SP_MEASURE_ASYM_H

#include <sallyport/queue.h>

/* What is timed. REFERENCE is OpenSSL's EVP interface with reused contexts, as fast as a program can call it. */
enum asym_kind { ASYM_REFERENCE, ASYM_MULTIBUFFER, ASYM_THREADS, ASYM_CRYPTODEV };

struct asym_variant {
    enum sp_algorithm algorithm;
    enum asym_kind kind;
    unsigned fill;    /* operations in flight at a time */
    unsigned threads; /* of ASYM_THREADS */
    struct sp_cryptodev *cryptodev; /* of ASYM_CRYPTODEV; borrowed */
    /* Results: medians over the rounds. ops_per_s 0: not measured. */
    double ops_per_s, ops_per_cpu_s;
    double ratio;     /* of ops_per_cpu_s to the reference's, median of the rounds' ratios */
    double ratio_low, ratio_high; /* least and greatest round */
    unsigned lanes;   /* filled in the last batch: 0, none ran in lanes */
};

struct asym_run {
    struct asym_variant *variants; /* those of one algorithm together, the reference first */
    size_t count;
    unsigned rounds;       /* 1 to ASYM_ROUNDS_MAX */
    uint64_t slice_ns;     /* how long a variant is timed in each round */
    /* Called before each round of each algorithm; may be NULL. */
    void (*progress)(void *arg, enum sp_algorithm algorithm, unsigned round);
    void *progress_arg;
};
#define ASYM_ROUNDS_MAX 31

/*
 * Every variant's results are checked against the reference before it is timed. 0; SP_EFAULT: a result was wrong, *failed
 * names the variant; SP_ENOMEM, SP_EIO; SP_EUNSUPPORTED: the machine does not run it, *failed names it.
 */
int asym_measure(struct asym_run *run, const struct asym_variant **failed);

#endif
