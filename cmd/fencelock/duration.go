package main

import (
	"fmt"
	"strconv"
	"time"
)

// duration is a flag's value: 1m30s, or a bare number of seconds, as flock and timeout take it.
type duration time.Duration

func (d *duration) Set(text string) error {
	parsed, err := time.ParseDuration(text)
	if n, notNumber := strconv.ParseFloat(text, 64); notNumber == nil {
		parsed, err = time.Duration(n*float64(time.Second)), nil
	}
	if err != nil || parsed < 0 || parsed > 100*365*24*time.Hour {
		return fmt.Errorf("write it as 30, 1.5, 500ms, 30s or 1h30m")
	}
	*d = duration(parsed)
	return nil
}

func (d *duration) String() string {
	if *d == 0 {
		return "0" // no default, for the help
	}
	return time.Duration(*d).String()
}

func (*duration) Type() string { return "duration" }
