#include "tls/tickets.h"

#include "base/status.h"
#include "tls/conn.h"
#include "tls/context.h"
#include "tls/worker.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <time.h>

#define PERIOD_LEAST_S 3600

int tls_tickets_init(struct tls_tickets *t, unsigned lifetime_s, uint64_t now_s)
{
    *t = (struct tls_tickets){0};
    t->period_s = lifetime_s > PERIOD_LEAST_S ? lifetime_s : PERIOD_LEAST_S;
    t->rotate_at_s = now_s + t->period_s;
    if (RAND_priv_bytes((unsigned char *)&t->current, sizeof(t->current)) != 1)
        return SP_EIO;
    return pthread_rwlock_init(&t->lock, NULL) == 0 ? 0 : SP_ENOMEM;
}

void tls_tickets_release(struct tls_tickets *t)
{
    OPENSSL_cleanse(&t->current, sizeof(t->current));
    OPENSSL_cleanse(&t->previous, sizeof(t->previous));
    pthread_rwlock_destroy(&t->lock);
}

static void rotate(struct tls_tickets *t, uint64_t now_s)
{
    struct tls_ticket_key fresh;

    pthread_rwlock_wrlock(&t->lock);
    /* Another worker may have been first. Without random bytes the old key serves on. */
    if (now_s >= t->rotate_at_s && RAND_priv_bytes((unsigned char *)&fresh, sizeof(fresh)) == 1) {
        /* After a long pause even the current key is too old to be kept. */
        t->has_previous = now_s < t->rotate_at_s + t->period_s;
        t->previous = t->current;
        t->current = fresh;
        t->rotate_at_s = now_s + t->period_s;
        OPENSSL_cleanse(&fresh, sizeof(fresh));
        if (!t->has_previous)
            OPENSSL_cleanse(&t->previous, sizeof(t->previous));
    }
    pthread_rwlock_unlock(&t->lock);
}

/* Takes the lock for reading, with the keys up to date. */
static void lock_fresh(struct tls_tickets *t, uint64_t now_s)
{
    pthread_rwlock_rdlock(&t->lock);
    if (now_s < t->rotate_at_s)
        return;
    pthread_rwlock_unlock(&t->lock);
    rotate(t, now_s);
    pthread_rwlock_rdlock(&t->lock);
}

void tls_tickets_current(struct tls_tickets *t, uint64_t now_s, struct tls_ticket_key *out)
{
    lock_fresh(t, now_s);
    *out = t->current;
    pthread_rwlock_unlock(&t->lock);
}

int tls_tickets_find(struct tls_tickets *t, uint64_t now_s, const uint8_t name[16],
                     struct tls_ticket_key *out, bool *is_current)
{
    int status = 0;

    lock_fresh(t, now_s);
    if (memcmp(name, t->current.name, sizeof(t->current.name)) == 0) {
        *out = t->current;
        *is_current = true;
    } else if (t->has_previous && memcmp(name, t->previous.name, sizeof(t->previous.name)) == 0) {
        *out = t->previous;
        *is_current = false;
    } else {
        status = SP_ENOENT;
    }
    pthread_rwlock_unlock(&t->lock);
    return status;
}

static bool set_keys(struct tls_worker *w, const struct tls_ticket_key *key,
                     const unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int encrypt)
{
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)key->hmac, sizeof(key->hmac)),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };

    return EVP_CipherInit_ex2(cipher, w->ticket_cipher, key->aes, iv, encrypt, NULL) == 1 &&
           EVP_MAC_CTX_set_params(mac, params) == 1;
}

int tls_tickets_callback(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                         EVP_MAC_CTX *mac, int encrypt)
{
    struct tls_conn *c = SSL_get_app_data(ssl);
    struct tls_tickets *t = &c->server_ctx->tickets;
    uint64_t now_s = (uint64_t)time(NULL);
    struct tls_ticket_key key;
    bool is_current = true, ok;

    if (encrypt) {
        tls_tickets_current(t, now_s, &key);
        memcpy(name, key.name, sizeof(key.name));
        if (RAND_bytes(iv, EVP_CIPHER_get_iv_length(c->worker->ticket_cipher)) != 1) {
            OPENSSL_cleanse(&key, sizeof(key));
            return -1;
        }
    } else if (tls_tickets_find(t, now_s, name, &key, &is_current) != 0) {
        return 0;
    }
    ok = set_keys(c->worker, &key, iv, cipher, mac, encrypt);
    OPENSSL_cleanse(&key, sizeof(key));
    if (!ok)
        return -1;
    /*
     * Clients of TLS 1.3 use a ticket once (RFC 8446 appendix C.4): without a new one their next
     * connection would be a full handshake. Clients of TLS 1.2 keep theirs, until its key is about
     * to go.
     */
    return !encrypt && (!is_current || SSL_version(ssl) >= TLS1_3_VERSION) ? 2 : 1;
}
