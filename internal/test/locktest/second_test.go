package locktest

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

func TestMain(m *testing.M) {
	ServeAsSecond(func(args []string) (Answer, error) {
		return func(call string, more ...string) (string, error) {
			switch call {
			case "say":
				return strings.Join(append(args, more...), "+"), nil
			case "stay":
				select {}
			}
			return "", errors.New("there is no " + call)
		}, nil
	})
	os.Exit(m.Run())
}

// A second process answers calls side by side, with what it was started with, and can be killed.
func TestSecond(t *testing.T) {
	s := StartSecond(t, "a", "b")
	stays := s.Start("stay")
	Equal(t, "the answer", s.Call("say", "c", "d"), "a+b+c+d")
	Equal(t, "the error", s.Fails("nothing"), "there is no nothing")
	NothingComes(t, stays, 10*time.Millisecond, "a call that waits")
	s.Kill()
	redistest.Await(t, time.Minute, s.over, "the process is gone")
}
