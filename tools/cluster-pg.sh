#!/bin/bash

# make cluster-pg, make stop-cluster-pg: a shard whose log is in PostgreSQL, on
# this machine, and a failover of it.
#
#     tools/cluster-pg.sh start PORT DATA
#     tools/cluster-pg.sh stop PORT DATA
#
# The router listens on PORT, two nodes on the two ports after it, PostgreSQL
# and its synchronous standby on the two after those, all on 127.0.0.1.  The
# nodes are nginx processes of their own with the prefixes DATA/a and DATA/b,
# PostgreSQL has DATA/pg.  With one cluster in DATA, start begins again with the
# URLs that it has.  Started by root, PostgreSQL runs as nobody; where nobody
# cannot enter DATA, as below /root, DATA/pg is a link to a folder in /var/tmp.

set -eu

command=$1 port=${2:-8080} data=${3:-./var/cluster-pg}
nodes='a b'

# shellcheck source=tools/cluster-lib.sh
. "$(dirname "$0")/cluster-lib.sh"

check_place 4 four
modules='ngx_http_urlstore_module ngx_http_urlstore_postgres_module'
bin=$(find "$top"/build/debian/usr/lib/postgresql /usr/lib/postgresql \
    -path '*/bin/postgres' -printf '%h\n' 2>/dev/null | tail -n 1)
pg=$(readlink -m "$data/pg")

node_url() { if [ "$1" = a ]; then echo "http://127.0.0.1:$((port + 1))"
    else echo "http://127.0.0.1:$((port + 2))"; fi; }


# a command as PostgreSQL's user

as_user() {
    local as=()
    [ "$(id -u)" != 0 ] || as=(setpriv --reuid=nobody --regid=nogroup
        --clear-groups)
    (cd / && exec env PGPASSFILE="$pg/passwords" "${as[@]}" "$@")
}


as_pg() {
    local from=$bin
    [ ! -d "$pg/usr" ] || from=$pg/usr/lib/${bin#*/usr/lib/}
    as_user "$from/$1" "${@:2}"
}


sql() { as_pg psql -XqAt -v ON_ERROR_STOP=1 -d "$(server "$1")" "${@:2}"; }


# the connection to server 3 or 4, by the number of its port

server() {
    echo "host=127.0.0.1 port=$((port + $1)) user=urlstore dbname=postgres"
}


pg_runs() { as_pg pg_ctl -D "$pg/$1" status > /dev/null 2>&1; }


pg_start() {
    pg_runs "$1" || as_pg pg_ctl -D "$pg/$1" -l "$pg/$1.log" -w start \
        > /dev/null || { cat "$pg/$1.log" >&2; die "PostgreSQL did not start"; }
}


# a folder of PostgreSQL's user, and the binaries if it can get at no others

pg_place() {
    local k usr=${bin%/lib/postgresql/*}
    rm -rf "$pg" "$data/pg"
    if as_user test -x "$data"; then
        pg=$data/pg
        mkdir -m 700 "$pg"
    else
        pg=$(mktemp -d /var/tmp/urlstore-pg.XXXXXX)
        ln -s "$pg" "$data/pg"
    fi

    as_user test -x "$bin/postgres" || for k in lib share; do
        mkdir -p "$pg/usr/$k"
        cp -r "$usr/$k/postgresql" "$pg/usr/$k/"
    done
}


# both servers, for the first time

pg_make() {
    local password
    pg_place
    password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    (umask 077
    echo "127.0.0.1:*:*:urlstore:$password" > "$pg/passwords"
    echo "$password" > "$pg/password"
    echo "hostaddr=127.0.0.1,127.0.0.1 port=$((port + 3)),$((port + 4))" \
        "user=urlstore dbname=postgres password=$password" > "$data/conninfo")
    cp "$top/conf/urlstore-schema.sql" "$pg/"
    [ "$(id -u)" != 0 ] || chown -R nobody:nogroup "$pg"

    as_pg initdb -D "$pg/3" -U urlstore -A scram-sha-256 -E UTF8 --no-locale \
        --pwfile="$pg/password" > /dev/null \
        || die "PostgreSQL's user cannot use $pg"
    pg_conf 3
    pg_start 3
    sql 3 -f "$pg/urlstore-schema.sql"
    as_pg pg_basebackup -D "$pg/4" -R -c fast -X stream \
        -d "$(server 3) application_name=standby"
    pg_conf 4
    pg_start 4
    sql 3 -c "ALTER SYSTEM SET synchronous_standby_names = 'standby'" \
        -c 'SELECT pg_reload_conf()' > /dev/null
    touch "$pg/made"
}


pg_conf() {
    as_pg_write "$pg/$1/postgresql.conf" <<END
port = $((port + $1))
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
shared_buffers = '32MB'
END
}


as_pg_write() {
    cat >> "$1"
    [ "$(id -u)" != 0 ] || chown nobody:nogroup "$1"
}


node() {
    configure "$1" "
    urlstore_zone urls 64m cluster=crawl shard=0 node=us_$1 takeover=2s
        \"replicate=postgres:@$data/conninfo\";
    server {
        listen ${2#http://};
        location / { urlstore_api urls; }
        location = /cluster { urlstore_cluster_admin crawl; }
    }"
    run_nginx "$1"
}


state() { curl "$(node_url "$1")/health" | sed -n \
    's/.*"status": *"\([a-z]*\)".*/\1/p'; }


# the name of the node that is the primary

primary() {
    local k
    for _ in $(seq 300); do
        for k in $nodes; do
            [ "$(state "$k" 2>/dev/null)" != ready ] || { echo "$k"; return; }
        done
        sleep 0.1
    done
    die 'no node becomes the primary'
}


start() {
    local k p
    [ -e "$pg/made" ] || pg_make
    pg_start 3
    pg_start 4
    for k in $nodes; do
        node "$k" "$(node_url "$k")"
    done
    p=$(primary)
    [ -e "$data/map.json" ] || new_map --key site "0=$(uuid "$p"),us_a,us_b"
    # shellcheck disable=SC2086
    run_router $nodes
    wait_for "$url/seen?url=http://a.example/"
}


stop() {
    local k p
    for k in router $nodes; do
        leave "$k"
    done
    for k in 3 4; do
        pg_runs "$k" || continue
        p=$(head -n 1 "$pg/$k/postmaster.pid")
        as_pg pg_ctl -D "$pg/$k" -m fast -w stop > /dev/null
        # pg_ctl returns when the file is gone, before the process is
        gone "$p" "PostgreSQL $k"
    done
}


tour() {
    local k other p since
    k=$(primary)
    other=$(echo "$nodes" | tr -d " $k")

    show "curl -d url=http://a.example/ '$url/add'"
    show "curl '$(node_url "$k")/health'     # node $k: the primary"
    show "curl '$(node_url "$other")/health'     # node $other: a standby"

    p=$(pid "$k")
    since=$(date +%s%N)
    # shellcheck disable=SC2046
    kill -KILL "$p" $(cat "/proc/$p/task/$p/children")
    echo
    echo "Node $k was killed."

    while [ "$(curl -d url=http://b.example/ "$url/add" -o /dev/null \
        -w '%{http_code}')" -ge 400 ]
    do
        sleep 0.05
    done
    echo "The first add was accepted after" \
        "$((($(date +%s%N) - since) / 1000000)) ms, by node $(primary):"
    show "curl '$url/url/0'"

    node "$k" "$(node_url "$k")"
    for _ in $(seq 100); do
        [ "$(state "$k" 2>/dev/null)" != standby ] || break
        sleep 0.1
    done
    show "curl '$(node_url "$k")/health'     # node $k runs again"

    cat <<END

The router:   $url/          (docs/replicated-log.md)
The nodes:    $(node_url a)/ $(node_url b)/
PostgreSQL:   127.0.0.1:$((port + 3)), its standby 127.0.0.1:$((port + 4))
              $data/conninfo
To stop them: make stop-cluster-pg$(
        [ "$data" = "$top/var/cluster-pg" ] \
            || echo " DATA='${data%/cluster-pg}'")
END
}


case $command in

start)
    [ -n "$nginx" ] || die "no nginx: apt install nginx"
    [ -n "$bin" ] || die "no PostgreSQL: apt install postgresql"
    start
    echo "PostgreSQL, two nodes and a router run: $url/"
    tour
    ;;

stop)
    stop
    echo "stopped"
    ;;

*)
    die "usage: tools/cluster-pg.sh start|stop PORT DATA"
esac
