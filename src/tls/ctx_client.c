#include "tls/context.h"

#include "base/status.h"

#include <openssl/rand.h>
#include <stdlib.h>

static int build(struct tls_client_ctx *ctx, const struct tls_client_params *p, struct diag *diag)
{
    const char *path;

    ctx->reuse = !p->no_reuse;
    if (p->verify_host && !(ctx->verify_host = strdup(p->verify_host))) {
        diag_error(diag, p->loc, "unable to set up TLS: out of memory");
        return SP_ENOMEM;
    }
    if (p->crt) {
        path = tls_store_path(ctx->store, p->crt_base, p->crt);
        ctx->cert = path ? tls_store_cert(ctx->store, path, NULL, p->loc, diag) : NULL;
        if (!ctx->cert)
            return SP_EINVAL;
    }
    if (tls_profile_from_client(&ctx->profile, ctx->store, p, diag) != 0)
        return SP_EINVAL;
    return tls_profile_check(&ctx->profile, ctx->store, ctx->cert, diag);
}

struct tls_client_ctx *tls_client_ctx_new(struct tls_store *store,
                                          const struct tls_client_params *p, struct diag *diag)
{
    struct tls_client_ctx *ctx = calloc(1, sizeof(*ctx));

    if (!ctx || RAND_bytes(ctx->id, sizeof(ctx->id)) != 1) {
        diag_error(diag, p->loc, "unable to set up TLS: no memory or no random bytes");
        free(ctx);
        return NULL;
    }
    ctx->store = tls_store_ref(store);
    if (build(ctx, p, diag) == 0)
        return ctx;
    tls_client_ctx_free(ctx);
    return NULL;
}

void tls_client_ctx_free(struct tls_client_ctx *ctx)
{
    if (!ctx)
        return;
    tls_profile_release(&ctx->profile);
    free(ctx->verify_host);
    tls_store_free(ctx->store);
    free(ctx);
}
