# The built-in model, and the codec measured alone.  The model is made once
# and committed: records refer to it for ever.
#
#   make builtin-model                 src/store/us_builtin_data.c
#   xz -dc X.txt.xz | build/bench/codec   bytes, ns, training

BUILTIN_FROM  := html_forms_forums_shops_pages html_mdn_archived_pages \
                 alphagov_old_urls brave_sitelist
CODEC_SRC     := $(filter-out %us_builtin_data.c,$(wildcard \
                 $(addprefix src/store/us_,model.c decoder.c model_write.c huffman.c \
                 run.c parse.c encoder.c train.c vocabulary.c cluster.c)))

# 16,000 distinct URLs of each, spread over the file

builtin-model: $(B)/builtin   ## learns src/store/us_builtin_data.c anew
	@tools/corpus.sh whole $(BUILTIN_FROM)
	@for c in $(BUILTIN_FROM); do \
	    tools/corpus.sh cat $$c | awk '!s[$$0]++' \
	        | awk '{ l[NR] = $$0 } END { n = 16000; \
	            for (i = 0; i < n; i++) \
	                if (NR >= n || i < NR) \
	                    print l[int(i * (NR > n ? NR / n : 1)) + 1] }'; \
	done | $< 3072 32 > $(B)/us_builtin_data.c
	@mv $(B)/us_builtin_data.c src/store/us_builtin_data.c

$(B)/builtin: tools/builtin.c $(CODEC_SRC) | $(B)/.deps-build
	$(CC) $(CSTD) $(WARN) $(OPT) -o $@ $^ -lm

$(B)/bench/codec: bench/codec.c $(B)/libus.a | $(B)/.deps-build
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) $(OPT) -o $@ $^ $(CORE_LIBS)

# hostile bits and models, and texts that must come back

FUZZ_CODEC_OBJ  = $(patsubst src/%.c,$(B)/fuzz/obj/%.o,$(CODEC_SRC) \
                  src/store/us_builtin.c src/store/us_builtin_data.c)

$(B)/fuzz/bin/codec: fuzz/codec.c $(FUZZ_CODEC_OBJ)
	@mkdir -p $(@D)
	clang $(FUZZ_CFLAGS) -fsanitize=fuzzer -o $@ $^ -lm

fuzz-codec: $(B)/fuzz/bin/codec  ## fuzzes the codec for FUZZ_SECONDS
	@mkdir -p $(B)/fuzz/codec
	@nice -n 19 $< -timeout=5 -max_total_time=$(FUZZ_SECONDS) -max_len=512 \
	    -print_final_stats=1 -artifact_prefix=$(B)/fuzz/codec- \
	    $(B)/fuzz/codec >$(B)/fuzz/codec.log 2>&1 \
	    || { tail -40 $(B)/fuzz/codec.log; exit 1; }
	@grep number_of_executed $(B)/fuzz/codec.log

fuzz: fuzz-codec

.PHONY: builtin-model fuzz-codec
