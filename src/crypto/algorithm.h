/*
 * The table of algorithms: what a row needs to be gathered, run in the scalar library and run in
 * lanes. Everything that differs between algorithms is here; the queue and the flush policy know
 * rows only.
 */
#ifndef SP_CRYPTO_ALGORITHM_H
#define SP_CRYPTO_ALGORITHM_H

#include <sallyport/queue.h>

/* Working memory of whoever runs batches: a queue, or a crypto thread. */
struct rsa_scratch;
struct algorithm_memory {
    struct rsa_scratch *rsa;
};
int algorithm_memory_init(struct algorithm_memory *memory);
void algorithm_memory_release(struct algorithm_memory *memory);

struct algorithm {
    const char *name;
    enum sp_op_kind kind;
    size_t rsa_bytes; /* length of the modulus for RSA rows, else 0 */
    bool has_half_batch; /* up to half of the lanes' operations cost half a batch: p and q side by side */
    bool is_dear;     /* one batch takes long enough for sockets to be served first */
    /* One operation in the scalar library: the op's status. */
    int (*run_scalar)(const struct sp_op *op);
    /*
     * ops[n], 1 to SP_LANES_MAX, in lanes; writes each op's status. SP_EFAULT: that lane's result
     * failed its verification. NULL: the row has no lanes.
     */
    void (*run_lanes)(struct sp_op *const *ops, unsigned n, struct algorithm_memory *memory);
    /* True when the lanes exist on this machine. */
    bool (*has_lanes)(void);
    /*
     * Operations whose right results are known, run as one batch. `rsa`: a key of the row's length.
     * 0, SP_EFAULT, SP_ENOMEM.
     */
    int (*self_test)(const struct algorithm *row, const struct sp_rsa_key *rsa, struct algorithm_memory *memory);
};

extern const struct algorithm algorithm_rows[SP_ALGORITHMS];

/* The row of an operation; SP_EINVAL: malformed. */
int algorithm_of(const struct sp_op *op, enum sp_algorithm *out);

#endif
