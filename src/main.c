/*
 * The table of subcommands. Without one the arguments are the load balancer's.
 */
#include "cmd/cmd.h"

#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} subcommands[] = {
    {"origin", cmd_origin},
    {"keywords", cmd_keywords},
    {"crypto", cmd_crypto},
    {"bench", cmd_bench},
    {"compare", cmd_compare},
};

int main(int argc, char **argv)
{
    for (unsigned i = 0; i < sizeof(subcommands) / sizeof(subcommands[0]); i++)
        if (argc > 1 && strcmp(argv[1], subcommands[i].name) == 0)
            return subcommands[i].run(argc - 1, argv + 1);
    return cmd_serve(argc, argv);
}
