/*
 * A client's sessions: the last one of a server, for the next connection to it.
 */
#ifndef SP_TLS_SESSION_H
#define SP_TLS_SESSION_H

#include "tls/conn.h"

/* Makes a client's SSL_CTX hand new sessions to the connections' slots. */
void tls_session_attach(SSL_CTX *ctx);

/* Offers the slot's session when it belongs to the same server name. */
void tls_session_offer(struct tls_conn *c, const char *sni);

/* After a resumed handshake: of a renewed ticket of TLS 1.2 the library tells nobody. */
void tls_session_refresh(struct tls_conn *c);

/* After a failed handshake: the session may be to blame. */
void tls_session_drop(struct tls_session_slot *slot);

#endif
