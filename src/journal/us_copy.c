
/*
 * A directory that is a copy.  See us_copy.h.
 */


#include "us_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>


static int us_copy_begin(us_copy_t *c, const us_place_t *from,
    const us_place_t *to, const us_frame_t *f, const us_manifest_t *m);
static int us_copy_resume(us_copy_t *c, const us_place_t *from);
static int us_copy_write(us_copy_t *c, const us_frame_t *f, uint64_t offset);
static int us_copy_manifest(us_copy_t *c, const us_manifest_t *m,
    int has_snapshot, uint64_t snapshot);


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


/* a new file */

static int
us_copy_begin(us_copy_t *c, const us_place_t *from, const us_place_t *to,
    const us_frame_t *f, const us_manifest_t *m)
{
    char  name[US_DISK_NAME];

    us_copy_close(c);
    us_segment_name(name, to->kind, to->tail.segment);

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
us_copy_write(us_copy_t *c, const us_frame_t *f, uint64_t offset)
{
    if (us_disk_pwrite(c->fd, f->p, f->len, offset) == -1) {
        return us_disk_fail(&c->error, errno, "a write to the copy failed");
    }

    return 0;
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


int
us_copy_settings(us_copy_t *c, const us_manifest_t *m)
{
    us_manifest_t  own;

    switch (us_manifest_read(c->dirfd, &own, &c->error)) {

    case US_MANIFEST_NONE:
        return 0;

    case US_MANIFEST_OK:
        break;

    default:
        return -1;
    }

    return own.version == m->version && strcmp(own.settings, m->settings) == 0
           ? 0 : us_copy_manifest(c, m, own.has_snapshot, own.snapshot);
}


void
us_copy_place(us_place_t *at, const us_recovery_t *r)
{
    us_place_start(at, &r->manifest);
    at->tail = r->tail;
}
