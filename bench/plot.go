package main

import (
	"image/color"
	"math"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// A chart is groups of bars: a group for each mode of a group of modes, a bar for each contender.
type chart struct {
	file, group, load string // load: the end of the mode's name; "" for all
	title, unit       string
	value             func(summary) (float64, bool)
	log               bool
}

var charts = []chart{
	{"own-rate.svg", "own", "", "A key for each goroutine", "pairs a second", rate, false},
	{"one-rate.svg", "one", "", "One key for all, 4 clients", "pairs a second", rate, true},
	{"one-p99.svg", "one", "", "One key for all, 4 clients: wait", "p99, milliseconds", p99, true},
	{"hot-rate.svg", "hot", "", "Few hot keys among many", "pairs a second", rate, false},
	{"slow-rate.svg", "slow", "", "A link that adds 1 ms", "pairs a second", rate, true},
	{"clients-rate.svg", "clients", "/empty", "One key, a caller or 8 in each of n clients", "pairs a second", rate, true},
	{"clients-p99.svg", "clients", "/2ms-70", "One key, 2 ms inside, taken for about 70% of the time: wait", "p99, milliseconds", p99, true},
	{"semaphore-rate.svg", semaphore, "", "A semaphore of 5 permits, a caller in each of n clients", "permits a second", rate, true},
	{"semaphore-p99.svg", semaphore, "", "A semaphore of 5 permits, a caller in each of n clients: wait", "p99, milliseconds", p99, true},
	{"semaphore-fair.svg", semaphore, "", "A semaphore of 5 permits, a caller in each of n clients: even shares", "least/most permits of clients", fair, false},
	{"rwlock-readers-rate.svg", readWrite + "-readers", "", "A read-write lock that is read, a caller in each of n clients", "pairs a second", rate, true},
	{"rwlock-mixed-rate.svg", readWrite + "-mixed", "", "A read-write lock, 9 of 10 uses read, a caller in each of n clients", "pairs a second", rate, true},
	{"rwlock-mixed-p99.svg", readWrite + "-mixed", "", "A read-write lock, 9 of 10 uses read: wait", "p99, milliseconds", p99, true},
	{"rwlock-lone-p99.svg", readWrite + "-lone", "", "A read-write lock: wait of one writer beside 64 readers", "p99, milliseconds", p99, true},
	{"others-rate.svg", "others", "", "Beside etcd and PostgreSQL", "pairs a second", rate, true},
	{"others-p99.svg", "others", "", "Beside etcd and PostgreSQL: wait", "p99, milliseconds", p99, true},
	{"quorum-own-rate.svg", "quorum-own", "", "5 servers, a key for each goroutine", "pairs a second", rate, false},
	{"quorum-rate.svg", "quorum", "/empty", "5 servers, one key, a caller in each of n clients", "pairs a second", rate, true},
	{"quorum-p99.svg", "quorum", "/2ms-70", "5 servers, one key, 2 ms inside, taken for about 70% of the time: wait", "p99, milliseconds", p99, true},
}

func rate(s summary) (float64, bool) { return s.PairsPerSec.Median, s.PairsPerSec.Median > 0 }
func p99(s summary) (float64, bool)  { return s.WaitP99.Median / 1e3, s.WaitP99.Median > 0 }
func fair(s summary) (float64, bool) { return s.FairClient, s.Still < s.Repeats }

// colours are the contenders', in their order; told apart without red and green.
var colours = []color.RGBA{
	{0, 90, 160, 255}, {220, 95, 20, 255}, {120, 120, 120, 255}, {245, 165, 110, 255}, {150, 110, 50, 255}, {150, 70, 150, 255},
	{215, 160, 215, 255}, {0, 0, 0, 255}, {100, 60, 140, 255}, {195, 175, 220, 255}, {230, 180, 60, 255}, {225, 225, 200, 255},
	{130, 160, 40, 255},
}

// drawAll draws the charts that there are values for, and returns the files' names.
func drawAll(dir string, all []summary) ([]string, error) {
	var files []string
	for _, c := range charts {
		drawn, err := c.draw(dir, all)
		if err != nil {
			return nil, err
		}
		if drawn {
			files = append(files, c.file)
		}
	}
	return files, nil
}

func (c chart) draw(dir string, all []summary) (bool, error) {
	values := map[[2]string]float64{} // by mode and contender
	var groups []string
	for _, m := range modes() {
		found := false
		for _, s := range all {
			if v, ok := c.value(s); ok && m.group() == c.group && strings.HasSuffix(m.name(), c.load) && s.Mode == m.name() {
				values[[2]string{s.Mode, s.Contender}] = v
				found = true
			}
		}
		if found {
			groups = append(groups, m.name())
		}
	}
	if len(groups) == 0 {
		return false, nil
	}
	p := plot.New()
	p.Title.Text, p.Y.Label.Text = c.title, c.unit
	labels := make([]string, len(groups))
	for i, g := range groups {
		labels[i] = strings.TrimPrefix(g, c.group+"/") // the title says it, and whole names overlap
	}
	p.NominalX(labels...)
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	if c.log {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if err := c.bars(p, groups, values); err != nil {
		return false, err
	}
	width := vg.Length(5+2.2*float64(len(groups))) * vg.Centimeter
	return true, p.Save(max(width, 16*vg.Centimeter), 11*vg.Centimeter, filepath.Join(dir, c.file))
}

// bars adds the bars of every contender that has values.
func (c chart) bars(p *plot.Plot, groups []string, values map[[2]string]float64) error {
	var present []int
	low, high := math.Inf(1), 0.0
	for i, who := range contenders {
		found := false
		for _, g := range groups {
			if v, ok := values[[2]string{g, who.name}]; ok {
				found, low, high = true, min(low, v), max(high, v)
			}
		}
		if found {
			present = append(present, i)
		}
	}
	floor := 0.0
	if c.log {
		floor = math.Pow(10, math.Floor(math.Log10(low)))
		high = math.Pow(10, math.Ceil(math.Log10(high)+0.5))
	}
	barWidth := 0.8 / float64(len(present))
	for n, i := range present {
		polygons := make([]plotter.XYer, 0, len(groups))
		for x, g := range groups {
			if v, ok := values[[2]string{g, contenders[i].name}]; ok {
				left := float64(x) - 0.4 + float64(n)*barWidth
				polygons = append(polygons, plotter.XYs{{X: left, Y: floor}, {X: left, Y: v},
					{X: left + barWidth, Y: v}, {X: left + barWidth, Y: floor}})
			}
		}
		for j, xy := range polygons {
			bar, err := plotter.NewPolygon(xy)
			if err != nil {
				return err
			}
			bar.Color, bar.LineStyle.Width = colours[i%len(colours)], 0
			p.Add(bar)
			if j == 0 {
				p.Legend.Add(contenders[i].name, bar)
			}
		}
	}
	p.X.Min, p.X.Max = -0.6, float64(len(groups))-0.4
	p.Y.Min, p.Y.Max = floor, high
	if !c.log {
		p.Y.Max = high * 1.8 // room for the legend
	}
	return nil
}
