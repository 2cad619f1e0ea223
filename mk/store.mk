# Stress tests and the model of the store.
#
#   t/stress/kill.c      processes, killed at random instructions; on real and
#                        generated URLs, from which models are learnt meanwhile
#   t/stress/steps.c     a process, killed at each of its instructions
#   t/stress/threads.c   threads under ThreadSanitizer
#   t/model/store.pml    the protocol, for spin

STRESS_SECONDS ?= 20
STRESS_WARN    := $(filter-out -Wmissing-prototypes,$(WARN))
PKG_MODEL      := spin

$(B)/.deps-model: mk/deps.mk
	$(call install,$(PKG_MODEL))

$(B)/stress/threads: t/stress/threads.c t/stress/stress.h $(B)/tsan/libus.a
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(STRESS_WARN) $(TSAN) -o $@ $< $(B)/tsan/libus.a \
	    $(CORE_LIBS)

$(B)/stress/%: t/stress/%.c t/stress/stress.h $(B)/libus.a
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(STRESS_WARN) $(OPT) -o $@ $< $(B)/libus.a $(CORE_LIBS)

$(B)/stress/urls: $(B)/urlstore $(B)/generate
	@mkdir -p $(@D)
	@{ tools/corpus.sh cat reddit_submissions | head -n 100000; \
	    $(B)/generate -n 110000; } | $< normalize | grep ^http >$@

test-stress: $(addprefix $(B)/stress/,kill steps threads urls) ## kills, threads
	@cd $(B)/stress; for t in "kill $(STRESS_SECONDS)" steps "threads 5"; do \
	    ./$$t >$${t%% *}.log 2>&1 <urls || { cat $${t%% *}.log; exit 1; }; \
	    echo "stress $$t: $$(tail -1 $${t%% *}.log)"; \
	done

test-kill: $(addprefix $(B)/stress/,kill urls) ## random SIGKILL, 10 minutes
	$(B)/stress/kill 600 <$(B)/stress/urls

check-model: $(B)/.deps-build $(B)/.deps-model ## the model of the store, and its mutants
	@tools/check-model.sh $(B)/model

test: $(if $(T),,test-stress)

.PHONY: test-stress test-kill check-model
