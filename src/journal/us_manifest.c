
/*
 * Reads and writes the manifest.  See us_manifest.h for its format.
 *
 * It is text, for people.  A program looks at the CRC first, and then each line
 * must be one that it knows.
 */


#include "us_manifest.h"
#include "us_crc32c.h"
#include "../us_text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


static const char  *us_manifest_states[] = { "clean", "open", "backup",
                                             "replica", NULL };


const char *
us_manifest_state(const us_manifest_t *m)
{
    return us_manifest_states[m->state];
}


us_manifest_rc_t
us_manifest_read(int dirfd, us_manifest_t *m, us_disk_error_t *e)
{
    int      fd;
    char     text[US_MANIFEST_MAX];
    ssize_t  n;

    memset(m, 0, sizeof(us_manifest_t));

    fd = openat(dirfd, US_MANIFEST_NAME, O_RDONLY|O_NOFOLLOW|O_CLOEXEC);

    if (fd == -1) {
        us_disk_fail(e, errno, "\"manifest\" could not be opened");
        return (errno == ENOENT) ? US_MANIFEST_NONE : US_MANIFEST_BAD;
    }

    n = us_disk_pread(fd, text, sizeof(text), 0);

    if (n == -1) {
        us_disk_fail(e, errno, "\"manifest\" could not be read");
    }

    (void) close(fd);

    return n == -1 ? US_MANIFEST_BAD : us_manifest_scan(m, text, n, e);
}


static int
us_manifest_line(us_manifest_t *m, const char *key, char *value)
{
    int     i;
    char   *space;
    size_t  len;

    if (strcmp(key, "uuid") == 0) {

        for (i = 0; i < 32 && us_hex_value(value[i]) != -1; i++) {
            m->uuid[i / 2] = (uint8_t) (m->uuid[i / 2] << 4
                                        | us_hex_value(value[i]));
        }

        return i == 32 && value[i] == '\0' ? 0 : -1;
    }

    if (strcmp(key, "epoch") == 0) {
        return (sscanf(value, "%" SCNu64, &m->epoch) == 1) ? 0 : -1;
    }

    if (strcmp(key, "state") == 0) {

        for (i = 0; us_manifest_states[i]; i++) {
            if (strcmp(value, us_manifest_states[i]) == 0) {
                m->state = (us_manifest_state_t) i;
                return 0;
            }
        }

        return -1;
    }

    if (strcmp(key, "boot") == 0) {
        snprintf(m->boot, sizeof(m->boot), "%s", value);
        return 0;
    }

    if (strcmp(key, "sync") == 0) {
        snprintf(m->sync, sizeof(m->sync), "%s", value);
        return 0;
    }

    if (strcmp(key, "end") == 0) {
        return (sscanf(value, "%" SCNx64 " %" SCNu64, &m->end, &m->end_ids)
                == 2) ? 0 : -1;
    }

    if (strcmp(key, "snapshot") == 0) {
        m->has_snapshot = 1;
        return (sscanf(value, "%" SCNx64, &m->snapshot) == 1) ? 0 : -1;
    }

    if (strcmp(key, "log") == 0) {
        m->has_log = 1;
        return (sscanf(value, "%" SCNx64 " %" SCNu64 " %" SCNx32, &m->log.lsn,
                       &m->log.term, &m->log.crc)
                == 3) ? 0 : -1;
    }

    if (strcmp(key, "restored") == 0) {
        m->has_restored = 1;
        return (sscanf(value, "%" SCNx64, &m->restored) == 1) ? 0 : -1;
    }

    if (strcmp(key, "moved") == 0) {
        m->moved = 1;
        return strcmp(value, "1") == 0 ? 0 : -1;
    }

    if (strcmp(key, "store") == 0) {
        space = strchr(value, ' ');

        if (space == NULL) {
            return -1;
        }

        *space++ = '\0';
        len = strlen(space);

        return us_manifest_set(m, value,
                               (us_str_t) { len, (uint8_t *) space });
    }

    return -1;
}


us_manifest_rc_t
us_manifest_scan(us_manifest_t *m, const char *p, size_t len,
    us_disk_error_t *e)
{
    char    *crc, *row, *end, *value, line[32], text[US_MANIFEST_MAX + 1];
    size_t   n;

    memset(m, 0, sizeof(us_manifest_t));

    n = len < US_MANIFEST_MAX ? len : US_MANIFEST_MAX;
    memcpy(text, p, n);
    text[n] = '\0';

    crc = memmem(text, n, "\ncrc32c ", 8);

    if (strncmp(text, "urlstore data ", 14) != 0 || crc == NULL
        || strlen(text) != n)
    {
        us_disk_fail(e, 0, "\"manifest\" is damaged: it is empty, or does not "
                     "begin with \"urlstore data\", or has no CRC");
        return US_MANIFEST_BAD;
    }

    crc++;

    /* compared as text: a digit in upper case is a changed bit, too */

    snprintf(line, sizeof(line), "crc32c %08" PRIx32 "\n",
             us_crc32c(0, text, crc - text));

    if (text + n - crc != 16 || memcmp(crc, line, 16) != 0) {
        us_disk_fail(e, 0, "\"manifest\" is damaged: its CRC is wrong");
        return US_MANIFEST_BAD;
    }

    m->version = (unsigned) strtoul(text + 14, NULL, 10);

    if (m->version == 0 || m->version > US_MANIFEST_VERSION) {
        us_disk_fail(e, 0, "the directory has format version %u, this program "
                     "reads versions up to %u; no file was touched",
                     m->version, US_MANIFEST_VERSION);
        return US_MANIFEST_VERSION_OTHER;
    }

    *crc = '\0';

    for (row = strchr(text, '\n') + 1; *row; row = end + 1) {
        end = strchr(row, '\n');
        value = strchr(row, ' ');

        if (end && value && value < end) {
            *end = '\0';
            *value++ = '\0';

            if (us_manifest_line(m, row, value) == 0) {
                continue;
            }
        }

        us_disk_fail(e, 0, "\"manifest\" has a line that is not understood");
        return US_MANIFEST_BAD;
    }

    return US_MANIFEST_OK;
}


int
us_manifest_print(const us_manifest_t *m, char **text, size_t *len,
    us_disk_error_t *e)
{
    int          i, rc;
    FILE        *f;
    const char  *line, *end;

    f = open_memstream(text, len);

    if (f == NULL) {
        return us_disk_fail(e, errno, "no memory for the manifest");
    }

    fprintf(f, "urlstore data %u\nuuid ", m->version ? m->version : 1);

    for (i = 0; i < 16; i++) {
        fprintf(f, "%02x", m->uuid[i]);
    }

    fprintf(f, "\nepoch %" PRIu64 "\nstate %s\nboot %s\nsync %s\n"
            "end %016" PRIx64 " %" PRIu64 "\n",
            m->epoch, us_manifest_state(m), m->boot, m->sync,
            m->end, m->end_ids);

    if (m->has_snapshot) {
        fprintf(f, "snapshot %016" PRIx64 "\n", m->snapshot);
    }

    if (m->has_log) {
        fprintf(f, "log %016" PRIx64 " %" PRIu64 " %08" PRIx32 "\n",
                m->log.lsn, m->log.term, m->log.crc);
    }

    if (m->has_restored) {
        fprintf(f, "restored %016" PRIx64 "\n", m->restored);
    }

    if (m->moved) {
        fputs("moved 1\n", f);
    }

    for (line = m->settings; *line; line = end + 1) {
        end = strchr(line, '\n');
        fprintf(f, "store %.*s\n", (int) (end - line), line);
    }

    rc = fflush(f);

    if (rc == 0) {
        fprintf(f, "crc32c %08" PRIx32 "\n", us_crc32c(0, *text, *len));
    }

    if (fclose(f) != 0 || rc != 0) {
        free(*text);
        return us_disk_fail(e, ENOMEM, "no memory for the manifest");
    }

    return 0;
}


int
us_manifest_write(int dirfd, const us_manifest_t *m, us_disk_error_t *e)
{
    int     rc;
    char   *text;
    size_t  len;

    if (us_manifest_print(m, &text, &len, e) == -1) {
        return -1;
    }

    rc = us_disk_replace(dirfd, US_MANIFEST_NAME, text, len, e);
    free(text);

    return rc;
}


int
us_manifest_setting(const us_manifest_t *m, const char *key, char *buf,
    size_t size)
{
    size_t       len;
    const char  *line, *end;

    len = strlen(key);

    for (line = m->settings; *line; line = end + 1) {
        end = strchr(line, '\n');

        if (strncmp(line, key, len) == 0 && line[len] == ' ') {
            line += len + 1;

            if ((size_t) (end - line) >= size) {
                return -1;
            }

            memcpy(buf, line, end - line);
            buf[end - line] = '\0';

            return 0;
        }
    }

    return -1;
}


int
us_manifest_set(us_manifest_t *m, const char *key, us_str_t value)
{
    size_t  i, used, len;

    for (i = 0; i < value.len; i++) {
        if (value.data[i] < 0x20) {
            return -1;
        }
    }

    used = strlen(m->settings);
    len = strlen(key);

    if (used + len + value.len + 3 > sizeof(m->settings)) {
        return -1;
    }

    used += snprintf(m->settings + used, sizeof(m->settings) - used,
                     "%s %.*s\n", key, (int) value.len,
                     (const char *) value.data);

    return 0;
}


int
us_manifest_set_number(us_manifest_t *m, const char *key, uint64_t n)
{
    char  value[24];

    (void) snprintf(value, sizeof(value), "%" PRIu64, n);

    return us_manifest_set(m, key, us_str_of(value));
}


void
us_manifest_boot(char boot[US_BOOT_ID + 1])
{
    int      fd;
    ssize_t  n;

    memset(boot, 0, US_BOOT_ID + 1);

    fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY|O_CLOEXEC);

    if (fd != -1) {
        n = read(fd, boot, US_BOOT_ID);
        (void) close(fd);

        if (n == US_BOOT_ID) {
            return;
        }
    }

    strcpy(boot, US_BOOT_UNKNOWN);
}
