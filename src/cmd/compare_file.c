/*
 * The compare file: lines to sections and keywords.
 */
#include "cmd/compare_file.h"

#include "cmd/compare_words.h"

#include <sallyport/status.h>

#include <signal.h>
#include <stdio.h>

enum section {
    SECTION_NONE = 0,
    SECTION_COMPARE = 1,
    SECTION_VARIANT = 2,
    SECTION_SERVICE = 4,
    SECTION_LOAD = 8,
    SECTION_SERVER = SECTION_VARIANT | SECTION_SERVICE,
};

struct parser {
    struct compare_plan *plan;
    struct arena *arena;
    struct diag *diag;
    struct str rest; /* of the file */
    struct cfg_loc loc;
    enum section section;
    bool ignoring;               /* a section whose name was refused: its lines are not errors of their own */
    struct compare_server *server;
    struct compare_load *load;
    struct compare_words words;  /* of the line, the keyword first */
    struct str raw;              /* the line behind its first word */
};

#define error(p, ...) diag_error((p)->diag, (p)->loc, __VA_ARGS__)

/* --- lines and words ------------------------------------------------------------------- */

static bool next_line(struct parser *p, struct str *line)
{
    size_t len;

    if (!p->rest.len)
        return false;
    len = str_chr(p->rest, '\n');
    *line = str_make(p->rest.ptr, len);
    p->rest = str_from(p->rest, len + 1);
    p->loc.line++;
    if (line->len && line->ptr[line->len - 1] == '\r')
        line->len--;
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/*
 * One word from `s`: blanks end it, quotes and backslashes protect. `out` has room for s.len + 1. Returns the bytes
 * taken, or SP_EINVAL for a quote that is not closed.
 */
static int take_word(struct str s, char *out)
{
    char quote = '\0';
    size_t i = 0, len = 0;

    for (; i < s.len && (quote || !is_blank(s.ptr[i])); i++) {
        char c = s.ptr[i];

        if (quote && c == quote)
            quote = '\0';
        else if (!quote && (c == '"' || c == '\''))
            quote = c;
        else if (c == '\\' && quote != '\'' && i + 1 < s.len)
            out[len++] = s.ptr[++i];
        else
            out[len++] = c;
    }
    out[len] = '\0';
    return quote ? SP_EINVAL : (int)i;
}

/* The words of a line, up to a '#' that begins one. 0, or SP_EINVAL after a message. */
static int split(struct parser *p, struct str line)
{
    char *mem = arena_alloc(p->arena, line.len * 2 + 2);

    p->words.count = 0;
    p->raw = STR_NULL;
    if (!mem)
        return SP_ENOMEM;
    while (line = str_trim(line), line.len && line.ptr[0] != '#') {
        int taken = take_word(line, mem);

        if (taken < 0) {
            error(p, "'%.*s': a quote is not closed", STR_FMT(line));
            return SP_EINVAL;
        }
        if (p->words.count == COMPARE_WORDS_MAX) {
            error(p, "expected at most %d words in a line", COMPARE_WORDS_MAX);
            return SP_EINVAL;
        }
        p->words.words[p->words.count++] = (struct compare_text){mem, p->loc};
        mem += strlen(mem) + 1;
        line = str_from(line, (size_t)taken);
        if (p->words.count == 1)
            p->raw = str_trim(line);
    }
    return 0;
}

static const char *word(const struct parser *p, size_t i)
{
    return p->words.words[i].text;
}

static struct compare_text raw_text(struct parser *p)
{
    return (struct compare_text){arena_str(p->arena, p->raw).ptr, p->loc};
}

static void add_words(struct parser *p, struct compare_words *to)
{
    for (size_t i = 1; i < p->words.count; i++) {
        if (to->count == COMPARE_WORDS_MAX) {
            error(p, "'%s': expected at most %d words", word(p, 0), COMPARE_WORDS_MAX);
            return;
        }
        to->words[to->count++] = p->words.words[i];
    }
}

/* --- values ------------------------------------------------------------------------------ */

static bool parse_count(struct parser *p, uint64_t min, uint64_t max, uint64_t *out)
{
    if (str_to_u64(str_of(word(p, 1)), out) == 0 && *out >= min && *out <= max)
        return true;
    error(p, "'%s': expected a number from %llu to %llu, got '%s'", word(p, 0), (unsigned long long)min,
          (unsigned long long)max, word(p, 1));
    return false;
}

static bool parse_time(struct parser *p, uint64_t *out)
{
    int64_t time_us;

    if (str_to_time_us(str_of(word(p, 1)), 1000000, &time_us) == 0 && time_us >= 0 && time_us <= 3600000000) {
        *out = (uint64_t)time_us;
        return true;
    }
    error(p, "'%s': expected a time of up to 1h, such as 500ms or 2s, got '%s'", word(p, 0), word(p, 1));
    return false;
}

static bool parse_cpu_range(struct str s, cpu_set_t *set)
{
    size_t dash = str_chr(s, '-');
    uint64_t low, high;

    if (str_to_u64(str_make(s.ptr, dash), &low) != 0)
        return false;
    high = low;
    if (dash < s.len && str_to_u64(str_from(s, dash + 1), &high) != 0)
        return false;
    if (high < low || high >= CPU_SETSIZE)
        return false;
    for (uint64_t cpu = low; cpu <= high; cpu++)
        CPU_SET((size_t)cpu, set);
    return true;
}

static void parse_cpus(struct parser *p, struct compare_cpus *out)
{
    struct str rest = str_of(word(p, 1));

    CPU_ZERO(&out->set);
    do {
        size_t comma = str_chr(rest, ',');

        if (!parse_cpu_range(str_make(rest.ptr, comma), &out->set)) {
            error(p, "'%s': expected CPU numbers such as 0 or 0-3,6, got '%s'", word(p, 0), word(p, 1));
            return;
        }
        rest = str_from(rest, comma + 1);
    } while (rest.len);
    out->text = word(p, 1);
}

/* --- keywords ------------------------------------------------------------------------------ */

static void kw_rounds(struct parser *p)
{
    uint64_t n;

    if (parse_count(p, 1, COMPARE_ROUNDS_MAX, &n))
        p->plan->rounds = (unsigned)n;
}

static void kw_warmup(struct parser *p)
{
    if (parse_time(p, &p->plan->warmup_us))
        p->plan->warmup = word(p, 1);
}

static void kw_timeout(struct parser *p)
{
    uint64_t time_us;

    if (!parse_time(p, &time_us))
        return;
    if (time_us < 1000000)
        error(p, "'timeout': expected at least 1s, got '%s'", word(p, 1));
    p->plan->timeout_us = time_us;
}

static void kw_seed(struct parser *p)
{
    p->plan->has_seed = parse_count(p, 0, UINT32_MAX, &p->plan->seed);
}

static void kw_base(struct parser *p)
{
    p->plan->base_name = p->words.words[1];
}

static void kw_client_cpus(struct parser *p)
{
    parse_cpus(p, &p->plan->client_cpus);
}

static void kw_prepare(struct parser *p)
{
    if (p->plan->prepare_count == COMPARE_ITEMS_MAX)
        error(p, "expected at most %d 'prepare'", COMPARE_ITEMS_MAX);
    else
        p->plan->prepare[p->plan->prepare_count++] = raw_text(p);
}

static void kw_start(struct parser *p)
{
    if (p->server->start.count)
        error(p, "'start': %s has one already", p->server->name);
    else
        add_words(p, &p->server->start);
}

static void kw_stop(struct parser *p)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"SIGTERM", SIGTERM}, {"SIGINT", SIGINT},   {"SIGQUIT", SIGQUIT}, {"SIGHUP", SIGHUP},
                   {"SIGKILL", SIGKILL}, {"SIGUSR1", SIGUSR1}, {"SIGUSR2", SIGUSR2}};

    p->server->stop_loc = p->loc;
    if (p->words.count == 2 && str_starts(str_of(word(p, 1)), STR("SIG"))) {
        for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
            if (strcmp(signals[i].name, word(p, 1)) == 0) {
                p->server->stop_signal = signals[i].number;
                return;
            }
        }
        error(p, "'stop': expected SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGKILL or a command, got '%s'",
              word(p, 1));
        return;
    }
    p->server->stop_command = raw_text(p).text;
}

static void kw_ready(struct parser *p)
{
    p->server->ready = p->words.words[1];
}

static void kw_url(struct parser *p)
{
    struct str url = str_of(word(p, 1));

    if (!str_starts(url, STR("http://")) && !str_starts(url, STR("https://")))
        error(p, "'url': expected http://HOST:PORT/… or https://…, got '%s'", word(p, 1));
    p->server->url = p->words.words[1];
}

static void kw_env(struct parser *p)
{
    for (size_t i = 1; i < p->words.count; i++) {
        if (str_chr(str_of(word(p, i)), '=') == 0 || !strchr(word(p, i), '='))
            error(p, "'env': expected NAME=VALUE, got '%s'", word(p, i));
    }
    add_words(p, &p->server->env);
}

static void kw_cpus(struct parser *p)
{
    parse_cpus(p, &p->server->cpus);
}

static void kw_needs(struct parser *p)
{
    add_words(p, &p->server->needs);
}

static void kw_restart(struct parser *p)
{
    if (strcmp(word(p, 1), "no") == 0 || strcmp(word(p, 1), "yes") == 0)
        p->server->keeps_running = strcmp(word(p, 1), "no") == 0;
    else
        error(p, "'restart': expected yes or no, got '%s'", word(p, 1));
}

static void kw_set(struct parser *p)
{
    struct compare_server *server = p->server;
    struct str name = str_of(word(p, 1));
    struct str value = str_trim(str_from(p->raw, name.len));

    if (!compare_is_name(name) || str_eq(name, STR("dir")) || str_eq(name, STR("port")) ||
        str_eq(name, STR("variant")) || str_starts(name, STR("port."))) {
        error(p, "'set': expected a name of letters, digits, '-', '_' and '.', other than dir, port and variant, got '%s'",
              word(p, 1));
    } else if (server->set_count == COMPARE_ITEMS_MAX) {
        error(p, "expected at most %d 'set'", COMPARE_ITEMS_MAX);
    } else {
        server->sets[server->set_count++] =
            (struct compare_set){word(p, 1), {arena_str(p->arena, value).ptr, p->loc}};
    }
}

static void kw_bench(struct parser *p)
{
    add_words(p, p->section == SECTION_LOAD ? &p->load->bench : &p->server->bench);
}

static void kw_path(struct parser *p)
{
    if (word(p, 1)[0] != '/')
        error(p, "'path': expected a path that begins with '/', got '%s'", word(p, 1));
    p->load->path = word(p, 1);
}

static const struct keyword {
    const char *name;
    unsigned sections;
    size_t min, max; /* words behind it */
    const char *expected;
    void (*run)(struct parser *p);
} keywords[] = {
    {"base", SECTION_COMPARE, 1, 1, "the name of a variant", kw_base},
    {"bench", SECTION_LOAD | SECTION_VARIANT, 1, COMPARE_WORDS_MAX, "options of sallyport bench", kw_bench},
    {"client-cpus", SECTION_COMPARE, 1, 1, "CPU numbers such as 0 or 0-3,6", kw_client_cpus},
    {"cpus", SECTION_SERVER, 1, 1, "CPU numbers such as 0 or 0-3,6", kw_cpus},
    {"env", SECTION_SERVER, 1, COMPARE_WORDS_MAX, "NAME=VALUE", kw_env},
    {"needs", SECTION_SERVER, 1, COMPARE_WORDS_MAX, "names of programs", kw_needs},
    {"path", SECTION_LOAD, 1, 1, "a path that begins with '/'", kw_path},
    {"prepare", SECTION_COMPARE, 1, COMPARE_WORDS_MAX, "a shell command", kw_prepare},
    {"ready", SECTION_SERVER, 1, 1, "ADDRESS:PORT", kw_ready},
    {"restart", SECTION_VARIANT, 1, 1, "yes or no", kw_restart},
    {"rounds", SECTION_COMPARE, 1, 1, "a number", kw_rounds},
    {"seed", SECTION_COMPARE, 1, 1, "a number", kw_seed},
    {"set", SECTION_SERVER, 1, COMPARE_WORDS_MAX, "a name and a text", kw_set},
    {"start", SECTION_SERVER, 1, COMPARE_WORDS_MAX, "a command", kw_start},
    {"stop", SECTION_SERVER, 1, COMPARE_WORDS_MAX, "a signal or a command", kw_stop},
    {"timeout", SECTION_COMPARE, 1, 1, "a time such as 2m", kw_timeout},
    {"url", SECTION_VARIANT, 1, 1, "http://HOST:PORT/… or https://…", kw_url},
    {"warmup", SECTION_COMPARE, 1, 1, "a time such as 1s", kw_warmup},
};

static const char *const section_names[] = {"compare", "file", "variant", "service", "load"};

/* --- sections ------------------------------------------------------------------------------ */

static bool check_new_name(struct parser *p, bool taken)
{
    if (p->words.count != 2 || !compare_is_name(str_of(word(p, 1))))
        error(p, "'%s': expected one name of letters, digits, '-', '_' and '.'", word(p, 0));
    else if (taken)
        error(p, "'%s %s': there is one of that name already", word(p, 0), word(p, 1));
    else
        return true;
    p->ignoring = true;
    return false;
}

static struct compare_server *begin_server(struct parser *p, struct compare_server *table, size_t *count)
{
    struct compare_server *server = &table[*count];

    if (!check_new_name(p, p->words.count == 2 && compare_find(p->plan, str_of(word(p, 1)))))
        return NULL;
    if (*count == COMPARE_SERVERS_MAX) {
        error(p, "expected at most %d sections '%s'", COMPARE_SERVERS_MAX, word(p, 0));
        p->ignoring = true;
        return NULL;
    }
    *server = (struct compare_server){.name = word(p, 1), .loc = p->loc, .stop_signal = SIGTERM, .stop_loc = p->loc,
                                      .is_service = p->section == SECTION_SERVICE};
    ++*count;
    return server;
}

static void begin_load(struct parser *p)
{
    struct compare_plan *plan = p->plan;
    bool taken = false;

    for (size_t i = 0; i < plan->load_count && p->words.count == 2; i++)
        taken |= strcmp(plan->loads[i].name, word(p, 1)) == 0;
    if (!check_new_name(p, taken))
        return;
    if (plan->load_count == COMPARE_LOADS_MAX) {
        error(p, "expected at most %d sections 'load'", COMPARE_LOADS_MAX);
        p->ignoring = true;
        return;
    }
    p->load = &plan->loads[plan->load_count++];
    *p->load = (struct compare_load){.name = word(p, 1), .loc = p->loc};
}

/* Everything up to a line that says "end" and nothing else. */
static void read_file(struct parser *p)
{
    struct cfg_loc begin = p->loc;
    const char *start = p->rest.ptr, *name = p->words.count == 2 ? word(p, 1) : "";
    struct str line;
    bool taken = false;

    for (size_t i = 0; i < p->plan->file_count; i++)
        taken |= strcmp(p->plan->files[i].name, name) == 0;
    if (check_new_name(p, taken) && name[0] == '.')
        error(p, "'file': expected a name that does not begin with '.', got '%s'", name);
    p->ignoring = true; /* what follows "end" belongs to no section */
    while (next_line(p, &line)) {
        if (!str_eq(str_trim(line), STR("end")))
            continue;
        if (p->plan->file_count == COMPARE_ITEMS_MAX) {
            error(p, "expected at most %d sections 'file'", COMPARE_ITEMS_MAX);
            return;
        }
        p->plan->files[p->plan->file_count++] = (struct compare_file){
            name, {arena_str(p->arena, str_make(start, (size_t)(line.ptr - start))).ptr,
                   {begin.file, begin.line + 1}}};
        p->section = SECTION_NONE;
        p->ignoring = false;
        return;
    }
    diag_error(p->diag, begin, "'file %s': expected a line 'end' after its text", name);
}

/* False when the line begins no section. */
static bool begin_section(struct parser *p)
{
    const char *name = word(p, 0);

    if (strcmp(name, "compare") == 0) {
        p->section = SECTION_COMPARE;
        p->ignoring = false;
        if (p->plan->title)
            error(p, "'compare': there is one already");
        if (p->words.count != 2)
            error(p, "'compare': expected a title, in quotes if it has blanks");
        p->plan->title = p->words.count == 2 ? word(p, 1) : "";
        p->plan->loc = p->loc;
    } else if (strcmp(name, "file") == 0) {
        read_file(p);
    } else if (strcmp(name, "variant") == 0) {
        p->section = SECTION_VARIANT;
        p->ignoring = false;
        p->server = begin_server(p, p->plan->variants, &p->plan->variant_count);
    } else if (strcmp(name, "service") == 0) {
        p->section = SECTION_SERVICE;
        p->ignoring = false;
        p->server = begin_server(p, p->plan->services, &p->plan->service_count);
    } else if (strcmp(name, "load") == 0) {
        p->section = SECTION_LOAD;
        p->ignoring = false;
        begin_load(p);
    } else {
        return false;
    }
    return true;
}

static void unknown_keyword(struct parser *p)
{
    const char *names[sizeof(keywords) / sizeof(keywords[0]) + sizeof(section_names) / sizeof(section_names[0])];
    size_t n = 0;
    char hint[80];

    for (size_t i = 0; i < sizeof(section_names) / sizeof(section_names[0]); i++)
        names[n++] = section_names[i];
    for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++) {
        if (keywords[i].sections & p->section)
            names[n++] = keywords[i].name;
    }
    diag_suggest(hint, sizeof(hint), word(p, 0), names, n);
    if (p->section == SECTION_NONE)
        error(p, "'%s': expected a section: compare, file, variant, service or load%s", word(p, 0), hint);
    else
        error(p, "'%s': no keyword of this section%s", word(p, 0), hint);
}

static void run_line(struct parser *p)
{
    if (begin_section(p) || p->ignoring)
        return;
    for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++) {
        const struct keyword *kw = &keywords[i];

        if (!(kw->sections & p->section) || strcmp(kw->name, word(p, 0)) != 0)
            continue;
        if (p->words.count < kw->min + 1)
            error(p, "'%s': expected %s", kw->name, kw->expected);
        else if (p->words.count > kw->max + 1)
            error(p, "'%s': expected %s, got '%s' behind it", kw->name, kw->expected, word(p, kw->max + 1));
        else
            kw->run(p);
        return;
    }
    unknown_keyword(p);
}

/* --- the whole ------------------------------------------------------------------------------ */

static void check_words(struct parser *p, const struct compare_words *words)
{
    for (size_t i = 0; i < words->count; i++)
        compare_check_names(p->plan, &words->words[i], false, p->diag);
}

static void check_server(struct parser *p, const struct compare_server *server)
{
    struct compare_text stop = {server->stop_command, server->stop_loc};

    if (!server->start.count)
        diag_error(p->diag, server->loc, "'%s': expected 'start COMMAND' in it", server->name);
    if (!server->is_service && !server->url.text)
        diag_error(p->diag, server->loc, "'%s': expected 'url URL' in it", server->name);
    check_words(p, &server->start);
    check_words(p, &server->env);
    check_words(p, &server->bench);
    if (server->ready.text)
        compare_check_names(p->plan, &server->ready, false, p->diag);
    if (server->url.text)
        compare_check_names(p->plan, &server->url, false, p->diag);
    if (stop.text)
        compare_check_names(p->plan, &stop, false, p->diag);
    for (size_t i = 0; i < server->set_count; i++)
        compare_check_names(p->plan, &server->sets[i].value, true, p->diag);
}

static void check_base(struct parser *p)
{
    struct compare_plan *plan = p->plan;
    const char *names[COMPARE_SERVERS_MAX];
    char hint[80];

    if (!plan->base_name.text)
        return;
    for (size_t i = 0; i < plan->variant_count; i++) {
        names[i] = plan->variants[i].name;
        if (strcmp(names[i], plan->base_name.text) == 0) {
            plan->base = (unsigned)i;
            return;
        }
    }
    diag_suggest(hint, sizeof(hint), plan->base_name.text, names, plan->variant_count);
    diag_error(p->diag, plan->base_name.loc, "'base': no variant has the name '%s'%s", plan->base_name.text, hint);
}

static void check_plan(struct parser *p)
{
    struct compare_plan *plan = p->plan;
    struct cfg_loc end = {p->loc.file, p->loc.line ? p->loc.line : 1};

    if (!plan->title)
        diag_error(p->diag, end, "expected a section 'compare \"TITLE\"'");
    if (!plan->variant_count)
        diag_error(p->diag, end, "expected a section 'variant NAME'");
    if (!plan->load_count)
        diag_error(p->diag, end, "expected a section 'load NAME'");
    check_base(p);
    for (size_t i = 0; i < plan->variant_count; i++)
        check_server(p, &plan->variants[i]);
    for (size_t i = 0; i < plan->service_count; i++)
        check_server(p, &plan->services[i]);
    for (size_t i = 0; i < plan->load_count; i++) {
        struct compare_text path = {plan->loads[i].path, plan->loads[i].loc};

        check_words(p, &plan->loads[i].bench);
        if (path.text)
            compare_check_names(plan, &path, false, p->diag);
    }
    for (size_t i = 0; i < plan->prepare_count; i++)
        compare_check_names(plan, &plan->prepare[i], false, p->diag);
    for (size_t i = 0; i < plan->file_count; i++)
        compare_check_names(plan, &plan->files[i].content, false, p->diag);
}

int compare_file_parse(struct compare_plan *plan, struct arena *arena, const char *path, struct str text,
                       struct diag *diag)
{
    struct parser p = {.plan = plan, .arena = arena, .diag = diag, .rest = text, .loc = {path, 0}};
    struct str line;

    *plan = (struct compare_plan){.arena = arena, .path = path, .text = text, .rounds = 5, .warmup = "1s",
                                  .warmup_us = 1000000, .timeout_us = 120000000};
    if (memchr(text.ptr, '\0', text.len)) {
        diag_error(diag, p.loc, "expected text, but there is a byte 0 in it");
        return SP_EINVAL;
    }
    while (next_line(&p, &line)) {
        int status = split(&p, line);

        if (status == SP_ENOMEM)
            return status;
        if (status == 0 && p.words.count)
            run_line(&p);
    }
    check_plan(&p);
    return diag->errors ? SP_EINVAL : 0;
}
