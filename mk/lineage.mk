# What the founding systems did, measured against what this project does; and
# the generator of URLs that the larger benchmarks and tests use.
#
#   build/generate        URLs with the statistics of the real corpora
#
#   make bench-paper      the table and the figure of the founding paper
#   make bench-dedup      urlstore dedup beside sort -u, awk and Perl
#   make bench-hash       the load of seven nodes by the two hash functions
#   make bench-engine     all corpora, both orders, beside the peers
#   make bench-scale      1 M to 100 M generated URLs (SCALE=N for fewer)
#   make bench-memory     what a load costs here, from 1 MB to 2 GB

LINEAGE_CFLAGS := $(CSTD) $(WARN) $(OPT)

$(B)/generate: bench/generate.c | $(B)/.deps-build
	@mkdir -p $(@D)
	$(CC) $(LINEAGE_CFLAGS) -o $@ $< -lm

generate: $(B)/generate   ## the generator of URLs: build/generate -n N -s SEED

$(B)/bench/paper: bench/paper/paper.c bench/paper/avl.c bench/paper/avl.h \
                  $(B)/libus.a
	@mkdir -p $(@D)
	$(CC) $(LINEAGE_CFLAGS) -o $@ bench/paper/paper.c bench/paper/avl.c \
	    $(B)/libus.a $(CORE_LIBS)

bench-paper: $(B)/.deps-bench core $(B)/bench/paper  ## the table of the founding paper
	@bench/paper/run.pl

bench-hash: core $(B)/bench/hash     ## the load of nodes by the two hash functions
	@bench/hash/run.pl

$(B)/bench/hash: bench/hash/hash.c $(B)/libus.a
	@mkdir -p $(@D)
	$(CC) $(LINEAGE_CFLAGS) -o $@ $< $(B)/libus.a $(CORE_LIBS)

bench-dedup: core $(B)/generate     ## dedup beside sort -u, awk and Perl
	@bench/dedup/run.pl

bench-engine: $(B)/.deps-bench core $(B)/bench/structures ## all corpora, both orders, all peers
	@$(MAKE) --no-print-directory $(B)/bench/paper
	@bench/engine/run.pl

bench-scale: $(B)/.deps-bench core $(B)/generate  ## 1 M to 100 M generated URLs
	@bench/scale/run.pl

$(B)/bench/memory: bench/memory.c
	@mkdir -p $(@D)
	$(CC) $(LINEAGE_CFLAGS) -o $@ $<

bench-memory: $(B)/bench/memory      ## what a load costs on this machine
	@$<

.PHONY: generate bench-paper bench-hash bench-dedup bench-engine bench-scale \
        bench-memory
