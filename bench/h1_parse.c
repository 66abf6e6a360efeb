/*
 * What one HTTP/1 head costs: nanoseconds to parse it, and to parse it and write it again.
 *
 *   h1_parse [ROUNDS]
 *
 * Every head is first checked to come back from the writer as it was read, and the scanners of
 * sixteen bytes a step to agree with the plain ones at each of its bytes. The best of seven runs
 * counts: what is slower was disturbed.
 */
#include "base/clock.h"
#include "http/h1.h"
#include "http/h1_scan.h"

#include <stdio.h>
#include <stdlib.h>

#define RUNS 7

struct sample {
    const char *name;
    bool response;
    bool with_body; /* bytes follow the head in the buffer */
    const char *head;
};

static const struct sample samples[] = {
    {"request, 1 field", false, false, "GET /index.html HTTP/1.1\r\nHost: www.example.org\r\n\r\n"},
    {"request, benchmark client", false, false,
     "GET /bytes/1024 HTTP/1.1\r\nHost: 127.0.0.1:8443\r\nUser-Agent: bench/1.0\r\n"
     "Accept: */*\r\n\r\n"},
    {"request, browser", false, false,
     "GET /search?q=load+balancer&lang=en HTTP/1.1\r\n"
     "Host: www.example.org\r\n"
     "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n"
     "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
     "Accept-Language: en-US,en;q=0.5\r\n"
     "Accept-Encoding: gzip, deflate, br, zstd\r\n"
     "Connection: keep-alive\r\n"
     "Cookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\n"
     "Upgrade-Insecure-Requests: 1\r\n"
     "Cache-Control: max-age=0\r\n\r\n"},
    {"request, POST with body", false, true,
     "POST /api/v1/items HTTP/1.1\r\nHost: api.example.org\r\nUser-Agent: client/2.1\r\n"
     "Content-Type: application/json\r\nContent-Length: 512\r\nAccept: */*\r\n\r\n"},
    {"response, 200 with body", true, true,
     "HTTP/1.1 200 OK\r\n"
     "Server: nginx/1.22.1\r\n"
     "Date: Mon, 13 May 2024 08:49:37 GMT\r\n"
     "Content-Type: application/octet-stream\r\n"
     "Content-Length: 1024\r\n"
     "Last-Modified: Mon, 13 May 2024 08:00:00 GMT\r\n"
     "Connection: keep-alive\r\n"
     "ETag: \"6641c6e0-400\"\r\n"
     "Accept-Ranges: bytes\r\n\r\n"},
    {"response, small", true, true,
     "HTTP/1.1 200 OK\r\nContent-Length: 128\r\nContent-Type: text/plain\r\n\r\n"},
};

static const struct h1_limits limits = {.max_head_bytes = 16384, .max_fields = 101};

/* One parse into a fresh message, as a session does it between two requests. */
static int parse_once(const struct sample *s, struct str in, struct arena *arena,
                      struct http_msg *m)
{
    struct h1_scan scan = {0};
    size_t head_bytes, at;
    enum h1_error error;

    arena_reset(arena);
    http_msg_init(m, arena);
    if (s->response)
        return h1_parse_response(&scan, in, &limits, HTTP_GET, m, &head_bytes, &error, &at);
    return h1_parse_request(&scan, in, &limits, m, &head_bytes, &error, &at);
}

static double best_ns(const struct sample *s, struct str in, struct arena *arena, struct buf *out,
                      unsigned rounds)
{
    uint64_t best_us = UINT64_MAX;

    for (int run = 0; run < RUNS; run++) {
        uint64_t start = clock_now_us(), taken;

        for (unsigned i = 0; i < rounds; i++) {
            struct http_msg m;

            if (parse_once(s, in, arena, &m) < 0)
                abort();
            if (out) {
                buf_clear(out);
                if (h1_write_head(out, &m) < 0)
                    abort();
            }
            __asm__ volatile("" ::"r"(&m) : "memory");
        }
        taken = clock_now_us() - start;
        if (taken < best_us)
            best_us = taken;
    }
    return (double)best_us * 1000.0 / rounds;
}

static void check(const struct sample *s, struct str in, struct arena *arena, struct buf *out)
{
    struct http_msg m;

    buf_clear(out);
    if (parse_once(s, in, arena, &m) < 0 || h1_write_head(out, &m) < 0 ||
        !str_eq(buf_str(out), str_of(s->head))) {
        fprintf(stderr, "%s: parser and writer disagree\n", s->name);
        exit(1);
    }
}

static void check_scanners(const struct sample *s, struct str in)
{
    const char *end = in.ptr + in.len;

    for (const char *p = in.ptr; p < end; p++) {
        if (h1_scan_value(p, end, in.ptr) != h1_scan_value_plain(p, end) ||
            h1_scan_target(p, end, in.ptr) != h1_scan_target_plain(p, end) ||
            h1_scan_common_name(p, end, in.ptr) != h1_scan_common_name_plain(p, end) ||
            h1_has_empty_line(p, end) != h1_has_empty_line_plain(p, end)) {
            fprintf(stderr, "%s: scanners disagree at byte %td\n", s->name, p - in.ptr);
            exit(1);
        }
    }
}

int main(int argc, char **argv)
{
    static char in_mem[4096], out_mem[4096];
    struct buf out = {.mem = out_mem, .size = sizeof out_mem};
    struct arena arena;
    uint64_t rounds = 1000000;

    if (argc > 1 && (str_to_u64(str_of(argv[1]), &rounds) < 0 || !rounds || rounds > UINT32_MAX)) {
        fprintf(stderr, "usage: h1_parse [ROUNDS]\n");
        return 2;
    }
    arena_init(&arena, 0, 0);
    printf("%-28s %6s %10s %14s\n", "head", "bytes", "parse ns", "parse+write ns");
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const struct sample *s = &samples[i];
        size_t len = strlen(s->head);
        struct str in = {in_mem, s->with_body ? len + 512 : len};

        memcpy(in_mem, s->head, len);
        memset(in_mem + len, 'x', 512);
        check(s, in, &arena, &out);
        check_scanners(s, in);
        printf("%-28s %6zu %10.1f %14.1f\n", s->name, len,
               best_ns(s, in, &arena, NULL, (unsigned)rounds),
               best_ns(s, in, &arena, &out, (unsigned)rounds));
    }
    arena_release(&arena);
    return 0;
}
