
/*
 * urlstore stat DIR: what a data directory holds.
 *
 * Lines of a name and a value.  Reads the newest segment to its end, of the
 * other files their headers only; takes no lock, so that it may run beside the
 * service.
 */


#include "us_cli_data.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>


static int us_stat_run(int argc, char **argv);


const us_cli_command_t  us_cli_stat = {
    .name = "stat",
    .run = us_stat_run,
    .args = "DIR",
    .summary = "print what a data directory holds",
    .text =
        "Prints lines of a name and a value. It reads the newest segment to "
        "its end, of the other files the headers only, and takes no lock: it "
        "can run beside the service.",
    .exits =
        " 0   the files that were read are whole\n"
        " 1   one of them is damaged\n"
        " 2   wrong usage, or DIR has no store or could not be read"
};


static void
us_stat_manifest(const us_cli_data_t *d, const us_manifest_t *m)
{
    int          i, fd;
    const char  *line, *end;

    printf("directory  %s\nformat     %u\nuuid       ", d->path, m->version);

    for (i = 0; i < 16; i++) {
        printf("%02x", m->uuid[i]);
    }

    printf("\nepoch      %" PRIu64 "\nstate      %s\nsync       %s\n"
           "boot       %s%s\n", m->epoch,
           us_manifest_state(m), m->sync, m->boot,
           strcmp(m->boot, d->boot) == 0 ? ", this one" : ", an earlier one");

    fd = us_disk_lock(d->dirfd, US_DIR_LOCK, O_RDONLY, LOCK_SH|LOCK_NB);
    printf("owner      %s\n", fd == -1 ? "somebody" : "nobody");

    if (fd != -1) {
        (void) close(fd);
    }

    for (line = m->settings; *line; line = end + 1) {
        end = strchr(line, '\n');
        printf("store      %.*s\n", (int) (end - line), line);
    }
}


/* whether a file is damaged, after a message */

static int
us_stat_damage(const us_cli_file_t *f, int whole)
{
    if (!whole) {
        fprintf(stderr, "urlstore: %s\n", f->error.text);
    }

    return !whole;
}


/* the snapshot, the newest segment, and sums; an exit code */

static int
us_stat_files(const us_cli_data_t *d, const us_manifest_t *m,
    const us_dir_t *dir)
{
    int            bad;
    uint64_t       bytes;
    us_cli_file_t  f;

    bad = 0;
    memset(&f, 0, sizeof(us_cli_file_t));

    if (m->has_snapshot) {
        us_cli_data_file(&f, d->dirfd, US_SEGMENT_SNAPSHOT, m->snapshot,
                         m->uuid);
        printf("snapshot   %016" PRIx64 ", %" PRIu64 " bytes, %" PRIu64
               " ids\n", m->snapshot, f.size, f.ids);
        bad = us_stat_damage(&f, f.end == US_READ_FOOTER);

    } else {
        printf("snapshot   none\n");
    }

    printf("segments   %zu\n", dir->nsegments);

    if (dir->nsegments) {
        us_cli_data_file(&f, d->dirfd, US_SEGMENT_JOURNAL,
                         dir->segments[dir->nsegments - 1], m->uuid);
        bad |= us_stat_damage(&f, f.end == US_READ_FOOTER
                                  || f.end == US_READ_END);
    }

    printf("ids        %" PRIu64 "\nlsn        %" PRIu64 "\n", f.ids, f.lsn);

    if (d->marked) {
        printf("written    %" PRIu64 "\ndurable    %" PRIu64 "\n",
               d->mark.written, d->mark.durable);
    }

    bytes = us_dir_bytes(d->dirfd);
    printf("bytes      %" PRIu64 "\n", bytes);

    if (f.ids) {
        printf("per id     %.2f\n", (double) bytes / f.ids);
    }

    return bad ? US_CLI_REFUSED : US_CLI_DONE;
}


static int
us_stat_run(int argc, char **argv)
{
    int               code;
    us_dir_t          dir;
    us_cli_data_t     d;
    us_manifest_t     m;
    us_disk_error_t   e;
    us_manifest_rc_t  rc;

    if (us_cli_option(&us_cli_stat, argc, argv) != -1 || optind != argc - 1) {
        return us_cli_usage(&us_cli_stat);
    }

    code = us_cli_data_open(&d, argv[optind]);

    if (code != US_CLI_DONE) {
        return code;
    }

    if (us_dir_read(d.dirfd, &dir, &e) == -1) {
        code = us_cli_failed(d.path, e.text);
        us_cli_data_close(&d);
        return code;
    }

    rc = us_manifest_read(d.dirfd, &m, &e);

    if (rc == US_MANIFEST_OK) {
        us_stat_manifest(&d, &m);
        code = us_stat_files(&d, &m, &dir);

    } else if (rc == US_MANIFEST_NONE && dir.nsegments + dir.nsnapshots == 0) {
        code = us_cli_data_none(&d);

    } else {
        (void) us_cli_failed(d.path, e.text);
        code = US_CLI_REFUSED;
    }

    us_dir_free(&dir);
    us_cli_data_close(&d);

    return code;
}
