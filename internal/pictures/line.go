package main

import "strconv"

func itoa(n int) string { return strconv.Itoa(n) }

// line shows the line of clients: a release calls the first, and tells the second to watch.
func line() string {
	return draw(760, 270, "Clients wait in a line in Redis. A release calls the first one and tells the second to watch it. Redisson's clients hear of the release on the lock's own channel.", func(d *drawing) {
		d.box(20, 96, 150, "the holder", "unlocks")
		d.box(250, 96, 250, "Redis: release.lua", "deletes the hold, reads the line")
		d.arrow("", "M170 120 H248")
		for i, name := range []string{"first in the line", "second", "third, ..."} {
			below := []string{"is called, takes the lock", "watches the first", "sleep"}[i]
			y := 20 + 76*i
			d.box(570, y, 176, name, below)
			class := []string{"good", "", ""}[i]
			if i < 2 {
				d.arrow(class, "M500 "+itoa(110+16*i)+" C540 "+itoa(110+16*i)+" 530 "+itoa(y+24)+" 568 "+itoa(y+24))
			}
		}
		d.box(250, 196, 250, "Redisson's clients, and others", "listen on the lock's own channel")
		d.arrow("", "M375 144 V194")
		d.text(385, 174, "quiet", "start", "when it is their turn")
	})
}
