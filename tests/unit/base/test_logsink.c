#include "base/logsink.h"

#include "base/clock.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

struct receiver {
    struct logsink sink;
    int fd;
    char text[70000];
    size_t len;
    char directory[32];
};

static struct receiver r;

static void receiver_open_udp(void)
{
    struct addr_spec spec;
    const char *why;

    assert_int_equal(addr_parse("127.0.0.1", ADDR_DATAGRAM, &spec, &why), 0);
    r.fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_true(r.fd >= 0);
    assert_int_equal(bind(r.fd, &spec.addr.u.sa, spec.addr.len), 0);
    assert_int_equal(getsockname(r.fd, &spec.addr.u.sa, &spec.addr.len), 0);
    logsink_init(&r.sink);
    r.sink.addr = spec.addr;
    assert_int_equal(logsink_open(&r.sink), 0);
}

static void receiver_open_unix(void)
{
    struct addr_spec spec;
    const char *why;
    char path[64];

    snprintf(r.directory, sizeof(r.directory), "/tmp/logsinkXXXXXX");
    assert_non_null(mkdtemp(r.directory));
    snprintf(path, sizeof(path), "%s/log", r.directory);
    assert_int_equal(addr_parse(path, ADDR_DATAGRAM, &spec, &why), 0);
    r.fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    assert_true(r.fd >= 0);
    assert_int_equal(bind(r.fd, &spec.addr.u.sa, spec.addr.len), 0);
    logsink_init(&r.sink);
    r.sink.addr = spec.addr;
    assert_int_equal(logsink_open(&r.sink), 0);
}

static void receiver_open_pipe(int *write_end)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    r.fd = ends[0];
    *write_end = ends[1];
    logsink_init(&r.sink);
    r.sink.fd = ends[1];
    assert_int_equal(logsink_open(&r.sink), 0);
}

static void receiver_close(void)
{
    logsink_close(&r.sink);
    assert_int_equal(r.sink.fd, -1);
    close(r.fd);
    if (r.directory[0]) {
        char path[64];

        snprintf(path, sizeof(path), "%s/log", r.directory);
        unlink(path);
        rmdir(r.directory);
        r.directory[0] = '\0';
    }
}

static const char *receive(void)
{
    ssize_t n = read(r.fd, r.text, sizeof(r.text) - 1);

    assert_true(n >= 0);
    r.len = (size_t)n;
    r.text[n] = '\0';
    return r.text;
}

static void assert_nothing_received(void)
{
    int flags = fcntl(r.fd, F_GETFL);

    fcntl(r.fd, F_SETFL, flags | O_NONBLOCK);
    assert_int_equal(read(r.fd, r.text, sizeof(r.text)), -1);
    assert_int_equal(errno, EAGAIN);
    fcntl(r.fd, F_SETFL, flags);
}

/* `pattern` is an extended regular expression in which PID stands for the process's. */
static void assert_matches(const char *pattern)
{
    size_t at = str_find(str_of(pattern), STR("PID"));
    char filled[1024];
    regex_t re;

    if (pattern[at] == '\0')
        snprintf(filled, sizeof(filled), "%s", pattern);
    else
        snprintf(filled, sizeof(filled), "%.*s%d%s", (int)at, pattern, (int)getpid(),
                 pattern + at + 3);
    assert_int_equal(regcomp(&re, filled, REG_EXTENDED | REG_NOSUB), 0);
    if (regexec(&re, receive(), 0, NULL, 0) != 0)
        fail_msg("'%s' does not match '%s'", r.text, filled);
    regfree(&re);
}

#define LEGACY_DATE                                                  \
    "(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ 123][0-9] " \
    "[0-9]{2}:[0-9]{2}:[0-9]{2}"
#define ISO_DATE                                                       \
    "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6}" \
    "[+-][0-9]{2}:[0-9]{2}"

static void write_with(enum log_format format, const char *host, const char *sd)
{
    r.sink.format = format;
    r.sink.host = (char *)(uintptr_t)host;
    logsink_write(&r.sink, LOG_LEVEL_INFO, STR("the message"), sd);
}

static void check_every_format(void)
{
    char node[256] = "", expected[512];

    r.sink.tag = (char *)(uintptr_t) "tag";
    write_with(LOG_FORMAT_DEFAULT, NULL, NULL);
    assert_matches("^<134>" LEGACY_DATE " tag\\[PID\\]: the message\n$");
    write_with(LOG_FORMAT_DEFAULT, "front", NULL);
    assert_matches("^<134>" LEGACY_DATE " front tag\\[PID\\]: the message\n$");
    gethostname(node, sizeof(node) - 1);
    write_with(LOG_FORMAT_RFC3164, NULL, NULL);
    snprintf(expected, sizeof(expected), "^<134>" LEGACY_DATE " %s tag\\[PID\\]: the message\n$", node);
    assert_matches(expected);
    write_with(LOG_FORMAT_RFC3164, "front", NULL);
    assert_matches("^<134>" LEGACY_DATE " front tag\\[PID\\]: the message\n$");
    write_with(LOG_FORMAT_LOCAL, "front", NULL);
    assert_matches("^<134>" LEGACY_DATE " tag\\[PID\\]: the message\n$");
    write_with(LOG_FORMAT_RFC5424, "front", NULL);
    assert_matches("^<134>1 " ISO_DATE " front tag PID - - the message\n$");
    write_with(LOG_FORMAT_RFC5424, "front", "[a@1 b=\"c\"]");
    assert_matches("^<134>1 " ISO_DATE " front tag PID - \\[a@1 b=\"c\"\\] the message\n$");
    gethostname(node, sizeof(node) - 1);
    snprintf(expected, sizeof(expected), "^<134>1 " ISO_DATE " %s tag PID - - the message\n$",
             node);
    write_with(LOG_FORMAT_RFC5424, NULL, NULL);
    assert_matches(expected);
    write_with(LOG_FORMAT_SHORT, NULL, NULL);
    assert_string_equal(receive(), "<6>the message\n");
    write_with(LOG_FORMAT_PRIORITY, NULL, NULL);
    assert_string_equal(receive(), "<134>the message\n");
    write_with(LOG_FORMAT_RAW, NULL, NULL);
    assert_string_equal(receive(), "the message\n");
    write_with(LOG_FORMAT_TIMED, NULL, NULL);
    assert_matches("^<6>" ISO_DATE " the message\n$");
    write_with(LOG_FORMAT_ISO, NULL, NULL);
    assert_matches("^" ISO_DATE " the message\n$");
    assert_int_equal(r.sink.sent, 13);
    assert_int_equal(r.sink.dropped, 0);
}

static void formats_over_udp(void **state)
{
    receiver_open_udp();
    assert_true(r.sink.is_socket);
    check_every_format();
    receiver_close();
}

static void formats_over_a_unix_socket(void **state)
{
    receiver_open_unix();
    check_every_format();
    receiver_close();
}

static void names(void **state)
{
    assert_int_equal(logsink_facility("kern"), 0);
    assert_int_equal(logsink_facility("cron2"), 15);
    assert_int_equal(logsink_facility("local0"), 16);
    assert_int_equal(logsink_facility("local7"), 23);
    assert_int_equal(logsink_facility("local8"), SP_EINVAL);
    assert_int_equal(logsink_facility(""), SP_EINVAL);
    assert_int_equal(logsink_facility(NULL), SP_EINVAL);
    assert_int_equal(logsink_level("emerg"), LOG_LEVEL_EMERG);
    assert_int_equal(logsink_level("debug"), LOG_LEVEL_DEBUG);
    assert_int_equal(logsink_level("error"), SP_EINVAL);
    for (int i = 0; i < 24; i++)
        assert_int_equal(logsink_facility(logsink_facility_names[i]), i);
    for (int i = 0; i < 8; i++)
        assert_int_equal(logsink_level(logsink_level_names[i]), i);
    assert_int_equal(logsink_format("raw"), LOG_FORMAT_RAW);
    assert_int_equal(logsink_format("rfc3164"), LOG_FORMAT_RFC3164);
    assert_int_equal(logsink_format("rfc5424"), LOG_FORMAT_RFC5424);
    assert_int_equal(logsink_format("short"), LOG_FORMAT_SHORT);
    assert_int_equal(logsink_format("timed"), LOG_FORMAT_TIMED);
    assert_int_equal(logsink_format("iso"), LOG_FORMAT_ISO);
    assert_int_equal(logsink_format("priority"), LOG_FORMAT_PRIORITY);
    assert_int_equal(logsink_format("local"), LOG_FORMAT_LOCAL);
    assert_int_equal(logsink_format("default"), SP_EINVAL);
}

static void date_is_local_time(void **state)
{
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct tm tm;
    char expected[128];
    time_t before, now;

    receiver_open_udp();
    r.sink.format = LOG_FORMAT_LOCAL;
    do {
        before = time(NULL);
        logsink_write(&r.sink, LOG_LEVEL_NOTICE, STR("x"), NULL);
        receive();
        now = time(NULL);
    } while (now != before);
    localtime_r(&now, &tm);
    snprintf(expected, sizeof(expected), "<133>%s %2d %02d:%02d:%02d sallyport[%d]: x\n",
             months[tm.tm_mon], tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)getpid());
    assert_string_equal(r.text, expected);
    r.sink.format = LOG_FORMAT_ISO;
    logsink_write(&r.sink, LOG_LEVEL_NOTICE, STR("x"), NULL);
    assert_non_null(strstr(receive(), "+05:30 x\n"));
    receiver_close();
}

static void levels_are_filtered_and_clamped(void **state)
{
    receiver_open_udp();
    r.sink.format = LOG_FORMAT_PRIORITY;
    r.sink.facility = 0;
    r.sink.max_level = LOG_LEVEL_NOTICE;
    r.sink.min_level = LOG_LEVEL_ERR;
    logsink_write(&r.sink, LOG_LEVEL_INFO, STR("no"), NULL);
    logsink_write(&r.sink, LOG_LEVEL_DEBUG, STR("no"), NULL);
    assert_int_equal(r.sink.sent + r.sink.dropped, 0);
    logsink_write(&r.sink, LOG_LEVEL_NOTICE, STR("yes"), NULL);
    assert_string_equal(receive(), "<5>yes\n");
    logsink_write(&r.sink, LOG_LEVEL_EMERG, STR("yes"), NULL);
    assert_string_equal(receive(), "<3>yes\n");
    receiver_close();
}

static void messages_are_cut(void **state)
{
    static char big[3000];

    memset(big, 'm', sizeof(big));
    receiver_open_udp();
    r.sink.format = LOG_FORMAT_PRIORITY;
    logsink_write(&r.sink, LOG_LEVEL_INFO, str_make(big, sizeof(big)), NULL);
    receive();
    assert_int_equal(r.len, 1024);
    assert_memory_equal(r.text, "<134>mmm", 8);
    assert_int_equal(r.text[1023], '\n');
    r.sink.max_len = 2000;
    logsink_write(&r.sink, LOG_LEVEL_INFO, str_make(big, 1994), NULL);
    receive();
    assert_int_equal(r.len, 2000); /* fits to the byte */
    r.sink.max_len = 0;            /* the default */
    logsink_write(&r.sink, LOG_LEVEL_INFO, str_make(big, sizeof(big)), NULL);
    receive();
    assert_int_equal(r.len, 1024);
    r.sink.max_len = 4; /* in the middle of the header */
    logsink_write(&r.sink, LOG_LEVEL_INFO, STR("x"), NULL);
    assert_string_equal(receive(), "<13\n");
    r.sink.max_len = 1;
    logsink_write(&r.sink, LOG_LEVEL_INFO, STR("x"), NULL);
    assert_string_equal(receive(), "\n");
    /* A header longer than the bound. */
    r.sink.max_len = 100;
    r.sink.format = LOG_FORMAT_RFC5424;
    big[sizeof(big) - 1] = '\0';
    logsink_write(&r.sink, LOG_LEVEL_INFO, STR("x"), big);
    receive();
    assert_int_equal(r.len, 100);
    assert_int_equal(r.sink.sent, 6);
    receiver_close();
}

static void one_newline_whatever_the_message_ends_with(void **state)
{
    receiver_open_udp();
    r.sink.format = LOG_FORMAT_RAW;
    logsink_write(&r.sink, LOG_LEVEL_INFO, STR("x\n\n"), NULL);
    assert_string_equal(receive(), "x\n");
    logsink_write(&r.sink, LOG_LEVEL_INFO, str_make("x\n\0", 3), NULL);
    assert_string_equal(receive(), "x\n");
    logsink_write(&r.sink, LOG_LEVEL_INFO, STR_NULL, NULL);
    assert_string_equal(receive(), "\n");
    receiver_close();
}

static void a_pipe_never_blocks(void **state)
{
    int write_end;
    unsigned long long written = 0;

    receiver_open_pipe(&write_end);
    assert_true(r.sink.is_stream_file);
    assert_false(r.sink.is_socket);
    /* The descriptor that was handed in stays blocking for whoever shares it. */
    assert_int_equal(fcntl(write_end, F_GETFL) & O_NONBLOCK, 0);
    r.sink.format = LOG_FORMAT_RAW;
    logsink_write(&r.sink, LOG_LEVEL_INFO, STR("to a pipe"), NULL);
    assert_string_equal(receive(), "to a pipe\n");
    r.sink.format = LOG_FORMAT_SHORT;
    logsink_write(&r.sink, LOG_LEVEL_ALERT, STR("short"), NULL);
    assert_string_equal(receive(), "<1>short\n");
    r.sink.format = LOG_FORMAT_RAW;
    while (r.sink.dropped == 0 && written < 10000000) {
        logsink_write(&r.sink, LOG_LEVEL_INFO, STR("0123456789012345678901234567890"), NULL);
        written += 32;
    }
    assert_int_equal(r.sink.dropped, 1);
    assert_true(r.sink.sent > 2);
    receive();
    r.sink.dropped = 0;
    logsink_write(&r.sink, LOG_LEVEL_INFO, STR("room again"), NULL);
    assert_int_equal(r.sink.dropped, 0);
    receiver_close();
    /* The pipe was opened once more; what was handed in is still the caller's. */
    assert_int_equal(close(write_end), 0);
}

static void an_inherited_file_is_left_open(void **state)
{
    char path[] = "/tmp/logsinkXXXXXX", text[64];
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    unlink(path);
    logsink_init(&r.sink);
    r.sink.fd = fd;
    assert_int_equal(logsink_open(&r.sink), 0);
    assert_true(r.sink.inherited);
    r.sink.format = LOG_FORMAT_RAW;
    logsink_write(&r.sink, LOG_LEVEL_INFO, STR("one"), NULL);
    logsink_write(&r.sink, LOG_LEVEL_INFO, STR("two"), NULL);
    logsink_close(&r.sink);
    assert_int_equal(pread(fd, text, sizeof(text), 0), 8);
    assert_memory_equal(text, "one\ntwo\n", 8);
    assert_int_equal(close(fd), 0);
}

static void an_inherited_socket(void **state)
{
    int ends[2];
    unsigned long long tries = 0;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    r.fd = ends[0];
    logsink_init(&r.sink);
    r.sink.fd = ends[1];
    assert_int_equal(logsink_open(&r.sink), 0);
    r.sink.format = LOG_FORMAT_RAW;
    logsink_write(&r.sink, LOG_LEVEL_INFO, STR("line"), NULL);
    assert_string_equal(receive(), "line\n");
    while (r.sink.dropped == 0 && tries++ < 1000000)
        logsink_write(&r.sink, LOG_LEVEL_INFO, STR("fill"), NULL);
    assert_int_equal(r.sink.dropped, 1); /* and it did not block */
    close(ends[0]);
    logsink_write(&r.sink, LOG_LEVEL_INFO, STR("line"), NULL); /* no SIGPIPE either */
    assert_int_equal(r.sink.dropped, 2);
    logsink_close(&r.sink);
    assert_int_equal(close(ends[1]), 0);
}

static void drops_are_counted(void **state)
{
    receiver_open_unix();
    /* The receiver does not read: its queue fills up. */
    for (int i = 0; i < 100000 && r.sink.dropped == 0; i++)
        logsink_write(&r.sink, LOG_LEVEL_INFO, STR("x"), NULL);
    assert_int_equal(r.sink.dropped, 1);
    assert_true(r.sink.sent > 0);
    /* A receiver that has gone away, and comes back. */
    close(r.fd);
    logsink_write(&r.sink, LOG_LEVEL_INFO, STR("x"), NULL);
    assert_int_equal(r.sink.dropped, 2);
    unlink(r.sink.addr.u.un.sun_path);
    r.fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    assert_int_equal(bind(r.fd, &r.sink.addr.u.sa, r.sink.addr.len), 0);
    logsink_write(&r.sink, LOG_LEVEL_INFO, STR("back"), NULL);
    assert_non_null(strstr(receive(), "back\n"));
    assert_nothing_received();
    receiver_close();
}

static void opening_fails(void **state)
{
    struct logsink s;

    logsink_init(&s);
    assert_int_equal(logsink_open(&s), SP_EIO);
    assert_int_equal(errno, EBADF);
    s.fd = 100000;
    assert_int_equal(logsink_open(&s), SP_EIO);
    s.fd = -1;
    s.addr.u.sa.sa_family = 0x7fff;
    assert_int_equal(logsink_open(&s), SP_EIO);
    logsink_close(&s); /* harmless */
    logsink_write(&s, LOG_LEVEL_INFO, STR("x"), NULL);
    assert_int_equal(s.dropped, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(formats_over_udp),
        cmocka_unit_test(formats_over_a_unix_socket),
        cmocka_unit_test(date_is_local_time),
        cmocka_unit_test(levels_are_filtered_and_clamped),
        cmocka_unit_test(messages_are_cut),
        cmocka_unit_test(one_newline_whatever_the_message_ends_with),
        cmocka_unit_test(a_pipe_never_blocks),
        cmocka_unit_test(an_inherited_file_is_left_open),
        cmocka_unit_test(an_inherited_socket),
        cmocka_unit_test(drops_are_counted),
        cmocka_unit_test(opening_fails),
    };

    /* Half past the hour, east of Greenwich. */
    setenv("TZ", "IST-05:30", 1);
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
