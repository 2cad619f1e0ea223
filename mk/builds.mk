# Other builds than the one of `make`: inside of nginx (--add-module), in the
# nginx of the next Debian, and by clang.  Each is a whole nginx, in which a
# part of t/ is run.
#
#   make test-builds                         all of them
#   make build/builds/trixie-static-gcc.ok   one: SUITE-KIND-COMPILER

BUILDS      := bookworm-static-gcc trixie-static-gcc trixie-dynamic-gcc \
               bookworm-dynamic-clang
BUILD_TESTS ?= $(sort $(wildcard t/http_*.t) t/filter.t t/durability.t)

BUILD_SOURCES := $(patsubst %,$(abspath $(B))/source/%/configure,\
                 bookworm trixie)

test-builds: $(patsubst %,$(B)/builds/%.ok,$(BUILDS))  ## static, nginx of the next Debian, clang
	@$(MAKE) --no-print-directory CC=clang B=$(B)/clang core

$(B)/builds/%.ok: $(MODULE_SRC) $(wildcard front/*) tools/test-build.sh \
                  $(BUILD_SOURCES) | $(B)/.deps-test build
	@tools/test-build.sh $* $(B) '$(NGX_WARN)' $(BUILD_TESTS)
	@touch $@

.PHONY: test-builds
