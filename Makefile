# make help says what there is.

.PHONY: help test recipes databases metrics command browser vet newcomer interop model verify sim lint mutants fuzz bench bench-guards bench-topologies bench-page server release-check

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' Makefile

# A process that the race detector watches sleeps before it ends, for a second unless this says less.
export GORACE ?= atexit_sleep_ms=50

# With a server four packages run at a time, whatever the processors: the tests wait most of the time. So do the modules.
test: ## everything: virtual time, miniredis, and a real server of this machine
	@for program in redis-server databases prometheus chromium; do ".ci/$$program" >/dev/null || exit 1; done # apt-get serves one at a time
	@set -e; server=$$(.ci/redis-server); \
	echo "== on miniredis and in virtual time"; \
	REDIS_SERVER= go test -short -race -shuffle=on -count=1 -timeout 30m ./... ./examples/orders; \
	echo "== the same, and what needs servers of its own, on $$("$$server" --version)"; \
	REDIS_SERVER="$$server" go test -p 4 -race -shuffle=on -count=1 -timeout 30m ./...
	@$(MAKE) --no-print-directory -j 4 recipes databases metrics command browser

recipes: ## the code of docs/recipes.md (a module of its own, for the drivers)
	@echo "== examples/recipes"
	@cd examples/recipes && GOWORK=off go test -race -shuffle=on -count=1 -timeout 10m ./...

server: ## what depends on the server's version, on the one that REDIS_SERVER names
	@server=$$(.ci/redis-server) && "$$server" --version && REDIS_SERVER="$$server" go test -count=1 -shuffle=on \
		./scripts ./pubsub ./rlock ./fenced ./quorum ./guard/redisguard ./observe/inspect ./observe/lockui ./observe/lockmetrics

databases: ## the SQL guards on PostgreSQL, MariaDB and SQLite (a module of its own, for the drivers)
	@echo "== guards on PostgreSQL, MariaDB and SQLite"
	@databases=$$(.ci/databases) && cd guard/sqlguard/sqltest && env $$databases GOWORK=off go test -race -shuffle=on -count=1 -timeout 30m ./...

metrics: ## the modules for Prometheus and OpenTelemetry (installs prometheus)
	@set -e; programs=$$(.ci/prometheus); server=$$(.ci/redis-server); for module in lockprom lockotel; do \
		echo "== observe/$$module"; \
		(cd observe/$$module && env $$programs REDIS_SERVER= go test -race -shuffle=on -count=1 -timeout 10m ./...); done; \
	echo "== observe/lockprom on $$("$$server" --version)"; \
	cd observe/lockprom && env $$programs REDIS_SERVER="$$server" go test -race -count=1 -timeout 10m ./...

command: ## the command fencelock, on real servers and terminals (a module of its own)
	@echo "== cmd/fencelock"
	@server=$$(.ci/redis-server) && cd cmd/fencelock && PATH="$$PATH:$$(dirname "$$server")" REDIS_SERVER="$$server" go test -race -parallel 4 -shuffle=on -count=1 -timeout 20m ./...

browser: ## the page of locks, in Chromium (a module of its own; installs chromium)
	@echo "== observe/lockui in a browser"
	@chromium=$$(.ci/chromium) && cd observe/lockui/browsertest && CHROMIUM="$$chromium" GOWORK=off go test -shuffle=on -count=1 -timeout 10m ./...

vet: ## rlockvet's tests, and that it has nothing to say of this repository
	cd rlockvet && go test -count=1 -timeout 20m ./...

newcomer: ## a module in an empty folder: a class of Redisson's, ported, its test, and rlockvet on what goes wrong
	.ci/newcomer

interop: ## Redisson on the other side of the lock (installs a JDK and Maven)
	.ci/interop

model: ## the Promela model of the protocol, and what Spin refutes (installs spin), about 4 minutes
	.ci/model

verify: ## clients in many processes, real servers, faults by seed, for half an hour; then bugs on purpose, each to be found
	@server=$$(.ci/redis-server) && cd verify && export REDIS_SERVER="$$server" GOWORK=off && go run . -for 30m && go run . -broken

sim: ## the library in virtual time, for an hour: leases and outages as long as users have them; then bugs on purpose
	@cd verify && export GOWORK=off && go run ./sim -for 1h && go run ./sim -broken

lint: ## gofmt, go vet, staticcheck
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "gofmt would change:"; echo "$$files"; exit 1; fi
	go vet ./... ./examples/orders
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./... ./examples/orders
	@set -e; for module in bench examples/recipes guard/sqlguard/sqltest verify verify/interop observe/lockui/browsertest; do \
		echo "go vet in $$module"; (cd $$module && GOWORK=off go vet ./...); done
	@set -e; for module in observe/lockprom observe/lockotel cmd/fencelock rlockvet; do \
		echo "go vet and staticcheck in $$module"; (cd $$module && go vet ./... && go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...); done
	cd cmd/fencelock && GOOS=windows go build -o /dev/null .

mutants: ## the tests against code that is broken on purpose, rule by rule
	@server=$$(.ci/redis-server) && PATH="$$PATH:$$(dirname "$$server")" go run ./internal/test/mutants

bench: ## side by side with other locks, about 40 minutes; writes docs/benchmarks (its deps are a module of their own)
	@server=$$(.ci/redis-server) && cd bench && REDIS_SERVER="$$server" GOWORK=off go run ./held && REDIS_SERVER="$$server" GOWORK=off go run .

bench-guards: ## what a guarded write costs beside a plain one: memory, Redis, PostgreSQL, MariaDB, SQLite
	@server=$$(.ci/redis-server) && REDIS_SERVER="$$server" go test -run '^$$' -bench . ./guard ./guard/redisguard
	@databases=$$(.ci/databases) && cd guard/sqlguard/sqltest && env $$databases GOWORK=off go test -run '^$$' -bench .

bench-topologies: ## what an acquire and an unlock take on one server, with replicas, Sentinel, a cluster, a quorum
	@server=$$(.ci/redis-server) && REDIS_SERVER="$$server" go test -run '^$$' -bench Topology -count 3 ./quorum

bench-page: ## what looking costs: the page and inspect with 10,000 held locks, and a pair beside them
	@server=$$(.ci/redis-server) && cd bench && REDIS_SERVER="$$server" GOWORK=off go run ./page

FUZZ ?= 100000
fuzz: ## each fuzz target so many times, a hundred thousand if FUZZ does not say (by time, Go fails now and then when it is over)
	@set -e; for package in scripts guard/httpguard; do \
		for target in $$(grep -ho '^func Fuzz[A-Za-z0-9]*' $$package/*_test.go | cut -c6-); do \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZ)x ./$$package; done; done

release-check: ## a release as a dry run (VERSION=v0.1.0), with go mod tidy, gorelease and govulncheck; changes nothing here
	@.ci/release $(VERSION)
	@.ci/vulnerabilities || [ $$? -eq 75 ] # 75: it has said that the database is out of reach
