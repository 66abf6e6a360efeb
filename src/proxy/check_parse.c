/*
 * The words of "connect" and "send" of health-check scripts.
 */
#include "proxy/check_internal.h"

#include <stdio.h>

/* --- connect ---------------------------------------------------------------------- */

static int parse_port(struct check_words *w, struct check_connect *connect)
{
    const char *text = check_next_word(w);
    uint64_t port;
    int used;

    if (!text)
        return SP_EINVAL;
    if (str_to_u64(str_of(text), &port) == 0) {
        if (port < 1 || port > 65535)
            return check_fail(w, "'%s' is not a port; expected 1 to 65535 or an expression", text);
        connect->port = (uint16_t)port;
        return 0;
    }
    w->compiler->loc = w->loc;
    connect->port_expr = rules_expr_compile(w->compiler, w->argc - w->at, w->argv + w->at, &used);
    if (!connect->port_expr)
        return SP_EINVAL;
    w->at += used - 1;
    return 0;
}

static int parse_address(struct check_words *w, struct check_connect *connect)
{
    const char *text = check_next_word(w), *why;
    struct addr_spec spec;

    if (!text)
        return SP_EINVAL;
    if (addr_parse(text, ADDR_RESOLVE, &spec, &why) != 0)
        return check_fail(w, "'%s' is not an address to connect to: %s", text, why);
    if (spec.fd >= 0 || spec.datagram || spec.addr.u.sa.sa_family == AF_UNSPEC)
        return check_fail(
            w, "'%s' is not an address to connect to; expected an IP address or a Unix socket",
            text);
    connect->has_address = true;
    connect->address = spec.addr;
    if (spec.port_given)
        addr_set_port(&connect->address, spec.port_low);
    return 0;
}

/* Words without an argument; SP_ENOENT for any other. */
static int parse_connect_flag(const struct check_words *w, struct check_connect *connect)
{
    const char *word = w->argv[w->at];

    if (strcmp(word, "default") == 0)
        connect->use_server = true;
    else if (strcmp(word, "send-proxy") == 0)
        connect->send_proxy = true;
    else if (strcmp(word, "ssl") == 0)
        connect->tls = true;
    else if (strcmp(word, "linger") == 0)
        connect->linger = true;
    else
        return SP_ENOENT;
    return 0;
}

static int parse_connect_word(struct check_words *w, struct check_step *step)
{
    static const char *const words[] = {"addr", "alpn",       "comment", "default", "linger",
                                        "port", "send-proxy", "sni",     "ssl"};
    struct check_connect *connect = &step->u.connect;
    const char *word = w->argv[w->at], **text = NULL, *proto;
    char hint[128];

    if (strcmp(word, "port") == 0)
        return parse_port(w, connect);
    if (strcmp(word, "addr") == 0)
        return parse_address(w, connect);
    if (strcmp(word, "comment") == 0)
        text = &step->comment;
    else if (strcmp(word, "sni") == 0)
        text = &connect->sni;
    else if (strcmp(word, "alpn") == 0)
        text = &connect->alpn;
    if (text) {
        *text = check_next_word(w);
        return *text ? 0 : SP_EINVAL;
    }
    if (strcmp(word, "proto") == 0) {
        proto = check_next_word(w);
        if (!proto)
            return SP_EINVAL;
        if (strcmp(proto, "h1") != 0 && strcmp(proto, "none") != 0)
            return check_fail(
                w,
                "'proto %s' is known to HAProxy and not supported for checks; expected h1 or none",
                proto);
        return 0;
    }
    if (strcmp(word, "via-socks4") == 0)
        return check_fail(w, "'via-socks4' is known to HAProxy and not supported");
    if (parse_connect_flag(w, connect) == 0)
        return 0;
    diag_suggest(hint, sizeof(hint), word, words, sizeof(words) / sizeof(words[0]));
    return check_fail(
        w,
        "'%s' is unknown; expected default, port, addr, send-proxy, ssl, sni, alpn, linger, proto or "
        "comment%s",
        word, hint);
}

int check_parse_connect(struct check_words *w, struct check_step *step)
{
    int rc = 0;

    for (w->at = 1; w->at < w->argc && rc == 0; w->at++)
        rc = parse_connect_word(w, step);
    return rc;
}

/* --- http-check send ------------------------------------------------------------------ */

/* Lengths and codings are the writer's business, so that a request always says where it ends. */
static bool header_is_framing(struct str name)
{
    enum http_field_id id = http_field_id_of(name);

    return id == HTTP_FIELD_CONTENT_LENGTH || id == HTTP_FIELD_TRANSFER_ENCODING;
}

static int add_header(struct check_words *w, struct check_send *send, struct str name,
                      const char *value)
{
    struct check_header *grown;
    struct rules_fmt *fmt;

    if (!http_is_token(name))
        return check_fail(w, "'%.*s' is not the name of a header field", STR_FMT(name));
    fmt = check_fmt(w, value);
    if (!fmt)
        return SP_EINVAL;
    if (header_is_framing(name))
        return 0;
    grown = arena_zalloc(w->compiler->arena, send->header_count + 1, sizeof(*grown));
    if (!grown)
        return SP_ENOMEM;
    if (send->header_count)
        memcpy(grown, send->headers, send->header_count * sizeof(*grown));
    grown[send->header_count] = (struct check_header){.name = name, .value = fmt};
    send->headers = grown;
    send->header_count++;
    return 0;
}

int check_parse_header_text(struct check_words *w, struct check_send *send, const char *text)
{
    struct str rest = str_of(text);
    int rc = 0;

    while (rest.len && rc == 0) {
        size_t end = str_find(rest, STR("\r\n"));
        struct str line = str_make(rest.ptr, end);
        size_t colon = str_chr(line, ':');
        struct str value = arena_str(w->compiler->arena, str_trim(str_from(line, colon + 1)));

        rest = str_from(rest, end + 2);
        if (!line.len)
            continue;
        if (colon == line.len)
            return check_fail(w, "'%.*s' is not a header field; expected NAME: VALUE",
                              STR_FMT(line));
        rc = value.ptr ? add_header(w, send, str_make(line.ptr, colon), value.ptr) : SP_ENOMEM;
    }
    return rc;
}

static int parse_send_header(struct check_words *w, struct check_send *send)
{
    const char *name = check_next_word(w);
    const char *value = name ? check_next_word(w) : NULL;

    return value ? add_header(w, send, str_of(name), value) : SP_EINVAL;
}

/* "uri X", "body-lf F" and the like: a text or a format. */
static int parse_send_text(struct check_words *w, struct str *text, struct rules_fmt **fmt)
{
    const char *word = check_next_word(w);

    if (!word)
        return SP_EINVAL;
    if (text)
        *text = str_of(word);
    else
        *fmt = check_fmt(w, word);
    return text || *fmt ? 0 : SP_EINVAL;
}

static int parse_send_word(struct check_words *w, struct check_step *step)
{
    static const char *const words[] = {"body", "body-lf", "comment", "hdr",
                                        "meth", "uri",     "uri-lf",  "ver"};
    struct check_send *send = &step->u.send;
    const char *word = w->argv[w->at];
    char hint[128];

    if (strcmp(word, "meth") == 0)
        return parse_send_text(w, &send->method, NULL);
    if (strcmp(word, "uri") == 0)
        return parse_send_text(w, &send->uri, NULL);
    if (strcmp(word, "uri-lf") == 0)
        return parse_send_text(w, NULL, &send->uri_fmt);
    if (strcmp(word, "ver") == 0)
        return parse_send_text(w, &send->version, NULL);
    if (strcmp(word, "body") == 0)
        return parse_send_text(w, &send->body, NULL);
    if (strcmp(word, "body-lf") == 0)
        return parse_send_text(w, NULL, &send->body_fmt);
    if (strcmp(word, "hdr") == 0)
        return parse_send_header(w, send);
    if (strcmp(word, "comment") == 0) {
        step->comment = check_next_word(w);
        return step->comment ? 0 : SP_EINVAL;
    }
    diag_suggest(hint, sizeof(hint), word, words, sizeof(words) / sizeof(words[0]));
    return check_fail(
        w, "'%s' is unknown; expected meth, uri, uri-lf, ver, hdr, body, body-lf or comment%s",
        word, hint);
}

int check_parse_http_send(struct check_words *w, struct check_step *step)
{
    int rc = 0;

    step->u.send.http = true;
    for (w->at = 1; w->at < w->argc && rc == 0; w->at++)
        rc = parse_send_word(w, step);
    return rc;
}

/* --- tcp-check send ---------------------------------------------------------------------- */

int check_parse_tcp_send(struct check_words *w, struct check_step *step, const char *verb)
{
    struct check_send *send = &step->u.send;
    const char *data = check_next_word(w);
    int rc = 0;

    if (!data)
        return SP_EINVAL;
    send->hex = strncmp(verb, "send-binary", 11) == 0;
    if (strcmp(verb, "send") == 0) {
        send->data = str_of(data);
    } else if (strcmp(verb, "send-binary") == 0) {
        rc = check_hex(w, data, &send->data);
    } else if (strcmp(verb, "send-lf") == 0 || strcmp(verb, "send-binary-lf") == 0) {
        send->fmt = check_fmt(w, data);
        rc = send->fmt ? 0 : SP_EINVAL;
    } else {
        return check_fail(
            w, "'%s' is unknown; expected send, send-lf, send-binary or send-binary-lf", verb);
    }
    for (w->at++; w->at < w->argc && rc == 0; w->at++) {
        if (strcmp(w->argv[w->at], "comment") != 0)
            return check_fail(w, "'%s' is unknown; expected comment", w->argv[w->at]);
        step->comment = check_next_word(w);
        rc = step->comment ? 0 : SP_EINVAL;
    }
    return rc;
}
