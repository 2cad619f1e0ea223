# The Debian packages that the project needs, in groups by what they are for:
# PKG_build, PKG_test, ...  A group is installed once, by tools/packages.sh; its
# stamp in build/ is newer than this file as long as nothing has to be done.
# nginx, PostgreSQL and prometheus, which Debian would start as services, are
# unpacked into build/debian; PKG_pg is what PostgreSQL links.
# chromium-headless-shell is Chromium without its window, and without systemd
# and dbus.
#
#   make deps                          build, test, and what other goals need
#   make deps DEPS='build web'         others; all by one call of apt-get

# the name of this release of Debian, and whether it is 13

SUITE     ?= $(shell . /etc/os-release && echo $${VERSION_CODENAME:-bookworm})
TRIXIE    := $(shell grep -x VERSION_CODENAME=trixie /etc/os-release)

PKG_build := gcc make pkg-config libpcre2-dev libssl-dev \
             zlib1g-dev xz-utils curl perl \
             ca-certificates
PKG_pg    := libpq-dev libxml2 libicu$(if $(TRIXIE),76,72) libpam0g liblz4-1 \
             libreadline8 tzdata
PKG_test  := libcmocka-dev g++ git libhtml-parser-perl zstd cmark-gfm python3 \
             $(PKG_pg)
PKG_fuzz  := clang libclang-rt-$(if $(TRIXIE),19,14)-dev
PKG_web   := chromium-headless-shell
PKG_clients  := python3-minimal python3-aiohttp python3-scrapy mypy \
                python3-pip python3-setuptools python3-wheel golang-go \
                default-jdk-headless ruby php-cli
PKG_languages := mono-mcs mono-runtime libmono-system-net-http4.0-cil \
                 $(if $(shell command -v rustc),,rustc)
PKG_bench    := g++ wrk redis-tools libjudy-dev libmarisa-dev libhat-trie-dev \
                liburiparser-dev libcurl4-openssl-dev gnuplot-nox \
                $(if $(TRIXIE),valkey-tools)
PKG_corpora  := git libhtml-parser-perl
PKG_model    := spin
PKG_deb      := $(PKG_build) build-essential debhelper dpkg-dev libpq-dev \
                nginx-dev
PKG_deb-test := lintian debootstrap iproute2
PKG_valgrind := valgrind
PKG_musl     := musl-tools
PKG_arm64    := crossbuild-essential-arm64 qemu-user-static

# Debian's npm brings hundreds of packages along; if there is another one, it
# is taken

PKG_web     += $(if $(shell command -v npm),,nodejs npm)
PKG_clients += $(if $(shell command -v npm),,nodejs npm)
PKG_deploy  := $(if $(shell command -v npm),,nodejs npm)

# what is unpacked comes first

DEBIAN      := $(abspath $(B))/debian
export PATH := $(DEBIAN)/usr/bin:$(DEBIAN)/usr/sbin:$(PATH)

UNPACK_build := nginx nginx-dev
UNPACK_pg    := $(if $(TRIXIE),postgresql-17 postgresql-client-17,\
                  postgresql-15 postgresql-client-15)
UNPACK_web   := prometheus

$(B)/.deps-%: mk/deps.mk
	@mkdir -p $(B)
	@tools/packages.sh install $(PKG_$*)
	$(if $(UNPACK_$*),@tools/packages.sh unpack $(B)/debian $(UNPACK_$*))
	@touch $@

.PRECIOUS: $(B)/.deps-%

$(B)/.deps-test: $(B)/.deps-pg

# the libraries by pkg-config; one that is missing has a word of its own

$(B)/.libraries: tools/libraries.sh | $(B)/.deps-build
	@tools/libraries.sh check
	@touch $@

DEPS ?= build test $(foreach g,web clients,\
        $(if $(filter test-$g,$(MAKECMDGOALS)),$g))

deps:                     ## installs packages (DEPS='build test')
	@mkdir -p $(B)
	@tools/packages.sh install $(sort $(foreach g,$(DEPS),$(PKG_$g)))
	@$(MAKE) --no-print-directory -s $(DEPS:%=$(B)/.deps-%) $(B)/.libraries

.PHONY: deps
