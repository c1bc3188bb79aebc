# Names only; what they do stands in scripts/.
.DEFAULT_GOAL := help
.PHONY: help run release check test sdk-test browser soak fault bench deploy-check book lint fmt

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## build and start `timer dev`: a SQLite file, loopback only, an API key made up for you
	@scripts/run.sh

release: ## build the program as it is released, by a profile of its work under load: about an hour
	@scripts/build_release.sh

check: ## after each small change: format, lints, unit tests, conformance on SQLite, 200 seeds; no servers
	@scripts/check.sh

test: ## set up what is missing, then lint and run every test, as CI does
	@scripts/test.sh

sdk-test: ## the SDKs: lints, tests, examples, the table scenario × language, and whether they cover the API
	@scripts/sdk_test.sh

browser: ## the console in Chromium on both stores, with what is built; part of `make test`
	@scripts/browser_test.sh

fault: ## the fault suite for about an hour and a half; FAULT_SCALE=1 is what `make test` runs of it
	@scripts/fault.sh

soak: ## several hours on an idle machine: faults at scale, 105,000 seeds, load, size and every limit of time as promised
	@scripts/soak.sh

bench: ## measure both stores in ten minutes and write bench/results/; BENCH_PENDING=5000000 for more pending timers
	@scripts/bench.sh

deploy-check: ## the Helm chart, alerts, dashboard, systemd unit, image, packages, and traces to a real collector
	@scripts/check_deploy.sh

book: ## build the book of docs/book into target/book/html
	@scripts/book.sh

lint: ## formatting, clippy, crate arrows, licences and sources of dependencies
	@scripts/lint.sh

fmt: ## format the code
	@cargo fmt --all
