/*
 * The kernel's crypto API from user space: AF_ALG sockets (Documentation/crypto/userspace-if.rst of Linux).
 *
 * A transform socket is bound to an algorithm and a key; each request in flight has an operation socket of its own,
 * since an operation socket is a stream. A request is a sendmsg (the data are copied into the kernel) and a read (the
 * kernel writes into our memory). The read is a plain one, or an iocb of Linux AIO: only of the latter does the kernel
 * return before it is done.
 *
 * was_async: the kernel writes down completions in their order. Behind the reads of a submission goes one of /dev/null,
 * which is done when it is submitted: what stands behind it was still in flight then.
 */
#include "measure/sweep_impl.h"

#include "base/clock.h"
#include "base/str.h"

#include <sallyport/status.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/if_alg.h>
#include <linux/rtnetlink.h>
#include <openssl/crypto.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define NAME_BYTES sizeof(((struct sockaddr_alg *)0)->salg_name)
#define WAIT_NS 5000000000ull /* a device that takes longer for one request has stopped */
#define NAP_NS 1000000
#define EVENTS_MAX 64
#define PROC_CRYPTO_MAX (1u << 20)
#define MARKER UINT64_MAX

struct sweep_device {
    char driver[NAME_BYTES]; /* empty: the kernel's choice */
    uint64_t bytes_max;
    atomic_bool has_stopped; /* a request timed out: anything more, a key even, may wait in the kernel for ever */
};

/* A request in flight and its operation socket. */
struct slot {
    int fd;
    struct sweep_request *request; /* NULL: free */
    unsigned batch;                /* of submissions: which */
    size_t expected;               /* bytes that the kernel writes */
    struct iovec out[3];
    int out_count;
    uint8_t header[16]; /* the associated data come back in front of the ciphertext */
    uint8_t tag[64];    /* here, since a request that timed out may be gone when the device writes it */
    struct iocb iocb;
};

struct sweep_session {
    const struct sweep_algorithm *algorithm;
    struct sweep_device *device;
    int transform;
    uint64_t bytes_max;
    aio_context_t aio; /* 0: none */
    unsigned depth;
    unsigned in_flight; /* in the kernel */
    unsigned batch;
    int marker_fd; /* /dev/null */
    struct iocb marker;
    bool is_marked;      /* the marker of the last submission was seen */
    int last_error;      /* errno of the last request that failed */
    bool completes_late; /* its driver is asynchronous in fact, not in name alone */
    struct slot *slots;
    struct iocb **iocbs;
    struct sweep_request **done; /* completed, not yet polled */
    unsigned done_count;
};

static int aio_setup(unsigned events, aio_context_t *out)
{
    return (int)syscall(SYS_io_setup, events, out);
}

static int aio_submit(aio_context_t aio, long n, struct iocb **iocbs)
{
    return (int)syscall(SYS_io_submit, aio, n, iocbs);
}

static int aio_events(aio_context_t aio, long min, struct io_event *events, struct timespec *timeout)
{
    return (int)syscall(SYS_io_getevents, aio, min, (long)EVENTS_MAX, events, timeout);
}

static int device_open(const char *argument, const struct sweep_limits *limits, struct sweep_device **out,
                       char *description, size_t size, struct sweep_why *why)
{
    struct sweep_device *device;
    struct utsname name;
    int fd;

    if (argument && (strlen(argument) == 0 || strlen(argument) >= NAME_BYTES))
        return sweep_why(why, SP_EINVAL, "a driver's name has 1 to %zu bytes", NAME_BYTES - 1);
    fd = socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0 && errno == EAFNOSUPPORT)
        return sweep_why(why, SP_EUNSUPPORTED,
                         "this kernel has no AF_ALG sockets (CONFIG_CRYPTO_USER_API, module af_alg)");
    if (fd < 0)
        return sweep_why(why, errno == EPERM || errno == EACCES ? SP_EPERM : SP_EIO, "no AF_ALG socket: %s",
                         strerrordesc_np(errno));
    close(fd);
    device = calloc(1, sizeof(*device));
    if (!device)
        return SP_ENOMEM;
    if (argument)
        memcpy(device->driver, argument, strlen(argument) + 1);
    device->bytes_max = limits->request_bytes_max;
    if (uname(&name) != 0)
        name.release[0] = '\0';
    (void)snprintf(description, size, "Linux %s through AF_ALG, %s", name.release,
                   argument ? argument : "the driver of highest priority");
    *out = device;
    return 0;
}

static void device_close(struct sweep_device *device)
{
    free(device);
}

/* "name" or "driver" of a line of /proc/crypto, with its value; false: another line. */
static bool proc_value(struct str line, const char *key, struct str *value)
{
    size_t colon = str_chr(line, ':');

    if (colon == line.len || !str_eq(str_trim(str_make(line.ptr, colon)), str_of(key)))
        return false;
    *value = str_trim(str_from(line, colon + 1));
    return true;
}

/* Whether /proc/crypto has `driver` under another name than `algorithm`, and which. */
static bool does_another(struct str text, struct str driver, struct str algorithm, struct str *other)
{
    struct str name = STR_NULL, value;
    bool is_another = false;

    while (text.len) {
        size_t end = str_chr(text, '\n');
        struct str line = str_make(text.ptr, end);

        text = str_from(text, end + 1);
        if (proc_value(line, "name", &value))
            name = value;
        if (!proc_value(line, "driver", &value) || !str_eq(value, driver))
            continue;
        if (str_eq(name, algorithm))
            return false;
        is_another = true;
        *other = name;
    }
    return is_another;
}

/* A driver bound by its name does what it does, whatever was asked for: the kernel's list says what that is. */
static int check_driver(const char *driver, const char *algorithm, struct sweep_why *why)
{
    FILE *file = fopen("/proc/crypto", "re");
    char *text = file ? malloc(PROC_CRYPTO_MAX) : NULL;
    struct str other = STR_NULL;
    int status = 0;

    if (text) {
        size_t len = fread(text, 1, PROC_CRYPTO_MAX, file);

        if (does_another(str_make(text, len), str_of(driver), str_of(algorithm), &other))
            status = sweep_why(why, SP_EUNSUPPORTED, "%s does %.*s, not %s", driver, STR_FMT(other), algorithm);
    }
    free(text);
    if (file)
        (void)fclose(file);
    return status;
}

static const char *transform_type(const struct sweep_algorithm *algorithm)
{
    return algorithm->kind == SWEEP_DIGEST ? "hash" : algorithm->kind == SWEEP_CIPHER ? "skcipher" : "aead";
}

/* The file descriptor, or why not. */
static int transform_open(const struct sweep_device *device, const struct sweep_algorithm *algorithm,
                          struct sweep_why *why)
{
    struct sockaddr_alg address = {.salg_family = AF_ALG};
    const char *name = device->driver[0] ? device->driver : algorithm->kernel_name;
    int fd, status;

    if (!algorithm->kernel_name || strlen(name) >= NAME_BYTES)
        return sweep_why(why, SP_EUNSUPPORTED, "the kernel's crypto API does not do %s", algorithm->name);
    (void)snprintf((char *)address.salg_type, sizeof(address.salg_type), "%s", transform_type(algorithm));
    (void)snprintf((char *)address.salg_name, sizeof(address.salg_name), "%s", name);
    fd = socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return sweep_why(why, SP_EIO, "no AF_ALG socket: %s", strerrordesc_np(errno));
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        status = errno;
        close(fd);
        if (status == ENOENT)
            return sweep_why(why, SP_EUNSUPPORTED, "this kernel has no %s of type %s (its module, or algif_%s)", name,
                             transform_type(algorithm), transform_type(algorithm));
        return sweep_why(why, SP_EUNSUPPORTED, "%s: %s", name, strerrordesc_np(status));
    }
    status = device->driver[0] ? check_driver(name, algorithm->kernel_name, why) : 0;
    if (status != 0) {
        close(fd);
        return status;
    }
    return fd;
}

/* Of authenc: a routing attribute that holds the length of the cipher's key, then both keys (crypto/authenc.h). */
static size_t authenc_key(const struct sweep_key *key, uint8_t *out)
{
    const struct sweep_algorithm *algorithm = key->algorithm;
    struct rtattr attribute = {.rta_len = RTA_LENGTH(4), .rta_type = 1 /* CRYPTO_AUTHENC_KEYA_PARAM */};
    const uint8_t length[4] = {0, 0, (uint8_t)(algorithm->key_bytes >> 8), (uint8_t)algorithm->key_bytes};
    size_t n = RTA_LENGTH(0);

    memcpy(out, &attribute, sizeof(attribute));
    memcpy(out + n, length, sizeof(length));
    n += sizeof(length);
    memcpy(out + n, key->hmac_key, algorithm->hmac_key_bytes);
    n += algorithm->hmac_key_bytes;
    memcpy(out + n, key->key, algorithm->key_bytes);
    return n + algorithm->key_bytes;
}

static int set_key(int fd, const struct sweep_key *key, struct sweep_why *why)
{
    const struct sweep_algorithm *algorithm = key->algorithm;
    uint8_t blob[sizeof(struct rtattr) + 4 + sizeof(key->key) + sizeof(key->hmac_key)];
    size_t len = algorithm->key_bytes;
    int status = 0;

    if (algorithm->kind == SWEEP_CIPHER_HMAC)
        len = authenc_key(key, blob);
    else
        memcpy(blob, key->key, len);
    if (len && setsockopt(fd, SOL_ALG, ALG_SET_KEY, blob, (socklen_t)len) != 0)
        status = sweep_why(why, SP_EUNSUPPORTED, "the driver refuses a key of %u bytes: %s", algorithm->key_bytes,
                           strerrordesc_np(errno));
    else if ((algorithm->kind == SWEEP_AEAD || algorithm->kind == SWEEP_CIPHER_HMAC) &&
             setsockopt(fd, SOL_ALG, ALG_SET_AEAD_AUTHSIZE, NULL, algorithm->tag_bytes) != 0)
        status = sweep_why(why, SP_EUNSUPPORTED, "the driver refuses a tag of %u bytes: %s", algorithm->tag_bytes,
                           strerrordesc_np(errno));
    OPENSSL_cleanse(blob, sizeof(blob));
    return status;
}

/* An operation socket that takes requests of `bytes`, as far as this user may have it. */
static int operation_open(int transform, uint64_t bytes)
{
    int fd = accept4(transform, NULL, NULL, SOCK_CLOEXEC);
    int room = (int)(bytes + 16384);

    if (fd < 0)
        return -1;
    /* Beyond net.core.wmem_max only with CAP_NET_ADMIN; whether it is enough shows in the request itself. */
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) != 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) != 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
    return fd;
}

static struct cmsghdr *put_control(struct msghdr *message, struct cmsghdr *at, int type, const void *data, size_t len)
{
    at->cmsg_level = SOL_ALG;
    at->cmsg_type = type;
    at->cmsg_len = CMSG_LEN(len);
    memcpy(CMSG_DATA(at), data, len);
    return CMSG_NXTHDR(message, at);
}

/* Where the kernel writes to. */
static void place_output(struct slot *slot, const struct sweep_algorithm *algorithm)
{
    struct sweep_request *request = slot->request;
    int n = 0;

    if (algorithm->kind == SWEEP_CIPHER_HMAC)
        slot->out[n++] = (struct iovec){slot->header, algorithm->iv_bytes};
    if (algorithm->kind != SWEEP_DIGEST)
        slot->out[n++] = (struct iovec){request->out, request->len};
    if (algorithm->tag_bytes)
        slot->out[n++] = (struct iovec){slot->tag, algorithm->tag_bytes};
    slot->out_count = n;
    slot->expected = 0;
    for (int i = 0; i < n; i++)
        slot->expected += slot->out[i].iov_len;
}

/* The request's data to the kernel. 0, or errno. */
static int send_request(struct slot *slot, const struct sweep_algorithm *algorithm)
{
    struct sweep_request *request = slot->request;
    struct iovec in[2];
    union {
        struct cmsghdr align;
        uint8_t bytes[2 * CMSG_SPACE(sizeof(uint32_t)) + CMSG_SPACE(sizeof(struct af_alg_iv) + 16)];
    } control = {0};
    struct {
        uint32_t len;
        uint8_t iv[16];
    } iv = {.len = algorithm->iv_bytes};
    struct msghdr message = {.msg_iov = in};
    uint32_t operation = ALG_OP_ENCRYPT, associated = 0;
    size_t total = 0;
    ssize_t sent;

    place_output(slot, algorithm);
    /* Encrypt, then MAC over IV and ciphertext: the IV stands in the associated data, as ESP has it. */
    if (algorithm->kind == SWEEP_CIPHER_HMAC) {
        associated = algorithm->iv_bytes;
        in[message.msg_iovlen++] = (struct iovec){request->iv, algorithm->iv_bytes};
    }
    in[message.msg_iovlen++] = (struct iovec){(void *)(uintptr_t)request->in, request->len};
    for (size_t i = 0; i < message.msg_iovlen; i++)
        total += in[i].iov_len;
    if (algorithm->kind != SWEEP_DIGEST) {
        struct cmsghdr *at;

        memcpy(iv.iv, request->iv, algorithm->iv_bytes);
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(uint32_t)) + CMSG_SPACE(sizeof(uint32_t) + algorithm->iv_bytes) +
                                 (algorithm->kind == SWEEP_CIPHER ? 0 : CMSG_SPACE(sizeof(uint32_t)));
        at = put_control(&message, CMSG_FIRSTHDR(&message), ALG_SET_OP, &operation, sizeof(operation));
        at = put_control(&message, at, ALG_SET_IV, &iv, sizeof(uint32_t) + algorithm->iv_bytes);
        if (algorithm->kind != SWEEP_CIPHER)
            (void)put_control(&message, at, ALG_SET_AEAD_ASSOCLEN, &associated, sizeof(associated));
    }
    do
        sent = sendmsg(slot->fd, &message, algorithm->kind == SWEEP_DIGEST ? 0 : MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return errno;
    return (size_t)sent == total ? 0 : EMSGSIZE;
}

/* After a failure an operation socket may hold half a request: a new one takes its place. */
static void slot_reset(struct sweep_session *s, struct slot *slot)
{
    if (slot->fd >= 0)
        close(slot->fd);
    slot->fd = operation_open(s->transform, s->bytes_max);
}

/* The request is done; the slot is free for another. */
static struct sweep_request *slot_finish(struct sweep_session *s, struct slot *slot, int error, bool was_async)
{
    struct sweep_request *request = slot->request;

    request->status = error == 0 ? 0 : SP_EIO;
    request->was_async = was_async;
    slot->request = NULL;
    if (error) {
        s->last_error = error;
        slot_reset(s, slot);
    } else {
        memcpy(request->tag, slot->tag, s->algorithm->tag_bytes);
    }
    return request;
}

/* Takes completions from the kernel; waits for one until `timeout`, NULL: not at all. How many there were. */
static unsigned reap(struct sweep_session *s, struct timespec *timeout)
{
    struct io_event events[EVENTS_MAX];
    struct timespec none = {0};
    unsigned total = 0;
    int n;

    while (s->in_flight) {
        n = aio_events(s->aio, timeout && total == 0 ? 1 : 0, events, timeout && total == 0 ? timeout : &none);
        for (int i = 0; i < n; i++) {
            struct slot *slot = &s->slots[events[i].data == MARKER ? 0 : events[i].data];
            int64_t result = (int64_t)events[i].res;
            int error;

            s->in_flight--;
            if (events[i].data == MARKER) {
                s->is_marked = true;
                continue;
            }
            error = result < 0 ? (int)-result : result == (int64_t)slot->expected ? 0 : EMSGSIZE;
            s->done[s->done_count++] = slot_finish(s, slot, error, slot->batch != s->batch || s->is_marked);
        }
        total += n > 0 ? (unsigned)n : 0;
        if (n < EVENTS_MAX)
            return total;
    }
    return total;
}

/* Hands over n reads; those that the kernel does not take have failed. */
static void submit_reads(struct sweep_session *s, unsigned n)
{
    unsigned at = 0;

    while (at < n) {
        int taken = aio_submit(s->aio, (long)(n - at), s->iocbs + at);

        if (taken > 0) {
            s->in_flight += (unsigned)taken;
            at += (unsigned)taken;
        } else if (taken < 0 && errno == EINTR) {
            continue;
        } else {
            int error = taken < 0 ? errno : EAGAIN;

            /* The first of them is refused; those behind it are tried by themselves. */
            if (s->iocbs[at]->aio_data != MARKER)
                s->done[s->done_count++] = slot_finish(s, &s->slots[s->iocbs[at]->aio_data], error, false);
            at++;
        }
    }
}

/* One request by sendmsg and readv. 0, or errno. */
static int run_at_once(struct sweep_session *s, struct slot *slot)
{
    int error = send_request(slot, s->algorithm);
    ssize_t got;

    if (error == 0) {
        do
            got = readv(slot->fd, slot->out, slot->out_count);
        while (got < 0 && errno == EINTR);
        error = got < 0 ? errno : (size_t)got == slot->expected ? 0 : EMSGSIZE;
    }
    return error;
}

static unsigned session_submit(struct sweep_session *s, struct sweep_request *const *requests, unsigned n)
{
    unsigned reads = 0, taken = 0;

    (void)reap(s, NULL);
    s->batch++;
    s->is_marked = false;
    for (; taken < n && requests[taken]->index < s->depth; taken++) {
        struct slot *slot = &s->slots[requests[taken]->index];
        int error;

        if (slot->request || s->in_flight + reads + s->done_count >= s->depth)
            break;
        slot->request = requests[taken];
        slot->batch = s->batch;
        error = s->aio ? send_request(slot, s->algorithm) : run_at_once(s, slot);
        if (error || !s->aio) {
            s->done[s->done_count++] = slot_finish(s, slot, error, false);
            continue;
        }
        slot->iocb = (struct iocb){.aio_data = requests[taken]->index,
                                   .aio_lio_opcode = IOCB_CMD_PREADV,
                                   .aio_fildes = (uint32_t)slot->fd,
                                   .aio_buf = (uint64_t)(uintptr_t)slot->out,
                                   .aio_nbytes = (uint64_t)slot->out_count};
        s->iocbs[reads++] = &slot->iocb;
    }
    if (reads) {
        s->marker =
            (struct iocb){.aio_data = MARKER, .aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = (uint32_t)s->marker_fd};
        s->iocbs[reads++] = &s->marker;
        submit_reads(s, reads);
    }
    /* The marker's completion does not take a request's place. */
    (void)reap(s, NULL);
    s->is_marked = true;
    return taken;
}

static unsigned session_poll(struct sweep_session *s, struct sweep_request **done, unsigned max, bool flush)
{
    unsigned n;

    (void)reap(s, NULL);
    /* Nothing else to do: waiting asleep leaves the CPU's time to those who work, and out of the account. */
    if (s->done_count == 0 && flush) {
        struct timespec nap = {0, NAP_NS};

        (void)reap(s, &nap);
    }
    n = s->done_count < max ? s->done_count : max;
    if (n)
        memcpy(done, s->done, n * sizeof(*done));
    s->done_count -= n;
    memmove(s->done, s->done + n, s->done_count * sizeof(*done));
    return n;
}

/* One request, waited for but not for ever: it stays in flight then, and the session is of no use. */
static int run_late(struct sweep_session *s, struct sweep_request *request)
{
    uint64_t deadline = clock_now_ns() + WAIT_NS;
    struct sweep_request *done;

    if (session_submit(s, &request, 1) != 1)
        return request->status = SP_ETIMEDOUT;
    while (session_poll(s, &done, 1, true) == 0) {
        if (clock_now_ns() > deadline) {
            atomic_store(&s->device->has_stopped, true);
            return request->status = SP_ETIMEDOUT;
        }
    }
    return request->status;
}

static int session_run(struct sweep_session *s, struct sweep_request *request)
{
    struct slot *slot = &s->slots[0];

    if (s->completes_late)
        return run_late(s, request);
    slot->request = request;
    return slot_finish(s, slot, run_at_once(s, slot), false)->status;
}

static void session_close(struct sweep_session *s)
{
    uint64_t deadline = clock_now_ns() + (atomic_load(&s->device->has_stopped) ? 0 : WAIT_NS);

    while (s->in_flight && clock_now_ns() < deadline) {
        struct timespec nap = {0, NAP_NS};

        s->done_count = 0;
        (void)reap(s, &nap);
    }
    /* io_destroy would wait for what the device still has, and the device still writes. */
    if (s->in_flight) {
        atomic_store(&s->device->has_stopped, true);
        return;
    }
    if (s->aio)
        (void)syscall(SYS_io_destroy, s->aio);
    for (unsigned i = 0; s->slots && i < s->depth; i++)
        if (s->slots[i].fd >= 0)
            close(s->slots[i].fd);
    if (s->transform >= 0)
        close(s->transform);
    if (s->marker_fd >= 0)
        close(s->marker_fd);
    free(s->slots);
    free(s->iocbs);
    free(s->done);
    free(s);
}

/*
 * Whether the driver leaves a request in flight. Many that call themselves asynchronous answer at once, and cost one
 * system call less a request when it is known.
 */
static int probe(struct sweep_session *s, struct sweep_why *why)
{
    unsigned len = s->algorithm->granule_bytes > 16 ? s->algorithm->granule_bytes : 16;
    uint8_t *memory = calloc(1, len);
    struct sweep_request request = {.in = memory, .out = memory, .len = len};
    int status = memory ? run_late(s, &request) : SP_ENOMEM;

    if (status == SP_ETIMEDOUT)
        return sweep_why(why, status, "the driver did not complete a request within %llu s", WAIT_NS / 1000000000);
    s->completes_late = status == 0 && request.was_async;
    free(memory);
    return status == 0 ? 0 : sweep_why(why, status, "the driver failed a request of %u bytes", len);
}

static int open_slots(struct sweep_session *s, struct sweep_why *why)
{
    for (unsigned i = 0; i < s->depth; i++)
        s->slots[i].fd = -1;
    for (unsigned i = 0; i < s->depth; i++) {
        s->slots[i].fd = operation_open(s->transform, s->bytes_max);
        if (s->slots[i].fd < 0 && errno == EMFILE)
            return sweep_why(why, SP_EUNSUPPORTED,
                             "a request in flight takes a file descriptor, and only %u are left (ulimit -n)", i);
        if (s->slots[i].fd < 0)
            return sweep_why(why, SP_EIO, "no operation socket: %s", strerrordesc_np(errno));
    }
    return 0;
}

static int session_open(struct sweep_device *device, unsigned thread, const struct sweep_key *key, unsigned depth,
                        struct sweep_session **out, struct sweep_why *why)
{
    struct sweep_session *s;
    int status;

    if (atomic_load(&device->has_stopped))
        return sweep_why(why, SP_EUNSUPPORTED, "the driver has stopped answering");
    s = calloc(1, sizeof(*s));
    if (!s)
        return SP_ENOMEM;
    *s = (struct sweep_session){.algorithm = key->algorithm,
                                .device = device,
                                .bytes_max = device->bytes_max,
                                .transform = -1,
                                .marker_fd = -1};
    s->slots = calloc(depth, sizeof(*s->slots));
    s->iocbs = calloc(depth + 1, sizeof(*s->iocbs));
    s->done = calloc(depth, sizeof(*s->done));
    status = s->slots && s->iocbs && s->done ? 0 : SP_ENOMEM;
    if (status == 0)
        status = s->transform = transform_open(device, key->algorithm, why);
    if (status >= 0)
        status = set_key(s->transform, key, why);
    if (status == 0) {
        s->depth = depth;
        status = open_slots(s, why);
    }
    if (status == 0 && (s->marker_fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
        status = sweep_why(why, SP_EIO, "/dev/null: %s", strerrordesc_np(errno));
    /* Without AIO (CONFIG_AIO, or a filter of system calls) one request after the other still works. */
    if (status == 0 && aio_setup(depth + 1, &s->aio) != 0 && depth > 1)
        status =
            sweep_why(why, SP_EUNSUPPORTED, "Linux AIO for %u requests in flight: %s", depth, strerrordesc_np(errno));
    if (status == 0 && s->aio)
        status = probe(s, why);
    if (status != 0)
        session_close(s);
    else
        *out = s;
    return status;
}

/* Memory that a stopped device may still write to is not given back. */
static void *buffer_alloc(struct sweep_session *s, size_t bytes)
{
    return aligned_alloc(64, (bytes + 63) & ~(size_t)63);
}

static void buffer_free(struct sweep_session *s, void *buffer, size_t bytes)
{
    if (!s->in_flight)
        free(buffer);
}

/* What keeps a request of this size from being one. */
static int explain(const struct sweep_session *s, uint64_t bytes, struct sweep_why *why)
{
    unsigned long long kib = (unsigned long long)(bytes + 1023) / 1024;
    int error = s->last_error, room = 0;
    socklen_t len = sizeof(room);

    (void)getsockopt(s->slots[0].fd, SOL_SOCKET, SO_SNDBUF, &room, &len);
    /* Half a request in the kernel means either limit: the buffer's own is known. */
    if ((error == EMSGSIZE || error == EAGAIN) && (uint64_t)room < bytes + 4096)
        return sweep_why(why, SP_EUNSUPPORTED,
                         "one request of %llu KiB is beyond net.core.wmem_max, for users without CAP_NET_ADMIN", kib);
    if (error == EMSGSIZE || error == EAGAIN || error == ENOMEM || error == ENOBUFS)
        return sweep_why(why, SP_EUNSUPPORTED,
                         "the kernel's lists of pages of one request of %llu KiB are beyond net.core.optmem_max", kib);
    return sweep_why(why, SP_EUNSUPPORTED, "the kernel fails a request of %llu bytes: %s", (unsigned long long)bytes,
                     strerrordesc_np(error));
}

/*
 * By trying it: which sizes the kernel takes in one request follows from limits on socket memory and from how each
 * version counts what against them. A larger request would be cut into several, and measure something else.
 */
static int supports(struct sweep_device *device, const struct sweep_algorithm *algorithm, uint64_t request_bytes,
                    bool in_place, struct sweep_why *why)
{
    struct sweep_key key = {.algorithm = algorithm};
    struct sweep_request request = {.len = (uint32_t)request_bytes};
    struct sweep_session *s;
    uint8_t *memory;
    int status;

    /* Halves that differ: XTS refuses others where FIPS 140 rules. */
    for (unsigned i = 0; i < sizeof(key.key); i++)
        key.key[i] = key.hmac_key[i] = (uint8_t)(i + 1);
    status = session_open(device, 0, &key, 1, &s, why);
    if (status != 0)
        return status == SP_ENOMEM ? status : SP_EUNSUPPORTED;
    memory = buffer_alloc(s, request_bytes);
    if (!memory) {
        session_close(s);
        return SP_ENOMEM;
    }
    memset(memory, 0, request_bytes);
    request.in = request.out = memory;
    status = s->aio ? run_late(s, &request) : session_run(s, &request);
    if (status == SP_ETIMEDOUT)
        status = sweep_why(why, SP_EUNSUPPORTED, "the driver did not complete a request of %llu bytes within %llu s",
                           (unsigned long long)request_bytes, WAIT_NS / 1000000000);
    else if (status != 0)
        status = explain(s, request_bytes, why);
    buffer_free(s, memory, request_bytes);
    session_close(s);
    return status;
}

const struct sweep_impl sweep_impl_af_alg = {
    .name = "af_alg",
    .argument = "[DRIVER]",
    .summary = "the kernel's crypto API through AF_ALG sockets; DRIVER as in /proc/crypto",
    .is_asynchronous = true,
    .device_open = device_open,
    .device_close = device_close,
    .supports = supports,
    .session_open = session_open,
    .session_close = session_close,
    .buffer_alloc = buffer_alloc,
    .buffer_free = buffer_free,
    .submit = session_submit,
    .poll = session_poll,
    .run = session_run,
};
