/*
 * What a comparison leaves behind: everything that was measured, and everything needed to repeat it.
 */
#ifndef SP_CMD_COMPARE_JSON_H
#define SP_CMD_COMPARE_JSON_H

#include "cmd/compare_run.h"

/*
 * The machine and its programs: "cpu", "cores", "kernel", "governor", "openssl", "programs" (each with "name", "path",
 * "version", "sha256"). The caller owns it.
 */
json_t *compare_machine(const struct compare_plan *plan, const struct compare_options *options);

/* The whole document; takes nothing over. The caller owns it. */
json_t *compare_json(const struct compare_run *run, json_t *machine);

/* SHA-256 in hex; out has 65 bytes. */
void compare_sha256(struct str data, char out[65]);

#endif
