#include "cmd/origin_files.h"

#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* O_NONBLOCK: opening a FIFO must not wait for its writer. */
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/* --- paths ----------------------------------------------------------------------- */

static int open_beneath(int dir_fd, const char *path)
{
    struct open_how how = {
        .flags = OPEN_FLAGS,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    long fd;
    unsigned tries = 0;

    /* EAGAIN: something was renamed meanwhile, so that the kernel cannot vouch for "..". */
    do
        fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
    while (fd < 0 && (errno == EINTR || (errno == EAGAIN && ++tries < 16)));
    return (int)fd;
}

/* Segment by segment, following no link. `path` has no ".." (origin_path). */
static int open_stepwise(int dir_fd, const char *path)
{
    int at = dir_fd;
    int fd = -1;

    for (;;) {
        struct str rest = str_of(path);
        size_t len = str_chr(rest, '/');
        bool last = len == rest.len;
        char name[NAME_MAX + 1];
        int flags = last ? OPEN_FLAGS | O_NOFOLLOW : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

        if (len > NAME_MAX) {
            errno = ENAMETOOLONG;
            fd = -1;
        } else {
            memcpy(name, path, len);
            name[len] = '\0';
            fd = openat(at, len ? name : ".", flags);
        }
        if (at != dir_fd) {
            int saved = errno;

            close(at);
            errno = saved;
        }
        if (fd < 0 || last)
            return fd;
        at = fd;
        path += len + 1;
    }
}

int origin_dir_open(struct origin_dir *d, const char *path)
{
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int probe;

    if (fd < 0)
        return SP_EIO;
    probe = open_beneath(fd, ".");
    if (probe >= 0)
        close(probe);
    d->fd = fd;
    /* Old kernels say ENOSYS, some sandboxes EPERM. */
    d->resolves_beneath = probe >= 0 || (errno != ENOSYS && errno != EPERM);
    return 0;
}

void origin_dir_close(struct origin_dir *d)
{
    if (d->fd >= 0)
        close(d->fd);
    d->fd = -1;
}

/* Drops the last segment of a path that ends with '/'; false when there is none. */
static bool drop_segment(const char *out, size_t *len)
{
    size_t n = *len;

    if (n == 0)
        return false;
    n--;
    while (n > 0 && out[n - 1] != '/')
        n--;
    *len = n;
    return true;
}

int origin_path(struct str target_path, char *out, size_t *out_len)
{
    char decoded[ORIGIN_PATH_BYTES];
    struct str rest;
    size_t len = 0;

    if (target_path.len >= sizeof(decoded))
        return SP_ETOOBIG;
    if (http_url_decode(target_path, false, decoded, &rest.len) != 0)
        return SP_EINVAL;
    rest.ptr = decoded;
    if (str_chr(rest, '\0') < rest.len)
        return SP_EINVAL;
    while (rest.len) {
        struct str segment = str_make(rest.ptr, str_chr(rest, '/'));
        bool closed = segment.len < rest.len;

        rest = str_from(rest, segment.len + closed);
        if (segment.len == 0 || str_eq(segment, STR(".")))
            continue;
        if (str_eq(segment, STR(".."))) {
            if (!drop_segment(out, &len))
                return SP_EINVAL;
            continue;
        }
        memcpy(out + len, segment.ptr, segment.len);
        len += segment.len;
        if (closed)
            out[len++] = '/';
    }
    out[len] = '\0';
    *out_len = len;
    return 0;
}

static int status_of_errno(int error)
{
    switch (error) {
    case EACCES:
    case EPERM:
        return SP_EPERM;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
        return SP_ENOMEM;
    default:
        return SP_ENOENT;
    }
}

int origin_open(const struct origin_dir *d, const char *path, struct origin_file *out)
{
    int fd =
        d->resolves_beneath ? open_beneath(d->fd, *path ? path : ".") : open_stepwise(d->fd, path);
    struct stat st;

    if (fd < 0)
        return status_of_errno(errno);
    if (fstat(fd, &st) != 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) {
        close(fd);
        return SP_ENOENT;
    }
    out->fd = fd;
    out->is_directory = S_ISDIR(st.st_mode);
    out->size = (uint64_t)st.st_size;
    out->mtime_s = st.st_mtim.tv_sec;
    snprintf(out->etag, sizeof(out->etag), "\"%" PRIx64 "-%" PRIx64 "\"",
             (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec, out->size);
    return 0;
}

/* --- types --------------------------------------------------------------------------- */

static const struct {
    struct str extension, type;
} types[] = {
    {STR("html"), STR("text/html; charset=utf-8")},
    {STR("htm"), STR("text/html; charset=utf-8")},
    {STR("css"), STR("text/css; charset=utf-8")},
    {STR("js"), STR("text/javascript; charset=utf-8")},
    {STR("mjs"), STR("text/javascript; charset=utf-8")},
    {STR("json"), STR("application/json")},
    {STR("map"), STR("application/json")},
    {STR("txt"), STR("text/plain; charset=utf-8")},
    {STR("log"), STR("text/plain; charset=utf-8")},
    {STR("md"), STR("text/markdown; charset=utf-8")},
    {STR("csv"), STR("text/csv; charset=utf-8")},
    {STR("xml"), STR("application/xml")},
    {STR("svg"), STR("image/svg+xml")},
    {STR("png"), STR("image/png")},
    {STR("jpg"), STR("image/jpeg")},
    {STR("jpeg"), STR("image/jpeg")},
    {STR("gif"), STR("image/gif")},
    {STR("webp"), STR("image/webp")},
    {STR("avif"), STR("image/avif")},
    {STR("ico"), STR("image/vnd.microsoft.icon")},
    {STR("bmp"), STR("image/bmp")},
    {STR("tif"), STR("image/tiff")},
    {STR("tiff"), STR("image/tiff")},
    {STR("woff"), STR("font/woff")},
    {STR("woff2"), STR("font/woff2")},
    {STR("ttf"), STR("font/ttf")},
    {STR("otf"), STR("font/otf")},
    {STR("pdf"), STR("application/pdf")},
    {STR("wasm"), STR("application/wasm")},
    {STR("zip"), STR("application/zip")},
    {STR("gz"), STR("application/gzip")},
    {STR("tar"), STR("application/x-tar")},
    {STR("bz2"), STR("application/x-bzip2")},
    {STR("xz"), STR("application/x-xz")},
    {STR("zst"), STR("application/zstd")},
    {STR("7z"), STR("application/x-7z-compressed")},
    {STR("mp3"), STR("audio/mpeg")},
    {STR("ogg"), STR("audio/ogg")},
    {STR("opus"), STR("audio/ogg")},
    {STR("flac"), STR("audio/flac")},
    {STR("wav"), STR("audio/wav")},
    {STR("mp4"), STR("video/mp4")},
    {STR("m4v"), STR("video/mp4")},
    {STR("webm"), STR("video/webm")},
    {STR("mov"), STR("video/quicktime")},
    {STR("mpd"), STR("application/dash+xml")},
    {STR("m3u8"), STR("application/vnd.apple.mpegurl")},
    {STR("ts"), STR("video/mp2t")},
    {STR("yaml"), STR("application/yaml")},
    {STR("yml"), STR("application/yaml")},
    {STR("pem"), STR("application/x-pem-file")},
};

struct str origin_type(struct str path)
{
    size_t dot = path.len;

    while (dot > 0 && path.ptr[dot - 1] != '.' && path.ptr[dot - 1] != '/')
        dot--;
    if (dot > 0 && path.ptr[dot - 1] == '.') {
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
            if (str_ieq(types[i].extension, str_from(path, dot)))
                return types[i].type;
        }
    }
    return STR("application/octet-stream");
}

/* --- conditions and ranges ----------------------------------------------------------- */

/*
 * Whether a list of entity tags has ours. Ours is strong, so that the strong comparison only
 * excludes tags marked as weak (RFC 9110 section 8.8.3.2). "*" has any.
 */
static bool tags_have(const struct http_msg *m, struct str field, struct str etag, bool strong)
{
    const struct http_field *f;
    uint32_t at = 0;

    while ((f = http_msg_next(m, field, &at)) != NULL) {
        struct str rest = f->value;
        struct str tag;

        while (http_list_next(&rest, &tag)) {
            if (str_eq(tag, STR("*")) || str_eq(tag, etag))
                return true;
            if (!strong && str_starts(tag, STR("W/")) && str_eq(str_from(tag, 2), etag))
                return true;
        }
    }
    return false;
}

static const struct http_field *field_of(const struct http_msg *m, struct str name)
{
    uint32_t at = 0;

    return http_msg_next(m, name, &at);
}

/* False when the field is absent or no date. */
static bool date_of(const struct http_msg *m, struct str name, int64_t *seconds)
{
    const struct http_field *f = field_of(m, name);

    return f && clock_parse_http_date(f->value, seconds) == 0;
}

/* If-Range: the part is wanted only of the very version that the client has. */
static bool range_applies(const struct http_msg *m, const struct origin_file *f)
{
    const struct http_field *condition = field_of(m, STR("If-Range"));
    int64_t seconds;

    if (!condition)
        return true;
    if (str_eq(condition->value, str_of(f->etag)))
        return true;
    return clock_parse_http_date(condition->value, &seconds) == 0 && seconds == f->mtime_s;
}

/* Digits at the front of *s, taken off; what exceeds 64 bits is as good as the largest number. */
static bool take_digits(struct str *s, uint64_t *value)
{
    uint64_t v = 0;
    size_t n = 0;

    while (n < s->len && s->ptr[n] >= '0' && s->ptr[n] <= '9') {
        uint64_t digit = (uint64_t)(s->ptr[n++] - '0');

        v = v > (UINT64_MAX - digit) / 10 ? UINT64_MAX : v * 10 + digit;
    }
    *s = str_from(*s, n);
    *value = v;
    return n > 0;
}

/* 200: to be ignored; 206; 416. RFC 9110 section 14.1.2. */
static unsigned parse_range(struct str value, uint64_t size, struct origin_slice *slice)
{
    struct str s = value;
    uint64_t first, last;
    bool has_first, has_last;

    if (!str_istarts(s, STR("bytes=")))
        return 200;
    s = str_trim(str_from(s, 6));
    has_first = take_digits(&s, &first);
    if (!str_starts(s, STR("-")))
        return 200;
    s = str_from(s, 1);
    has_last = take_digits(&s, &last);
    if (s.len || (!has_first && !has_last))
        return 200;
    if (!has_first) {
        if (last == 0)
            return 416;
        if (size == 0)
            return 200; /* all of it, and a 206 cannot say "no bytes" */
        slice->length = last < size ? last : size;
        slice->first = size - slice->length;
        return 206;
    }
    if (has_last && last < first)
        return 200;
    if (first >= size)
        return 416;
    if (!has_last || last >= size)
        last = size - 1;
    slice->first = first;
    slice->length = last - first + 1;
    return 206;
}

unsigned origin_evaluate(const struct http_msg *m, const struct origin_file *f,
                         struct origin_slice *slice)
{
    struct str etag = str_of(f->etag);
    const struct http_field *range;
    struct origin_slice part;
    int64_t seconds;
    uint32_t at = 0;
    unsigned status;

    /* In the order of RFC 9110 section 13.2.2. */
    if (field_of(m, STR("If-Match"))) {
        if (!tags_have(m, STR("If-Match"), etag, true))
            return 412;
    } else if (date_of(m, STR("If-Unmodified-Since"), &seconds) && f->mtime_s > seconds) {
        return 412;
    }
    if (field_of(m, STR("If-None-Match"))) {
        if (tags_have(m, STR("If-None-Match"), etag, false))
            return 304;
    } else if (date_of(m, STR("If-Modified-Since"), &seconds) && f->mtime_s <= seconds) {
        return 304;
    }
    range = http_msg_next(m, STR("Range"), &at);
    if (m->method != HTTP_GET || !range || http_msg_next(m, STR("Range"), &at) ||
        !range_applies(m, f))
        return 200;
    status = parse_range(range->value, f->size, &part);
    if (status == 206)
        *slice = part;
    return status;
}

/* --- listings -------------------------------------------------------------------------- */

#define LISTING_ENTRIES 10000

ptrdiff_t origin_encode_path(struct str path, char *out, size_t room)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t n = 0;

    for (size_t i = 0; i < path.len; i++) {
        unsigned char c = (unsigned char)path.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '.' || c == '_' || c == '~' || c == '/';

        if (room - n < (plain ? 1u : 3u))
            return SP_ETOOBIG;
        if (plain) {
            out[n++] = (char)c;
        } else {
            out[n++] = '%';
            out[n++] = hex[c >> 4];
            out[n++] = hex[c & 15];
        }
    }
    return (ptrdiff_t)n;
}

static void put_html(FILE *page, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        switch (text.ptr[i]) {
        case '&':
            fputs("&amp;", page);
            break;
        case '<':
            fputs("&lt;", page);
            break;
        case '>':
            fputs("&gt;", page);
            break;
        case '"':
            fputs("&quot;", page);
            break;
        default:
            fputc(text.ptr[i], page);
            break;
        }
    }
}

/* "./" keeps a name with a colon from being read as a scheme. */
static void put_link(FILE *page, struct str name)
{
    char encoded[3 * (NAME_MAX + 1)];
    ptrdiff_t n = origin_encode_path(name, encoded, sizeof(encoded));

    if (n < 0)
        return;
    fprintf(page, "<li><a href=\"./%.*s\">", (int)n, encoded);
    put_html(page, name);
    fputs("</a></li>\n", page);
}

/* The entry's name, with '/' behind a directory; from the heap. */
static char *entry_name(int fd, const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    char *name = malloc(len + 2);
    struct stat st;

    if (!name)
        return NULL;
    memcpy(name, entry->d_name, len);
    /* Links are not followed: that would tell of what is outside. */
    if (entry->d_type == DT_DIR ||
        (entry->d_type == DT_UNKNOWN && fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(st.st_mode)))
        name[len++] = '/';
    name[len] = '\0';
    return name;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Reads the names, sorted; *truncated when there are more than LISTING_ENTRIES. */
static int read_names(int fd, char **names, size_t *count, bool *truncated)
{
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = own >= 0 ? fdopendir(own) : NULL;
    const struct dirent *entry;
    int status = 0;

    if (!dir) {
        if (own >= 0)
            close(own);
        return SP_EIO;
    }
    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (*count == LISTING_ENTRIES) {
            *truncated = true;
            break;
        }
        names[*count] = entry_name(fd, entry);
        if (!names[*count]) {
            status = SP_ENOMEM;
            break;
        }
        ++*count;
    }
    closedir(dir);
    qsort(names, *count, sizeof(*names), compare_names);
    return status;
}

int origin_listing(int fd, struct str shown_path, char **html, size_t *html_len)
{
    char **names = calloc(LISTING_ENTRIES, sizeof(*names));
    char *text = NULL;
    size_t count = 0, text_len = 0;
    bool truncated = false;
    FILE *page = NULL;
    int status = SP_ENOMEM;

    if (!names)
        return SP_ENOMEM;
    status = read_names(fd, names, &count, &truncated);
    if (status != 0)
        goto out;
    status = SP_ENOMEM;
    page = open_memstream(&text, &text_len);
    if (!page)
        goto out;
    fputs("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>Index of ", page);
    put_html(page, shown_path);
    fputs("</title></head>\n<body><h1>Index of ", page);
    put_html(page, shown_path);
    fputs("</h1>\n<ul>\n", page);
    if (shown_path.len > 1)
        fputs("<li><a href=\"../\">../</a></li>\n", page);
    for (size_t i = 0; i < count; i++)
        put_link(page, str_of(names[i]));
    fputs(truncated ? "</ul>\n<p>There are more.</p>\n</body></html>\n" : "</ul>\n</body></html>\n",
          page);
    status = ferror(page) ? SP_ENOMEM : 0;
    if (fclose(page) != 0)
        status = SP_ENOMEM;
    if (status == 0) {
        *html = text;
        *html_len = text_len;
        text = NULL;
    }

out:
    free(text);
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return status;
}
