# make run    installs what is missing, builds, starts the service, shows it
# make test   installs what is missing, runs everything that CI runs
# make help   lists the rest

SHELL := /bin/bash
B     := build
JOBS  ?= $(shell nproc)

# Goals are made one after another.  What takes long, compilation and tests
# that can run side by side, is made in parallel by a make of its own, with
# JOBS jobs.  Goals that are files, as build/unit/life, obey -j.

ifeq ($(MAKELEVEL),0)
ifneq ($(filter-out $(B)/%,$(or $(MAKECMDGOALS),all)),)
.NOTPARALLEL:
endif
endif

parallel = +@$(MAKE) --no-print-directory $(if $(V),,-s) \
           $(if $(filter --jobserver%,$(MAKEFLAGS)),,-j $(JOBS))

all: build

include mk/deps.mk
include mk/build.mk
include mk/run.mk
include mk/test.mk
include mk/bench.mk
include mk/fuzz.mk
include mk/package.mk

clean: ## removes build/ (the data of a running service stays)
	rm -rf $(B)

help:
	@awk -F':.*## ' '/^[^ :]+:.*## /{printf "  make %-17s %s\n",$$1,$$2}' \
	    $(MAKEFILE_LIST)

.PHONY: all clean help
