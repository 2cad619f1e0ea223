# The clients (clients/) and what the guides say of them (docs/clients.md,
# docs/crawlers.md): each language with what Debian has of it.
#
#   make test-clients                  all
#   make test-clients T=t/clients/x.t  some

PKG_CLIENTS := python3-minimal python3-aiohttp python3-scrapy mypy golang-go \
               default-jdk-headless $(if $(shell command -v node),,nodejs)

$(B)/.deps-clients: mk/deps.mk mk/clients.mk
	$(call install,$(PKG_CLIENTS))

test-clients: $(B)/.deps-test $(B)/.deps-clients build  ## the clients in each language, Scrapy
	@$(PROVE) $(or $(T),t/clients)

.PHONY: test-clients
