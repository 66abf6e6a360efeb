#include "cmd/bench_server.h"

#include "base/clock.h"
#include "base/status.h"
#include "base/str.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct process {
    int pid, parent;
    uint64_t user_ticks, system_ticks, rss_pages;
    bool in_tree;
};

/* Field `n` of /proc/PID/stat, counted from 1 as in proc(5); `fields` begins with the third. */
static uint64_t field(struct str fields, int n)
{
    int64_t value;

    for (int i = 3; i < n; i++)
        fields = str_from(fields, str_chr(fields, ' ') + 1);
    fields.len = str_chr(fields, ' ');
    /* Times of children are signed in the kernel's text. */
    return str_to_i64(fields, &value) == 0 && value > 0 ? (uint64_t)value : 0;
}

static bool read_process(const char *name, struct process *out)
{
    char path[64], text[1024];
    struct str s;
    uint64_t pid;
    size_t len;
    FILE *file;

    if (str_to_u64(str_of(name), &pid) != 0)
        return false;
    (void)snprintf(path, sizeof(path), "/proc/%.20s/stat", name);
    file = fopen(path, "re");
    if (!file)
        return false;
    len = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    /* The name in parentheses may itself have parentheses and spaces: the last one ends it. */
    while (len > 0 && text[len - 1] == '\n')
        len--;
    s = str_make(text, len);
    for (size_t i = len; i-- > 0;) {
        if (text[i] == ')') {
            s = str_from(s, i + 2);
            break;
        }
    }
    out->pid = (int)pid;
    out->parent = (int)field(s, 4);
    /* What children that have ended and were waited for spent counts for their parent. */
    out->user_ticks = field(s, 14) + field(s, 16);
    out->system_ticks = field(s, 15) + field(s, 17);
    out->rss_pages = field(s, 24);
    out->in_tree = false;
    return true;
}

static struct process *list_processes(size_t *count)
{
    struct process *list = NULL, *more;
    size_t capacity = 0, n = 0;
    DIR *dir = opendir("/proc");
    struct dirent *entry;

    while (dir && (entry = readdir(dir)) != NULL) {
        if (n == capacity) {
            capacity = capacity ? capacity * 2 : 256;
            more = realloc(list, capacity * sizeof(*list));
            if (!more)
                break;
            list = more;
        }
        n += read_process(entry->d_name, &list[n]);
    }
    if (dir)
        closedir(dir);
    *count = n;
    return list;
}

/* Marks the process and its descendants; false: there is no such process. */
static bool mark_tree(struct process *list, size_t n, int root)
{
    bool found = false, grown = true;

    for (size_t i = 0; i < n; i++) {
        list[i].in_tree = list[i].pid == root;
        found |= list[i].in_tree;
    }
    while (found && grown) {
        grown = false;
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n && !list[i].in_tree; j++)
                if (list[j].in_tree && list[j].pid == list[i].parent)
                    list[i].in_tree = grown = true;
    }
    return found;
}

static bool look(int pid, double *user_s, double *system_s, uint64_t *rss_kib)
{
    uint64_t user = 0, system_ticks = 0, pages = 0, page_kib = (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
    double tick = (double)sysconf(_SC_CLK_TCK);
    struct process *list;
    size_t n;
    bool found;

    list = list_processes(&n);
    found = mark_tree(list, n, pid);
    for (size_t i = 0; i < n; i++) {
        if (list[i].in_tree) {
            user += list[i].user_ticks;
            system_ticks += list[i].system_ticks;
            pages += list[i].rss_pages;
        }
    }
    free(list);
    if (!found)
        return false;
    *user_s = (double)user / tick;
    *system_s = (double)system_ticks / tick;
    *rss_kib = pages * page_kib;
    return true;
}

int bench_server_start(struct bench_server *s, int pid)
{
    *s = (struct bench_server){.pid = pid, .start_us = clock_now_us()};
    if (look(pid, &s->user_before_s, &s->system_before_s, &s->rss_max_kib))
        return 0;
    s->pid = 0;
    return SP_ENOENT;
}

void bench_server_sample(struct bench_server *s)
{
    double user_s, system_s;
    uint64_t rss_kib;

    if (s->pid == 0 || !look(s->pid, &user_s, &system_s, &rss_kib))
        return;
    s->user_s = user_s > s->user_before_s ? user_s - s->user_before_s : 0;
    s->system_s = system_s > s->system_before_s ? system_s - s->system_before_s : 0;
    s->duration_us = clock_now_us() - s->start_us;
    if (rss_kib > s->rss_max_kib)
        s->rss_max_kib = rss_kib;
}
