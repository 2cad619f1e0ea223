# The service, for a first look and for work on it: a private nginx from
# Debian's binary and build/, with DATA as its prefix.

PORT    ?= 8080
DATA    ?= ./var
WORKERS ?= 2

run: build                ## starts the service (PORT, DATA, WORKERS) and shows it
	@tools/run.sh start '$(PORT)' '$(DATA)' '$(WORKERS)'

stop:                     ## stops it
	@tools/run.sh stop '$(PORT)' '$(DATA)'

reload: build             ## reloads its configuration, the store stays
	@tools/run.sh reload '$(PORT)' '$(DATA)' '$(WORKERS)'

cluster: build            ## starts a router and three shards (PORT, DATA) and shows them
	@tools/cluster.sh start '$(PORT)' '$(DATA)/cluster'

stop-cluster:             ## stops them
	@tools/cluster.sh stop '$(PORT)' '$(DATA)/cluster'

cluster-pg: $(B)/.deps-pg build ## starts PostgreSQL (a pair), two nodes and a router, and shows a failover
	@tools/cluster-pg.sh start '$(PORT)' '$(DATA)/cluster-pg'

stop-cluster-pg:          ## stops them
	@tools/cluster-pg.sh stop '$(PORT)' '$(DATA)/cluster-pg'

.PHONY: run stop reload cluster stop-cluster cluster-pg stop-cluster-pg
