package main

import (
	"os"
	"testing"
)

// TestMain lets the test program be a worker process, as the program itself is.
func TestMain(m *testing.M) {
	if isWorker() {
		main()
		return
	}
	os.Exit(m.Run())
}
