package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// ReadFrame reads one RESP2 or RESP3 value, with all that is nested in it, and
// returns its bytes as they came.
func ReadFrame(r *bufio.Reader) ([]byte, error) {
	return appendFrame(nil, r, nil)
}

// ReadCommand reads one request, an array of bulk strings, and returns its
// bytes as they came and its strings.
func ReadCommand(r *bufio.Reader) (frame []byte, args []string, err error) {
	frame, err = appendFrame(nil, r, &args)
	if err == nil && (frame[0] != '*' || len(args) == 0) {
		err = errors.New("redistest: a request that is not an array of bulk strings")
	}
	return frame, args, err
}

// appendFrame appends one value to frame, and its bulk strings to strs if that
// is not nil.
func appendFrame(frame []byte, r *bufio.Reader, strs *[]string) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	frame = append(frame, line...)
	if err != nil {
		return frame, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return frame, fmt.Errorf("redistest: bad RESP line %q", line)
	}

	kind, values := line[0], 0
	switch kind {
	case '+', '-', ':', '_', '#', ',', '(':
		return frame, nil
	case '$', '!', '=', '*', '~', '>', '%', '|':
		if values, err = strconv.Atoi(string(line[1 : len(line)-2])); err != nil || values < -1 {
			return frame, fmt.Errorf("redistest: bad RESP length %q", line)
		}
	default:
		return frame, fmt.Errorf("redistest: unknown RESP type %q", line)
	}

	switch kind {
	case '$', '!', '=':
		if values < 0 { // a null
			return frame, nil
		}
		body := make([]byte, values+2)
		if _, err := io.ReadFull(r, body); err != nil {
			return frame, err
		}
		if strs != nil {
			*strs = append(*strs, string(body[:values]))
		}
		return append(frame, body...), nil
	case '%':
		values *= 2
	case '|': // attributes stand before the value they belong to
		values = 2*values + 1
	}
	for ; values > 0; values-- {
		if frame, err = appendFrame(frame, r, strs); err != nil {
			return frame, err
		}
	}
	return frame, nil
}
