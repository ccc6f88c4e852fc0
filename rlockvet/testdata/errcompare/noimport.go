package errcompare

import "github.com/fencelock/fencelock/rlock"

func helped(err error) bool {
	return err != rlock.ErrNotHeld // want `err does not equal rlock.ErrNotHeld`
}
