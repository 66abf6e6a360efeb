/*
 * A crypto device: RSA operations run beside the calling thread, which asks now and then whether they are done.
 */
#ifndef SP_CRYPTO_BACKEND_CRYPTODEV_H
#define SP_CRYPTO_BACKEND_CRYPTODEV_H

#include <sallyport/queue.h>

/* A queue pair of the device: of one queue. */
struct device_queue;

/* `rows`: bits 1 << enum sp_algorithm, what the device does. SP_ENOMEM; SP_EUNSUPPORTED: no queue pair is left. */
int device_queue_new(struct device_queue **out, struct sp_cryptodev *device, unsigned *rows);
/* Operations still there end with SP_ECANCELED. NULL is allowed. */
void device_queue_free(struct device_queue *q);
/*
 * 0: taken; SP_EAGAIN: full; SP_EINVAL: the input is not below the modulus; SP_EUNSUPPORTED: the device refuses the key, or has
 * failed too often; SP_EIO: it takes nothing.
 */
int device_submit(struct device_queue *q, struct sp_op *op);
/*
 * Up to max operations that are done, with their status: 0, the result verified with the public exponent and written; SP_EFAULT:
 * it was wrong; SP_EIO, SP_ETIMEDOUT: the device failed, or has not answered for a second. Then nothing was written.
 */
unsigned device_poll(struct device_queue *q, struct sp_op **ops, unsigned max);
/* Submits one and waits for it: as device_submit, or its status as in device_poll. */
int device_run(struct device_queue *q, struct sp_op *op);
/* The operation is the caller's again. */
void device_withdraw(struct device_queue *q, struct sp_op *op);
size_t device_in_flight(const struct device_queue *q);

#endif
