#include "cmd/bench_plan.h"

#include "base/hash.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_CONNECTIONS 10
#define DEFAULT_DURATION_US 10000000u
#define DEFAULT_TIMEOUT_US 30000000u
#define CONNECTIONS_A_THREAD 1000 /* above which another thread is worth its core */
#define FILE_MAX (256u << 20)
#define URLS_MAX 100000

const char *bench_url_parse(const char *text, struct bench_url *out)
{
    static const char expected[] = "http://HOST[:PORT][/PATH] or https://HOST[:PORT][/PATH]";
    struct str s = str_of(text), authority;
    uint64_t port;
    size_t end;

    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)text[i] <= 0x20 || text[i] == 0x7f)
            return "a URL without spaces and control characters";
    *out = (struct bench_url){.is_tls = str_istarts(s, STR("https://"))};
    if (!out->is_tls && !str_istarts(s, STR("http://")))
        return expected;
    out->scheme = str_make(text, out->is_tls ? 5 : 4);
    s = str_from(s, out->scheme.len + 3);
    s.len = str_chr(s, '#');
    if (str_starts(s, STR("unix:"))) {
        s = str_from(s, 5);
        out->is_unix = true;
        out->host = str_make(s.ptr, str_chr(s, ':'));
        out->target = str_from(s, out->host.len + 1);
        if (out->host.len == 0 || out->host.ptr[0] != '/')
            return "http://unix:/SOCKET:/PATH";
        if (out->target.len && out->target.ptr[0] != '/')
            return "http://unix:/SOCKET:/PATH";
    } else {
        for (end = 0; end < s.len && s.ptr[end] != '/' && s.ptr[end] != '?';)
            end++;
        authority = str_make(s.ptr, end);
        out->target = str_from(s, end);
        if (str_chr(authority, '@') < authority.len)
            return "no user in the URL; -A USER:PASSWORD is basic authentication";
        if (!http_is_authority(authority))
            return expected;
        end =
            authority.len && authority.ptr[0] == '[' ? str_chr(authority, ']') + 1 : str_chr(authority, ':');
        out->host = str_make(authority.ptr, end < authority.len ? end : authority.len);
        authority = str_from(authority, out->host.len);
        port = out->is_tls ? 443 : 80;
        if (authority.len > 1 && (str_to_u64(str_from(authority, 1), &port) != 0 || port < 1 || port > 65535))
            return "a port from 1 to 65535";
        out->port = (uint16_t)port;
        if (out->host.len == 0)
            return expected;
    }
    if (out->target.len == 0)
        out->target = STR("/");
    return NULL;
}

static int out_of_memory(void)
{
    fprintf(stderr, "sallyport bench: out of memory\n");
    return 1;
}

/* --- targets -------------------------------------------------------------------------------- */

/* An entry of a cipher list that is TLS 1.3's, whose list is another. */
static bool is_suite(struct str name)
{
    return str_starts(name, STR("TLS_"));
}

static const char *pick_ciphers(struct arena *arena, const char *list, bool suites)
{
    struct str rest = str_of(list);
    const char *out = NULL;

    while (rest.len) {
        struct str name = str_make(rest.ptr, str_chr(rest, ':'));

        if (name.len && is_suite(name) == suites)
            out = arena_printf(arena, "%s%s%.*s", out ? out : "", out ? ":" : "", STR_FMT(name));
        rest = str_from(rest, name.len + 1);
    }
    return out;
}

static int append_file(int fd, const char *path)
{
    char buffer[16384];
    ssize_t n;
    int in = open(path, O_RDONLY | O_CLOEXEC), status = 0;

    if (in < 0)
        return SP_EIO;
    while (status == 0 && (n = read(in, buffer, sizeof(buffer))) != 0)
        if (n < 0 || write(fd, buffer, (size_t)n) != n)
            status = SP_EIO;
    /* A file may lack the end of its last line. */
    if (status == 0 && write(fd, "\n", 1) != 1)
        status = SP_EIO;
    close(in);
    return status;
}

/* The loader takes one file with certificate and key: the two are joined in memory, not on a disk. */
static int join_certificate(struct bench_plan *p, const struct bench_args *a, const char **path)
{
    const char *const files[] = {a->cert, a->key};

    *path = a->cert;
    if (!a->key || strcmp(a->key, a->cert) == 0)
        return 0;
    p->cert_fd = memfd_create("client certificate", MFD_CLOEXEC);
    for (unsigned i = 0; i < 2; i++) {
        if (p->cert_fd < 0 || append_file(p->cert_fd, files[i]) != 0) {
            fprintf(stderr, "sallyport bench: --%s: '%s': %s\n", i ? "key" : "cert", files[i],
                    strerror(errno));
            return 2;
        }
    }
    *path = arena_printf(&p->arena, "/proc/self/fd/%d", p->cert_fd);
    return *path ? 0 : out_of_memory();
}

static int build_tls(struct bench_plan *p, const struct bench_args *a, const char *name,
                     struct load_target *t)
{
    struct tls_client_params params = {
        .curves = a->curves,
        .alpn = a->alpn,
        .min_version = a->tls_version == 13 ? TLS_VERSION_13 : TLS_VERSION_12,
        .max_version = a->tls_version == 12 ? TLS_VERSION_12 : TLS_VERSION_ANY,
        .verify = a->insecure ? TLS_VERIFY_NONE : TLS_VERIFY_REQUIRED,
        .verify_host = name,
        .ca_file = a->insecure ? NULL
                   : a->cafile ? a->cafile
                               : "@system-ca",
    };
    struct diag diag;
    int status;

    if (a->ciphers) {
        params.ciphers = pick_ciphers(&p->arena, a->ciphers, false);
        params.ciphersuites = pick_ciphers(&p->arena, a->ciphers, true);
    }
    if (a->cert) {
        status = join_certificate(p, a, &params.crt);
        if (status != 0)
            return status;
    }
    if (!p->store && !(p->store = tls_store_new()))
        return out_of_memory();
    diag_init(&diag, &p->arena);
    t->tls = tls_client_ctx_new(p->store, &params, &diag);
    for (const struct diag_item *item = diag.first; item; item = item->next)
        fprintf(stderr, "sallyport bench: %s\n", item->text);
    return t->tls ? 0 : 2;
}

static int resolve(struct bench_plan *p, const struct bench_url *url, const char *text, struct addr *out)
{
    const char *why = NULL, *name;
    struct addr_spec spec;

    name = url->is_unix ? arena_printf(&p->arena, "unix@%.*s", STR_FMT(url->host))
                        : arena_printf(&p->arena, "%.*s:%u", STR_FMT(url->host), url->port);
    if (!name)
        return out_of_memory();
    if (addr_parse(name, ADDR_RESOLVE | (url->is_unix ? 0 : ADDR_PORT_REQUIRED), &spec, &why) != 0) {
        fprintf(stderr, "sallyport bench: '%s': no address of '%.*s': %s\n", text, STR_FMT(url->host),
                why ? why : "not found");
        return 1;
    }
    *out = spec.addr;
    return 0;
}

/* The target of a URL: an earlier one with the same scheme, host and port, or a new one. */
static int find_target(struct bench_plan *p, const struct bench_args *a, const struct bench_url *url,
                       const char *text, const struct load_target **out)
{
    struct load_target *t = &p->targets[p->load.target_count];
    struct in6_addr binary;
    const char *host, *name;
    bool is_default = url->port == (url->is_tls ? 443 : 80), is_address;
    int status;

    host = url->is_unix ? "localhost"
           : is_default ? arena_printf(&p->arena, "%.*s", STR_FMT(url->host))
                        : arena_printf(&p->arena, "%.*s:%u", STR_FMT(url->host), url->port);
    if (!host)
        return out_of_memory();
    for (size_t i = 0; i < p->load.target_count && !url->is_unix; i++) {
        const struct load_target *old = &p->targets[i];

        if (old->is_tls == url->is_tls && old->addr.u.sa.sa_family != AF_UNIX &&
            strcasecmp(old->host, host) == 0) {
            *out = old;
            return 0;
        }
    }
    *t = (struct load_target){.host = host, .is_tls = url->is_tls, .alpn = a->alpn};
    status = resolve(p, url, text, &t->addr);
    if (status == 0 && url->is_tls) {
        is_address = url->host.ptr[0] == '[';
        name = url->is_unix ? "localhost"
                            : arena_printf(&p->arena, "%.*s", (int)url->host.len - 2 * is_address,
                                           url->host.ptr + is_address);
        is_address = is_address || (name && inet_pton(AF_INET, name, &binary) == 1);
        /* RFC 6066 section 3: an address is no server name. */
        t->sni = a->sni ? a->sni : is_address ? NULL : name;
        status = build_tls(p, a, a->sni ? a->sni : name, t);
    }
    if (status == 0) {
        p->load.target_count++;
        *out = t;
    }
    return status;
}

/* --- requests ---------------------------------------------------------------------------------- */

static bool has_header(const struct bench_args *a, struct str name)
{
    for (size_t i = 0; i < a->header_count; i++) {
        struct str text = str_of(a->headers[i]);

        if (str_ieq(str_make(text.ptr, str_chr(text, ':')), name))
            return true;
    }
    return false;
}

static int encode(struct bench_plan *p, const struct bench_args *a, struct str method,
                  const struct bench_url *url, const struct load_target *target, struct str *bytes)
{
    char *text = NULL, credentials[700];
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    bool has_body = p->body.ptr != NULL, ok;
    int n;

    if (!out)
        return out_of_memory();
    fprintf(out, "%.*s %s%.*s HTTP/1.1\r\n", STR_FMT(method), url->target.ptr[0] == '/' ? "" : "/",
            STR_FMT(url->target));
    if (!has_header(a, STR("Host")))
        fprintf(out, "Host: %s\r\n", target->host);
    if (!has_header(a, STR("User-Agent")))
        fputs("User-Agent: sallyport-bench/" SP_VERSION "\r\n", out);
    if (!has_header(a, STR("Accept")))
        fputs("Accept: */*\r\n", out);
    if (a->basic_auth) {
        n = hash_base64_encode(str_of(a->basic_auth), credentials, sizeof(credentials));
        fprintf(out, "Authorization: Basic %.*s\r\n", n > 0 ? n : 0, credentials);
    }
    for (size_t i = 0; i < a->header_count; i++)
        fprintf(out, "%s\r\n", a->headers[i]);
    if (has_body && !has_header(a, STR("Content-Type")))
        fprintf(out, "Content-Type: %s\r\n", a->content_type ? a->content_type : "text/plain");
    if (has_body || str_eq(method, STR("POST")) || str_eq(method, STR("PUT")) || str_eq(method, STR("PATCH")))
        fprintf(out, "Content-Length: %zu\r\n", p->body.len);
    if (a->close)
        fputs("Connection: close\r\n", out);
    fputs("\r\n", out);
    if (p->body.len)
        fwrite(p->body.ptr, 1, p->body.len, out);
    ok = fclose(out) == 0;
    *bytes = ok ? arena_str(&p->arena, str_make(text, len)) : STR_NULL;
    free(text);
    return bytes->ptr ? 0 : out_of_memory();
}

/* `where` precedes the message: the file and its line, or nothing. */
static int add_request(struct bench_plan *p, const struct bench_args *a, const char *where, struct str method,
                       const char *text)
{
    struct load_request *r = &p->requests[p->load.request_count];
    struct bench_url url;
    const char *expected = bench_url_parse(text, &url);
    int status;

    if (expected) {
        fprintf(stderr, "sallyport bench: %sURL: expected %s, got '%s'\n", where, expected, text);
        return 2;
    }
    if (a->handshake_only && !url.is_tls) {
        fprintf(stderr, "sallyport bench: --handshake-only: expected an https:// URL, got '%s'\n", text);
        return 2;
    }
    *r = (struct load_request){.method = http_method_of(method),
                               .expect_status = a->expect_status ? (int)a->expect_status : -1,
                               .expect_size = a->has_expect_size ? (int64_t)a->expect_size : -1};
    status = find_target(p, a, &url, text, &r->target);
    if (status == 0)
        status = encode(p, a, method, &url, r->target, &r->bytes);
    if (status == 0)
        p->urls[p->load.request_count++] = text;
    return status;
}

static int read_body(struct bench_plan *p, const struct bench_args *a)
{
    struct stat st;
    char *bytes;
    ssize_t n = -1;
    int fd;

    if (a->body)
        p->body = str_of(a->body);
    if (!a->body_file)
        return 0;
    fd = open(a->body_file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX) {
        fprintf(stderr, "sallyport bench: -p: expected a file of at most 256 MiB, got '%s': %s\n",
                a->body_file, fd < 0 ? strerror(errno) : "it is none");
        if (fd >= 0)
            close(fd);
        return 2;
    }
    bytes = arena_alloc(&p->arena, (size_t)st.st_size + 1);
    if (bytes)
        n = read(fd, bytes, (size_t)st.st_size);
    close(fd);
    if (n != st.st_size) {
        fprintf(stderr, "sallyport bench: -p: '%s' cannot be read\n", a->body_file);
        return 2;
    }
    p->body = str_make(bytes, (size_t)n);
    return 0;
}

static struct str default_method(const struct bench_plan *p, const struct bench_args *a)
{
    return a->method ? str_of(a->method) : p->body.ptr ? STR("POST") : STR("GET");
}

/* "URL" or "METHOD URL" a line; empty lines and those with '#' in front are passed over. */
static int read_urls(struct bench_plan *p, const struct bench_args *a, FILE *file, size_t room)
{
    char *line = NULL, where[300];
    size_t capacity = 0;
    int number = 0, status = 0;
    ssize_t len;

    while (status == 0 && (len = getline(&line, &capacity, file)) >= 0) {
        struct str text = str_make(line, (size_t)len), method;
        const char *url;
        size_t gap;

        number++;
        while (text.len && (text.ptr[text.len - 1] == '\n' || text.ptr[text.len - 1] == '\r'))
            text.len--;
        text = str_trim(text);
        if (text.len == 0 || text.ptr[0] == '#')
            continue;
        if (p->load.request_count == room)
            break;
        (void)snprintf(where, sizeof(where), "%.200s line %d: ", a->urls_file, number);
        method = default_method(p, a);
        gap = str_chr(text, ' ');
        if (gap < text.len) {
            method = arena_str(&p->arena, str_make(text.ptr, gap));
            text = str_trim(str_from(text, gap));
            if (!method.ptr || !http_is_token(method) || http_method_of(method) == HTTP_CONNECT) {
                fprintf(stderr, "sallyport bench: %sexpected METHOD URL or URL\n", where);
                status = 2;
                break;
            }
        }
        url = arena_printf(&p->arena, "%.*s", STR_FMT(text));
        status = url ? add_request(p, a, where, method, url) : out_of_memory();
    }
    free(line);
    return status;
}

static int add_requests(struct bench_plan *p, const struct bench_args *a)
{
    size_t room = a->url_count + (a->urls_file ? URLS_MAX : 0);
    struct str method;
    FILE *file;
    int status = 0;

    p->targets = calloc(room, sizeof(*p->targets));
    p->requests = calloc(room, sizeof(*p->requests));
    p->urls = calloc(room, sizeof(*p->urls));
    if (!p->targets || !p->requests || !p->urls)
        return out_of_memory();
    method = default_method(p, a);
    for (size_t i = 0; i < a->url_count && status == 0; i++)
        status = add_request(p, a, "", method, a->urls[i]);
    if (status == 0 && a->urls_file) {
        file = fopen(a->urls_file, "re");
        if (!file) {
            fprintf(stderr, "sallyport bench: --urls: '%s': %s\n", a->urls_file, strerror(errno));
            return 2;
        }
        status = read_urls(p, a, file, room);
        fclose(file);
    }
    if (status == 0 && p->load.request_count == 0) {
        fprintf(stderr, "sallyport bench: --urls: '%s' has no URL\n", a->urls_file);
        return 2;
    }
    return status;
}

static uint64_t cpus_allowed(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0 ? (uint64_t)CPU_COUNT(&set)
                                                                               : 1;
}

static void set_amounts(struct load_plan *l, const struct bench_args *a)
{
    uint64_t threads = a->threads, connections = a->connections ? a->connections : DEFAULT_CONNECTIONS;

    /* More connections than requests would only be opened. */
    if (a->requests && connections > a->requests)
        connections = a->requests;
    /* An open loop needs a connection for each request in flight, however many a stall leaves there. */
    if (!a->connections && (a->rate > 0 || a->find_limit || a->hold > 0))
        connections = 100;
    if (connections < threads)
        connections = threads;
    if (!threads && a->cpu_count)
        threads = a->cpu_count < connections ? a->cpu_count : connections;
    if (!threads) {
        threads = connections > CONNECTIONS_A_THREAD ? 1 + connections / CONNECTIONS_A_THREAD : 1;
        threads = threads < cpus_allowed() ? threads : cpus_allowed();
    }
    l->connections = (unsigned)connections;
    l->threads = (unsigned)threads;
    l->request_limit = a->requests;
    l->duration_us = a->duration_us ? (uint64_t)a->duration_us : a->requests ? 0 : DEFAULT_DURATION_US;
    l->timeout_us = a->timeout_us ? (uint64_t)a->timeout_us : DEFAULT_TIMEOUT_US;
    if (a->interval_us)
        l->interval_us = (uint64_t)a->interval_us;
    else if (a->csv)
        l->interval_us = 1000000;
    else if (a->html || a->format == BENCH_FORMAT_WRK)
        l->interval_us = l->duration_us && l->duration_us < 15000000 ? 100000 : 250000;
}

int bench_plan_build(struct bench_plan *p, const struct bench_args *args)
{
    int status;

    memset(p, 0, sizeof(*p));
    p->cert_fd = -1;
    arena_init(&p->arena, 16384, 0);
    p->load.warmup_us = (uint64_t)args->warmup_us;
    p->load.close = args->close;
    p->load.handshake_only = args->handshake_only;
    p->load.resume_ratio = args->resume_ratio;
    p->load.rate = args->rate;
    p->load.arrivals = args->rate <= 0 ? LOAD_CLOSED : args->is_constant ? LOAD_CONSTANT : LOAD_POISSON;
    p->load.seed = args->seed;
    p->load.cpus = args->cpus;
    set_amounts(&p->load, args);
    if (args->cafile && access(args->cafile, R_OK) != 0) {
        fprintf(stderr, "sallyport bench: --cafile: '%s': %s\n", args->cafile, strerror(errno));
        return 2;
    }
    status = read_body(p, args);
    if (status == 0)
        status = add_requests(p, args);
    p->load.targets = p->targets;
    p->load.requests = p->requests;
    return status;
}

void bench_plan_release(struct bench_plan *p)
{
    for (size_t i = 0; i < p->load.target_count; i++)
        tls_client_ctx_free(p->targets[i].tls);
    tls_store_free(p->store);
    if (p->cert_fd >= 0)
        close(p->cert_fd);
    free(p->targets);
    free(p->requests);
    free(p->urls);
    arena_release(&p->arena);
}
