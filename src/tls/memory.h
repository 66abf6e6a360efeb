/*
 * Memory of the TLS library: a handshake makes and drops some hundreds of small things, all of them on one thread. Free ones
 * are kept by size in lists of that thread, so that neither needs a lock or a search.
 */
#ifndef SP_TLS_MEMORY_H
#define SP_TLS_MEMORY_H

#include <stddef.h>

/* Size classes: 32 bytes, then two a power of two, up to 48 KiB: records, buffers and stacks of paused handshakes too. */
#define TLS_MEMORY_CLASSES 22
/* The class that holds `len` bytes, or -1: too long to be kept. */
int tls_memory_class(size_t len);
size_t tls_memory_class_bytes(int class_index);

#endif
