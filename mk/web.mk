# Tests that need more than nginx and perl: a browser, node, promtool.

WEB_MODULES := t/web/node_modules/.package-lock.json

test-web: $(B)/.deps-test $(B)/.deps-web $(WEB_MODULES) build  ## page, metrics, OpenAPI
	@$(PROVE) t/web

# Debian's npm brings hundreds of packages along; where there is another one,
# it does

$(B)/.deps-web: mk/deps.mk mk/web.mk
	$(call install,$(PKG_WEB) $(if $(shell command -v npm),,nodejs npm))

$(WEB_MODULES): t/web/package.json t/web/package-lock.json | $(B)/.deps-web
	@cd t/web && npm ci --ignore-scripts --no-audit --no-fund --silent \
	    || npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

.PHONY: test-web
