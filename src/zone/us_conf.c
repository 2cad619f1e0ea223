
/*
 * See us_conf.h.
 */


#include "us_conf.h"


int
us_conf_is_name(us_str_t name, size_t max)
{
    size_t   i;
    uint8_t  c;

    for (i = 0; i < name.len; i++) {
        c = name.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
              || (c >= '0' && c <= '9') || c == '-' || c == '_'))
        {
            return 0;
        }
    }

    return name.len && name.len <= max;
}


int
us_conf_marks(us_store_conf_t *conf, us_str_t list)
{
    unsigned        i;
    us_str_t        name;
    const uint8_t  *p, *last, *comma;

    last = list.data + list.len;

    for (p = list.data; p; p = comma ? comma + 1 : NULL) {

        comma = memchr(p, ',', last - p);

        name.data = p;
        name.len = (comma ? comma : last) - p;

        if (!us_conf_is_name(name, US_STORE_MARK_LEN)
            || conf->nmarks == US_STORE_MARKS)
        {
            return -1;
        }

        for (i = 0; i < conf->nmarks; i++) {
            if (conf->marks[i].len == name.len
                && us_str_compare(conf->marks[i], name) == 0)
            {
                return -1;
            }
        }

        conf->marks[conf->nmarks++] = name;
    }

    return 0;
}
