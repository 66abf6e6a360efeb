/*
 * intel-ipsec-mb: several requests side by side in vector registers, as jobs of a manager.
 *
 * The library is loaded when it is asked for, so that the program does not depend on it.
 */
#include "measure/sweep_impl.h"

#include <sallyport/status.h>

#include <stdlib.h>
#include <string.h>

#if SP_HAS_IPSEC_MB

#define NO_COMPAT_IMB_API_053
#include <dlfcn.h>
#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>

#define LIBRARY "libIPSec_MB.so.1"
/*
 * Lengths of CBC encryption and of the digests are 16 bits in the library's lanes (MB_MAX_LEN16 there); a longer job is
 * refused. The others' bounds lie beyond every request of a sweep.
 */
#define LANE_BYTES_MAX 65534u
/* Bytes before each buffer: where the IV stands that an HMAC covers. */
#define HEADROOM 64

struct library {
    IMB_MGR *(*alloc_manager)(uint64_t flags);
    void (*free_manager)(IMB_MGR *manager);
    void (*init_manager)(IMB_MGR *manager, IMB_ARCH *arch);
    const char *(*version)(void);
};

struct sweep_device {
    struct library library;
};

struct sweep_session {
    struct library library;
    IMB_MGR *manager;
    const struct sweep_algorithm *algorithm;
    IMB_JOB form;         /* what all jobs have in common */
    uint64_t submissions; /* calls of submit */
    unsigned in_flight;   /* in the manager */
    unsigned depth, done_count;
    struct sweep_request **done; /* [depth], to be polled */

    /* Keys, expanded. */
    _Alignas(64) struct gcm_key_data gcm;
    _Alignas(16) uint32_t encrypt[15 * 4], decrypt[15 * 4];
    _Alignas(16) uint8_t cipher_key[32], inner[64], outer[64];
};

static bool find_symbols(void *handle, struct library *library)
{
    library->alloc_manager = dlsym(handle, "alloc_mb_mgr");
    library->free_manager = dlsym(handle, "free_mb_mgr");
    library->init_manager = dlsym(handle, "init_mb_mgr_auto");
    library->version = dlsym(handle, "imb_get_version_str");
    return library->alloc_manager && library->free_manager && library->init_manager &&
           library->version;
}

static const char *arch_name(IMB_ARCH arch)
{
    static const char *const names[IMB_ARCH_NUM] = {
        [IMB_ARCH_NOAESNI] = "without AES-NI",
        [IMB_ARCH_SSE] = "SSE",
        [IMB_ARCH_AVX] = "AVX",
        [IMB_ARCH_AVX2] = "AVX2",
        [IMB_ARCH_AVX512] = "AVX512",
    };

    return arch < IMB_ARCH_NUM && names[arch] ? names[arch] : "an unknown vector unit";
}

static int device_open(const char *argument, const struct sweep_limits *limits,
                       struct sweep_device **out, char *description, size_t size,
                       struct sweep_why *why)
{
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    struct sweep_device *device;
    IMB_ARCH arch = IMB_ARCH_NONE;
    IMB_MGR *manager;

    if (!handle)
        return sweep_why(why, SP_EUNSUPPORTED, "%s does not load: install libipsec-mb1", LIBRARY);
    device = calloc(1, sizeof(*device));
    if (!device || !find_symbols(handle, &device->library)) {
        int status = device ? SP_EUNSUPPORTED : SP_ENOMEM;

        free(device);
        dlclose(handle);
        return sweep_why(why, status,
                         status == SP_ENOMEM ? "out of memory" : "%s is of another version",
                         LIBRARY);
    }
    /* Open for as long as the process lives: sessions hold pointers into it. */
    manager = device->library.alloc_manager(0);
    if (manager)
        device->library.init_manager(manager, &arch);
    device->library.free_manager(manager);
    if (arch == IMB_ARCH_NONE) {
        free(device);
        return sweep_why(why, SP_EUNSUPPORTED, "the library does not run on this CPU");
    }
    snprintf(description, size, "ipsec-mb %s, %s", device->library.version(), arch_name(arch));
    *out = device;
    return 0;
}

static void device_close(struct sweep_device *device)
{
    free(device);
}

/* --- algorithms --------------------------------------------------------------------------------------- */

static bool cipher_of(const struct sweep_algorithm *a, IMB_CIPHER_MODE *out)
{
    static const struct {
        const char *word; /* of OpenSSL's name, as far as it tells them apart */
        IMB_CIPHER_MODE mode;
    } ciphers[] = {
        {"-CBC", IMB_CIPHER_CBC},
        {"-CTR", IMB_CIPHER_CNTR},
        {"-GCM", IMB_CIPHER_GCM},
        {"ChaCha20-Poly1305", IMB_CIPHER_CHACHA20_POLY1305},
    };

    *out = IMB_CIPHER_NULL;
    if (!a->evp_cipher)
        return true;
    for (size_t i = 0; i < sizeof(ciphers) / sizeof(ciphers[0]); i++) {
        if (strcasestr(a->evp_cipher, ciphers[i].word)) {
            *out = ciphers[i].mode;
            return true;
        }
    }
    return false;
}

static bool hash_of(const struct sweep_algorithm *a, IMB_CIPHER_MODE cipher, IMB_HASH_ALG *out)
{
    static const struct {
        unsigned bytes;
        IMB_HASH_ALG plain, hmac;
    } hashes[] = {
        {20, IMB_AUTH_SHA_1, IMB_AUTH_HMAC_SHA_1},
        {32, IMB_AUTH_SHA_256, IMB_AUTH_HMAC_SHA_256},
        {64, IMB_AUTH_SHA_512, IMB_AUTH_HMAC_SHA_512},
    };

    *out = cipher == IMB_CIPHER_GCM                 ? IMB_AUTH_AES_GMAC
           : cipher == IMB_CIPHER_CHACHA20_POLY1305 ? IMB_AUTH_CHACHA20_POLY1305
                                                    : IMB_AUTH_NULL;
    if (!a->evp_digest)
        return true;
    for (size_t i = 0; i < sizeof(hashes) / sizeof(hashes[0]); i++) {
        if (a->tag_bytes == hashes[i].bytes) {
            *out = a->evp_cipher ? hashes[i].hmac : hashes[i].plain;
            return true;
        }
    }
    return false;
}

static int supports(struct sweep_device *device, const struct sweep_algorithm *algorithm,
                    uint64_t request_bytes, bool in_place, struct sweep_why *why)
{
    IMB_CIPHER_MODE cipher;
    IMB_HASH_ALG hash;
    uint64_t most;

    if (!cipher_of(algorithm, &cipher) || !hash_of(algorithm, cipher, &hash))
        return sweep_why(why, SP_EUNSUPPORTED, "ipsec-mb %s does not do %s",
                         device->library.version(), algorithm->name);
    if (algorithm->hmac_key_bytes > IMB_SHA1_BLOCK_SIZE)
        return sweep_why(why, SP_EUNSUPPORTED, "HMAC keys above %d bytes are not made ready here",
                         IMB_SHA1_BLOCK_SIZE);
    most = algorithm->kind == SWEEP_CIPHER_HMAC ? LANE_BYTES_MAX - algorithm->iv_bytes
                                                : LANE_BYTES_MAX;
    if ((cipher == IMB_CIPHER_CBC || algorithm->evp_digest) && request_bytes > most)
        return sweep_why(
            why, SP_EUNSUPPORTED,
            "requests above %llu bytes are refused: its lanes' lengths have 16 bits",
            (unsigned long long)(most / algorithm->granule_bytes * algorithm->granule_bytes));
    return 0;
}

/* --- keys --------------------------------------------------------------------------------------------- */

/* The hash of one block of the key and a pad: where the inner and the outer hash go on from (RFC 2104, section 4). */
static void half_hmac(IMB_MGR *manager, IMB_HASH_ALG hash, const uint8_t *key, unsigned key_bytes,
                      uint8_t pad, uint8_t *out)
{
    uint8_t block[IMB_SHA_512_BLOCK_SIZE];

    memset(block, pad, sizeof(block));
    for (unsigned i = 0; i < key_bytes; i++)
        block[i] ^= key[i];
    if (hash == IMB_AUTH_HMAC_SHA_1)
        IMB_SHA1_ONE_BLOCK(manager, block, out);
    else if (hash == IMB_AUTH_HMAC_SHA_256)
        IMB_SHA256_ONE_BLOCK(manager, block, out);
    else
        IMB_SHA512_ONE_BLOCK(manager, block, out);
    OPENSSL_cleanse(block, sizeof(block));
}

static void expand_aes(struct sweep_session *s, const struct sweep_key *key)
{
    IMB_MGR *manager = s->manager;
    bool gcm = s->form.cipher_mode == IMB_CIPHER_GCM;

    switch (key->algorithm->key_bytes) {
    case 16:
        if (gcm)
            IMB_AES128_GCM_PRE(manager, key->key, &s->gcm);
        else
            IMB_AES_KEYEXP_128(manager, key->key, s->encrypt, s->decrypt);
        break;
    case 24:
        if (gcm)
            IMB_AES192_GCM_PRE(manager, key->key, &s->gcm);
        else
            IMB_AES_KEYEXP_192(manager, key->key, s->encrypt, s->decrypt);
        break;
    default:
        if (gcm)
            IMB_AES256_GCM_PRE(manager, key->key, &s->gcm);
        else
            IMB_AES_KEYEXP_256(manager, key->key, s->encrypt, s->decrypt);
    }
    s->form.enc_keys = gcm ? (const void *)&s->gcm : s->encrypt;
    s->form.dec_keys = gcm ? (const void *)&s->gcm : s->decrypt;
}

static void fill_form(struct sweep_session *s, const struct sweep_key *key)
{
    const struct sweep_algorithm *a = key->algorithm;
    IMB_JOB *form = &s->form;

    (void)cipher_of(a, &form->cipher_mode);
    (void)hash_of(a, form->cipher_mode, &form->hash_alg);
    form->cipher_direction = IMB_DIR_ENCRYPT;
    form->chain_order = IMB_ORDER_CIPHER_HASH;
    form->key_len_in_bytes = a->key_bytes;
    form->iv_len_in_bytes = a->iv_bytes;
    form->auth_tag_output_len_in_bytes = a->tag_bytes;
    if (form->cipher_mode == IMB_CIPHER_CHACHA20_POLY1305) {
        memcpy(s->cipher_key, key->key, sizeof(s->cipher_key));
        form->enc_keys = form->dec_keys = s->cipher_key;
    } else if (form->cipher_mode != IMB_CIPHER_NULL) {
        expand_aes(s, key);
    }
    if (a->kind != SWEEP_CIPHER_HMAC)
        return;
    half_hmac(s->manager, form->hash_alg, key->hmac_key, a->hmac_key_bytes, 0x36, s->inner);
    half_hmac(s->manager, form->hash_alg, key->hmac_key, a->hmac_key_bytes, 0x5c, s->outer);
    form->u.HMAC._hashed_auth_key_xor_ipad = s->inner;
    form->u.HMAC._hashed_auth_key_xor_opad = s->outer;
}

/* --- sessions ----------------------------------------------------------------------------------------- */

static void session_free(struct sweep_session *s)
{
    s->library.free_manager(s->manager);
    free(s->done);
    OPENSSL_cleanse(s, sizeof(*s));
    free(s);
}

static int session_open(struct sweep_device *device, unsigned thread, const struct sweep_key *key,
                        unsigned depth, struct sweep_session **out, struct sweep_why *why)
{
    struct sweep_session *s = aligned_alloc(_Alignof(struct sweep_session), sizeof(*s));
    IMB_ARCH arch = IMB_ARCH_NONE;

    if (!s)
        return sweep_why(why, SP_ENOMEM, "out of memory");
    memset(s, 0, sizeof(*s));
    s->library = device->library;
    s->algorithm = key->algorithm;
    s->depth = depth;
    s->done = calloc(depth, sizeof(struct sweep_request *));
    s->manager = s->library.alloc_manager(0);
    if (!s->done || !s->manager) {
        session_free(s);
        return sweep_why(why, SP_ENOMEM, "out of memory");
    }
    s->library.init_manager(s->manager, &arch);
    fill_form(s, key);
    *out = s;
    return 0;
}

static void *buffer_alloc(struct sweep_session *session, size_t bytes)
{
    size_t whole = (bytes + HEADROOM + 63) & ~(size_t)63;
    uint8_t *memory = aligned_alloc(64, whole);

    return memory ? memory + HEADROOM : NULL;
}

static void buffer_free(struct sweep_session *session, void *buffer, size_t bytes)
{
    if (buffer)
        free((uint8_t *)buffer - HEADROOM);
}

/* --- requests ----------------------------------------------------------------------------------------- */

static void fill_job(const struct sweep_session *s, IMB_JOB *job, struct sweep_request *r)
{
    *job = s->form;
    job->src = r->in;
    job->dst = r->out;
    job->iv = r->iv;
    job->auth_tag_output = r->tag;
    job->msg_len_to_hash_in_bytes = r->len;
    job->user_data = r;
    job->user_data2 = (void *)(uintptr_t)s->submissions;
    if (s->form.cipher_mode != IMB_CIPHER_NULL)
        job->msg_len_to_cipher_in_bytes = r->len;
    if (s->algorithm->kind != SWEEP_CIPHER_HMAC)
        return;
    /* The hash's place is relative to the input, also when what it covers is the output. */
    memcpy(r->out - s->algorithm->iv_bytes, r->iv, s->algorithm->iv_bytes);
    job->hash_start_src_offset_in_bytes =
        (uint64_t)(uintptr_t)(r->out - s->algorithm->iv_bytes) - (uint64_t)(uintptr_t)r->in;
    job->msg_len_to_hash_in_bytes = (uint64_t)r->len + s->algorithm->iv_bytes;
}

static void finish(struct sweep_session *s, const IMB_JOB *job)
{
    struct sweep_request *r = job->user_data;

    r->status = job->status == IMB_STATUS_COMPLETED ? 0 : SP_EIO;
    r->was_async = (uint64_t)(uintptr_t)job->user_data2 != s->submissions;
    s->done[s->done_count++] = r;
    s->in_flight--;
}

/* Jobs come back in the order of their submission; a manager that is full gives the oldest back. */
static unsigned submit(struct sweep_session *s, struct sweep_request *const *requests, unsigned n)
{
    unsigned accepted = 0;

    s->submissions++;
    while (accepted < n && s->in_flight + s->done_count < s->depth) {
        IMB_JOB *job = IMB_GET_NEXT_JOB(s->manager);

        fill_job(s, job, requests[accepted++]);
        s->in_flight++;
        job = IMB_SUBMIT_JOB(s->manager);
        for (; job; job = IMB_GET_COMPLETED_JOB(s->manager))
            finish(s, job);
    }
    return accepted;
}

static unsigned poll(struct sweep_session *s, struct sweep_request **done, unsigned max, bool flush)
{
    const IMB_JOB *job;
    unsigned n;

    /* From now on, whatever comes back comes back after its submission. */
    s->submissions++;
    while (flush && s->in_flight && s->done_count < max && (job = IMB_FLUSH_JOB(s->manager)))
        finish(s, job);
    n = s->done_count < max ? s->done_count : max;
    memcpy(done, s->done, n * sizeof(*done));
    s->done_count -= n;
    memmove(s->done, s->done + n, s->done_count * sizeof(*done));
    return n;
}

static int run(struct sweep_session *s, struct sweep_request *request)
{
    struct sweep_request *done;

    if (submit(s, &request, 1) != 1 || poll(s, &done, 1, true) != 1)
        return SP_EIO;
    done->was_async = false;
    return done->status;
}

static void session_close(struct sweep_session *s)
{
    struct sweep_request *done;

    while (poll(s, &done, 1, true) > 0)
        ;
    session_free(s);
}

const struct sweep_impl sweep_impl_ipsec_mb = {
    .name = "ipsec-mb",
    .summary = "intel-ipsec-mb, several requests side by side in vector registers",
    .is_asynchronous = true,
    .device_open = device_open,
    .device_close = device_close,
    .supports = supports,
    .session_open = session_open,
    .session_close = session_close,
    .buffer_alloc = buffer_alloc,
    .buffer_free = buffer_free,
    .submit = submit,
    .poll = poll,
    .run = run,
};

#else

static int device_open(const char *argument, const struct sweep_limits *limits,
                       struct sweep_device **out, char *description, size_t size,
                       struct sweep_why *why)
{
    return sweep_why(why, SP_EUNSUPPORTED,
                     "built without ipsec-mb: install libipsec-mb-dev then make clean all");
}

const struct sweep_impl sweep_impl_ipsec_mb = {
    .name = "ipsec-mb",
    .summary = "intel-ipsec-mb, several requests side by side in vector registers",
    .device_open = device_open,
};

#endif
