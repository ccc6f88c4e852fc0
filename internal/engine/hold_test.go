package engine

import (
	"testing"

	"github.com/fencelock/fencelock/scripts"
)

// In a cluster renewals travel by the slots of their locks, and otherwise all together.
func TestSlotOfAHold(t *testing.T) {
	keys := scripts.KeysOf("l")
	if keys.Slot == 0 {
		t.Fatal("the lock's slot is 0: this test shows nothing")
	}
	for cluster, want := range map[bool]uint16{true: keys.Slot, false: 0} {
		h := holdOn(&Client{server: server{cluster: cluster}}, keys, "", 0)
		if got := h.Slot(); got != want {
			t.Errorf("in a cluster: %v: slot %d, want %d", cluster, got, want)
		}
	}
}
