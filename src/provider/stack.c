#include "provider/stack.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#ifndef __x86_64__
#include <ucontext.h>
#endif

/*
 * Several times what the kernels take, sanitizers included; only pages that are touched cost
 * memory.
 */
#define STACK_BYTES (1024 * 1024)
#define GUARD_BYTES (64 * 1024) /* a multiple of every page size */

void *provider_stack_new(void)
{
    void *stack = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

    if (stack == MAP_FAILED)
        return NULL;
    if (mprotect(stack, GUARD_BYTES, PROT_NONE) == 0)
        return stack;
    provider_stack_free(stack);
    return NULL;
}

void provider_stack_free(void *stack)
{
    if (stack)
        munmap(stack, GUARD_BYTES + STACK_BYTES);
}

#ifdef __x86_64__

/*
 * What is called returns and never yields, so there is no context to save: the stack pointer
 * changes for one call, which costs nothing beside the two system calls of swapcontext. rbx
 * survives the call; the rest is the caller's to save.
 */
__attribute__((noinline)) void provider_stack_call(void *stack, void (*call)(void *arg), void *arg)
{
    uint8_t *top = (uint8_t *)stack + GUARD_BYTES + STACK_BYTES;

    __asm__ volatile("movq %%rsp, %%rbx\n\t"
                     "movq %[top], %%rsp\n\t"
                     "callq *%[call]\n\t"
                     "movq %%rbx, %%rsp"
                     : "+D"(arg), [top] "+a"(top), [call] "+d"(call)
                     :
                     : "rbx", "rcx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2",
                       "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
                       "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory");
}

#else

struct errand {
    void (*call)(void *arg);
    void *arg;
};

/* makecontext passes ints. */
static void run_errand(unsigned high, unsigned low)
{
    const struct errand *e = (const struct errand *)((uintptr_t)high << 16 << 16 | low);

    e->call(e->arg);
}

void provider_stack_call(void *stack, void (*call)(void *arg), void *arg)
{
    struct errand e = {call, arg};
    ucontext_t here, there;

    if (getcontext(&there) != 0)
        return;
    there.uc_stack.ss_sp = (uint8_t *)stack + GUARD_BYTES;
    there.uc_stack.ss_size = STACK_BYTES;
    there.uc_link = &here;
    makecontext(&there, (void (*)(void))run_errand, 2, (unsigned)((uintptr_t)&e >> 16 >> 16),
                (unsigned)(uintptr_t)&e);
    swapcontext(&here, &there);
}

#endif
