#include "crypto/cryptodev/dpdk_internal.h"

extern const struct cryptodev_table cryptodev_table;

const struct cryptodev_table cryptodev_table = {
    .version = CRYPTODEV_VERSION,
    .open = dpdk_device_open,
    .close = dpdk_device_close,
    .supports = dpdk_supports,
    .queue_open = dpdk_queue_open,
    .queue_close = dpdk_queue_close,
    .alloc = dpdk_alloc,
    .free = dpdk_free,
    .submit = dpdk_submit,
    .poll = dpdk_poll,
    .rsa_supports = dpdk_rsa_supports,
    .rsa_queue_open = dpdk_rsa_queue_open,
    .rsa_queue_close = dpdk_rsa_queue_close,
    .rsa_key_new = dpdk_rsa_key_new,
    .rsa_key_free = dpdk_rsa_key_free,
    .rsa_key_is_busy = dpdk_rsa_key_is_busy,
    .rsa_submit = dpdk_rsa_submit,
    .rsa_poll = dpdk_rsa_poll,
    .rsa_forget = dpdk_rsa_forget,
};
