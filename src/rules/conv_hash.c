/*
 * Hashes, digests and message authentication codes.
 */
#include "rules/tables.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

enum { CRC32, CRC32C, DJB2, SDBM, WT6 };

static bool conv_hash(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    const struct rules_arg *avalanche = arg_at(&v->args, 0);
    uint32_t h;

    switch (v->def->data) {
    case CRC32:
        h = hash_crc32(s->u.s);
        break;
    case CRC32C:
        h = hash_crc32c(s->u.s);
        break;
    case DJB2:
        h = hash_djb2(s->u.s, 5381);
        break;
    case SDBM:
        h = hash_sdbm(s->u.s);
        break;
    default:
        h = hash_wt6(s->u.s);
        break;
    }
    if (avalanche && avalanche->i)
        h = hash_avalanche(h);
    return value_int(s, h);
}

/* --- digests ----------------------------------------------------------------------------------- */

static bool digest(struct rules_ctx *ctx, struct sample *s, const EVP_MD *md)
{
    unsigned char *out = arena_alloc(ctx->arena, EVP_MAX_MD_SIZE);
    unsigned n;

    if (!md || !out || EVP_Digest(s->u.s.ptr, s->u.s.len, out, &n, md, NULL) != 1)
        return false;
    return value_bin(s, str_make((char *)out, n));
}

static const EVP_MD *sha2(int64_t bits)
{
    switch (bits) {
    case 224:
        return EVP_sha224();
    case 256:
    case 0:
        return EVP_sha256();
    case 384:
        return EVP_sha384();
    case 512:
        return EVP_sha512();
    default:
        return NULL;
    }
}

enum { SHA1, SHA2, MD5 };

static bool conv_digest(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    switch (v->def->data) {
    case SHA1:
        return digest(ctx, s, EVP_sha1());
    case MD5:
        return digest(ctx, s, EVP_md5());
    default:
        return digest(ctx, s, sha2(v->args.count ? v->args.v[0].i : 0));
    }
}

static int check_sha2(struct rules_compiler *c, struct conv_call *v, char why[RULES_WHY_BYTES])
{
    if (v->args.count && !sha2(v->args.v[0].i)) {
        snprintf(why, RULES_WHY_BYTES,
                 "unsupported number of bits '%s', expected 224, 256, 384 or 512",
                 v->args.v[0].s.ptr);
        return SP_EINVAL;
    }
    return 0;
}

static int check_named(struct rules_compiler *c, struct conv_call *v, char why[RULES_WHY_BYTES])
{
    v->args.v[0].u.data = EVP_get_digestbyname(v->args.v[0].s.ptr);
    if (!v->args.v[0].u.data) {
        snprintf(why, RULES_WHY_BYTES, "unknown digest '%s'", v->args.v[0].s.ptr);
        return SP_EINVAL;
    }
    return 0;
}

static bool conv_named(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    return digest(ctx, s, v->args.v[0].u.data);
}

/* --- HMAC: the key is base64, written out or in a variable ----------------------------------------- */

static bool decode(struct arena *arena, struct str text, struct str *out)
{
    size_t room = 3 * ((text.len + 3) / 4) + 1;
    char *mem = arena_alloc(arena, room);
    int n = mem ? hash_base64_decode(text, mem, room) : SP_ENOMEM;

    if (n < 0)
        return false;
    *out = str_make(mem, (size_t)n);
    return true;
}

static int check_hmac(struct rules_compiler *c, struct conv_call *v, char why[RULES_WHY_BYTES])
{
    struct rules_arg *key = &v->args.v[1];
    const char *reason;
    int status = check_named(c, v, why);

    if (status < 0)
        return status;
    if (var_parse(key->s, &key->u.var, &reason) == 0) {
        key->is_var = true;
        v->needs |= NEEDS_VARYING;
        return 0;
    }
    if (!decode(c->arena, key->s, &key->s)) {
        snprintf(why, RULES_WHY_BYTES, "the key is neither a variable nor base64");
        return SP_EINVAL;
    }
    return 0;
}

static bool conv_hmac(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    const struct rules_arg *arg = &v->args.v[1];
    struct str key = arg->s;
    struct sample value;
    unsigned char *out = arena_alloc(ctx->arena, EVP_MAX_MD_SIZE);
    unsigned n;

    if (!out)
        return false;
    if (arg->is_var &&
        (!var_get(&arg->u.var, ctx, &value) || !value_cast(&value, VALUE_STR, ctx->arena) ||
         !decode(ctx->arena, value.u.s, &key)))
        return false;
    if (!HMAC(v->args.v[0].u.data, key.ptr, (int)key.len, (const unsigned char *)s->u.s.ptr,
              s->u.s.len, out, &n))
        return false;
    return value_bin(s, str_make((char *)out, n));
}

#define HASH "?i", "[<avalanche>]", VALUE_BIN, VALUE_INT, conv_hash

static const struct conv_def rows[] = {
    {"crc32", HASH, CRC32, .help = "CRC-32 of IEEE 802.3"},
    {"crc32c", HASH, CRC32C, .help = "CRC-32 of Castagnoli"},
    {"djb2", HASH, DJB2, .help = "Bernstein's hash of 32 bits"},
    {"sdbm", HASH, SDBM, .help = "hash of the SDBM library, 32 bits"},
    {"wt6", HASH, WT6, .help = "HAProxy's WT6 hash of 32 bits"},
    {"sha1", NULL, NULL, VALUE_BIN, VALUE_BIN, conv_digest, SHA1, .help = "SHA-1 digest"},
    {"sha2", "?i", "[<bits>]", VALUE_BIN, VALUE_BIN, conv_digest, SHA2,
     .help = "SHA-2 digest of 224, 256 (default), 384 or 512 bits", .check = check_sha2},
    {"md5", NULL, NULL, VALUE_BIN, VALUE_BIN, conv_digest, MD5, .help = "MD5 digest"},
    {"digest", "s", "<algorithm>", VALUE_BIN, VALUE_BIN, conv_named, 0,
     .help = "digest by any algorithm of OpenSSL", .check = check_named},
    {"hmac", "ss", "<algorithm>,<key>", VALUE_BIN, VALUE_BIN, conv_hmac, 0,
     .help = "message authentication code with a base64 key or variable", .check = check_hmac},
};

const struct conv_table conv_hash_table = TABLE_OF(rows);
