# Stress tests and the model of the store.
#
#   t/stress/kill.c      processes, killed at random instructions
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

test-stress: $(addprefix $(B)/stress/,kill steps threads) ## kills and threads
	@cd $(B)/stress; for t in "kill $(STRESS_SECONDS)" steps "threads 5"; do \
	    ./$$t >$${t%% *}.log 2>&1 || { cat $${t%% *}.log; exit 1; }; \
	    echo "stress $$t: $$(tail -1 $${t%% *}.log)"; \
	done

test-kill: $(B)/stress/kill ## 2 writers, 4 readers, random SIGKILL, 10 min
	$(B)/stress/kill 600

check-model: $(B)/.deps-build $(B)/.deps-model ## the model of the store, and its mutants
	@tools/check-model.sh $(B)/model

test: $(if $(T),,test-stress)

.PHONY: test-stress test-kill check-model
