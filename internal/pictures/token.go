package main

// token shows how a token saves a write: A is paused, loses its lock, and writes late.
func token() string {
	return draw(760, 300, "A has the lock with token 33 and is paused. Its lease runs out, B has the lock with token 34 and writes. A goes on and writes with token 33: storage refuses that.", func(d *drawing) {
		for i, name := range []string{"A", "B", "storage"} {
			y := 62 + 90*i
			d.text(20, y+5, "", "start", name)
			d.arrow("", "M80 "+itoa(y)+" H740")
		}
		d.text(740, 285, "quiet", "end", "time")
		d.bar(96, 49, 190, "a", "holds the lock, token 33")
		d.bar(286, 49, 226, "quiet", "paused: it does not know")
		d.text(286, 40, "bad", "middle", "its lease runs out")
		d.bar(310, 139, 150, "b", "holds it, token 34")
		d.arrow("good", "M140 76 V226")
		d.text(148, 212, "good", "start", "write, 33")
		d.arrow("good", "M400 166 V226")
		d.text(408, 212, "good", "start", "write, 34")
		d.arrow("bad", "M540 66 V226")
		d.text(548, 100, "bad", "start", "goes on, and writes with 33")
		d.bar(520, 229, 200, "bad", "refused: 33 is older than 34")
		d.bar(104, 229, 72, "good", "33")
		d.bar(364, 229, 72, "good", "34")
	})
}
