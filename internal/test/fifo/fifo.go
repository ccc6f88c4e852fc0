// Package fifo has a queue between goroutines that never blocks the one that fills it.
package fifo

import "sync"

// Queue is an unbounded first-in first-out queue.
type Queue[T any] struct {
	mu     sync.Mutex
	more   *sync.Cond
	items  []T
	closed bool
}

// New returns an empty queue.
func New[T any]() *Queue[T] {
	q := &Queue[T]{}
	q.more = sync.NewCond(&q.mu)
	return q
}

// Push adds an item. It never blocks; after Close it does nothing.
func (q *Queue[T]) Push(v T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.items = append(q.items, v)
		q.more.Signal()
	}
}

// Pop takes the first item, waiting for one. After Close it takes what is left
// and then reports false.
func (q *Queue[T]) Pop() (v T, ok bool) {
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

// Head returns the first item without taking it, or false if there is none now.
func (q *Queue[T]) Head() (v T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return v, false
	}
	return q.items[0], true
}

// Close ends the queue: no item is added any more.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.more.Broadcast()
}
