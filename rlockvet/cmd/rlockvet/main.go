// Command rlockvet finds misuses of fencelock's locks. It runs by itself, and as go vet -vettool.
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/fencelock/fencelock/rlockvet"
)

func main() { multichecker.Main(rlockvet.Analyzers...) }
