/*
 * One io_uring instance by raw system calls: its memory, submission, completions and a ring of
 * receive buffers. It knows no sockets and no events; uring.h does.
 *
 * Completions appear only inside io_ring_enter (IORING_SETUP_DEFER_TASKRUN): between two calls,
 * an armed request takes nothing from its descriptor. The code above relies on that.
 */
#ifndef SP_IO_RING_H
#define SP_IO_RING_H

#include <linux/io_uring.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IO_RING_BUFFER_BYTES 16384u
#define IO_RING_BUFFERS 256u /* a power of two: about 4 MiB a ring */
#define IO_RING_BUFFER_GROUP 1

struct io_ring {
    int fd;
    bool enabled;
    unsigned sq_mask, sq_entries, cq_mask;
    unsigned sq_tail;    /* prepared up to here */
    unsigned sq_entered; /* the kernel has been given those up to here */
    unsigned *sq_head, *sq_shared_tail, *sq_flags;
    unsigned *cq_head, *cq_tail;
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
    void *rings; /* both queues in one mapping */
    size_t rings_bytes, sqes_bytes;
    struct io_uring_buf_ring *buf_ring;
    uint16_t buf_tail;
    char *buffers;
};

/*
 * Sets up a ring that no thread may enter yet. SP_EUNSUPPORTED with *missing saying what the kernel
 * lacks or refuses; nothing is left behind.
 */
int io_ring_open(struct io_ring *r, const char **missing);
/* Harmless on a ring that is all zero with fd -1. Requests in flight are given up by the kernel later. */
void io_ring_close(struct io_ring *r);
/* The calling thread becomes the only one that may enter. 0, also when it was done before; SP_EIO. */
int io_ring_enable(struct io_ring *r);

/* Room for `count` requests, made by submitting if need be. False: not now. */
bool io_ring_reserve(struct io_ring *r, unsigned count);
/* The next request, zero but for these three; io_ring_reserve has been asked for it. */
struct io_uring_sqe *io_ring_sqe(struct io_ring *r, uint8_t opcode, int fd, uint64_t user_data);
/*
 * Submits what was prepared and waits until `wait` completions are there, at most `timeout_us`
 * (UINT64_MAX: for ever). Interruptions and time-outs are no failure.
 */
void io_ring_enter(struct io_ring *r, unsigned wait, uint64_t timeout_us);
/* As io_ring_enter without waiting, and without a system call when that would find nothing. */
void io_ring_poll(struct io_ring *r);
/* Whether an io_ring_enter would bring completions that the last one has left. */
bool io_ring_has_more(const struct io_ring *r);

/* The oldest completion that was not taken, or NULL; copied before io_ring_taken. */
const struct io_uring_cqe *io_ring_completion(const struct io_ring *r);
void io_ring_taken(struct io_ring *r);

char *io_ring_buffer(const struct io_ring *r, unsigned id);
void io_ring_give_back(struct io_ring *r, unsigned id);

#endif
