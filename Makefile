# make help says what there is.

.PHONY: help test programs built root failovers deep again databases metrics adapters command browser vet newcomer interop verify sim lint mutants fuzz bench bench-others bench-guards bench-topologies server release-check

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' Makefile

# A process that the race detector watches sleeps before it ends, for a second unless this says less.
export GORACE ?= atexit_sleep_ms=50

# go test, which runs again what real time may have made fail, and says so (internal/test/gotest).
gotest := $(CURDIR)/.cache/gotest
$(gotest): $(wildcard internal/test/gotest/*.go internal/test/realtime/*.go)
	@go build -o $@ ./internal/test/gotest

# The tests wait half of the time. So the root module's packages run three at a time, whatever the processors, and the other modules beside them, one or
# two at a time; what takes longest begins first. The failovers wait for leases of 45 s, behind all of rlock if they ran in its process. What only
# one module needs is installed meanwhile. go vet is for make lint. On miniredis .ci/oldest runs the tests, and .ci/deep the exact lists of rights.
longest := ./rlock ./quorum ./scripts ./observe/inspect ./internal/test/redistest ./internal/docs ./pubsub ./fenced
failovers := SentinelFailoverKeeps|ClusterFailover$$
own_report := $(CURDIR)/.cache/report
test: export GOTEST_REPORT := $(or $(GOTEST_REPORT),$(own_report))
test: $(gotest) ## everything: in virtual time, and on a real server of this machine; about 5 minutes on two cores
	@echo "== all tests, each once: about 5 minutes on two cores, 8 where nothing is built or installed yet. The root module's, and beside them those of the others"
	@.ci/redis-server >/dev/null
	@mkdir -p .cache && : >"$$GOTEST_REPORT"
	@$(MAKE) --no-print-directory -k -j 3 programs root failovers command databases browser metrics adapters || \
		{ [ "$$GOTEST_REPORT" != "$(own_report)" ] || { echo "== what failed (more is above)"; cat "$$GOTEST_REPORT"; }; exit 1; }

programs: # that only one module needs: apt-get serves one at a time
	@for program in databases chromium prometheus; do ".ci/$$program" >/dev/null || exit 1; done
	@cd guard/s3guard/s3test && GOWORK=off GOFLAGS= go tool -n versitygw >/dev/null

root failovers command databases browser metrics adapters: | built
built: # what all of them need: else each compiles it
	@go build -race testing net/http/httptest ./fenced ./quorum ./rlocktest ./observe/... ./internal/test/redistest

root: $(gotest) # -race is in GOFLAGS, so that what the tests build is compiled with it already
	@set -e; server=$$(.ci/redis-server); \
	echo "== the root module, in virtual time, and on $$("$$server" --version)"; \
	GOFLAGS="$$(go env GOFLAGS) -race" REDIS_SERVER="$$server" REDIS_VIRTUAL=1 \
		$(gotest) -p=3 -shuffle=on -count=1 -timeout=30m '-skip=^Test(Rights|$(failovers))' $(longest) ./... ./examples/recipes/...

failovers: $(gotest)
	@echo "== rlock's failovers"
	@server=$$(.ci/redis-server) && REDIS_SERVER="$$server" $(gotest) -race -shuffle=on -count=1 -timeout=10m '-run=^Test($(failovers))' ./rlock

deep: ## all that takes longer than .ci/run, about an hour: STAGES="interop faults" for some of it, see .ci/deep
	@.ci/deep $(STAGES)

N ?= 20
again: ## make test N times beside busy processors, and a table of what failed (make again N=20)
	@.ci/again $(N)

server: $(gotest) ## what depends on the server's version, on the one that REDIS_SERVER names
	@server=$$(.ci/redis-server) && "$$server" --version && REDIS_SERVER="$$server" $(gotest) -count=1 -shuffle=on \
		./rlock ./quorum ./scripts ./pubsub ./fenced ./guard/redisguard ./internal/docs ./observe/inspect ./observe/lockui ./observe/lockmetrics ./internal/test/limits

databases: $(gotest) ## the guards on PostgreSQL, MariaDB, SQLite and an S3 server (modules of their own, for the drivers)
	@echo "== guards on PostgreSQL, MariaDB, SQLite and an S3 server"
	@databases=$$(.ci/databases) && cd guard/sqlguard/sqltest && env $$databases GOWORK=off $(gotest) -race -shuffle=on -count=1 -timeout=30m ./...
	@cd guard/s3guard/s3test && GOWORK=off $(gotest) -race -shuffle=on -count=1 -timeout=20m ./...
	@set -e; for module in pgxguard s3guard; do (cd guard/$$module && $(gotest) -race -count=1 ./...); done

metrics: $(gotest) ## the modules for Prometheus and OpenTelemetry (installs prometheus)
	@set -e; programs=$$(.ci/prometheus); server=$$(.ci/redis-server); for module in lockprom lockotel; do \
		echo "== observe/$$module"; \
		(cd observe/$$module && env $$programs REDIS_SERVER="$$server" REDIS_VIRTUAL=1 $(gotest) -race -shuffle=on -count=1 -timeout=10m ./...); done

adapters: $(gotest) ## the locks behind gocron's, tusd's and certmagic's interfaces, in two processes each (modules of their own)
	@set -e; server=$$(.ci/redis-server); for module in lockgocron locktusd lockcertmagic; do \
		echo "== adapters/$$module"; \
		(cd adapters/$$module && REDIS_SERVER="$$server" REDIS_VIRTUAL=1 $(gotest) -race -shuffle=on -count=1 -timeout=10m ./...); done

command: $(gotest) ## the command fencelock, on real servers and terminals (a module of its own)
	@echo "== cmd/fencelock"
	@server=$$(.ci/redis-server) && cd cmd/fencelock && PATH="$$PATH:$$(dirname "$$server")" REDIS_SERVER="$$server" REDIS_VIRTUAL=1 $(gotest) -race -parallel=4 -shuffle=on -count=1 -timeout=20m ./...

browser: $(gotest) ## the page of locks, in Chromium (a module of its own; installs chromium)
	@echo "== observe/lockui in a browser"
	@chromium=$$(.ci/chromium) && cd observe/lockui/browsertest && CHROMIUM="$$chromium" GOWORK=off $(gotest) -race -shuffle=on -count=1 -timeout=10m ./...

vet: ## rlockvet's tests, and that it has nothing to say of this repository; go vet of bench, and that the command compiles for Windows
	cd rlockvet && go test -count=1 -timeout 20m ./...

newcomer: ## a module in an empty folder: a class of Redisson's, ported, its test, and rlockvet on what goes wrong
	.ci/newcomer

interop: ## Redisson on the other side of the lock (installs a JDK and Maven)
	.ci/interop

verify: ## clients in many processes, real servers, faults by seed, for half an hour; then bugs on purpose, each to be found
	@server=$$(.ci/redis-server) && cd verify && export REDIS_SERVER="$$server" GOWORK=off && go run . -for 30m && go run . -broken

sim: ## the library in virtual time, for an hour: leases and outages as long as users have them; then bugs on purpose
	@cd verify && export GOWORK=off && go run ./sim -for 1h && go run ./sim -broken

# The linters read what the compiler makes of imported packages. With -race that is what make test
# needs, too: otherwise all of it is compiled twice. The gate runs verify and rlockvet without -race.
# Of bench nothing is compiled in the gate: make vet looks at its source.
raced := GOFLAGS="$$(go env GOFLAGS) -race"
staticcheck := go run -race=false honnef.co/go/tools/cmd/staticcheck@v0.8.2
lint: ## gofmt, go vet, staticcheck, spelling
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "gofmt would change:"; echo "$$files"; exit 1; fi
	$(raced) go vet ./... ./examples/recipes/...
	$(raced) $(staticcheck) ./... ./examples/recipes/...
	@printf '%s\n' guard/sqlguard/sqltest guard/s3guard/s3test observe/lockui/browsertest | \
		$(raced) xargs -P 2 -I {} sh -c 'echo "go vet in {}" && cd {} && GOWORK=off go vet ./...'
	@printf '%s\n' guard/pgxguard guard/s3guard observe/lockprom observe/lockotel adapters/lockgocron adapters/locktusd adapters/lockcertmagic cmd/fencelock | \
		$(raced) xargs -P 2 -I {} sh -c 'echo "go vet and staticcheck in {}" && cd {} && go vet ./... && $(staticcheck) ./...'
	cd verify && GOWORK=off go vet ./...
	cd verify/interop && GOWORK=off go vet ./...
	cd rlockvet && go vet ./... && $(staticcheck) ./...
	go run github.com/golangci/misspell/cmd/misspell@v0.8.0 -error $$(git ls-files '*.md' '*.go' '*.lua')

mutants: ## the tests against code that is broken on purpose, rule by rule
	go run ./internal/test/mutants

bench: ## side by side with other locks and semaphores, about an hour; writes bench/results (its deps are a module of their own)
	@server=$$(.ci/redis-server) && cd bench && export REDIS_SERVER="$$server" GOWORK=off && go run . && \
		go run . -modes semaphore -repeats 17 -out results/semaphores && \
		go run . -modes rwlock -repeats 9 -out results/rwlocks

bench-others: ## beside etcd's and PostgreSQL's locks, about 9 minutes; writes bench/results/others
	@server=$$(.ci/redis-server) && { databases=$$(.ci/databases) || [ -z "$$CI" ]; } && cd bench && \
		env $$databases REDIS_SERVER="$$server" GOWORK=off go run . -modes others -repeats 17 -out results/others

bench-guards: ## what a guarded write costs beside a plain one: memory, Redis, PostgreSQL, MariaDB, SQLite
	@server=$$(.ci/redis-server) && REDIS_SERVER="$$server" go test -run '^$$' -bench . ./guard ./guard/redisguard
	@databases=$$(.ci/databases) && cd guard/sqlguard/sqltest && env $$databases GOWORK=off go test -run '^$$' -bench .

bench-topologies: ## what an acquire and an unlock take on one server, with replicas, Sentinel, a cluster, a quorum
	@server=$$(.ci/redis-server) && REDIS_SERVER="$$server" go test -run '^$$' -bench Topology -count 3 ./quorum

FUZZ ?= 100000
fuzz: ## each fuzz target so many times, a hundred thousand if FUZZ does not say (by time, Go fails now and then when it is over)
	@set -e; for package in scripts guard/httpguard; do \
		for target in $$(grep -ho '^func Fuzz[A-Za-z0-9]*' $$package/*_test.go | cut -c6-); do \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZ)x ./$$package; done; done

release-check: ## a release as a dry run (VERSION=v0.1.0), with go mod tidy, gorelease and govulncheck; changes nothing here
	@.ci/release $(VERSION)
	@.ci/vulnerabilities || [ $$? -eq 75 ] # 75: it has said that the database is out of reach
