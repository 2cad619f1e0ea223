# shellcheck shell=bash

# What tools/cluster.sh and tools/cluster-pg.sh have in common: private nginx
# processes with prefixes below $data.  $modules is what they load.  node_url
# NAME prints where the node NAME listens; in the map it is us_NAME.

# shellcheck disable=SC2154,SC2034      # variables are those of the two

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
nginx=$(PATH=$top/build/debian/usr/sbin:$PATH:/usr/sbin:/usr/local/sbin
    command -v nginx || true)
urlstore=$top/build/urlstore
modules=ngx_http_urlstore_module

die() { echo "$*" >&2; exit 1; }


# a port that has so many after it, and the folder

check_place() {
    [[ $port =~ ^[1-9][0-9]{0,4}$ ]] && [ "$port" -le $((65535 - $1)) ] \
        || die "PORT=$port is no port that has $2 more after it"

    mkdir -p "$data" 2>/dev/null || die "DATA=$data: cannot make it"
    data=$(cd "$data" && pwd)
    url=http://127.0.0.1:$port
}


# the pid of one of them, if it runs (as in run.sh)

pid() {
    local p
    p=$(cat "$data/$1/nginx.pid" 2>/dev/null) || return 1
    [ -n "$p" ] && kill -0 "$p" 2>/dev/null \
        && grep -qsF "/$1/nginx.conf" "/proc/$p/cmdline" && echo "$p"
}


curl() { command curl -sS "$@"; }


# NAME and what its http block has.  If NAME runs, it must be by that: nobody
# listens at another PORT.

configure() {
    local conf=$data/$1/nginx.conf
    mkdir -p "$data/$1/logs" "$data/$1/tmp"

    { [ "$(id -u)" != 0 ] || echo 'user root;'
    cat <<END
$(for m in $modules; do echo "load_module \"$top/build/$m.so\";"; done)
worker_processes 1;
pid "$data/$1/nginx.pid";
error_log "$data/$1/logs/error.log" notice;
events { worker_connections 1024; }
http {
    access_log off;
    client_body_temp_path "$data/$1/tmp";
    proxy_temp_path "$data/$1/tmp";
    fastcgi_temp_path "$data/$1/tmp";
    uwsgi_temp_path "$data/$1/tmp";
    scgi_temp_path "$data/$1/tmp";
    client_max_body_size 8m;
    urlstore_cluster crawl "$data/map.json";
$2
}
END
    } > "$conf.new"
    ! pid "$1" > /dev/null || cmp -s "$conf.new" "$conf" \
        || die "$1 runs with another configuration, such as another PORT than" \
            "$port: stop it first"
    mv "$conf.new" "$conf"
}


run_nginx() {
    pid "$1" > /dev/null && return
    "$nginx" -p "$data/$1" -e "$data/$1/logs/error.log" \
        -c "$data/$1/nginx.conf" 2> "$data/$1/stderr" \
        || { cat "$data/$1/stderr" >&2; die "$1 did not start"; }
}


# the router, over these nodes

run_router() {
    local k
    for k in "$@"; do
        echo "us_$k $(node_url "$k" | sed 's,http://,,')"
    done > "$data/nodes"

    configure router "
$("$urlstore" cluster conf --nodes "$data/nodes" "$data/map.json")
    server {
        listen 127.0.0.1:$port;
        location / { urlstore_route crawl; }
    }"
    run_nginx router
}


# of the store of a node, when it is loaded

uuid() {
    wait_for "$(node_url "$1")/health"
    curl "$(node_url "$1")/stats" \
        | sed -n 's/.*"uuid": *"\([-0-9a-f]*\)".*/\1/p'
}


# the first map: the arguments of "urlstore cluster new"

new_map() {
    "$urlstore" cluster new "$@" > "$data/map.new"
    mv "$data/map.new" "$data/map.json"
}


# until a request is answered 200

wait_for() {
    for _ in $(seq 300); do
        ! command curl -sf -o /dev/null "$@" || return 0
        sleep 0.1
    done
    die "no answer from $*"
}


# one of them leaves

leave() {
    local p
    p=$(pid "$1") || return 0
    kill -QUIT "$p"
    gone "$p" "$1"
}


# until a pid has left

gone() {
    for _ in $(seq 200); do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.1
    done
    die "pid $1 ($2) does not leave"
}


show() {
    printf '\n$ %s\n' "$1"
    (eval "$1" | sed -e '$a\') || true
}
