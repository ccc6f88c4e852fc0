package docs

import (
	"os"
	"testing"

	"github.com/fencelock/fencelock/internal/locktest"
)

func TestMain(m *testing.M) { os.Exit(locktest.Main(m, 8)) }
