/*
 * What functions return: 0 or one of these, all negative, so that a count can share the value.
 */
#ifndef SALLYPORT_STATUS_H
#define SALLYPORT_STATUS_H

enum sp_status {
    SP_OK = 0,
    SP_EINVAL = -1,        /* malformed input or argument */
    SP_ENOMEM = -2,        /* allocation failed or pool exhausted */
    SP_EAGAIN = -3,        /* would block: try again when ready */
    SP_EPROTO = -4,        /* the peer broke the protocol */
    SP_ETOOBIG = -5,       /* does not fit the bound that was given */
    SP_ENOENT = -6,        /* no such thing */
    SP_EEXIST = -7,        /* already there */
    SP_EIO = -8,           /* system call failed; errno says why */
    SP_EEOF = -9,          /* orderly end of the stream */
    SP_ERESET = -10,       /* the peer reset or vanished */
    SP_ETIMEDOUT = -11,    /* the deadline passed */
    SP_EUNSUPPORTED = -12, /* understood, but not provided */
    SP_EPERM = -13,        /* refused by policy or permissions */
    SP_EWANTREAD = -14,    /* TLS: needs bytes from the peer */
    SP_EWANTWRITE = -15,   /* TLS: needs room towards the peer */
    SP_EWANTCRYPTO = -16,  /* TLS: waits for a queued private-key operation */
    SP_ECANCELED = -17,    /* withdrawn before it ran */
    SP_EFAULT = -18,       /* a computed result failed its verification */
};

#endif
