/*
 * The inside of the module: what its files share. The contract is cryptodev.h.
 */
#ifndef SP_CRYPTO_CRYPTODEV_DPDK_INTERNAL_H
#define SP_CRYPTO_CRYPTODEV_DPDK_INTERNAL_H

#include "crypto/cryptodev/cryptodev.h"

#include <sallyport/status.h>

#include <rte_cryptodev.h>
#include <stdatomic.h>

#define DEVICE_NAME_BYTES RTE_CRYPTODEV_NAME_MAX_LEN
#define DEVICE_WORKERS_MAX 8
#define DRAIN_NS (2u * 1000000000u)
/* A segment's length has 16 bits; this much keeps the next one at a multiple of 64. */
#define SEGMENT_BYTES 65472u

/* Fills it as printf does, cut at its end; returns `status`. */
int dpdk_why(struct cryptodev_why *why, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* --- dpdk_eal.c: the environment ------------------------------------------------------------- */

/*
 * Starts DPDK's environment if it does not run, with `megabytes` of memory and the PCI device of that address (NULL: no
 * PCI). SP_EIO; SP_EUNSUPPORTED: it runs already, without that PCI device.
 */
int dpdk_start(unsigned megabytes, const char *pci_address, struct cryptodev_why *why);
/* Adds what DPDK logged first as an error, ": ...", if it logged any since `dpdk_forget_errors`. */
void dpdk_forget_errors(void);
void dpdk_add_error(struct cryptodev_why *why);
/* A name that no other pool of the process has. */
void dpdk_unique_name(char *out, size_t size, const char *kind);

/* --- dpdk_device.c ------------------------------------------------------------------------------ */

struct cryptodev {
    char names[DEVICE_WORKERS_MAX + 1]
              [DEVICE_NAME_BYTES]; /* software devices made for it, the device itself last */
    unsigned name_count;
    char name[DEVICE_NAME_BYTES]; /* as asked for: of messages */
    uint8_t id;
    struct rte_cryptodev_info info;
    struct cryptodev_limits limits;
    unsigned session_bytes; /* of the greatest among the device and its workers */
    bool started;
    atomic_bool has_lost;      /* requests were left in flight */
    atomic_uchar *pairs_taken; /* [limits.queues] */
};

/* A free queue pair, 0 or more; SP_EUNSUPPORTED: all are in use. */
int dpdk_pair_take(struct cryptodev *device, struct cryptodev_why *why);
void dpdk_pair_give(struct cryptodev *device, int pair);

/* dpdk_sym.c */
int dpdk_supports(struct cryptodev *device, const struct cryptodev_transform *transform,
                  uint64_t request_bytes, bool in_place, struct cryptodev_why *why);
int dpdk_queue_open(struct cryptodev *device, const struct cryptodev_transform *transform,
                    unsigned depth, struct cryptodev_queue **out, struct cryptodev_why *why);
/* The same for requests up to `request_bytes`. */
int dpdk_queue_open_for(struct cryptodev *device, const struct cryptodev_transform *transform,
                        unsigned depth, uint64_t request_bytes, struct cryptodev_queue **out,
                        struct cryptodev_why *why);
void dpdk_queue_close(struct cryptodev_queue *queue);
void *dpdk_alloc(struct cryptodev_queue *queue, size_t bytes);
void dpdk_free(struct cryptodev_queue *queue, void *buffer);
unsigned dpdk_submit(struct cryptodev_queue *queue, struct cryptodev_request *const *requests,
                     unsigned n);
unsigned dpdk_poll(struct cryptodev_queue *queue, struct cryptodev_request **done, unsigned max);

/* dpdk_transform.c: what a transform is to DPDK, and whether a device has it. */
struct dpdk_forms {
    struct rte_crypto_sym_xform first, second;
};
void dpdk_forms_init(struct dpdk_forms *forms, const struct cryptodev_transform *transform,
                     uint16_t iv_offset);
int dpdk_check_transform(const struct cryptodev *device,
                         const struct cryptodev_transform *transform, struct cryptodev_why *why);
/* "AES-CBC with HMAC-SHA256, 16 bytes of key"; `out`. */
const char *dpdk_transform_text(const struct cryptodev_transform *transform, char *out,
                                size_t size);

/* dpdk_trial.c: one request, compared with OpenSSL's result. SP_EUNSUPPORTED: the device refuses it or gets it wrong. */
int dpdk_try(struct cryptodev *device, const struct cryptodev_transform *transform,
             uint64_t request_bytes, bool in_place, struct cryptodev_why *why);

/* dpdk_rsa.c */
int dpdk_rsa_supports(struct cryptodev *device, unsigned modulus_bytes, struct cryptodev_why *why);
int dpdk_rsa_queue_open(struct cryptodev *device, struct cryptodev_rsa_queue **out,
                        struct cryptodev_why *why);
void dpdk_rsa_queue_close(struct cryptodev_rsa_queue *queue);
int dpdk_rsa_key_new(struct cryptodev_rsa_queue *queue, const struct cryptodev_rsa_parts *parts,
                     struct cryptodev_rsa_key **out);
void dpdk_rsa_key_free(struct cryptodev_rsa_key *key);
bool dpdk_rsa_key_is_busy(const struct cryptodev_rsa_key *key);
int dpdk_rsa_submit(struct cryptodev_rsa_queue *queue, struct cryptodev_rsa_request *request);
unsigned dpdk_rsa_poll(struct cryptodev_rsa_queue *queue, struct cryptodev_rsa_request **done,
                       unsigned max);
void dpdk_rsa_forget(struct cryptodev_rsa_queue *queue, struct cryptodev_rsa_request *request);

int dpdk_device_open(const char *spec, const struct cryptodev_limits *limits,
                     struct cryptodev **out, char *description, size_t size,
                     struct cryptodev_why *why);
void dpdk_device_close(struct cryptodev *device);

#endif
