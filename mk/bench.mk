# Benchmarks.  Each says what it compares and prints one table.
#
#   make bench        memory and time beside Redis and others    bench/peers
#   make bench-http   requests and batches over HTTP             bench/http
#   make bench-durability   adds on disk, restart         bench/durability
#
# They read the lists of URLs in build/corpora, else the samples.
#
#   make corpora                   from public git repositories, 1 GB to fetch
#   make corpora MIRROR=DIR        from bare ones, DIR/OWNER+NAME
#   make corpora CORPORA=DIR       from finished lists, DIR/NAME.txt.xz
#   make corpora LISTS='A B'       some only

FILE    ?=
LIMIT   ?=
SHUFFLE ?=

LISTS   ?=

corpora: $(B)/.deps-corpora        ## whole lists of URLs (MIRROR, CORPORA, LISTS)
	@MIRROR='$(MIRROR)' CORPORA='$(CORPORA)' \
	    tools/corpora/make.pl $(B)/corpora $(LISTS)

bench: $(B)/.deps-bench core $(B)/bench/structures  ## memory and time beside Redis and others
	@FILE='$(FILE)' LIMIT='$(LIMIT)' SHUFFLE='$(SHUFFLE)' \
	    bench/peers/run.pl

bench-http: $(B)/.deps-bench build                  ## requests and batches over HTTP, by wrk
	@bench/http/run.pl

$(B)/bench/structures: bench/peers/structures.cc | $(B)/.deps-bench
	@mkdir -p $(@D)
	$(CXX) -std=gnu++17 -O2 -Wall -Wextra -Werror -o $@ $< -lJudy \
	    -lhat-trie -lmarisa

bench-durability: $(B)/.deps-bench build $(B)/generate ## adds on disk, restart
	@bench/durability/run.pl

# of one part each, by hand: build/bench/codec, ...

$(B)/bench/%: bench/%.c $(B)/libus.a
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(filter-out -Wmissing-prototypes,$(WARN)) $(OPT) \
	    -MMD -MP -o $@ $< $(B)/libus.a $(CORE_LIBS)

.PHONY: corpora bench bench-http bench-durability
