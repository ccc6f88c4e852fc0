package redistest

import "sync"

// queue is an unbounded first-in first-out queue.
type queue[T any] struct {
	mu     sync.Mutex
	more   *sync.Cond
	items  []T
	closed bool
}

func newQueue[T any]() *queue[T] {
	q := &queue[T]{}
	q.more = sync.NewCond(&q.mu)
	return q
}

// push adds an item. It never blocks; after close it does nothing.
func (q *queue[T]) push(v T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.items = append(q.items, v)
		q.more.Signal()
	}
}

// pop takes the first item, waiting for one. After close it takes what is left
// and then reports false.
func (q *queue[T]) pop() (v T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 && !q.closed {
		q.more.Wait()
	}
	if len(q.items) == 0 {
		return v, false
	}
	v, q.items = q.items[0], q.items[1:]
	return v, true
}

// head returns the first item without taking it, or false if there is none now.
func (q *queue[T]) head() (v T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return v, false
	}
	return q.items[0], true
}

// close ends the queue: no item is added any more.
func (q *queue[T]) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.more.Broadcast()
}
