# The clients (clients/) and what the guides say of them (docs/clients.md,
# docs/crawlers.md): each language with what Debian has of it.
#
#   make test-clients                  all
#   make test-clients T=t/clients/x.t  some

PKG_CLIENTS := python3-minimal python3-aiohttp python3-scrapy mypy golang-go \
               default-jdk-headless $(if $(shell command -v npm),,nodejs npm)

CLIENT_MODULES := t/clients/node_modules/.package-lock.json

$(B)/.deps-clients: mk/deps.mk mk/clients.mk
	$(call install,$(PKG_CLIENTS))

$(CLIENT_MODULES): t/clients/package.json t/clients/package-lock.json \
                   | $(B)/.deps-clients
	@cd $(@D)/.. && npm ci --ignore-scripts --no-audit --no-fund --silent \
	    || npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

# they wait more than they compute: two at a time, the longest first

CLIENT_TESTS := t/clients/scrapy.t \
                $(filter-out %/scrapy.t,$(wildcard t/clients/*.t))

test-clients: $(B)/.deps-test $(B)/.deps-clients $(CLIENT_MODULES) build  ## the clients, Scrapy, Crawlee
	@$(PROVE) -j 2 $(or $(T),$(CLIENT_TESTS))

.PHONY: test-clients
