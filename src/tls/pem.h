/*
 * PEM files (RFC 7468, with the headers of RFC 1421 that old keys carry).
 */
#ifndef SP_TLS_PEM_H
#define SP_TLS_PEM_H

#include "base/str.h"

struct pem_block {
    struct str label; /* slice of the text: "CERTIFICATE", "RSA PRIVATE KEY" */
    bool encrypted;   /* a Proc-Type header says so */
    uint8_t *der;     /* heap, wiped by pem_block_release */
    size_t len;
    int line; /* of the BEGIN line */
};

struct pem_reader {
    struct str text;
    size_t at;
    int line;        /* of the next byte, from 1 */
    const char *why; /* static text of the last failure */
};

void pem_reader_init(struct pem_reader *r, struct str text);

/*
 * 1 and a block, 0 at the end of the text, SP_EINVAL (r->why, r->line), SP_ENOMEM. Text between
 * blocks is skipped.
 */
int pem_next(struct pem_reader *r, struct pem_block *out);

void pem_block_release(struct pem_block *b);

#endif
