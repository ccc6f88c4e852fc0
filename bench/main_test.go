package main

import (
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"
)

var usesNodes bool // testNodes was called

// TestMain lets the test program be a host, as the program itself is.
func TestMain(m *testing.M) {
	if isHost() {
		main()
		return
	}
	logging.Disable()
	code := m.Run()
	if usesNodes {
		if n, err := started(); err == nil {
			n.stop()
		}
	}
	os.Exit(code)
}
