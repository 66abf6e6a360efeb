/*
 * Samples that the proxy answers to rules: makers, and the facts of the process
 * that sessions and health checks tell alike.
 */
#ifndef SP_PROXY_SAMPLE_H
#define SP_PROXY_SAMPLE_H

#include "proxy/proxy.h"

static inline bool put_bool(struct sample *out, bool value)
{
    out->type = SAMPLE_BOOL;
    out->u.b = value;
    return true;
}

static inline bool put_int(struct sample *out, int64_t value)
{
    out->type = SAMPLE_INT;
    out->u.i = value;
    return true;
}

/* False for a slice without memory: the fact does not exist. */
static inline bool put_str(struct sample *out, struct str value)
{
    if (!value.ptr)
        return false;
    out->type = SAMPLE_STR;
    out->u.s = value;
    return true;
}

static inline bool put_bin(struct sample *out, struct str value)
{
    if (!value.ptr)
        return false;
    out->type = SAMPLE_BIN;
    out->u.s = value;
    return true;
}

/* False for addresses that are not IP. */
static inline bool put_host(struct sample *out, const struct addr *a)
{
    if (a->u.sa.sa_family != AF_INET && a->u.sa.sa_family != AF_INET6)
        return false;
    out->type = SAMPLE_ADDR;
    out->u.a = *a;
    return true;
}

/* RULES_PID, RULES_NBTHREAD and the other facts of the process, as seen by `w`. False for other items. */
bool process_item(const struct worker *w, enum rules_item item, struct sample *out);

#endif
