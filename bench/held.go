package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// heldFile, in the directory of the results, has the rows of targets that this program does not measure: those of
// 100,000 held locks and of memory. It is a list of rows, and may be missing.
const heldFile = "held.json"

// A row is a line of the table of targets, and an element of heldFile.
type row struct {
	What     string `json:"what"`
	AtLeast  string `json:"at_least"`
	Aim      string `json:"aim"`
	Measured string `json:"measured"`
	Verdict  string `json:"verdict"`
	Reason   string `json:"reason"` // why it does not reach the aim
}

func readHeld(dir string) ([]row, error) {
	raw, err := os.ReadFile(filepath.Join(dir, heldFile))
	if errors.Is(err, fs.ErrNotExist) {
		return []row{{What: "100,000 held locks; memory", Measured: "-", Verdict: notMeasured, Reason: "there is no " + heldFile}}, nil
	}
	if err != nil {
		return nil, err
	}
	var rows []row
	if err := json.Unmarshal(raw, &rows); err != nil {
		return nil, fmt.Errorf("%s must be a list of rows with strings for what, at_least, aim, measured, verdict, reason: %w", heldFile, err)
	}
	return rows, nil
}
