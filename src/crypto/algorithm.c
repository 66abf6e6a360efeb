#include "crypto/algorithm.h"

#include "crypto/backend/multibuffer.h"
#include "crypto/backend/openssl.h"
#include "crypto/kernel/rsa.h"
#include "crypto/self_test.h"

#define RSA_ROW(bits)                                                                          \
    {                                                                                          \
        .name = "RSA-" #bits, .kind = SP_OP_RSA_PRIVATE, .rsa_bytes = (bits) / 8,              \
        .has_half_batch = true, .is_dear = true, .run_scalar = openssl_rsa_private,            \
        .run_lanes = multibuffer_rsa_private, .has_lanes = multibuffer_has_rsa,                \
        .self_test = self_test_rsa,                                                            \
    }

const struct algorithm algorithm_rows[SP_ALGORITHMS] = {
    [SP_ALGORITHM_RSA2048] = RSA_ROW(2048),
    [SP_ALGORITHM_RSA3072] = RSA_ROW(3072),
    [SP_ALGORITHM_RSA4096] = RSA_ROW(4096),
    [SP_ALGORITHM_P256_SIGN] = {.name = "P-256 sign",
                                .kind = SP_OP_P256_SIGN,
                                .run_scalar = openssl_p256_sign,
                                .run_lanes = multibuffer_p256_sign,
                                .has_lanes = multibuffer_has_p256,
                                .self_test = self_test_p256_sign},
    [SP_ALGORITHM_P256_KEYGEN] = {.name = "P-256 keygen",
                                  .kind = SP_OP_P256_KEYGEN,
                                  .run_scalar = openssl_p256_keygen,
                                  .run_lanes = multibuffer_p256_keygen,
                                  .has_lanes = multibuffer_has_p256,
                                  .self_test = self_test_p256_keygen},
    [SP_ALGORITHM_P256_DERIVE] = {.name = "P-256 derive",
                                  .kind = SP_OP_P256_DERIVE,
                                  .run_scalar = openssl_p256_derive,
                                  .run_lanes = multibuffer_p256_derive,
                                  .has_lanes = multibuffer_has_p256,
                                  .self_test = self_test_p256_derive},
    [SP_ALGORITHM_X25519_KEYGEN] = {.name = "X25519 keygen",
                                    .kind = SP_OP_X25519_KEYGEN,
                                    .run_scalar = openssl_x25519_keygen,
                                    .run_lanes = multibuffer_x25519_keygen,
                                    .has_lanes = multibuffer_has_x25519,
                                    .self_test = self_test_x25519_keygen},
    [SP_ALGORITHM_X25519_DERIVE] = {.name = "X25519 derive",
                                    .kind = SP_OP_X25519_DERIVE,
                                    .run_scalar = openssl_x25519_derive,
                                    .run_lanes = multibuffer_x25519_derive,
                                    .has_lanes = multibuffer_has_x25519,
                                    .self_test = self_test_x25519_derive},
    [SP_ALGORITHM_OTHER] = {.name = "other", .kind = SP_OP_CALL, .is_dear = true, .run_scalar = openssl_call},
};

int algorithm_memory_init(struct algorithm_memory *memory)
{
    memory->rsa = rsa_scratch_new();
    return memory->rsa ? 0 : SP_ENOMEM;
}

void algorithm_memory_release(struct algorithm_memory *memory)
{
    rsa_scratch_free(memory->rsa);
    memory->rsa = NULL;
}

static int rsa_row_of(const struct sp_op *op, enum sp_algorithm *out)
{
    size_t bytes = op->rsa ? sp_rsa_key_bytes(op->rsa) : 0;

    if (!bytes || op->in_len != bytes || !op->in || !op->out)
        return SP_EINVAL;
    *out = bytes == 256 ? SP_ALGORITHM_RSA2048 : bytes == 384 ? SP_ALGORITHM_RSA3072 : SP_ALGORITHM_RSA4096;
    return 0;
}

static bool has_input(const struct sp_op *op, size_t least, size_t most)
{
    return op->scalar && op->in && op->out && op->in_len >= least && op->in_len <= most;
}

int algorithm_of(const struct sp_op *op, enum sp_algorithm *out)
{
    switch (op->kind) {
    case SP_OP_RSA_PRIVATE:
        return rsa_row_of(op, out);
    case SP_OP_P256_SIGN:
        *out = SP_ALGORITHM_P256_SIGN;
        return has_input(op, 1, 64) ? 0 : SP_EINVAL;
    case SP_OP_P256_KEYGEN:
        *out = SP_ALGORITHM_P256_KEYGEN;
        return op->out ? 0 : SP_EINVAL;
    case SP_OP_P256_DERIVE:
        *out = SP_ALGORITHM_P256_DERIVE;
        return has_input(op, 65, 65) ? 0 : SP_EINVAL;
    case SP_OP_X25519_KEYGEN:
        *out = SP_ALGORITHM_X25519_KEYGEN;
        return op->out ? 0 : SP_EINVAL;
    case SP_OP_X25519_DERIVE:
        *out = SP_ALGORITHM_X25519_DERIVE;
        return has_input(op, 32, 32) ? 0 : SP_EINVAL;
    case SP_OP_CALL:
        *out = SP_ALGORITHM_OTHER;
        return op->call ? 0 : SP_EINVAL;
    default:
        return SP_EINVAL;
    }
}

const char *sp_algorithm_name(enum sp_algorithm algorithm)
{
    return algorithm_rows[algorithm].name;
}
