package room

import "fmt"

var whatNames = []string{
	"tick", "joined", "left", "answered", "message", "told", "changed", "began", "ended", "kept",
	"unlocking", "gave up", "released", "trying", "tried", "asked", "lost",
}

func describe(ev *Event) string {
	text := whatNames[ev.What]
	if ev.Call.ID != 0 {
		text += fmt.Sprint(" call ", ev.Call.ID)
	}
	if ev.Attempt != 0 {
		text += fmt.Sprint(" ", ev.Attempt)
	}
	if ev.Got {
		text += " got"
	}
	return text + " " + ev.Field + ev.Text
}

// describeEffect is an effect as a test names it.
func describeEffect(e *Effect) string {
	ch := []string{"the lock's channel", "its calls"}[e.Channel]
	turn := ""
	if t := e.Turn; t.Ticket != "" {
		turn = " in line as " + t.Ticket
	}
	if e.Turn.Look {
		turn += " and looks"
	}
	switch e.Do {
	case Send:
		return fmt.Sprintf("send attempt %d for %s%s", e.Attempt, e.Field, turn)
	case Pass:
		return fmt.Sprintf("pass by attempt %d from %s to %s", e.Attempt, e.Old, e.Field)
	case TakeBack:
		return fmt.Sprint("take back attempt ", e.Attempt)
	case Grant:
		return fmt.Sprintf("grant %s to call %d%s", e.Field, e.Call, map[bool]string{true: ", locally"}[e.Local])
	case Fail:
		return fmt.Sprintf("fail call %d: %v", e.Call, e.Err)
	case AskBeside:
		return "all others ask beside"
	case Abandon:
		return "abandon " + e.Field
	case FreeOver:
		return "free " + e.Field
	case Passed:
		return e.Field + map[bool]string{false: " is passed on", true: " goes on"}[e.Local]
	case Release:
		if e.Ticket != "" {
			return "release " + e.Field + " and enter as " + e.Ticket
		}
		return "release " + e.Field
	case LeaveLine:
		return "leave the line with " + e.Ticket
	case Listen:
		return "listen to " + ch
	case Unlisten:
		return "stop listening to " + ch
	case Waits:
		return fmt.Sprintf("call %d waits", e.Call)
	case Wanted:
		return e.Field + " is wanted"
	case Suspect:
		return e.Field + " may be waited for by its own"
	}
	return "?"
}
