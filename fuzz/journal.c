
/*
 * The readers of a data directory, on files that nobody wrote:
 *
 *   input   | what: 2, snapshot: 1, restarted: 1 bit | ...
 *
 *   what 0   the bytes of the file
 *   what 1   blocks as the writer makes them, then changes: offset 2, xor 1
 *   what 2   blocks with good CRCs, but wrong in what they say
 *   what 3   a manifest; its CRC is made right
 *
 *   reader     gives the blocks that the format allows, byte by byte and not
 *              one more (what it allows is written down here once more)
 *   probe      finds the first valid block, or none
 *   recovery   applies these blocks; cuts the journal behind them or leaves
 *              it untouched; and does the same when it is done again
 *   manifest   what was read is written, read and written again the same
 */


#include "journal/us_crc32c.h"
#include "journal/us_recovery.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>


#define FILE_MAX  65536

#define BOOT      "11111111-2222-3333-4444-555555555555"
#define RESTART   "99999999-2222-3333-4444-555555555555"


/* what is wrong with a block of kind 2 */

#define WRONG_PREV     0x01
#define WRONG_LSN      0x02
#define WRONG_IDS      0x04
#define WRONG_FOOTER   0x08           /* here it ends */
#define WRONG_COUNT    0x10
#define WRONG_DURABLE  0x20
#define WRONG_OPS      0x40
#define WRONG_SIZE     0x80


/* the blocks of a file: by the letter of us_segment.h */

typedef struct {
    us_segment_kind_t  kind;
    uint32_t           seed;
    uint64_t           lsn;
    uint64_t           ids;
    uint64_t           blocks;
    uint32_t           prev;
    size_t             at;
    uint64_t           footer;        /* its LSN */
} walk_t;


int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__asan_default_options(void);


static const uint8_t  uuid[16] = "the store's uuid";

static const char    *names[] = {
    "journal.0000000000000000", "snapshot.0000000000000000"
};

static char           path[64];
static int            dirfd;

/* one for each kind of file */
static uint8_t        manifests[2][1024];
static size_t         manifest_len[2];

static uint8_t        file[FILE_MAX];
static size_t         file_len;

/* what a reader gave */
static uint8_t        payload[FILE_MAX];
static size_t         payload_len;


static void
broken(const char *law)
{
    fprintf(stderr, "law \"%s\" broken\n", law);
    abort();
}


/* operations: | 'A' or 'M' | length: 1 | bytes |; an A gives an id */

static ssize_t
op_size(const uint8_t *p, size_t len)
{
    if (len && p[0] != 'A' && p[0] != 'M') {
        return -1;
    }

    return len < 2 ? 0 : 2 + p[1];
}


static unsigned
op_ids(const uint8_t *p, size_t len)
{
    return p[0] == 'A';
}


static const us_ops_t  ops = { op_size, op_ids };


static void
put_file(const char *name, const uint8_t *p, size_t len)
{
    int  fd;

    fd = openat(dirfd, name, O_WRONLY|O_CREAT|O_TRUNC, 0600);

    if (fd == -1 || us_disk_pwrite(fd, p, len, 0) != 0) {
        perror(name);
        abort();
    }

    (void) close(fd);
}


static void
leave(void)
{
    size_t       i;
    const char  *all[] = {
        names[0], names[1], US_MANIFEST_NAME, "readers", "watermark"
    };

    for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        (void) unlinkat(dirfd, all[i], 0);
    }

    (void) rmdir(path);
}


/* each reader has 256 KB: they are given back, or most of the time is theirs */

const char *
__asan_default_options(void)
{
    return "quarantine_size_mb=1";
}


int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    int              fd, i;
    us_manifest_t    m;
    us_disk_error_t  e;

    snprintf(path, sizeof(path), "%s/us-fuzz-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");

    if (mkdtemp(path) == NULL) {
        perror(path);
        abort();
    }

    dirfd = open(path, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    (void) atexit(leave);

    memset(&m, 0, sizeof(m));
    memcpy(m.uuid, uuid, 16);
    m.epoch = 1;
    m.state = US_STATE_OPEN;
    strcpy(m.boot, BOOT);
    strcpy(m.sync, "always");

    for (i = 0; i < 2; i++) {
        m.has_snapshot = (i == US_SEGMENT_SNAPSHOT);

        if (us_manifest_write(dirfd, &m, &e) != 0) {
            broken("the directory can be written");
        }

        fd = openat(dirfd, US_MANIFEST_NAME, O_RDONLY);
        manifest_len[i] = us_disk_pread(fd, manifests[i],
                                        sizeof(manifests[i]), 0);
        (void) close(fd);
    }

    return 0;
}


/* a whole block or footer lies at `at`, and its own CRC is right */

static int
valid(size_t at, uint32_t seed)
{
    uint32_t        len, crc;
    const uint8_t  *p;

    if (at > file_len || file_len - at < US_BLOCK_HEADER) {
        return 0;
    }

    p = file + at;
    len = us_get32(p + 4);

    if (memcmp(p, len ? "USBK" : "USFT", 4) != 0
        || len > file_len - at - US_BLOCK_HEADER)
    {
        return 0;
    }

    crc = us_crc32c_table(seed, p, 44);
    crc = us_crc32c_table(crc, p + US_BLOCK_HEADER, len);

    return crc == us_get32(p + 44);
}


/* 0: the header is none that may be read */

static int
walk_open(walk_t *w, us_segment_kind_t kind)
{
    memset(w, 0, sizeof(*w));

    if (file_len < US_SEGMENT_HEADER
        || memcmp(file, kind == US_SEGMENT_JOURNAL ? "USJRNL\r\n"
                                                   : "USSNAP\r\n", 8) != 0
        || us_crc32c_table(0, file, 60) != us_get32(file + 60)
        || us_get32(file + 8) == 0
        || us_get32(file + 8) > (kind == US_SEGMENT_JOURNAL ? 1 : 2)
        || memcmp(file + 16, uuid, 16) != 0
        || (kind == US_SEGMENT_JOURNAL && us_get64(file + 40) != 0))
    {
        return 0;
    }

    w->kind = kind;
    w->seed = us_get32(file + 60);
    w->lsn = us_get64(file + 40);
    w->ids = us_get64(file + 48);
    w->prev = w->seed;
    w->at = US_SEGMENT_HEADER;

    return 1;
}


static us_read_t
walk_next(walk_t *w)
{
    size_t    len, used;
    uint8_t  *p;

    if (w->at == file_len) {
        return US_READ_END;
    }

    if (!valid(w->at, w->seed)) {
        return US_READ_BAD;
    }

    p = file + w->at;
    len = us_get32(p + 4);

    if (us_get32(p + 32) != w->prev || us_get64(p + 16) != w->ids) {
        return US_READ_BAD;
    }

    if (us_get64(p + 8) != w->lsn
        && (len || w->kind == US_SEGMENT_JOURNAL))
    {
        return US_READ_BAD;
    }

    w->footer = us_get64(p + 8);

    if (len == 0) {
        if (us_get64(p + 36) != w->blocks) {
            return US_READ_BAD;
        }

        w->at += US_BLOCK_HEADER;
        return US_READ_FOOTER;
    }

    for (p += US_BLOCK_HEADER, used = 0; used < len; used += 2 + p[used + 1]) {
        if ((p[used] != 'A' && p[used] != 'M') || len - used < 2
            || len - used < (size_t) 2 + p[used + 1])
        {
            return US_READ_BAD;
        }

        w->ids += p[used] == 'A';
    }

    w->prev = us_get32(p - 4);
    w->lsn += len;
    w->at += US_BLOCK_HEADER + len;
    w->blocks++;

    return US_READ_BLOCK;
}


static void
check_probe(us_reader_t *r)
{
    size_t      at;
    us_block_t  b;

    for (at = r->at.offset + 1;
         at < file_len && !valid(at, r->head.crc);
         at++)
    {
        /* void */
    }

    if (us_reader_probe(r, r->at.offset + 1, &b) != (at < file_len ? at : 0)) {
        broken("probe");
    }
}


/* reads `file` and leaves what it holds in payload; how it ends */

static us_read_t
check_reader(us_segment_kind_t kind, walk_t *w)
{
    int             good;
    us_read_t       rc, want;
    us_block_t      b;
    us_reader_t     r;
    const uint8_t  *p;

    payload_len = 0;

    good = walk_open(w, kind);
    rc = us_reader_open(&r, dirfd, names[kind], kind, uuid, &ops,
                        US_READ_CACHE);

    if ((rc == US_READ_BLOCK) != good) {
        broken("reader: header");
    }

    while (rc == US_READ_BLOCK) {
        want = walk_next(w);
        rc = us_reader_next(&r, &b, &p);

        if (rc != want) {
            broken("reader: block");
        }

        if (rc != US_READ_BAD && (r.at.offset != w->at
                                  || r.at.ids != w->ids
                                  || r.at.blocks != w->blocks))
        {
            broken("reader: place");
        }

        if (rc == US_READ_BLOCK) {
            if (memcmp(p, file + w->at - b.len, b.len) != 0) {
                broken("reader: payload");
            }

            memcpy(payload + payload_len, p, b.len);
            payload_len += b.len;
        }
    }

    if (good && rc == US_READ_BAD) {
        check_probe(&r);
    }

    us_reader_close(&r);

    return rc;
}


typedef struct {
    size_t  len;
    int     wrong;
} applied_t;


static int
apply(void *data, const uint8_t *p, size_t len)
{
    applied_t *a = data;

    /* the end of the files is NULL, 0 */

    if (len > payload_len - a->len
        || (len && memcmp(payload + a->len, p, len) != 0))
    {
        a->wrong = 1;
        return -1;
    }

    a->len += len;

    return 0;
}


static us_recovery_rc_t
recover(us_recovery_t *r, applied_t *a, int restarted)
{
    us_recovery_rc_t  rc;

    memset(a, 0, sizeof(*a));

    rc = us_recovery_open(r, dirfd, &ops, apply, a, restarted ? RESTART : BOOT);

    if (rc == US_RECOVERY_OK) {
        rc = us_recovery_run(r, 1);
    }

    us_recovery_close(r);

    if (a->wrong) {
        broken("recovery: applied");
    }

    return rc;
}


/* the file is now what its first bytes were */

static void
check_file(const char *name, size_t left)
{
    int             fd;
    ssize_t         n;
    static uint8_t  now[FILE_MAX];

    fd = openat(dirfd, name, O_RDONLY);
    n = us_disk_pread(fd, now, sizeof(now), 0);
    (void) close(fd);

    if (n != (ssize_t) left || memcmp(now, file, left) != 0) {
        broken("recovery: the file");
    }
}


/* a crash explains why the journal ends as it does: us_recovery.h */

static int
excused(const walk_t *w, us_read_t end, int restarted)
{
    size_t    at;
    unsigned  behind;
    uint64_t  known;

    if (end == US_READ_END) {
        return 1;
    }

    if (end == US_READ_FOOTER) {
        return w->at == file_len || restarted;
    }

    if (w->at == 0) {
        return 0;
    }

    behind = 0;
    known = 0;

    for (at = w->at + 1; at < file_len; at++) {
        if (!valid(at, w->seed)) {
            continue;
        }

        behind++;

        if (file[at + 2] == 'B' && us_get64(file + at + 24) > known) {
            known = us_get64(file + at + 24);
        }

        at += US_BLOCK_HEADER + us_get32(file + at + 4) - 1;
    }

    return behind == 0 || (restarted && known <= w->lsn);
}


static void
check_recovery(us_segment_kind_t kind, us_read_t end, const walk_t *w,
    int restarted)
{
    applied_t         first, second;
    us_recovery_t     r;
    us_recovery_rc_t  rc;
    uint64_t          lsn, ids, cut;

    put_file(US_MANIFEST_NAME, manifests[kind], manifest_len[kind]);

    rc = recover(&r, &first, restarted);
    lsn = r.lsn;
    ids = r.ids;
    cut = rc == US_RECOVERY_OK ? r.cut : 0;

    if (rc == US_RECOVERY_FAILED || rc == US_RECOVERY_FRESH) {
        broken("recovery: verdict");
    }

    check_file(names[kind], file_len - cut);

    if (kind == US_SEGMENT_JOURNAL
        && rc != (excused(w, end, restarted) ? US_RECOVERY_OK
                                             : US_RECOVERY_DAMAGED))
    {
        broken("recovery: the journal's end");
    }

    if (rc == US_RECOVERY_OK && (first.len != payload_len
                                 || w->at != file_len - cut))
    {
        broken("recovery: all that is good");
    }

    if (kind == US_SEGMENT_SNAPSHOT
        && (rc == US_RECOVERY_OK) != (end == US_READ_FOOTER && w->footer == 0
                                      && w->at == file_len))
    {
        broken("recovery: snapshot");
    }

    if (recover(&r, &second, restarted) != rc || r.lsn != lsn || r.ids != ids
        || r.cut != 0 || first.len != second.len)
    {
        broken("recovery: again");
    }

    check_file(names[kind], file_len - cut);
}


/* appends a block of two operations to `file`; w tells what it should say */

static void
add_block(walk_t *w, const uint8_t *p, size_t len, unsigned wrong)
{
    uint8_t     *out, *op;
    unsigned     ids;
    us_block_t   b;

    out = file + file_len;
    memset(&b, 0, sizeof(b));

    ids = 0;

    if (!(wrong & WRONG_FOOTER)) {
        ids = 1 + (len & 1);
        b.len = 2 + len + 2;

        op = out + US_BLOCK_HEADER;
        *op++ = (wrong & WRONG_OPS) ? '?' : 'A';
        *op++ = len + !!(wrong & WRONG_SIZE);
        op = (uint8_t *) memcpy(op, p, len) + len;
        *op++ = (len & 1) ? 'A' : 'M';
        *op = 0;
    }

    b.lsn = w->lsn + !!(wrong & WRONG_LSN);
    b.ids = w->ids + !!(wrong & WRONG_IDS);
    b.prev = w->prev ^ !!(wrong & WRONG_PREV);
    b.durable = (wrong & WRONG_DURABLE) && len ? p[0] : 0;

    if (wrong & WRONG_FOOTER) {
        b.durable = w->blocks + !!(wrong & WRONG_COUNT);
    }

    file_len += us_block_write(out, &b, w->seed);

    w->prev = b.crc;
    w->lsn += b.len;
    w->ids += ids;
    w->blocks++;
}


/* a file in `file`; the input: blocks | what is wrong: 1 | length: 1 | ... */

static void
make_blocks(us_segment_kind_t kind, const uint8_t *data, size_t size,
    int wrong)
{
    size_t             at, blocks, len;
    walk_t             w;
    us_segment_head_t  h;

    static const uint8_t  zeros[256];

    memset(&h, 0, sizeof(h));
    memset(&w, 0, sizeof(w));

    h.kind = kind;
    h.epoch = 1;
    memcpy(h.uuid, uuid, 16);

    file_len = us_segment_head_write(file, &h);
    w.seed = h.crc;
    w.prev = h.crc;

    if (wrong) {
        for (at = 0; size - at >= 2 && file_len < FILE_MAX / 2; at += len) {
            len = data[at + 1];
            at += 2;
            len = len < size - at ? len : size - at;
            add_block(&w, data + at, len, data[at - 2]);
        }

        return;
    }

    if (size < 2) {
        return;
    }

    for (blocks = 1 + data[0] % 8; blocks; blocks--) {
        len = data[1] * blocks % 251;
        add_block(&w, zeros, len, 0);
    }

    if (data[0] & 0x80) {
        add_block(&w, NULL, 0, WRONG_FOOTER);
    }

    if (data[0] & 0x40) {
        file_len -= data[1] % file_len;
    }

    for (at = 2; size - at >= 3; at += 3) {
        if (file_len) {
            file[(data[at] | (size_t) data[at + 1] << 8) % file_len]
                ^= data[at + 2];
        }
    }
}


/* as it is written; returns its length */

static size_t
write_manifest(const us_manifest_t *m, uint8_t *text, size_t size)
{
    int              fd;
    ssize_t          n;
    us_disk_error_t  e;

    if (us_manifest_write(dirfd, m, &e) != 0) {
        broken("manifest: writing");
    }

    fd = openat(dirfd, US_MANIFEST_NAME, O_RDONLY|O_CLOEXEC);
    n = us_disk_pread(fd, text, size, 0);
    (void) close(fd);

    return n;
}


static void
check_manifest(const uint8_t *data, size_t size)
{
    char             crc[32];
    size_t           len;
    us_manifest_t    m;
    us_disk_error_t  e;
    static uint8_t   again[FILE_MAX];

    size = size < FILE_MAX / 2 ? size : FILE_MAX / 2;

    file_len = sprintf((char *) file, "urlstore data ");
    memcpy(file + file_len, data, size);
    file_len += size;

    if (file[file_len - 1] != '\n') {
        file[file_len++] = '\n';
    }

    snprintf(crc, sizeof(crc), "crc32c %08x\n",
             us_crc32c_table(0, file, file_len));
    memcpy(file + file_len, crc, 16);
    file_len += 16;

    put_file(US_MANIFEST_NAME, file, file_len);

    if (us_manifest_read(dirfd, &m, &e) != US_MANIFEST_OK) {
        return;
    }

    file_len = write_manifest(&m, file, sizeof(file));

    if (us_manifest_read(dirfd, &m, &e) != US_MANIFEST_OK) {
        broken("manifest: reading");
    }

    len = write_manifest(&m, again, sizeof(again));

    if (len != file_len || memcmp(file, again, len) != 0) {
        broken("manifest");
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    walk_t             w;
    unsigned           what;
    us_read_t          end;
    us_segment_kind_t  kind;

    if (size < 1) {
        return -1;
    }

    what = data[0] & 3;
    kind = data[0] & 4 ? US_SEGMENT_SNAPSHOT : US_SEGMENT_JOURNAL;

    (void) unlinkat(dirfd, names[!kind], 0);

    if (what == 3) {
        check_manifest(data + 1, size - 1);
        return 0;
    }

    if (what == 0) {
        file_len = size - 1 < FILE_MAX ? size - 1 : FILE_MAX;
        memcpy(file, data + 1, file_len);

    } else {
        make_blocks(kind, data + 1, size - 1, what == 2);
    }

    put_file(names[kind], file, file_len);

    end = check_reader(kind, &w);
    check_recovery(kind, end, &w, data[0] & 8);

    return 0;
}
