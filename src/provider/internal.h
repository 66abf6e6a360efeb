/*
 * What the files of the provider share: the instance, its keys, and how an operation is run.
 *
 * A key is the material that the queue works on, and a key of the default provider's, the inner
 * key, for everything else. The inner key of an ephemeral key is made only when something rare is
 * asked of it. Inner keys live in a library context that the instance makes with OSSL_LIB_CTX_new,
 * not OSSL_LIB_CTX_new_child: a child mirrors the providers and default properties of its parent,
 * so it would prefer this provider again, without end.
 *
 * Functions return 1 for success and 0 for failure with an entry in the error queue, as OpenSSL's
 * do, unless they say otherwise.
 */
#ifndef SP_PROVIDER_INTERNAL_H
#define SP_PROVIDER_INTERNAL_H

#include <sallyport/queue.h>
#include <sallyport/rsa.h>

#include <openssl/core.h>
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/proverr.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PROVIDER_DIGESTS 7
#define PROVIDER_RSA_MAX_BYTES 512 /* of keys that the queue takes */
#define P256_SCALAR_BYTES 32
#define P256_POINT_BYTES 65
#define X25519_BYTES 32
#define ECDSA_P256_MAX_BYTES 72 /* SEQUENCE of two INTEGERs of up to 33 bytes */

struct provider {
    const OSSL_CORE_HANDLE *handle;
    OSSL_LIB_CTX *inner;
    OSSL_PROVIDER *inner_default;
    EVP_MD *digests[PROVIDER_DIGESTS]; /* fetched once; rows of the table in hash.c */
};

#define provider_error(reason) ERR_raise(ERR_LIB_PROV, (reason))
/* Raises what a status of the queue's means; 0. */
int provider_fail(int status);

/* --- keys ------------------------------------------------------------------------------------ */

struct provider_rsa_key {
    atomic_uint refs;
    struct provider *provider;
    EVP_PKEY *inner;         /* NULL: nothing imported yet */
    struct sp_rsa_key *fast; /* NULL: public, or of a kind that the lanes do not take */
    bool has_public, has_private;
};

struct provider_ec_key {
    atomic_uint refs;
    struct provider *provider;
    bool p256, has_public, has_private;
    /* Scalar and point, as the queue generates them; for P-256 alone. */
    uint8_t material[P256_SCALAR_BYTES + P256_POINT_BYTES];
    /*
     * For P-256 made when needed, by any of the threads that share the key; for other curves it is
     * the key. NULL in a key of no curve yet.
     */
    _Atomic(EVP_PKEY *) inner;
};

struct provider_x25519_key {
    atomic_uint refs;
    struct provider *provider;
    bool has_public, has_private;
    uint8_t material[2 * X25519_BYTES]; /* scalar and u-coordinate */
};

/* One more reference. */
struct provider_rsa_key *provider_rsa_key_ref(struct provider_rsa_key *key);
void provider_rsa_key_free(void *key);
/* Length of the modulus; 0 without one. */
size_t provider_rsa_key_bytes(const struct provider_rsa_key *key);
struct provider_ec_key *provider_ec_key_ref(struct provider_ec_key *key);
void provider_ec_key_free(void *key);
/* The key's own; NULL with an entry in the error queue. */
EVP_PKEY *provider_ec_key_inner(const struct provider_ec_key *key);
struct provider_x25519_key *provider_x25519_key_ref(struct provider_x25519_key *key);
void provider_x25519_key_free(void *key);

/*
 * Whether an uncompressed point (SEC 1, section 2.3.3) is on P-256. For public points: its time
 * depends on them.
 */
bool provider_p256_on_curve(const uint8_t point[P256_POINT_BYTES]);
/* Whether a scalar is in [1, n-1]. */
bool provider_p256_scalar_ok(const uint8_t scalar[P256_SCALAR_BYTES]);
/* Whether a name that OpenSSL knows is P-256's. */
bool provider_p256_is_name(const char *name);
/* Signature r || s as DER; returns its length. */
size_t provider_p256_signature_der(const uint8_t rs[64], uint8_t out[ECDSA_P256_MAX_BYTES]);

/*
 * --- keys of the default provider's (inner.c) --------------------------------------------------
 */

/* The caller's own. `type`: "RSA", "EC". */
EVP_PKEY *provider_inner_import(const struct provider *provider, const char *type, int selection,
                                const OSSL_PARAM *params);
/* A copy with what `selection` names. */
EVP_PKEY *provider_inner_copy(const struct provider *provider, const char *type, EVP_PKEY *inner,
                              int selection);
int provider_inner_validate(const struct provider *provider, EVP_PKEY *inner, int selection,
                            int check_type);
bool provider_inner_match(EVP_PKEY *a, EVP_PKEY *b, int selection);
/* Generates with progress reports. The caller's own. */
EVP_PKEY *provider_inner_generate(EVP_PKEY_CTX *ctx, OSSL_CALLBACK *progress, void *arg);

enum provider_inner_kind { PROVIDER_INNER_SIGN, PROVIDER_INNER_DERIVE, PROVIDER_INNER_DECRYPT };
/*
 * Runs a prepared operation through the queue as SP_OP_CALL; it may pause the job. in[in_len]
 * unused by DERIVE. *out_len: room in out, then the length of the result.
 */
int provider_inner_run(enum provider_inner_kind kind, EVP_PKEY_CTX *ctx, const uint8_t *in,
                       size_t in_len, uint8_t *out, size_t *out_len);
/* OSSL_SIGNATURE_PARAM_ALGORITHM_ID of a signature by `inner` with these parameters, into *out. */
int provider_inner_algorithm_id(const struct provider *provider, EVP_PKEY *inner,
                                const EVP_MD *digest, const OSSL_PARAM *params, OSSL_PARAM *out);

/*
 * --- running operations (async.c) --------------------------------------------------------------
 */

/* To the end, on this thread; the status. */
int provider_run_now(struct sp_op *op);
/* As above outside of a job; within one, it is submitted and the job pauses. */
int provider_run(struct sp_op *op);

/*
 * --- digests (hash.c) --------------------------------------------------------------------------
 */

/* A digest chosen, and perhaps under way. */
struct provider_hash {
    EVP_MD *digest;  /* NULL: none chosen */
    EVP_MD_CTX *ctx; /* NULL: not begun */
};

int provider_digests_init(struct provider *provider);
void provider_digests_release(struct provider *provider);
/* A reference; NULL with an entry in the error queue. */
EVP_MD *provider_digest(const struct provider *provider, const char *name);
/* OpenSSL's classic name, "SHA256", for one of the common digests; NULL for another. */
const char *provider_digest_name(const struct provider *provider, const EVP_MD *digest);

int provider_hash_begin(struct provider_hash *hash);
int provider_hash_update(struct provider_hash *hash, const uint8_t *data, size_t len);
int provider_hash_final(struct provider_hash *hash, uint8_t out[EVP_MAX_MD_SIZE], size_t *out_len);
int provider_hash_copy(struct provider_hash *to, const struct provider_hash *from);
void provider_hash_release(struct provider_hash *hash);

/*
 * --- parameters ----------------------------------------------------------------------------------
 */

/* The text of a parameter; NULL when it is not text. */
const char *provider_param_text(const OSSL_PARAM *p);
/* A number, or one of the names in a table that ends with a NULL name; 0 when it is neither. */
struct provider_name {
    const char *name;
    int value;
};
int provider_param_number(const OSSL_PARAM *p, const struct provider_name *names, int *out);
/* The reverse: as text when the parameter is text. */
int provider_param_answer(OSSL_PARAM *p, const struct provider_name *names, int value);
extern const struct provider_name provider_rsa_paddings[];

/*
 * --- the tables that provider.c offers ----------------------------------------------------------
 */

extern const OSSL_DISPATCH provider_rsa_keymgmt[];
extern const OSSL_DISPATCH provider_ec_keymgmt[];
extern const OSSL_DISPATCH provider_x25519_keymgmt[];
extern const OSSL_DISPATCH provider_ecdh_exchange[];
extern const OSSL_DISPATCH provider_x25519_exchange[];
extern const OSSL_DISPATCH provider_rsa_signature[];
extern const OSSL_DISPATCH provider_ecdsa_signature[];
extern const OSSL_DISPATCH provider_rsa_cipher[];
extern const OSSL_DISPATCH provider_tls13_kdf[];

#endif
