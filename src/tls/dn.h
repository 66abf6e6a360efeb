/*
 * Distinguished names as text.
 */
#ifndef SP_TLS_DN_H
#define SP_TLS_DN_H

#include "base/arena.h"

#include <openssl/x509.h>

/*
 * "/C=FR/O=Example/CN=x". SP_ENOENT when the name is empty or a value has a NUL byte inside, which
 * would hide what follows from many readers. SP_ENOMEM.
 */
int tls_dn_text(const X509_NAME *name, struct arena *arena, struct str *out);
int tls_dn_rfc2253(const X509_NAME *name, struct arena *arena, struct str *out);

/*
 * One entry's value, by short name, long name or dotted number; `occurrence` from 1, or -1 from the
 * end.
 */
int tls_dn_entry(const X509_NAME *name, struct str entry, int occurrence, struct arena *arena,
                 struct str *out);

#endif
