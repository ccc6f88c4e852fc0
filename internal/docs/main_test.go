package docs

import (
	"flag"
	"os"
	"testing"
)

// TestMain runs eight parallel tests at a time, unless the command line says otherwise: those on servers wait most of the time.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "8")
	}
	os.Exit(m.Run())
}
