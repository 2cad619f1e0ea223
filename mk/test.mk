# Tests.  `make test` is what everybody runs before a change goes in; CI runs
# its parts, the web and the clients.  The others are longer and are run when
# their part changes.
#
#   t/unit/*.c      C, one program each, with the sanitized core and cmocka
#   t/*.t           Perl, run by prove, against a private nginx (t/lib)
#   t/stress/*.c    kill.c: processes, killed at random instructions, on real
#                   and generated URLs, from which models are learnt meanwhile;
#                   steps.c: a writer, killed after each of its stores;
#                   room.c: full zones, restarted in the same SIZE;
#                   threads.c: threads under ThreadSanitizer;
#                   erase.c: records are erased while others are read
#   t/web/*         what needs a browser, node or Prometheus
#   t/clients/*     the clients, in each language
#   t/fault/*.c     a disk that fails, a clock that is set
#   t/model/*.pml   the protocols of the store and of growth, for spin
#   t/model/weak.c  those of the store on a machine that reorders, for GenMC
#
#   make test T=t/load*.t      some of t/*.t only, without the rest

# The files of t/ wait more than they compute: there are more of them at a time
# than processors, those that take longest first, and beside them run the unit
# tests and the kills, which compute, and give way to them (nice).

T       ?=
PROVE   := perl -It/lib -S prove --timer --harness UrlStore::Harness -It/lib
AT_ONCE := $(shell echo $$(($(JOBS) + 1)))
BESIDE  := test-files test-route-short test-simulate test-stress test-unit

test: $(if $(T),test-server,programs) ## unit tests, t/, kills, threads
	$(if $(T),,$(parallel) -k $(BESIDE))

test-all: programs        ## what CI runs: test, test-web, test-clients, at once
	$(parallel) -k T='$(LONG) $(filter-out $(LONG),$(T_ALL) $(T_WEB) \
	    $(T_CLIENTS))' $(BESIDE)

LONG       = t/clients/scrapy.t $(T_LONG) t/web/page.t t/clients/crawl.t
T_LONG    := $(addprefix t/,replica.t cluster_failover.t cluster_erase_log.t \
             erasure_replica.t cluster_away.t cluster_lost.t bench.t \
             cluster_differ.t cluster_path.t)
T_ALL      = $(T_LONG) $(filter-out $(T_LONG),$(sort $(wildcard t/*.t)))
T_WEB      = $(wildcard t/web/*.t)
T_CLIENTS  = $(wildcard t/clients/*.t)

test-server: test-programs     ## t/*.t: the server, the command, documents
	@$(PROVE) -j $(AT_ONCE) $(or $(T),$(T_ALL))

# without anything that has to be made first: it is the first that is started

test-files:
	@$(PROVE) -j $(AT_ONCE) $(or $(T),$(T_ALL))

test-full: test-programs  ## t/ with whole lists of URLs
	@US_FULL=1 $(PROVE) $(or $(T),t)

# The interface over a router: of one shard; of three, which are all asked.  A
# retry repeats nothing of a shard that was asked as a former owner.

ROUTE_TESTS := $(addprefix t/http_,access.t answers.t bodies.t cache.t \
               quota.t table.t urls.t)

test-route: test-programs ## t/http_*.t over routers (UrlStore::Route)
	@US_ROUTE=1 $(PROVE) -j $(JOBS) $(or $(T),$(ROUTE_TESTS) \
		t/http_idempotency.t)
	@US_ROUTE=3 $(PROVE) -j $(JOBS) $(or $(T),$(ROUTE_TESTS))

test-route-short: test-programs
	@US_ROUTE=3 $(PROVE) -j $(JOBS) t/http_answers.t t/http_urls.t

# what t/*.t run

FAULT_DISK    := $(B)/faults/disk.so
FAULT_CLOCK   := $(B)/faults/clock.so
TEST_PROGRAMS  = $(B)/urlstore $(MODULE) $(B)/bench/engine $(B)/bench/sets $(B)/bench/cold $(B)/generate $(B)/laws $(B)/builtin \
                 $(B)/traces/traces $(B)/traces/left $(B)/traces/ops \
                 $(FAULT_DISK) $(FAULT_CLOCK) $(FAULT_MODULE) \
                 $(if $(LIBPQ),$(B)/postgres/log)

test-programs: deps
	$(parallel) $(TEST_PROGRAMS)

# what all tests run for which packages are there

programs: deps            ## all that tests need, for DEPS
	$(parallel) $(TEST_PROGRAMS) $(UNIT) $(STRESS) $(B)/simulate \
	    $(if $(filter web,$(DEPS)),$(WEB_MODULES)) \
	    $(if $(filter clients,$(DEPS)),$(CLIENT_MODULES))

$(B)/faults/%.so: t/fault/%.c | $(B)/.deps-build
	@mkdir -p $(@D)
	$(CC) -O1 -fPIC -shared -Wall -o $@ $< -ldl

# the log in PostgreSQL, by hand

POSTGRES_OBJ := $(call obj,asan,$(wildcard src/postgres/*.c))

$(POSTGRES_OBJ): WARN += $(shell pkg-config --cflags libpq 2>/dev/null)

$(B)/postgres/log: t/postgres/log.c $(POSTGRES_OBJ) | $(B)/.deps-test
	$(call program,$(ASAN),-lpq)

$(B)/traces/traces: t/traces/traces.c | $(B)/.deps-build
	$(call program,$(OPT))

# now: a function that is bound at its first call saves all registers on the
# stack, and texts are copied by registers

$(B)/traces/left: t/traces/left.c $(B)/libus.a
	$(call program,$(OPT) -z now)

$(B)/traces/ops: t/traces/ops.c $(B)/libus.a
	$(call program,$(OPT))

$(B)/laws: fuzz/corpus.c fuzz/laws.c $(B)/libus.a
	$(call program,$(OPT))


# --- unit tests: a line for each program; its whole output if it fails ---

UNIT_LONG := store_train store_hostile store_erase life codec_record \
             codec_model
UNIT_ALL  := $(sort $(patsubst t/unit/%.c,%,$(wildcard t/unit/*.c)))
UNIT      := $(addprefix $(B)/unit/,$(UNIT_ALL))

test-unit: deps           ## the C unit tests, with ASan and UBSan
	$(parallel) $(UNIT) $(B)/generate
	$(parallel) -k $(addprefix test-unit-,$(filter $(UNIT_ALL),$(UNIT_LONG)) \
	    $(filter-out $(UNIT_LONG),$(UNIT_ALL)))

# one of them, by name

UNIT_SECONDS := 1200

test-unit-%: $(B)/unit/% $(B)/generate
	@start=$$(date +%s%N); \
	if timeout $(UNIT_SECONDS) nice -n 5 env ASAN_OPTIONS=detect_leaks=1 \
	    UBSAN_OPTIONS=print_stacktrace=1 $(RUN) $< >$<.log 2>&1; \
	then state="ok $$(grep -c '\[ *OK \]' $<.log || true) tests,"; \
	    state="$$state $$(awk '/SKIPPED TEST/ { n = $$1 } \
	        END { print n + 0 }' $<.log) skipped"; \
	else state=FAILED; cat $<.log; fi; \
	printf '%-32s %s, %d ms\n' "unit $*" "$$state" \
	    $$((($$(date +%s%N) - start) / 1000000)); \
	[ "$$state" != FAILED ]

# those with t/unit/life_fake.h let memory fail, too

$(addprefix $(B)/unit/,admit copier life replica): UNIT_WRAP := \
    -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc

$(B)/simulate $(B)/unit/simulate: UNIT_WRAP := -Wl,--wrap=us_wipe_thread \
    -Wl,--wrap=us_manifest_boot

$(B)/unit/%: t/unit/%.c $(B)/asan/libus.a | $(B)/.deps-test
	$(call program,-It/unit $(ASAN) $(UNIT_WRAP),-lcmocka)


# --- the simulation ---------------------------------------------------
#
#   make simulate-faults SEEDS=10000          seeds 1 to 10,000
#   make simulate-faults SEEDS=1000 FIRST=501
#   make simulate-faults SEED=7               prints what happens
#
# The same program as the unit test of that name, without sanitizers.

SEED  ?=
FIRST ?= 1

$(B)/simulate: t/unit/simulate.c $(B)/libus.a | $(B)/.deps-test
	$(call program,-It/unit $(OPT) $(UNIT_WRAP),-lcmocka)

simulate-faults: $(B)/simulate  ## nodes of a log, clients, faults, by seeds: SEEDS=300, FIRST=1, SEED=
	@nice -n 10 env US_SEEDS=$(or $(SEEDS),300) US_FIRST=$(FIRST) \
	    US_SEED=$(SEED) US_JOBS=$(JOBS) $<

# what of src/ it reaches (gcov): by room, and against t/data/unreached.txt

simulate-reach: deps      ## functions that 300 seeds of the simulation do not reach
	@mkdir -p $(B)/reach
	@touch $(addprefix $(B)/reach/.deps-,build pg test)
	@find $(B)/reach -name '*.gcda' -delete
	+@$(MAKE) --no-print-directory B=$(B)/reach DEPS= ASAN='$(COVERAGE)' \
	    LDFLAGS=--coverage $(B)/reach/unit/simulate
	@nice -n 10 env US_SEEDS=300 US_JOBS=$(JOBS) $(B)/reach/unit/simulate \
	    > $(B)/reach/log 2>&1 || { cat $(B)/reach/log; exit 1; }
	@tools/coverage.pl $(B)/reach t/data/unreached.txt

test-simulate: $(B)/simulate
	@nice -n 5 env US_SEEDS=300 $< >$<.log 2>&1 || { cat $<.log; exit 1; }
	@echo "simulate 300 seeds: ok"


# --- stress, the model ---------------------------------------------------

STRESS_SECONDS ?= 10
STRESS         := $(addprefix $(B)/stress/,kill room steps threads claims erase \
                  urls)

$(B)/stress/threads $(B)/stress/claims: $(B)/stress/%: t/stress/%.c \
    $(B)/tsan/libus.a
	$(call program,$(TSAN))

$(B)/stress/%: t/stress/%.c $(B)/libus.a
	$(call program,$(OPT))

$(B)/stress/urls: $(B)/urlstore $(B)/generate
	@mkdir -p $(@D)
	@{ tools/corpus.sh cat reddit_submissions | head -n 100000; \
	    $(B)/generate -n 110000; } | $< normalize | grep ^http >$@

test-stress: deps         ## kills, threads, full zones (STRESS_SECONDS)
	$(parallel) $(STRESS)
	$(parallel) -k $(addprefix test-stress-,steps kill threads \
	    erase claims room)

test-stress-kill:    ARGS := $(STRESS_SECONDS)
test-stress-threads: ARGS := 5
test-stress-erase:   ARGS := 3000
test-stress-claims:  ARGS := 200
test-stress-room:    ARGS := 4 6

test-stress-%: $(B)/stress/% $(B)/stress/urls
	@nice -n 5 $< $(ARGS) >$<.log 2>&1 <$(B)/stress/urls \
	    || { cat $<.log; exit 1; }
	@echo "stress $* $(ARGS): $$(tail -1 $<.log)"

test-kill: $(B)/stress/kill $(B)/stress/urls ## random SIGKILL, 10 minutes
	$(B)/stress/kill 600 <$(B)/stress/urls

STEPS ?= all

test-steps: $(B)/stress/steps  ## a writer, killed after every single store
	$(RUN) $< $(if $(STEPS),'$(STEPS)')

test-room: $(B)/stress/room  ## full zones that restart, 500 kinds
	$< 500

check-model: $(B)/.deps-build $(B)/.deps-model ## the models of store, growth and log, and their mutants
	@tools/check-model.sh $(B)/model

GENMC ?= genmc

check-weak:     ## t/model/weak.c under weak memory models (GENMC=genmc), results: weak.txt
	@tools/check-weak.sh $(GENMC)


# --- where nothing is installed -----------------------------------------
#
#   make test-bare                         run, stop, test-docs, test
#   make test-bare SUITE=trixie            in another Debian
#   make test-bare ARCH=arm64 BARE=test-server   t/ in another machine's, by qemu
#   make test-bare BARE='run stop'         others
#   make test-bare BARE=test T=t/formats.t     one test
#   make test-bare BARE='deb test-deb'     packages, which are kept in build/SUITE
#   make test-bare BARE_USER=tester        all by one who is not root

BARE      ?= run stop test-docs test
ARCH      ?=
BARE_USER ?=

test-bare:      ## run, test-docs and test in a bare Debian (SUITE): root, debootstrap, 10 GB
	@tools/packages.sh install debootstrap $(if $(ARCH),qemu-user-static dpkg-dev \
	    crossbuild-essential-$(ARCH))
	@SUITE=$(SUITE) ARCH=$(ARCH) T='$(T)' BARE_USER=$(BARE_USER) \
	    tools/bare.sh $(B)/bare $(BARE)

# --- another C library, another machine ---------------------------------
#
# The core, the command and the unit tests, without sanitizers, by
# another compiler against libraries from Debian's sources (tools/foreign.sh),
# in build/musl and build/arm64.
#
#   make test-musl UNIT_ALL='life filter'     some of the unit tests
#   make test-arm64 STEPS=all                 each copy, not samples of them

RUN :=

define foreign
	@tools/packages.sh install $(PKG_$(1))
	@mkdir -p $(B)/$(1) && touch $(addprefix $(B)/$(1)/.deps-,build pg test)
	@[ -e $(B)/$(1)/libraries/lib/libcmocka.a ] \
	    || tools/foreign.sh $(B)/$(1)/libraries $(2)
	+@PKG_CONFIG_LIBDIR=$(abspath $(B))/$(1)/libraries/lib/pkgconfig \
	    $(MAKE) --no-print-directory B=$(B)/$(1) DEPS= CC=$(firstword $(2)) \
	    CFLAGS='-O2 -g -I$(B)/$(1)/libraries/include' \
	    ASAN='-O1 -g -I$(B)/$(1)/libraries/include $(if $(3),-DHUGE_GB=70)' \
	    LDFLAGS='-L$(B)/$(1)/libraries/lib' RUN='$(3)' \
	    $(if $(3),UNIT_SECONDS=3600 STEPS='$(STEPS)') core test-unit $(4)
endef

test-musl: $(B)/generate  ## the command and the unit tests with musl
	$(call foreign,musl,musl-gcc)

test-arm64: STEPS :=
test-arm64: $(B)/generate  ## the command, the unit tests, steps for arm64, under qemu
	$(call foreign,arm64,aarch64-linux-gnu-gcc aarch64-linux-gnu,\
	    qemu-aarch64-static -L /usr/aarch64-linux-gnu,test-steps)

# --- what has run -------------------------------------------------------
#
# The unit tests, and t/*.t with a module, that count what they run (gcov), in
# build/coverage: a table of rooms, and dead.txt.
#
#   make coverage                         the unit tests and t/*.t
#   make coverage UNIT_ALL=life T=t/http_quota.t     some of them
#   make coverage T=none                  the unit tests alone
#
# The workers are of another user, hence the modes.  What is on make's command
# line would take the place of the flags in nginx's own Makefile.

COVERAGE := -O0 -g -fPIC --coverage

coverage: test-programs   ## lines and branches that the tests run, by room, in build/coverage
	@mkdir -p $(B)/coverage
	@touch $(addprefix $(B)/coverage/.deps-,build pg test)
	@find $(B)/coverage -name '*.gcda' -delete
	+@$(MAKE) --no-print-directory -k B=$(B)/coverage DEPS= RUN= \
	    UNIT_SECONDS=3600 ASAN='$(COVERAGE)' LDFLAGS=--coverage test-unit
	$(if $(filter none,$(T)),,+@CFLAGS='$(COVERAGE)' LDFLAGS=--coverage \
	    $(MAKE) --no-print-directory B=$(B)/coverage DEPS= module)
	$(if $(filter none,$(T)),,@find $(B)/coverage -type d -exec chmod 777 {} +; umask 0; \
	    US_MODULE=$(abspath $(B))/coverage/$(notdir $(MODULE)) \
	    US_POSTGRES_MODULE=$(abspath $(B))/coverage/$(notdir $(POSTGRES_MODULE)) \
	    $(PROVE) -j $(JOBS) $(or $(T),$(T_ALL)); echo $$? > $(B)/coverage/rc)
	@tools/coverage.pl $(B)/coverage | tee $(B)/coverage/rooms.md
	$(if $(filter none,$(T)),,@exit $$(cat $(B)/coverage/rc))

# --- t/ in another nginx ------------------------------------------------
#
# Not under valgrind: tests that map more memory than it can, or bound times.

VALGRIND := valgrind -q --error-exitcode=99 --exit-on-first-error=yes \
            --leak-check=no --suppressions=t/data/valgrind.supp
NO_VALGRIND := codec_record store_hostile store_log url_rules

test-asan: test-programs asan             ## t/ in an nginx with ASan and UBSan
	@US_ASAN=1 $(PROVE) $(or $(T),t)

test-valgrind: test-programs $(B)/.deps-valgrind  ## the unit tests, and T= with nginx, under valgrind
	@mkdir -p $(B)/valgrind
	@touch $(addprefix $(B)/valgrind/.deps-,build pg test)
	+@$(MAKE) --no-print-directory -k B=$(B)/valgrind DEPS= \
	    ASAN='-O1 -g -fPIC' UNIT_SECONDS=7200 RUN='$(VALGRIND)' \
	    UNIT_ALL='$(filter-out $(NO_VALGRIND),$(UNIT_ALL))' test-unit
	$(if $(T),@US_VALGRIND=1 $(PROVE) $(T))

# Other builds than the one of `make`: inside of nginx (--add-module), in the
# nginx of the next Debian, by clang, and in each source of nginx, or of a server
# derived from it (freenginx, Angie, OpenResty's bundle/nginx-*), that is a
# folder of NGINX_SOURCES: DIR/NAME/configure.  Each is a whole server, in which
# the tests that need one are run; build/builds/NAME.log has what they printed.
#
#   make test-builds NGINX_SOURCES=DIR       all of them
#   make build/builds/trixie-static-gcc.ok   one: SOURCE-KIND-COMPILER
#   make test-builds BUILD_TESTS=t/http_*.t  with other tests

NGINX_SOURCES ?=
SOURCES       := $(patsubst $(NGINX_SOURCES)/%/configure,%,\
                 $(wildcard $(NGINX_SOURCES)/*/configure))
BUILDS        := bookworm-static-gcc trixie-static-gcc trixie-dynamic-gcc \
                 bookworm-dynamic-clang $(addsuffix -dynamic-gcc,$(SOURCES))

# these two have a module for Debian's nginx: with fault points, and installed

BUILD_TESTS   ?= $(filter-out t/durability_points.t t/install.t,$(sort $(shell \
                 grep -l 'use UrlStore::Test;' t/*.t)))

test-builds: $(patsubst %,$(B)/builds/%.ok,$(BUILDS))  ## static, by clang, in other nginxes (NGINX_SOURCES)
	@$(MAKE) --no-print-directory CC=clang B=$(B)/clang core

$(foreach s,bookworm trixie,$(eval $(patsubst %,$(B)/builds/%.ok,\
    $(filter $s-%,$(BUILDS))): $(NGX_SOURCE)/$s/configure))

$(B)/builds/%.ok: $(MODULE_SRC) tools/test-build.sh | test-programs
	@NGINX_SOURCES='$(NGINX_SOURCES)' tools/test-build.sh $* $(B) \
	    '$(NGX_WARN)' '$(JOBS)' $(BUILD_TESTS)
	@touch $@


# --- upgrades from another commit ---------------------------------------
#
#   make test-upgrade FROM=COMMIT

FROM ?= HEAD

test-upgrade: test-programs    ## the upgrade matrix, from the module of another commit (FROM)
	@rm -rf $(B)/upgrade && mkdir -p $(B)/upgrade
	@git archive $(FROM) | tar -x -C $(B)/upgrade
	@$(MAKE) --no-print-directory -C $(B)/upgrade B=build module
	@US_PREVIOUS=$(abspath $(B)/upgrade)/build/$(notdir $(MODULE)) \
	    $(PROVE) -v t/upgrade.t


# --- fault injection: the long campaigns --------------------------------
#
#   make test-faults               all of it (hours on two cores)
#   make test-faults KILLS=1000    a tenth

KILLS       ?= 10000
UNIT_FAULTS := $(B)/unit/journal_segment $(B)/unit/journal_power \
               $(B)/unit/journal_recovery $(B)/unit/life $(B)/unit/replica \
               $(B)/unit/copier
FAULT_PROVE := US_FAULT_MODULE=$(abspath $(FAULT_MODULE)) $(PROVE)

faults: $(FAULT_MODULE) $(FAULT_DISK)

# Kills wait for processes more than they compute: some files at a time.

regress: ## brings mended faults back: the tests have to find each (an hour)
	tools/regress.sh $(B)/regress $(T)

test-faults: test-programs $(UNIT_FAULTS)  ## kills and power failures by the thousand
	US_FULL=1 $(B)/unit/journal_segment
	US_FULL=1 $(B)/unit/life
	US_FULL=1 $(B)/unit/replica
	US_FULL=1 $(B)/unit/copier
	US_IMAGES=$$(($(KILLS) * 12)) $(B)/unit/journal_power
	US_CYCLES=$$(($(KILLS) / 50)) $(PROVE) t/durability_disk.t
	US_CYCLES=$$(($(KILLS) / 50)) $(PROVE) t/durability_upgrade.t
	US_KILLS_WORKERS=$(KILLS) US_KILLS_GROUP=0 US_KILLS_MASTER=0 \
	    $(PROVE) t/durability_kill.t
	@mkdir -p $(B)/faults/log
	@printf '%s\n' GROUP MASTER $$(seq 18) | xargs -P 3 -I {} \
	    $(MAKE) --no-print-directory -s test-faults-{}
	@cat $(B)/faults/log/*

# one of them: its output is a file

test-faults-%:
	@nice env $(if $(filter GROUP MASTER,$*),US_KILLS_WORKERS=0 \
	    US_KILLS_GROUP=0 US_KILLS_MASTER=0 US_KILLS_$*,US_POINT=$* \
	    US_KILLS_POINT)=$$(($(KILLS) / 10)) $(FAULT_PROVE) -v \
	    t/durability_$(if $(filter GROUP MASTER,$*),kill,points).t \
	    > $(B)/faults/log/$* 2>&1 || { cat $(B)/faults/log/$*; exit 1; }


# claims are linearizable, by recorded histories

test-claims: test-programs  ## 400,000 answers of claims, with kills
	US_OPS=400000 $(PROVE) -v t/load_claims.t


# --- replicas: kills of every participant under load --------------------
#
#   make test-replica                 500 kills
#   make test-replica KILLS=5000      or so many

test-replica: test-programs    ## kills of a primary and its replicas, under load
	US_REPLICA_KILLS=$(if $(filter file,$(origin KILLS)),500,$(KILLS)) \
	    $(PROVE) -v t/replica_campaign.t
	US_REPLICA_CUTS=200 US_REPLICA_FLIPS=200 $(PROVE) t/replica.t

# everything at once, HOURS (2) long; the figure is build/soak/soak.svg

soak: test-programs $(B)/.deps-bench  ## crawlers, backups, a replica, kills, a full disk: HOURS=2
	@t/soak/soak.pl


# --- clusters: growth and failover, with kills of every participant -----
#
#   make test-cluster        500 histories of growth, 10,000 of the log in one
#                            process, 2,000 of nodes on it, 200 failovers, 1,000
#                            reloads and kills of workers
#   make test-cluster RUNS=50 SEEDS=100 FAILOVERS=20 RELOADS=100

test-cluster: test-programs    ## growth and failover of a cluster, under load and kills
	US_GROWTH=$(or $(RUNS),500) $(PROVE) -v t/cluster_growth.t
	$(MAKE) $(B)/unit/replog && US_SEEDS=$(or $(SEEDS),10000) $(B)/unit/replog
	$(MAKE) simulate-faults SEEDS=$(or $(SEEDS),2000)
	US_FAILOVERS=$(or $(FAILOVERS),200) $(PROVE) -v t/cluster_failover.t
	US_RELOADS=$(or $(RELOADS),1000) $(PROVE) -v t/cluster_reload.t


# --- the page; the clients and what the guides say of them --------------

WEB_MODULES    := t/web/node_modules/.package-lock.json
CLIENT_MODULES := t/clients/node_modules/.package-lock.json

test-web: deps $(WEB_MODULES) build  ## page, metrics, alerts, OpenAPI
	@$(PROVE) -j $(AT_ONCE) t/web/page.t $(filter-out %/page.t,$(T_WEB))

test-clients: deps $(CLIENT_MODULES) build  ## the clients, Scrapy, Crawlee
	@$(PROVE) -j $(AT_ONCE) $(or $(T),t/clients/scrapy.t \
	    $(filter-out %/scrapy.t,$(T_CLIENTS)))

test-crawl: deps $(CLIENT_MODULES) build  ## crawlers, killed, on a site of 5,000 pages (CRAWLERS)
	@US_FULL=1 $(PROVE) -v t/clients/crawl.t

test-languages: $(B)/.deps-clients $(B)/.deps-languages build  ## batches in Ruby, PHP, Rust and C#, without a client
	@US_FULL=1 $(PROVE) -v t/clients/languages.t

$(WEB_MODULES): | $(B)/.deps-web
$(CLIENT_MODULES): | $(B)/.deps-clients

%/node_modules/.package-lock.json: %/package.json %/package-lock.json
	@cd $* && npm ci --ignore-scripts --no-audit --no-fund --silent \
	    || npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

.PHONY: test soak simulate-faults simulate-reach test-simulate coverage test-musl test-arm64 regress test-full test-bare test-programs test-unit test-stress test-kill \
        test-replica test-cluster test-route test-route-short programs \
        test-server test-files test-all test-room test-steps check-model check-weak test-asan test-valgrind \
        test-builds test-upgrade faults test-faults test-claims test-web \
        test-clients test-crawl test-languages
