# The core (src without src/http and src/route: no nginx header), the command
# built on it, and the module for the nginx that Debian ships.
#
#   build/obj/       optimized          -> build/urlstore, build/libus.a
#   build/asan/      ASan + UBSan       -> unit tests, an nginx of its own
#   build/tsan/      TSan               -> threaded tests of the store
#   build/faults/    with fault points  -> kills at chosen instructions
#
#   make CC=clang CFLAGS=-O3            obeyed, as LDFLAGS; after make clean
#   make install DESTDIR=DIR prefix=/usr
#   make V=1                            shows whole command lines

Q         := $(if $(V),,@)

ifeq ($(origin CC),default)
CC        := gcc
endif

CFLAGS    ?= -O2 -g
WARN      := -Wall -Wextra -Werror -Wno-unused-parameter -Wshadow \
             -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
CSTD      := -std=gnu11 -Isrc
OPT       := $(CFLAGS) -fno-omit-frame-pointer -fPIC -fvisibility=hidden
CORE_LIBS  = $(LDFLAGS) $(shell tools/libraries.sh libs) -lpthread -lm

ASAN      := -O1 -g -fPIC -fno-omit-frame-pointer \
             -fsanitize=address,undefined -fno-sanitize-recover=undefined
TSAN      := -O1 -g -fPIC -fno-omit-frame-pointer -fsanitize=thread

CORE_SRC  := $(sort $(filter-out src/ngx_% src/http/% src/route/% \
               src/cli/% src/postgres/%, \
               $(wildcard src/*.c src/*/*.c)))
CLI_SRC   := $(sort $(wildcard src/cli/*.c))

obj        = $(patsubst src/%.c,$(B)/$(1)/%.o,$(2))

build:                    ## the command and the modules
	$(parallel) $(B)/urlstore $(MODULE)
	$(if $(LIBPQ),,@echo 'no libpq (Debian: libpq-dev), and so without' \
	    $(notdir $(POSTGRES_MODULE)))

core:                     ## the core and the urlstore command
	$(parallel) $(B)/urlstore

define compile
	@mkdir -p $(@D)
	@echo "  CC    $(patsubst $(B)/%,%,$@)"
	$(Q)$(CC) $(CSTD) $(WARN) $(1) -MMD -MP -c -o $@ $<
endef

# a program of its prerequisites, without the sources that a unit test includes;
# flags, more libraries

define program
	@mkdir -p $(@D)
	@echo "  LD    $(patsubst $(B)/%,%,$@)"
	$(Q)$(CC) $(CSTD) $(filter-out -Wmissing-prototypes,$(WARN)) $(1) \
	    -MMD -MP -o $@ $(filter-out t/unit/../%,$(filter %.c %.o %.a,$^)) \
	    $(2) $(CORE_LIBS)
endef

define archive
	@rm -f $@; ar rcs $@ $^
endef

$(B)/obj/%.o: src/%.c | $(B)/.libraries
	$(call compile,$(OPT))

$(B)/asan/%.o: src/%.c | $(B)/.libraries
	$(call compile,$(ASAN))

$(B)/tsan/%.o: src/%.c | $(B)/.libraries
	$(call compile,$(TSAN))

$(B)/libus.a: $(call obj,obj,$(CORE_SRC))
	$(archive)

$(B)/asan/libus.a: $(call obj,asan,$(CORE_SRC))
	$(archive)

# the rooms that no thread shares memory in are left out: ThreadSanitizer does
# not know the fences of src/journal and src/life

$(B)/tsan/libus.a: $(call obj,tsan,$(filter-out src/journal/% src/life/%,\
                   $(CORE_SRC)))
	$(archive)

# what `urlstore version` prints: COMMIT is a file that make dist has packed

COMMIT := $(shell cut -c 1-12 COMMIT 2>/dev/null \
            || git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
NGINX   = $(or $(shell sed -n 's/^\#define NGINX_VERSION  *"\(.*\)"/\1/p' \
            $(firstword $(wildcard $(addsuffix \
            /usr/share/nginx/src/src/core/nginx.h,$(DEBIAN) /))) \
            /dev/null),unknown)

$(call obj,obj,src/cli/main.c) $(call obj,asan,src/cli/main.c): \
    WARN += -DUS_COMMIT='"$(COMMIT)"' -DUS_NGINX='"$(NGINX)"'

$(call obj,obj,src/cli/main.c) $(call obj,asan,src/cli/main.c): \
    $(B)/.commit-$(COMMIT)

$(B)/.commit-%:
	@mkdir -p $(@D) && rm -f $(B)/.commit-* && touch $@

$(B)/urlstore: $(call obj,obj,$(CLI_SRC)) $(B)/libus.a
	$(call program,$(OPT))

$(B)/asan/urlstore: $(call obj,asan,$(CLI_SRC)) $(B)/asan/libus.a
	$(call program,$(ASAN))

# not those of other systems; builtin.d knows only the last of its sources

-include $(shell find $(B) \( -path $(B)/deb -o -name bare -o -name builtin.d \) \
             -prune -o -name '*.d' -type f -print 2>/dev/null)


# --- the module, by one recipe ------------------------------------------

MODULE       := $(B)/ngx_http_urlstore_module.so
POSTGRES_MODULE := $(B)/ngx_http_urlstore_postgres_module.so
FAULT_MODULE := $(B)/faults/ngx_http_urlstore_module.so
ASAN_MODULE  := $(B)/asan/ngx_http_urlstore_module.so

comma        := ,
NGX_WARN     := -Wall -Wextra -Werror -Wno-unused-parameter
NGX_SOURCE   := $(abspath $(B))/source
MODULE_SRC    = $(wildcard config src/postgres/config src/*.[ch] \
                src/*/*.[ch] front/*) tools/nginx-build.sh $(B)/.libpq-$(or $(LIBPQ),no)

# the log in PostgreSQL is a module of its own, built where libpq is

LIBPQ         = $(shell pkg-config --exists libpq 2>/dev/null && echo yes)

$(B)/.libpq-%:
	@mkdir -p $(@D) && rm -f $(B)/.libpq-* && touch $@

# a folder below build/, source, targets, flags of the compiler, of the linker;
# a running nginx has its files mapped: they are replaced, never written to

define nginx
	@echo "  NGINX $@"
	+@tools/nginx-build.sh $(B)/$(1) $(2) '$(3)' --with-cc='$(CC)' \
	    --with-cc-opt='$(4) -fPIC $(NGX_WARN)' --with-ld-opt='-fPIC $(5)' \
	    --add-dynamic-module='$(CURDIR)' \
	    $(if $(LIBPQ),--add-dynamic-module='$(CURDIR)/src/postgres')
	@for m in $(if $(LIBPQ),$(notdir $(POSTGRES_MODULE))) $(@F); do \
	    cp $(B)/$(1)/$$m $(@D)/$$m.new && mv $(@D)/$$m.new $(@D)/$$m \
	        || exit 1; \
	done
endef

module:                   ## the nginx module
	$(parallel) $(MODULE)

$(MODULE): $(MODULE_SRC) | $(B)/.libraries
	$(call nginx,nginx,debian,modules,$(CFLAGS),$(LDFLAGS))

$(FAULT_MODULE): $(MODULE_SRC) | $(B)/.libraries
	@mkdir -p $(@D)
	$(call nginx,faults/nginx-build,debian,modules,-O2 -g -DUS_FAULT_POINTS=1)

# An nginx with the sanitizers, from Debian's source, and the module for it.
# NGX_DEBUG_PALLOC makes each allocation from a pool one of malloc(), or ASan
# would not see where it ends.
# nginx itself reads words at any address (ngx_str4cmp) where x86 can.

$(NGX_SOURCE)/%/configure: tools/source.sh | $(B)/.deps-build
	@echo 'fetching the source of nginx in $*'
	@tools/source.sh $(@D) $*

.PRECIOUS: $(NGX_SOURCE)/%/configure

$(ASAN_MODULE): $(MODULE_SRC) $(NGX_SOURCE)/$(SUITE)/configure | $(B)/.libraries
	@mkdir -p $(@D)
	$(call nginx,asan/nginx-build,$(NGX_SOURCE)/$(SUITE),binary modules,\
	    $(ASAN) -fno-sanitize=nonnull-attribute$(comma)alignment \
	    -DNGX_DEBUG_PALLOC=1,\
	    -fsanitize=address$(comma)undefined)
	@cp $(B)/asan/nginx-build/nginx $(@D)/nginx.new
	@mv $(@D)/nginx.new $(@D)/nginx

asan:                     ## nginx and the module with ASan and UBSan
	$(parallel) $(ASAN_MODULE)


# --- make install -------------------------------------------------------

DESTDIR   ?=
prefix    ?= /usr/local
bindir    ?= $(prefix)/bin
moduledir ?= $(prefix)/lib/nginx/modules
docdir    ?= $(prefix)/share/doc/urlstore
libdir    ?= $(prefix)/lib
headerdir ?= $(prefix)/include
mandir    ?= $(prefix)/share/man
bashdir   ?= $(prefix)/share/bash-completion/completions
zshdir    ?= $(prefix)/share/zsh/site-functions

DOCS      := README.md CHANGELOG.md SECURITY.md CONTRIBUTING.md LICENSE \
             $(wildcard docs/*.md docs/*/* conf/* examples/*)

# of libus.a, for other programs (examples/embed.c)

HEADERS   := us_base.h us_version.h us_process.h url/us_normalize.h \
             url/us_url.h zone/us_conf.h store/us_store.h store/us_hot.h \
             store/us_erasures.h life/us_embed.h

VERSION    = $(shell sed -n 's/.*US_VERSION  *"\(.*\)"/\1/p' src/us_version.h)

install: build man        ## the command, the module, the library, documents (DESTDIR, prefix)
	install -d '$(DESTDIR)$(bindir)' '$(DESTDIR)$(moduledir)' \
	    '$(DESTDIR)$(libdir)/pkgconfig'
	install -m 755 $(B)/urlstore '$(DESTDIR)$(bindir)'
	install -m 644 $(MODULE) $(if $(LIBPQ),$(POSTGRES_MODULE)) \
	    '$(DESTDIR)$(moduledir)'
	install -m 644 $(B)/libus.a '$(DESTDIR)$(libdir)'
	@for f in $(HEADERS); do \
	    install -D -m 644 src/$$f '$(DESTDIR)$(headerdir)'/urlstore/$$f \
	        || exit 1; \
	done
	@sed -e 's|@prefix@|$(prefix)|; s|@libdir@|$(libdir)|' \
	    -e 's|@includedir@|$(headerdir)|; s|@version@|$(VERSION)|' \
	    tools/urlstore.pc.in \
	    > '$(DESTDIR)$(libdir)/pkgconfig/urlstore.pc'
	install -d '$(DESTDIR)$(mandir)/man1' '$(DESTDIR)$(bashdir)' \
	    '$(DESTDIR)$(zshdir)'
	install -m 644 $(MAN)/*.1 '$(DESTDIR)$(mandir)/man1'
	install -m 644 $(MAN)/urlstore '$(DESTDIR)$(bashdir)'
	install -m 644 $(MAN)/_urlstore '$(DESTDIR)$(zshdir)'
	@for f in $(DOCS); do \
	    install -D -m 644 $$f '$(DESTDIR)$(docdir)'/$$f || exit 1; \
	done
	@echo 'For nginx.conf: load_module $(moduledir)/$(notdir $(MODULE));'

uninstall:                ## removes what make install has installed
	rm -f '$(DESTDIR)$(bindir)/urlstore' \
	    '$(DESTDIR)$(moduledir)/$(notdir $(MODULE))' \
	    '$(DESTDIR)$(moduledir)/$(notdir $(POSTGRES_MODULE))' \
	    '$(DESTDIR)$(libdir)/libus.a' \
	    '$(DESTDIR)$(libdir)/pkgconfig/urlstore.pc' \
	    '$(DESTDIR)$(bashdir)/urlstore' '$(DESTDIR)$(zshdir)/_urlstore' \
	    '$(DESTDIR)$(mandir)'/man1/urlstore.1 \
	    '$(DESTDIR)$(mandir)'/man1/urlstore-*.1
	rm -rf '$(DESTDIR)$(headerdir)/urlstore'
	@for f in $(DOCS); do rm -f '$(DESTDIR)$(docdir)'/$$f; done
	@cd '$(DESTDIR)$(docdir)' 2>/dev/null && rmdir \
	    $(sort $(filter-out ./,$(dir $(DOCS)))) 2>/dev/null || true
	@rmdir '$(DESTDIR)$(docdir)/docs' '$(DESTDIR)$(docdir)' \
	    2>/dev/null || true

.PHONY: build core module asan install uninstall
