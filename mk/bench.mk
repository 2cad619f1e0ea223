# Benchmarks.  Each says in its first line which URLs it reads, and prints what
# it compares in a table.
#
#   make bench              memory and time beside Redis, Valkey and others
#   make bench-engine       the same: all lists, both orders
#   make bench-http         requests and batches over HTTP
#   make bench-stream       links of pages, most seen before, beside Redis and Valkey
#   make bench-sets         memory and time of sets of each shape, 50 crawls
#                           beside those, a start with 1,000 sets, and
#                           bench-stream, which has links that a set has
#   make bench-durability   adds on disk, restart
#   make bench-erase        how long requests wait while a tenth is erased
#   make bench-cold         a store that is larger than memory, its log in a
#                           file; nothing of it ships
#   make bench-scale        1 M to 100 M generated URLs (SCALE=N for fewer)
#   make bench-url          ns per URL beside uriparser and libcurl
#   make bench-cluster      a router over shards beside a single node; the
#                           replicated log, and failover
#   make bench-dedup        urlstore dedup beside sort -u, awk and Perl
#   make bench-hash         the load of seven nodes by the two hash functions
#   make simulate           clusters of 1 to 1,024 shards, on paper
#   make bench-paper        the table and the figure of the founding paper
#   make visits             how a request walks through the files of src/
#   make bench-memory       what a load costs here, from 1 MB to 2 GB, or in
#                           MEGABYTES='1 64'
#
# They read the whole lists in CORPORA=DIR or build/corpora, else the samples
# in t/data and generated URLs (build/generate).
#
#   make corpora                   from public git repositories, over 1 GB to
#                                  fetch, and from seeds
#   make corpora MIRROR=DIR        from bare ones, DIR/OWNER+NAME
#   make corpora CORPORA=DIR       from finished lists, DIR/NAME.txt.xz
#   make corpora LISTS='A B'       some only

FILE    ?=
LIMIT   ?=
SHUFFLE ?=
LISTS   ?=
MIRROR  ?=
CORPORA ?=

export CORPORA

corpora: $(B)/.deps-corpora        ## whole lists of URLs (MIRROR, CORPORA, LISTS)
	@MIRROR='$(MIRROR)' tools/corpora/make.pl $(B)/corpora $(LISTS)

$(B)/generate: bench/generate.c | $(B)/.deps-build
	$(call program,$(OPT))

generate: $(B)/generate   ## the generator of URLs: build/generate -n N -s SEED

bench: $(B)/.deps-bench core $(B)/bench/engine $(B)/generate $(B)/bench/structures  ## memory and time beside Redis, Valkey and others
	@FILE='$(FILE)' LIMIT='$(LIMIT)' SHUFFLE='$(SHUFFLE)' \
	    bench/peers/run.pl

bench-engine: $(B)/.deps-bench core $(B)/bench/engine $(B)/bench/structures $(B)/bench/paper ## all lists, both orders, all peers
	@LIMIT='$(LIMIT)' bench/engine/run.pl

bench-http: $(B)/.deps-bench build $(B)/generate    ## requests and batches over HTTP, by wrk
	@bench/http/run.pl

bench-stream: $(B)/.deps-bench build $(B)/generate  ## links of pages, most seen before, beside Redis and Valkey
	@LISTS='$(LISTS)' bench/stream/run.pl

bench-sets: $(B)/bench/sets bench-stream ## sets of each shape, 50 crawls beside them, a start with 1,000 (IDS=N, START=N)
	@bench/sets/run.pl

bench-cluster: $(B)/.deps-bench $(B)/.deps-pg build $(B)/generate ## routers, the replicated log, failover
	@bench/cluster/route.pl
	@bench/cluster/replicated.pl

bench-durability: $(B)/.deps-bench build $(B)/generate ## adds on disk, restart
	@bench/durability/run.pl

bench-erase: $(B)/.deps-bench build $(B)/generate   ## how long requests wait during an erasure (URLS=N)
	@bench/erase/run.pl

bench-cold: core $(B)/bench/cold $(B)/generate     ## a store that is larger than memory (URLS=N, SHARE=%): root
	@bench/cold/run.pl

bench-scale: $(B)/.deps-bench core $(B)/bench/engine $(B)/generate  ## 1 M to 100 M generated URLs
	@bench/scale/run.pl

bench-url: $(B)/bench/normalize   ## ns per URL beside uriparser and libcurl
	@printf 'URLs: '; tools/corpus.sh about reddit_submissions eot2024_A \
	    alphagov_old_urls html_news_blogs_pages brave_sitelist \
	    tweetfeed_iocs
	@$<

bench-dedup: core $(B)/generate     ## dedup beside sort -u, awk and Perl
	@bench/dedup/run.pl

bench-hash: core $(B)/generate $(B)/bench/hash     ## the load of nodes by the two hash functions
	@bench/hash/run.pl

simulate: core $(B)/bench/engine $(B)/bench/simulate  ## clusters of 1 to 1,024 shards, by the map's own code
	@bench/cluster/run.pl

bench-paper: $(B)/.deps-bench core $(B)/bench/paper  ## the table of the founding paper
	@LIMIT='$(LIMIT)' bench/paper/run.pl

bench-memory: $(B)/bench/memory      ## what a load costs here (MEGABYTES='1 64')
	@$< $(MEGABYTES)

visits: $(B)/visits/ngx_http_urlstore_module.so $(B)/visits/hook.so ## how a request walks through the files of src/
	@bench/visits/run.pl

$(B)/visits/ngx_http_urlstore_module.so: $(MODULE_SRC) | $(B)/.libraries
	@mkdir -p $(@D)
	$(call nginx,visits/nginx-build,debian,modules,-O0 -g \
	    -finstrument-functions -finstrument-functions-exclude-file-list=.h)

$(B)/visits/hook.so: bench/visits/hook.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CSTD) $(WARN) -O2 -fPIC -shared -o $@ $<

$(B)/bench/structures: bench/peers/structures.cc | $(B)/.deps-bench
	@mkdir -p $(@D)
	@echo '  LD    $(patsubst $(B)/%,%,$@)'
	$(Q)$(CXX) -std=gnu++17 -O2 -Wall -Wextra -Werror -o $@ $< -lJudy \
	    -lhat-trie -lmarisa

$(B)/bench/normalize: bench/normalize.c $(B)/libus.a | $(B)/.deps-bench
	$(call program,$(OPT),-luriparser -lcurl)

$(B)/bench/paper: bench/paper/paper.c bench/paper/avl.c $(B)/libus.a
	$(call program,$(OPT))

$(B)/bench/simulate: bench/cluster/simulate.c $(B)/libus.a
	$(call program,$(OPT))

$(B)/bench/hash: bench/hash/hash.c $(B)/libus.a
	$(call program,$(OPT))

$(B)/bench/engine: bench/engine/engine.c $(B)/obj/cli/us_files.o \
			$(B)/obj/cli/us_cli.o $(B)/libus.a
	$(call program,$(OPT))

$(B)/bench/cold: bench/cold/cold.c $(B)/libus.a
	$(call program,$(OPT))

# of one part each, some by hand: build/bench/codec, ...

$(B)/bench/%: bench/%.c $(B)/libus.a
	$(call program,$(OPT))


# The built-in model is made once and committed: records refer to it for ever.
# It is learnt from 16,000 different URLs of each of these lists, spread over
# the list.

BUILTIN_FROM  := html_forms_forums_shops_pages html_mdn_archived_pages \
                 alphagov_old_urls brave_sitelist
CODEC_SRC     := $(addprefix src/codec/us_,model.c decoder.c parse.c train.c)

builtin-model: $(B)/builtin   ## learns src/codec/us_builtin_data.h anew
	@tools/corpus.sh whole $(BUILTIN_FROM)
	@for c in $(BUILTIN_FROM); do \
	    tools/corpus.sh cat $$c | awk '!s[$$0]++' \
	        | awk '{ l[NR] = $$0 } END { n = 16000; \
	            for (i = 0; i < n; i++) \
	                if (NR >= n || i < NR) \
	                    print l[int(i * (NR > n ? NR / n : 1)) + 1] }'; \
	done | $< 3072 32 > $(B)/us_builtin_data.h
	@mv $(B)/us_builtin_data.h src/codec/us_builtin_data.h

$(B)/builtin: tools/builtin.c $(CODEC_SRC) $(wildcard src/codec/*.h) | $(B)/.deps-build
	$(call program,$(OPT))

.PHONY: corpora generate bench bench-engine bench-http bench-stream bench-sets bench-cluster \
        bench-durability bench-erase bench-cold \
        bench-scale bench-url bench-dedup bench-hash bench-paper bench-memory \
        simulate visits builtin-model
