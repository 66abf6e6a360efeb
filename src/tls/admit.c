#include "tls/admit.h"

#include "base/status.h"
#include "tls/cache.h"
#include "tls/context.h"
#include "tls/crypto.h"
#include "tls/tls.h"
#include "tls/worker.h"

#include <openssl/ssl.h>
#include <time.h>

enum {
    RECORD_HANDSHAKE = 22,
    RECORD_HEAD_BYTES = 5,
    MESSAGE_CLIENT_HELLO = 1,
    RANDOM_BYTES = 32,
    EXTENSION_SESSION_TICKET = 35,
    EXTENSION_PRE_SHARED_KEY = 41,
};

/* A cursor that remembers whether it ran over the end. */
struct reader {
    struct str rest;
    bool short_of;
};

static struct str take(struct reader *r, size_t len)
{
    struct str out = str_make(r->rest.ptr, len);

    if (len > r->rest.len) {
        r->short_of = true;
        return STR("");
    }
    r->rest = str_from(r->rest, len);
    return out;
}

static size_t take_number(struct reader *r, unsigned bytes)
{
    struct str s = take(r, bytes);
    size_t value = 0;

    for (size_t i = 0; i < s.len; i++)
        value = value << 8 | (uint8_t)s.ptr[i];
    return value;
}

/* A vector behind its length (RFC 8446 section 3.4). */
static struct str take_vector(struct reader *r, unsigned length_bytes)
{
    return take(r, take_number(r, length_bytes));
}

/* From the session id on. */
static int judge(struct reader *r, struct str *session_id)
{
    struct str id = take_vector(r, 1);
    struct reader extensions;
    bool resumes = false;

    take_vector(r, 2); /* cipher suites */
    take_vector(r, 1); /* compression methods */
    extensions = (struct reader){.rest = r->rest.len ? take_vector(r, 2) : STR("")};
    while (extensions.rest.len && !extensions.short_of) {
        size_t type = take_number(&extensions, 2);
        struct str data = take_vector(&extensions, 2);

        resumes |= type == EXTENSION_PRE_SHARED_KEY || (type == EXTENSION_SESSION_TICKET && data.len);
    }
    if (r->short_of || extensions.short_of)
        return SP_EPROTO;
    *session_id = id;
    return resumes;
}

int tls_hello_may_resume(struct str bytes, struct str *session_id)
{
    struct reader r = {.rest = bytes}, message;
    struct str record;
    size_t type;

    if (bytes.len && (uint8_t)bytes.ptr[0] != RECORD_HANDSHAKE)
        return SP_EPROTO;
    if (bytes.len < RECORD_HEAD_BYTES)
        return SP_EAGAIN;
    take(&r, RECORD_HEAD_BYTES - 2);
    record = take_vector(&r, 2);
    if (r.short_of)
        return SP_EAGAIN;
    message = (struct reader){.rest = record};
    type = take_number(&message, 1);
    message.rest = take_vector(&message, 3);
    take(&message, 2 + RANDOM_BYTES);
    if (type != MESSAGE_CLIENT_HELLO || message.short_of)
        return SP_EPROTO;
    return judge(&message, session_id);
}

static bool is_cached(const struct tls_server_ctx *ctx, struct str id)
{
    struct tls_cache *cache = ctx->profiles[0].cache;

    return id.len && cache && tls_cache_get(cache, id, (uint64_t)time(NULL), NULL, 0) == SP_ETOOBIG;
}

bool tls_server_is_full(const struct tls_worker *w, const struct tls_server_ctx *ctx)
{
    return !ctx->sni->has_cheap_keys && ctx->sni->first && tls_crypto_is_full(w, ctx->sni->first->cert);
}

int tls_server_admit(struct tls_worker *w, const struct tls_server_ctx *ctx, struct io_sock *sock, struct str hello)
{
    /* internal_error, as the library says when it is refused later (RFC 8446 section 6.2) */
    static const uint8_t alert[] = {21, 3, 3, 0, 2, SSL3_AL_FATAL, TLS1_AD_INTERNAL_ERROR};
    struct iovec iov = {(void *)(uintptr_t)alert, sizeof(alert)};
    struct str session_id;
    int status = tls_hello_may_resume(hello, &session_id);

    if (status == SP_EAGAIN)
        return status;
    if (status != 0 || is_cached(ctx, session_id))
        return 0;
    (void)io_sock_sendv(sock, &iov, 1, false);
    tls_worker_count(&w->refused);
    tls_worker_count(&w->failed);
    return SP_EPERM;
}
