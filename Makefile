# `make demo` shows the product, `make test` proves it. Both install what they need first.
# Targets whose scripts a checkout does not have are not offered.

PREFIX ?= $(HOME)/.local
DESTDIR ?=

offered := bootstrap test simulate fuzz behaviours lint check docs install uninstall
offered += $(if $(wildcard scripts/demo),demo) $(if $(wildcard Benchmarks/AssetsBenchmarks),bench)
space := $(subst ,, )

.PHONY: help bootstrap test simulate fuzz behaviours lint check docs install uninstall
help: ## Say what can be made.
	@sed -n 's/^\($(subst $(space),\|,$(strip $(offered)))\):.*## \(.*\)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 20

bootstrap: ## Install the Debian packages that building and testing need.
	@scripts/bootstrap

ifneq ($(filter demo,$(offered)),)
.PHONY: demo
demo: bootstrap ## Install and launch a sample app from a server on this machine, in a folder of its own.
	@scripts/demo
endif

test: bootstrap ## Build and run all tests as an ordinary user; ARGUMENTS="--filter Name" runs some.
	@scripts/run-tests $(ARGUMENTS)

simulate: bootstrap ## Run random histories of a simulated device; ARGUMENTS="--seeds N" more, "--seed S" one again.
	@scripts/simulate $(ARGUMENTS)

fuzz: bootstrap ## Throw bytes at our parsers, a minute each; ARGUMENTS="--seconds N Wire" for others.
	@scripts/fuzz $(ARGUMENTS)

behaviours: ## List every row of docs/behaviours.md with the tests that show it; ARGUMENTS=--json for programs.
	@scripts/behaviours $(ARGUMENTS)

lint: ## Check format, layers, the rows that tests name, declared dependencies and the public API.
	@scripts/lint

check: bootstrap ## Everything that guards a commit: lint, the tests, the tests under both sanitizers.
	@scripts/lint
	@scripts/run-tests
	@scripts/run-tests --sanitize=address
	@scripts/run-tests --sanitize=thread

ifneq ($(filter bench,$(offered)),)
.PHONY: bench
bench: bootstrap ## Measure against peers; BENCH=name runs one, ARGUMENTS=--list names them.
	@scripts/bench $(ARGUMENTS) $(BENCH)
endif

docs: ## Build the documentation archives; a broken link fails.
	@scripts/build-docs

install: ## Install tools, service, units, man page and completion below PREFIX (default ~/.local).
	@scripts/install-product "$(DESTDIR)" "$(PREFIX)"

uninstall: ## Remove what install put below PREFIX; devices and their apps stay.
	@scripts/uninstall-product "$(DESTDIR)" "$(PREFIX)"
