#include "tls/dn.h"

#include "base/status.h"

#include <openssl/bio.h>

static struct str value_of(const X509_NAME_ENTRY *entry)
{
    const ASN1_STRING *data = X509_NAME_ENTRY_get_data(entry);

    return str_make((const char *)ASN1_STRING_get0_data(data), (size_t)ASN1_STRING_length(data));
}

static struct str label_of(const X509_NAME_ENTRY *entry, char *text, size_t room)
{
    const ASN1_OBJECT *object = X509_NAME_ENTRY_get_object(entry);
    int nid = OBJ_obj2nid(object);

    if (nid != NID_undef)
        return str_of(OBJ_nid2sn(nid));
    if (OBJ_obj2txt(text, (int)room, object, 1) <= 0)
        return STR("?");
    return str_of(text);
}

static bool has_nul(struct str s)
{
    return str_chr(s, '\0') < s.len;
}

int tls_dn_text(const X509_NAME *name, struct arena *arena, struct str *out)
{
    int count = X509_NAME_entry_count(name);
    char text[128], *all, *at;
    size_t total = 0;

    for (int i = 0; i < count; i++) {
        const X509_NAME_ENTRY *entry = X509_NAME_get_entry(name, i);
        struct str value = value_of(entry);

        if (has_nul(value))
            return SP_ENOENT;
        total += label_of(entry, text, sizeof(text)).len + value.len + 2;
    }
    if (total == 0)
        return SP_ENOENT;
    all = at = arena_alloc(arena, total);
    if (!all)
        return SP_ENOMEM;
    for (int i = 0; i < count; i++) {
        const X509_NAME_ENTRY *entry = X509_NAME_get_entry(name, i);
        struct str label = label_of(entry, text, sizeof(text)), value = value_of(entry);

        *at++ = '/';
        memcpy(at, label.ptr, label.len);
        at += label.len;
        *at++ = '=';
        if (value.len)
            memcpy(at, value.ptr, value.len);
        at += value.len;
    }
    *out = str_make(all, total);
    return 0;
}

int tls_dn_rfc2253(const X509_NAME *name, struct arena *arena, struct str *out)
{
    BIO *bio = BIO_new(BIO_s_mem());
    int count = X509_NAME_entry_count(name), status = SP_ENOENT;
    struct str copy;
    char *data;
    long len;

    for (int i = 0; i < count; i++) {
        if (has_nul(value_of(X509_NAME_get_entry(name, i))))
            goto out;
    }
    if (!bio || X509_NAME_print_ex(bio, name, 0, XN_FLAG_RFC2253) < 0)
        goto out;
    len = BIO_get_mem_data(bio, &data);
    if (len <= 0)
        goto out;
    copy = arena_str(arena, str_make(data, (size_t)len));
    status = copy.ptr ? 0 : SP_ENOMEM;
    if (status == 0)
        *out = copy;
out:
    BIO_free(bio);
    return status;
}

int tls_dn_entry(const X509_NAME *name, struct str entry, int occurrence, struct arena *arena,
                 struct str *out)
{
    int count = X509_NAME_entry_count(name), seen = 0;
    int step = occurrence < 0 ? -1 : 1, wanted = occurrence < 0 ? -occurrence : occurrence;
    char text[128];

    for (int i = step > 0 ? 0 : count - 1; i >= 0 && i < count; i += step) {
        const X509_NAME_ENTRY *e = X509_NAME_get_entry(name, i);
        int nid = OBJ_obj2nid(X509_NAME_ENTRY_get_object(e));
        struct str copy;

        if (!str_ieq(entry, label_of(e, text, sizeof(text))) &&
            !(nid != NID_undef && str_ieq(entry, str_of(OBJ_nid2ln(nid)))))
            continue;
        if (++seen != wanted)
            continue;
        if (has_nul(value_of(e)) || value_of(e).len == 0)
            return SP_ENOENT;
        copy = arena_str(arena, value_of(e));
        if (!copy.ptr)
            return SP_ENOMEM;
        *out = copy;
        return 0;
    }
    return SP_ENOENT;
}
