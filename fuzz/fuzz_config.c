/*
 * The configuration language: whatever the bytes, a model comes out, its lists
 * are whole, and nothing outside the input is read. Short inputs are evaluated
 * as a condition too. Nothing is opened, looked up or changed: the environment
 * is sealed.
 */
#include "config/load.h"
#include "fuzz_check.h"

/* A few bytes can ask for many servers; more than this is answered with no model. */
#define MODEL_BYTES ((size_t)32 << 20)

static bool is_defined(const char *name)
{
    return name[0] == 'D';
}

static const char *const features[] = {"OPENSSL", "THREAD", NULL};

static const struct cfg_environment environment = {
    .program_version = "0.1.0",
    .compatible_version = "3.2.1",
    .ssl_library_text = "OpenSSL 3.0.15",
    .ssl_library_name = "OpenSSL",
    .features = features,
    .enabled_options = features,
    .is_defined = is_defined,
    .sealed = true,
};

static size_t walk_lines(const struct cfg_line *line)
{
    size_t bytes = 0;

    for (; line; line = line->next) {
        CHECK(line->argc > 0);
        for (int i = 0; i < line->argc; i++)
            bytes += strlen(line->argv[i]);
        CHECK(line->argv[line->argc] == NULL);
        CHECK(line->loc.file && line->loc.line > 0);
    }
    return bytes;
}

static size_t walk_proxy(const struct cfg_proxy *px)
{
    size_t bytes = walk_lines(px->lines);
    int servers = 0;

    for (const struct cfg_bind *b = px->binds; b; b = b->next) {
        bytes += strlen(b->text);
        for (int i = 0; i < b->ssl.crt_count; i++)
            bytes += strlen(b->ssl.crts[i].path);
    }
    for (const struct cfg_server *s = px->servers; s; s = s->next) {
        bytes += strlen(s->name) + strlen(s->text);
        CHECK(s->weight >= 0 && s->weight <= 256);
        servers++;
    }
    CHECK(servers == px->server_count);
    for (const struct cfg_log *log = px->logs; log; log = log->next)
        bytes += strlen(log->text);
    for (int i = 0; i < px->compression.type_count; i++)
        bytes += strlen(px->compression.types[i]);
    for (const struct cfg_errorfile *f = px->errorfiles; f; f = f->next)
        CHECK(f->path || f->location);
    return bytes;
}

static void load(struct str text)
{
    struct cfg_model *model;
    struct arena arena;
    struct diag diag;
    size_t bytes = 0;
    int proxies = 0;

    arena_init(&arena, 0, 0);
    diag_init(&diag, &arena);
    model = cfg_load_text_limited("fuzz.cfg", text, &environment, &diag, MODEL_BYTES);
    for (const struct cfg_proxy *px = model ? model->proxies : NULL; px; px = px->next) {
        bytes += walk_proxy(px);
        proxies++;
    }
    CHECK(!model || proxies == model->proxy_count);
    for (const struct diag_item *item = diag.first; item; item = item->next) {
        CHECK(!strchr(item->text, '\n'));
        bytes += strlen(item->text);
    }
    /* Every byte was read: that is what the sanitizers watch. */
    CHECK(bytes < SIZE_MAX);
    cfg_free(model);
    arena_release(&arena);
}

static void evaluate(struct str text)
{
    char copy[512];
    struct arena arena;
    struct diag diag;
    int value;

    if (text.len >= sizeof(copy))
        return;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    arena_init(&arena, 0, 0);
    diag_init(&diag, &arena);
    value = cfg_eval_condition(copy, &environment, &diag);
    CHECK(value >= 0 ? diag.errors == 0 : diag.errors == 1);
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* In an allocation of its size, so that a read past it is seen. */
    char *copy = malloc(size ? size : 1);

    CHECK(copy);
    if (size)
        memcpy(copy, data, size);
    load(str_make(copy, size));
    evaluate(str_make(copy, size));
    free(copy);
    return 0;
}
