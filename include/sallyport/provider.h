/*
 * The OpenSSL provider: private-key operations of libssl and of every other user of EVP go to the
 * crypto queue.
 *
 * It provides RSA, EC and X25519 keys, and signatures, key exchange and RSA decryption with them,
 * and TLS 1.3's key schedule, without the default provider's contexts around each derivation.
 * What the queue's lanes do not take - other curves, other sizes, verification, encryption - is
 * done by OpenSSL's default provider in a library context of the provider's own. Everything else
 * (ciphers, digests, encoders, Ed25519) is not provided here at all, so a default provider has to
 * stand beside it and the properties have to prefer this one:
 *
 *     OSSL_PROVIDER_add_builtin(libctx, "sallyport", sp_provider_init);
 *     OSSL_PROVIDER_load(libctx, "default");
 *     OSSL_PROVIDER_load(libctx, "sallyport");
 *     EVP_set_default_properties(libctx, "?provider=sallyport");  before any key or SSL_CTX is made
 *
 * Both are unloaded before OSSL_LIB_CTX_free, which otherwise leaks them.
 *
 * --- operations of many connections at a time ---
 *
 * Outside of an ASYNC_JOB an operation runs on the calling thread to its end (sp_queue_run). Within
 * one (SSL_MODE_ASYNC), RSA private operations, key agreements, and signatures on curves other than
 * P-256 are submitted to the thread's queue and the job pauses. Key generation and P-256 signatures
 * never pause: they are answered from what the queue has prepared, or computed at once. An
 * operation that submit refuses (the bound is reached) runs at once.
 *
 * The thread's queue is sp_queue_current(). A thread that has none gets one of the provider's own,
 * freed when the thread exits; it has no loop, so whoever resumes a job runs what has gathered.
 *
 * With a loop, and with callbacks (SSL_set_async_callback; ASYNC_WAIT_CTX_set_callback):
 *
 *     SSL_set_mode(ssl, SSL_MODE_ASYNC);
 *     SSL_set_async_callback(ssl, ready);         both before the first call that may pause
 *     SSL_set_async_callback_arg(ssl, conn);
 *
 *     SSL_do_handshake(ssl)                  -1, SSL_get_error: SSL_ERROR_WANT_ASYNC: the job has paused
 *     sp_queue_flush(queue, ...)             when the loop has nothing else to do
 *     n = sp_queue_poll(queue, ops, max)
 *     sp_provider_complete(ops[i])           calls ready(ssl, conn), which marks the connection as ready
 *     SSL_do_handshake(ssl)                  goes on behind the operation; it may pause again
 *
 * `ready` is called on the thread that polls, and must not itself call into the SSL: it may run
 * inside of another connection's job. Resuming a job before its time is allowed and only costs; it
 * pauses again. A job belongs to the thread that started it until it finishes: it must not be
 * resumed on another one. Nobody else may submit operations to a queue that is a provider's while
 * jobs are paused: the provider may poll it, and takes what it polls for its own.
 *
 * Without a callback (openssl speed -async_jobs, other servers) the wait context gets a descriptor,
 * one for the context's life, that is always readable; a job that is resumed before its operation
 * is done flushes the queue and polls it. Until then, all the others have been able to submit
 * theirs.
 *
 * --- a connection that ends in mid-operation ---
 *
 * SSL_free does not finish a paused job: its stack would leak, with everything on it, and the queue
 * would hold operations whose callback argument is gone. The job has to be resumed once more and
 * told to give up:
 *
 *     sp_provider_set_abandoning(true);
 *     n = SSL_do_handshake(ssl);             or whatever call paused; never with data that still matters
 *     sp_provider_set_abandoning(false);
 *     if (n < 0 && SSL_get_error(ssl, n) == SSL_ERROR_WANT_ASYNC)
 *         the queue still has it: keep the connection. `ready` will be called; then do the same again.
 *     else
 *         SSL_free(ssl) is safe, and `ready` will not be called any more.
 *
 * While it is set on a thread, provider functions withdraw the operation that they wait for and
 * fail, and begin no new one that could pause. The queue keeps the operation when a crypto thread
 * is at it, or when it is finished but has not been polled back: the following polls return it.
 * Before the queue is freed the loop polls until sp_queue_in_flight() is 0, completing what it
 * polls, and goes through its list of such connections once more.
 *
 * While an operation is in flight, its memory is the job's stack or belongs to objects that the
 * stack holds. So even a job that is leaked (SSL_free without the above) leaves nothing dangling
 * within the queue; only `ready` would be called with what it was given.
 */
#ifndef SALLYPORT_PROVIDER_H
#define SALLYPORT_PROVIDER_H

#include <sallyport/queue.h>

#include <openssl/core.h>
#include <openssl/types.h>

#include <stdbool.h>

/*
 * To be given to OSSL_PROVIDER_add_builtin. The module sallyport.so exports it as
 * OSSL_provider_init.
 */
OSSL_provider_init_fn sp_provider_init;

/*
 * The same key as this provider's own, in a context where it is preferred; the caller's, as `key`
 * stays. What the decoders read is a key of the default provider's, and libcrypto looks for its
 * copy here in each operation, which costs more than a P-256 signature. Keys of types that are not
 * provided here come back as they are. NULL with an entry in the error queue.
 */
EVP_PKEY *sp_provider_adopt(OSSL_LIB_CTX *libctx, EVP_PKEY *key);

/*
 * An operation of the provider's that sp_queue_poll has returned: its job may go on, and its
 * callback is called.
 */
void sp_provider_complete(struct sp_op *op);

/* See above. For this thread. */
void sp_provider_set_abandoning(bool abandoning);

/*
 * The queue that operations of this thread go to: the current one, or the provider's own; NULL: no
 * memory.
 */
struct sp_queue *sp_provider_queue(void);

#endif
