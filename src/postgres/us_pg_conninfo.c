
/*
 * The connection string, as libpq reads it: KEYWORD=VALUE ... or a URI.  Its
 * hosts are taken apart, because libpq, when it does not block, waits for one
 * that does not answer for ever and never tries the next.
 */


#include "us_pg_private.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>


#define US_PG_SHORT  4                /* bytes of a secret */


static int
us_pg_is_address(const char *s)
{
    struct in_addr   in;
    struct in6_addr  in6;

    return inet_pton(AF_INET, s, &in) == 1
           || inet_pton(AF_INET6, s, &in6) == 1;
}


static int
us_pg_host_check(const us_pg_host_t *host, char *err, size_t size)
{
    char  *end;
    long   n;

    if (host->hostaddr && !us_pg_is_address(host->hostaddr)) {
        (void) snprintf(err, size, "\"hostaddr\" of the connection string is "
                        "no address: \"%.64s\"", host->hostaddr);
        return -1;
    }

    if (host->host && host->hostaddr == NULL && host->host[0] != '/'
        && host->host[0] != '@' && !us_pg_is_address(host->host))
    {
        (void) snprintf(err, size, "\"host\" of the connection string is a "
                        "name: \"%.64s\"; it needs \"hostaddr\" as well, "
                        "because looking it up would block", host->host);
        return -1;
    }

    if (host->port) {
        n = strtol(host->port, &end, 10);

        if (*end || n < 1 || n > 65535) {
            (void) snprintf(err, size, "\"port\" of the connection string is "
                            "\"%.64s\": 1 to 65535 is allowed", host->port);
            return -1;
        }
    }

    return 0;
}


/* the parts between commas; an empty one is NULL.  -1: too many */

static int
us_pg_list(const char *text, char **list)
{
    int     n;
    size_t  len;

    memset(list, 0, US_PG_HOSTS * sizeof(char *));

    if (text == NULL) {
        return 0;
    }

    for (n = 0; n < US_PG_HOSTS; n++) {
        len = strcspn(text, ",");

        if (len) {
            list[n] = strndup(text, len);

            if (list[n] == NULL) {
                break;
            }
        }

        if (text[len] == '\0') {
            return n + 1;
        }

        text += len + 1;
    }

    while (n--) {
        free(list[n]);
        list[n] = NULL;
    }

    return -1;
}


/* NULL: none, or empty */

static const char *
us_pg_option(const us_pg_conninfo_t *info, const char *keyword)
{
    const PQconninfoOption  *o;

    for (o = info->options; o && o->keyword; o++) {
        if (strcmp(o->keyword, keyword) == 0) {
            return o->val && o->val[0] ? o->val : NULL;
        }
    }

    return NULL;
}


int
us_pg_conninfo(us_pg_conninfo_t *info, const char *text, char *err,
    size_t size)
{
    int       i, nhost, naddr, nport, n;
    char     *why, *from, *to, *host[US_PG_HOSTS];
    char     *addr[US_PG_HOSTS], *port[US_PG_HOSTS];
    unsigned  k;

    memset(info, 0, sizeof(us_pg_conninfo_t));
    why = NULL;

    info->options = PQconninfoParse(text, &why);

    if (info->options == NULL) {

        /* what libpq quotes may be a part of a password */

        from = why ? strchr(why, '"') : NULL;
        to = why ? strrchr(why, '"') : NULL;

        (void) snprintf(err, size, "the connection string is not valid: %.*s%s"
                        "%.*s", from ? (int) (from - why) : 60,
                        why ? why : "no memory", from ? "\"...\"" : "",
                        to ? (int) strcspn(to + 1, "\n") : 0,
                        to ? to + 1 : "");
        PQfreemem(why);

        return -1;
    }

    if (us_pg_option(info, "service")) {
        (void) snprintf(err, size, "the connection string has \"service\": "
                        "write its hosts here");
        return -1;
    }

    nhost = us_pg_list(us_pg_option(info, "host"), host);
    naddr = us_pg_list(us_pg_option(info, "hostaddr"), addr);
    nport = us_pg_list(us_pg_option(info, "port"), port);

    n = nhost > naddr ? nhost : naddr;
    n = n ? n : 1;

    /* each list has its memory from here on */

    for (i = 0; i < US_PG_HOSTS; i++) {
        info->hosts[i].host = i < nhost ? host[i] : NULL;
        info->hosts[i].hostaddr = i < naddr ? addr[i] : NULL;
        info->hosts[i].port = i < nport ? port[i] : NULL;
    }

    info->nhosts = n;

    if (nhost < 0 || naddr < 0 || nport < 0) {
        (void) snprintf(err, size, "the connection string has more than %d "
                        "hosts, or there is no memory", US_PG_HOSTS);
        return -1;
    }

    if ((nhost && naddr && nhost != naddr) || (nport > 1 && nport != n)) {
        (void) snprintf(err, size, "the connection string has %d \"host\", "
                        "%d \"hostaddr\" and %d \"port\": it needs one of each "
                        "for each server, or one port for all", nhost, naddr,
                        nport);
        return -1;
    }

    for (i = 1; nport == 1 && i < n; i++) {
        info->hosts[i].port = port[0] ? strdup(port[0]) : NULL;
    }

    for (k = 0; k < info->nhosts; k++) {
        if (us_pg_host_check(&info->hosts[k], err, size) == -1) {
            return -1;
        }
    }

    return 0;
}


void
us_pg_conninfo_free(us_pg_conninfo_t *info)
{
    unsigned           i;
    PQconninfoOption  *o;

    for (o = info->options; o && o->keyword; o++) {
        if (o->val && strstr(o->keyword, "password")) {
            explicit_bzero(o->val, strlen(o->val));
        }
    }

    PQconninfoFree(info->options);
    info->options = NULL;

    for (i = 0; i < US_PG_HOSTS; i++) {
        free(info->hosts[i].host);
        free(info->hosts[i].hostaddr);
        free(info->hosts[i].port);
    }

    memset(info->hosts, 0, sizeof(info->hosts));
}


/* a short one may be a part of any word: it is hidden where it is a word */

static void
us_pg_mask(const char *secret, char *text)
{
    char    *p;
    size_t   len;

    len = secret ? strlen(secret) : 0;

    for (p = text; len && (p = strstr(p, secret)) != NULL; p += len) {

        if (len < US_PG_SHORT && ((p > text && isalnum((uint8_t) p[-1]))
                                  || isalnum((uint8_t) p[len])))
        {
            continue;
        }

        memset(p, '*', len);
    }
}


void
us_pg_hide(const us_pg_conninfo_t *info, const char *password, char *text)
{
    us_pg_mask(us_pg_option(info, "password"), text);
    us_pg_mask(us_pg_option(info, "sslpassword"), text);
    us_pg_mask(password, text);
}
