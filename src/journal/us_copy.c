
/*
 * A directory that is a copy.  See us_copy.h.
 */


#include "us_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>


void
us_copy_init(us_copy_t *c, int dirfd)
{
    c->dirfd = dirfd;
    c->fd = -1;
}


void
us_copy_close(us_copy_t *c)
{
    if (c->fd != -1) {
        (void) close(c->fd);
        c->fd = -1;
    }
}


/* the file that goes on */

static int
us_copy_resume(us_copy_t *c, const us_place_t *from)
{
    char         name[US_DISK_NAME];
    struct stat  st;

    us_copy_close(c);
    us_segment_name(name, from->kind, from->tail.segment);

    c->fd = openat(c->dirfd, name, O_RDWR|O_NOFOLLOW|O_CLOEXEC);

    if (c->fd == -1 || fstat(c->fd, &st) == -1) {
        (void) us_disk_fail(&c->error, errno, "\"%s\" could not be opened",
                            name);
        return c->error.err == ENOENT ? US_COPY_GONE : -1;
    }

    if ((uint64_t) st.st_size < from->tail.offset) {
        (void) us_disk_fail(&c->error, 0, "\"%s\" has become shorter", name);
        return US_COPY_GONE;
    }

    if (ftruncate(c->fd, (off_t) from->tail.offset) == -1) {
        return us_disk_fail(&c->error, errno, "\"%s\" could not be cut", name);
    }

    return 0;
}


static int
us_copy_manifest(us_copy_t *c, const us_manifest_t *m, int has_snapshot,
    uint64_t snapshot)
{
    us_manifest_t  own;

    own = *m;
    own.state = US_STATE_REPLICA;
    own.end = 0;
    own.end_ids = 0;
    own.has_snapshot = has_snapshot != 0;
    own.snapshot = snapshot;

    us_manifest_boot(own.boot);
    (void) snprintf(own.sync, sizeof(own.sync), "off");

    return us_manifest_write(c->dirfd, &own, &c->error) == 0 ? 0 : -1;
}


static int
us_copy_write(us_copy_t *c, const us_frame_t *f, uint64_t offset)
{
    if (us_disk_pwrite(c->fd, f->p, f->len, offset) == -1) {
        return us_disk_fail(&c->error, errno, "a write to the copy failed");
    }

    return 0;
}


/* a new file */

static int
us_copy_begin(us_copy_t *c, const us_place_t *from, const us_place_t *to,
    const us_frame_t *f, const us_manifest_t *m)
{
    char              name[US_DISK_NAME];
    us_manifest_t     mark;
    us_manifest_rc_t  rc;

    us_copy_close(c);
    us_segment_name(name, to->kind, to->tail.segment);

    /* before the first file: it is going to be a copy */

    rc = us_manifest_read(c->dirfd, &mark, &c->error);

    if (rc == US_MANIFEST_NONE) {
        mark = *m;
        mark.version = 1;
        mark.settings[0] = '\0';
        mark.has_log = 0;

        if (us_copy_manifest(c, &mark, 0, 0) == -1) {
            return -1;
        }

    } else if (rc != US_MANIFEST_OK) {
        return -1;
    }

    c->fd = us_disk_create(c->dirfd, name, O_RDWR|O_TRUNC);

    if (c->fd == -1) {
        return us_disk_fail(&c->error, errno, "\"%s\" could not be made", name);
    }

    if (us_copy_write(c, f, 0) == -1) {
        return -1;
    }

    if (to->kind == US_SEGMENT_SNAPSHOT
        || (from->kind == US_SEGMENT_JOURNAL && from->tail.lsn))
    {
        return 0;
    }

    /* the first segment: all before it is there */

    if (us_copy_sync(c) == -1) {
        return -1;
    }

    return us_copy_manifest(c, m, from->kind == US_SEGMENT_SNAPSHOT,
                            from->tail.segment);
}


int
us_copy_frame(us_copy_t *c, const us_place_t *from, const us_place_t *to,
    const us_frame_t *f, const us_manifest_t *m)
{
    switch (f->type) {

    case US_FRAME_HEAD:
        return from->tail.offset ? us_copy_resume(c, from)
                                 : us_copy_begin(c, from, to, f, m);

    case US_FRAME_BLOCK:
        return us_copy_write(c, f, from->tail.offset);

    case US_FRAME_FOOTER:

        if (us_copy_write(c, f, from->tail.offset) == -1
            || us_copy_sync(c) == -1)
        {
            return -1;
        }

        us_copy_close(c);

        return 0;

    default:
        return 0;
    }
}


int
us_copy_sync(us_copy_t *c)
{
    if (c->fd != -1 && us_disk_sync(c->fd) == -1) {
        return us_disk_fail(&c->error, errno, "fdatasync of the copy failed");
    }

    return 0;
}


static int
us_copy_head(us_copy_t *c, us_place_t *at, const us_manifest_t *m)
{
    int                rc;
    uint8_t            p[US_SEGMENT_HEADER];
    us_place_t         to;
    us_frame_t         f;
    us_segment_head_t  h;

    h.kind = US_SEGMENT_JOURNAL;
    memcpy(h.uuid, at->uuid, 16);
    h.epoch = at->epoch;

    to = *at;
    f.type = US_FRAME_HEAD;
    f.p = p;
    f.len = us_tail_begin(&to.tail, p, &h);

    rc = us_copy_frame(c, at, &to, &f, m);

    if (rc == 0) {
        *at = to;
    }

    return rc;
}


int
us_copy_start(us_copy_t *c, us_place_t *at, const us_manifest_t *m,
    uint64_t lsn, uint64_t ids)
{
    us_place_start(at, m);
    at->tail.lsn = lsn;
    at->tail.ids = ids;

    return us_copy_head(c, at, m) == 0 && us_copy_sync(c) == 0
           ? us_copy_manifest(c, m, 0, 0) : -1;
}


/*
 * The operations as a block; without any, the footer.  Whatever happens, *at is
 * a place up to which all is written.
 */

static int
us_copy_block(us_copy_t *c, us_place_t *at, const us_manifest_t *m,
    us_str_t ops, uint64_t ids)
{
    int          rc;
    uint8_t     *p;
    us_place_t   to;
    us_frame_t   f;

    p = malloc(US_BLOCK_HEADER + ops.len);

    if (p == NULL) {
        return us_disk_fail(&c->error, ENOMEM, "no memory for %zu bytes",
                            ops.len);
    }

    to = *at;
    f.p = p;
    f.len = US_BLOCK_HEADER + ops.len;

    if (ops.len) {
        memcpy(p + US_BLOCK_HEADER, ops.data, ops.len);
        f.type = US_FRAME_BLOCK;
        (void) us_tail_block(&to.tail, p, ops.len, ids, 0);

    } else {
        f.type = US_FRAME_FOOTER;
        us_tail_footer(&to.tail, p);
    }

    rc = us_copy_frame(c, at, &to, &f, m);

    if (rc == 0) {
        *at = to;
    }

    free(p);

    return rc;
}


int
us_copy_roll(us_copy_t *c, us_place_t *at, const us_manifest_t *m,
    uint64_t limit)
{
    int          rc;
    struct stat  st;

    rc = 0;

    if (at->tail.offset && c->fd == -1) {
        rc = us_copy_resume(c, at);

    } else if (at->tail.offset
               && (fstat(c->fd, &st) == -1 || st.st_nlink == 0))
    {
        (void) us_disk_fail(&c->error, 0, "the newest file is gone");
        rc = US_COPY_GONE;
    }

    if (rc == 0 && at->tail.offset >= limit) {
        rc = us_copy_block(c, at, m, (us_str_t) { 0, NULL }, 0);
    }

    return rc == 0 && at->tail.offset == 0 ? us_copy_head(c, at, m) : rc;
}


int
us_copy_append(us_copy_t *c, us_place_t *at, const us_manifest_t *m,
    us_str_t ops, uint64_t ids, uint64_t limit)
{
    int  rc;

    rc = us_copy_roll(c, at, m, limit);

    return rc == 0 ? us_copy_block(c, at, m, ops, ids) : rc;
}


int
us_copy_settings(us_copy_t *c, const us_manifest_t *m)
{
    us_manifest_t  own, next;

    switch (us_manifest_read(c->dirfd, &own, &c->error)) {

    case US_MANIFEST_NONE:
        return 0;

    case US_MANIFEST_OK:
        break;

    default:
        return -1;
    }

    next = *m;
    next.has_log = own.has_log;
    next.log = own.log;

    return !us_manifest_begun(&own)
           || (own.version == m->version
               && strcmp(own.settings, m->settings) == 0)
           ? 0 : us_copy_manifest(c, &next, own.has_snapshot, own.snapshot);
}


void
us_copy_place(us_place_t *at, const us_recovery_t *r)
{
    us_place_start(at, &r->manifest);
    at->tail = r->tail;
}
