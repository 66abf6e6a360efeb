// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Results against those of the generic implementation, before the clock runs and after. */

#include "sweep_kmod.h"

#include <linux/random.h>

/* One request: its result in `out`. */
static int run_one(const struct spk_worker_shape *shape, u8 *out)
{
    struct spk_worker *worker = spk_worker_new(shape);
    int status;

    if (!worker)
        return -ENOMEM;
    status = spk_worker_run(worker, U64_MAX, 1);
    if (status == 0)
        status = worker->counts.first_error;
    if (status == 0 && worker->counts.requests == 1)
        spk_request_result(worker->requests[0], worker->cipher, worker->bytes, worker->op, out);
    spk_worker_free(worker);
    return status;
}

int spk_check_prepare(struct spk_run *run, size_t bytes)
{
    const struct spk_cipher *cipher = run->cipher;
    struct spk_worker_shape shape = spk_run_shape(run, bytes, 1);
    bool opens = cipher->kind == SPK_AEAD && run->params.op == SPK_OP_DECRYPT;
    u8 *text = run->input + cipher->aad_bytes;
    int status;

    get_random_bytes(run->input, cipher->aad_bytes + bytes);
    if (!run->generic)
        return 0;
    shape.cipher = run->generic;
    shape.in_place = false;
    shape.op = opens ? SPK_OP_ENCRYPT : run->params.op;
    status = run_one(&shape, run->expected);
    if (status != 0)
        return spk_report_failure(run, status, "%s at %zu bytes: %pe", run->generic->driver, bytes,
                                  ERR_PTR(status));
    if (opens) {
        /* What has to come out is what went in, and what goes in is sealed. */
        memcpy(run->scratch, text, bytes);
        memcpy(text, run->expected, bytes + cipher->tag_bytes);
        memcpy(run->expected, run->scratch, bytes);
    }
    return 0;
}

int spk_check_before(struct spk_run *run, size_t bytes)
{
    const struct spk_cipher *cipher = run->cipher;
    struct spk_worker_shape shape = spk_run_shape(run, bytes, 1);
    int status = run_one(&shape, run->scratch);

    if (status == -ETIMEDOUT)
        return spk_report_failure(
            run, status,
            "%s did not complete a request of %zu bytes within %u ms; what it holds is not freed, "
            "and the module stays until it completes it",
            cipher->driver, bytes, run->params.timeout_ms);
    if (status == -ENODEV || status == -ESHUTDOWN)
        return spk_report_failure(run, status, "%s: the device is gone (%pe)", cipher->driver,
                                  ERR_PTR(status));
    if (status != 0)
        return spk_report_failure(run, status, "%s fails a request of %zu bytes: %pe",
                                  cipher->driver, bytes, ERR_PTR(status));
    if (READ_ONCE(run->stop))
        return -EINTR;
    if (run->generic && memcmp(run->scratch, run->expected,
                               spk_cipher_out_bytes(cipher, bytes, run->params.op)) != 0)
        return spk_report_failure(run, -EBADMSG,
                                  "%s gives a wrong result at %zu bytes: it differs from %s's",
                                  cipher->driver, bytes, run->generic->driver);
    return 0;
}

bool spk_check_after(struct spk_run *run, const struct spk_worker *worker)
{
    unsigned i;

    if (!run->generic || (run->params.in_place && worker->cipher->kind != SPK_HASH))
        return true;
    for (i = 0; i < worker->depth; i++) {
        const struct spk_request *request = worker->requests[i];
        size_t count;

        /* The device may still write to those in flight. */
        if (request->in_flight || !request->has_result)
            continue;
        count =
            spk_request_result(request, worker->cipher, worker->bytes, worker->op, run->scratch);
        if (memcmp(run->scratch, run->expected, count) != 0)
            return false;
    }
    return true;
}
