/*
 * Log targets: syslog over UDP or a Unix datagram socket, stdout, stderr or
 * an inherited descriptor, in HAProxy's formats. RFC 3164, RFC 5424.
 *
 * A sink is written by any thread without locks: one sendmsg or writev a
 * message. A message that cannot be written at once is dropped and counted;
 * nothing ever blocks on a log target. The process must ignore SIGPIPE when
 * pipes are targets.
 */
#ifndef SP_BASE_LOGSINK_H
#define SP_BASE_LOGSINK_H

#include "base/addr.h"

#include <stdatomic.h>

enum log_format {
    LOG_FORMAT_DEFAULT, /* as HAProxy: local, or rfc3164 where a host name is set */
    LOG_FORMAT_RFC3164,
    LOG_FORMAT_RFC5424,
    LOG_FORMAT_SHORT,    /* <LEVEL> and the message */
    LOG_FORMAT_RAW,      /* the message alone */
    LOG_FORMAT_TIMED,    /* <LEVEL>, ISO date, message */
    LOG_FORMAT_ISO,      /* ISO date, message */
    LOG_FORMAT_PRIORITY, /* <PRI> (facility and level) and the message */
    LOG_FORMAT_LOCAL,    /* like rfc3164 without the host name */
};

enum log_level {
    LOG_LEVEL_EMERG,
    LOG_LEVEL_ALERT,
    LOG_LEVEL_CRIT,
    LOG_LEVEL_ERR,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_NOTICE,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG,
};

struct logsink {
    int fd; /* descriptor that is written to; owned unless `inherited` */
    bool inherited;
    bool is_socket;
    bool is_stream_file; /* stdout, stderr, fd@ */
    struct addr addr;    /* destination of a socket */
    enum log_format format;
    int facility;   /* 0 kern … 23 local7 */
    int max_level;  /* least severe level that is sent */
    int min_level;  /* more severe levels are clamped to this one */
    size_t max_len; /* longest message including its header and newline; 0: 1024 */
    char *tag;      /* not owned; NULL: "sallyport" */
    char *host;     /* not owned; NULL: the node's name where the format has one */
    atomic_ullong sent, dropped;
};

/* Index of a facility or level name, or SP_EINVAL. */
int logsink_facility(const char *name);
int logsink_level(const char *name);
int logsink_format(const char *name);
extern const char *const logsink_facility_names[24];
extern const char *const logsink_level_names[8];

/* No descriptor or address yet; facility local0, every level, 1024 bytes. A zeroed sink has fd 0. */
void logsink_init(struct logsink *s);

/*
 * Opens the descriptor of a sink whose addr (a socket) or fd (everything else)
 * is set, and sets is_socket, is_stream_file and inherited. A pipe or terminal
 * is opened once more so that its other users do not become non-blocking.
 * SP_EIO with errno.
 */
int logsink_open(struct logsink *s);
void logsink_close(struct logsink *s);

/*
 * Sends one message at `level` when the sink's max_level admits it. `sd` is
 * the RFC 5424 structured data ("-" when NULL). Every message ends with one
 * newline, in datagrams too, as HAProxy's do. Longer messages are cut at
 * max_len. Headers carry local time and the pid of the calling process.
 */
void logsink_write(struct logsink *s, enum log_level level, struct str message, const char *sd);

#endif
