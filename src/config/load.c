#include "config/load.h"
#include "config/parser.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX ((size_t)1 << 30)
#define MODEL_CHUNK_BYTES 65536

static void global_init(struct cfg_global *g)
{
    *g = (struct cfg_global){
        .maxconn = CFG_UNSET,
        .nbthread = CFG_UNSET,
        .uid = CFG_UNSET,
        .gid = CFG_UNSET,
        .unix_bind_mode = CFG_UNSET,
        .unix_bind_uid = CFG_UNSET,
        .unix_bind_gid = CFG_UNSET,
        .stats_timeout_us = 10000000,
        .ssl_server_verify = CFG_VERIFY_REQUIRED,
        .ssl_cache_entries = 20000,
        .ssl_lifetime_s = 300,
        .crypto_queue_max = 1024,
        .bufsize = 16384,
        .maxrewrite = 1024,
        .maxhdr = 101,
        .http_logurilen = 1024,
        .http_cookielen = 63,
        .hard_stop_after_us = CFG_UNSET,
        .close_spread_us = CFG_UNSET,
        .strict_limits = true,
        .idle_pool_shared = 1,
        .pool_low_fd_ratio = 20,
        .idle_timer_us = 1000000,
    };
    cfg_ssl_init(&g->ssl_bind_defaults);
    cfg_ssl_init(&g->ssl_server_defaults);
}

static int parser_init(struct cfg_parser *p, const struct cfg_environment *env, struct diag *diag,
                       size_t limit_bytes)
{
    struct cfg_model *model = calloc(1, sizeof(*model));

    *p = (struct cfg_parser){.model = model, .env = env, .diag = diag};
    cfg_lexer_init(&p->lexer);
    cfg_blocks_init(&p->blocks);
    map_init(&p->proxies);
    map_init(&p->defaults);
    map_init(&p->error_sections);
    if (!model)
        return SP_ENOMEM;
    arena_init(&model->arena, MODEL_CHUNK_BYTES, limit_bytes);
    global_init(&model->global);
    p->proxies_end = &model->proxies;
    p->errors_end = &model->errors;
    p->global_logs_end = &model->global.logs;
    p->stats_sockets_end = &model->global.stats_sockets;
    p->cpu_maps_end = &model->global.cpu_maps;
    p->vars_end = &model->global.vars;
    p->scopes_end = &p->scopes;
    if (cfg_keywords_init(p) != 0)
        return SP_ENOMEM;
    cfg_pristine_init(p);
    return p->no_memory ? SP_ENOMEM : 0;
}

static struct cfg_model *parser_finish(struct cfg_parser *p)
{
    struct cfg_model *model = p->model;

    if (!p->no_memory && !p->too_many)
        cfg_check(p);
    cfg_lexer_release(&p->lexer);
    map_release(&p->keywords);
    map_release(&p->proxies);
    map_release(&p->defaults);
    map_release(&p->error_sections);
    free(p->nodes);
    if (p->no_memory) {
        cfg_free(model);
        return NULL;
    }
    return model;
}

/* --- lines --- */

static void report_lexer(struct cfg_parser *p, struct str line)
{
    struct str near = str_from(line, p->lexer.position ? p->lexer.position - 1 : 0);

    if (near.len > 20)
        near.len = 20;
    if (near.len)
        cfg_fail(p, "%s at position %zu: '%.*s'", p->lexer.error, p->lexer.position, STR_FMT(near));
    else
        cfg_fail(p, "%s at position %zu", p->lexer.error, p->lexer.position);
}

static void handle_directive(struct cfg_parser *p, enum cfg_directive directive, const char *word)
{
    struct cfg_condition_error error;
    char *condition = cfg_lexer_join(&p->lexer, &p->model->arena, 1);

    if (!condition) {
        p->no_memory = true;
        return;
    }
    if (cfg_blocks_directive(&p->blocks, p->env, directive, condition, p->loc, &error) == 0)
        return;
    if (error.position)
        cfg_fail(p, "'%s': %s, at position %zu of '%s'", word, error.text, error.position,
                 condition);
    else
        cfg_fail(p, "'%s': %s", word, error.text);
}

/* ".notice TEXT" and its like. */
static void handle_message(struct cfg_parser *p, int argc, char **argv)
{
    static const char *const words[] = {".notice", ".warning", ".alert", ".diag",
                                        ".if",     ".elif",    ".else",  ".endif"};
    char hint[64];
    int which = 0;

    while (which < 4 && strcmp(argv[0], words[which]) != 0)
        which++;
    if (which == 4)
        cfg_fail(p,
                 "unknown directive '%s'; expected .if, .elif, .else, .endif, .notice, .warning, "
                 ".alert or .diag%s",
                 argv[0], diag_suggest(hint, sizeof(hint), argv[0], words, 8));
    else if (argc != 2)
        cfg_fail(p, "'%s': %s; expected one message, in quotes when it contains spaces", argv[0],
                 argc < 2 ? "missing message" : "too many arguments");
    else if (which < 3)
        cfg_report(p,
                   which == 0   ? DIAG_NOTICE
                   : which == 1 ? DIAG_WARNING
                                : DIAG_ERROR,
                   p->loc, "'%s'", argv[1]);
}

static void handle_words(struct cfg_parser *p, int argc, char **argv)
{
    const struct cfg_kw *kw, *elsewhere = NULL;

    p->modifier = CFG_MODIFIER_NONE;
    p->context[0] = '\0';
    if (strcmp(argv[0], "no") == 0)
        p->modifier = CFG_MODIFIER_NO;
    else if (strcmp(argv[0], "default") == 0)
        p->modifier = CFG_MODIFIER_DEFAULT;
    if (p->modifier != CFG_MODIFIER_NONE) {
        if (argc == 1) {
            cfg_fail(p, "'%s': missing keyword; expected an option or another switch", argv[0]);
            return;
        }
        argv++;
        argc--;
    }
    kw = cfg_kw_find(p, str_of(argv[0]), CFG_SEC_TOP, &elsewhere);
    if (kw)
        cfg_section_start(p, kw, argc - 1, argv + 1);
    else if (p->skip)
        return;
    else if (!p->section)
        cfg_fail(p,
                 "keyword '%s' stands outside of any section; expected 'global', 'defaults', "
                 "'frontend', 'listen' or 'backend' before it",
                 argv[0]);
    else
        cfg_line_apply(p, argc, argv);
}

static void read_line(struct cfg_parser *p, struct str line)
{
    enum cfg_directive directive;
    char **argv;
    int status, argc;

    p->lexer.file = p->loc.file;
    p->lexer.line = p->loc.line;
    p->lexer.section = p->section_name;
    status = cfg_lexer_split(&p->lexer, line, true);
    if (status == SP_EINVAL)
        report_lexer(p, line);
    else if (status != 0)
        p->no_memory = true;
    argc = p->lexer.word_count;
    if (status != 0 || argc == 0)
        return;
    directive = cfg_directive_of(p->lexer.text);
    if (directive == CFG_DIRECTIVE_NONE && !cfg_blocks_active(&p->blocks))
        return;
    argv = cfg_lexer_words(&p->lexer, &p->model->arena);
    if (!argv) {
        p->no_memory = true;
        return;
    }
    if (directive != CFG_DIRECTIVE_NONE)
        handle_directive(p, directive, argv[0]);
    else if (argv[0][0] == '.')
        handle_message(p, argc, argv);
    else if (p->lexer.empty_word >= 0 && !p->skip)
        cfg_fail(p,
                 "word %d of the line is empty and would end its arguments; when it comes from a "
                 "variable that may be unset, write \"${NAME[*]}\"",
                 p->lexer.empty_word + 1);
    else
        handle_words(p, argc, argv);
    if (p->lexer.trailing_backslash && !p->skip)
        cfg_warn(p,
                 "the backslash at the end of the line belongs to its last word; it does not join "
                 "the next line");
}

static void read_text(struct cfg_parser *p, const char *name, struct str text)
{
    bool stop = false;

    if (str_starts(text, STR("\xef\xbb\xbf")))
        text = str_from(text, 3);
    p->loc = (struct cfg_loc){.file = name};
    p->section = 0;
    p->section_kind = p->section_name = "";
    p->skip = false;
    cfg_blocks_init(&p->blocks);
    while (text.len && !stop && !p->no_memory && !p->too_many) {
        size_t len = str_chr(text, '\n');
        struct str line = str_make(text.ptr, len);
        size_t nul = str_chr(line, '\0');

        p->loc.line++;
        if (nul < len) {
            cfg_fail(p, "stray NUL byte at position %zu; the rest of the file is not read",
                     nul + 1);
            stop = true;
        } else {
            read_line(p, line);
            if (len == text.len)
                cfg_fail(p,
                         "missing line feed at the end of the last line, the file might be "
                         "truncated at position %zu",
                         len + 1);
        }
        text = str_from(text, len + 1);
    }
    for (int i = 0; i < p->blocks.depth && !stop; i++)
        cfg_report(p, DIAG_ERROR, p->blocks.stack[i].loc, "'.if' without a matching '.endif'");
}

/* --- files --- */

static void file_error(struct cfg_parser *p, const char *path, const char *what)
{
    cfg_report(p, DIAG_ERROR, (struct cfg_loc){.file = path}, "cannot %s: %s", what,
               strerror(errno));
}

/* Reads a whole file; false after the error was reported. */
static bool slurp(struct cfg_parser *p, const char *path, char **out, size_t *out_len)
{
    FILE *file = fopen(path, "re");
    size_t room = 65536, len = 0;
    char *text = NULL;
    bool good = false;

    if (!file) {
        file_error(p, path, "open the file");
        return false;
    }
    for (;;) {
        char *larger = realloc(text, room);
        size_t got;

        if (!larger) {
            p->no_memory = true;
            break;
        }
        text = larger;
        got = fread(text + len, 1, room - len, file);
        len += got;
        if (ferror(file)) {
            file_error(p, path, "read the file");
            break;
        }
        if (got == 0) {
            good = true;
            break;
        }
        if (len > FILE_BYTES_MAX) {
            errno = EFBIG;
            file_error(p, path, "read the file");
            break;
        }
        room += len == room ? room : 0;
    }
    fclose(file);
    if (!good) {
        free(text);
        return false;
    }
    *out = text;
    *out_len = len;
    return true;
}

static void read_file(struct cfg_parser *p, const char *path)
{
    /* Messages outlive the model: file names live with them. */
    char *name = arena_cstr(p->diag->arena, path);
    char *text = NULL;
    size_t len = 0;

    if (!name) {
        p->no_memory = true;
        return;
    }
    if (!slurp(p, name, &text, &len))
        return;
    read_text(p, name, str_make(text, len));
    free(text);
}

static int is_config_name(const struct dirent *entry)
{
    struct str name = str_of(entry->d_name);

    return name.len > 4 && name.ptr[0] != '.' && str_ends(name, STR(".cfg"));
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void read_folder(struct cfg_parser *p, const char *path)
{
    struct dirent **entries = NULL;
    int n = scandir(path, &entries, is_config_name, compare_names);

    if (n < 0) {
        file_error(p, arena_cstr(p->diag->arena, path), "read the folder");
        return;
    }
    for (int i = 0; i < n; i++) {
        char full[PATH_MAX];
        struct stat st;

        if (snprintf(full, sizeof(full), "%s/%s", path, entries[i]->d_name) < (int)sizeof(full) &&
            stat(full, &st) == 0 && S_ISREG(st.st_mode) && !p->no_memory)
            read_file(p, full);
        free(entries[i]);
    }
    free(entries);
}

/* Variables that HAProxy defines for its configuration. */
static void set_variables(struct cfg_parser *p, const char *const *paths, int path_count)
{
    struct arena scratch;
    const char *files = "";
    char branch[16], host[256] = "";
    size_t len, dots = 0;

    arena_init(&scratch, 0, 0);
    for (int i = 0; i < path_count && files; i++)
        files = arena_printf(&scratch, "%s%s%s", files, i ? ";" : "", paths[i]);
    if (files)
        setenv("HAPROXY_CFGFILES", files, 1);
    arena_release(&scratch);
    if (gethostname(host, sizeof(host) - 1) == 0)
        setenv("HAPROXY_LOCALPEER", host, 0);
    if (p->env->compatible_version) {
        setenv("HAPROXY_STARTUP_VERSION", p->env->compatible_version, 0);
        snprintf(branch, sizeof(branch), "%s", p->env->compatible_version);
        len = strspn(branch, "0123456789.");
        for (size_t i = 0; i < len; i++) {
            if (branch[i] == '.' && ++dots == 2)
                len = i;
        }
        branch[len < sizeof(branch) ? len : sizeof(branch) - 1] = '\0';
        setenv("HAPROXY_BRANCH", branch, 1);
    }
}

struct cfg_model *cfg_load(const char *const *paths, int path_count,
                           const struct cfg_environment *env, struct diag *diag)
{
    struct cfg_parser p;

    if (parser_init(&p, env, diag, 0) != 0) {
        p.no_memory = true;
        return parser_finish(&p);
    }
    if (!env->sealed)
        set_variables(&p, paths, path_count);
    for (int i = 0; i < path_count && !p.no_memory; i++) {
        struct stat st;

        if (stat(paths[i], &st) == 0 && S_ISDIR(st.st_mode))
            read_folder(&p, paths[i]);
        else
            read_file(&p, paths[i]);
    }
    return parser_finish(&p);
}

struct cfg_model *cfg_load_text_limited(const char *name, struct str text,
                                        const struct cfg_environment *env, struct diag *diag,
                                        size_t limit_bytes)
{
    struct cfg_parser p;

    if (parser_init(&p, env, diag, limit_bytes) != 0)
        p.no_memory = true;
    else
        read_text(&p, name, text);
    return parser_finish(&p);
}

struct cfg_model *cfg_load_text(const char *name, struct str text,
                                const struct cfg_environment *env, struct diag *diag)
{
    return cfg_load_text_limited(name, text, env, diag, 0);
}

void cfg_free(struct cfg_model *model)
{
    if (!model)
        return;
    arena_release(&model->arena);
    free(model);
}

int cfg_eval_condition(const char *expression, const struct cfg_environment *env, struct diag *diag)
{
    static const struct cfg_loc nowhere;
    struct cfg_condition_error error;
    struct cfg_lexer lexer;
    char *text;
    int value;

    cfg_lexer_init(&lexer);
    value = cfg_lexer_split(&lexer, str_of(expression), false);
    if (value == SP_EINVAL)
        diag_error(diag, nowhere, "%s at position %zu of '%s'", lexer.error, lexer.position,
                   expression);
    if (value != 0)
        goto out;
    text = cfg_lexer_join(&lexer, diag->arena, 0);
    value = SP_ENOMEM;
    if (!text)
        goto out;
    value = cfg_condition_eval(env, text, &error);
    if (value < 0)
        diag_error(diag, nowhere, "%s, at position %zu of '%s'", error.text, error.position, text);
out:
    cfg_lexer_release(&lexer);
    return value;
}
