#include "io/ring.h"

#include "base/status.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SQ_ENTRIES 512
/* Also decides how many lists the kernel spreads the requests over among which it looks for one to cancel. */
#define CQ_ENTRIES 16384

/* Buffers a power of two apart would all compete for the same few lines of the cache. */
#define BUFFER_STRIDE (IO_RING_BUFFER_BYTES + 1088u)

#define SETUP_FLAGS                                                                      \
    (IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | IORING_SETUP_R_DISABLED |                \
     IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | \
     IORING_SETUP_TASKRUN_FLAG)

#define FEATURES                                                                \
    (IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE | \
     IORING_FEAT_FAST_POLL | IORING_FEAT_EXT_ARG | IORING_FEAT_CQE_SKIP)

static const uint8_t needed_ops[] = {
    IORING_OP_POLL_ADD, IORING_OP_ASYNC_CANCEL, IORING_OP_ACCEPT,
    IORING_OP_SEND,     IORING_OP_RECV,         IORING_OP_CLOSE,
};

static unsigned load(const unsigned *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

/* --- setting up -------------------------------------------------------------------- */

static const char *refusal(int error)
{
    switch (error) {
    case ENOSYS:
        return "the kernel has no io_uring";
    case EPERM:
        return "the kernel refuses io_uring_setup: Operation not permitted";
    case EACCES:
        return "the kernel refuses io_uring_setup: Permission denied";
    case EINVAL:
        return "the kernel refuses io_uring_setup: Invalid argument (it takes Linux 6.1)";
    case ENOMEM:
        return "the kernel refuses io_uring_setup: Cannot allocate memory";
    case EMFILE:
    case ENFILE:
        return "the kernel refuses io_uring_setup: Too many open files";
    default:
        return "the kernel refuses io_uring_setup";
    }
}

/* A forked child must neither write to the rings nor copy their pages. */
static void *map(size_t bytes, int fd, off_t offset)
{
    int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED | MAP_POPULATE;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, offset);

    if (p == MAP_FAILED)
        return NULL;
    madvise(p, bytes, MADV_DONTFORK);
    return p;
}

static int map_queues(struct io_ring *r, const struct io_uring_params *p)
{
    size_t sq_bytes = p->sq_off.array + p->sq_entries * sizeof(unsigned);
    size_t cq_bytes = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
    char *base;
    unsigned *array;

    r->rings_bytes = sq_bytes > cq_bytes ? sq_bytes : cq_bytes;
    r->sqes_bytes = p->sq_entries * sizeof(struct io_uring_sqe);
    r->rings = map(r->rings_bytes, r->fd, (off_t)IORING_OFF_SQ_RING);
    r->sqes = map(r->sqes_bytes, r->fd, (off_t)IORING_OFF_SQES);
    if (!r->rings || !r->sqes)
        return SP_ENOMEM;
    base = r->rings;
    r->sq_head = (unsigned *)(void *)(base + p->sq_off.head);
    r->sq_shared_tail = (unsigned *)(void *)(base + p->sq_off.tail);
    r->sq_flags = (unsigned *)(void *)(base + p->sq_off.flags);
    r->sq_entries = p->sq_entries;
    r->sq_mask = p->sq_entries - 1;
    r->cq_head = (unsigned *)(void *)(base + p->cq_off.head);
    r->cq_tail = (unsigned *)(void *)(base + p->cq_off.tail);
    r->cq_mask = p->cq_entries - 1;
    r->cqes = (struct io_uring_cqe *)(void *)(base + p->cq_off.cqes);
    array = (unsigned *)(void *)(base + p->sq_off.array);
    for (unsigned i = 0; i < p->sq_entries; i++)
        array[i] = i;
    return 0;
}

static int make_buffers(struct io_ring *r)
{
    struct io_uring_buf_reg reg = {.ring_entries = IO_RING_BUFFERS, .bgid = IO_RING_BUFFER_GROUP};

    r->buf_ring = map(IO_RING_BUFFERS * sizeof(struct io_uring_buf), -1, 0);
    r->buffers = map((size_t)IO_RING_BUFFERS * BUFFER_STRIDE, -1, 0);
    if (!r->buf_ring || !r->buffers)
        return SP_ENOMEM;
    reg.ring_addr = (uint64_t)(uintptr_t)r->buf_ring;
    if (syscall(__NR_io_uring_register, r->fd, IORING_REGISTER_PBUF_RING, &reg, 1) != 0)
        return SP_EUNSUPPORTED;
    for (unsigned i = 0; i < IO_RING_BUFFERS; i++)
        io_ring_give_back(r, i);
    return 0;
}

static bool has_operations(const struct io_ring *r)
{
    union {
        struct io_uring_probe probe;
        char room[sizeof(struct io_uring_probe) + 256 * sizeof(struct io_uring_probe_op)];
    } u;

    memset(&u, 0, sizeof(u));
    if (syscall(__NR_io_uring_register, r->fd, IORING_REGISTER_PROBE, &u, 256) != 0)
        return false;
    for (size_t i = 0; i < sizeof(needed_ops); i++) {
        const struct io_uring_probe_op *op = &u.probe.ops[needed_ops[i]];

        if (needed_ops[i] > u.probe.last_op || !(op->flags & IO_URING_OP_SUPPORTED))
            return false;
    }
    return true;
}

int io_ring_open(struct io_ring *r, const char **missing)
{
    struct io_uring_params p = {.flags = SETUP_FLAGS, .cq_entries = CQ_ENTRIES};

    *r = (struct io_ring){.fd = -1};
    r->fd = (int)syscall(__NR_io_uring_setup, SQ_ENTRIES, &p); /* closed on exec by itself */
    if (r->fd < 0) {
        *missing = refusal(errno);
        return SP_EUNSUPPORTED;
    }
    if ((p.features & FEATURES) != FEATURES)
        *missing = "the kernel's io_uring lacks features (it takes Linux 6.1)";
    else if (!has_operations(r))
        *missing = "the kernel's io_uring lacks operations (it takes Linux 6.1)";
    else if (map_queues(r, &p) != 0)
        *missing = "the queues of io_uring cannot be mapped";
    else if (make_buffers(r) != 0)
        *missing = "the kernel's io_uring refuses a ring of buffers";
    else
        return 0;
    io_ring_close(r);
    return SP_EUNSUPPORTED;
}

static void unmap(void *p, size_t bytes)
{
    if (p)
        munmap(p, bytes);
}

void io_ring_close(struct io_ring *r)
{
    if (r->fd >= 0)
        close(r->fd);
    unmap(r->rings, r->rings_bytes);
    unmap(r->sqes, r->sqes_bytes);
    unmap(r->buf_ring, IO_RING_BUFFERS * sizeof(struct io_uring_buf));
    unmap(r->buffers, (size_t)IO_RING_BUFFERS * BUFFER_STRIDE);
    *r = (struct io_ring){.fd = -1};
}

int io_ring_enable(struct io_ring *r)
{
    if (r->enabled)
        return 0;
    if (syscall(__NR_io_uring_register, r->fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0) != 0)
        return SP_EIO;
    r->enabled = true;
    return 0;
}

/* --- submission ------------------------------------------------------------------------ */

static void enter(struct io_ring *r, unsigned wait, unsigned flags, const void *arg, size_t len)
{
    long n;

    __atomic_store_n(r->sq_shared_tail, r->sq_tail, __ATOMIC_RELEASE);
    n = syscall(__NR_io_uring_enter, r->fd, r->sq_tail - r->sq_entered, wait, flags, arg, len);
    /* A wait that fails after requests were taken reports their number: the head tells for sure. */
    (void)n;
    r->sq_entered = load(r->sq_head);
}

bool io_ring_reserve(struct io_ring *r, unsigned count)
{
    if (r->sq_tail - load(r->sq_head) + count <= r->sq_entries)
        return true;
    enter(r, 0, 0, NULL, 0);
    return r->sq_tail - load(r->sq_head) + count <= r->sq_entries;
}

struct io_uring_sqe *io_ring_sqe(struct io_ring *r, uint8_t opcode, int fd, uint64_t user_data)
{
    struct io_uring_sqe *sqe = &r->sqes[r->sq_tail++ & r->sq_mask];

    memset(sqe, 0, sizeof(*sqe));
    sqe->opcode = opcode;
    sqe->fd = fd;
    sqe->user_data = user_data;
    return sqe;
}

void io_ring_enter(struct io_ring *r, unsigned wait, uint64_t timeout_us)
{
    struct __kernel_timespec ts = {.tv_sec = (long long)(timeout_us / 1000000),
                                   .tv_nsec = (long long)(timeout_us % 1000000 * 1000)};
    struct io_uring_getevents_arg arg = {.sigmask_sz = _NSIG / 8, .ts = (uint64_t)(uintptr_t)&ts};

    if (wait == 0 || timeout_us == UINT64_MAX)
        enter(r, wait, IORING_ENTER_GETEVENTS, NULL, _NSIG / 8);
    else
        enter(r, wait, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &arg, sizeof(arg));
}

void io_ring_poll(struct io_ring *r)
{
    if (r->sq_tail != r->sq_entered || io_ring_has_more(r))
        io_ring_enter(r, 0, 0);
}

bool io_ring_has_more(const struct io_ring *r)
{
    return load(r->sq_flags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

/* --- completions ------------------------------------------------------------------------- */

const struct io_uring_cqe *io_ring_completion(const struct io_ring *r)
{
    unsigned head = *r->cq_head;

    return head == load(r->cq_tail) ? NULL : &r->cqes[head & r->cq_mask];
}

void io_ring_taken(struct io_ring *r)
{
    __atomic_store_n(r->cq_head, *r->cq_head + 1, __ATOMIC_RELEASE);
}

char *io_ring_buffer(const struct io_ring *r, unsigned id)
{
    return r->buffers + (size_t)id * BUFFER_STRIDE;
}

void io_ring_give_back(struct io_ring *r, unsigned id)
{
    /* Not by the member `bufs`: compilers differ on what precedes it. */
    struct io_uring_buf *bufs = (struct io_uring_buf *)(void *)r->buf_ring;
    struct io_uring_buf *b = &bufs[r->buf_tail & (IO_RING_BUFFERS - 1)];

    /* The shared tail lies in the first entry's reserved field: only these three are written. */
    b->addr = (uint64_t)(uintptr_t)io_ring_buffer(r, id);
    b->len = IO_RING_BUFFER_BYTES;
    b->bid = (uint16_t)id;
    __atomic_store_n(&r->buf_ring->tail, ++r->buf_tail, __ATOMIC_RELEASE);
}
