/*
 * From what a bind line names to certificates: one file, the bundle that stands beside, a whole
 * folder.
 */
#ifndef SP_TLS_SOURCES_H
#define SP_TLS_SOURCES_H

#include "tls/sni.h"

/* How a certificate of a file is offered. */
struct tls_offer {
    const struct tls_list_options *options;
    const struct str *names; /* filters of a crt-list line */
    size_t name_count;
    const char *key_path;
    bool is_default;
    bool on_bind; /* a bind line's first bundle is its default with all its parts */
};

/*
 * Loads FILE, or FILE.rsa, FILE.ecdsa and FILE.dsa when there is no FILE, into the index. SP_EINVAL
 * after a diagnostic.
 */
int tls_source_file(struct tls_store *store, struct tls_sni *sni, const char *path,
                    const struct tls_offer *offer, struct cfg_loc loc, struct diag *diag);

#endif
