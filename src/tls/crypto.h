/*
 * A worker's crypto queue, and the handshakes that wait for it.
 *
 * The handshake runs as an ASYNC_JOB; where it reaches a private-key operation, the provider submits that to the queue
 * and the job pauses. At the end of the loop's turn the queue is flushed and polled, and the connections whose operations
 * are done are told by their sockets' on_event.
 */
#ifndef SP_TLS_CRYPTO_H
#define SP_TLS_CRYPTO_H

#include "tls/conn.h"
#include "tls/worker.h"

struct tls_crypto;

/*
 * The queue, and the provider in the worker's library context. SP_ENOMEM; SP_EUNSUPPORTED: a required backend does not run
 * here, or the provider cannot be loaded.
 */
int tls_crypto_new(struct tls_worker *w, const struct tls_crypto_options *options);
void tls_crypto_free(struct tls_worker *w); /* before the library context */
void tls_crypto_start(struct tls_crypto *crypto);
void tls_crypto_stop(struct tls_crypto *crypto);
/* NULL: a foreign provider runs instead. */
const struct sp_queue *tls_crypto_queue(const struct tls_crypto *crypto);

/* The connection's handshake may pause; no more. */
void tls_crypto_attach(struct tls_conn *c);
void tls_crypto_detach(struct tls_conn *c);
/* False while the operation of a paused handshake is not done. */
bool tls_crypto_may_resume(struct tls_conn *c);
/* Ends a paused handshake: true, the connection may be freed; false, the worker does it when the operation is back. */
bool tls_crypto_abandon(struct tls_conn *c);
/* The identity with its key in the provider's own form: what signs most often looks for it least. NULL stays NULL. */
struct tls_identity *tls_crypto_adopt(const struct tls_worker *w, struct tls_identity *identity);
/* True when a further operation of a full handshake with that kind of key would wait too long. */
bool tls_crypto_is_full(const struct tls_worker *w, const struct tls_cert *cert);

#endif
