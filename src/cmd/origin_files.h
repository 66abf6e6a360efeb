/*
 * What `sallyport origin` needs to know about files: which one a target names, its type, which part
 * of it a request wants, and the listing of a directory. RFC 9110 sections 13 and 14.
 */
#ifndef SP_CMD_ORIGIN_FILES_H
#define SP_CMD_ORIGIN_FILES_H

#include "http/http.h"

/* A directory that is served. Nothing outside it can be reached, whatever a target says. */
struct origin_dir {
    int fd;
    /* openat2(2) is there: links that stay inside are followed. Otherwise no link is. */
    bool resolves_beneath;
};

/* SP_EIO with errno. */
int origin_dir_open(struct origin_dir *d, const char *path);
void origin_dir_close(struct origin_dir *d);

#define ORIGIN_PATH_BYTES 4096

/*
 * The decoded path relative to the directory, NUL-terminated in `out` (ORIGIN_PATH_BYTES): without
 * empty, "." and ".." segments, "" for the directory itself, a final '/' kept. SP_EINVAL: a bad
 * escape, a NUL, or above the directory. SP_ETOOBIG.
 */
int origin_path(struct str target_path, char *out, size_t *out_len);

#define ORIGIN_ETAG_BYTES 40

struct origin_file {
    int fd; /* the caller's to close */
    bool is_directory;
    uint64_t size;
    int64_t mtime_s;
    char etag[ORIGIN_ETAG_BYTES]; /* with its quotes */
};

/*
 * Opens a file or directory by what origin_path gave. SP_ENOENT: none, or neither file nor
 * directory, or outside; SP_EPERM: not readable; SP_ENOMEM: out of descriptors or memory.
 */
int origin_open(const struct origin_dir *d, const char *path, struct origin_file *out);

/* Content-Type by the name's extension. */
struct str origin_type(struct str path);

/* The bytes of the file that answer a request. */
struct origin_slice {
    uint64_t first;
    uint64_t length;
};

/*
 * The status that answers a GET or HEAD for `f`: 200, 206 with *slice, 304, 412, or 416. Several
 * ranges, other units and malformed ranges are ignored, as RFC 9110 section 14.2 allows.
 */
unsigned origin_evaluate(const struct http_msg *m, const struct origin_file *f,
                         struct origin_slice *slice);

/*
 * An HTML page with links to what is in the directory `fd` (which stays open), headed by the shown
 * path. *html is from the heap. SP_ENOMEM, SP_EIO.
 */
int origin_listing(int fd, struct str shown_path, char **html, size_t *html_len);

/* Percent-encodes everything that is not unreserved or '/'; the length, or SP_ETOOBIG. */
ptrdiff_t origin_encode_path(struct str path, char *out, size_t room);

#endif
