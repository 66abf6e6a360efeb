#include "config/parser.h"

#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>

int cfg_value_int(struct cfg_parser *p, const struct cfg_kw *kw, const char *word, int64_t min,
                  int64_t max, int64_t *out)
{
    struct str text = str_of(word);
    int64_t value;

    if (text.len > 1 && text.ptr[0] == '+')
        text = str_from(text, 1);
    if (str_to_i64(text, &value) != 0)
        return cfg_kw_fail(
            p, kw, "'%s' is not a number; expected a whole number from %" PRId64 " to %" PRId64,
            word, min, max);
    if (value < min || value > max)
        return cfg_kw_fail(
            p, kw, "'%s' is out of range; expected a whole number from %" PRId64 " to %" PRId64,
            word, min, max);
    *out = value;
    return 0;
}

int cfg_value_time(struct cfg_parser *p, const struct cfg_kw *kw, const char *word, int64_t unit_us,
                   int64_t *out_us)
{
    int status = str_to_time_us(str_of(word), (uint64_t)unit_us, out_us);

    if (status == SP_ETOOBIG)
        return cfg_kw_fail(p, kw, "'%s' is too long a time; expected at most 100000d", word);
    if (status != 0)
        return cfg_kw_fail(p, kw,
                           "'%s' is not a time; expected a whole number, followed by us, "
                           "ms, s, m, h or d when it does not count %s",
                           word, unit_us == 1000000 ? "seconds" : "milliseconds");
    return 0;
}

int cfg_value_size(struct cfg_parser *p, const struct cfg_kw *kw, const char *word, int64_t max,
                   int64_t *out)
{
    uint64_t value;
    int status = str_to_size(str_of(word), &value);

    if (status == SP_EINVAL)
        return cfg_kw_fail(p, kw,
                           "'%s' is not a size; expected a whole number of bytes, or one "
                           "followed by k, m or g",
                           word);
    if (status != 0 || value > (uint64_t)max)
        return cfg_kw_fail(
            p, kw, "'%s' is out of range; expected a size of at most %" PRId64 " bytes", word, max);
    *out = (int64_t)value;
    return 0;
}

int cfg_value_addr(struct cfg_parser *p, const struct cfg_kw *kw, const char *word, unsigned flags,
                   struct addr_spec *out)
{
    const char *why = "";

    if (p->env->sealed)
        flags &= ~(unsigned)ADDR_RESOLVE;
    if (addr_parse(word, flags, out, &why) != 0)
        return cfg_kw_fail(p, kw, "invalid address '%s'; %s", word, why);
    return 0;
}

int cfg_value_word(struct cfg_parser *p, const struct cfg_kw *kw, const char *word,
                   const char *const *words, int n, int *out)
{
    char list[400] = "", hint[100];
    size_t len = 0;

    for (int i = 0; i < n; i++) {
        if (strcmp(word, words[i]) == 0) {
            *out = i;
            return 0;
        }
        if (len < sizeof(list))
            len += (size_t)snprintf(list + len, sizeof(list) - len, "%s'%s'",
                                    i == 0       ? ""
                                    : i == n - 1 ? " or "
                                                 : ", ",
                                    words[i]);
    }
    return cfg_kw_fail(p, kw, "unknown value '%s'; expected %s%s", word, list,
                       diag_suggest(hint, sizeof(hint), word, words, (size_t)n));
}

int cfg_value_user(struct cfg_parser *p, const struct cfg_kw *kw, const char *word, int *out_uid)
{
    struct passwd *entry;

    if (p->env->sealed)
        return 0;
    entry = getpwnam(word);
    if (!entry)
        return cfg_kw_fail(p, kw, "unknown user '%s'; expected the name of a user of this system",
                           word);
    *out_uid = (int)entry->pw_uid;
    return 0;
}

int cfg_value_group(struct cfg_parser *p, const struct cfg_kw *kw, const char *word, int *out_gid)
{
    struct group *entry;

    if (p->env->sealed)
        return 0;
    entry = getgrnam(word);
    if (!entry)
        return cfg_kw_fail(p, kw, "unknown group '%s'; expected the name of a group of this system",
                           word);
    *out_gid = (int)entry->gr_gid;
    return 0;
}

int cfg_value_mode(struct cfg_parser *p, const struct cfg_kw *kw, const char *word, int *out)
{
    int mode = 0;

    for (const char *c = word; *c; c++) {
        if (*c < '0' || *c > '7' || mode > 0777)
            return cfg_kw_fail(p, kw, "'%s' is not a file mode; expected an octal number like 660",
                               word);
        mode = mode * 8 + (*c - '0');
    }
    if (mode > 07777)
        return cfg_kw_fail(p, kw, "'%s' is not a file mode; expected an octal number like 660",
                           word);
    *out = mode;
    return 0;
}
