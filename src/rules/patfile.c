/*
 * Pattern lists that come from files, and their edits at run time.
 *
 * A list keeps its entries as text. Each way of using it (method, case, type
 * of a map's values) is a pat_set with an index of its own, built when the set
 * is made and again by every edit. An edit works in an arena of its own; the
 * indexes before it stay valid for readers until the registry is released.
 */
#include "rules/pattern.h"
#include "rules/registry.h"

#include <errno.h>

/* Memory of one generation of entries and indexes. */
struct generation {
    struct generation *older;
    struct arena arena;
};

struct rules_patterns {
    struct rules_patterns *next;
    const char *name;
    bool is_map;
    struct rules_registry *registry;
    struct pat_set *sets;
    _Atomic(struct pat_list *) list;
    struct generation *generations;
    char why[RULES_WHY_BYTES]; /* of the last edit that failed */
};

/* One generation's entries in order. */
struct pat_list {
    unsigned count;
    struct pat_source *entries;
    const void **ids; /* stable from one generation to the next */
};

/* --- reading files ------------------------------------------------------------------------ */

struct line_list {
    struct pat_source *v;
    unsigned count, room;
};

static int append(struct line_list *l, struct arena *arena, struct str key, struct str value)
{
    if (l->count == l->room) {
        unsigned room = l->room ? l->room * 2 : 64;
        struct pat_source *v = arena_alloc(arena, room * sizeof *v);

        if (!v)
            return SP_ENOMEM;
        if (l->count)
            memcpy(v, l->v, l->count * sizeof *v);
        l->v = v;
        l->room = room;
    }
    l->v[l->count].key = key;
    l->v[l->count].value = value;
    l->count++;
    return 0;
}

static bool is_blank(char ch)
{
    return ch == ' ' || ch == '\t';
}

/* A list has one pattern a line, blanks included; a map a key, blanks and a value. */
static int parse_line(struct rules_patterns *p, struct line_list *l, struct arena *arena,
                      struct str line)
{
    size_t n = 0;
    struct str value = STR_NULL;

    line.len = str_chr(line, '\r');
    if (line.len && line.ptr[0] == '#')
        return 0;
    while (line.len && is_blank(line.ptr[0]))
        line = str_from(line, 1);
    if (!line.len)
        return 0;
    if (p->is_map) {
        while (n < line.len && !is_blank(line.ptr[n]))
            n++;
        value = str_trim(str_from(line, n));
        line.len = n;
        value = arena_str(arena, value);
        if (!value.ptr)
            return SP_ENOMEM;
    }
    line = arena_str(arena, line);
    return line.ptr ? append(l, arena, line, value) : SP_ENOMEM;
}

static int read_file(struct rules_patterns *p, const char *path, struct line_list *l,
                     struct arena *arena)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    int status = 0;

    if (!file)
        return errno == ENOENT ? SP_ENOENT : SP_EIO;
    while (status == 0 && (n = getline(&line, &room, file)) >= 0) {
        if (n && line[n - 1] == '\n')
            n--;
        status = parse_line(p, l, arena, str_make(line, (size_t)n));
    }
    if (status == 0 && ferror(file))
        status = SP_EIO;
    free(line);
    fclose(file);
    return status;
}

/* --- lists --------------------------------------------------------------------------------------- */

static struct pat_list *list_new(struct arena *arena, unsigned room)
{
    struct pat_list *l = arena_zalloc(arena, 1, sizeof *l);

    if (!l)
        return NULL;
    l->entries = arena_zalloc(arena, room + 1, sizeof *l->entries);
    l->ids = arena_zalloc(arena, room + 1, sizeof *l->ids);
    return l->entries && l->ids ? l : NULL;
}

static const struct pat_list *current(const struct rules_patterns *p)
{
    return atomic_load_explicit(&((struct rules_patterns *)(uintptr_t)p)->list,
                                memory_order_acquire);
}

static void put(struct pat_list *l, struct pat_source source, const void *id)
{
    l->entries[l->count] = source;
    l->ids[l->count] = id;
    l->count++;
}

static struct rules_patterns *patterns_load(struct rules_compiler *c, const char *name,
                                            const char *path, bool is_map, bool optional,
                                            bool is_virtual)
{
    struct rules_registry *r = compiler_registry(c);
    struct rules_patterns *p = compiler_zalloc(c, 1, sizeof *p);
    struct line_list lines = {NULL, 0, 0};
    struct pat_list *l;
    int status = 0;

    if (!p || !r || !(p->name = compiler_cstr(c, name)))
        return NULL;
    p->is_map = is_map;
    p->registry = r;
    if (!is_virtual)
        status = read_file(p, path, &lines, c->arena);
    if (status == SP_ENOENT && optional)
        status = 0;
    if (status < 0) {
        diag_error(c->diag, c->loc, "cannot read pattern file '%s': %s", path,
                   status == SP_ENOMEM ? "out of memory" : strerror(errno));
        return NULL;
    }
    l = list_new(c->arena, lines.count);
    if (!l) {
        diag_error(c->diag, c->loc, "out of memory");
        return NULL;
    }
    for (unsigned i = 0; i < lines.count; i++)
        put(l, lines.v[i], &lines.v[i]);
    atomic_store(&p->list, l);
    *r->patterns_tail = p;
    r->patterns_tail = &p->next;
    return p;
}

/* "file@", "opt@" and "virt@" of section 2.7; the first two are no part of the name. */
static struct rules_patterns *patterns_get(struct rules_compiler *c, const char *name, bool is_map)
{
    bool optional = strncmp(name, "opt@", 4) == 0;
    bool is_virtual = strncmp(name, "virt@", 5) == 0;
    struct rules_registry *r = compiler_registry(c);
    struct rules_patterns *p;

    if (!r)
        return NULL;
    if (optional)
        name += 4;
    else if (strncmp(name, "file@", 5) == 0)
        name += 5;
    p = rules_patterns_find(r, name, is_map);
    return p ? p : patterns_load(c, name, name, is_map, optional, is_virtual);
}

static int set_build(struct pat_set *set, const struct pat_list *l, struct arena *arena,
                     struct rules_registry *r, char why[RULES_WHY_BYTES], struct pat_index **out)
{
    return pat_index_build(set->match, set->flags, set->map_type, l->entries, l->count, arena, r,
                           out, why);
}

static struct pat_set *set_new(struct rules_compiler *c, enum pat_match match, unsigned flags,
                               enum value_type map_type)
{
    struct pat_set *set = compiler_zalloc(c, 1, sizeof *set);

    if (set) {
        set->match = match;
        set->flags = flags;
        set->map_type = map_type;
    }
    return set;
}

struct pat_set *pat_set_file(struct rules_compiler *c, enum pat_match match, unsigned flags,
                             enum value_type map_type, bool as_map, const char *name)
{
    struct rules_patterns *p = patterns_get(c, name, as_map);
    char why[RULES_WHY_BYTES] = "";
    struct pat_index *ix;
    struct pat_set *set;
    int status;

    if (!p)
        return NULL;
    for (set = p->sets; set; set = set->next)
        if (set->match == match && set->flags == flags && set->map_type == map_type)
            return set;
    set = set_new(c, match, flags, map_type);
    if (!set)
        return NULL;
    status = set_build(set, current(p), c->arena, p->registry, why, &ix);
    if (status < 0) {
        diag_error(c->diag, c->loc, "pattern file '%s': %s", name,
                   why[0] ? why : sp_status_text(status));
        return NULL;
    }
    atomic_store(&set->index, ix);
    set->from_file = true;
    set->next = p->sets;
    p->sets = set;
    return set;
}

struct pat_set *pat_set_words(struct rules_compiler *c, enum pat_match match, unsigned flags,
                              int argc, char *const *argv)
{
    struct pat_source *sources = compiler_zalloc(c, argc ? (size_t)argc : 1, sizeof *sources);
    struct pat_set *set = set_new(c, match, flags, VALUE_ANY);
    char why[RULES_WHY_BYTES] = "";
    struct pat_index *ix;
    int status;

    if (!sources || !set || !compiler_registry(c))
        return NULL;
    for (int i = 0; i < argc; i++) {
        sources[i].key = compiler_str(c, str_of(argv[i]));
        if (!sources[i].key.ptr)
            return NULL;
    }
    status = pat_index_build(match, flags, VALUE_ANY, sources, (unsigned)argc, c->arena,
                             c->registry, &ix, why);
    if (status < 0) {
        diag_error(c->diag, c->loc, "%s", why[0] ? why : sp_status_text(status));
        return NULL;
    }
    atomic_store(&set->index, ix);
    return set;
}

/* --- run time ------------------------------------------------------------------------------------------- */

struct rules_patterns *rules_patterns_find(struct rules_registry *registry, const char *name,
                                           bool is_map)
{
    for (struct rules_patterns *p = registry->patterns; p; p = p->next)
        if (p->is_map == is_map && strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

struct rules_patterns *rules_patterns_at(struct rules_registry *registry, unsigned index,
                                         const char **name, bool *is_map)
{
    struct rules_patterns *p = registry->patterns;

    while (p && index--)
        p = p->next;
    if (p) {
        *name = p->name;
        *is_map = p->is_map;
    }
    return p;
}

bool rules_patterns_entry(struct rules_patterns *p, unsigned index, struct str *key,
                          struct str *value, const void **id)
{
    const struct pat_list *l = current(p);

    if (index >= l->count)
        return false;
    *key = l->entries[index].key;
    *value = l->entries[index].value;
    *id = l->ids[index];
    return true;
}

/* Makes `l` (in the generation's arena) the list, with new indexes for all sets; all or nothing. */
static int publish(struct rules_patterns *p, struct generation *g, struct pat_list *l,
                   const char **why)
{
    struct pat_index **built;
    unsigned n = 0;
    int status = 0;

    for (struct pat_set *s = p->sets; s; s = s->next)
        n++;
    p->why[0] = '\0';
    built = arena_zalloc(&g->arena, n + 1, sizeof *built);
    if (!built)
        return SP_ENOMEM;
    n = 0;
    for (struct pat_set *s = p->sets; s && status == 0; s = s->next)
        status = set_build(s, l, &g->arena, p->registry, p->why, &built[n++]);
    if (status < 0) {
        if (why && p->why[0])
            *why = p->why;
        return status;
    }
    n = 0;
    for (struct pat_set *s = p->sets; s; s = s->next)
        atomic_store_explicit(&s->index, built[n++], memory_order_release);
    atomic_store_explicit(&p->list, l, memory_order_release);
    g->older = p->generations;
    p->generations = g;
    return 0;
}

enum edit { EDIT_ADD, EDIT_SET, EDIT_DEL, EDIT_CLEAR };

/* A list of the next generation with the edit done; the texts of kept entries are shared with older ones. */
static int edited(const struct pat_list *old, struct arena *arena, enum edit what, struct str key,
                  struct str value, bool is_map, struct pat_list **out)
{
    struct pat_list *l = list_new(arena, old->count + 1);
    bool hit = what == EDIT_ADD || what == EDIT_CLEAR;
    struct str new_key = arena_str(arena, key);
    struct str new_value = is_map ? arena_str(arena, value) : STR_NULL;
    void *id = arena_alloc(arena, 1);

    if (!l || !new_key.ptr || (is_map && !new_value.ptr) || !id)
        return SP_ENOMEM;
    for (unsigned i = 0; what != EDIT_CLEAR && i < old->count; i++) {
        struct pat_source source = old->entries[i];

        if ((what == EDIT_DEL || what == EDIT_SET) && str_eq(source.key, key)) {
            hit = true;
            if (what == EDIT_DEL)
                continue;
            source.value = new_value;
        }
        put(l, source, old->ids[i]);
    }
    if (what == EDIT_ADD)
        put(l, (struct pat_source){new_key, new_value}, id);
    if (!hit)
        return SP_ENOENT;
    *out = l;
    return 0;
}

static int edit(struct rules_patterns *p, enum edit what, struct str key, struct str value,
                const char **why)
{
    struct generation *g = calloc(1, sizeof *g);
    struct pat_list *l;
    int status;

    if (!g)
        return SP_ENOMEM;
    arena_init(&g->arena, 0, 0);
    if (why)
        *why = "out of memory";
    pthread_mutex_lock(&p->registry->edit_lock);
    status = edited(current(p), &g->arena, what, key, value, p->is_map, &l);
    if (status == 0)
        status = publish(p, g, l, why);
    pthread_mutex_unlock(&p->registry->edit_lock);
    if (status < 0) {
        arena_release(&g->arena);
        free(g);
    }
    return status;
}

int rules_patterns_add(struct rules_patterns *p, struct str key, struct str value, const char **why)
{
    return edit(p, EDIT_ADD, key, value, why);
}

int rules_patterns_set(struct rules_patterns *p, struct str key, struct str value, const char **why)
{
    return edit(p, EDIT_SET, key, value, why);
}

int rules_patterns_del(struct rules_patterns *p, struct str key)
{
    return edit(p, EDIT_DEL, key, STR(""), NULL);
}

int rules_patterns_clear(struct rules_patterns *p)
{
    return edit(p, EDIT_CLEAR, STR(""), STR(""), NULL);
}

void patterns_release(struct rules_registry *registry)
{
    for (struct rules_patterns *p = registry->patterns; p; p = p->next) {
        while (p->generations) {
            struct generation *g = p->generations;

            p->generations = g->older;
            arena_release(&g->arena);
            free(g);
        }
    }
    registry->patterns = NULL;
    registry->patterns_tail = &registry->patterns;
}
