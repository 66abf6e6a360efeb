/*
 * Runs a group of tests once with each engine of the event loop.
 */
#ifndef SP_TESTS_IO_ENGINE_H
#define SP_TESTS_IO_ENGINE_H

#include "io/loop.h"

#include <stdio.h>

static enum io_engine engine = IO_ENGINE_EPOLL;

static inline struct io_loop *engine_loop(void)
{
    return io_loop_new_engine(engine);
}

/* Runs the loop until something has happened, however busy the machine is; gives up after a while. */
#define RUN_UNTIL(condition)                                           \
    for (unsigned round_ = 0; round_ < 1000 && !(condition); round_++) \
    run_for(2)

#define RUN_WITH_ENGINES(tests)                                \
    (cmocka_run_group_tests_name("epoll", tests, NULL, NULL) + \
     (engine_switch_to_uring() ? cmocka_run_group_tests_name("io_uring", tests, NULL, NULL) : 0))

static inline bool engine_switch_to_uring(void)
{
    const char *missing = io_uring_missing();

    if (missing) {
        printf("not run with io_uring: %s\n", missing);
        return false;
    }
    engine = IO_ENGINE_URING;
    return true;
}

#endif
