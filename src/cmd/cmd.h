/*
 * The subcommands. Each takes its own name as argv[0], prints, and returns the exit status: 0, 1
 * when it failed, 2 for bad arguments.
 */
#ifndef SP_CMD_CMD_H
#define SP_CMD_CMD_H

int cmd_serve(int argc, char **argv);
int cmd_origin(int argc, char **argv);
int cmd_keywords(int argc, char **argv);
int cmd_crypto(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_compare(int argc, char **argv);

#endif
