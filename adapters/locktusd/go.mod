module github.com/fencelock/fencelock/adapters/locktusd

go 1.25.0

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/fencelock/fencelock v0.1.0
	github.com/redis/go-redis/v9 v9.20.0
	github.com/tus/tusd/v2 v2.9.1
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/exp v0.0.0-20250106191152-7588d65b2ba8 // indirect
)
