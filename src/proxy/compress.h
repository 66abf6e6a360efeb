/*
 * Compression of response bodies (compression algo …): gzip, deflate and raw-deflate by zlib.
 */
#ifndef SP_PROXY_COMPRESS_H
#define SP_PROXY_COMPRESS_H

#include "proxy/proxy.h"

struct compressor;

/*
 * Decides by configuration, request and response whether this response is compressed, as HAProxy does. When it is, the
 * response's fields are changed (Content-Encoding, Vary, weak ETag, Content-Length removed, Transfer-Encoding:
 * chunked added) and *out is a compressor; otherwise *out is NULL. "identity" gives a compressor that only chunks.
 * Whose settings count: the backend's if it has any, else the frontend's. With offload the caller removed Accept-Encoding
 * from what the server saw; `accept_encoding` is the client's original value (empty: none).
 * 0 or SP_ENOMEM (the response is then left alone).
 */
int compress_start(const struct proxy *frontend, const struct proxy *backend, const struct http_msg *req,
                   struct str accept_encoding, struct http_msg *res, struct compressor **out);

/*
 * True when the settings ask that Accept-Encoding be hidden from the server: compression offload, and one of our
 * algorithms is among those that `req` accepts (others are left to the server).
 */
bool compress_offload(const struct proxy *frontend, const struct proxy *backend, const struct http_msg *req);

/*
 * Compresses `in` and appends complete chunks of the chunked coding to `out`. Returns how many bytes of `in` were taken
 * (less than all when `out` is full: call again with the rest once it was sent), or SP_EIO when the compressor is broken.
 * At least 64 bytes of room are needed to make progress. `in` empty: nothing happens.
 */
ptrdiff_t compress_feed(struct compressor *c, struct str in, struct buf *out);
/*
 * Makes what was fed so far readable by the client (a sync flush): for responses that trickle. SP_EAGAIN: out is full,
 * call again. 0 done (also when there was nothing to flush); SP_EIO.
 */
int compress_flush(struct compressor *c, struct buf *out);
/* Ends the stream: final data, last chunk and trailer section. SP_EAGAIN: out is full, call again. 0 done; SP_EIO. */
int compress_finish(struct compressor *c, struct buf *out);
void compress_free(struct compressor *c); /* NULL is allowed */

#endif
