/*
 * What the files of this folder share while a configuration is read: the
 * keyword rows, the state of the parser and its helpers. Not for other folders.
 */
#ifndef SP_CONFIG_PARSER_H
#define SP_CONFIG_PARSER_H

#include "config/config.h"
#include "config/lexer.h"
#include "config/preprocess.h"

#include "base/map.h"
#include "base/status.h"

/* Where a keyword may stand. Options of a line are places like sections. */
enum {
    CFG_SEC_GLOBAL = 1 << 0,
    CFG_SEC_DEFAULTS = 1 << 1,
    CFG_SEC_FRONTEND = 1 << 2,
    CFG_SEC_LISTEN = 1 << 3,
    CFG_SEC_BACKEND = 1 << 4,
    CFG_SEC_HTTP_ERRORS = 1 << 5,
    CFG_OPT_BIND = 1 << 6,
    CFG_OPT_SERVER = 1 << 7,
    CFG_OPT_DEFAULT_SERVER = 1 << 8,
    CFG_OPT_SSL_BIND = 1 << 9,    /* words of ssl-default-bind-options */
    CFG_OPT_SSL_SERVER = 1 << 10, /* words of ssl-default-server-options */
    CFG_OPT_STATS_SOCKET = 1 << 11,
    CFG_SEC_TOP = 1 << 12, /* the section keywords themselves */

    CFG_FRONT = CFG_SEC_FRONTEND | CFG_SEC_LISTEN,
    CFG_BACK = CFG_SEC_BACKEND | CFG_SEC_LISTEN,
    CFG_DFRONT = CFG_FRONT | CFG_SEC_DEFAULTS,
    CFG_DBACK = CFG_BACK | CFG_SEC_DEFAULTS,
    CFG_PROXY = CFG_FRONT | CFG_BACK,
    CFG_DPROXY = CFG_PROXY | CFG_SEC_DEFAULTS,
    CFG_SECTIONS = CFG_DPROXY | CFG_SEC_GLOBAL | CFG_SEC_HTTP_ERRORS,
    CFG_SERVERS = CFG_OPT_SERVER | CFG_OPT_DEFAULT_SERVER,
};

enum cfg_kw_kind {
    CFG_KW_PARSE,  /* parse() does it */
    CFG_KW_FLAG,   /* bool */
    CFG_KW_UNFLAG, /* bool, cleared: "no-backup" */
    CFG_KW_INT,    /* int from min to max */
    CFG_KW_SIZE,   /* int, with k, m or g */
    CFG_KW_TIME,   /* int64_t microseconds; a bare number counts `unit` (milliseconds when 0) */
    CFG_KW_TIME_S, /* int64_t seconds; a bare number counts seconds */
    CFG_KW_STRING, /* const char * */
    CFG_KW_SET,    /* int set to `min`: one of several words for one field */
    CFG_KW_ON_OFF, /* bool from "on" or "off" */
    CFG_KW_LINE,   /* the words are kept as a cfg_line of kind `line` */
    CFG_KW_ANY,    /* any words, nothing is kept */
    CFG_KW_REFUSED /* known to HAProxy, not supported */
};

enum {
    CFG_KW_CAN_NEGATE = 1,     /* "no" and "default" may precede it */
    CFG_KW_NAMED_DEFAULTS = 2, /* in defaults only when they have a name */
    CFG_KW_IN_SSL = 4,         /* `at` counts from the line's struct cfg_ssl */
    CFG_KW_QUIET =
        8, /* takes no effect, and that is what was asked for or makes no difference: no warning */
};

/* For keywords that are accepted and not kept. */
#define CFG_NOWHERE ((size_t)-1)

struct cfg_parser;

struct cfg_kw {
    const char *name; /* one to three words */
    unsigned sections;
    enum cfg_kw_kind kind;
    unsigned flags;
    size_t
        at; /* of the field in struct cfg_global, cfg_proxy, cfg_bind or cfg_server, by the place */
    int64_t min, max;
    int64_t unit;
    enum cfg_line_kind line;
    int keep;     /* CFG_KW_LINE: how many words of the name are kept */
    int min_args; /* fewer are an error; the simple kinds know theirs */
    const char *args, *help;
    const char *note; /* why there is no effect, or what to use instead of a refused keyword */
    /*
     * `object` is what `at` counts from. Returns how many arguments were taken, or a negative
     * status after the problem was reported. What is left over is reported by the caller.
     */
    int (*parse)(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                 char **argv);
};

/* Ends a table of rows. */
#define CFG_KW_END   \
    {                \
        .name = NULL \
    }

enum cfg_modifier { CFG_MODIFIER_NONE, CFG_MODIFIER_NO, CFG_MODIFIER_DEFAULT };

/* What is needed beside the model while a proxy or a defaults section is read. */
struct cfg_scope {
    struct cfg_scope *next;
    struct cfg_proxy *proxy; /* for a defaults section not part of the model */
    struct cfg_server default_server;
    bool is_defaults, anonymous;
    bool used_by_name, used_silently; /* of a defaults section */
    unsigned
        used_by;     /* of a defaults section with rules: the kind of section that inherited them */
    bool own_checks; /* http-check and tcp-check lines are the proxy's own, not inherited */
    bool own_httpchk; /* so is "option httpchk" */
    struct cfg_line **lines_end;
    struct cfg_bind **binds_end;
    struct cfg_server **servers_end;
    struct cfg_log **logs_end;
    struct cfg_errorfile **errorfiles_end;
    struct cfg_errorfiles_ref **errorfiles_refs_end;
    struct cfg_stats_user **stats_users_end;
};

struct cfg_parser {
    struct cfg_model *model;
    const struct cfg_environment *env;
    struct diag *diag;
    struct cfg_lexer lexer;
    struct cfg_blocks blocks;

    struct cfg_loc loc;
    enum cfg_modifier modifier;
    unsigned section; /* 0: none yet */
    const char *section_kind, *section_name;
    bool skip; /* the rest of the section is not read */
    bool no_memory;
    bool too_many;     /* errors: nothing more is read */
    char context[160]; /* "server 'b/s'" while options of a line are read; otherwise empty */

    struct cfg_scope *scope; /* of the current proxy or defaults section */
    struct cfg_scope *scopes, **scopes_end;
    struct cfg_scope *last_defaults;
    struct cfg_scope pristine; /* what HAProxy's own defaults are */
    struct cfg_errors *errors; /* current http-errors section */

    struct cfg_kw_node *nodes;
    struct map keywords; /* name to struct cfg_kw_node */
    struct map proxies;  /* name to struct cfg_proxy */
    struct map defaults; /* name to struct cfg_scope */
    struct map error_sections;

    struct cfg_proxy **proxies_end;
    struct cfg_errors **errors_end;
    struct cfg_errorfile **error_files_end;
    struct cfg_log **global_logs_end;
    struct cfg_stats_socket **stats_sockets_end;
    struct cfg_cpu_map **cpu_maps_end;
    struct cfg_proc_var **vars_end;
};

/* --- messages and memory (report.c) --- */

/* Zeroed memory of the model's arena; NULL, and p->no_memory set, when there is none. */
void *cfg_new(struct cfg_parser *p, size_t bytes);
char *cfg_printf(struct cfg_parser *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* At the current line. cfg_fail returns SP_EINVAL. Control characters are made visible, long texts cut. */
int cfg_fail(struct cfg_parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cfg_warn(struct cfg_parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same with the keyword and the context in front: "server 'b/s': 'weight': …". */
int cfg_kw_fail(struct cfg_parser *p, const struct cfg_kw *kw, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void cfg_kw_warn(struct cfg_parser *p, const struct cfg_kw *kw, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void cfg_report(struct cfg_parser *p, enum diag_level level, struct cfg_loc loc, const char *format,
                ...) __attribute__((format(printf, 4, 5)));

/* --- keywords (keyword.c) --- */

struct cfg_kw_node {
    const struct cfg_kw *kw;
    struct cfg_kw_node *next; /* same name, other places */
};

/* All rows, one table after the other, in a stable order. NULL past the end. */
const struct cfg_kw *cfg_kw_at(unsigned index);

int cfg_keywords_init(struct cfg_parser *p);

/* The row of `name` for one of the places; *elsewhere gets a row for another place. NULL: none. */
const struct cfg_kw *cfg_kw_find(const struct cfg_parser *p, struct str name, unsigned places,
                                 const struct cfg_kw **elsewhere);

/* Names of the places in `sections`: "frontend, listen". Returns `out`. */
const char *cfg_places(char *out, size_t out_bytes, unsigned sections);

/* Carries out a row: checks arguments, parses or stores. How many arguments were taken, or negative. */
int cfg_kw_apply(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                 char **argv);

/* A whole line of the current section. */
void cfg_line_apply(struct cfg_parser *p, int argc, char **argv);

/* The options after a line's fixed words, from argv[0] on. SP_EINVAL after the first that is wrong. */
int cfg_options_apply(struct cfg_parser *p, unsigned place, void *object, struct cfg_ssl *ssl,
                      int argc, char **argv);

/* --- values (value.c): 0, or SP_EINVAL after the problem was reported --- */

int cfg_value_int(struct cfg_parser *p, const struct cfg_kw *kw, const char *word, int64_t min,
                  int64_t max, int64_t *out);
int cfg_value_time(struct cfg_parser *p, const struct cfg_kw *kw, const char *word, int64_t unit_us,
                   int64_t *out_us);
int cfg_value_size(struct cfg_parser *p, const struct cfg_kw *kw, const char *word, int64_t max,
                   int64_t *out);
int cfg_value_addr(struct cfg_parser *p, const struct cfg_kw *kw, const char *word, unsigned flags,
                   struct addr_spec *out);
/* Index in `words` (n of them). */
int cfg_value_word(struct cfg_parser *p, const struct cfg_kw *kw, const char *word,
                   const char *const *words, int n, int *out);
int cfg_value_user(struct cfg_parser *p, const struct cfg_kw *kw, const char *word, int *out_uid);
int cfg_value_group(struct cfg_parser *p, const struct cfg_kw *kw, const char *word, int *out_gid);
int cfg_value_mode(struct cfg_parser *p, const struct cfg_kw *kw, const char *word, int *out);

/* --- sections (section.c) --- */

/* A section keyword's row, or NULL. */
extern const struct cfg_kw cfg_kw_sections[];
void cfg_section_start(struct cfg_parser *p, const struct cfg_kw *kw, int argc, char **argv);
void cfg_pristine_init(struct cfg_parser *p);
/* Appends to the current proxy or defaults section. */
struct cfg_line *cfg_line_append(struct cfg_parser *p, enum cfg_line_kind kind, int argc,
                                 char **argv);

/* --- pieces that several tables use --- */

int cfg_parse_log_line(struct cfg_parser *p, const struct cfg_kw *kw, struct cfg_log ***end,
                       int argc, char **argv);
int cfg_parse_source(struct cfg_parser *p, const struct cfg_kw *kw, int argc, char **argv,
                     const char **text, struct addr_spec *out);
void cfg_server_init(struct cfg_server *s);
void cfg_bind_init(struct cfg_bind *b);
void cfg_ssl_init(struct cfg_ssl *ssl);
/* Fills what `ssl` leaves open from `defaults`. */
void cfg_ssl_inherit(struct cfg_ssl *ssl, const struct cfg_ssl *defaults);

/* --- after the last line (check.c) --- */

void cfg_check(struct cfg_parser *p);

extern const struct cfg_kw cfg_kw_global[], cfg_kw_global_ssl[], cfg_kw_tune[], cfg_kw_proxy[],
    cfg_kw_timeout[], cfg_kw_option[], cfg_kw_balance[], cfg_kw_log[], cfg_kw_rules[],
    cfg_kw_stats[], cfg_kw_error[], cfg_kw_bind[], cfg_kw_ssl[], cfg_kw_server[], cfg_kw_refused[];

/* The proxy says itself what its checks do: the lines of the defaults section go. */
void cfg_own_checks(struct cfg_parser *p);

#endif
