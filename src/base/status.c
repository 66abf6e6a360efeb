#include "base/status.h"

const char *sp_status_text(int status)
{
    switch (status) {
    case SP_OK:
        return "success";
    case SP_EINVAL:
        return "malformed input or argument";
    case SP_ENOMEM:
        return "out of memory";
    case SP_EAGAIN:
        return "operation would block";
    case SP_EPROTO:
        return "protocol violation by the peer";
    case SP_ETOOBIG:
        return "value or message too large";
    case SP_ENOENT:
        return "not found";
    case SP_EEXIST:
        return "already exists";
    case SP_EIO:
        return "input/output error";
    case SP_EEOF:
        return "end of stream";
    case SP_ERESET:
        return "connection reset by the peer";
    case SP_ETIMEDOUT:
        return "timed out";
    case SP_EUNSUPPORTED:
        return "not supported";
    case SP_EPERM:
        return "permission denied";
    case SP_EWANTREAD:
        return "waiting to read";
    case SP_EWANTWRITE:
        return "waiting to write";
    case SP_EWANTCRYPTO:
        return "waiting for a cryptographic operation";
    case SP_ECANCELED:
        return "canceled";
    case SP_EFAULT:
        return "wrong result of a computation";
    default:
        return status > 0 ? "success" : "unknown error";
    }
}
