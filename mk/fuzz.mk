# Fuzzing (libFuzzer, clang) of all that reads what others wrote.
#
#   make fuzz FUZZ_SECONDS=3600      all targets, the time shared among them
#
#   json, input                  bodies, cut anywhere
#   map                          maps of a cluster, and which may follow which
#   scatter                      what shards answer to a router
#   journal                      segments, snapshots and manifests
#   stream                       what a replica reads from its primary
#   url_parse, _resolve, _rules  URLs, links, rules
#   codec                        hostile records and models, and texts that
#                                must come back
#
# fuzz/seeds/TARGET.txt holds what is kept, one input a line, written as in C:
# inputs from the vectors, and each input that once found something.  What a
# run finds is in build/fuzz/TARGET.

FUZZ_SECONDS ?= 60
FUZZERS      := json input map scatter journal stream url_parse url_resolve \
                url_rules codec
FUZZ_CFLAGS  := $(CSTD) -O1 -g -fno-omit-frame-pointer \
                -fsanitize=address,undefined,fuzzer-no-link \
                -fno-sanitize-recover=undefined
FUZZ_SHARE   := $(shell expr \( $(FUZZ_SECONDS) + $(words $(FUZZERS)) - 1 \) \
                / $(words $(FUZZERS)))

# the longest input; a ref of more than 4096 bytes has to fit in
FUZZ_MAX_json  := 8192
FUZZ_MAX_input := 8192
FUZZ_MAX_codec := 512

# two maps
FUZZ_MAX_map   := 2048

$(B)/fuzz/obj/%.o: src/%.c | $(B)/.deps-fuzz
	@mkdir -p $(@D)
	clang $(FUZZ_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/fuzz/libus.a: $(patsubst src/%.c,$(B)/fuzz/obj/%.o,$(CORE_SRC))
	$(archive)

$(addprefix $(B)/fuzz/bin/url_,parse resolve rules): fuzz/laws.c fuzz/laws.h

$(B)/fuzz/bin/%: fuzz/%.c fuzz/pieces.h $(B)/fuzz/libus.a
	@mkdir -p $(@D)
	clang $(FUZZ_CFLAGS) -fsanitize=fuzzer -o $@ $(filter %.c,$^) $(filter %.a,$^) \
	    $(CORE_LIBS)

# one fuzzer, for its share of the time; not all have seeds

define fuzz
	@mkdir -p $(B)/fuzz/$(1) $(B)/fuzz/seeds/$(1)
	@[ ! -e fuzz/seeds/$(1).txt ] \
	    || perl fuzz/unpack.pl fuzz/seeds/$(1).txt $(B)/fuzz/seeds/$(1)
	@echo "$(1): $(FUZZ_SHARE) seconds"
	@nice -n 19 $(B)/fuzz/bin/$(1) -timeout=30 -rss_limit_mb=2048 \
	    -max_total_time=$(FUZZ_SHARE) \
	    -max_len=$(or $(FUZZ_MAX_$(1)),1024) \
	    -print_final_stats=1 -artifact_prefix=$(B)/fuzz/$(1)- \
	    $(B)/fuzz/$(1) $(B)/fuzz/seeds/$(1) >$(B)/fuzz/$(1).log 2>&1 \
	    || { tail -40 $(B)/fuzz/$(1).log; exit 1; }
	@grep number_of_executed $(B)/fuzz/$(1).log

endef

fuzz: $(patsubst %,$(B)/fuzz/bin/%,$(FUZZERS))  ## fuzzes for FUZZ_SECONDS
	$(foreach t,$(FUZZERS),$(call fuzz,$(t)))

.PHONY: fuzz
