/*
 * A stack for the queue's work inside of a job. OpenSSL gives a job 32 KiB from malloc, without a
 * guard page; the kernels need more than that, and would write into the heap.
 */
#ifndef SP_PROVIDER_STACK_H
#define SP_PROVIDER_STACK_H

/* A stack with a guard page; NULL when there is no memory. */
void *provider_stack_new(void);
void provider_stack_free(void *stack);
/* call(arg) on it. It must return, and must not pause the job. Not to be nested on one stack. */
void provider_stack_call(void *stack, void (*call)(void *arg), void *arg);

#endif
