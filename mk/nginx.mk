# The module, for the nginx that Debian ships (nginx-dev has its sources as
# they were configured).

NGX_SRC  := /usr/share/nginx/src
NGX_OUT  := $(abspath $(B))/nginx
MODULE   := $(B)/ngx_http_urlstore_module.so
NGX_WARN := -Wall -Wextra -Werror -Wno-unused-parameter

MODULE_SRC := $(wildcard config src/*.[ch] src/*/*.[ch])

# a running nginx has the file mapped: it is replaced, never written to

define replace
	@cp $(1) $(2).new && mv $(2).new $(2)
endef

module: $(MODULE)         ## the nginx module

$(NGX_OUT)/Makefile: config $(wildcard src/* front/*) | $(B)/.deps-build
	@mkdir -p $(NGX_OUT)
	@cd $(NGX_SRC) && . ./conf_flags && ./configure \
	    --builddir=$(NGX_OUT) --with-cc-opt="-g -O2 -fPIC $(NGX_WARN)" \
	    --with-ld-opt="-fPIC" "$${NGX_CONF_FLAGS[@]}" \
	    --add-dynamic-module=$(CURDIR) > $(NGX_OUT)/configure.log \
	    || { tail -20 $(NGX_OUT)/configure.log; exit 1; }

$(MODULE): $(NGX_OUT)/Makefile $(MODULE_SRC)
	@$(MAKE) --no-print-directory -f $(NGX_OUT)/Makefile -C $(NGX_SRC) \
	    modules > $(NGX_OUT)/make.log 2>&1 \
	    || { tail -40 $(NGX_OUT)/make.log; exit 1; }
	$(call replace,$(NGX_OUT)/ngx_http_urlstore_module.so,$@)

.PHONY: module
