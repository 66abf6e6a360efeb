/*
 * Devices: from a spec to queue pairs that are ready.
 */
#include "crypto/cryptodev/dpdk_internal.h"

#include <ctype.h>
#include <rte_dev.h>
#include <rte_mempool.h>
#include <rte_version.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEGABYTES_MIN 256u
#define MEGABYTES_MAX 8192u
#define PARAMETERS_BYTES 512
#define DESCRIPTORS_MIN 64u
#define RSA_DESCRIPTORS 128u
#define SCHEDULER "crypto_scheduler"

/* --- the spec ------------------------------------------------------------------------------------- */

struct spec {
    char name[DEVICE_NAME_BYTES];
    char parameters[PARAMETERS_BYTES]; /* of its driver, without those that are ours */
    char workers[DEVICE_WORKERS_MAX][DEVICE_NAME_BYTES];
    unsigned worker_count;
    bool has_pairs, has_mode, is_pci;
};

/* "0000:3d:01.0", "3d:01.0" */
static bool is_pci_address(const char *name)
{
    size_t colons = 0, dots = 0;

    for (; isxdigit((unsigned char)*name) || *name == ':' || *name == '.'; name++) {
        colons += *name == ':';
        dots += *name == '.';
    }
    return *name == '\0' && colons >= 1 && colons <= 2 && dots == 1;
}

/* False: there is no room. */
static bool append(struct spec *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool append(struct spec *s, const char *format, ...)
{
    size_t used = strlen(s->parameters);
    va_list arguments;
    int len;

    if (used && used + 1 < sizeof(s->parameters))
        s->parameters[used++] = ',';
    va_start(arguments, format);
    len = vsnprintf(s->parameters + used, sizeof(s->parameters) - used, format, arguments);
    va_end(arguments);
    return len >= 0 && (size_t)len < sizeof(s->parameters) - used;
}

/* Drivers pass over what they do not know; a misspelt parameter should not go unnoticed. */
static bool is_known(const char *text, size_t len, bool is_scheduler)
{
    static const char *const common[] = {"max_nb_queue_pairs=", "socket_id=", NULL};
    /* Any other mode leaves the scheduler without one, and its driver then crashes; "multi-core" wants cores of its own. */
    static const char *const scheduler[] = {"mode=round-robin", "mode=packet-size-distr",
                                            "mode=fail-over",   "mode_param=",
                                            "ordering=",        NULL};
    const char *const *lists[] = {common, is_scheduler ? scheduler : NULL};

    for (size_t i = 0; i < 2; i++) {
        for (const char *const *name = lists[i]; name && *name; name++) {
            size_t n = strlen(*name);

            if (len >= n && memcmp(text, *name, n) == 0 && ((*name)[n - 1] == '=' || len == n))
                return true;
        }
    }
    return false;
}

static int add_parameter(struct spec *s, const char *text, size_t len, struct cryptodev_why *why)
{
    bool is_scheduler = strncmp(s->name, SCHEDULER, strlen(SCHEDULER)) == 0;

    if (len < 3 || !memchr(text + 1, '=', len - 2))
        return dpdk_why(why, SP_EINVAL, "'%.*s': expected param=value", (int)len, text);
    if (is_scheduler && len > 7 && memcmp(text, "worker=", 7) == 0) {
        if (s->worker_count == DEVICE_WORKERS_MAX || len - 7 >= DEVICE_NAME_BYTES - 4)
            return dpdk_why(why, SP_EINVAL, "'%.*s': at most %d workers, with short names",
                            (int)len, text, DEVICE_WORKERS_MAX);
        snprintf(s->workers[s->worker_count++], DEVICE_NAME_BYTES, "%.*s", (int)len - 7, text + 7);
        return 0;
    }
    if (!is_known(text, len, is_scheduler))
        return dpdk_why(
            why, SP_EINVAL, "'%.*s': unknown parameter; expected max_nb_queue_pairs=N%s", (int)len,
            text,
            is_scheduler ? ", worker=DEVICE or mode=round-robin, packet-size-distr or fail-over"
                         : " or socket_id=N");
    s->has_pairs |= len > 19 && memcmp(text, "max_nb_queue_pairs=", 19) == 0;
    s->has_mode |= len > 5 && memcmp(text, "mode=", 5) == 0;
    return append(s, "%.*s", (int)len, text) ? 0 : dpdk_why(why, SP_EINVAL, "too many parameters");
}

static int spec_parse(struct spec *s, const char *text, struct cryptodev_why *why)
{
    size_t len = strcspn(text, ",");
    int status = 0;

    *s = (struct spec){0};
    if (len == 0 || len >= DEVICE_NAME_BYTES - 4)
        return dpdk_why(why, SP_EINVAL,
                        "expected the name of a device, such as crypto_openssl, found '%.40s'",
                        text);
    snprintf(s->name, sizeof(s->name), "%.*s", (int)len, text);
    s->is_pci = is_pci_address(s->name);
    if (!s->is_pci && strncmp(s->name, "crypto_", 7) != 0)
        return dpdk_why(
            why, SP_ENOENT,
            "'%s': no such device; expected crypto_openssl, crypto_aesni_mb, crypto_aesni_gcm, "
            "crypto_scheduler, or the PCI address of a card",
            s->name);
    for (const char *rest = text + len; *rest && status == 0; rest += len + 1) {
        len = strcspn(rest + 1, ",");
        status = add_parameter(s, rest + 1, len, why);
    }
    if (status == 0 && s->is_pci && s->parameters[0])
        status = dpdk_why(why, SP_EINVAL, "a PCI device takes no parameters here, found '%.80s'",
                          s->parameters);
    return status;
}

/* --- making it -------------------------------------------------------------------------------------- */

/* What a run asks for at most, twice over for DPDK's own overheads; it is address space until it is used. */
static unsigned megabytes_of(const struct cryptodev_limits *limits)
{
    uint64_t requests = (uint64_t)limits->queues * limits->depth;
    uint64_t segments = limits->request_bytes_max / SEGMENT_BYTES + 2;
    uint64_t bytes =
        requests * (2 * (limits->request_bytes_max + 4096) + segments * 2 * 256 + 1024);
    uint64_t megabytes = MEGABYTES_MIN + ((bytes + bytes / 4) >> 20);

    return megabytes > MEGABYTES_MAX ? MEGABYTES_MAX : (unsigned)megabytes;
}

static int make_device(struct cryptodev *d, const char *name, const char *parameters,
                       struct cryptodev_why *why)
{
    int error;

    if (rte_cryptodev_get_dev_id(name) >= 0)
        return dpdk_why(why, SP_EINVAL, "the device %s is open already", name);
    dpdk_forget_errors();
    error = rte_eal_hotplug_add("vdev", name, parameters);
    if (error != 0 || rte_cryptodev_get_dev_id(name) < 0) {
        if (error == 0)
            (void)rte_eal_hotplug_remove("vdev", name);
        dpdk_why(why, SP_ENOENT, "DPDK makes no device '%s%s%s'", name, *parameters ? "," : "",
                 parameters);
        dpdk_add_error(why);
        return SP_ENOENT;
    }
    snprintf(d->names[d->name_count++], DEVICE_NAME_BYTES, "%s", name);
    return 0;
}

/* The workers of a scheduler first: it attaches them by name. */
static int make_workers(struct cryptodev *d, struct spec *s, struct cryptodev_why *why)
{
    char pairs[48];
    bool fits = true;
    int status = 0;

    if (s->worker_count == 0) {
        s->worker_count = 2;
        for (int i = 0; i < 2; i++)
            snprintf(s->workers[i], DEVICE_NAME_BYTES, "crypto_aesni_mb");
    }
    snprintf(pairs, sizeof(pairs), "max_nb_queue_pairs=%u", d->limits.queues);
    for (unsigned i = 0; i < s->worker_count && status == 0; i++) {
        char name[DEVICE_NAME_BYTES];

        snprintf(name, sizeof(name), "%.*s_w%u", DEVICE_NAME_BYTES - 16, s->workers[i], i);
        status = make_device(d, name, pairs, why);
        fits = fits && append(s, "worker=%s", name);
    }
    if (!s->has_mode)
        fits = fits && append(s, "mode=round-robin");
    return status == 0 && !fits ? dpdk_why(why, SP_EINVAL, "too many parameters") : status;
}

static int make_software(struct cryptodev *d, struct spec *s, struct cryptodev_why *why)
{
    int status = 0;

    if (strncmp(s->name, SCHEDULER, strlen(SCHEDULER)) == 0)
        status = make_workers(d, s, why);
    if (status == 0 && !s->has_pairs && !append(s, "max_nb_queue_pairs=%u", d->limits.queues))
        status = dpdk_why(why, SP_EINVAL, "too many parameters");
    return status == 0 ? make_device(d, s->name, s->parameters, why) : status;
}

/* A card has one device for each of its services: the one that does what is asked for. */
static int find_pci(struct cryptodev *d, const char *address, struct cryptodev_why *why)
{
    uint64_t wanted = d->limits.request_bytes_max ? RTE_CRYPTODEV_FF_SYMMETRIC_CRYPTO
                                                  : RTE_CRYPTODEV_FF_ASYMMETRIC_CRYPTO;

    for (int id = 0; id < RTE_CRYPTO_MAX_DEVS; id++) {
        struct rte_cryptodev_info info;

        if (!rte_cryptodev_is_valid_dev((uint8_t)id))
            continue;
        rte_cryptodev_info_get((uint8_t)id, &info);
        if ((info.feature_flags & wanted) && strstr(rte_cryptodev_name_get((uint8_t)id), address)) {
            d->id = (uint8_t)id;
            return 0;
        }
    }
    return dpdk_why(
        why, SP_ENOENT,
        "no crypto device at PCI address %s, or no driver bound to it (dpdk-devbind.py --status-dev crypto)",
        address);
}

/* --- starting it -------------------------------------------------------------------------------------- */

static unsigned session_bytes(const struct cryptodev *d)
{
    unsigned most = rte_cryptodev_sym_get_private_session_size(d->id);

    for (unsigned i = 0; i < d->name_count; i++) {
        int id = rte_cryptodev_get_dev_id(d->names[i]);
        unsigned bytes = id < 0 ? 0 : rte_cryptodev_sym_get_private_session_size((uint8_t)id);

        most = bytes > most ? bytes : most;
    }
    return most;
}

static int start_device(struct cryptodev *d, struct cryptodev_why *why)
{
    struct rte_cryptodev_config config = {.nb_queue_pairs = (uint16_t)d->limits.queues,
                                          .socket_id = SOCKET_ID_ANY};
    unsigned depth = d->limits.depth < DESCRIPTORS_MIN ? DESCRIPTORS_MIN : d->limits.depth;
    struct rte_cryptodev_qp_conf pair = {.nb_descriptors = rte_align32pow2(depth + 1)};
    int error;

    rte_cryptodev_info_get(d->id, &d->info);
    if (d->info.max_nb_queue_pairs && d->limits.queues > d->info.max_nb_queue_pairs)
        return dpdk_why(why, SP_EUNSUPPORTED,
                        "%s has %u queue pairs, and %u are needed, one a thread", d->name,
                        d->info.max_nb_queue_pairs, d->limits.queues);
    config.socket_id = rte_cryptodev_socket_id(d->id);
    dpdk_forget_errors();
    error = rte_cryptodev_configure(d->id, &config);
    for (uint16_t i = 0; i < d->limits.queues && error == 0; i++)
        error = rte_cryptodev_queue_pair_setup(d->id, i, &pair, config.socket_id);
    if (error == 0)
        error = rte_cryptodev_start(d->id);
    if (error != 0) {
        dpdk_why(why, SP_EIO, "%s does not start with %u queue pairs of %u", d->name,
                 d->limits.queues, pair.nb_descriptors);
        dpdk_add_error(why);
        return SP_EIO;
    }
    d->started = true;
    /* What a scheduler can do is known now that its workers are configured. */
    rte_cryptodev_info_get(d->id, &d->info);
    d->session_bytes = session_bytes(d);
    return 0;
}

static int check_limits(const struct cryptodev_limits *limits, struct cryptodev_why *why)
{
    if (limits->queues < 1 || limits->queues > CRYPTODEV_QUEUES_MAX || limits->depth < 1 ||
        limits->depth > CRYPTODEV_DEPTH_MAX ||
        limits->request_bytes_max > CRYPTODEV_REQUEST_BYTES_MAX)
        return dpdk_why(why, SP_EINVAL, "at most %d queues of %d requests of %u bytes",
                        CRYPTODEV_QUEUES_MAX, CRYPTODEV_DEPTH_MAX, CRYPTODEV_REQUEST_BYTES_MAX);
    return 0;
}

int dpdk_device_open(const char *spec, const struct cryptodev_limits *limits,
                     struct cryptodev **out, char *description, size_t size,
                     struct cryptodev_why *why)
{
    struct cryptodev *d;
    struct spec s;
    int status = check_limits(limits, why);

    if (status == 0)
        status = spec_parse(&s, spec, why);
    if (status == 0)
        status = dpdk_start(megabytes_of(limits), s.is_pci ? s.name : NULL, why);
    if (status != 0)
        return status;
    d = calloc(1, sizeof(*d));
    if (d)
        d->pairs_taken = calloc(limits->queues, sizeof(*d->pairs_taken));
    if (!d || !d->pairs_taken) {
        free(d);
        return dpdk_why(why, SP_ENOMEM, "out of memory");
    }
    d->limits = *limits;
    snprintf(d->name, sizeof(d->name), "%s", s.name);
    status = s.is_pci ? find_pci(d, s.name, why) : make_software(d, &s, why);
    if (status == 0 && !s.is_pci)
        d->id = (uint8_t)rte_cryptodev_get_dev_id(s.name);
    if (status == 0)
        status = start_device(d, why);
    if (status != 0) {
        dpdk_device_close(d);
        return status;
    }
    snprintf(description, size, "%s, driver %s, %s", rte_version(), d->info.driver_name,
             d->info.feature_flags & RTE_CRYPTODEV_FF_HW_ACCELERATED ? "hardware" : "software");
    *out = d;
    return 0;
}

void dpdk_device_close(struct cryptodev *d)
{
    if (!d)
        return;
    /* The driver would free what it may still write to. */
    if (atomic_load(&d->has_lost))
        return;
    if (d->started) {
        rte_cryptodev_stop(d->id);
        rte_cryptodev_close(d->id);
    }
    for (unsigned i = d->name_count; i-- > 0;)
        (void)rte_eal_hotplug_remove("vdev", d->names[i]);
    free(d->pairs_taken);
    free(d);
}

int dpdk_pair_take(struct cryptodev *device, struct cryptodev_why *why)
{
    for (unsigned i = 0; i < device->limits.queues; i++) {
        if (!atomic_exchange(&device->pairs_taken[i], 1))
            return (int)i;
    }
    return dpdk_why(why, SP_EUNSUPPORTED, "all %u queue pairs of %s are in use", device->limits.queues, device->name);
}

void dpdk_pair_give(struct cryptodev *device, int pair)
{
    atomic_store(&device->pairs_taken[pair], 0);
}
