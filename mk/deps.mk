# Installs, once, the Debian packages that the project needs.  A list's stamp
# in build/ is newer than this file as long as nothing has to be done.

PKG_BUILD := nginx nginx-dev gcc g++ make libpcre2-dev libicu-dev libpsl-dev \
             publicsuffix zlib1g-dev xz-utils curl perl ca-certificates
PKG_TEST  := libcmocka-dev clang libclang-rt-14-dev git libhtml-parser-perl
PKG_BENCH := wrk redis-server libjudy-dev libmarisa-dev libhat-trie-dev \
             liburiparser-dev libcurl4-openssl-dev gnuplot-nox
PKG_CORPORA := git libhtml-parser-perl
PKG_WEB   := chromium prometheus python3-minimal golang-go \
             default-jdk-headless

# Debian would start its own nginx and redis as services: keep them down while
# we install, this project runs private ones.
define install
	@set -e; mkdir -p $(B); missing=; \
	for p in $(1); do \
	    dpkg-query -W -f='$${Status}' $$p 2>/dev/null \
	        | grep -q 'ok installed' || missing="$$missing $$p"; \
	done; \
	if [ -n "$$missing" ]; then \
	    echo "installing:$$missing"; \
	    sudo=; if [ "$$(id -u)" != 0 ]; then sudo=sudo; \
	        command -v sudo >/dev/null || { \
	            echo 'no sudo: install these as root'; exit 1; }; fi; \
	    made=; if [ ! -e /usr/sbin/policy-rc.d ]; then made=1; \
	        printf '#!/bin/sh\nexit 101\n' \
	            | $$sudo tee /usr/sbin/policy-rc.d >/dev/null; \
	        $$sudo chmod +x /usr/sbin/policy-rc.d; fi; \
	    trap '[ -z "$$made" ] || $$sudo rm -f /usr/sbin/policy-rc.d' EXIT; \
	    $$sudo apt-get update -qq; \
	    $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
	        --no-install-recommends $$missing >$(B)/apt.log 2>&1 \
	        || { tail -20 $(B)/apt.log; exit 1; }; \
	fi; \
	touch $@
endef

$(B)/.deps-build: mk/deps.mk
	$(call install,$(PKG_BUILD))

$(B)/.deps-test: mk/deps.mk
	$(call install,$(PKG_TEST))

$(B)/.deps-bench: mk/deps.mk
	$(call install,$(PKG_BENCH))

$(B)/.deps-corpora: mk/deps.mk
	$(call install,$(PKG_CORPORA))

deps: $(B)/.deps-build $(B)/.deps-test        ## installs build and test tools

.PHONY: deps
