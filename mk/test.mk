# Tests.  `make test` is what everybody runs before a change goes in, and CI;
# the others are longer and are run when their part changes.
#
#   t/unit/*.c   C, one program each, with the sanitized core and cmocka
#   t/*.t        Perl, run by prove, against a private nginx (t/lib)
#   t/web/*      what needs a browser, node or promtool (mk/web.mk)
#
#   make test T=t/load*.t      some of t/*.t only, without the rest

T        ?=
PROVE    := perl -It/lib -S prove --timer --harness UrlStore::Harness -It/lib
UNIT_SRC := $(sort $(wildcard t/unit/*.c))
UNIT     := $(patsubst t/unit/%.c,$(B)/unit/%,$(UNIT_SRC))

ASAN_MODULE := $(B)/asan/ngx_http_urlstore_module.so
ASAN_NGX    := $(ASAN) -fno-sanitize=nonnull-attribute -DNGX_DEBUG_PALLOC=1 \
               $(NGX_WARN)
ASAN_OUT    := $(abspath $(B))/asan/nginx-build
NGX_SOURCE  := $(abspath $(B))/source/bookworm

test: test-programs $(if $(T),,test-unit)     ## all that CI runs
	@$(PROVE) $(or $(T),t)

# all that t/*.t run; other parts add what is theirs

test-programs: $(B)/.deps-test build $(B)/generate

# one line for each program; its whole output if it fails

test-unit: $(UNIT) $(B)/generate  ## the C unit tests, with ASan and UBSan
	@failed=0; for p in $(UNIT); do \
	    start=$$(date +%s%N); \
	    if timeout 300 env ASAN_OPTIONS=detect_leaks=1 \
	        UBSAN_OPTIONS=print_stacktrace=1 $$p >$$p.log 2>&1; \
	    then state="ok $$(grep -c '\[ *OK \]' $$p.log || true) tests,"; \
	        state="$$state $$(awk '/SKIPPED TEST/ { n = $$1 } \
	            END { print n + 0 }' $$p.log) skipped"; \
	    else state=FAILED; failed=1; cat $$p.log; fi; \
	    printf '%-32s %s, %d ms\n' "unit $${p##*/}" "$$state" \
	        $$((($$(date +%s%N) - start) / 1000000)); \
	done; \
	[ $$failed = 0 ] || { echo 'unit tests FAILED'; exit 1; }

$(B)/unit/%: t/unit/%.c $(B)/asan/libus.a | $(B)/.deps-test
	@mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(CSTD) -It/unit $(filter-out -Wmissing-prototypes,$(WARN)) \
	    $(ASAN) -MMD -MP -o $@ $< $(B)/asan/libus.a -lcmocka $(CORE_LIBS)

test-full: test-programs  ## t/ with whole lists of URLs
	@US_FULL=1 $(PROVE) $(or $(T),t)

# An nginx with the sanitizers, from Debian's source, and the module for it.
# NGX_DEBUG_PALLOC makes each allocation from a pool one of malloc(), or ASan
# would not see where it ends.

asan: $(ASAN_MODULE)      ## nginx and the module with ASan and UBSan

$(abspath $(B))/source/%/configure: tools/nginx-source.sh | $(B)/.deps-build
	@echo 'fetching the source of nginx in $*'
	@tools/nginx-source.sh $(@D) $*

$(ASAN_OUT)/Makefile: config $(wildcard src/* front/*) $(NGX_SOURCE)/configure
	@mkdir -p $(ASAN_OUT)
	@cd $(NGX_SOURCE) && . $(NGX_SRC)/conf_flags && ./configure \
	    "$${NGX_CONF_FLAGS[@]}" --builddir=$(ASAN_OUT) \
	    --with-cc-opt="$(ASAN_NGX)" \
	    --with-ld-opt="-fPIC -fsanitize=address,undefined" \
	    --add-dynamic-module=$(CURDIR) > $(ASAN_OUT)/configure.log \
	    || { tail -20 $(ASAN_OUT)/configure.log; exit 1; }

$(ASAN_MODULE): $(ASAN_OUT)/Makefile $(MODULE_SRC)
	@$(MAKE) --no-print-directory -f $(ASAN_OUT)/Makefile \
	    -C $(NGX_SOURCE) binary modules > $(ASAN_OUT)/make.log 2>&1 \
	    || { tail -40 $(ASAN_OUT)/make.log; exit 1; }
	$(call replace,$(ASAN_OUT)/nginx,$(@D)/nginx)
	$(call replace,$(ASAN_OUT)/ngx_http_urlstore_module.so,$@)

test-asan: test-programs asan             ## t/ in an nginx with ASan and UBSan
	@US_ASAN=1 $(PROVE) $(or $(T),t)

PKG_VALGRIND := valgrind

$(B)/.deps-valgrind: mk/deps.mk
	$(call install,$(PKG_VALGRIND))

test-valgrind: test-programs $(B)/.deps-valgrind  ## t/ with nginx under valgrind
	@US_VALGRIND=1 $(PROVE) $(or $(T),t)

.PHONY: test test-programs test-unit test-full test-asan test-valgrind asan
