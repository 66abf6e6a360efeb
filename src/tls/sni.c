#include "tls/sni.h"

#include "base/status.h"

#define NAME_MAX_BYTES 255

void tls_sni_free(struct tls_sni *sni)
{
    if (!sni)
        return;
    map_release(&sni->exact);
    map_release(&sni->wild);
    free(sni->options);
    free(sni);
}

static int append(struct tls_store *store, struct sni_name *list, const struct tls_entry *entry)
{
    struct sni_node *node;

    /* The same line may name a host twice. */
    if (list->last && list->last->entry == entry)
        return 0;
    node = arena_zalloc(&store->arena, 1, sizeof(*node));
    if (!node)
        return SP_ENOMEM;
    node->entry = entry;
    if (list->last)
        list->last->next = node;
    else
        list->first = node;
    list->last = node;
    return 0;
}

static int add_name(struct tls_store *store, struct map *names, struct str name,
                    const struct tls_entry *entry)
{
    struct sni_name *list = map_get(names, name);

    if (!list) {
        list = arena_zalloc(&store->arena, 1, sizeof(*list));
        if (!list || map_put(names, name, list) != 0)
            return SP_ENOMEM;
    }
    return append(store, list, entry);
}

int tls_sni_add_default(struct tls_store *store, struct tls_sni *sni, const struct tls_entry *entry)
{
    return append(store, &sni->defaults, entry);
}

static struct str lower_copy(struct arena *arena, struct str s)
{
    struct str copy = arena_str(arena, s);

    for (size_t i = 0; copy.ptr && i < copy.len; i++) {
        if (copy.ptr[i] >= 'A' && copy.ptr[i] <= 'Z')
            ((char *)copy.ptr)[i] |= 0x20;
    }
    return copy;
}

/* Names after '!', which only make sense beside a wildcard. */
static int collect_exceptions(struct tls_store *store, struct tls_entry *entry,
                              const struct str *names, size_t count)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        n += names[i].len > 1 && names[i].ptr[0] == '!' && names[i].ptr[1] != '*';
    if (n == 0)
        return 0;
    entry->except = arena_zalloc(&store->arena, n, sizeof(struct str));
    if (!entry->except)
        return SP_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        if (names[i].len < 2 || names[i].ptr[0] != '!' || names[i].ptr[1] == '*')
            continue;
        entry->except[entry->except_count] = lower_copy(&store->arena, str_from(names[i], 1));
        if (!entry->except[entry->except_count++].ptr)
            return SP_ENOMEM;
    }
    return 0;
}

static int add_filter(struct tls_store *store, struct tls_sni *sni, const struct tls_entry *entry,
                      struct str name, bool own)
{
    if (name.len == 0 || name.ptr[0] == '!')
        return 0;
    if (str_eq(name, STR("*")))
        return tls_sni_add_default(store, sni, entry);
    if (!own) {
        name = lower_copy(&store->arena, name);
        if (!name.ptr)
            return SP_ENOMEM;
    }
    if (name.ptr[0] == '*')
        return add_name(store, &sni->wild, str_from(name, 1), entry);
    return add_name(store, &sni->exact, name, entry);
}

int tls_sni_add(struct tls_store *store, struct tls_sni *sni, const struct tls_cert *cert,
                const struct tls_list_options *options, const struct str *names, size_t count)
{
    struct tls_entry *entry = arena_zalloc(&store->arena, 1, sizeof(*entry));
    bool own = count == 0;
    int status;

    if (!entry)
        return SP_ENOMEM;
    entry->cert = cert;
    entry->options = options;
    status = collect_exceptions(store, entry, names, count);
    if (own) {
        names = cert->names;
        count = cert->name_count;
    }
    for (size_t i = 0; status == 0 && i < count; i++)
        status = add_filter(store, sni, entry, names[i], own);
    if (status != 0)
        return status;
    sni->entry_count++;
    sni->has_cheap_keys |= cert->kind != TLS_KEY_RSA;
    if (sni->first)
        return 0;
    /* The first certificate of a bind is its default, unless there is an explicit one already. */
    sni->first = entry;
    return sni->defaults.first ? 0 : tls_sni_add_default(store, sni, entry);
}

/* The first entry of each kind of key. */
struct found {
    const struct tls_entry *by_kind[TLS_KEY_KINDS];
};

static bool is_excepted(const struct tls_entry *entry, struct str name)
{
    for (size_t i = 0; i < entry->except_count; i++) {
        if (str_eq(entry->except[i], name))
            return true;
    }
    return false;
}

static void gather(struct found *found, const struct sni_name *list, struct str name)
{
    for (const struct sni_node *n = list ? list->first : NULL; n; n = n->next) {
        enum tls_key_kind kind = n->entry->cert->kind;

        if (!found->by_kind[kind] && !is_excepted(n->entry, name))
            found->by_kind[kind] = n->entry;
    }
}

/*
 * What the client can use first; failing that anything, so that the handshake ends with the true
 * reason.
 */
static const struct tls_entry *best(const struct found *found,
                                    const struct tls_client_abilities *able)
{
    const struct tls_entry *const *kinds = found->by_kind;

    if (able->ecdsa && kinds[TLS_KEY_ECDSA])
        return kinds[TLS_KEY_ECDSA];
    if (able->rsa && kinds[TLS_KEY_RSA])
        return kinds[TLS_KEY_RSA];
    if (kinds[TLS_KEY_OTHER])
        return kinds[TLS_KEY_OTHER];
    if (kinds[TLS_KEY_RSA])
        return kinds[TLS_KEY_RSA];
    return kinds[TLS_KEY_ECDSA] ? kinds[TLS_KEY_ECDSA] : kinds[TLS_KEY_DSA];
}

const struct tls_entry *tls_sni_choose(const struct tls_sni *sni, struct str name,
                                       const struct tls_client_abilities *able, bool strict,
                                       bool *by_name)
{
    char lower[NAME_MAX_BYTES];
    struct found found = {0};
    const struct tls_entry *entry;

    *by_name = false;
    if (name.len && name.len <= sizeof(lower)) {
        for (size_t i = 0; i < name.len; i++)
            lower[i] =
                name.ptr[i] >= 'A' && name.ptr[i] <= 'Z' ? (char)(name.ptr[i] | 0x20) : name.ptr[i];
        name.ptr = lower;
        gather(&found, map_get(&sni->exact, name), name);
        /* Wildcards fill in the kinds of key that the exact name lacks. */
        gather(&found, map_get(&sni->wild, str_from(name, str_chr(name, '.'))), name);
        entry = best(&found, able);
        if (entry) {
            *by_name = true;
            return entry;
        }
    }
    if (strict)
        return NULL;
    found = (struct found){0};
    gather(&found, &sni->defaults, STR(""));
    return best(&found, able);
}
