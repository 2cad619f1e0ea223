#!/bin/bash

# make run, make stop: a private nginx with conf/urlstore.conf.
#
#     tools/run.sh start PORT DATA WORKERS
#     tools/run.sh reload PORT DATA WORKERS
#     tools/run.sh stop PORT DATA
#
# DATA is the prefix of that nginx: DATA/urlstore.conf (made from conf/, with
# what was asked for filled in), DATA/logs, DATA/data (the store itself) and
# DATA/urlstore.pid, by which alone it is stopped.
#
# start shows the service with some requests.  They add URLs only if the store
# is empty.

set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
command=$1 port=${2:-8080} data=${3:-./var} workers=${4:-2}
nginx=$(PATH=$top/build/debian/usr/sbin:$PATH:/usr/sbin:/usr/local/sbin
    command -v nginx || true)

die() { echo "$*" >&2; exit 1; }

[[ $port =~ ^[1-9][0-9]{0,4}$ ]] && [ "$port" -le 65535 ] \
    || die "PORT=$port is no port"
[[ $workers =~ ^([1-9][0-9]{0,2}|auto)$ ]] \
    || die "WORKERS=$workers is no number of workers"

mkdir -p "$data/logs" "$data/tmp" 2>/dev/null \
    || die "DATA=$data: cannot make it"
data=$(cd "$data" && pwd)
pidfile=$data/urlstore.pid
url=http://127.0.0.1:$port


# The pid of the running service, if it runs.  The title of the master has its
# arguments, so has its command line in an emulator; no worker's has.

pid() {
    local p
    p=$(cat "$pidfile" 2>/dev/null) || return 1
    [ -n "$p" ] && kill -0 "$p" 2>/dev/null \
        && grep -qsF /urlstore.conf "/proc/$p/cmdline" && echo "$p"
}


# a command of make for this service, as one types it

make_() {
    local args=
    [ "$data" = "$top/var" ] || args=" DATA='$data'"
    echo "make $1$args"
}


# the port that it was started with

its_port() {
    sed -n 's/.*listen 127\.0\.0\.1:\([0-9]*\);.*/\1/p' \
        "$data/urlstore.conf" | head -n 1
}


taken() { (exec 3<> "/dev/tcp/127.0.0.1/$port") 2>/dev/null; }


# whether a process has left, after so many seconds at most

gone() {
    local i
    for i in $(seq "$((10 * $2))"); do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.1
    done
    return 1
}


# conf/urlstore.conf is complete as it stands; here only what differs from a
# system-wide installation is put in

configure() {
    local user=
    [ "$(id -u)" != 0 ] || user='user root;'

    sed -e "s|^load_module modules/\(.*\);|load_module \"$top/build/\1\";|" \
        -e "s|^#user .*|$user|" \
        -e "s|^worker_processes .*|worker_processes $workers;|" \
        -e "s|^pid .*|pid \"$pidfile\";|" \
        -e "s|127\.0\.0\.1:8080|127.0.0.1:$port|g" \
        "$top/conf/urlstore.conf" > "$data/urlstore.conf"
}


run_nginx() {
    "$nginx" -p "$data" -e "$data/logs/error.log" -c "$data/urlstore.conf" "$@"
}


wait_ready() {
    local i
    for i in $(seq 300); do
        ! curl -f -o /dev/null "$url/health" 2>/dev/null || return 0
        pid > /dev/null || break
        sleep 0.1
    done
    tail -5 "$data/logs/error.log" >&2
    die "the service does not answer $url/health"
}


# without its progress

curl() { command curl -sS "$@"; }


# a command as one would type it, and what it answers

show() {
    printf '\n$ '
    printf '%s' "$1"
    echo
    # no progress meter; a line without its newline (JSON) gets one
    (cd "$top" && curl() { command curl -sS "$@"; } && eval "$1" | sed -e '$a\')
}


tour() {
    local urls
    urls=$(curl "$url/stats" | sed -n 's/.*"urls":\([0-9]*\).*/\1/p')

    if [ "$urls" = 0 ]; then
        show "curl -d url=http://www.example.com/a/b.html $url/add"
        show "curl -d url=http://example.com/a/b.html $url/add"
        show "curl --get -d url=../c -d base=http://example.com/a/b.html \\
    $url/seen"
        show "printf '%s\n' ../c HTTP://EXAMPLE.COM:80/a/./b.html ftp://x/ |
    curl --data-binary @- '$url/add?base=http://example.com/a/b.html'"
        show "curl $url/url/1"

    else
        echo "The store has $urls URLs."
        show "curl '$url/urls?limit=3'"
    fi

    show "curl '$url/health?write=1'"

    cat <<END

A page to look at:  $url/
The interface:      $url/openapi.yaml
Its figures:        $url/stats
Its log:            $data/logs/error.log
To stop it:         $(make_ stop)
END
}


case $command in

start)
    [ -n "$nginx" ] || die "no nginx: apt install nginx"

    if p=$(pid); then
        echo "It is running already (pid $p): http://127.0.0.1:$(its_port)/"
        echo "$(make_ stop) ends it," \
            "$(make_ reload) takes a new configuration."
        exit 0
    fi

    ! taken || die "Port $port is taken by another program:" \
        "$(make_ run) PORT=$((port % 65535 + 1)), for example"

    configure
    run_nginx || die "nginx did not start"      # it has said why
    wait_ready
    echo "The service runs (pid $(pid), $workers workers): $url/"
    tour
    ;;

reload)
    p=$(pid) || die "it does not run: $(make_ run)"
    configure
    run_nginx -t -q || die "the configuration is not accepted"
    kill -HUP "$p"
    wait_ready
    echo "reloaded"
    ;;

stop)
    p=$(pid) || { echo "It does not run."; exit 0; }
    kill -QUIT "$p"
    gone "$p" 20 || kill -TERM "$p" 2>/dev/null || true
    gone "$p" 20 || die "pid $p does not leave"
    echo "stopped"
    ;;

*)
    die "usage: tools/run.sh start|reload|stop PORT DATA WORKERS"
esac
