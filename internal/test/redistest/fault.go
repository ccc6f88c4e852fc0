package redistest

import "sync"

// Fault is one action on one command, as arranged with [Proxy.On].
type Fault struct {
	p     *Proxy
	name  string
	match func([]string) bool
	do    Action
	taken bool // a command matched; guarded by p.mu

	fired, done, released chan struct{}
	release               sync.Once
}

// Fired returns a channel that is closed when the action was applied: for
// [Hold], [HoldCut] and [Refuse] when the command has come, for the other
// actions when the server has answered it.
func (f *Fault) Fired() <-chan struct{} { return f.fired }

// Release lets go of the command or reply that the action keeps. It may be
// called early and more than once. What is not released by the end of the test
// is dropped.
func (f *Fault) Release() { f.release.Do(func() { close(f.released) }) }

// Done returns a channel that is closed when the proxy has no more to do for
// the action: for [Hold], [HoldCut] and [Duplicate] when the server has
// answered the released command, for [HoldReply] when the reply was released,
// for the other actions together with Fired.
func (f *Fault) Done() <-chan struct{} { return f.done }

// wait waits for Release. It reports false if the proxy ends before it.
func (f *Fault) wait() bool {
	select {
	case <-f.released:
		return true
	case <-f.p.ctx.Done():
		return false
	}
}

// late waits for Release and then sends the command over a server connection of
// its own. It returns false if there is no answer.
func (f *Fault) late(frame []byte) (answer, bool) {
	if !f.wait() {
		return answer{cut: true}, false
	}
	reply, err := f.p.send(frame)
	if err != nil {
		return answer{cut: true}, false
	}
	close(f.done)
	return answer{frame: reply}, true
}

// Action is what a [Fault] does to its command.
type Action struct {
	// run applies the action to the command in frame, which came over l. It
	// is called in the order of the commands and must not wait.
	run func(l *link, f *Fault, frame []byte)
	// everywhere says that the action works on connections that subscribe.
	everywhere bool
}

// SwallowReply sends the command to the server and drops the reply; when the
// server has answered, the client's connection is closed.
var SwallowReply = Action{run: func(l *link, f *Fault, frame []byte) {
	l.await(frame, l.reserve(), func(a answer, out chan<- answer) {
		close(f.fired)
		close(f.done)
		out <- answer{cut: true}
	})
}}

// SwallowReplySilently sends the command to the server and drops the reply. The
// client's connection stays open, and nothing comes over it any more.
var SwallowReplySilently = Action{run: func(l *link, f *Fault, frame []byte) {
	l.await(frame, l.reserve(), func(answer, chan<- answer) {
		close(f.fired)
		close(f.done)
	})
}}

// Hold keeps the command until [Fault.Release]. It is then sent to the server,
// over a connection of its own, even if the client has gone; the client gets
// the reply if it is still there. Until then it gets no replies to what it
// sends after the command on the same connection, though the server gets that.
var Hold = Action{run: func(l *link, f *Fault, frame []byte) {
	out := l.reserve()
	close(f.fired)
	l.p.running.Go(func() { a, _ := f.late(frame); out <- a })
}}

// HoldCut is [Hold], but the client's connection is closed at once.
var HoldCut = Action{run: func(l *link, f *Fault, frame []byte) {
	close(f.fired)
	l.reserve() <- answer{cut: true}
	l.p.running.Go(func() { f.late(frame) })
}}

// HoldReply sends the command to the server and keeps the reply until
// [Fault.Release].
var HoldReply = Action{run: func(l *link, f *Fault, frame []byte) {
	l.await(frame, l.reserve(), func(a answer, out chan<- answer) {
		close(f.fired)
		if f.wait() {
			close(f.done)
			out <- a
		}
	})
}}

// Duplicate sends the command to the server and returns the reply. A copy of
// the command is kept until [Fault.Release] and then sent to the server over a
// connection of its own; the reply to it is dropped.
var Duplicate = Action{run: func(l *link, f *Fault, frame []byte) {
	l.await(frame, l.reserve(), func(a answer, out chan<- answer) {
		close(f.fired)
		out <- a
		f.late(frame)
	})
}}

// Refuse answers the command with the error msg, such as "ERR no", and does not
// send it to the server. It is the one action that also applies to commands
// that subscribe and to those on a subscribed connection.
func Refuse(msg string) Action {
	return Action{everywhere: true, run: func(l *link, f *Fault, _ []byte) {
		close(f.fired)
		close(f.done)
		l.reserve() <- answer{frame: []byte("-" + msg + "\r\n")}
	}}
}
