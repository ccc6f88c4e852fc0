package rlock_test

import (
	"os"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

func TestMain(m *testing.M) { os.Exit(locktest.Main(m, 12)) }
