/*
 * The process's random generator for the TLS library.
 *
 * The library's own asks the kernel for the process id before every single draw, so as to notice a
 * fork; that is some fifteen system calls a handshake. This one keeps its state a thread in a page
 * that the kernel clears in a forked child, and needs none.
 */
#ifndef SP_TLS_RANDOM_H
#define SP_TLS_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* Takes the generator into use for the whole process; more calls are harmless. */
void tls_random_install(void);

/* Unpredictable bytes of this thread's generator: 0, or SP_EIO when the kernel gave no seed. */
int tls_random_bytes(void *out, size_t len);

/*
 * ChaCha20 (RFC 8439 section 2.3) blocks with a zero nonce from block 0 on; `len` a multiple of
 * 256.
 */
void tls_random_keystream(const uint32_t key[8], uint8_t *out, size_t len);

#endif
