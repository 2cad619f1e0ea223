# The core (src/input, src/url, src/store, src/journal, src/data: no nginx
# header) and the command built on it.
#
#   build/obj/       optimized          -> build/urlstore
#   build/asan/      ASan + UBSan       -> unit tests, build/asan/urlstore
#   build/tsan/      TSan               -> threaded tests of the store

# make V=1 shows whole command lines
Q        := $(if $(V),,@)

CC       := gcc
WARN     := -Wall -Wextra -Werror -Wno-unused-parameter -Wshadow \
            -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
CSTD     := -std=gnu11 -Isrc
OPT      := -O2 -g -fno-omit-frame-pointer -fPIC -fvisibility=hidden
CORE_LIBS := -lpcre2-8 -licuuc -licudata -lpsl -lz -lpthread -lm

ASAN     := -O1 -g -fPIC -fno-omit-frame-pointer \
            -fsanitize=address,undefined -fno-sanitize-recover=undefined
TSAN     := -O1 -g -fPIC -fno-omit-frame-pointer -fsanitize=thread

CORE_SRC := $(sort $(wildcard src/us_*.c src/input/*.c src/url/*.c \
                      src/store/*.c src/journal/*.c src/data/*.c))
CLI_SRC  := $(sort $(wildcard src/cli/*.c))

obj       = $(patsubst src/%.c,$(B)/$(1)/%.o,$(2))

CORE_OBJ := $(call obj,obj,$(CORE_SRC))
CLI_OBJ  := $(call obj,obj,$(CLI_SRC))

core: $(B)/urlstore       ## the core and the urlstore command

$(B)/libus.a: $(CORE_OBJ)
	@rm -f $@; ar rcs $@ $^

$(B)/urlstore: $(CLI_OBJ) $(B)/libus.a
	@echo "  LD    $@"
	$(Q)$(CC) $(OPT) -o $@ $(CLI_OBJ) $(B)/libus.a $(CORE_LIBS)

$(B)/asan/libus.a: $(call obj,asan,$(CORE_SRC))
	@rm -f $@; ar rcs $@ $^

$(B)/asan/urlstore: $(call obj,asan,$(CLI_SRC)) $(B)/asan/libus.a
	@echo "  LD    $@"
	$(Q)$(CC) $(ASAN) -o $@ $(call obj,asan,$(CLI_SRC)) $(B)/asan/libus.a \
	    $(CORE_LIBS)

$(B)/tsan/libus.a: $(call obj,tsan,$(CORE_SRC))
	@rm -f $@; ar rcs $@ $^

define compile
	@mkdir -p $(@D)
	@echo "  CC    $(patsubst $(B)/%,%,$@)"
	$(Q)$(CC) $(CSTD) $(WARN) $(1) -MMD -MP -c -o $@ $<
endef

$(B)/obj/%.o: src/%.c | $(B)/.deps-build
	$(call compile,$(OPT))

$(B)/asan/%.o: src/%.c | $(B)/.deps-build
	$(call compile,$(ASAN))

$(B)/tsan/%.o: src/%.c | $(B)/.deps-build
	$(call compile,$(TSAN))

-include $(shell find $(B) -name '*.d' 2>/dev/null)

.PHONY: core
