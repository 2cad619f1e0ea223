
/*
 * urlstore verify [--fast] [--keys] DIR: checks all that a directory holds.
 *
 *     each file on its own      header, blocks, CRCs, footer
 *     how they follow           snapshot, journal, nothing missing
 *     what was answered         the watermark, a clean end
 *     the store                 built from them, each id read back, and a URL
 *                               that can be; not with --fast
 *
 * A line for each file, and a verdict.  Changes nothing and takes no lock;
 * beside a running service the end of the newest segment may seem torn.
 *
 * urlstore rekey and urlstore stat are at the end of this file.
 */


#include "us_cli_data.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>


#define US_VERIFY_LINES  10           /* ids that get a line each */


typedef struct {
    int  fast;
    int  keys;
} us_verify_own_t;


static us_verify_own_t  us_verify;


static const us_cli_option_t  us_verify_options[] = {
    { 'f', "fast", NULL, "Check the files only; build no store.",
      NULL, offsetof(us_verify_own_t, fast) },
    { 'k', "keys", NULL, "List each URL of which \"www.\" counts otherwise "
      "than when it was stored: by another list of public suffixes, another "
      "www=, or because of urlstore_www_except, which is not known here.",
      NULL, offsetof(us_verify_own_t, keys) },
    { .name = NULL }
};


static int
us_verify_file(us_cli_data_t *d, us_segment_kind_t kind, uint64_t lsn,
    int newest)
{
    int            bad;
    char           name[US_DISK_NAME];
    us_cli_file_t  f;

    us_cli_data_file(&f, d->dirfd, kind, lsn, d->recovery.manifest.uuid);

    bad = 1;

    if (f.end == US_READ_FOOTER && f.size == f.r.at.offset) {
        bad = 0;

    } else if (f.end == US_READ_END) {
        bad = !newest;

    } else if (f.end == US_READ_BAD && newest && f.follow == 0
               && f.r.at.offset)
    {
        printf("torn     %s: %" PRIu64 " bytes to be cut\n", f.error.text,
               f.size - f.r.at.offset);
        bad = 0;
    }

    us_segment_name(name, kind, lsn);

    printf("%s  %s  %" PRIu64 " bytes, %" PRIu64 " blocks, LSN %" PRIu64
           ", %" PRIu64 " ids\n", bad ? "DAMAGED" : "ok     ", name, f.size,
           f.r.at.blocks, f.r.at.lsn, f.r.at.ids);

    if (bad) {
        printf("         %s\n", f.error.text[0] ? f.error.text
                                                 : "it ends without a footer");

        if (f.follow) {
            printf("         %" PRIu64 " valid blocks follow\n", f.follow);
        }
    }

    return bad;
}


/* the file and the block that give an id, into a text for messages */

static void
us_verify_where(us_cli_data_t *d, uint64_t id, char *text, size_t size)
{
    int                 found;
    char                name[US_DISK_NAME];
    size_t              i;
    uint64_t            at;
    us_dir_t            dir;
    us_read_t           rc;
    us_block_t          b;
    us_reader_t         r;
    us_manifest_t      *m;
    const uint8_t      *p;
    us_segment_kind_t   kind;

    m = &d->recovery.manifest;
    snprintf(text, size, "nowhere");

    if (us_dir_read(d->dirfd, &dir, &d->recovery.error) != 0) {
        memset(&dir, 0, sizeof(us_dir_t));
    }

    /* the snapshot, then the segments */

    for (i = !m->has_snapshot, found = 0; i <= dir.nsegments && !found; i++) {
        kind = i ? US_SEGMENT_JOURNAL : US_SEGMENT_SNAPSHOT;
        us_segment_name(name, kind, i ? dir.segments[i - 1] : m->snapshot);

        rc = us_reader_open(&r, d->dirfd, name, kind, m->uuid, &us_data_ops,
                            US_READ_CACHE);

        while (rc == US_READ_BLOCK && !found) {
            at = r.at.offset;
            rc = us_reader_next(&r, &b, &p);

            if (rc == US_READ_BLOCK && b.ids <= id && id < r.at.ids) {
                snprintf(text, size, "given by \"%s\" at offset %" PRIu64,
                         name, at);
                found = 1;
            }
        }

        us_reader_close(&r);
    }

    us_dir_free(&dir);
}


static int
us_verify_store(us_cli_data_t *d, int keys)
{
    char               where[US_DISK_NAME + 64], was[US_MANIFEST_SETTINGS];
    size_t             n, len;
    uint8_t            buf[US_URL_MAX + 8];
    uint64_t           id, next, deleted, bad, changed;
    us_norm_t         *norm;
    us_norm_ws_t      *ws;
    us_store_status_t  rc;

    next = us_store_next_id(d->store);
    deleted = 0;
    bad = 0;
    changed = 0;
    norm = us_manifest_setting(&d->recovery.manifest, "norm", was, sizeof(was))
           == 0 ? us_norm_of(us_str_of(was)) : NULL;
    ws = norm ? us_norm_ws_create(norm) : NULL;

    if (next != d->recovery.ids) {
        printf("DAMAGED  the files give %" PRIu64 " ids, the store %" PRIu64
               "\n", d->recovery.ids, next);
        bad = 1;
    }

    for (id = 0; id < next; id++) {
        rc = us_store_get(d->store, id, buf, &len);

        if (rc == US_DELETED) {
            deleted++;
            continue;
        }

        /* a URL of the store has a host at least */

        n = rc != US_OK ? len
            : len > 8 && memcmp(buf, "https://", 8) == 0 ? 8
            : len > 7 && memcmp(buf, "http://", 7) == 0 ? 7 : len;

        if ((rc != US_OK || n == len || buf[n] == '/')
            && bad++ < US_VERIFY_LINES)
        {
            us_verify_where(d, id, where, sizeof(where));
            printf("DAMAGED  id %" PRIu64 " is no URL, %s\n", id, where);
        }

        if (ws && us_data_changed(d->store, norm, ws, id)) {
            changed++;

            if (keys) {
                printf("changed  id %" PRIu64 " %.*s\n", id, (int) len, buf);
            }
        }
    }

    printf("%s  store  %" PRIu64 " ids read back, %" PRIu64 " deleted, %"
           PRIu64 " damaged\n", bad ? "DAMAGED" : "ok     ", next, deleted,
           bad);

    if (changed) {
        printf("ok       keys   of %" PRIu64 " URLs \"www.\" counts otherwise "
               "than when they were stored%s\n", changed,
               keys ? "" : "; --keys lists them");
    }

    us_norm_ws_destroy(ws);
    us_norm_destroy(norm);

    return bad != 0;
}


static int
us_verify_run(const us_cli_command_t *c, int n, char **args)
{
    us_verify_own_t *own = c->own;

    int              code, bad;
    size_t           i;
    us_dir_t         dir;
    us_cli_data_t    d;

    if (us_cli_data_open(&d, args[0]) != US_CLI_DONE) {
        return US_CLI_USAGE;
    }

    code = US_CLI_DONE;

    if (own->fast) {
        d.rc = us_recovery_open(&d.recovery, d.dirfd, &us_data_ops,
                                us_recovery_ignore, NULL, d.boot);

        if (d.rc == US_RECOVERY_OK) {
            d.rc = us_recovery_run(&d.recovery, 0);
        }

    } else {
        code = us_cli_data_load(&d, 1);
    }

    if (code == US_CLI_DONE && d.rc == US_RECOVERY_FRESH) {
        code = us_cli_data_none(&d);
    }

    if (code != US_CLI_DONE) {
        return us_cli_data_close(&d, code);
    }

    bad = 0;

    if (us_dir_read(d.dirfd, &dir, &d.recovery.error) == 0) {

        for (i = 0; i < dir.nsnapshots; i++) {
            bad |= us_verify_file(&d, US_SEGMENT_SNAPSHOT, dir.snapshots[i],
                                  0);
        }

        for (i = 0; i < dir.nsegments; i++) {
            bad |= us_verify_file(&d, US_SEGMENT_JOURNAL, dir.segments[i],
                                  i == dir.nsegments - 1);
        }

        us_dir_free(&dir);
    }

    if (d.recovery.instead.text[0]) {
        printf("DAMAGED  %s\n", d.recovery.instead.text);
        bad = 1;
    }

    if (d.rc != US_RECOVERY_OK) {
        printf("DAMAGED  %s\n", d.recovery.error.text);
        bad = 1;

    } else if (us_cli_data_answered(&d) > d.recovery.lsn) {
        printf("DAMAGED  LSN %" PRIu64 " was answered, the journal ends at %"
               PRIu64 "\n", us_cli_data_answered(&d), d.recovery.lsn);
        bad = 1;
    }

    if (d.store) {
        bad |= us_verify_store(&d, own->keys);
    }

    printf("%s  good up to LSN %" PRIu64 ", %" PRIu64 " ids\n",
           bad ? "DAMAGED" : "ok     ", d.recovery.lsn, d.recovery.ids);

    return us_cli_data_close(&d, bad ? US_CLI_REFUSED : US_CLI_DONE);
}


const us_cli_command_t  us_cli_verify = {
    .name = "verify",
    .run = us_verify_run,
    .args = "DIR",
    .summary = "check everything that a data directory holds",
    .text =
        "Checks each file on its own, that the files follow each other, that "
        "nothing is missing that a client was answered, and, by building the "
        "store, that each id has a URL. Prints a line for each file and a "
        "verdict.\n\n"
        "It changes nothing and takes no lock. While a service writes to DIR, "
        "the end of the newest segment can look torn.",
    .options = us_verify_options,
    .own = &us_verify,
    .exits =
        " 0   nothing is damaged\n"
        " 1   something is damaged\n"
        " 2   wrong usage, or DIR has no store or could not be read"
};


/*
 * urlstore rekey [--www HOW] DIR: the directory gets the signature of this
 * version, or of another www=.  No key is stored, and the store hashes a URL
 * without "www." (us_store_hash()), so only the manifest changes, as a whole.
 * For that each URL must be its own canonical URL by this version.
 */


static int  us_rekey_www = -1;


static const us_cli_option_t  us_rekey_options[] = {
    { 'w', "www", "HOW", "What www. in front of a host means from now on: "
      "first, keep, strip. Without it, what it has meant.", us_cli_www, 0 },
    { .name = NULL }
};


/* under the directory's lock, of a store that was loaded; was: its signature */

static int
us_rekey_write(us_cli_data_t *d, const us_norm_t *norm, const char *was)
{
    size_t           len;
    uint8_t          buf[US_URL_MAX + 8];
    uint64_t         id, others, changed;
    us_norm_t       *plain;
    us_canon_t       canon;
    us_norm_ws_t    *ws;
    us_manifest_t    m;
    us_data_text_t   text;
    us_store_conf_t  conf;

    /* URLs that are no canonical ones; those whose "www." counts otherwise */

    others = 0;
    changed = 0;
    plain = us_norm_of(us_norm_signature(norm));
    ws = us_norm_ws_create(norm);

    if (plain == NULL || ws == NULL) {
        us_norm_destroy(plain);
        us_norm_ws_destroy(ws);
        return us_cli_failed(d->path, "out of memory");
    }

    us_norm_set_www(plain, US_WWW_KEEP);

    for (id = 0; id < us_store_next_id(d->store); id++) {

        if (us_store_get(d->store, id, buf, &len) != US_OK) {
            continue;
        }

        changed += us_data_changed(d->store, norm, ws, id);

        if ((us_normalize_text(plain, ws, (us_str_t) { len, buf }, NULL,
                               &canon)
             != US_URL_OK
             || us_str_compare(canon.url.href, (us_str_t) { len, buf }) != 0)
            && others++ < US_VERIFY_LINES)
        {
            printf("id %" PRIu64 " is another URL by this version: %.*s\n",
                   id, (int) len, buf);
        }
    }

    us_norm_ws_destroy(ws);
    us_norm_destroy(plain);

    if (others) {
        (void) us_cli_fail("\"%s\": %" PRIu64 " URLs would be others; nothing "
                           "was changed", d->path, others);
        return US_CLI_REFUSED;
    }

    m = d->recovery.manifest;

    if (us_data_conf(&m, &conf, &text, &d->recovery.error) == -1) {
        return us_cli_failed(d->path, d->recovery.error.text);
    }

    conf.norm = us_norm_signature(norm);

    if (us_data_describe(&m, &conf) == -1
        || us_manifest_write(d->dirfd, &m, &d->recovery.error) != 0)
    {
        return us_cli_failed(d->path, d->recovery.error.text);
    }

    printf("\"%s\" is \"%.*s\" now; of %" PRIu64 " URLs \"www.\" counts "
           "otherwise than when they were stored\n", was,
           (int) conf.norm.len, (const char *) conf.norm.data, changed);

    return US_CLI_DONE;
}


static int
us_rekey_run(const us_cli_command_t *c, int n, char **args)
{
    int             code, profile;
    char            was[US_MANIFEST_SETTINGS];
    us_norm_t      *norm;
    const char     *before;
    us_cli_data_t   d;
    us_manifest_t  *m;

    if (us_cli_data_open(&d, args[0]) != US_CLI_DONE) {
        return US_CLI_USAGE;
    }

    norm = NULL;
    m = &d.recovery.manifest;
    code = us_cli_data_lock(&d);
    code = code ? code : us_cli_data_load(&d, 1);
    code = code ? code : us_cli_data_result(&d);

    if (code == US_CLI_DONE
        && (m->state == US_STATE_BACKUP || m->state == US_STATE_REPLICA
            || m->has_log || m->moved))
    {
        code = us_cli_failed(d.path, "it is a backup, or a copy of what "
                             "another server or a log has, and stays as it "
                             "is; those have its signature");
    }

    if (code == US_CLI_DONE) {

        /* a normalizer of DIR's profile, with the www= that it has had */

        if (us_manifest_setting(m, "norm", was, sizeof(was)) == -1) {
            was[0] = '\0';
        }

        profile = us_profile_parse((us_str_t) { strcspn(was, "/"),
                                                (uint8_t *) was });
        before = strstr(was, " www=");

        if (us_rekey_www == -1 && before) {
            (void) us_cli_www(NULL, &us_rekey_www, before + 5);
        }

        norm = profile == -1 || us_rekey_www == -1 ? NULL
               : us_norm_create((us_profile_t) profile);

        if (norm) {
            us_norm_set_www(norm, (us_www_t) us_rekey_www);
            code = us_rekey_write(&d, norm, was);

        } else {
            code = us_cli_failed(d.path, "this version does not have its "
                                 "normalization");
        }
    }

    us_norm_destroy(norm);

    return us_cli_data_close(&d, code);
}


const us_cli_command_t  us_cli_rekey = {
    .name = "rekey",
    .run = us_rekey_run,
    .args = "DIR",
    .summary = "give a data directory the keys of this version",
    .text =
        "Gives DIR the signature of this version: that of its profile, with "
        "the newest tables. All ids keep their URLs. Of two URLs that are one "
        "from now on, the smaller id answers look-ups, and when that is "
        "deleted, the other one.\n\n"
        "If the profile of this version makes another URL of a URL that is "
        "stored, nothing is changed. No service may own DIR.",
    .options = us_rekey_options,
    .own = &us_rekey_www,
    .exits =
        " 0   DIR has the signature\n"
        " 1   something is damaged, or URLs would be others\n"
        " 2   wrong usage, DIR is none that this command can write to, or "
        "something could not be read or written"
};


/*
 * urlstore stat DIR: what a data directory holds.
 *
 * Lines of a name and a value.  Reads the newest segment to its end, of the
 * other files their headers only; takes no lock, so that it may run beside the
 * service.
 */


/* whether a file is damaged, after a message */

static int
us_stat_damage(const us_cli_file_t *f, int whole)
{
    if (!whole) {
        fprintf(stderr, "urlstore: %s\n", f->error.text);
    }

    return !whole;
}


static int
us_stat_run(const us_cli_command_t *c, int n, char **args)
{
    int               fd, code, bad;
    us_dir_t          dir;
    uint64_t          bytes;
    const char       *line, *end;
    us_cli_data_t     d;
    us_manifest_t     m;
    us_cli_file_t     f;
    us_disk_error_t   e;
    us_manifest_rc_t  rc;

    if (us_cli_data_open(&d, args[0]) != US_CLI_DONE) {
        return US_CLI_USAGE;
    }

    if (us_dir_read(d.dirfd, &dir, &e) == -1) {
        code = us_cli_failed(d.path, e.text);
        return us_cli_data_close(&d, code);
    }

    rc = us_manifest_read(d.dirfd, &m, &e);

    if (rc == US_MANIFEST_OK) {
        printf("directory  %s\nformat     %u\nuuid       ", d.path,
               m.version);

        us_cli_hex(m.uuid);
        printf("\nepoch      %" PRIu64 "\nstate      %s\nsync       %s\n"
               "boot       %s%s\n", m.epoch, us_manifest_state(&m), m.sync,
               m.boot, strcmp(m.boot, d.boot) == 0 ? ", this one"
                                                   : ", an earlier one");

        fd = us_disk_lock(d.dirfd, US_DIR_LOCK, O_RDONLY, LOCK_SH|LOCK_NB);
        printf("owner      %s\n", fd == -1 ? "somebody" : "nobody");

        if (fd != -1) {
            (void) close(fd);
        }

        for (line = m.settings; *line; line = end + 1) {
            end = strchr(line, '\n');
            printf("store      %.*s\n", (int) (end - line), line);
        }

        /* the snapshot, the newest segment, and sums; an exit code */

        bad = 0;
        memset(&f, 0, sizeof(us_cli_file_t));

        if (m.has_snapshot) {
            us_cli_data_file(&f, d.dirfd, US_SEGMENT_SNAPSHOT, m.snapshot,
                             m.uuid);
            printf("snapshot   %016" PRIx64 ", %" PRIu64 " bytes, %" PRIu64
                   " ids\n", m.snapshot, f.size, f.r.at.ids);
            bad = us_stat_damage(&f, f.end == US_READ_FOOTER);

        } else {
            printf("snapshot   none\n");
        }

        printf("segments   %zu\n", dir.nsegments);

        if (dir.nsegments) {
            us_cli_data_file(&f, d.dirfd, US_SEGMENT_JOURNAL,
                             dir.segments[dir.nsegments - 1], m.uuid);
            bad |= us_stat_damage(&f, f.end == US_READ_FOOTER
                                      || f.end == US_READ_END);
        }

        printf("ids        %" PRIu64 "\nlsn        %" PRIu64 "\n", f.r.at.ids,
               f.r.at.lsn);

        if (d.marked) {
            printf("written    %" PRIu64 "\ndurable    %" PRIu64 "\n",
                   d.mark.written, d.mark.durable);
        }

        bytes = us_dir_bytes(d.dirfd);
        printf("bytes      %" PRIu64 "\n", bytes);

        if (f.r.at.ids) {
            printf("per id     %.2f\n", (double) bytes / f.r.at.ids);
        }

        code = bad ? US_CLI_REFUSED : US_CLI_DONE;

    } else if (rc == US_MANIFEST_NONE && dir.nsegments + dir.nsnapshots == 0) {
        code = us_cli_data_none(&d);

    } else {
        (void) us_cli_failed(d.path, e.text);
        code = US_CLI_REFUSED;
    }

    us_dir_free(&dir);
    return us_cli_data_close(&d, code);
}


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
