
/*
 * A store in a data directory.  See us_data.h.
 */


#include "us_data.h"
#include "../journal/us_dir.h"
#include "../store/us_shard.h"
#include "../us_fault.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>


#define US_DATA_SLICE  (1024 * 1024)  /* bytes of a dump between two waits */


typedef struct {
    us_snapshot_t    snapshot;
    us_data_wait_pt  wait;
    void            *data;
    size_t           since;
} us_data_dump_t;


const us_ops_t  us_data_ops = { us_store_op_size, us_store_op_ids };


static void
us_data_marks(const us_store_conf_t *conf, char *text)
{
    unsigned  i;

    *text = '\0';

    for (i = 0; i < conf->nmarks; i++) {
        text += sprintf(text, "%s%.*s", i ? "," : "",
                        (int) conf->marks[i].len,
                        (const char *) conf->marks[i].data);
    }
}


static const char *
us_data_schemes(const us_store_conf_t *conf)
{
    return conf->schemes_first ? "first" : "keep";
}


int
us_data_describe(us_manifest_t *m, const us_store_conf_t *conf)
{
    char  marks[US_STORE_MARKS * (US_STORE_MARK_LEN + 1)];

    /* operations of what there was stay in the journal when there is none */

    m->version = conf->erases || m->version == 7 ? 7
                 : conf->sets || conf->nmarks || m->version == 6 ? 6
                 : conf->keys || m->version == 5 ? 5
                 : conf->revisit ? 4 : conf->is_shard ? 3 : 1;
    memcpy(m->uuid, conf->uuid, sizeof(m->uuid));
    m->epoch = conf->epoch;
    m->settings[0] = '\0';

    us_data_marks(conf, marks);

    if (us_manifest_set(m, "norm", conf->norm) == -1
        || us_manifest_set(m, "schemes", us_str_of(us_data_schemes(conf)))
           == -1
        || us_manifest_set(m, "sites",
                           conf->sites ? us_string("on")
                                       : us_string("off")) == -1
        || (marks[0] && us_manifest_set(m, "marks", us_str_of(marks)) == -1)
        || (conf->revisit
            && us_manifest_set_number(m, "revisit", conf->revisit) == -1)
        || (conf->is_shard
            && us_manifest_set_number(m, "shard", conf->shard) == -1))
    {
        return -1;
    }

    return 0;
}


/*
 * *n: the number that is set, of at least min and at most max; -1: none is.
 * 0; or -1, e: what is set is no such number.
 */

static int
us_data_number(const us_manifest_t *m, const char *key, unsigned min,
    unsigned max, int64_t *n, us_disk_error_t *e)
{
    char           value[US_MANIFEST_SETTINGS], *end;
    unsigned long  number;

    *n = -1;

    if (us_manifest_setting(m, key, value, sizeof(value)) == -1) {
        return 0;
    }

    number = strtoul(value, &end, 10);

    if (value[0] < '0' || value[0] > '9' || *end || number < min
        || number > max)
    {
        return us_disk_fail(e, 0, "\"manifest\" has %s \"%.150s\", which is no "
                            "number from %u to %u", key, value, min, max);
    }

    *n = (int64_t) number;

    return 0;
}


int
us_data_copied(int dirfd, us_disk_error_t *e)
{
    size_t            n;
    us_dir_t          dir;
    us_manifest_t     m;
    us_manifest_rc_t  rc;

    rc = us_manifest_read(dirfd, &m, e);

    if (rc == US_MANIFEST_NONE) {

        if (us_dir_read(dirfd, &dir, e) == -1) {
            return -1;
        }

        n = dir.nsegments + dir.nsnapshots;
        us_dir_free(&dir);

        return n == 0 ? 0
               : us_disk_fail(e, 0, "it has a journal or a snapshot, but no "
                              "\"manifest\" that says that they are a "
                              "replica's copy, which a zone with \"follow=\" "
                              "or \"replicate=\" may replace; no file was "
                              "touched: an empty directory is needed");
    }

    if (rc != US_MANIFEST_OK) {
        return -1;
    }

    return m.state == US_STATE_REPLICA ? 0
           : us_disk_fail(e, 0, "it has a store that is no replica's copy, and "
                          "a zone with \"follow=\" or \"replicate=\" would "
                          "replace it; an empty directory is needed");
}


int
us_data_differs(const us_manifest_t *m, const us_store_conf_t *conf,
    us_disk_error_t *e)
{
    char              now[US_STORE_MARKS * (US_STORE_MARK_LEN + 1)];
    size_t            len;
    us_data_text_t    text;
    us_store_conf_t   have;

    /* a backup or a copy, to which no owner writes, may be read */

    if (!conf->lookup && m->state == US_STATE_REPLICA) {
        return us_disk_fail(e, 0, "it is a replica's copy of another server's "
                            "store, which is only read; a zone with "
                            "\"follow=\" or \"replicate=\" goes on with it");
    }

    if (!conf->lookup && m->moved) {
        return us_disk_fail(e, 0, "its store is in a replicated log now, made "
                            "with \"base=\", and has gone on there; a zone "
                            "with \"replicate=\" goes on with it; \"urlstore "
                            "restore DIR\" makes a store of its own of what "
                            "the directory has");
    }

    if (!conf->lookup && m->state == US_STATE_BACKUP) {
        return us_disk_fail(e, 0, "it is a backup, which is only read; "
                            "\"urlstore restore\" makes a data directory of "
                            "it");
    }

    if (us_data_conf(m, &have, &text, e) == -1) {
        return -1;
    }

    if (!us_norm_same(have.norm, conf->norm)) {
        return us_disk_fail(e, 0, "its data were stored with norm \"%s\", not "
                            "with \"%.*s\"; \"urlstore rekey\" changes the "
                            "version and www= of a directory", text.norm,
                            (int) conf->norm.len,
                            (const char *) conf->norm.data);
    }

    if (have.schemes_first != conf->schemes_first) {
        return us_disk_fail(e, 0, "its data were stored with schemes \"%s\", "
                            "not with \"%s\"", us_data_schemes(&have),
                            us_data_schemes(conf));
    }

    /*
     * A directory that was no shard can become shard 0, whose ids are the same.
     * Nothing else about a shard can be changed.
     */

    if (have.is_shard && (!conf->is_shard || have.shard != conf->shard)) {
        return us_disk_fail(e, 0, "its data are those of shard %u of a "
                            "cluster; the zone needs \"cluster=\" and "
                            "\"shard=%u\"", have.shard, have.shard);
    }

    if (!have.is_shard && conf->is_shard && conf->shard) {
        return us_disk_fail(e, 0, "its data are of no cluster: they can become "
                            "shard 0, not shard %u; another shard begins with "
                            "an empty directory", conf->shard);
    }

    /* claims may be added */

    if (have.revisit && have.revisit != conf->revisit) {
        return us_disk_fail(e, 0, "its data were stored with revisit \"%us\", "
                            "not with \"%us\"; it can neither be removed nor "
                            "changed: a new directory, which \"urlstore dump "
                            "--times\" and \"urlstore import --revisit\" "
                            "fill, can have another one",
                            have.revisit, conf->revisit);
    }

    /* marks may be added at the end, and sites may be counted or not */

    us_data_marks(conf, now);
    len = strlen(text.marks);

    if (len == 0
        || (strncmp(text.marks, now, len) == 0
            && (now[len] == '\0' || now[len] == ',')))
    {
        return 0;
    }

    return us_disk_fail(e, 0, "its data were stored with marks \"%.150s\", not "
                        "with \"%.150s\"; marks can only be added, after "
                        "these: the zone needs \"marks=%.150s\"", text.marks,
                        now, text.marks);
}


int
us_data_conf(const us_manifest_t *m, us_store_conf_t *conf,
    us_data_text_t *text, us_disk_error_t *e)
{
    char      value[US_MANIFEST_SETTINGS];
    char     *p, *end;
    int64_t   shard, unit;

    text->marks[0] = '\0';
    memset(conf, 0, sizeof(us_store_conf_t));
    memcpy(conf->uuid, m->uuid, sizeof(conf->uuid));
    conf->epoch = m->epoch;

    if (us_manifest_setting(m, "norm", text->norm, sizeof(text->norm)) == -1) {
        return us_disk_fail(e, 0, "\"manifest\" names no normalization");
    }

    conf->norm.data = (uint8_t *) text->norm;
    conf->norm.len = strlen(text->norm);

    if (us_manifest_setting(m, "schemes", value, sizeof(value)) == 0) {
        conf->schemes_first = (strcmp(value, "first") == 0);

        if (strcmp(value, us_data_schemes(conf)) != 0) {
            return us_disk_fail(e, 0, "\"manifest\" has schemes \"%.150s\", "
                                "which is neither \"first\" nor \"keep\"",
                                value);
        }
    }

    conf->sites = (us_manifest_setting(m, "sites", value, sizeof(value)) == 0
                   && strcmp(value, "on") == 0);
    conf->sets = m->version >= 6;
    conf->erases = m->version >= 7;

    if (us_data_number(m, "revisit", US_STORE_REVISIT_MIN,
                       US_STORE_REVISIT_MAX, &unit, e)
        == -1
        || us_data_number(m, "shard", 0, US_SHARDS - 1, &shard, e) == -1)
    {
        return -1;
    }

    conf->revisit = unit != -1 ? (uint32_t) unit : 0;
    conf->is_shard = shard != -1;
    conf->shard = conf->is_shard ? (uint32_t) shard : 0;

    if (us_manifest_setting(m, "marks", text->marks, sizeof(text->marks))
        == -1)
    {
        return 0;
    }

    for (p = text->marks; p; p = end ? end + 1 : NULL) {
        end = strchr(p, ',');

        if (conf->nmarks == US_STORE_MARKS) {
            return us_disk_fail(e, 0, "\"manifest\" names too many marks");
        }

        conf->marks[conf->nmarks].data = (uint8_t *) p;
        conf->marks[conf->nmarks++].len = end ? (size_t) (end - p)
                                              : strlen(p);
    }

    return 0;
}


int
us_data_settle(us_store_t *s, int dirfd, const us_tail_t *tail,
    const char *sync, us_disk_error_t *e)
{
    char              boot[US_BOOT_ID + 1];
    us_manifest_t     m;
    us_store_conf_t   conf;
    us_manifest_rc_t  rc;

    /* the snapshot stays that of the manifest; a new directory has none */

    rc = us_manifest_read(dirfd, &m, e);

    if (rc != US_MANIFEST_OK && rc != US_MANIFEST_NONE) {
        return -1;
    }

    us_store_conf(s, &conf);

    if (us_data_describe(&m, &conf) == -1) {
        return us_disk_fail(e, 0, "the settings are too long");
    }

    us_manifest_boot(boot);

    return us_recovery_settle(dirfd, &m, tail, boot, sync, e);
}


int
us_data_lacks(const us_store_t *s, const us_store_conf_t *want)
{
    uint32_t  shard;

    us_store_conf_t  have;

    us_store_conf(s, &have);

    return want->nmarks > have.nmarks || (want->sets && !have.sets)
           || (want->erases && !have.erases)
           || (want->revisit && us_store_revisit(s) == 0)
           || (want->is_shard && !us_store_is_shard(s, &shard));
}


int
us_data_declare(us_store_t *s, int dirfd, const us_store_conf_t *want,
    us_disk_error_t *e)
{
    int              rc;
    us_manifest_t    m;
    us_store_conf_t  conf;

    us_store_conf(s, &conf);

    memcpy(conf.marks, want->marks, sizeof(conf.marks));
    conf.nmarks = want->nmarks;
    conf.sets |= want->sets;
    conf.erases |= want->erases;
    conf.revisit = want->revisit;
    conf.is_shard = want->is_shard;
    conf.shard = want->shard;

    if (us_manifest_read(dirfd, &m, e) != US_MANIFEST_OK
        || us_data_differs(&m, &conf, e) == -1)
    {
        return -1;
    }

    if (us_data_describe(&m, &conf) == -1) {
        return us_disk_fail(e, 0, "the settings are too long");
    }

    rc = us_manifest_write(dirfd, &m, e);

    us_fault(US_FAULT_DECLARE);

    if (rc == 0 && us_store_add_marks(s, want->marks, want->nmarks) == -1) {
        rc = us_disk_fail(e, 0, "the store has other marks");
    }

    us_fault(US_FAULT_DECLARED);

    if (rc == 0) {
        us_store_allow(s, want);
    }

    if (rc == 0 && us_store_set_revisit(s, want->revisit) == -1) {
        rc = us_disk_fail(e, 0, "the store keeps claims by units of %u s",
                          us_store_revisit(s));
    }

    if (rc == 0 && want->is_shard
        && us_store_set_shard(s, want->shard) == -1)
    {
        rc = us_disk_fail(e, 0, "the store is another shard than %u",
                          want->shard);
    }

    return rc;
}


int
us_data_changed(us_store_t *s, const us_norm_t *norm, us_norm_ws_t *ws,
    uint64_t id)
{
    int       merged;
    size_t    len;
    uint8_t   url[US_URL_MAX + 8];

    merged = us_store_merged(s, id);

    return merged != -1 && us_store_get(s, id, url, &len) == US_OK
           && merged != (us_norm_merge(norm, ws, (us_str_t) { len, url })
                         != US_MERGE_NO);
}


int
us_data_apply(void *data, const uint8_t *p, size_t len)
{
    ssize_t  rc;

    rc = len ? us_store_apply(data, p, len) : us_store_settle(data);

    switch (rc) {

    case US_REPLAY_NO_ROOM:
        return US_RECOVERY_NO_ROOM;

    case US_REPLAY_FAILED:
        return US_RECOVERY_NO_MEMORY;

    default:
        return (rc == (ssize_t) len) ? 0 : -1;
    }
}


static int
us_data_out(void *data, const uint8_t *p, size_t len)
{
    us_data_dump_t  *d = data;

    d->since += len;

    if (d->since >= US_DATA_SLICE) {
        d->since = 0;

        if (d->wait && d->wait(d->data, 0, 0) != 0) {
            return us_disk_fail(&d->snapshot.error, 0, "the process is ending");
        }
    }

    return us_snapshot_out(&d->snapshot, p, len);
}


int
us_data_snapshot(us_store_t *s, int dirfd, us_data_wait_pt wait, void *data,
    const us_manifest_log_t *log, us_manifest_t *m, us_disk_error_t *e)
{
    int              rc, stale;
    uint64_t         lsn, until;
    us_data_dump_t   d;
    us_store_conf_t  conf;

    us_store_conf(s, &conf);

    d.wait = wait;
    d.data = data;
    d.since = US_DATA_SLICE;
    lsn = 0;

    rc = us_snapshot_begin(&d.snapshot, dirfd, conf.uuid, conf.epoch,
                           &us_data_ops);

    /* what is past its time is left out */

    us_store_time(s, (uint64_t) time(NULL));

    if (rc == 0) {
        rc = us_store_dump(s, us_data_out, &d, &lsn);
    }

    /* in this order: a map that was adopted becomes durable first */

    stale = us_store_map_stale(s);
    until = us_store_complete(s);

    if (rc == 0 && wait && wait(data, lsn, until) != 0) {
        rc = us_disk_fail(&d.snapshot.error, 0, "LSN %" PRIu64 " did not "
                          "become durable", until);
    }

    if (rc == 0 && us_manifest_read(dirfd, m, &d.snapshot.error)
                   != US_MANIFEST_OK)
    {
        rc = -1;
    }

    if (rc == 0) {
        m->has_restored &= stale;

        if (log) {
            m->has_log = 1;
            m->log = *log;
        }

        rc = us_snapshot_finish(&d.snapshot, lsn, m);
    }

    if (rc == 0) {
        (void) us_snapshot_drop(dirfd, m);
    }

    *e = d.snapshot.error;

    us_snapshot_end(&d.snapshot);

    return rc;
}
