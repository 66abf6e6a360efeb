/*
 * A server's part in the handshake: which certificate and settings a client gets.
 */
#ifndef SP_TLS_HELLO_H
#define SP_TLS_HELLO_H

#include "tls/context.h"

/* Sets the callbacks of a server's library context; `profile` is its index in `ctx`. */
void tls_hello_attach(SSL_CTX *ssl, const struct tls_server_ctx *ctx, size_t profile);

#endif
