#include "tls/session.h"

#include <stdlib.h>

struct tls_session_slot {
    SSL_SESSION *session;
    char *name; /* server name that it was made with; NULL: none */
};

struct tls_session_slot *tls_session_slot_new(void)
{
    return calloc(1, sizeof(struct tls_session_slot));
}

void tls_session_drop(struct tls_session_slot *slot)
{
    SSL_SESSION_free(slot->session);
    slot->session = NULL;
}

void tls_session_slot_free(struct tls_session_slot *slot)
{
    if (!slot)
        return;
    tls_session_drop(slot);
    free(slot->name);
    free(slot);
}

static bool same_name(const char *a, const char *b)
{
    return a && b ? strcasecmp(a, b) == 0 : a == b;
}

/* Takes the session over by answering 1. */
static int on_new(SSL *ssl, SSL_SESSION *session)
{
    const struct tls_conn *c = SSL_get_app_data(ssl);
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    struct tls_session_slot *slot = c->slot;

    if (!slot)
        return 0;
    if (!same_name(slot->name, name)) {
        char *copy = name ? strdup(name) : NULL;

        if (name && !copy)
            return 0;
        free(slot->name);
        slot->name = copy;
    }
    tls_session_drop(slot);
    slot->session = session;
    return 1;
}

void tls_session_attach(SSL_CTX *ctx)
{
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, on_new);
}

void tls_session_offer(struct tls_conn *c, const char *sni)
{
    const struct tls_session_slot *slot = c->slot;

    if (slot && slot->session && same_name(slot->name, sni) &&
        SSL_SESSION_is_resumable(slot->session))
        c->offered_session = SSL_set_session(c->ssl, slot->session) == 1;
}

void tls_session_refresh(struct tls_conn *c)
{
    struct tls_session_slot *slot = c->slot;

    if (!slot || !slot->session || SSL_version(c->ssl) >= TLS1_3_VERSION ||
        SSL_get_session(c->ssl) == slot->session)
        return;
    tls_session_drop(slot);
    slot->session = SSL_get1_session(c->ssl);
}
