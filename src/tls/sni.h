/*
 * Which certificates a listener offers, under which names, and which of them a client gets.
 */
#ifndef SP_TLS_SNI_H
#define SP_TLS_SNI_H

#include "tls/store.h"

/*
 * The brackets of a crt-list line: what differs from the bind line. Equal brackets of a list share
 * one.
 */
struct tls_list_options {
    struct str text; /* as written, for finding equals */
    struct cfg_loc loc;
    size_t index; /* 1…: 0 stands for the bind line's own settings */
    const char *alpn;
    bool no_alpn, no_ca_names, allow_0rtt;
    bool has_verify;
    enum tls_verify verify;
    const char *ca_file, *ca_verify_file, *crl_file;
    const char *ciphers, *ciphersuites, *curves, *sigalgs, *client_sigalgs;
    enum tls_version min_version, max_version;
    const char *key; /* private key of the line's certificate */
};

/* One certificate under some names. */
struct tls_entry {
    const struct tls_cert *cert;
    const struct tls_list_options *options; /* NULL: none */
    struct str *except;                     /* names that its wildcards do not cover */
    size_t except_count;
};

struct sni_node {
    struct sni_node *next;
    const struct tls_entry *entry;
};

/* Entries of one name, in the order of the configuration. */
struct sni_name {
    struct sni_node *first, *last;
};

/* Shared by all binds that name the same sources; lives in the store. */
struct tls_sni {
    struct map exact; /* "www.example.com" */
    struct map wild;  /* ".example.com" for "*.example.com" */
    struct sni_name defaults;
    const struct tls_entry *first; /* NULL: no certificate at all */
    const struct tls_list_options **options;
    size_t option_count, entry_count;
    bool has_cheap_keys; /* a certificate whose key is not RSA */
};

/* What a client can verify and negotiate. */
struct tls_client_abilities {
    bool rsa, ecdsa;
};

/*
 * The list for a bind's sources: files, bundles, folders, crt-lists. NULL after diagnostics. An
 * empty result is not an error here.
 */
struct tls_sni *tls_sni_load(struct tls_store *store, const struct tls_server_params *p,
                             struct diag *diag);
void tls_sni_free(struct tls_sni *sni);

/*
 * Adds a certificate under `names`: a leading '!' excludes, "*" makes it a default, none: the
 * certificate's own names. SP_ENOMEM.
 */
int tls_sni_add(struct tls_store *store, struct tls_sni *sni, const struct tls_cert *cert,
                const struct tls_list_options *options, const struct str *names, size_t count);
int tls_sni_add_default(struct tls_store *store, struct tls_sni *sni,
                        const struct tls_entry *entry);

/*
 * The entry for a name (any case; empty: no name was sent). *by_name tells a match from the
 * fallback to a default certificate, which happens unless `strict`. NULL: nothing to offer.
 */
const struct tls_entry *tls_sni_choose(const struct tls_sni *sni, struct str name,
                                       const struct tls_client_abilities *able, bool strict,
                                       bool *by_name);

#endif
