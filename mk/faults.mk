# Fault injection: the module with numbered fault points (src/us_fault.h), a
# disk that fails (t/fault/disk.c), and the long campaigns.
#
#   make test-faults               all of it (hours on two cores)
#   make test-faults KILLS=1000    a tenth

FAULT_OUT    := $(abspath $(B))/faults/nginx-build
FAULT_MODULE := $(B)/faults/ngx_http_urlstore_module.so
FAULT_DISK   := $(B)/faults/disk.so
KILLS        ?= 10000

$(FAULT_DISK): t/fault/disk.c | $(B)/.deps-build
	@mkdir -p $(@D)
	$(CC) -O1 -fPIC -shared -Wall -o $@ $< -ldl

test-programs: $(FAULT_DISK) $(FAULT_MODULE)

$(FAULT_OUT)/Makefile: config $(wildcard src/*/*.c) | $(B)/.deps-build
	@mkdir -p $(FAULT_OUT)
	@cd $(NGX_SRC) && . ./conf_flags && ./configure \
	    --builddir=$(FAULT_OUT) \
	    --with-cc-opt="-g -O2 -fPIC $(NGX_WARN) -DUS_FAULT_POINTS=1" \
	    --with-ld-opt="-fPIC" "$${NGX_CONF_FLAGS[@]}" \
	    --add-dynamic-module=$(CURDIR) > $(FAULT_OUT)/configure.log \
	    || { tail -20 $(FAULT_OUT)/configure.log; exit 1; }

$(FAULT_MODULE): $(FAULT_OUT)/Makefile $(MODULE_SRC)
	@$(MAKE) --no-print-directory -f $(FAULT_OUT)/Makefile -C $(NGX_SRC) \
	    modules > $(FAULT_OUT)/make.log 2>&1 \
	    || { tail -40 $(FAULT_OUT)/make.log; exit 1; }
	$(call replace,$(FAULT_OUT)/ngx_http_urlstore_module.so,$@)

faults: $(FAULT_MODULE) $(FAULT_DISK)

UNIT_FAULTS := $(B)/unit/journal_segment $(B)/unit/journal_power \
               $(B)/unit/journal_recovery
FAULT_PROVE := US_FAULT_MODULE=$(abspath $(FAULT_MODULE)) $(PROVE)

# Kills wait for processes more than they compute: some files at a time.

test-faults: $(B)/.deps-test build faults $(UNIT_FAULTS)  ## kills and power failures by the thousand
	US_FULL=1 $(B)/unit/journal_segment
	US_IMAGES=$$(($(KILLS) * 12)) $(B)/unit/journal_power
	US_CYCLES=$$(($(KILLS) / 50)) $(PROVE) t/durability_disk.t
	US_CYCLES=$$(($(KILLS) / 50)) $(PROVE) t/durability_upgrade.t
	US_KILLS_WORKERS=$(KILLS) US_KILLS_GROUP=0 US_KILLS_MASTER=0 \
	    $(PROVE) t/durability_kill.t
	@mkdir -p $(B)/faults/log
	@printf '%s\n' GROUP MASTER $$(seq 16) | xargs -P 3 -I {} \
	    $(MAKE) --no-print-directory -s test-faults-{}
	@cat $(B)/faults/log/*

# one of them: its output is a file

test-faults-%:
	@nice env $(if $(filter GROUP MASTER,$*),US_KILLS_WORKERS=0 \
	    US_KILLS_GROUP=0 US_KILLS_MASTER=0 US_KILLS_$*,US_POINT=$* \
	    US_KILLS_POINT)=$$(($(KILLS) / 10)) $(FAULT_PROVE) -v \
	    t/durability_$(if $(filter GROUP MASTER,$*),kill,points).t \
	    > $(B)/faults/log/$* 2>&1 || { cat $(B)/faults/log/$*; exit 1; }

.PHONY: faults test-faults
