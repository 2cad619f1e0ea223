# Fault injection: the module with numbered fault points (src/us_fault.h), a
# disk that fails (t/fault/disk.c), and the long campaigns.
#
#   make test-faults               all of it (hours on two cores)
#   make test-faults KILLS=6000    a tenth

FAULT_OUT    := $(abspath $(B))/faults/nginx-build
FAULT_MODULE := $(B)/faults/ngx_http_urlstore_module.so
FAULT_DISK   := $(B)/faults/disk.so
KILLS        ?= 60000

$(FAULT_DISK): t/fault/disk.c | $(B)/.deps-build
	@mkdir -p $(@D)
	$(CC) -O1 -fPIC -shared -Wall -o $@ $< -ldl

test: $(FAULT_DISK)

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
	@cp $(FAULT_OUT)/ngx_http_urlstore_module.so $@

faults: $(FAULT_MODULE) $(FAULT_DISK)

UNIT_FAULTS := $(B)/unit/journal_segment $(B)/unit/journal_power

test-faults: $(B)/.deps-test build faults $(UNIT_FAULTS)  ## long campaigns
	US_FULL=1 $(B)/unit/journal_segment
	US_IMAGES=$$(($(KILLS) * 2)) $(B)/unit/journal_power
	US_KILLS=$(KILLS) US_FAULT_MODULE=$(abspath $(FAULT_MODULE)) \
	    US_CYCLES=200 $(PROVE) t/durability*.t

.PHONY: faults test-faults
