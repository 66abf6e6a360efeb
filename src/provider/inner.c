#include "provider/internal.h"

#include <pthread.h>

EVP_PKEY *provider_inner_import(const struct provider *provider, const char *type, int selection,
                                const OSSL_PARAM *params)
{
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(provider->inner, type, NULL);
    EVP_PKEY *inner = NULL;

    /* The parameters are only read, whatever the prototype says. */
    if (ctx && EVP_PKEY_fromdata_init(ctx) > 0 &&
        EVP_PKEY_fromdata(ctx, &inner, selection, (OSSL_PARAM *)params) <= 0)
        inner = NULL;
    EVP_PKEY_CTX_free(ctx);
    return inner;
}

EVP_PKEY *provider_inner_copy(const struct provider *provider, const char *type, EVP_PKEY *inner,
                              int selection)
{
    OSSL_PARAM *params = NULL;
    EVP_PKEY *copy;

    if ((selection & OSSL_KEYMGMT_SELECT_ALL) == OSSL_KEYMGMT_SELECT_ALL)
        return EVP_PKEY_dup(inner);
    if (EVP_PKEY_todata(inner, selection, &params) <= 0)
        return NULL;
    copy = provider_inner_import(provider, type, selection, params);
    OSSL_PARAM_free(params);
    return copy;
}

int provider_inner_validate(const struct provider *provider, EVP_PKEY *inner, int selection,
                            int check_type)
{
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(provider->inner, inner, NULL);
    bool quick = check_type == OSSL_KEYMGMT_VALIDATE_QUICK_CHECK;
    bool pair = (selection & OSSL_KEYMGMT_SELECT_KEYPAIR) == OSSL_KEYMGMT_SELECT_KEYPAIR;
    bool ok = ctx != NULL;

    if (ok && pair && (selection & OSSL_KEYMGMT_SELECT_ALL_PARAMETERS))
        ok = EVP_PKEY_check(ctx) > 0;
    else if (ok && pair)
        ok = EVP_PKEY_pairwise_check(ctx) > 0;
    else {
        if (ok && (selection & OSSL_KEYMGMT_SELECT_ALL_PARAMETERS))
            ok = (quick ? EVP_PKEY_param_check_quick(ctx) : EVP_PKEY_param_check(ctx)) > 0;
        if (ok && (selection & OSSL_KEYMGMT_SELECT_PUBLIC_KEY))
            ok = (quick ? EVP_PKEY_public_check_quick(ctx) : EVP_PKEY_public_check(ctx)) > 0;
        if (ok && (selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY))
            ok = EVP_PKEY_private_check(ctx) > 0;
    }
    EVP_PKEY_CTX_free(ctx);
    return ok;
}

bool provider_inner_match(EVP_PKEY *a, EVP_PKEY *b, int selection)
{
    if (selection & OSSL_KEYMGMT_SELECT_KEYPAIR)
        return EVP_PKEY_eq(a, b) == 1;
    return !(selection & OSSL_KEYMGMT_SELECT_DOMAIN_PARAMETERS) ||
           EVP_PKEY_parameters_eq(a, b) == 1;
}

/*
 * --- generating ---------------------------------------------------------------------------------
 */

struct progress {
    OSSL_CALLBACK *callback;
    void *arg;
};

static int report(EVP_PKEY_CTX *ctx)
{
    const struct progress *to = EVP_PKEY_CTX_get_app_data(ctx);
    int potential = EVP_PKEY_CTX_get_keygen_info(ctx, 0);
    int iteration = EVP_PKEY_CTX_get_keygen_info(ctx, 1);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_int(OSSL_GEN_PARAM_POTENTIAL, &potential),
        OSSL_PARAM_construct_int(OSSL_GEN_PARAM_ITERATION, &iteration),
        OSSL_PARAM_construct_end(),
    };

    return to->callback(params, to->arg);
}

EVP_PKEY *provider_inner_generate(EVP_PKEY_CTX *ctx, OSSL_CALLBACK *callback, void *arg)
{
    struct progress to = {callback, arg};
    EVP_PKEY *inner = NULL;

    if (callback) {
        EVP_PKEY_CTX_set_app_data(ctx, &to);
        EVP_PKEY_CTX_set_cb(ctx, report);
    }
    if (EVP_PKEY_generate(ctx, &inner) <= 0)
        inner = NULL;
    EVP_PKEY_CTX_set_cb(ctx, NULL);
    EVP_PKEY_CTX_set_app_data(ctx, NULL);
    return inner;
}

/*
 * --- running ------------------------------------------------------------------------------------
 */

struct inner_call {
    enum provider_inner_kind kind;
    EVP_PKEY_CTX *ctx;
    pthread_t owner;
    const uint8_t *in;
    size_t in_len;
    uint8_t *out;
    size_t out_len;
};

static int perform(void *arg)
{
    struct inner_call *c = arg;
    int ok = 0;

    ERR_set_mark();
    switch (c->kind) {
    case PROVIDER_INNER_SIGN:
        ok = EVP_PKEY_sign(c->ctx, c->out, &c->out_len, c->in, c->in_len);
        break;
    case PROVIDER_INNER_DERIVE:
        ok = EVP_PKEY_derive(c->ctx, c->out, &c->out_len);
        break;
    case PROVIDER_INNER_DECRYPT:
        ok = EVP_PKEY_decrypt(c->ctx, c->out, &c->out_len, c->in, c->in_len);
        break;
    }
    /* On a crypto thread nobody would ever read, or clear, the error queue. */
    if (pthread_equal(c->owner, pthread_self()))
        ERR_clear_last_mark();
    else
        ERR_pop_to_mark();
    return ok > 0 ? 0 : SP_EINVAL;
}

int provider_inner_run(enum provider_inner_kind kind, EVP_PKEY_CTX *ctx, const uint8_t *in,
                       size_t in_len, uint8_t *out, size_t *out_len)
{
    struct inner_call c = {.kind = kind, .ctx = ctx, .owner = pthread_self()};
    struct sp_op op = {.kind = SP_OP_CALL, .call = perform, .arg = &c};
    size_t room = *out_len;
    /*
     * Buffers of its own: the caller's may belong to a connection that does not wait for the job.
     */
    uint8_t *bytes = OPENSSL_malloc(in_len + room + 1);
    int status;

    if (!bytes)
        return provider_fail(SP_ENOMEM);
    if (in_len)
        memcpy(bytes, in, in_len);
    c.in = bytes;
    c.in_len = in_len;
    c.out = bytes + in_len;
    c.out_len = room;
    status = provider_run(&op);
    if (status == 0) {
        memcpy(out, c.out, c.out_len);
        *out_len = c.out_len;
    }
    OPENSSL_clear_free(bytes, in_len + room + 1);
    return status == 0 ? 1 : provider_fail(status);
}

int provider_inner_algorithm_id(const struct provider *provider, EVP_PKEY *inner,
                                const EVP_MD *digest, const OSSL_PARAM *params, OSSL_PARAM *out)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    OSSL_PARAM answer[2] = {*out, OSSL_PARAM_construct_end()};
    EVP_PKEY_CTX *pkey_ctx = NULL;
    bool ok;

    ok = ctx &&
         EVP_DigestSignInit_ex(ctx, &pkey_ctx, digest ? EVP_MD_get0_name(digest) : NULL,
                               provider->inner, NULL, inner, params) > 0 &&
         EVP_PKEY_CTX_get_params(pkey_ctx, answer) > 0;
    EVP_MD_CTX_free(ctx);
    out->return_size = answer[0].return_size;
    return ok;
}
