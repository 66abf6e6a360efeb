#include "config/parser.h"

/* Whatever is said about the page turns it on, as in HAProxy. */
static struct cfg_stats *stats_of(void *object)
{
    struct cfg_stats *stats = &((struct cfg_proxy *)object)->stats;

    stats->enabled = true;
    return stats;
}

static int parse_enable(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                        char **argv)
{
    stats_of(object);
    return 0;
}

static int parse_uri(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                     char **argv)
{
    stats_of(object)->uri = argv[0];
    return 1;
}

static int parse_realm(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                       char **argv)
{
    stats_of(object)->realm = argv[0];
    return 1;
}

static int parse_auth(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                      char **argv)
{
    struct cfg_stats_user *user = cfg_new(p, sizeof(*user));
    size_t colon = str_chr(str_of(argv[0]), ':');

    if (!user)
        return 1;
    user->user = cfg_printf(p, "%.*s", (int)colon, argv[0]);
    user->password = argv[0][colon] ? argv[0] + colon + 1 : "";
    stats_of(object);
    *p->scope->stats_users_end = user;
    p->scope->stats_users_end = &user->next;
    return 1;
}

static int parse_refresh(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                         char **argv)
{
    int64_t time = 0;

    if (cfg_value_time(p, kw, argv[0], 1000000, &time) != 0)
        return SP_EINVAL;
    stats_of(object)->refresh_s = (time + 999999) / 1000000;
    return 1;
}

static int parse_show(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                      char **argv)
{
    struct cfg_stats *stats = stats_of(object);
    const char *text = argc ? argv[0] : NULL;

    switch (kw->min) {
    case 'v':
        stats->hide_version = true;
        return 0;
    case 'V':
        stats->hide_version = false;
        return 0;
    case 'l':
        stats->show_legends = true;
        return 0;
    case 'n':
        stats->show_node = true;
        stats->node = text;
        return text ? 1 : 0;
    default:
        break;
    }
    for (int i = 1; i < argc && text; i++)
        text = cfg_printf(p, "%s %s", text, argv[i]);
    stats->show_desc = text ? text : "";
    return argc;
}

#define STATS(word, function, least, which, arguments, text)                            \
    {                                                                                   \
        .name = "stats " word, .sections = CFG_DPROXY, .min = which, .min_args = least, \
        .args = arguments, .help = text, .parse = function                              \
    }

const struct cfg_kw cfg_kw_stats[] = {
    STATS("auth", parse_auth, 1, 0, "<user>:<password>",
          "who may see the statistics page; may be repeated"),
    STATS("enable", parse_enable, 0, 0, NULL, "the statistics page"),
    STATS("hide-version", parse_show, 0, 'v', NULL, "the page does not tell the version"),
    STATS("realm", parse_realm, 1, 0, "<text>",
          "what a browser shows when it asks for the password"),
    STATS("refresh", parse_refresh, 1, 0, "<time>",
          "how often the page reloads itself; bare numbers are seconds"),
    STATS("show-desc", parse_show, 0, 'd', "[<text>]",
          "a text on the page, by default the global description"),
    STATS("show-legends", parse_show, 0, 'l', NULL, "more details on the page"),
    STATS("show-node", parse_show, 0, 'n', "[<name>]", "the node's name on the page"),
    STATS("show-version", parse_show, 0, 'V', NULL, "the page tells the version"),
    STATS("uri", parse_uri, 1, 0, "<prefix>", "the path of the page, by default /haproxy?stats"),
    CFG_KW_END,
};
