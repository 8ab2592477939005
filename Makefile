# SPDX-License-Identifier: Apache-2.0
# The front door. Each target installs what is missing, configures and builds
# by itself; Meson and ninja do the work, in build/.

PREFIX  ?= /usr/local
DESTDIR ?=
SEEDS   ?= 2000
SEED    ?=
PLANTED ?=
KIND    ?= candidate
ROUNDS  ?= 500
ARGS    ?=

gavel := build/release/src/cli/gavel

.PHONY: build help setup demo check test hostile lint sim soak chaos fuzz verify bench valgrind install debug release clean

build: ## build gavel and libgavel (build/release)
	@tools/setup build
	@tools/build release
	@echo "built $(gavel); try: make demo, make test, make help"

help: ## say what each target does
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install the Debian packages that are missing, for everything
	@tools/setup build test servers fuzz verify bench

demo: ## three `gavel run`, one command: handed over, killed in three ways, frozen
	@tools/setup build
	@tools/build release
	@$(gavel) demo $(ARGS)

test: ## everything: lint, unit, trace, simulation, model, stores, library, end to end, chaos, upgrade
	@tools/setup build test servers verify
	@tools/test $(ARGS)

check: ## the quick half, for every change: unit, trace, a few seeds, layout and rules; three minutes
	@tools/setup build test
	@tools/test --quick

hostile: ## the tests on a machine that is as unkind as can be: in the background, under load, twice at once; ARGS='unit e2e'
	@tools/setup build test servers
	@tools/test --hostile $(ARGS)

lint: ## clang-format, clang-tidy, cppcheck, shellcheck and tools/tidy
	@tools/setup build test
	@tools/build release
	@tools/lint

sim: ## simulate SEEDS=2000, or one SEED=42 (ARGS=--trace tells its story), KIND=candidate, raft or session; PLANTED=name
	@tools/setup build
	@tools/build release sim/gavel-sim
	@build/release/sim/gavel-sim $(KIND) $(if $(SEED),--seed $(SEED),--seeds $(SEEDS)) $(if $(PLANTED),--planted $(PLANTED)) $(ARGS)

soak: ## simulate the cluster, one seed after the other, until Ctrl-C; ARGS='--from 100000'
	@tools/setup build
	@tools/build release sim/gavel-sim
	@build/release/sim/gavel-sim raft --soak --jobs $$(nproc) $(ARGS)

chaos: ## five nodes in network namespaces, ROUNDS=500 of random faults, SEED=; as root; ARGS=--verbose
	@tools/setup build test
	@tools/build release
	@build/release/tests/chaos/chaos $(gavel) build/release/src/daemon/gaveld --rounds $(ROUNDS) $(if $(SEED),--seed $(SEED)) \
		--candidates build/release/tests/run/beat --session-candidate build/release/tests/chaos/session_candidate --beat-referee build/release/tests/run/beat_referee $(ARGS)

fuzz: ## feed random bytes to what reads from the network, FUZZ_SECONDS=60 for each target; ARGS=peer_frame
	@tools/setup build fuzz
	@tests/fuzz/run $(ARGS)

verify: ## check the model of the cluster and its mutants with Spin; ARGS=--deep, ARGS='--story NAME'
	@tools/setup build verify
	@verify/run $(ARGS)

bench: ## measure on this machine, with plots in build/bench; ARGS='--only failover'
	@tools/setup build bench servers
	@tools/build release
	@GAVEL=$(gavel) bench/measure --out build/bench $(ARGS)

valgrind: ## unit, trace, store and library tests under valgrind; slower than the sanitizers of make test
	@tools/setup build test servers
	@tools/build plain
	@meson test -C build/plain --no-rebuild --timeout-multiplier 20 --suite unit --suite trace --suite store --suite lib \
		--wrap 'valgrind --quiet --fair-sched=yes --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite'

install: ## install to PREFIX=/usr/local, below DESTDIR= if given
	@tools/setup build
	@tools/build release
	@meson configure build/release -Dprefix="$(PREFIX)"
	@DESTDIR="$(abspath $(DESTDIR))" meson install -C build/release
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" -eq 0 ]; then ldconfig; fi # so that libgavel.so is found at once

debug: ## build with the sanitizers (build/debug)
	@tools/setup build test
	@tools/build debug

release: ## check that version, changelog and tag agree, then pack the sources (build/release/meson-dist); pushes nothing
	@tools/release
	@tools/setup build
	@tools/build release
	@meson dist -C build/release --no-tests

clean: ## remove build/
	rm -rf build
