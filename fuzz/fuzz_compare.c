/*
 * The compare file: whatever the bytes, a plan comes out or errors do; a plan that is accepted is whole, and every text in
 * it can be expanded, in bounded memory.
 */
#include "cmd/compare_file.h"
#include "fuzz_check.h"

#define MEMORY_BYTES ((size_t)64 << 20)

static void check_text(const struct compare_plan *plan, const struct compare_server *server, const char *text)
{
    struct arena arena;
    const char *expanded;

    arena_init(&arena, 0, MEMORY_BYTES);
    expanded = text ? compare_expand(plan, &arena, server, "/tmp/x", text) : "";
    if (expanded)
        CHECK(strlen(expanded) <= MEMORY_BYTES);
    arena_release(&arena);
}

static void check_server(const struct compare_plan *plan, const struct compare_server *server)
{
    CHECK(server->start.count > 0 && server->start.count <= COMPARE_WORDS_MAX);
    CHECK(server->is_service || server->url.text);
    CHECK(compare_find(plan, str_of(server->name)) == server);
    for (size_t i = 0; i < server->start.count; i++)
        check_text(plan, server, server->start.words[i].text);
    check_text(plan, server, server->url.text);
    check_text(plan, server, server->ready.text);
    check_text(plan, server, server->stop_command);
    for (size_t i = 0; i < plan->file_count; i++)
        check_text(plan, server, plan->files[i].content.text);
}

static void check_plan(const struct compare_plan *plan)
{
    CHECK(plan->title && plan->variant_count > 0 && plan->variant_count <= COMPARE_SERVERS_MAX);
    CHECK(plan->load_count > 0 && plan->load_count <= COMPARE_LOADS_MAX);
    CHECK(plan->base < plan->variant_count && plan->rounds >= 1 && plan->rounds <= COMPARE_ROUNDS_MAX);
    for (size_t i = 0; i < plan->variant_count; i++)
        check_server(plan, &plan->variants[i]);
    for (size_t i = 0; i < plan->service_count; i++)
        check_server(plan, &plan->services[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct diag diag;
    struct compare_plan *plan;
    int status;

    if (size > 65536)
        return 0;
    arena_init(&arena, 65536, MEMORY_BYTES);
    diag_init(&diag, &arena);
    plan = arena_zalloc(&arena, 1, sizeof(*plan));
    CHECK(plan);
    status = compare_file_parse(plan, &arena, "f", str_make((const char *)data, size), &diag);
    CHECK((status == 0) == (diag.errors == 0) || status != 0);
    for (const struct diag_item *item = diag.first; item; item = item->next)
        CHECK(item->loc.line >= 0 && (size_t)item->loc.line <= size + 1);
    if (status == 0)
        check_plan(plan);
    arena_release(&arena);
    return 0;
}
