package redistest

import (
	"bufio"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestReadFrame(t *testing.T) {
	for _, frame := range []string{
		"+OK\r\n", "-ERR no\r\n", ":-12\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "(123456789012345678901\r\n",
		"$0\r\n\r\n", "$-1\r\n", "$5\r\na\r\nb\n\r\n", "!5\r\nERR x\r\n", "=7\r\ntxt:abc\r\n",
		"*0\r\n", "*-1\r\n", "*2\r\n*1\r\n$1\r\na\r\n:1\r\n", "~2\r\n:1\r\n:2\r\n",
		"%2\r\n$1\r\na\r\n*2\r\n:1\r\n:2\r\n+b\r\n%0\r\n", ">3\r\n+message\r\n$1\r\nc\r\n$1\r\nm\r\n",
		"|1\r\n+ttl\r\n:3600\r\n*1\r\n|1\r\n+x\r\n:1\r\n:9\r\n",
	} {
		r := bufio.NewReader(strings.NewReader(frame + "+next\r\n"))
		for _, expected := range []string{frame, "+next\r\n"} {
			if got, err := ReadFrame(r); err != nil || string(got) != expected {
				t.Errorf("%q: got %q, %v", expected, got, err)
			}
		}
		for n := range frame {
			if got, err := ReadFrame(bufio.NewReader(strings.NewReader(frame[:n]))); err != io.EOF && err != io.ErrUnexpectedEOF {
				t.Errorf("%q cut at %d: got %q, %v", frame, n, got, err)
			}
		}
	}
	for _, bad := range []string{"?1\r\n", "+OK\n", "\r\n", "$x\r\n", "*-2\r\n"} {
		if got, err := ReadFrame(bufio.NewReader(strings.NewReader(bad))); err == nil {
			t.Errorf("%q: got %q", bad, got)
		}
	}
}

func TestReadCommand(t *testing.T) {
	const get = "*2\r\n$3\r\nGET\r\n$0\r\n\r\n"
	frame, args, err := ReadCommand(bufio.NewReader(strings.NewReader(get)))
	if err != nil || string(frame) != get || !slices.Equal(args, []string{"GET", ""}) {
		t.Errorf("got %q, %q, %v", frame, args, err)
	}
	for _, bad := range []string{"PING\r\n", "+PING\r\n", "*0\r\n"} {
		if _, args, err := ReadCommand(bufio.NewReader(strings.NewReader(bad))); err == nil {
			t.Errorf("%q: got %q", bad, args)
		}
	}
}
