# Packages: man pages and completions, which `make install` installs, too, and
# Debian packages; and what the documents and deploy/ say.
#
#   make dist         build/urlstore-VERSION.tar.gz of the commit, without git
#   make deb          build/deb/*.deb, from the files of the working tree
#   make test-deb     lintian; installed, used, upgraded and purged in a bare
#                     Debian (root, debootstrap); PREVIOUS=DIR: older packages
#                     to upgrade from
#   make site         the documents as static HTML, in build/site; t/site.t
#   make test-docs    runs the commands of README.md and docs/*.md, or names
#                     the test that does
#   make test-deploy  lints the Dockerfile, the compose file and the objects for
#                     Kubernetes in deploy/; they are not run

MAN := $(B)/man

man: $(MAN)/urlstore.1    ## man pages and completions

$(MAN)/urlstore.1: $(B)/urlstore
	@rm -rf $(@D) && mkdir -p $(@D)
	@for c in $$($< --help | awk '/^  [a-z]/ { print $$1 }'); do \
	    $< help --man $$c > $(@D)/urlstore-$$c.1 || exit 1; \
	done
	@$< help --bash > $(@D)/urlstore && $< help --zsh > $(@D)/_urlstore
	@$< help --man > $@

site: $(B)/urlstore $(B)/.deps-test ## the documents as HTML, in build/site
	@tools/site.pl $(B)/site

DIST := urlstore-$(VERSION)

dist:                     ## build/urlstore-VERSION.tar.gz, of the commit
	@mkdir -p $(B)/dist
	@git rev-parse HEAD > $(B)/dist/COMMIT
	@git archive --prefix=$(DIST)/ --add-file=$(B)/dist/COMMIT HEAD \
	    | gzip -9n > $(B)/$(DIST).tar.gz
	@ls -l $(B)/$(DIST).tar.gz

DEB := $(B)/deb

deb: $(B)/.deps-deb       ## Debian packages in build/deb
	@rm -rf $(DEB) && mkdir -p $(DEB)/urlstore
	@tools/files.sh | xargs -0 cp --parents -t $(DEB)/urlstore
	@echo '  DEB   the output is in $(DEB)/build.log'
	@cd $(DEB)/urlstore && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL \
	    dpkg-buildpackage -b -us -uc -j2 > ../build.log 2>&1 \
	    || { tail -n 40 ../build.log; exit 1; }
	@rm -rf $(DEB)/urlstore
	@ls $(DEB)/*.deb

test-deb: deb $(B)/.deps-deb-test  ## the packages, in a bare Debian: root, debootstrap
	@tools/test-deb.sh $(DEB) $(PREVIOUS)

t/deploy/node_modules/.package-lock.json: | $(B)/.deps-deploy

test-deploy: t/deploy/node_modules/.package-lock.json ## lints deploy/
	@$(PROVE) t/deploy

test-docs: build $(B)/generate ## runs the commands of README and docs
	@tools/test-docs.pl

.PHONY: man site dist deb test-deb test-deploy test-docs
