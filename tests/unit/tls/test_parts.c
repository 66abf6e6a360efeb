/* Ticket keys, session cache, random generator, ignore lists: the parts that stand alone. */
#define OPENSSL_SUPPRESS_DEPRECATED /* RAND_METHOD */

#include "support.h"

#include "base/status.h"
#include "tls/cache.h"
#include "tls/random.h"
#include "tls/tickets.h"
#include "tls/verify.h"

#include <openssl/rand.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* --- tickets ------------------------------------------------------------------------ */

static void ticket_rotation(void **state)
{
    struct tls_tickets t;
    struct tls_ticket_key first, second, found;
    bool current;

    assert_int_equal(tls_tickets_init(&t, 300, 1000), 0);
    tls_tickets_current(&t, 1000, &first);
    tls_tickets_current(&t, 4599, &second);
    assert_memory_equal(&first, &second, sizeof(first));
    tls_tickets_current(&t, 4600, &second);
    assert_memory_not_equal(first.name, second.name, sizeof(first.name));
    assert_int_equal(tls_tickets_find(&t, 4600, first.name, &found, &current), 0);
    assert_memory_equal(&found, &first, sizeof(first));
    assert_false(current);
    assert_int_equal(tls_tickets_find(&t, 4600, second.name, &found, &current), 0);
    assert_true(current);
    /* Two periods later it is gone. */
    assert_int_equal(tls_tickets_find(&t, 8200, first.name, &found, &current), SP_ENOENT);
    assert_int_equal(tls_tickets_find(&t, 8200, second.name, &found, &current), 0);
    /* After a long pause nothing old is left. */
    tls_tickets_current(&t, 8200, &second);
    assert_int_equal(tls_tickets_find(&t, 1000000, second.name, &found, &current), SP_ENOENT);
    tls_tickets_release(&t);
}

/* --- cache ------------------------------------------------------------------------------- */

static struct str number_id(unsigned n, char text[32])
{
    snprintf(text, 32, "session-%023u", n);
    return str_make(text, 32);
}

static void cache_basics(void **state)
{
    struct tls_cache *cache = tls_cache_new(1600);
    char out[8192], id[32];

    assert_int_equal(tls_cache_get(cache, STR("none"), 0, out, sizeof(out)), SP_ENOENT);
    assert_int_equal(tls_cache_put(cache, number_id(1, id), STR("one"), 100), 0);
    assert_int_equal(tls_cache_put(cache, number_id(2, id), STR("two"), 100), 0);
    assert_int_equal(tls_cache_count(cache), 2);
    assert_int_equal(tls_cache_get(cache, number_id(1, id), 99, out, sizeof(out)), 3);
    assert_memory_equal(out, "one", 3);
    assert_int_equal(tls_cache_get(cache, number_id(1, id), 99, out, 2), SP_ETOOBIG);
    assert_int_equal(tls_cache_put(cache, number_id(1, id), STR("another"), 100), 0);
    assert_int_equal(tls_cache_get(cache, number_id(1, id), 99, out, sizeof(out)), 7);
    assert_int_equal(tls_cache_count(cache), 2);
    /* Too old. */
    assert_int_equal(tls_cache_get(cache, number_id(1, id), 100, out, sizeof(out)), SP_ENOENT);
    assert_int_equal(tls_cache_count(cache), 1);
    tls_cache_remove(cache, number_id(2, id));
    tls_cache_remove(cache, number_id(2, id));
    assert_int_equal(tls_cache_count(cache), 0);
    assert_int_equal(tls_cache_put(cache, STR(""), STR("x"), 100), SP_ETOOBIG);
    assert_int_equal(tls_cache_put(cache, number_id(1, id), str_make(out, 8192), 1), 0);
    assert_int_equal(tls_cache_put(cache, number_id(1, id), str_make(out, 8193), 1), SP_ETOOBIG);
    tls_cache_free(cache);
}

static void cache_bounded(void **state)
{
    struct tls_cache *cache = tls_cache_new(160);
    char out[8192], id[32], kept[32];

    memset(out, 'x', sizeof(out));
    assert_int_equal(tls_cache_put(cache, number_id(1000000, kept), str_make(out, 100), 100), 0);
    for (unsigned i = 0; i < 10000; i++) {
        assert_int_equal(tls_cache_put(cache, number_id(i, id), str_make(out, 100), 100), 0);
        /* What is used stays. */
        assert_int_equal(tls_cache_get(cache, str_make(kept, 32), 0, out, sizeof(out)), 100);
        assert_true(tls_cache_count(cache) <= 160);
    }
    tls_cache_free(cache);
    /* Even the smallest one keeps something. */
    cache = tls_cache_new(1);
    assert_int_equal(tls_cache_put(cache, number_id(1, id), str_make(out, 4000), 100), 0);
    assert_int_equal(tls_cache_get(cache, number_id(1, id), 0, out, sizeof(out)), 4000);
    tls_cache_free(cache);
}

static void *hammer(void *arg)
{
    struct tls_cache *cache = arg;
    char out[64], id[32];

    for (unsigned i = 0; i < 20000; i++) {
        unsigned n = (i * 7919) % 500;

        if (i % 3 == 0)
            tls_cache_put(cache, number_id(n, id), str_make(id, 32), 100);
        else if (i % 101 == 0)
            tls_cache_remove(cache, number_id(n, id));
        else if (tls_cache_get(cache, number_id(n, id), 0, out, sizeof(out)) == 32)
            assert_memory_equal(out, id, 32);
    }
    return NULL;
}

static void cache_threads(void **state)
{
    struct tls_cache *cache = tls_cache_new(800);
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, cache), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    tls_cache_free(cache);
}

/* --- random -------------------------------------------------------------------------------- */

/* Four lanes at once against the library's cipher, byte for byte. */
static void keystream(void **state)
{
    uint32_t key[8];
    uint8_t iv[16] = {0}, ours[4096], theirs[4096], zero[4096] = {0};

    for (int round = 0; round < 20; round++) {
        EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
        int len;

        for (int i = 0; i < 8; i++)
            key[i] = (uint32_t)(round * 2654435761u + (uint32_t)i * 40503u);
        tls_random_keystream(key, ours, sizeof(ours));
        EVP_EncryptInit_ex(ctx, EVP_chacha20(), NULL, (const unsigned char *)key, iv);
        EVP_EncryptUpdate(ctx, theirs, &len, zero, sizeof(zero));
        EVP_CIPHER_CTX_free(ctx);
        assert_memory_equal(ours, theirs, sizeof(ours));
    }
}

static void *draw(void *out)
{
    assert_int_equal(tls_random_bytes(out, 32), 0);
    return NULL;
}

/* Never the same: in a row, in another thread, in a child, across a reseed. */
static void random_differs(void **state)
{
    static uint8_t big[200000];
    uint8_t draws[5][32], child[32];
    pthread_t thread;
    int ends[2], status;
    pid_t pid;

    draw(draws[0]);
    draw(draws[1]);
    assert_int_equal(pthread_create(&thread, NULL, draw, draws[2]), 0);
    pthread_join(thread, NULL);
    assert_int_equal(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        draw(child);
        _exit(write(ends[1], child, 32) == 32 ? 0 : 1);
    }
    assert_int_equal(read(ends[0], child, 32), 32);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(ends[0]);
    close(ends[1]);
    draw(draws[3]);
    assert_memory_not_equal(draws[3], child, 32);
    assert_int_equal(tls_random_bytes(big, sizeof(big)), 0);
    draw(draws[4]);
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < i; k++)
            assert_memory_not_equal(draws[i], draws[k], 32);
    }
    /* About half the bits are set. */
    size_t ones = 0;

    for (size_t i = 0; i < sizeof(big); i++)
        ones += (size_t)__builtin_popcount(big[i]);
    assert_in_range(ones, sizeof(big) * 4 - 4000, sizeof(big) * 4 + 4000);
    assert_int_equal(tls_random_bytes(big, 0), 0);
}

static void random_installed(void **state)
{
    uint8_t bytes[16];

    tls_random_install();
    tls_random_install();
    assert_ptr_not_equal(RAND_get_rand_method(), RAND_OpenSSL());
    assert_int_equal(RAND_bytes(bytes, sizeof(bytes)), 1);
    assert_int_equal(RAND_priv_bytes(bytes, sizeof(bytes)), 1);
    assert_int_equal(RAND_status(), 1);
}

/* --- verification results ------------------------------------------------------------------- */

static void verify_codes(void **state)
{
    struct tls_ignore set;
    struct str bad;

    assert_string_equal(tls_verify_code_name(0), "X509_V_OK");
    assert_string_equal(tls_verify_code_name(10), "X509_V_ERR_CERT_HAS_EXPIRED");
    assert_null(tls_verify_code_name(12345));
    assert_int_equal(tls_verify_code_parse(STR("X509_V_ERR_CERT_REVOKED")), 23);
    assert_int_equal(tls_verify_code_parse(STR("23")), 23);
    assert_int_equal(tls_verify_code_parse(STR("x")), SP_EINVAL);
    assert_int_equal(tls_ignore_parse("23, X509_V_ERR_CERT_HAS_EXPIRED,94", &set, &bad), 0);
    assert_true(tls_ignore_has(&set, 23));
    assert_true(tls_ignore_has(&set, 10));
    assert_true(tls_ignore_has(&set, 94));
    assert_false(tls_ignore_has(&set, 11));
    assert_false(tls_ignore_has(&set, -1));
    assert_false(tls_ignore_has(&set, 1000));
    assert_int_equal(tls_ignore_parse("all", &set, &bad), 0);
    assert_true(tls_ignore_has(&set, 127));
    assert_int_equal(tls_ignore_parse("1,what,2", &set, &bad), SP_EINVAL);
    assert_true(str_eq(bad, STR("what")));
}

static void library(void **state)
{
    assert_non_null(strstr(tls_library_text(), "OpenSSL 3."));
    assert_true(tls_library_number() >= 0x30000000ul);
    assert_int_equal(tls_engine_find("default"), TLS_ENGINE_PROVIDER);
    assert_int_equal(tls_engine_find("dynamic"), TLS_ENGINE_LEGACY);
    assert_int_equal(tls_engine_find("qat-that-nobody-has"), TLS_ENGINE_NONE);
    assert_int_equal(tls_engine_find("../x"), TLS_ENGINE_NONE);
    assert_int_equal(tls_engine_find(""), TLS_ENGINE_NONE);
    assert_int_equal(tls_engine_find(NULL), TLS_ENGINE_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticket_rotation),  cmocka_unit_test(cache_basics),
        cmocka_unit_test(cache_bounded),    cmocka_unit_test(cache_threads),
        cmocka_unit_test(keystream),        cmocka_unit_test(random_differs),
        cmocka_unit_test(random_installed), cmocka_unit_test(verify_codes),
        cmocka_unit_test(library),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
