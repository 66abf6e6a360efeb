#include "config/parser.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static const unsigned statuses[] = {
    200, 400, 401, 403, 404, 405, 407, 408, 410, 413, 414,
    421, 422, 425, 429, 431, 500, 501, 502, 503, 504,
};

static int parse_status(struct cfg_parser *p, const struct cfg_kw *kw, const char *word,
                        unsigned *out)
{
    uint64_t value = 0;

    if (str_to_u64(str_of(word), &value) == 0) {
        for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
            if (statuses[i] == value) {
                *out = statuses[i];
                return 0;
            }
        }
    }
    return cfg_kw_fail(
        p, kw,
        "'%s' is not a status code that can be replaced; expected 200, 400, 401, 403, "
        "404, 405, 407, 408, 410, 413, 414, 421, 422, 425, 429, 431, 500, 501, 502, 503 or "
        "504",
        word);
}

/* --- the file --- */

static int read_content(struct cfg_parser *p, const struct cfg_kw *kw, const char *path,
                        struct str *out)
{
    size_t limit = (size_t)p->model->global.bufsize, len = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC), status = SP_EINVAL;
    char *text = malloc(limit + 1);

    if (fd < 0) {
        cfg_kw_fail(p, kw, "cannot open '%s': %s", path, strerror(errno));
        goto out;
    }
    while (text && len <= limit) {
        ssize_t got = read(fd, text + len, limit + 1 - len);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            cfg_kw_fail(p, kw, "cannot read '%s': %s", path, strerror(errno));
            goto out;
        }
        if (got == 0)
            break;
        len += (size_t)got;
    }
    if (len > limit) {
        cfg_kw_fail(p, kw, "'%s' is larger than %zu bytes (tune.bufsize)", path, limit);
        goto out;
    }
    *out = arena_str(&p->model->arena, str_make(text ? text : "", len));
    if (!text || !out->ptr)
        p->no_memory = true;
    else
        status = 0;
out:
    free(text);
    if (fd >= 0)
        close(fd);
    return status;
}

/* The next line without its end; false when there is no line feed any more. */
static bool next_line(struct str *text, struct str *line)
{
    size_t len = str_chr(*text, '\n');

    if (len == text->len)
        return false;
    *line = str_make(text->ptr, len);
    if (len && line->ptr[len - 1] == '\r')
        line->len--;
    *text = str_from(*text, len + 1);
    return true;
}

static bool is_status_line(struct str line)
{
    return str_starts(line, STR("HTTP/")) && line.len >= 12 && line.ptr[8] == ' ' &&
           line.ptr[9] >= '1' && line.ptr[9] <= '5' && line.ptr[10] >= '0' && line.ptr[10] <= '9' &&
           line.ptr[11] >= '0' && line.ptr[11] <= '9' && (line.len == 12 || line.ptr[12] == ' ');
}

/* An empty file is allowed: the connection is then closed without an answer. */
static const char *check_content(struct str text)
{
    struct str line;

    if (text.len == 0)
        return NULL;
    if (!next_line(&text, &line) || !is_status_line(line))
        return "it does not begin with a status line like 'HTTP/1.0 503 Service Unavailable'";
    while (next_line(&text, &line)) {
        size_t colon = str_chr(line, ':');

        if (line.len == 0)
            return NULL;
        if (colon == 0 || colon == line.len || str_chr(line, ' ') < colon ||
            str_chr(line, '\t') < colon)
            return "one of its header lines is not '<name>: <value>'";
    }
    return "there is no empty line after its headers";
}

/* --- lines --- */

static struct cfg_errorfile *append(struct cfg_parser *p, unsigned status)
{
    struct cfg_errorfile ***end =
        p->section == CFG_SEC_HTTP_ERRORS ? &p->error_files_end : &p->scope->errorfiles_end;
    struct cfg_errorfile *file = cfg_new(p, sizeof(*file));

    if (!file)
        return NULL;
    file->loc = p->loc;
    file->status = status;
    **end = file;
    *end = &file->next;
    return file;
}

static int parse_errorfile(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                           char **argv)
{
    struct cfg_errorfile *file;
    struct str content = STR("");
    const char *problem;
    unsigned status = 0;

    if (parse_status(p, kw, argv[0], &status) != 0)
        return SP_EINVAL;
    if (!p->env->sealed && read_content(p, kw, argv[1], &content) != 0)
        return SP_EINVAL;
    problem = check_content(content);
    if (problem)
        return cfg_kw_fail(p, kw, "'%s' is not an HTTP response: %s", argv[1], problem);
    file = append(p, status);
    if (file) {
        file->path = argv[1];
        file->content = content;
    }
    return 2;
}

static int parse_errorloc(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                          char **argv)
{
    struct cfg_errorfile *file;
    unsigned status = 0;

    if (parse_status(p, kw, argv[0], &status) != 0)
        return SP_EINVAL;
    file = append(p, status);
    if (file) {
        file->location = argv[1];
        file->location_status = (unsigned)kw->min;
    }
    return 2;
}

static int parse_errorfiles(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                            char **argv)
{
    struct cfg_errorfiles_ref *ref = cfg_new(p, sizeof(*ref));
    int room = (int)(sizeof(ref->statuses) / sizeof(ref->statuses[0]));

    if (!ref)
        return argc;
    ref->loc = p->loc;
    ref->section = argv[0];
    for (int i = 1; i < argc; i++) {
        if (ref->status_count == room)
            return cfg_kw_fail(p, kw, "too many status codes, at most %d are allowed", room);
        if (parse_status(p, kw, argv[i], &ref->statuses[ref->status_count]) != 0)
            return SP_EINVAL;
        ref->status_count++;
    }
    *p->scope->errorfiles_refs_end = ref;
    p->scope->errorfiles_refs_end = &ref->next;
    return argc;
}

#define ERRORLOC(word, status, text)                                                              \
    {                                                                                             \
        .name = word, .sections = CFG_DPROXY | CFG_SEC_HTTP_ERRORS, .min = status, .min_args = 2, \
        .args = "<status> <url>", .help = text, .parse = parse_errorloc                           \
    }

const struct cfg_kw cfg_kw_error[] = {
    {.name = "errorfile",
     .sections = CFG_DPROXY | CFG_SEC_HTTP_ERRORS,
     .min_args = 2,
     .args = "<status> <file>",
     .help = "a file that is sent instead of the built-in response",
     .parse = parse_errorfile},
    {.name = "errorfiles",
     .sections = CFG_DPROXY,
     .min_args = 1,
     .args = "<http-errors> [<status>...]",
     .help = "takes the files of an http-errors section",
     .parse = parse_errorfiles},
    ERRORLOC("errorloc", 302, "redirects instead of the built-in response, with 302"),
    ERRORLOC("errorloc302", 302, "redirects instead of the built-in response, with 302"),
    ERRORLOC("errorloc303", 303, "redirects instead of the built-in response, with 303"),
    CFG_KW_END,
};
