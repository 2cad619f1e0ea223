# What the founding systems did, measured against what this project does; and
# the generator of URLs that the larger benchmarks and tests use.
#
#   build/generate        URLs with the statistics of the real corpora

LINEAGE_CFLAGS := $(CSTD) $(WARN) $(OPT)

$(B)/generate: bench/generate.c
	@mkdir -p $(@D)
	$(CC) $(LINEAGE_CFLAGS) -o $@ $< -lm

generate: $(B)/generate   ## the generator of URLs: build/generate -n N -s SEED

.PHONY: generate
