/*
 * crt-list files: `FILE [options] filters…`, one certificate a line.
 */
#ifndef SP_TLS_CRT_LIST_H
#define SP_TLS_CRT_LIST_H

#include "tls/sni.h"

/*
 * Reads a list and hands each line's certificates to the index. Every problem is reported with the
 * list's file and line; SP_EINVAL when there was one.
 */
int tls_crt_list_load(struct tls_store *store, struct tls_sni *sni,
                      const struct tls_server_params *p, const char *path, struct cfg_loc loc,
                      struct diag *diag);

/*
 * "TLSv1.2" and the like; TLS_VERSION_ANY when it is none of them.
 */
enum tls_version tls_version_parse(struct str s);

#endif
