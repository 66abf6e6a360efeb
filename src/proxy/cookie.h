/*
 * Persistence cookies: "cookie NAME insert|rewrite|prefix …" of a backend.
 */
#ifndef SP_PROXY_COOKIE_H
#define SP_PROXY_COOKIE_H

#include "proxy/proxy.h"

/* Third and fourth letters of the termination state (%tsc). */
struct cookie_state {
    struct server *server; /* the one that use-server or the client's cookie names; NULL: none, unknown or not reachable */
    char request;          /* 'N' no cookie, 'I' invalid, 'D' designated a down server, 'V' valid, 'E' expired, 'O' old, 'U' unused, '-' */
    char response;         /* 'N' nothing, 'I' inserted, 'U' updated, 'P' passed, 'R' rewritten, 'D' deleted, '-' */
    bool found;
    int64_t last_s, first_s; /* dates in the cookie (maxidle, maxlife), seconds since 1970; 0: none */
};

/*
 * Looks for the backend's cookie in the request; with "indirect" (insert) or "prefix" removes it or its prefix
 * from what the server will see. Changes req's Cookie fields in its arena. `assigned` is the server that a use-server
 * rule chose, which no cookie overrides; NULL otherwise. Sets all of *st. 0 or SP_ENOMEM.
 */
int cookie_parse_request(const struct proxy *backend, struct http_msg *req, struct server *assigned, uint64_t wall_us,
                         struct cookie_state *st);

/*
 * Adds, rewrites or removes the cookie in the final response of `chosen`; Cache-Control with nocache. 0 or SP_ENOMEM;
 * SP_EINVAL when a configured text cannot stand in a header field.
 */
int cookie_write_response(const struct proxy *backend, const struct server *chosen, const struct http_msg *req,
                          struct http_msg *res, uint64_t wall_us, struct cookie_state *st);

#endif
