#include "tls/context.h"

#include "base/status.h"
#include "tls/cache.h"

#include <openssl/rand.h>
#include <string.h>
#include <time.h>

/*
 * So many certificates are decoded completely when they are loaded; beyond, their structure and
 * keys are checked.
 */
#define FULL_CHECKS 512

/* The bind line's parameters with a crt-list line's brackets on top. */
static struct tls_server_params overlay(const struct tls_server_params *p,
                                        const struct tls_list_options *o)
{
    struct tls_server_params out = *p;

    out.loc = o->loc;
    if (o->alpn || o->no_alpn)
        out.alpn = o->no_alpn && !o->alpn ? NULL : o->alpn;
    if (o->has_verify)
        out.verify = o->verify;
    if (o->ca_file)
        out.ca_file = o->ca_file;
    if (o->ca_verify_file)
        out.ca_verify_file = o->ca_verify_file;
    if (o->crl_file)
        out.crl_file = o->crl_file;
    if (o->ciphers)
        out.ciphers = o->ciphers;
    if (o->ciphersuites)
        out.ciphersuites = o->ciphersuites;
    if (o->curves)
        out.curves = o->curves;
    if (o->sigalgs)
        out.sigalgs = o->sigalgs;
    if (o->client_sigalgs)
        out.client_sigalgs = o->client_sigalgs;
    if (o->min_version != TLS_VERSION_ANY)
        out.min_version = o->min_version;
    if (o->max_version != TLS_VERSION_ANY)
        out.max_version = o->max_version;
    out.no_ca_names |= o->no_ca_names;
    out.allow_0rtt |= o->allow_0rtt;
    return out;
}

/*
 * Sessions of one set of settings are worth nothing under another, which may ask for more: their
 * contexts differ by the last bytes.
 */
static void name_sessions(struct tls_profile *profile, const uint8_t *id, uint32_t index)
{
    memcpy(profile->session_context, id, TLS_CTX_ID_BYTES);
    memcpy(profile->session_context + TLS_CTX_ID_BYTES, &index, sizeof(index));
}

static int make_profiles(struct tls_server_ctx *ctx, const struct tls_server_params *p,
                         struct diag *diag)
{
    const struct tls_sni *sni = ctx->sni;
    int status = 0;

    ctx->profile_count = sni->option_count + 1;
    ctx->profiles = calloc(ctx->profile_count, sizeof(*ctx->profiles));
    if (!ctx->profiles) {
        diag_error(diag, p->loc, "unable to set up TLS: out of memory");
        return SP_ENOMEM;
    }
    for (size_t i = 0; i < ctx->profile_count; i++) {
        struct tls_profile *profile = &ctx->profiles[i];
        struct tls_server_params own = i ? overlay(p, sni->options[i - 1]) : *p;

        if (tls_profile_from_server(profile, ctx->store, &own, diag) != 0 ||
            tls_profile_check(profile, ctx->store, NULL, diag) != 0)
            status = SP_EINVAL;
        name_sessions(profile, ctx->id, (uint32_t)i);
    }
    return status;
}

/*
 * Certificates of a small configuration are tried in full; those of a large one when they are asked
 * for.
 */
static int check_certs(struct tls_server_ctx *ctx, struct diag *diag)
{
    const struct tls_sni *sni = ctx->sni;
    struct tls_store *store = ctx->store;
    const struct tls_entry *entry = sni->defaults.first ? sni->defaults.first->entry : sni->first;
    int status = 0;

    for (size_t i = 0; i < store->cert_count && store->cert_count <= FULL_CHECKS; i++) {
        if (store->all[i]->checked)
            continue;
        store->all[i]->checked = true;
        if (tls_profile_check(&ctx->profiles[0], store, store->all[i], diag) != 0)
            status = SP_EINVAL;
    }
    if (status != 0 || !entry || entry->cert->checked)
        return status;
    store->all[entry->cert->index]->checked = true;
    return tls_profile_check(tls_entry_profile(ctx, entry), store, entry->cert, diag);
}

static int build(struct tls_server_ctx *ctx, const struct tls_server_params *p, struct diag *diag)
{
    ctx->strict_sni = p->strict_sni;
    ctx->sni = tls_sni_load(ctx->store, p, diag);
    if (!ctx->sni)
        return SP_EINVAL;
    if (!ctx->sni->first && !p->strict_sni) {
        diag_error(diag, p->loc,
                   "no certificate for a 'bind' with 'ssl': 'crt' or 'crt-list' is expected, "
                   "naming at least one (or 'strict-sni')");
        return SP_EINVAL;
    }
    ctx->single = ctx->sni->entry_count == 1 && ctx->sni->defaults.first && !p->strict_sni;
    if (p->cache_entries && !ctx->store->cache) {
        ctx->store->cache = tls_cache_new(p->cache_entries);
        if (!ctx->store->cache) {
            diag_error(diag, p->loc, "unable to set up the session cache: out of memory");
            return SP_ENOMEM;
        }
    }
    if (make_profiles(ctx, p, diag) != 0)
        return SP_EINVAL;
    return check_certs(ctx, diag);
}

struct tls_server_ctx *tls_server_ctx_new(struct tls_store *store,
                                          const struct tls_server_params *p, struct diag *diag)
{
    struct tls_server_ctx *ctx = calloc(1, sizeof(*ctx));

    if (!ctx || RAND_bytes(ctx->id, sizeof(ctx->id)) != 1 ||
        tls_tickets_init(&ctx->tickets, p->session_lifetime_s, (uint64_t)time(NULL)) != 0) {
        diag_error(diag, p->loc, "unable to set up TLS: no memory or no random bytes");
        free(ctx);
        return NULL;
    }
    ctx->store = tls_store_ref(store);
    if (build(ctx, p, diag) == 0)
        return ctx;
    tls_server_ctx_free(ctx);
    return NULL;
}

void tls_server_ctx_free(struct tls_server_ctx *ctx)
{
    if (!ctx)
        return;
    for (size_t i = 0; ctx->profiles && i < ctx->profile_count; i++)
        tls_profile_release(&ctx->profiles[i]);
    free(ctx->profiles);
    tls_tickets_release(&ctx->tickets);
    tls_store_free(ctx->store);
    free(ctx);
}
