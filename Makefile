# Everything a developer needs. The same flags hold for every Go command, so that one build cache
# serves them all: tools, tests and the control plane share most packages. Only the race detector needs
# C, and with it a second build of everything.

GO      ?= go
BIN     := bin
GOFLAGS ?=
CGO_ENABLED := 0
export GOFLAGS CGO_ENABLED
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
KUBE_VERSION := $(shell sed -n 's/^require k8s.io.kubernetes //p; s/^	k8s.io.kubernetes //p' go.mod | head -n 1)
BUILD   := $(GO) build -ldflags "-X github.com/topscloud/topscloud/internal/app.version=$(VERSION) -X k8s.io/component-base/version.gitVersion=$(KUBE_VERSION)" -o $(BIN)/
# The tests on a real node are for root with runc; others need not build for them.
NODE    := $(shell test "$$(id -u)" = 0 && PATH=$$PATH:/usr/sbin command -v runc >/dev/null && echo kube-node)
E2ENODE := $(GO) test -count=1 -timeout 15m ./test/e2e/node
RACETEST := CGO_ENABLED=1 $(GO) test -race

# Packages whose concurrency is checked by the race detector on each run.
RACE    := ./topology/... ./eflib/... ./gcushare/... ./scheduler/... ./deviceplugin/... ./nfd/... ./exporter/...

.DEFAULT_GOAL := help

.PHONY: build
build: ## Build every command into bin/
	@mkdir -p $(BIN)
	$(BUILD) $$($(GO) list -f '{{if eq .Name "main"}}{{.ImportPath}}{{end}}' ./...)

.PHONY: kube
kube: $(BIN)/gcu-sandbox ## Build the real control plane into the cache, if it is not there
	@$(BIN)/gcu-sandbox binaries

.PHONY: kube-oldest
kube-oldest: kube ## Build the oldest supported control plane into the cache, for one test
	@$(BIN)/gcu-sandbox binaries --oldest

.PHONY: kube-node
kube-node: kube ## Build kubelet and containerd into the cache, for the tests on a real node
	@$(BIN)/gcu-sandbox binaries --node

.PHONY: kube-prometheus
kube-prometheus: $(BIN)/gcu-sandbox ## Build prometheus and promtool into the cache, for the tests of rules and dashboards
	@$(BIN)/gcu-sandbox binaries --prometheus

.PHONY: $(BIN)/gcu-sandbox
$(BIN)/gcu-sandbox:
	@mkdir -p $(BIN)
	@$(BUILD) ./sandbox/cmd/gcu-sandbox

.PHONY: demo
demo: ## Place the example pods in a sandbox and show where they went (KEEP=1 leaves it running)
	@mkdir -p $(BIN)
	@echo "building gcu-sandbox and gcu-scheduler; the first time takes minutes"
	@$(BUILD) ./sandbox/cmd/gcu-sandbox ./scheduler/cmd/gcu-scheduler
	@$(BIN)/gcu-sandbox demo $(if $(KEEP),--keep)

.PHONY: test
test: kube kube-oldest kube-prometheus $(NODE) verify ## What CI runs: formatting, vet, all tests, the race detector where it matters
	$(RACETEST) -timeout 15m $$($(GO) list $(RACE) 2>/dev/null | grep -v /cmd/)
	$(GO) test -timeout 15m $$($(GO) list ./... | grep -v -E '^github.com/topscloud/topscloud/(topology|eflib|gcushare|scheduler|deviceplugin|nfd|exporter|test/e2e)(/|$$)'; $(GO) list ./scheduler/... | grep /cmd/)
	cd hack/dashboards && $(GO) test -count=1 ./...
	cd hack/crd && $(GO) test -count=1 ./...
	$(E2ENODE)

.PHONY: test-full
test-full: kube kube-oldest kube-prometheus $(NODE) verify ## test, with the long soaks and kill matrices
	TOPSCLOUD_TEST_FULL=1 $(RACETEST) -timeout 2h $$($(GO) list $(RACE) 2>/dev/null | grep -v /cmd/)
	TOPSCLOUD_TEST_FULL=1 $(GO) test -timeout 2h $$($(GO) list ./... | grep -v /test/e2e/)
	cd hack/dashboards && $(GO) test -count=1 ./...
	cd hack/crd && $(GO) test -count=1 ./...
	$(E2ENODE) -node.rounds=20

.PHONY: integration
integration: kube kube-oldest kube-prometheus ## Only the tests that need the real control plane
	$(GO) test -count=1 -timeout 15m ./sandbox/... $$($(GO) list ./test/... 2>/dev/null | grep -v /test/e2e/)

.PHONY: node-packages
node-packages: ## Install runc and CNI plugins from the distribution, where they are missing (root, Debian)
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! { PATH=$$PATH:/usr/sbin command -v runc >/dev/null && [ -x /usr/lib/cni/bridge ]; }; then \
		apt-get update -q && apt-get install -y -q runc containernetworking-plugins; fi

.PHONY: e2e-node
e2e-node: node-packages kube-node ## The tests on one real node: kubelet, containerd, runc; as root (docs/real-node.md)
	$(E2ENODE) -v -node.rounds=20

.PHONY: bench
bench: ## The benchmarks of the tree
	$(GO) test -run '^$$' -bench . -benchmem $$($(GO) list $(RACE) ./runtime/... 2>/dev/null | grep -v /cmd/)

STEPS ?= 1000000
.PHONY: soak
soak: ## A million steps of the model test under the race detector (STEPS=n for more)
	$(RACETEST) -count=1 -v -timeout 2h -run '^TestModel' ./scheduler/gcufit -gcufit.steps=$(STEPS)

.PHONY: fuzz
fuzz: ## Each fuzz target for ten minutes, one a core at once (FUZZTIME=1m, FUZZJOBS=n, FUZZ=regexp)
	@hack/fuzz/run.sh

.PHONY: generate
generate: ## Write the deep copies and the CRD of operator/api/v1 anew
	cd hack/crd && $(GO) run . ../..

.PHONY: dashboards
dashboards: ## Write manifests/dashboards anew
	cd hack/dashboards && $(GO) run . ../../manifests/dashboards

.PHONY: panels
panels: kube kube-prometheus ## Draw what each panel of the dashboards shows, into bin/panels
	@mkdir -p $(BIN)/panels
	TOPSCLOUD_PANELS=$(CURDIR)/$(BIN)/panels $(GO) test -count=1 -run Dashboards ./test/monitoring
	cd hack/dashboards && $(GO) run ./plot $(CURDIR)/$(BIN)/panels

.PHONY: vet
vet: ## go vet, for amd64 and arm64
	$(GO) vet ./...
	GOARCH=arm64 $(GO) vet ./...

.PHONY: verify
verify: ## Formatting and vet
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not gofmt'd:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...

.PHONY: lint
lint: ## golangci-lint with .golangci.yml
	$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run

.PHONY: clean
clean: ## Remove bin/; the cached control plane stays
	rm -rf $(BIN)

.PHONY: help
help: ## This list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
