#include "base/logsink.h"

#include "base/clock.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_MAX_LEN 1024
#define FACILITY_LOCAL0 16
#define HOST_BYTES 256

/* Header pieces, message and newline. */
#define MAX_PIECES 20

const char *const logsink_facility_names[24] = {
    "kern",   "user",   "mail",   "daemon", "auth",   "syslog", "lpr",    "news",
    "uucp",   "cron",   "auth2",  "ftp",    "ntp",    "audit",  "alert",  "cron2",
    "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
};

const char *const logsink_level_names[8] = {
    "emerg", "alert", "crit", "err", "warning", "notice", "info", "debug",
};

static const char *const format_names[] = {
    [LOG_FORMAT_RFC3164] = "rfc3164",   [LOG_FORMAT_RFC5424] = "rfc5424",
    [LOG_FORMAT_SHORT] = "short",       [LOG_FORMAT_RAW] = "raw",
    [LOG_FORMAT_TIMED] = "timed",       [LOG_FORMAT_ISO] = "iso",
    [LOG_FORMAT_PRIORITY] = "priority", [LOG_FORMAT_LOCAL] = "local",
};

static int find_name(const char *name, const char *const *names, int n)
{
    for (int i = 0; i < n; i++) {
        if (name && names[i] && strcmp(name, names[i]) == 0)
            return i;
    }
    return SP_EINVAL;
}

int logsink_facility(const char *name)
{
    return find_name(name, logsink_facility_names, 24);
}

int logsink_level(const char *name)
{
    return find_name(name, logsink_level_names, 8);
}

int logsink_format(const char *name)
{
    return find_name(name, format_names, sizeof(format_names) / sizeof(format_names[0]));
}

void logsink_init(struct logsink *s)
{
    *s = (struct logsink){
        .fd = -1,
        .facility = FACILITY_LOCAL0,
        .max_level = LOG_LEVEL_DEBUG,
        .max_len = DEFAULT_MAX_LEN,
    };
}

/*
 * O_NONBLOCK belongs to the open file, which an inherited descriptor shares
 * with other programs. Pipes and terminals are therefore opened once more;
 * regular files never block, and sockets take a flag with each message.
 */
static int open_inherited(struct logsink *s)
{
    char path[32];
    struct stat st;
    int fd, flags;

    if (fstat(s->fd, &st) < 0)
        return SP_EIO;
    s->inherited = true;
    s->is_stream_file = true;
    s->is_socket = S_ISSOCK(st.st_mode);
    if (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode))
        return 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", s->fd);
    fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0) {
        s->fd = fd;
        s->inherited = false;
        return 0;
    }
    /* A pipe can be left non-blocking; a terminal is left to the user. */
    flags = fcntl(s->fd, F_GETFL);
    if (S_ISFIFO(st.st_mode) && flags >= 0)
        fcntl(s->fd, F_SETFL, flags | O_NONBLOCK);
    return 0;
}

int logsink_open(struct logsink *s)
{
    int fd;

    if (s->addr.u.sa.sa_family == AF_UNSPEC) {
        if (s->fd < 0) {
            errno = EBADF;
            return SP_EIO;
        }
        return open_inherited(s);
    }
    fd = socket(s->addr.u.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return SP_EIO;
    /* Nothing is ever read from it. */
    shutdown(fd, SHUT_RD);
    s->fd = fd;
    s->inherited = false;
    s->is_socket = true;
    s->is_stream_file = false;
    return 0;
}

void logsink_close(struct logsink *s)
{
    if (s->fd >= 0 && !s->inherited)
        close(s->fd);
    s->fd = -1;
}

/* What changes once a second, per thread. */
struct second_cache {
    time_t second;
    bool filled;
    char legacy[24]; /* "Nov 30 13:50:52 " */
    char iso[24];    /* "2026-11-30T13:50:52" */
    char zone[8];    /* "+00:00" */
    char host[HOST_BYTES];
};

static const struct second_cache *second_cache_get(time_t second)
{
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    static __thread struct second_cache cache;
    struct tm tm;
    long offset_minutes;

    if (cache.filled && cache.second == second)
        return &cache;
    localtime_r(&second, &tm);
    offset_minutes = tm.tm_gmtoff / 60;
    snprintf(cache.legacy, sizeof(cache.legacy), "%s %2u %02u:%02u:%02u ", months[tm.tm_mon],
             (unsigned)tm.tm_mday % 100, (unsigned)tm.tm_hour % 100, (unsigned)tm.tm_min % 100,
             (unsigned)tm.tm_sec % 100);
    snprintf(cache.iso, sizeof(cache.iso), "%04u-%02u-%02uT%02u:%02u:%02u",
             (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)(tm.tm_mon + 1) % 100,
             (unsigned)tm.tm_mday % 100, (unsigned)tm.tm_hour % 100, (unsigned)tm.tm_min % 100,
             (unsigned)tm.tm_sec % 100);
    snprintf(cache.zone, sizeof(cache.zone), "%c%02u:%02u", offset_minutes < 0 ? '-' : '+',
             (unsigned)(labs(offset_minutes) / 60) % 100, (unsigned)(labs(offset_minutes) % 60));
    if (gethostname(cache.host, sizeof(cache.host)) != 0 || cache.host[0] == '\0')
        memcpy(cache.host, "-", 2);
    cache.host[sizeof(cache.host) - 1] = '\0';
    cache.second = second;
    cache.filled = true;
    return &cache;
}

/* The pieces of one message; `left` is what its bound still admits. */
struct pieces {
    struct iovec iov[MAX_PIECES];
    int count;
    size_t left;
};

static void add(struct pieces *p, const char *ptr, size_t len)
{
    if (len > p->left)
        len = p->left;
    if (len == 0)
        return;
    p->iov[p->count].iov_base = (void *)(uintptr_t)ptr;
    p->iov[p->count].iov_len = len;
    p->count++;
    p->left -= len;
}

static void add_text(struct pieces *p, const char *text)
{
    add(p, text, strlen(text));
}

/* Storage for the pieces that are computed anew for each message. */
struct scratch {
    char priority[16];
    char fraction[16];
    char pid[24];
};

static void add_priority(struct pieces *p, struct scratch *scratch, int facility,
                         enum log_level level)
{
    snprintf(scratch->priority, sizeof(scratch->priority), "<%d>", facility * 8 + (int)level);
    add_text(p, scratch->priority);
}

/* "2026-11-30T13:50:52.123456+00:00 " */
static void add_iso_date(struct pieces *p, struct scratch *scratch,
                         const struct second_cache *cache, uint64_t wall_us)
{
    snprintf(scratch->fraction, sizeof(scratch->fraction), ".%06u", (unsigned)(wall_us % 1000000));
    add_text(p, cache->iso);
    add_text(p, scratch->fraction);
    add_text(p, cache->zone);
    add_text(p, " ");
}

static void add_header(struct pieces *p, struct scratch *scratch, const struct logsink *s,
                       enum log_format format, enum log_level level, const char *sd)
{
    uint64_t wall_us = clock_wall_us();
    const struct second_cache *cache = second_cache_get((time_t)(wall_us / 1000000));
    const char *tag = s->tag ? s->tag : "sallyport";

    switch (format) {
    case LOG_FORMAT_RFC5424:
        add_priority(p, scratch, s->facility, level);
        add_text(p, "1 ");
        add_iso_date(p, scratch, cache, wall_us);
        add_text(p, s->host ? s->host : cache->host);
        add_text(p, " ");
        add_text(p, tag);
        snprintf(scratch->pid, sizeof(scratch->pid), " %d - ", (int)getpid());
        add_text(p, scratch->pid);
        add_text(p, sd ? sd : "-");
        add_text(p, " ");
        break;
    case LOG_FORMAT_TIMED:
        add_priority(p, scratch, 0, level);
        add_iso_date(p, scratch, cache, wall_us);
        break;
    case LOG_FORMAT_ISO:
        add_iso_date(p, scratch, cache, wall_us);
        break;
    case LOG_FORMAT_SHORT:
        add_priority(p, scratch, 0, level);
        break;
    case LOG_FORMAT_PRIORITY:
        add_priority(p, scratch, s->facility, level);
        break;
    case LOG_FORMAT_RAW:
        break;
    default:
        add_priority(p, scratch, s->facility, level);
        add_text(p, cache->legacy);
        if (format != LOG_FORMAT_LOCAL) {
            add_text(p, s->host ? s->host : cache->host);
            add_text(p, " ");
        }
        add_text(p, tag);
        snprintf(scratch->pid, sizeof(scratch->pid), "[%d]: ", (int)getpid());
        add_text(p, scratch->pid);
        break;
    }
}

static ssize_t send_pieces(const struct logsink *s, struct pieces *p)
{
    struct msghdr message = {.msg_iov = p->iov, .msg_iovlen = (size_t)p->count};
    struct sockaddr_storage to = s->addr.u.storage;

    if (!s->is_socket)
        return writev(s->fd, p->iov, p->count);
    /* An inherited socket is connected already. */
    if (to.ss_family != AF_UNSPEC) {
        message.msg_name = &to;
        message.msg_namelen = s->addr.len;
    }
    return sendmsg(s->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void logsink_write(struct logsink *s, enum log_level level, struct str message, const char *sd)
{
    size_t max_len = s->max_len ? s->max_len : DEFAULT_MAX_LEN;
    struct pieces p = {.left = max_len - 1}; /* the newline has its place in any case */
    enum log_format format = s->format;
    struct scratch scratch;
    size_t total;

    if ((int)level > s->max_level)
        return;
    if ((int)level < s->min_level)
        level = (enum log_level)s->min_level;
    if (format == LOG_FORMAT_DEFAULT)
        format = s->host ? LOG_FORMAT_RFC3164 : LOG_FORMAT_LOCAL;
    while (message.len &&
           (message.ptr[message.len - 1] == '\n' || message.ptr[message.len - 1] == '\0'))
        message.len--;
    add_header(&p, &scratch, s, format, level, sd);
    add(&p, message.ptr, message.len);
    total = max_len - 1 - p.left + 1;
    p.left = 1;
    add(&p, "\n", 1);
    if (send_pieces(s, &p) == (ssize_t)total)
        atomic_fetch_add_explicit(&s->sent, 1, memory_order_relaxed);
    else
        atomic_fetch_add_explicit(&s->dropped, 1, memory_order_relaxed);
}
