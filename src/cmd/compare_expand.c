/*
 * {dir}, {port}, {port.NAME}, {variant} and what `set` gave, in the words and texts of a compare file.
 */
#include "cmd/compare_words.h"

#include <stdio.h>

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

bool compare_is_name(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!is_name_char(s.ptr[i]))
            return false;
    }
    return s.len > 0 && s.len <= 64;
}

/*
 * The next {name} in `text`: what stands before it, and its name. Braces around anything else are text: nginx and
 * HAProxy use them. False when there is none; `before` is then the rest.
 */
static bool next_name(struct str text, struct str *before, struct str *name, struct str *after)
{
    for (size_t i = 0; i < text.len; i++) {
        size_t end = i + 1;

        if (text.ptr[i] != '{')
            continue;
        while (end < text.len && is_name_char(text.ptr[end]))
            end++;
        if (end == i + 1 || end == text.len || text.ptr[end] != '}')
            continue;
        *before = str_make(text.ptr, i);
        *name = str_make(text.ptr + i + 1, end - i - 1);
        *after = str_from(text, end + 1);
        return true;
    }
    *before = text;
    return false;
}

static const char *set_value(const struct compare_server *server, struct str name)
{
    for (size_t i = 0; server && i < server->set_count; i++) {
        if (str_eq(str_of(server->sets[i].name), name))
            return server->sets[i].value.text;
    }
    return NULL;
}

const struct compare_server *compare_find(const struct compare_plan *plan, struct str name)
{
    for (size_t i = 0; i < plan->variant_count; i++) {
        if (str_eq(str_of(plan->variants[i].name), name))
            return &plan->variants[i];
    }
    for (size_t i = 0; i < plan->service_count; i++) {
        if (str_eq(str_of(plan->services[i].name), name))
            return &plan->services[i];
    }
    return NULL;
}

/* A text that is being put together in the arena: doubled when full. */
struct builder {
    struct arena *arena;
    char *mem;
    size_t len, size;
};

static bool append(struct builder *b, struct str s)
{
    if (b->len + s.len + 1 > b->size) {
        size_t size = (b->len + s.len + 1) * 2;
        char *mem = size <= 4 * COMPARE_FILE_BYTES_MAX ? arena_alloc(b->arena, size) : NULL;

        if (!mem)
            return false;
        if (b->len)
            memcpy(mem, b->mem, b->len);
        b->mem = mem;
        b->size = size;
    }
    if (s.len)
        memcpy(b->mem + b->len, s.ptr, s.len);
    b->len += s.len;
    b->mem[b->len] = '\0';
    return true;
}

static const char *value_of(const struct compare_plan *plan, const struct compare_server *server, const char *dir,
                            struct str name, char number[8])
{
    const struct compare_server *other;
    uint16_t port = 0;

    if (str_eq(name, STR("dir")))
        return dir;
    if (str_eq(name, STR("variant")))
        return server ? server->name : "";
    if (str_eq(name, STR("port"))) {
        port = server ? server->port : 0;
    } else if (str_starts(name, STR("port."))) {
        other = compare_find(plan, str_from(name, 5));
        port = other ? other->port : 0;
    } else {
        return set_value(server, name);
    }
    snprintf(number, 8, "%u", port);
    return number;
}

/* A value of `set` may use the names that are always there, but no other `set`: nothing can then go round in circles. */
static bool expand(struct builder *b, const struct compare_plan *plan, const struct compare_server *server,
                   const char *dir, const char *text, bool is_value)
{
    struct str rest = str_of(text), before, name;
    char number[8];

    while (next_name(rest, &before, &name, &rest)) {
        const char *value;

        /* "{{name}" is "{name}": one brace of the two is dropped, the name stays. */
        if (before.len && before.ptr[before.len - 1] == '{') {
            if (!append(b, before) || !append(b, name) || !append(b, STR("}")))
                return false;
            continue;
        }
        if (!append(b, before))
            return false;
        value = value_of(plan, server, dir, name, number);
        if (!value)
            continue;
        if (!is_value && set_value(server, name) == value) {
            if (!expand(b, plan, server, dir, value, true))
                return false;
        } else if (!append(b, str_of(value))) {
            return false;
        }
    }
    return append(b, before);
}

const char *compare_expand(const struct compare_plan *plan, struct arena *arena, const struct compare_server *server,
                           const char *dir, const char *text)
{
    struct builder b = {.arena = arena};

    return expand(&b, plan, server, dir, text, false) ? b.mem : NULL;
}

static bool is_set_somewhere(const struct compare_plan *plan, struct str name)
{
    for (size_t i = 0; i < plan->variant_count; i++) {
        if (set_value(&plan->variants[i], name))
            return true;
    }
    for (size_t i = 0; i < plan->service_count; i++) {
        if (set_value(&plan->services[i], name))
            return true;
    }
    return false;
}

void compare_check_names(const struct compare_plan *plan, const struct compare_text *text, bool is_value,
                         struct diag *diag)
{
    struct str rest = str_of(text->text), before, name;
    struct cfg_loc loc = text->loc;

    while (next_name(rest, &before, &name, &rest)) {
        for (size_t i = 0; i < before.len; i++)
            loc.line += before.ptr[i] == '\n';
        if (before.len && before.ptr[before.len - 1] == '{')
            continue;
        if (str_eq(name, STR("dir")) || str_eq(name, STR("port")) || str_eq(name, STR("variant")))
            continue;
        if (str_starts(name, STR("port."))) {
            if (!compare_find(plan, str_from(name, 5)))
                diag_error(diag, loc, "'{%.*s}': no variant or service has that name", STR_FMT(name));
            continue;
        }
        if (!is_value && is_set_somewhere(plan, name))
            continue;
        diag_error(diag, loc,
                   "'{%.*s}': expected {dir}, {port}, {port.NAME}, {variant}%s; write '{{%.*s}' for the text itself",
                   STR_FMT(name), is_value ? "" : " or a name that some 'set' gives", STR_FMT(name));
    }
}
