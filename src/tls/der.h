/*
 * A small reader of DER (ITU-T X.690), enough to look into certificates and
 * private keys when thousands of them are loaded: the library's own decoders
 * build complete objects and cost about a millisecond a certificate.
 *
 * Nothing here verifies a signature; what is used for a handshake is decoded
 * again, completely, by the TLS library.
 */
#ifndef SP_TLS_DER_H
#define SP_TLS_DER_H

#include "base/str.h"

enum {
    DER_INTEGER = 0x02,
    DER_BIT_STRING = 0x03,
    DER_OCTET_STRING = 0x04,
    DER_OID = 0x06,
    DER_UTC_TIME = 0x17,
    DER_GENERALIZED_TIME = 0x18,
    DER_SEQUENCE = 0x30,
    DER_SET = 0x31,
};

struct der_item {
    unsigned tag;
    struct str content;
    struct str whole; /* tag and length included */
};

/* Takes the next element off the front of *in. SP_EINVAL: not an element with a definite length. */
int der_next(struct str *in, struct der_item *out);

/* The next element, whose tag must be `tag`: SP_EINVAL otherwise. */
int der_expect(struct str *in, unsigned tag, struct der_item *out);

/* What a listener must know of a certificate (RFC 5280 section 4.1). Slices of the input. */
struct der_cert {
    struct str whole;      /* the certificate without anything that follows it */
    struct str subject;    /* contents of the Name: a list of SETs */
    struct str key_oid;    /* contents */
    struct str key_params; /* whole element; empty when absent */
    struct str key_bits;   /* subjectPublicKey without its count of unused bits */
    struct str alt_names;  /* contents of GeneralNames; ptr NULL when there is no such extension */
    int64_t not_before_s, not_after_s;
};

int der_cert_scan(struct str der, struct der_cert *out);

/*
 * Calls `found` with each DNS name of the certificate: subjectAltName first, then the common names.
 * SP_EUNSUPPORTED when a common name has a character set that is not a superset of ASCII; otherwise
 * what `found` answered when it was not 0.
 */
int der_cert_names(const struct der_cert *cert, int (*found)(void *arg, struct str name),
                   void *arg);

enum der_key_type { DER_KEY_RSA, DER_KEY_EC, DER_KEY_OTHER };

enum der_key_type der_cert_key_type(const struct der_cert *cert);

/* Bits of an RSA modulus, or of an EC point's coordinate; 0 when unknown. */
unsigned der_cert_key_size(const struct der_cert *cert);

/* A private key's encoding as its PEM label tells: PKCS#8, PKCS#1 or SEC1. */
enum der_key_form { DER_FORM_PKCS8, DER_FORM_PKCS1, DER_FORM_SEC1 };

/*
 * 0 when the key's public part is the certificate's, SP_ENOENT when it is another one,
 * SP_EUNSUPPORTED when the encoding does not tell (no public part inside, another algorithm),
 * SP_EINVAL when malformed.
 */
int der_key_matches(struct str key, enum der_key_form form, const struct der_cert *cert);

#endif
