package scripts

import (
	"errors"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// A renewal on a server of a quorum tells the server's run and time with what became of each hold, also of more holds than one script has.
func TestNode_Renewed(t *testing.T) {
	rdb := nodeServer(t)
	s := NewNode(rdb)
	field, holds := newField(), make([]Renewal, maxScript+20)
	for i := range holds {
		keys := newKeys(t)
		holds[i] = Renewal{Keys: keys, Field: field, Lease: time.Minute}
		if i%7 != 0 {
			locktest.NoError(t, rdb.HSet(t.Context(), keys.Lock, holds[i].Field, 1).Err())
		}
	}
	for i, r := range s.Renewed(t.Context(), holds) {
		switch {
		case r.Report == nil || r.Report.Run == "" || r.Report.Time == 0:
			t.Fatalf("hold %d: the report %+v", i, r.Report)
		case (i%7 == 0) != errors.Is(r.Err, ErrGone) || i%7 != 0 && r.Err != nil:
			t.Errorf("hold %d: %v", i, r.Err)
		}
	}
}
