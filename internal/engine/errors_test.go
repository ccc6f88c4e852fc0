package engine

import (
	"io"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// Two errors are joined where there are two.
func TestErrorWithWhatWasSaid(t *testing.T) {
	locktest.Equal(t, "without", with(ErrNotAcquired, nil), ErrNotAcquired)
	err := with(ErrNotAcquired, io.EOF)
	locktest.IsError(t, err, ErrNotAcquired, io.EOF)
	locktest.Equal(t, "text", err.Error(), ErrNotAcquired.Error()+": EOF")
}
