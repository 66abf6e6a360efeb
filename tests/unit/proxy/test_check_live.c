/*
 * Health checks over real sockets: a running application against small servers in a thread of the test.
 */
#include "check_test.h"

#include "../tls/support.h"

#include <pthread.h>
#include <signal.h>

/* --- a small server ---------------------------------------------------------------------- */

enum { SERVER_KEEP_OPEN = 1, SERVER_SPEAKS_FIRST = 2, SERVER_RESET = 4, SERVER_TWICE = 8 };

/* What it answers may be changed while it runs. */
struct peer {
    int fd, port, stop[2];
    pthread_t thread;
    atomic_int flags;
    _Atomic(const char *) answer; /* NULL: nothing */
    atomic_int answer_bytes;      /* 0: strlen */
    atomic_int accepted;
    pthread_mutex_t lock;
    char seen[512]; /* what the last connection sent */
    size_t seen_len;
};

static bool peer_wait(struct peer *p, int fd, int ms)
{
    struct pollfd fds[2] = {{.fd = fd, .events = POLLIN}, {.fd = p->stop[0], .events = POLLIN}};

    return poll(fds, 2, ms) > 0 && !fds[1].revents && fds[0].revents;
}

static bool peer_read(struct peer *p, int fd)
{
    char data[512];
    ssize_t n = recv(fd, data, sizeof data, 0);

    if (n <= 0)
        return false;
    pthread_mutex_lock(&p->lock);
    memcpy(p->seen, data, (size_t)n);
    p->seen_len = (size_t)n;
    pthread_mutex_unlock(&p->lock);
    return true;
}

static void peer_answer(struct peer *p, int fd)
{
    const char *answer = atomic_load(&p->answer);
    int bytes = atomic_load(&p->answer_bytes);

    if (answer)
        send(fd, answer, bytes ? (size_t)bytes : strlen(answer), MSG_NOSIGNAL);
}

static void peer_serve(struct peer *p, int fd)
{
    struct linger none = {.l_onoff = 1};
    int flags = atomic_load(&p->flags);

    if (!(flags & SERVER_SPEAKS_FIRST) && peer_wait(p, fd, 1000))
        peer_read(p, fd);
    peer_answer(p, fd);
    if (flags & SERVER_TWICE && peer_wait(p, fd, 1000)) {
        peer_read(p, fd);
        peer_answer(p, fd);
    }
    while (flags & SERVER_KEEP_OPEN && peer_wait(p, fd, 5000))
        if (!peer_read(p, fd))
            break;
    if (flags & SERVER_RESET)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

static void *peer_run(void *arg)
{
    struct peer *p = arg;

    while (peer_wait(p, p->fd, -1)) {
        int fd = accept(p->fd, NULL, NULL);

        if (fd < 0)
            continue;
        atomic_fetch_add(&p->accepted, 1);
        peer_serve(p, fd);
        close(fd);
    }
    return NULL;
}

static struct peer *peer_start(const char *answer, int flags)
{
    struct peer *p = calloc(1, sizeof *p);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;

    assert_non_null(p);
    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(p->fd, 16), 0);
    assert_int_equal(getsockname(p->fd, (struct sockaddr *)&in, &len), 0);
    assert_int_equal(pipe(p->stop), 0);
    p->port = ntohs(in.sin_port);
    atomic_store(&p->answer, answer);
    atomic_store(&p->flags, flags);
    pthread_mutex_init(&p->lock, NULL);
    assert_int_equal(pthread_create(&p->thread, NULL, peer_run, p), 0);
    return p;
}

static void peer_stop(struct peer *p)
{
    close(p->stop[1]);
    pthread_join(p->thread, NULL);
    close(p->stop[0]);
    close(p->fd);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static bool peer_has_seen(struct peer *p, const char *bytes, size_t len)
{
    bool same;

    pthread_mutex_lock(&p->lock);
    same = p->seen_len >= len && memcmp(p->seen, bytes, len) == 0;
    pthread_mutex_unlock(&p->lock);
    return same;
}

/* A port that nobody listens at, for as long as the descriptor is open. */
static int unused_port(int *fd)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;

    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(*fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(getsockname(*fd, (struct sockaddr *)&in, &len), 0);
    return ntohs(in.sin_port);
}

/* --- an application ---------------------------------------------------------------------------- */

#define HEAD                                                                                                                     \
    "global\n nbthread 1\ndefaults\n mode tcp\n timeout connect 1s\n timeout client 9s\n timeout server 9s\n timeout check 9s\n" \
    " log @LOG@ daemon\n option log-health-checks\n default-server inter 5s fastinter 5s rise 1 fall 1\n"

static void start(struct fixture *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void start(struct fixture *f, const char *format, ...)
{
    char text[2048];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fixture_build(f, arena_printf(&f->arena, HEAD "%s", text));
    assert_int_equal(app_start(f->app), 0);
}

static void stop(struct fixture *f)
{
    app_stop(f->app);
    app_wait(f->app);
    fixture_close_app(f);
}

/* One backend with one server: what its first check says. */
static void expect_first(void **state, const char *lines, int port, const char *options,
                         const char *expected)
{
    struct fixture *f;

    assert_int_equal(fixture_setup(state), 0);
    f = *state;
    start(f, "backend b\n %s\n server s 127.0.0.1:%d check %s\n", lines, port, options);
    fixture_expect(f, expected);
    stop(f);
    fixture_teardown(state);
}

#define OK(what)                                                  \
    "notice Health check for server b/s succeeded, reason: " what \
    ", check duration: *ms, status: 1/1 UP."
#define BAD(what)                                              \
    "notice Health check for server b/s failed, reason: " what \
    ", check duration: *ms, status: 0/1 DOWN."

/* --- tests ---------------------------------------------------------------------------------------- */

static void test_connect(void **state)
{
    struct peer *p = peer_start(NULL, 0);
    int fd, port = unused_port(&fd);

    expect_first(state, "", p->port, "", OK("Layer4 check passed"));
    expect_first(state, "option tcp-check\n tcp-check connect", p->port, "",
                 OK("Layer4 check passed, info: \"(tcp-check)\""));
    expect_first(
        state, "", port, "",
        BAD("Layer4 connection problem, info: \"ECONNREFUSED returned by OS (Connection refused)\""));
    expect_first(
        state, "option tcp-check\n tcp-check expect string a", port, "",
        BAD("Layer4 connection problem, info: \"ECONNREFUSED returned by OS (Connection refused) at initial "
            "connection step of tcp-check\""));
    expect_first(
        state, "", port, "addr 255.255.255.255",
        BAD("Layer4 connection problem, info: \"General socket error (Network is unreachable)\""));
    expect_first(
        state, "option tcp-check\n tcp-check connect\n tcp-check connect port 1 comment two",
        p->port, "",
        BAD("Layer4 connection problem, info: \"ECONNREFUSED returned by OS (Connection refused) at step 2 of "
            "tcp-check (connect port 1) comment: 'two'\""));
    peer_stop(p);
    close(fd);
}

static void test_proxy_header(void **state)
{
    static const char signature[] = "\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
    struct peer *p = peer_start(NULL, 0);

    expect_first(state, "", p->port, "send-proxy", OK("Layer4 check passed"));
    for (int i = 0; i < 500 && !peer_has_seen(p, "PROXY TCP4 127.0.0.1 127.0.0.1 ", 31); i++)
        usleep(10000);
    assert_true(peer_has_seen(p, "PROXY TCP4 127.0.0.1 127.0.0.1 ", 31));
    expect_first(state, "", p->port, "send-proxy-v2", OK("Layer4 check passed"));
    for (int i = 0; i < 500 && !peer_has_seen(p, signature, 16); i++)
        usleep(10000);
    assert_true(peer_has_seen(p, signature, 16));
    peer_stop(p);
}

static void test_http(void **state)
{
    static const struct {
        const char *lines, *answer, *expected;
    } rows[] = {
        {"", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", OK("Layer7 check passed, code: 200")},
        {"", "HTTP/1.0 302 Found\r\n\r\n", OK("Layer7 check passed, code: 302")},
        {"", "HTTP/1.0 500 Oh no\r\n\r\n", BAD("Layer7 wrong status, code: 500, info: \"Oh no\"")},
        {"", "HTTP/1.0 500 \r\n\r\n",
         BAD("Layer7 wrong status, code: 500, info: \"TCPCHK did not match content(status codes) at step 2\"")},
        {"", "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
         OK("Layer7 check passed, code: 204")},
        {"", NULL, BAD("Socket error")},
        {"", "HTTP/1.1 200 OK\r\ncont", BAD("Socket error")},
        {"", "HTTP/1.1 200 OK\r\nbad name: x\r\n\r\n",
         BAD("Layer7 invalid response, info: \"malformed field name\"")},
        {"http-check expect status 101",
         "HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
         OK("Layer7 check passed, code: 101")},
        {"http-check expect status 200 comment why", "HTTP/1.0 500 Oh no\r\n\r\n",
         BAD("Layer7 wrong status, code: 500, info: \"Oh no comment: why\"")},
        {"http-check expect string hello", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
         OK("Layer7 check passed, code: 200")},
        {"http-check expect string hello",
         "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
         OK("Layer7 check passed, code: 200")},
        {"http-check expect string hello",
         "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
         BAD("Layer7 invalid response, info: \"malformed or overflowing chunk size\"")},
        {"http-check expect string hello", "HTTP/1.1 200 OK\r\n\r\nbye",
         BAD("Layer7 invalid response, info: \"HTTP content check did not match\"")},
        {"http-check expect ! rstring b.e", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbye",
         BAD("Layer7 invalid response, info: \"HTTP check matched unwanted content\"")},
        {"http-check expect hdr name x-a value two", "HTTP/1.1 200 OK\r\nX-A: one, two\r\n\r\n",
         OK("Layer7 check passed, code: 200")},
        {"http-check expect status 200\n http-check expect string a\n http-check expect hdr name foo",
         "HTTP/1.1 200 Fine\r\n\r\na", BAD("Layer7 wrong status, code: 200, info: \"Fine\"")},
        {"http-check expect error-status L6RSP on-error \"oops %[res.hdr(x-b)]\" status 404",
         "HTTP/1.1 200 OK\r\nx-b: three\r\n\r\n",
         BAD("Layer6 invalid response, info: \"oops three\"")},
        {"http-check expect on-success \"yes %[res.hdr(x-b)]\" status-code res.hdr_cnt(x-b) status 200",
         "HTTP/1.1 200 OK\r\nx-b: three\r\n\r\n",
         OK("Layer7 check passed, code: 1, info: \"yes three\"")},
    };
    struct peer *p = peer_start(NULL, 0);
    char lines[256];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        atomic_store(&p->answer, rows[i].answer);
        snprintf(lines, sizeof lines, "option httpchk\n %s", rows[i].lines);
        expect_first(state, lines, p->port, "", rows[i].expected);
    }
    peer_stop(p);
}

/* Only as much as tune.bufsize is looked at, and the rest is not waited for. */
static void test_http_large(void **state)
{
    enum { BYTES = 40000 };
    static const char head[] = "HTTP/1.1 200 OK\r\ncontent-length: 999999\r\n\r\n";
    char *answer = calloc(1, BYTES + 1), *endless = calloc(1, BYTES + 1);
    struct peer *p;

    assert_non_null(answer);
    assert_non_null(endless);
    memset(endless, 'y', BYTES);
    memcpy(endless, head, 17);
    memset(answer, 'x', BYTES);
    memcpy(answer, head, sizeof head - 1);
    memcpy(answer + BYTES - 6, "needle", 6);
    p = peer_start(answer, SERVER_KEEP_OPEN);
    expect_first(state, "option httpchk\n http-check expect string needle", p->port, "",
                 BAD("Layer7 invalid response, info: \"HTTP content check did not match\""));
    expect_first(state, "option httpchk\n http-check expect string xxxx", p->port, "",
                 OK("Layer7 check passed, code: 200"));
    atomic_store(&p->answer, endless); /* a head without end */
    expect_first(state, "option httpchk", p->port, "",
                 BAD("Layer7 invalid response, info: \"head or trailers too large\""));
    peer_stop(p);
    free(answer);
    free(endless);
}

static void test_script(void **state)
{
    struct peer *p = peer_start("+OK ready\r\n", SERVER_SPEAKS_FIRST | SERVER_KEEP_OPEN);

    expect_first(state, "option tcp-check\n tcp-check expect string +OK", p->port, "",
                 OK("Layer7 check passed, code: 0, info: \"(tcp-check)\""));
    expect_first(
        state,
        "option tcp-check\n tcp-check connect\n tcp-check comment first\n tcp-check expect min-recv 0 string bye",
        p->port, "",
        BAD("Layer7 invalid response, info: \"TCPCHK did not match content 'bye' at step 3 comment: "
            "first\""));
    expect_first(
        state, "option tcp-check\n tcp-check expect min-recv 1 ! binary 2b4f4b", p->port, "",
        BAD("Layer7 invalid response, info: \"TCPCHK matched unwanted content (binary) at step 1\""));
    expect_first(
        state,
        "option tcp-check\n tcp-check expect ok-status L4OK on-success at-%[be_name] string +OK",
        p->port, "", OK("Layer4 check passed, info: \"at-b\""));
    expect_first(
        state, "option tcp-check\n tcp-check expect string-lf %[var(txn.none)]", p->port, "",
        BAD("Layer7 invalid response, info: \"log-format string evaluated to an empty string\""));
    expect_first(state, "timeout check 50ms\n option tcp-check\n tcp-check expect string never",
                 p->port, "",
                 BAD("Layer7 timeout, info: \" at step 1 of tcp-check (expect string 'never')\""));
    expect_first(
        state,
        "timeout check 50ms\n option tcp-check\n tcp-check connect\n tcp-check expect tout-status L6TOUT "
        "comment why rstring never",
        p->port, "",
        BAD("Layer6 timeout, info: \" at step 2 of tcp-check (expect regex) comment: 'why'\""));
    atomic_store(&p->flags, SERVER_SPEAKS_FIRST);
    expect_first(
        state, "option tcp-check\n tcp-check expect binary 0102", p->port, "",
        BAD("Layer7 invalid response, info: \"TCPCHK did not match content (binary) at step 1\""));
    atomic_store(&p->answer, NULL);
    expect_first(
        state, "option tcp-check\n tcp-check expect string a comment c", p->port, "",
        BAD("Layer7 invalid response, info: \"TCPCHK got an empty response at step 1 comment: c\""));
    expect_first(state, "option tcp-check\n tcp-check expect ! string a", p->port, "",
                 OK("Layer7 check passed, code: 0, info: \"(tcp-check)\""));
    peer_stop(p);
}

/* What was received before a "send" does not answer it. */
static void test_script_dialogue(void **state)
{
    struct peer *p = peer_start("250 ok\r\n", SERVER_TWICE | SERVER_KEEP_OPEN);

    expect_first(state,
                 "option tcp-check\n tcp-check send HELO\\r\\n\n tcp-check expect rstring ^250\n"
                 " tcp-check send-binary 51 comment quit\n tcp-check expect string 250",
                 p->port, "", OK("Layer7 check passed, code: 0, info: \"(tcp-check)\""));
    assert_true(peer_has_seen(p, "Q", 1));
    expect_first(state,
                 "option tcp-check\n tcp-check send-lf %[srv_name]\n tcp-check expect string 250\n"
                 " tcp-check send-binary-lf 5%[srv_id]\n tcp-check expect string 250",
                 p->port, "", OK("Layer7 check passed, code: 0, info: \"(tcp-check)\""));
    atomic_store(&p->flags, SERVER_KEEP_OPEN);
    expect_first(
        state,
        "timeout check 100ms\n option tcp-check\n tcp-check send A\n tcp-check expect string 250\n"
        " tcp-check send B\n tcp-check expect string 250",
        p->port, "",
        BAD("Layer7 timeout, info: \" at step 4 of tcp-check (expect string '250')\""));
    atomic_store(&p->answer, NULL);
    atomic_store(&p->flags, SERVER_RESET);
    expect_first(
        state, "option tcp-check\n tcp-check send A\n tcp-check expect string 250", p->port, "",
        BAD("Socket error, info: \"ECONNRESET returned by OS (Connection reset by peer) at step 2 of tcp-check "
            "(expect string '250')\""));
    peer_stop(p);
}

static void test_ssl_hello(void **state)
{
    struct peer *p = peer_start("\x15\x03\x00\x00\x02\x02\x28", 0);

    atomic_store(&p->answer_bytes, 7);
    expect_first(state, "option ssl-hello-chk", p->port, "", OK("Layer6 check passed"));
    atomic_store(&p->answer, "220 smtp\r\n");
    atomic_store(&p->answer_bytes, 0);
    expect_first(state, "option ssl-hello-chk", p->port, "", BAD("Layer6 invalid response"));
    peer_stop(p);
}

static void test_tls(void **state)
{
    struct t_id id = t_id_make(&(struct t_spec){.cn = "here"});
    struct peer *p = peer_start("HTTP/1.0 400 No\r\n\r\n", 0);
    struct fixture *f;

    t_folder();
    t_write_bundle("here.pem", &id, NULL);
    t_writef("ca.pem", "%s", "");
    assert_int_equal(fixture_setup(state), 0);
    f = *state;
    start(
        f,
        "frontend fe\n mode http\n bind %s/fe.sock ssl crt %s alpn h2,http/1.1\n http-request return status 200\n"
        "backend b\n server s %s/fe.sock check ssl verify none check-sni here inter 20ms\n"
        "backend h\n option httpchk GET / HTTP/1.1 here\n"
        " server s %s/fe.sock check check-ssl verify none check-alpn h2,http/1.1\n",
        f->dir, t_path("here.pem"), f->dir, f->dir);
    for (int i = 0; i < 2;) {
        const char *line = fixture_next_line(f, 5000);

        assert_non_null(line);
        if (str_starts(str_of(line), STR("info")))
            continue; /* the frontend's, of a connection without a request */
        i++;
        if (!strstr(line, strstr(line, "b/s") ? "reason: Layer6 check passed"
                                              : "reason: Layer7 check passed, code: 200"))
            fail_msg("unexpected: %s", line);
    }
    usleep(100000); /* more rounds: sessions are resumed */
    assert_string_equal(check_status(fixture_server(f, "b", "s")->check), "L6OK");
    stop(f);
    fixture_teardown(state);

    expect_first(
        state, "", p->port, "ssl verify none",
        BAD("Layer6 invalid response, info: \"SSL handshake failure (wrong version number)\""));
    atomic_store(&p->answer, NULL);
    expect_first(state, "", p->port, "ssl verify none",
                 BAD("Layer6 invalid response, info: \"Connection closed during SSL handshake\""));
    atomic_store(&p->flags, SERVER_KEEP_OPEN);
    expect_first(state, "timeout check 50ms", p->port, "ssl verify none", BAD("Layer6 timeout"));
    peer_stop(p);
    t_id_free(&id);
    t_folder_remove();
}

static void test_timeouts(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_start(NULL, SERVER_KEEP_OPEN);
    struct fixture *other;

    expect_first((void **)&other, "option httpchk\n timeout check 50ms", p->port, "",
                 BAD("Layer7 timeout"));
    /* Without "timeout check" the interval is the limit. */
    fixture_build(
        f, arena_printf(&f->arena,
                        "defaults\n timeout connect 1s\n timeout server 9s\n log @LOG@ daemon\n"
                        " option log-health-checks\nbackend b\n option httpchk\n"
                        " server s 127.0.0.1:%d check inter 60ms rise 1 fall 1\n",
                        p->port));
    assert_int_equal(app_start(f->app), 0);
    fixture_expect(f, BAD("Layer7 timeout"));
    stop(f);
    peer_stop(p);
}

/* Nobody accepts and the backlog is full: the connection is never made. */
static void test_connect_timeout(void **state)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fill[4];

    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(fd, 0), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
    for (int i = 0; i < 4; i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        connect(fill[i], (struct sockaddr *)&in, sizeof in);
    }
    usleep(20000);
    expect_first(state, "timeout connect 50ms\n timeout check 9s", ntohs(in.sin_port), "",
                 BAD("Layer4 timeout"));
    for (int i = 0; i < 4; i++)
        close(fill[i]);
    close(fd);
}

/* --- over time ---------------------------------------------------------------------------------------- */

struct order {
    struct io_message message;
    struct server *server;
    enum server_state state;
    atomic_bool done;
};

static void run_order(struct io_message *m)
{
    struct order *o = LIST_ENTRY(m, struct order, message);

    server_set_state(o->server, o->state, NULL);
    atomic_store(&o->done, true);
}

/* As the command socket will: on worker 0's thread. */
static void order(struct fixture *f, struct server *s, enum server_state state)
{
    struct order o = {.message.run = run_order, .server = s, .state = state};

    io_loop_post(f->app->workers[0].loop, &o.message);
    while (!atomic_load(&o.done))
        usleep(1000);
}

static void test_down_and_up(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_start("HTTP/1.0 200 OK\r\n\r\n", 0);
    struct server *s;

    start(f,
          "backend b\n option httpchk\n no option log-health-checks\n"
          " server s 127.0.0.1:%d check inter 20ms fastinter 10ms rise 2 fall 3\n",
          p->port);
    s = fixture_server(f, "b", "s");
    while (strcmp(check_status(s->check), "L7OK") != 0)
        usleep(1000);
    atomic_store(&p->answer, "HTTP/1.0 503 Away\r\n\r\n");
    fixture_expect(
        f,
        "alert Server b/s is DOWN, reason: Layer7 wrong status, code: 503, info: \"Away\", check duration: *ms. "
        "0 active and 0 backup servers left. 0 sessions active, 0 requeued, 0 remaining in queue.");
    fixture_expect(f, "emerg backend b has no server available!");
    assert_true(atomic_load(&s->check_failures) >= 3);
    atomic_store(&p->answer, "HTTP/1.0 200 OK\r\n\r\n");
    fixture_expect(
        f,
        "notice Server b/s is UP, reason: Layer7 check passed, code: 200, check duration: *ms. 1 active and 0 "
        "backup servers online. 0 sessions requeued, 0 total in queue.");
    assert_true(server_is_usable(s));
    assert_true(atomic_load(&s->down_time_us) > 0);
    stop(f);
    peer_stop(p);
}

static void test_pause_in_flight(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_start(NULL, SERVER_KEEP_OPEN);
    struct server *s;
    int before;

    start(f, "backend b\n option httpchk\n server s 127.0.0.1:%d check\n", p->port);
    s = fixture_server(f, "b", "s");
    while (atomic_load(&p->accepted) == 0)
        usleep(1000);
    order(f, s, SERVER_MAINT);
    fixture_expect(
        f,
        "alert Server b/s is going DOWN for maintenance. 0 active and 0 backup servers left. 0 sessions active, "
        "0 requeued, 0 remaining in queue.");
    fixture_expect(f, "emerg backend b has no server available!");
    usleep(30000);
    fixture_expect_nothing(f);
    before = atomic_load(&p->accepted);
    atomic_store(&p->answer, "HTTP/1.0 204 OK\r\n\r\n");
    atomic_store(&p->flags, 0);
    order(f, s, SERVER_UP);
    fixture_expect(f, "notice Server b/s is UP/READY (leaving forced maintenance).");
    fixture_expect(f, OK("Layer7 check passed, code: 204")); /* at once, not after an interval */
    assert_int_equal(atomic_load(&p->accepted), before + 1);
    stop(f);
    peer_stop(p);
}

static void test_observe(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_start(NULL, 0);
    struct server *s;

    start(
        f,
        "backend b\n mode http\n server s 127.0.0.1:%d check rise 2 fall 3 observe layer7 error-limit 3 on-error mark-down\n"
        " server t 127.0.0.1:1\n",
        p->port);
    s = fixture_server(f, "b", "s");
    fixture_expect(
        f,
        "notice Health check for server b/s succeeded, reason: Layer4 check passed, check duration: *ms, "
        "status: 3/3 UP.");
    check_observe(fixture_server(f, "b", "t"), true, false);
    for (int i = 0; i < 10; i++) {
        check_observe(s, true, false);
        check_observe(s, true, false);
        check_observe(s, false, true); /* a connection alone does not make up for it … */
        check_observe(s, true, true);  /* … a good answer does */
    }
    usleep(20000);
    fixture_expect_nothing(f);
    check_observe(s, true, false);
    check_observe(s, true, false);
    check_observe(s, false, false);
    fixture_expect(
        f,
        "notice Health check for server b/s failed, reason: Health analyze, info: \"Detected 3 consecutive "
        "errors, last one was: L4 unsuccessful connection\", status: 0/2 DOWN.");
    fixture_expect(
        f,
        "alert Server b/s is DOWN. 1 active and 0 backup servers left. 0 sessions active, 0 requeued, 0 "
        "remaining in queue.");
    stop(f);
    peer_stop(p);
}

/* on-marked-down shutdown-sessions: a session in progress ends with the server. */
static void test_shutdown_sessions(void **state)
{
    struct fixture *f = *state;
    struct peer *service = peer_start("hello", SERVER_KEEP_OPEN | SERVER_SPEAKS_FIRST);
    struct peer *health = peer_start("HTTP/1.0 200 OK\r\n\r\n", 0);
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    char data[16];

    start(f,
          "listen b\n bind %s/b.sock\n option httpchk\n option tcplog\n"
          " server s 127.0.0.1:%d check port %d inter 20ms on-marked-down shutdown-sessions\n",
          f->dir, service->port, health->port);
    fixture_expect(f, OK("Layer7 check passed, code: 200"));
    snprintf(un.sun_path, sizeof un.sun_path, "%s/b.sock", f->dir);
    assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof un), 0);
    assert_int_equal(poll(&readable, 1, 5000), 1);
    assert_int_equal(recv(fd, data, sizeof data, 0), 5);
    atomic_store(&health->answer, "HTTP/1.0 500 No\r\n\r\n");
    fixture_expect(f, BAD("Layer7 wrong status, code: 500, info: \"No\""));
    fixture_expect(
        f,
        "alert Server b/s is DOWN. 0 active and 0 backup servers left. 1 sessions active, 0 requeued, 0 "
        "remaining in queue.");
    fixture_expect(f, "emerg proxy b has no server available!");
    assert_int_equal(poll(&readable, 1, 5000), 1);
    assert_true(recv(fd, data, sizeof data, 0) <= 0);
    assert_non_null(fixture_next_line(f, 5000));
    assert_non_null(strstr(f->line, " DD "));
    close(fd);
    stop(f);
    peer_stop(service);
    peer_stop(health);
}

/* Checks of every kind in flight when the application ends. */
static void test_stop_in_flight(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_start(NULL, SERVER_KEEP_OPEN);

    start(
        f,
        "backend b\n option httpchk\n server s 127.0.0.1:%d check inter 10ms fastinter 5s\n"
        "backend t\n server s 127.0.0.1:%d check ssl verify none\n server m 127.0.0.1:1 check disabled\n",
        p->port, p->port);
    while (atomic_load(&p->accepted) == 0)
        usleep(1000);
    usleep(5000);
    stop(f);
    peer_stop(p);
}

int main(void)
{
#define FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_connect),
        cmocka_unit_test(test_proxy_header),
        cmocka_unit_test(test_http),
        cmocka_unit_test(test_http_large),
        cmocka_unit_test(test_script),
        cmocka_unit_test(test_script_dialogue),
        cmocka_unit_test(test_ssl_hello),
        cmocka_unit_test(test_tls),
        FIXTURE(test_timeouts),
        cmocka_unit_test(test_connect_timeout),
        FIXTURE(test_down_and_up),
        FIXTURE(test_pause_in_flight),
        FIXTURE(test_observe),
        FIXTURE(test_shutdown_sessions),
        FIXTURE(test_stop_in_flight),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("proxy/check_live", tests, NULL, NULL);
}
