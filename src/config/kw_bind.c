#include "config/parser.h"

#include <limits.h>
#include <stdio.h>

static int parse_proto(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                       char **argv)
{
    static const char *const words[] = {"h1", "h2", "none"};
    int index;

    if (cfg_value_word(p, kw, argv[0], words, 3, &index) != 0)
        return SP_EINVAL;
    ((struct cfg_bind *)object)->proto = words[index];
    return 1;
}

static int parse_owner(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                       char **argv)
{
    int *field = (int *)((char *)object + kw->at);
    int status;

    switch (kw->min) {
    case 'u':
        status = cfg_value_user(p, kw, argv[0], field);
        break;
    case 'g':
        status = cfg_value_group(p, kw, argv[0], field);
        break;
    default:
        status = cfg_value_mode(p, kw, argv[0], field);
        break;
    }
    return status == 0 ? 1 : status;
}

/* "[GROUP/]SET[,…]": SET is all, odd, even, a number or a range. There is one thread group. */
static int parse_thread(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                        char **argv)
{
    struct cfg_bind *bind = object;
    struct str rest = str_of(argv[0]);
    unsigned mask = 0;

    while (rest.len) {
        size_t comma = str_chr(rest, ',');
        struct str set = str_make(rest.ptr, comma);
        size_t slash = str_chr(set, '/'), dash;
        uint64_t low, high;

        set = slash < set.len ? str_from(set, slash + 1) : set;
        dash = str_chr(set, '-');
        rest = str_from(rest, comma + 1);
        if (str_eq(set, STR("all"))) {
            mask = UINT_MAX;
        } else if (str_eq(set, STR("odd"))) {
            mask |= 0x55555555u;
        } else if (str_eq(set, STR("even"))) {
            mask |= 0xaaaaaaaau;
        } else if (str_to_u64(str_make(set.ptr, dash), &low) == 0 && low >= 1 && low <= 32 &&
                   (dash == set.len || (str_to_u64(str_from(set, dash + 1), &high) == 0 &&
                                        high >= low && high <= 32))) {
            for (uint64_t i = low; i <= (dash == set.len ? low : high); i++)
                mask |= 1u << (i - 1);
        } else {
            return cfg_kw_fail(p, kw,
                               "'%s' is not a set of threads; expected 'all', 'odd', 'even', or "
                               "numbers and ranges from 1 to 32",
                               argv[0]);
        }
    }
    bind->thread_mask = mask == UINT_MAX ? 0 : mask;
    return 1;
}

/* --- the line --- */

/* One bind an address of the comma-separated list, all with the same options. */
static int add_binds(struct cfg_parser *p, const struct cfg_kw *kw, const char *list,
                     const struct cfg_bind *options)
{
    struct str rest = str_of(list);

    while (rest.len) {
        size_t comma = str_chr(rest, ',');
        struct cfg_bind *bind = cfg_new(p, sizeof(*bind));
        const char *text;

        if (!bind)
            return SP_ENOMEM;
        text = cfg_printf(p, "%.*s", (int)comma, rest.ptr);
        if (!text)
            return SP_ENOMEM;
        rest = str_from(rest, comma + 1);
        *bind = *options;
        bind->text = text;
        bind->loc = p->loc;
        bind->address.fd = -1;
        /* Kept even when it is wrong: that the section has no 'bind' would be a second, false complaint. */
        *p->scope->binds_end = bind;
        p->scope->binds_end = &bind->next;
        if (cfg_value_addr(p, kw, text, ADDR_PORT_RANGE | ADDR_PORT_REQUIRED | ADDR_RESOLVE,
                           &bind->address) != 0)
            return SP_EINVAL;
        if (bind->address.datagram)
            return cfg_kw_fail(p, kw, "'%s' is a datagram address; expected a stream one", text);
    }
    return 0;
}

static int parse_bind(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                      char **argv)
{
    struct cfg_bind options;
    int status;

    cfg_bind_init(&options);
    snprintf(p->context, sizeof(p->context), "bind '%s'", argv[0]);
    status = cfg_options_apply(p, CFG_OPT_BIND, &options, &options.ssl, argc - 1, argv + 1);
    p->context[0] = '\0';
    /* The address is looked at even after a bad option: both are told. */
    if (add_binds(p, kw, argv[0], &options) != 0)
        status = SP_EINVAL;
    return status == 0 ? argc : status;
}

/* --- stats socket: the same kind of line, for commands --- */

static int parse_level(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                       char **argv)
{
    static const char *const words[] = {"user", "operator", "admin"};
    int index;

    if (cfg_value_word(p, kw, argv[0], words, 3, &index) != 0)
        return SP_EINVAL;
    ((struct cfg_stats_socket *)object)->level = words[index];
    return 1;
}

static int parse_expose_fd(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                           char **argv)
{
    static const char *const words[] = {"listeners"};
    int index;

    if (cfg_value_word(p, kw, argv[0], words, 1, &index) != 0)
        return SP_EINVAL;
    ((struct cfg_stats_socket *)object)->expose_fd_listeners = true;
    return 1;
}

static int parse_stats_socket(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                              char **argv)
{
    struct cfg_stats_socket *socket = cfg_new(p, sizeof(*socket));
    int status;

    if (!socket)
        return argc;
    *socket = (struct cfg_stats_socket){.loc = p->loc,
                                        .text = argv[0],
                                        .unix_mode = CFG_UNSET,
                                        .unix_uid = CFG_UNSET,
                                        .unix_gid = CFG_UNSET,
                                        .level = "operator"};
    if (cfg_value_addr(p, kw, argv[0], ADDR_PORT_REQUIRED | ADDR_RESOLVE, &socket->address) != 0)
        return SP_EINVAL;
    snprintf(p->context, sizeof(p->context), "stats socket '%s'", argv[0]);
    status = cfg_options_apply(p, CFG_OPT_STATS_SOCKET, socket, NULL, argc - 1, argv + 1);
    p->context[0] = '\0';
    if (status != 0)
        return status;
    *p->stats_sockets_end = socket;
    p->stats_sockets_end = &socket->next;
    return argc;
}

#define B(field) offsetof(struct cfg_bind, field)
#define U(field) offsetof(struct cfg_stats_socket, field)
#define FLAG(word, field, text)                                                                   \
    {                                                                                             \
        .name = word, .sections = CFG_OPT_BIND, .kind = CFG_KW_FLAG, .at = B(field), .help = text \
    }
#define NUMBER(word, field, low, high, arguments, text)                                         \
    {                                                                                           \
        .name = word, .sections = CFG_OPT_BIND, .kind = CFG_KW_INT, .at = B(field), .min = low, \
        .max = high, .args = arguments, .help = text                                            \
    }
#define TEXT(word, field, arguments, text)                                             \
    {                                                                                  \
        .name = word, .sections = CFG_OPT_BIND, .kind = CFG_KW_STRING, .at = B(field), \
        .args = arguments, .help = text                                                \
    }
#define OWNER(word, place, field, which, arguments, text)                          \
    {                                                                              \
        .name = word, .sections = place, .at = field, .min = which, .min_args = 1, \
        .args = arguments, .help = text, .parse = parse_owner                      \
    }
#define ID(word, place, field, arguments, text)                                           \
    {                                                                                     \
        .name = word, .sections = place, .kind = CFG_KW_INT, .at = field, .max = INT_MAX, \
        .args = arguments, .help = text                                                   \
    }
#define UNUSED(word, places, kind_, extra, arguments, why)                                  \
    {                                                                                       \
        .name = word, .sections = places, .kind = kind_, .flags = extra, .at = CFG_NOWHERE, \
        .max = INT_MAX, .args = arguments, .help = why, .note = why                         \
    }

const struct cfg_kw cfg_kw_bind[] = {
    {.name = "bind",
     .sections = CFG_FRONT,
     .min_args = 1,
     .args = "[<address>]:<port>[-<port>][,...] [options] | <path> [options]",
     .help = "where clients connect",
     .parse = parse_bind},
    {.name = "stats socket",
     .sections = CFG_SEC_GLOBAL,
     .min_args = 1,
     .args = "<path>|<address>:<port> [options]",
     .help = "where commands are taken",
     .parse = parse_stats_socket},
    FLAG("accept-proxy", accept_proxy, "connections begin with a PROXY header, version 1 or 2"),
    NUMBER("backlog", backlog, 0, INT_MAX, "<conns>",
           "connections that the system may hold before they are accepted"),
    FLAG("defer-accept", defer_accept, "a connection is accepted when it has sent something"),
    ID("gid", CFG_OPT_STATS_SOCKET, U(unix_gid), "<number>", "group of a Unix socket"),
    OWNER("group", CFG_OPT_BIND, B(unix_gid), 'g', "<group>", "group of a Unix socket"),
    OWNER("group", CFG_OPT_STATS_SOCKET, U(unix_gid), 'g', "<group>", "group of a Unix socket"),
    ID("gid", CFG_OPT_BIND, B(unix_gid), "<number>", "group of a Unix socket"),
    NUMBER("id", id, 1, INT_MAX, "<number>", "a fixed number for statistics"),
    TEXT("interface", interface, "<name>", "accepts on this network interface alone"),
    NUMBER("maxconn", maxconn, 0, INT_MAX, "<conns>", "connections at a time on this line"),
    OWNER("mode", CFG_OPT_BIND, B(unix_mode), 'm', "<octal>", "access rights of a Unix socket"),
    OWNER("mode", CFG_OPT_STATS_SOCKET, U(unix_mode), 'm', "<octal>",
          "access rights of a Unix socket"),
    NUMBER("mss", mss, -65535, 65535, "<bytes>", "the largest TCP segment"),
    TEXT("name", name, "<name>", "a name for statistics"),
    NUMBER("nice", nice, -1024, 1024, "<number>", "how eagerly its connections are served"),
    {.name = "proto",
     .sections = CFG_OPT_BIND,
     .min_args = 1,
     .args = "h1|h2|none",
     .help = "the protocol, without negotiation",
     .parse = parse_proto},
    {.name = "tcp-ut",
     .sections = CFG_OPT_BIND,
     .kind = CFG_KW_TIME,
     .at = B(tcp_user_timeout_us),
     .args = "<time>",
     .help = "how long sent data may stay unacknowledged"},
    FLAG("tfo", tfo, "TCP fast open"),
    {.name = "thread",
     .sections = CFG_OPT_BIND,
     .min_args = 1,
     .args = "[<group>/]<set>[,...]",
     .help = "the workers that accept",
     .parse = parse_thread},
    FLAG("transparent", transparent, "accepts for addresses that are not this machine's"),
    ID("uid", CFG_OPT_BIND, B(unix_uid), "<number>", "owner of a Unix socket"),
    ID("uid", CFG_OPT_STATS_SOCKET, U(unix_uid), "<number>", "owner of a Unix socket"),
    OWNER("user", CFG_OPT_BIND, B(unix_uid), 'u', "<user>", "owner of a Unix socket"),
    OWNER("user", CFG_OPT_STATS_SOCKET, U(unix_uid), 'u', "<user>", "owner of a Unix socket"),
    FLAG("v4v6", v4v6, "an IPv6 address accepts IPv4 too"),
    FLAG("v6only", v6only, "an IPv6 address accepts no IPv4"),
    {.name = "expose-fd",
     .sections = CFG_OPT_STATS_SOCKET,
     .min_args = 1,
     .args = "listeners",
     .help = "hands the listening sockets to a process that takes over",
     .parse = parse_expose_fd},
    {.name = "level",
     .sections = CFG_OPT_STATS_SOCKET,
     .min_args = 1,
     .args = "user|operator|admin",
     .help = "which commands are allowed",
     .parse = parse_level},
    UNUSED("guid-prefix", CFG_OPT_BIND, CFG_KW_STRING, 0, "<text>",
           "objects are known by their names"),
    UNUSED("idle-ping", CFG_OPT_BIND | CFG_SERVERS, CFG_KW_TIME, 0, "<time>",
           "idle HTTP/2 connections are not probed"),
    UNUSED("label", CFG_OPT_BIND, CFG_KW_STRING, 0, "<text>", "objects are known by their names"),
    UNUSED("severity-output", CFG_OPT_BIND | CFG_OPT_STATS_SOCKET, CFG_KW_STRING, CFG_KW_QUIET,
           "none|number|string", "answers carry no severity"),
    UNUSED("shards", CFG_OPT_BIND, CFG_KW_STRING, CFG_KW_QUIET, "<number>|by-thread|by-group",
           "every worker has its own listening socket"),
    UNUSED("thread", CFG_OPT_STATS_SOCKET, CFG_KW_STRING, CFG_KW_QUIET, "<set>",
           "commands do not run on the workers' threads"),
    UNUSED("process", CFG_OPT_STATS_SOCKET, CFG_KW_STRING, CFG_KW_QUIET, "<set>",
           "there is one process"),
    CFG_KW_END,
};
