
/*
 * A stream of made-up operations, and a directory to journal it in.
 *
 *     'A' len16 bytes    gives an id
 *     'M' len16 bytes    does not
 *     'B' len32 bytes    the same, of any length
 *
 * The bytes of operation number n are a function of n, so that whatever a
 * recovery gives back can be checked without a copy.
 */


#ifndef _JOURNAL_FAKE_H_INCLUDED_
#define _JOURNAL_FAKE_H_INCLUDED_


#include "journal/us_recovery.h"
#include "journal/us_snapshot.h"
#include "journal/us_dir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>


#define FAKE_BOOT  "11111111-2222-3333-4444-555555555555"
#define FAKE_NEXT  "99999999-2222-3333-4444-555555555555"


static const uint8_t  fake_uuid[16] = "the store's uuid";


static inline ssize_t
fake_size(const uint8_t *p, size_t len)
{
    if (len < 5) {
        return (len == 0 || p[0] == 'A' || p[0] == 'M' || p[0] == 'B')
               ? ((len >= 3 && p[0] != 'B') ? 3 + (p[1] | p[2] << 8) : 0)
               : -1;
    }

    switch (p[0]) {

    case 'A':
    case 'M':
        return 3 + (p[1] | p[2] << 8);

    case 'B':
        return 5 + (ssize_t) us_get32(p + 1);

    default:
        return -1;
    }
}


static inline unsigned
fake_ids(const uint8_t *p, size_t len)
{
    return p[0] == 'A';
}


static const us_ops_t  fake_ops = { fake_size, fake_ids };


static inline uint64_t
fake_mix(uint64_t n)
{
    n += 0x9e3779b97f4a7c15;
    n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9;
    n = (n ^ (n >> 27)) * 0x94d049bb133111eb;

    return n ^ (n >> 31);
}


/* writes operation n at p (at most 70,000 bytes), returns its length */

static inline size_t
fake_op(uint8_t *p, uint64_t n, size_t max)
{
    size_t    i, len, head;
    uint64_t  r;

    r = fake_mix(n);
    len = 1 + r % max;

    if (len > 65535) {
        p[0] = 'B';
        us_put32(p + 1, (uint32_t) len);
        head = 5;

    } else {
        p[0] = (r >> 60) ? 'A' : 'M';
        p[1] = (uint8_t) len;
        p[2] = (uint8_t) (len >> 8);
        head = 3;
    }

    for (i = 0; i < len; i++) {
        p[head + i] = (uint8_t) (fake_mix(r + i / 8) >> (i % 8 * 8));
    }

    return head + len;
}


/* what a recovery gave back: checked against fake_op() as it comes */

typedef struct {
    size_t    max;
    uint64_t  ops;
    uint64_t  ids;
    uint64_t  bytes;
} fake_store_t;


static inline int
fake_apply(void *data, const uint8_t *p, size_t len)
{
    fake_store_t  *s = data;

    size_t          n;
    static uint8_t  op[128 * 1024];

    while (len) {
        n = fake_op(op, s->ops, s->max);

        assert_true(n <= len);
        assert_memory_equal(op, p, n);

        s->ops++;
        s->ids += fake_ids(p, n);
        s->bytes += n;
        p += n;
        len -= n;
    }

    return 0;
}


/* a writer of its own with the stream's position */

typedef struct {
    int           dirfd;
    us_writer_t   w;
    us_tail_t     tail;
    uint64_t      durable;
    fake_store_t  at;
} fake_journal_t;


/* opens an empty directory for writing; m has uuid, epoch and settings */

static inline int
fake_new(int dirfd, us_manifest_t *m, const char *sync)
{
    us_tail_t        tail;
    us_disk_error_t  e;

    memset(&tail, 0, sizeof(us_tail_t));

    return us_recovery_settle(dirfd, m, &tail, FAKE_BOOT, sync, &e);
}


/* the same after a run as owner, with a raised epoch if ids were lost */

static inline int
fake_finish(us_recovery_t *r, const char *sync)
{
    us_manifest_t  m;

    m = r->manifest;
    m.epoch += r->lost;

    if (us_recovery_settle(r->dirfd, &m, &r->tail, r->boot, sync, &r->error)
        != 0)
    {
        return -1;
    }

    r->manifest = m;

    return 0;
}


static inline void
fake_create(fake_journal_t *j, int dirfd, size_t max, uint64_t limit,
    const char *sync)
{
    us_manifest_t  m;

    memset(j, 0, sizeof(fake_journal_t));
    memset(&m, 0, sizeof(us_manifest_t));
    memcpy(m.uuid, fake_uuid, 16);
    m.epoch = 1;

    assert_int_equal(us_manifest_set(&m, "norm", us_string("crawler/1")), 0);
    assert_int_equal(fake_new(dirfd, &m, sync), 0);

    j->dirfd = dirfd;
    j->at.max = max;
    us_writer_init(&j->w, dirfd, fake_uuid, 1, FAKE_BOOT, &fake_ops);
    j->w.limit = limit;

    assert_int_equal(us_writer_attach(&j->w, &j->tail), 0);
}


/* appends n operations in one group; returns us_writer_append()'s answer */

static inline int
fake_append(fake_journal_t *j, unsigned n)
{
    int       rc;
    size_t    len, cut;
    uint8_t  *buf;
    us_str_t  pieces[2];
    uint64_t  op;

    buf = malloc((size_t) n * (j->at.max + 8));
    assert_non_null(buf);

    len = 0;

    for (op = 0; op < n; op++) {
        len += fake_op(buf + len, j->at.ops + op, j->at.max);
    }

    /* cut anywhere, like a ring that wraps */

    cut = fake_mix(j->at.ops) % (len + 1);
    pieces[0] = (us_str_t) { cut, buf };
    pieces[1] = (us_str_t) { len - cut, buf + cut };

    rc = us_writer_append(&j->w, &j->tail, pieces, j->durable);

    /* it ends where a segment is wanted to begin, and at US_WRITER_MAX */

    while (rc == 0 && j->tail.lsn < j->at.bytes + len) {
        cut = j->tail.lsn - j->at.bytes;
        assert_in_range(cut, 1, len);
        pieces[0] = (us_str_t) { len - cut, buf + cut };
        pieces[1].len = 0;

        rc = us_writer_append(&j->w, &j->tail, pieces, j->durable);
    }

    if (rc == 0) {
        for (op = 0, cut = 0; op < n; op++) {
            j->at.ids += fake_ids(buf + cut, 1);
            cut += fake_size(buf + cut, len - cut);
        }

        j->at.ops += n;
        j->at.bytes += len;

        assert_int_equal(j->tail.lsn, j->at.bytes);
        assert_int_equal(j->tail.ids, j->at.ids);

        (void) us_writer_mark(&j->w, &j->tail, j->durable, 0);
    }

    free(buf);

    return rc;
}


static inline int
fake_sync(fake_journal_t *j)
{
    int  rc;

    rc = us_writer_sync(&j->w, &j->tail);

    if (rc == 0) {
        j->durable = j->tail.lsn;
        (void) us_writer_mark(&j->w, &j->tail, j->durable, 0);
    }

    return rc;
}


/* directories */

static inline int
fake_mkdir(char *path)
{
    int          fd;
    const char  *base;

    base = (access("/dev/shm", W_OK) == 0) ? "/dev/shm" : "/tmp";
    sprintf(path, "%s/us-journal-XXXXXX", base);

    assert_non_null(mkdtemp(path));

    fd = open(path, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    assert_int_not_equal(fd, -1);

    return fd;
}


static inline void
fake_empty(int dirfd)
{
    DIR            *d;
    struct dirent  *de;

    d = fdopendir(dup(dirfd));
    assert_non_null(d);
    rewinddir(d);

    while ((de = readdir(d)) != NULL) {
        if (de->d_name[0] != '.') {
            (void) unlinkat(dirfd, de->d_name, 0);
        }
    }

    (void) closedir(d);
}


static inline void
fake_rmdir(char *path, int dirfd)
{
    fake_empty(dirfd);
    (void) close(dirfd);
    (void) rmdir(path);
}


static inline uint8_t *
fake_read(int dirfd, const char *name, size_t *len)
{
    int          fd;
    uint8_t     *p;
    struct stat  st;

    fd = openat(dirfd, name, O_RDONLY);
    assert_int_not_equal(fd, -1);
    assert_int_equal(fstat(fd, &st), 0);

    p = malloc(st.st_size + 1);
    assert_non_null(p);
    assert_int_equal(us_disk_pread(fd, p, st.st_size, 0), st.st_size);
    (void) close(fd);

    *len = st.st_size;

    return p;
}


static inline void
fake_write(int dirfd, const char *name, const uint8_t *p, size_t len)
{
    int  fd;

    fd = openat(dirfd, name, O_WRONLY|O_CREAT|O_TRUNC, 0600);
    assert_int_not_equal(fd, -1);
    assert_int_equal(us_disk_pwrite(fd, p, len, 0), 0);
    (void) close(fd);
}


/* a whole recovery; r is left open for a look */

static inline us_recovery_rc_t
fake_recover(us_recovery_t *r, fake_store_t *s, int dirfd, size_t max,
    const char *boot, int owner)
{
    us_recovery_rc_t  rc;

    memset(s, 0, sizeof(fake_store_t));
    s->max = max;

    rc = us_recovery_open(r, dirfd, &fake_ops, fake_apply, s, boot);

    if (rc == US_RECOVERY_OK) {
        rc = us_recovery_run(r, owner);
    }

    us_recovery_close(r);

    return rc;
}


#endif /* _JOURNAL_FAKE_H_INCLUDED_ */
