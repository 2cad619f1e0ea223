# Stress tests and the model of the store.
#
#   t/stress/kill.c      processes, killed at random instructions
#   t/stress/threads.c   threads under ThreadSanitizer
#   t/model/             the protocol, for spin

STRESS_SECONDS ?= 20

$(B)/stress/kill: t/stress/kill.c t/stress/stress.h $(B)/libus.a
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(filter-out -Wmissing-prototypes,$(WARN)) $(OPT) -o $@ $< \
	    $(B)/libus.a $(CORE_LIBS)

$(B)/stress/threads: t/stress/threads.c t/stress/stress.h $(B)/tsan/libus.a
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(filter-out -Wmissing-prototypes,$(WARN)) $(TSAN) -o $@ \
	    $< $(B)/tsan/libus.a $(CORE_LIBS)

test-stress: $(B)/stress/kill $(B)/stress/threads  ## kills and threads, 30 s
	@$(B)/stress/kill $(STRESS_SECONDS) >$(B)/stress/kill.log 2>&1 \
	    || { cat $(B)/stress/kill.log; exit 1; }
	@tail -2 $(B)/stress/kill.log
	@$(B)/stress/threads 5 >$(B)/stress/threads.log 2>&1 \
	    || { cat $(B)/stress/threads.log; exit 1; }
	@tail -1 $(B)/stress/threads.log

test-kill: $(B)/stress/kill ## 2 writers, 4 readers, random SIGKILL, 10 min
	$(B)/stress/kill 600

test: $(if $(T),,test-stress)

.PHONY: test-stress test-kill
