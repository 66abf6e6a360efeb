/*
 * Runs a fuzzing harness over the files of the directories given, without a fuzzer: what was found
 * once is tested for ever. Names that begin with a dot are passed over.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fuzz_check.h"

/* 0, or -1 after a message. */
static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    uint8_t *data = NULL;
    size_t size;
    int status = -1;

    if (!f || fstat(fileno(f), &st) < 0) {
        perror(path);
        goto out;
    }
    size = (size_t)st.st_size;
    data = malloc(size ? size : 1);
    if (!data || fread(data, 1, size, f) != size) {
        fprintf(stderr, "%s: cannot be read\n", path);
        goto out;
    }
    LLVMFuzzerTestOneInput(data, size);
    status = 0;
out:
    free(data);
    if (f)
        fclose(f);
    return status;
}

/* How many files were replayed, or -1. */
static int replay_directory(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    int count = 0;

    if (!dir) {
        perror(path);
        return -1;
    }
    while (count >= 0 && (entry = readdir(dir))) {
        char file[4096];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        count = replay_file(file) < 0 ? -1 : count + 1;
    }
    closedir(dir);
    return count;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s DIRECTORY...\n", argv[0]);
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        int count = replay_directory(argv[i]);

        if (count < 0)
            return 1;
        printf("%s: %d files replayed\n", argv[i], count);
        if (count == 0)
            return 1;
    }
    return 0;
}
