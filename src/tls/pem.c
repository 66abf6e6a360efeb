#include "tls/pem.h"

#include "base/hash.h"
#include "base/status.h"

#include <openssl/crypto.h>
#include <stdlib.h>

void pem_reader_init(struct pem_reader *r, struct str text)
{
    *r = (struct pem_reader){.text = text, .line = 1};
}

/* The next line without its end; false at the end of the text. */
static bool next_line(struct pem_reader *r, struct str *out)
{
    struct str rest = str_from(r->text, r->at);
    size_t len = str_chr(rest, '\n');

    if (rest.len == 0)
        return false;
    r->at += len + (len < rest.len);
    r->line++;
    if (len && rest.ptr[len - 1] == '\r')
        len--;
    *out = str_trim(str_make(rest.ptr, len));
    return true;
}

static bool boundary(struct str line, struct str start, struct str *label)
{
    struct str dashes = STR("-----");

    if (!str_starts(line, start) || !str_ends(line, dashes) || line.len < start.len + dashes.len)
        return false;
    *label = str_make(line.ptr + start.len, line.len - start.len - dashes.len);
    return true;
}

static int fail(struct pem_reader *r, int line, const char *why)
{
    r->line = line;
    r->why = why;
    return SP_EINVAL;
}

/* Base64 lines up to the END line, gathered into `out`. */
static int gather(struct pem_reader *r, struct pem_block *block, char *out, size_t room,
                  size_t *out_len)
{
    struct str line, label;
    bool headers = true;

    for (;;) {
        if (!next_line(r, &line))
            return fail(r, block->line, "no END line");
        if (boundary(line, STR("-----END "), &label))
            break;
        if (str_starts(line, STR("-----BEGIN ")))
            return fail(r, block->line, "no END line");
        if (headers && str_chr(line, ':') < line.len) {
            if (str_starts(line, STR("Proc-Type:")) && str_find(line, STR("ENCRYPTED")) < line.len)
                block->encrypted = true;
            continue;
        }
        if (line.len && *out_len)
            headers = false;
        if (line.len > room - *out_len)
            return fail(r, r->line - 1, "malformed base64");
        memcpy(out + *out_len, line.ptr, line.len);
        *out_len += line.len;
    }
    return str_eq(label, block->label) ? 0 : fail(r, r->line - 1, "END does not match BEGIN");
}

int pem_next(struct pem_reader *r, struct pem_block *out)
{
    struct pem_block block = {0};
    struct str line;
    size_t room, len = 0;
    char *base64;
    int status, decoded;

    do {
        if (!next_line(r, &line))
            return 0;
    } while (!boundary(line, STR("-----BEGIN "), &block.label));
    block.line = r->line - 1;
    room = str_find(str_from(r->text, r->at), STR("-----END ")) + 1;
    base64 = malloc(room);
    block.der = malloc(room);
    status = base64 && block.der ? gather(r, &block, base64, room, &len) : SP_ENOMEM;
    if (status == 0) {
        decoded = hash_base64_decode(str_make(base64, len), (char *)block.der, room);
        if (decoded <= 0)
            status = fail(r, block.line, "malformed base64");
        else
            block.len = (size_t)decoded;
    }
    if (base64)
        OPENSSL_cleanse(base64, room);
    free(base64);
    if (status != 0) {
        if (block.der)
            OPENSSL_cleanse(block.der, room);
        free(block.der);
        return status;
    }
    *out = block;
    return 1;
}

void pem_block_release(struct pem_block *b)
{
    if (b->der)
        OPENSSL_cleanse(b->der, b->len);
    free(b->der);
    b->der = NULL;
}
