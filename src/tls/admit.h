/*
 * Turning new connections away before the TLS library hears of them: while too many handshakes wait for private-key
 * operations, all that a refusal needs is a look at the ClientHello.
 */
#ifndef SP_TLS_ADMIT_H
#define SP_TLS_ADMIT_H

#include "base/str.h"

/*
 * Whether a ClientHello (RFC 8446 section 4.1.2) may resume a session, so that its handshake needs no private key.
 * `bytes`: what a client sent first. 1: it has a pre-shared key or a ticket (RFC 5077); 0: neither, but *session_id, in
 * `bytes`, may name a session that we keep (often it is random and names none, appendix D.4); SP_EAGAIN: not all of it is
 * there; SP_EPROTO: it is none, or comes in several records: for the library to judge.
 */
int tls_hello_may_resume(struct str bytes, struct str *session_id);

#endif
