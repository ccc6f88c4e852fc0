package main

import "testing"

// Each bug is one of the code as it is, and the faults that it is looked for with are there.
func TestBugsFitTheCode(t *testing.T) {
	for _, b := range bugs {
		if err := b.fits(); err != nil {
			t.Errorf("%s: %v", b.name, err)
		}
	}
}
