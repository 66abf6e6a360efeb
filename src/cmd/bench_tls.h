/*
 * `sallyport bench tls`: TLS handshakes in memory.
 */
#ifndef SP_CMD_BENCH_TLS_H
#define SP_CMD_BENCH_TLS_H

/* argv[0] is "tls"; the exit status. */
int bench_tls(int argc, char **argv);

#endif
