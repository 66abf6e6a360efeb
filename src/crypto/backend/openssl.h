/*
 * The scalar backend: one operation at a time by OpenSSL's library, on the calling thread.
 */
#ifndef SP_CRYPTO_BACKEND_OPENSSL_H
#define SP_CRYPTO_BACKEND_OPENSSL_H

#include <sallyport/queue.h>

/* Each runs one operation of its kind (see enum sp_op_kind) and returns its status; SP_ENOMEM besides. */
int openssl_rsa_private(const struct sp_op *op);
int openssl_p256_sign(const struct sp_op *op);
int openssl_p256_keygen(const struct sp_op *op);
int openssl_p256_derive(const struct sp_op *op);
int openssl_x25519_keygen(const struct sp_op *op);
int openssl_x25519_derive(const struct sp_op *op);
int openssl_call(const struct sp_op *op);

#endif
