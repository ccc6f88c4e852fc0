package engine

import "testing"

// The text of a hold whose keys this version does not know is refused, and so is that of a permit without a slot.
func TestParseExportedRefuses(t *testing.T) {
	for kind, name := range map[string]string{"read": "x", ofPermit: "x"} {
		if e, err := ParseExported(Exported{kind, true, "client:1", name}.text()); err == nil || e != (Exported{}) {
			t.Errorf("%s of %s: %v, %v", kind, name, e, err)
		}
	}
}
