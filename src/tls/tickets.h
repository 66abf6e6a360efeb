/*
 * Keys of stateless session tickets (RFC 5077 section 4's construction), of one listener and all
 * workers.
 */
#ifndef SP_TLS_TICKETS_H
#define SP_TLS_TICKETS_H

#include "base/str.h"

#include <openssl/ssl.h>
#include <pthread.h>

struct tls_ticket_key {
    uint8_t name[16], hmac[32], aes[32];
};

/* A key encrypts for one period and decrypts for two, so that a ticket outlives the rotation. */
struct tls_tickets {
    pthread_rwlock_t lock;
    struct tls_ticket_key current, previous;
    bool has_previous;
    uint64_t rotate_at_s;
    uint64_t period_s;
};

/* SP_EIO when no random bytes could be had. */
int tls_tickets_init(struct tls_tickets *t, unsigned lifetime_s, uint64_t now_s);
void tls_tickets_release(struct tls_tickets *t);

/* The key to encrypt with; rotates first when its time has come. */
void tls_tickets_current(struct tls_tickets *t, uint64_t now_s, struct tls_ticket_key *out);
/* The key of that name: 0 and whether it still encrypts, or SP_ENOENT. */
int tls_tickets_find(struct tls_tickets *t, uint64_t now_s, const uint8_t name[16],
                     struct tls_ticket_key *out, bool *is_current);

/* The callback of a server's SSL_CTX. */
int tls_tickets_callback(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                         EVP_MAC_CTX *mac, int encrypt);

#endif
