# The Debian packages that the project needs, by what they are for.  Each list
# is installed once, by tools/packages.sh; its stamp in build/ is newer than
# this file as long as nothing has to be done.  nginx and prometheus, which
# Debian would start as services, are unpacked into build/debian.

PKG_BUILD := gcc make pkg-config libpcre2-dev libssl-dev libicu-dev \
             libpsl-dev publicsuffix zlib1g-dev xz-utils curl perl \
             ca-certificates
PKG_TEST  := libcmocka-dev clang libclang-rt-14-dev git libhtml-parser-perl \
             zstd
PKG_WEB   := chromium
PKG_CLIENTS  := python3-minimal python3-aiohttp python3-scrapy mypy \
                python3-pip python3-setuptools python3-wheel golang-go \
                default-jdk-headless
PKG_BENCH    := g++ wrk redis-tools libjudy-dev libmarisa-dev libhat-trie-dev \
                liburiparser-dev libcurl4-openssl-dev gnuplot-nox
PKG_CORPORA  := git libhtml-parser-perl
PKG_MODEL    := spin
PKG_DEB      := debhelper dpkg-dev nginx-dev lintian debootstrap
PKG_VALGRIND := valgrind

# Debian's npm brings hundreds of packages along; if there is another one, it
# is taken

PKG_WEB     += $(if $(shell command -v npm),,nodejs npm)
PKG_CLIENTS += $(if $(shell command -v npm),,nodejs npm)

# what is unpacked comes first

DEBIAN      := $(abspath $(B))/debian
export PATH := $(DEBIAN)/usr/bin:$(DEBIAN)/usr/sbin:$(PATH)

$(B)/.deps-build: UNPACK := nginx nginx-dev
$(B)/.deps-web:   UNPACK := prometheus

define install
	@mkdir -p $(B)
	@tools/packages.sh install $(1)
	$(if $(UNPACK),@tools/packages.sh unpack $(B)/debian $(UNPACK))
	@touch $@
endef

$(B)/.deps-build: mk/deps.mk
	$(call install,$(PKG_BUILD))

$(B)/.deps-test: mk/deps.mk
	$(call install,$(PKG_TEST))

$(B)/.deps-web: mk/deps.mk
	$(call install,$(PKG_WEB))

$(B)/.deps-clients: mk/deps.mk
	$(call install,$(PKG_CLIENTS))

$(B)/.deps-bench: mk/deps.mk
	$(call install,$(PKG_BENCH))

$(B)/.deps-corpora: mk/deps.mk
	$(call install,$(PKG_CORPORA))

$(B)/.deps-model: mk/deps.mk
	$(call install,$(PKG_MODEL))

$(B)/.deps-deb: mk/deps.mk
	$(call install,$(PKG_BUILD) $(PKG_DEB))

$(B)/.deps-valgrind: mk/deps.mk
	$(call install,$(PKG_VALGRIND))

# the libraries by pkg-config; one that is missing has a word of its own

$(B)/.libraries: tools/libraries.sh | $(B)/.deps-build
	@tools/libraries.sh check
	@touch $@

deps: $(B)/.libraries $(B)/.deps-test        ## installs build and test tools

.PHONY: deps
