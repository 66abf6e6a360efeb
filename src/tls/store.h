/*
 * What the contexts of one configuration share: certificates by path, lists of
 * certificates with their names, trusted authorities, the session cache.
 *
 * The store is filled while the configuration is read, by one thread, and only
 * read afterwards; counts and the session cache take care of themselves.
 */
#ifndef SP_TLS_STORE_H
#define SP_TLS_STORE_H

#include "base/map.h"
#include "tls/tls.h"

#include <stdatomic.h>

struct tls_cache;

/* Encoded bytes in the store's arena; chain certificates of the same content are one blob. */
struct tls_blob {
    uint8_t *data;
    size_t len;
};

enum tls_key_kind { TLS_KEY_ECDSA, TLS_KEY_RSA, TLS_KEY_DSA, TLS_KEY_OTHER, TLS_KEY_KINDS };

/* One certificate with its key and chain, still encoded: a worker decodes what it is asked for. */
struct tls_cert {
    const char *path;
    size_t index; /* in the store */
    struct tls_blob der, key, dh;
    int key_type; /* EVP_PKEY_… of the key, EVP_PKEY_NONE to find out */
    enum tls_key_kind kind;
    unsigned key_bits;
    const struct tls_blob **chain; /* issuers, in the order of the file */
    size_t chain_count;
    struct str *names; /* lower case */
    size_t name_count;
    int64_t not_before_s, not_after_s;
    bool checked; /* decoded once in full while the configuration was read */
};

struct tls_store {
    atomic_uint references;
    uint64_t id; /* random: tells the stores of one process apart */
    struct arena arena;
    struct map certs;   /* path [NUL key path] -> struct tls_cert */
    struct map chain;   /* encoded certificate -> struct tls_blob */
    struct map lists;   /* sources -> struct tls_sni */
    struct map trusts;  /* files -> struct tls_trust */
    struct map checked; /* settings that the library has accepted */
    struct tls_cert **all;
    size_t cert_count, cert_room;
    struct tls_cache *cache;
};

struct tls_store *tls_store_ref(struct tls_store *store);

/*
 * The certificate of a PEM file, loaded at most once. `key_path` NULL: the key is in the file
 * itself or in PATH.key. NULL after a diagnostic at `loc`.
 */
struct tls_cert *tls_store_cert(struct tls_store *store, const char *path, const char *key_path,
                                struct cfg_loc loc, struct diag *diag);

/*
 * `path` below `base` unless it is absolute or there is no base; in the store's arena, NULL when
 * out of memory.
 */
const char *tls_store_path(struct tls_store *store, const char *base, const char *path);

/* A whole file in memory from malloc (not terminated); 0, SP_EIO with errno, SP_ENOMEM. */
int tls_read_file(const char *path, char **data, size_t *len);

#endif
