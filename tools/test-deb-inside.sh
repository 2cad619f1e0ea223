#!/bin/bash

# What tools/test-deb.sh runs in the bare Debian, with /old and /new.

set -eu

log=/root/log
store=http://127.0.0.1:8080

ok() { echo "ok: $*"; }

fail() {
    echo "FAILED: $*"
    tail -n 30 "$log" /var/log/nginx/error.log
    exit 1
}


# is "what" "got" "expected"

is() {
    [ "$2" = "$3" ] || fail "$1: \"$2\", expected \"$3\""
    ok "$1"
}

apt() {
    apt-get -y "$@" >> "$log" 2>&1 || fail "apt-get $*"
}

# nginx is started and stopped as an init script would

start() { nginx && ready; }

ready() {
    for _ in $(seq 100); do
        curl -fsS "$store/health?write=1" > /root/health 2>&1 && return
        sleep .1
    done
    fail "not ready: $(cat /root/health)"
}

stop() {
    local pid
    pid=$(cat /run/nginx.pid)
    kill -QUIT "$pid"
    while [ -d "/proc/$pid" ]; do sleep .1; done
}

restart() { stop; start; }

add() { printf 'http://a.example/%s\n' "$@" \
    | curl -fsS -H 'Content-Type: text/plain' --data-binary @- "$store/add"; }

# of the store on the disk

verdict() {
    urlstore verify /var/lib/urlstore/urls | tail -n 1 \
        | sed 's/ *good.*, /, /'
}

owner() { stat -c '%U:%G %a' "$1"; }

# --- install

apt install nginx curl
nginx -t 2>> "$log" || fail 'stock nginx'
apt install /old/*.deb
nginx -t 2>> "$log" || fail 'nginx with the module'
ok 'installed beside stock nginx'

is 'the module is enabled' \
    "$(readlink /etc/nginx/modules-enabled/50-mod-http-urlstore.conf)" \
    /usr/share/nginx/modules-available/mod-http-urlstore.conf
is 'it belongs to this nginx' "$(dpkg-query -W -f '${Depends}' \
    libnginx-mod-http-urlstore | grep -o 'nginx-abi-[0-9.-]*')" \
    "$(dpkg-query -W -f '${Provides}' nginx | grep -o 'nginx-abi-[0-9.-]*')"
is 'a folder for stores' "$(owner /var/lib/urlstore)" 'www-data:www-data 750'

# --- configure, use

ln -s ../sites-available/urlstore /etc/nginx/sites-enabled/urlstore
start
is 'adds' "$(add 1 2 1 | cut -f 1,2 | tr '\t\n' '= ')" '0=new 1=new 0=seen '
is 'looks up' "$(curl -fsS -H 'Accept: text/plain' "$store/url/1")" \
    http://a.example/2
is "the crawlers' mark" "$(curl -fsS -H 'Content-Type: text/plain' -d 1 \
    "$store/mark/visited")" "$(printf '1\tset\thttp://a.example/2')"
is 'the store belongs to the workers' "$(stat -c %U /var/lib/urlstore/urls)" \
    www-data

# the command

is 'urlstore --version' "$(urlstore --version)" \
    "urlstore $(dpkg-query -W -f '${Version}' urlstore | sed 's/~previous//')"
is 'urlstore verify' "$(verdict)" 'ok, 2 ids'
is 'man pages' "$(for f in $(dpkg -L urlstore | grep /man1/.); do
    man --warnings -l "$f" 2>&1 > /dev/null; done)" ''
man -P cat urlstore-dedup | grep -q 'urlstore-dedup - print' || fail man
is 'bash completion' "$(
    . /usr/share/bash-completion/completions/urlstore
    COMP_WORDS=(urlstore de) COMP_CWORD=1
    _urlstore
    echo "${COMPREPLY[*]}")" dedup
is 'zsh completion' "$(
    zsh -n /usr/share/zsh/vendor-completions/_urlstore 2>&1
    zsh -fc 'autoload -U compinit; compinit -u -D; echo $_comps[urlstore]')" \
    _urlstore

# log rotation: Debian's own, and a new error log is written

nginx -s reload
mv /var/log/nginx/error.log /var/log/nginx/error.log.1
kill -USR1 "$(cat /run/nginx.pid)"
sleep 1
is 'after a log rotation' "$(stat -c %U /var/log/nginx/error.log) $(
    add 2 | cut -f 2)" 'www-data seen'
logrotate -d /etc/logrotate.d/nginx 2>&1 | grep -q error.log \
    || fail 'logrotate knows the log'

# --- upgrade: the data are kept

apt install /new/*.deb
is 'the new version' "$(dpkg-query -W -f '${Version}\n' urlstore)" \
    "$(dpkg-deb -f /new/urlstore_*.deb Version)"
is 'the old module goes on' "$(add 2 3 | cut -f 1,2 | tr '\t\n' '= ')" \
    '1=seen 2=new '
restart
is 'the data are kept' "$(add 1 2 3 4 | cut -f 1,2 | tr '\t\n' '= ')" \
    '0=seen 1=seen 2=seen 3=new '

# --- the guide: the commands of a section, as they stand

systemctl() {
    case $1 in
        stop) stop ;;
        start) nginx ;;
        restart) stop && nginx ;;
    esac
}

guide() {
    zcat -f /usr/share/doc/urlstore/docs/operations.md* \
        | awk -v "title=$1" '/^#/ { on = $0 == "## " title }
            on && sub(/^    /, "")'
}

mkdir /backup

# one folder too high

urlstore backup /var/lib/urlstore /backup/high > /root/said 2>&1 \
    && fail 'a backup of the folder above the store'
grep -q 'did you mean "/var/lib/urlstore/urls"' /root/said \
    || fail "which folder: $(cat /root/said)"
ok 'the folder above the store'

guide 'Backup and restore' > /root/commands
is 'commands of the guide' "$(wc -l < /root/commands)" 8
while IFS= read -r line; do
    eval "$line" > /root/said 2>&1 < /dev/null \
        || fail "the guide: $line: $(cat /root/said)"
done < /root/commands
is 'restored by the guide' "$(tail -n 1 /root/said)" '"next_id":4'
is 'ids and URLs' "$(add 1 2 3 4 5 | cut -f 1,2 | tr '\t\n' '= ')" \
    '0=seen 1=seen 2=seen 3=seen 4=new '
is 'the old directory is kept' \
    "$(urlstore verify /var/lib/urlstore/urls.old | tail -n 1 \
        | sed 's/ *good.*, /, /')" 'ok, 4 ids'

# --- the log in PostgreSQL: a module of its own, which alone needs libpq

modules=/usr/lib/nginx/modules/ngx_http_urlstore
is 'libpq' "$(for m in "$modules"_module.so "$modules"_postgres_module.so; do
    ldd "$m" | grep -c libpq || true; done | tr '\n' ' ')" '0 1 '
is 'both modules are loaded' "$(nginx -T 2>> "$log" \
    | grep -c '^load_module .*urlstore')" 2

# --- remove: nginx goes on without it, the data are kept

stop
apt remove libnginx-mod-http-urlstore
nginx -t 2>> "$log" || fail 'nginx after remove'
ok 'nginx without the module'
is 'remove keeps the data' "$(verdict)" 'ok, 5 ids'

apt install /new/libnginx-mod-http-urlstore_*.deb
ln -s ../sites-available/urlstore /etc/nginx/sites-enabled/urlstore
start
is 'installed again' "$(add 4 6 | cut -f 1,2 | tr '\t\n' '= ')" '3=seen 5=new '
stop

# --- purge

apt purge libnginx-mod-http-urlstore libnginx-mod-http-urlstore-postgres \
    urlstore
nginx -t 2>> "$log" || fail 'nginx after purge'
is 'purge leaves nothing' "$(find / -xdev -iname '*urlstore*' \
    ! -path '/old/*' ! -path '/new/*' ! -path '/proc/*' \
    ! -path '/var/cache/man/*' 2>/dev/null)" ''
is 'no package is left' "$(dpkg -l | grep -c urlstore || true)" 0
