// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Rows and state, in the kernel's log and in debugfs. */

#include "sweep_kmod.h"

#include <linux/debugfs.h>
#include <linux/seq_file.h>

static struct dentry *folder;

static const char *mode_name(enum spk_mode mode)
{
    return mode == SPK_MODE_SINGLE ? "single" : "concurrent";
}

static const char *op_name(enum spk_op op)
{
    static const char *const names[] = {"auto", "encrypt", "decrypt", "digest"};

    return names[op];
}

static void print_row(const struct spk_run *run, const struct spk_row *row)
{
    u64 bytes_per_s = spk_rate(row->bytes, row->elapsed_ns);
    unsigned share = spk_permille(row->async_requests, row->requests);

    pr_info(
        "%s, %s, %s %ux%u, %llu bytes: %llu requests, %llu errors, %llu bytes/s, %llu bytes per CPU-second, "
        "%u.%u %% asynchronous, p50 %llu ns, p99 %llu ns: %s\n",
        run->cipher->driver, op_name(run->params.op), mode_name(row->mode), row->threads,
        row->depth, row->request_bytes, row->requests, row->errors, bytes_per_s,
        row->busy_ns == SPK_UNKNOWN ? 0 : spk_rate(row->bytes, row->busy_ns), share / 10,
        share % 10, row->requests ? row->p50_ns : 0, row->requests ? row->p99_ns : 0, row->status);
}

void spk_report_row(struct spk_run *run, const struct spk_row *row)
{
    mutex_lock(&run->lock);
    if (run->row_count < SPK_ROWS_MAX)
        run->rows[run->row_count++] = *row;
    mutex_unlock(&run->lock);
    print_row(run, row);
}

void spk_report_done(struct spk_run *run)
{
    mutex_lock(&run->lock);
    run->state = SPK_DONE;
    mutex_unlock(&run->lock);
    pr_info("done\n");
}

int spk_report_failure(struct spk_run *run, int status, const char *format, ...)
{
    va_list arguments;

    mutex_lock(&run->lock);
    run->state = SPK_FAILED;
    run->error = status;
    va_start(arguments, format);
    vsnprintf(run->reason, sizeof(run->reason), format, arguments);
    va_end(arguments);
    mutex_unlock(&run->lock);
    pr_err("%s\n", run->reason);
    return status;
}

static void show_number(struct seq_file *file, u64 value)
{
    if (value == SPK_UNKNOWN)
        seq_puts(file, ",unknown");
    else
        seq_printf(file, ",%llu", value);
}

static int rows_show(struct seq_file *file, void *unused)
{
    struct spk_run *run = file->private;
    unsigned i;

    seq_puts(
        file,
        "driver,priority,op,key_bits,mode,threads,depth,request_bytes,requests,bytes,elapsed_ns,busy_ns,"
        "async_requests,errors,p50_ns,p99_ns,status\n");
    mutex_lock(&run->lock);
    for (i = 0; i < run->row_count; i++) {
        const struct spk_row *row = &run->rows[i];

        /* Quoted: the names of composed drivers have commas. */
        seq_printf(file, "\"%s\",%d,%s,%u,%s,%u,%u,%llu,%llu,%llu,%llu", run->cipher->driver,
                   run->cipher->priority, op_name(run->params.op), run->cipher->key_bytes * 8,
                   mode_name(row->mode), row->threads, row->depth, row->request_bytes,
                   row->requests, row->bytes, row->elapsed_ns);
        show_number(file, row->busy_ns);
        seq_printf(file, ",%llu,%llu", row->async_requests, row->errors);
        show_number(file, row->p50_ns);
        show_number(file, row->p99_ns);
        seq_printf(file, ",%s\n", row->status);
    }
    mutex_unlock(&run->lock);
    return 0;
}
DEFINE_SHOW_ATTRIBUTE(rows);

static int state_show(struct seq_file *file, void *unused)
{
    struct spk_run *run = file->private;

    mutex_lock(&run->lock);
    if (run->state == SPK_FAILED)
        seq_printf(file, "failed: %s\n", run->reason);
    else
        seq_puts(file, run->state == SPK_DONE ? "done\n" : "running\n");
    mutex_unlock(&run->lock);
    return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);

static int errno_show(struct seq_file *file, void *unused)
{
    struct spk_run *run = file->private;

    mutex_lock(&run->lock);
    seq_printf(file, "%d\n", run->error);
    mutex_unlock(&run->lock);
    return 0;
}
DEFINE_SHOW_ATTRIBUTE(errno);

void spk_report_open(struct spk_run *run)
{
    folder = debugfs_create_dir(KBUILD_MODNAME, NULL);
    debugfs_create_file("rows", 0400, folder, run, &rows_fops);
    debugfs_create_file("state", 0400, folder, run, &state_fops);
    debugfs_create_file("errno", 0400, folder, run, &errno_fops);
    if (IS_ERR(folder))
        pr_notice("no debugfs (%pe): the rows are in this log only\n", folder);
}

void spk_report_close(void)
{
    debugfs_remove(folder);
}
