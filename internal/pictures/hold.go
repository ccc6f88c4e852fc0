package main

// hold shows the states of a hold, as its context tells them.
func hold() string {
	return draw(760, 230, "A hold is held and renewed until Unlock. Where renewals fail it is held for the rest of its lease, and then lost. A lock that is forced open is lost.", func(d *drawing) {
		d.box(20, 84, 130, "waits", "Acquire, Lock, Do")
		d.box(250, 84, 170, "held, and renewed", "Err() is nil")
		d.box(560, 20, 180, "unlocked", "Err() is ErrUnlocked")
		d.box(560, 150, 180, "lost", "Err() is ErrLost")
		d.arrow("", "M150 108 H248")
		d.text(199, 100, "quiet", "middle", "its turn")
		d.arrow("good", "M420 98 C490 98 500 44 558 44")
		d.text(490, 62, "good", "end", "Unlock")
		d.arrow("bad", "M420 118 C490 118 500 174 558 174")
		d.text(474, 176, "bad", "end", "the lease runs out, or it is forced open")
		d.arrow("", "M300 84 C300 44 370 44 370 82")
		d.text(335, 44, "quiet", "middle", "a renewal, every third of the lease")
		d.text(560, 216, "quiet", "start", "storage refuses its token")
	})
}
