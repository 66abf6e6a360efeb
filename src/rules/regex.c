#define PCRE2_CODE_UNIT_WIDTH 8
#include "rules/regex.h"

#include "rules/registry.h"

#include <pcre2.h>

struct regex {
    struct regex *next;
    pcre2_code *code;
    pcre2_match_context *limits;
    bool jit;
};

/* Steps of the matcher for one subject; PCRE2's own default is ten million, far too long for a proxy. */
#define MATCH_LIMIT 200000
#define HEAP_LIMIT_KIB 4096

int regex_compile(struct rules_registry *registry, const char *pattern, bool ignore_case,
                  bool captures, struct regex **out, char *why, size_t why_bytes)
{
    uint32_t options = 0;
    int error;
    PCRE2_SIZE offset;
    struct regex *re = calloc(1, sizeof *re);

    if (!re)
        return SP_ENOMEM;
    if (ignore_case)
        options |= PCRE2_CASELESS;
    if (!captures)
        options |= PCRE2_NO_AUTO_CAPTURE;
    re->code =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options, &error, &offset, NULL);
    if (!re->code) {
        PCRE2_UCHAR text[128];

        pcre2_get_error_message(error, text, sizeof text);
        snprintf(why, why_bytes, "regex '%s' is invalid: %s at position %zu", pattern, (char *)text,
                 (size_t)offset);
        free(re);
        return SP_EINVAL;
    }
    re->jit = pcre2_jit_compile(re->code, PCRE2_JIT_COMPLETE) == 0;
    re->limits = pcre2_match_context_create(NULL);
    if (!re->limits) {
        regex_free(re);
        return SP_ENOMEM;
    }
    pcre2_set_match_limit(re->limits, MATCH_LIMIT);
    pcre2_set_heap_limit(re->limits, HEAP_LIMIT_KIB);
    if (registry) {
        re->next = registry->regexes;
        registry->regexes = re;
    }
    *out = re;
    return 0;
}

void regex_free(struct regex *re)
{
    if (!re)
        return;
    pcre2_match_context_free(re->limits);
    pcre2_code_free(re->code);
    free(re);
}

struct regex *regex_unlink(struct regex *first)
{
    struct regex *next = first->next;

    regex_free(first);
    return next;
}

/* Memory for one match: the stack first, the heap for what a non-JIT match may need beyond. */
struct scratch {
    _Alignas(16) char mem[1024];
    size_t used;
};

static void *scratch_alloc(PCRE2_SIZE bytes, void *data)
{
    struct scratch *s = data;
    size_t need = (bytes + 15) & ~(size_t)15;

    if (need <= sizeof s->mem - s->used) {
        void *out = s->mem + s->used;

        s->used += need;
        return out;
    }
    return malloc(bytes);
}

static void scratch_free(void *ptr, void *data)
{
    struct scratch *s = data;

    if ((char *)ptr < s->mem || (char *)ptr >= s->mem + sizeof s->mem)
        free(ptr);
}

static bool match(const struct regex *re, struct str subject, uint32_t options, uint32_t pairs,
                  struct regex_groups *out)
{
    struct scratch scratch;
    pcre2_general_context *general;
    pcre2_match_data *data;
    PCRE2_SPTR text = (PCRE2_SPTR)(subject.ptr ? subject.ptr : "");
    int n;

    scratch.used = 0;
    general = pcre2_general_context_create(scratch_alloc, scratch_free, &scratch);
    if (!general)
        return false;
    data = pcre2_match_data_create(pairs, general);
    if (!data) {
        pcre2_general_context_free(general);
        return false;
    }
    if (re->jit)
        n = pcre2_jit_match(re->code, text, subject.len, 0, options, data, re->limits);
    else
        n = pcre2_match(re->code, text, subject.len, 0, options, data, re->limits);
    if (n >= 0 && out) {
        const PCRE2_SIZE *v = pcre2_get_ovector_pointer(data);
        int set = n == 0 ? (int)pairs : n;

        for (int i = 0; i < REGEX_GROUPS; i++) {
            bool is_set = i < set && v[2 * i] != PCRE2_UNSET;

            out->start[i] = is_set ? v[2 * i] : REGEX_UNSET;
            out->end[i] = is_set ? v[2 * i + 1] : REGEX_UNSET;
        }
    }
    pcre2_match_data_free(data);
    pcre2_general_context_free(general);
    return n >= 0;
}

bool regex_test(const struct regex *re, struct str subject)
{
    return match(re, subject, 0, 1, NULL);
}

bool regex_match(const struct regex *re, struct str subject, bool not_start,
                 struct regex_groups *out)
{
    return match(re, subject, not_start ? PCRE2_NOTBOL : 0, REGEX_GROUPS, out);
}

static int hex_digit(char ch)
{
    if (ch >= '0' && ch <= '9')
        return ch - '0';
    ch |= 0x20;
    return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

int regex_expand(struct str replacement, struct str subject, const struct regex_groups *g,
                 struct buf *out)
{
    size_t i = 0;

    while (i < replacement.len) {
        size_t plain = str_chr(str_from(replacement, i), '\\');
        int status = buf_put(out, str_make(replacement.ptr + i, plain));
        char ch;

        if (status < 0)
            return status;
        i += plain;
        if (i == replacement.len)
            break;
        if (++i == replacement.len)
            return SP_EINVAL;
        ch = replacement.ptr[i++];
        if (ch >= '0' && ch <= '9') {
            int n = ch - '0';

            if (g->start[n] != REGEX_UNSET)
                status = buf_put(out, str_make(subject.ptr + g->start[n], g->end[n] - g->start[n]));
        } else if (ch == 'x' && i + 1 < replacement.len && hex_digit(replacement.ptr[i]) >= 0 &&
                   hex_digit(replacement.ptr[i + 1]) >= 0) {
            status = buf_put_char(out, (char)(hex_digit(replacement.ptr[i]) << 4 |
                                              hex_digit(replacement.ptr[i + 1])));
            i += 2;
        } else {
            status = buf_put_char(out, ch);
        }
        if (status < 0)
            return status;
    }
    return 0;
}
