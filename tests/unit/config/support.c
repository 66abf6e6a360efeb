#include "support.h"

#include <stdio.h>

static const char *const features[] = {"OPENSSL", "PCRE2", "ZLIB", "THREAD", NULL};
static const char *const enabled[] = {"EPOLL", "SPLICE", NULL};

const struct cfg_environment test_environment = {
    .program_version = "0.1.0",
    .compatible_version = "3.2.1",
    .ssl_library_text = "OpenSSL 3.0.15 3 Sep 2024",
    .ssl_library_name = "OpenSSL",
    .features = features,
    .enabled_options = enabled,
    .sealed = true,
};

void load_bytes(struct loaded *l, const char *text, size_t len, const struct cfg_environment *env)
{
    arena_init(&l->arena, 0, 0);
    diag_init(&l->diag, &l->arena);
    l->model = cfg_load_text("t.cfg", str_make(text, len), env, &l->diag);
    assert_non_null(l->model);
}

void load(struct loaded *l, const char *text)
{
    load_bytes(l, text, strlen(text), &test_environment);
}

void load_files(struct loaded *l, const char *const *paths, int count)
{
    struct cfg_environment env = test_environment;

    env.sealed = false;
    arena_init(&l->arena, 0, 0);
    diag_init(&l->diag, &l->arena);
    l->model = cfg_load(paths, count, &env, &l->diag);
    assert_non_null(l->model);
}

void unload(struct loaded *l)
{
    cfg_free(l->model);
    arena_release(&l->arena);
}

const char *report(struct loaded *l)
{
    static const char *const levels[] = {"notice", "warning", "error"};
    char *text = arena_cstr(&l->arena, "");

    for (const struct diag_item *item = l->diag.first; item && text; item = item->next)
        text = arena_printf(&l->arena, "%s%s:%d: %s: %s\n", text,
                            item->loc.file ? item->loc.file : "-", item->loc.line,
                            levels[item->level], item->text);
    assert_non_null(text);
    return text;
}

void assert_report(const char *text, const char *expected)
{
    struct loaded l;

    load(&l, text);
    assert_string_equal(report(&l), expected);
    unload(&l);
}

struct cfg_proxy *find_proxy(const struct loaded *l, const char *name)
{
    for (struct cfg_proxy *px = l->model->proxies; px; px = px->next) {
        if (strcmp(px->name, name) == 0)
            return px;
    }
    fail_msg("there is no section '%s'", name);
    return NULL;
}

struct cfg_server *find_server(const struct loaded *l, const char *proxy, const char *name)
{
    for (struct cfg_server *s = find_proxy(l, proxy)->servers; s; s = s->next) {
        if (strcmp(s->name, name) == 0)
            return s;
    }
    fail_msg("there is no server '%s/%s'", proxy, name);
    return NULL;
}

const char *line_text(struct loaded *l, const struct cfg_line *line)
{
    char *text = arena_cstr(&l->arena, "");

    for (int i = 0; i < line->argc && text; i++)
        text = arena_printf(&l->arena, "%s%s%s", text, i ? " " : "", line->argv[i]);
    assert_non_null(text);
    assert_null(line->argv[line->argc]);
    return text;
}
