#include "measure/sweep.h"

#include <stdlib.h>

struct sweep_cell *sweep_cell_at(const struct sweep_result *r, size_t algorithm, size_t mode, size_t size, size_t impl)
{
    return &r->cells[((algorithm * r->mode_count + mode) * r->size_count + size) * r->impl_count + impl];
}

void sweep_result_release(struct sweep_result *r)
{
    size_t cells = r->algorithm_count * r->mode_count * r->size_count * r->impl_count;

    for (size_t i = 0; r->cells && i < cells; i++)
        free((void *)(uintptr_t)r->cells[i].why_not);
    for (size_t i = 0; i < r->impl_count; i++) {
        free(r->impls[i].spec);
        free(r->impls[i].description);
    }
    free(r->cells);
    free(r->algorithms);
    free(r->command);
    free(r->machine);
    *r = (struct sweep_result){0};
}
