package watchdog

import (
	"container/heap"
	"time"
)

// A bucket holds the leases that are due within one span of time, as a list linked by Lease.prev and Lease.next.
type bucket struct {
	at   int64 // start of the span, in milliseconds on the watchdog's count
	head *Lease
	size int // leases
}

// A calendar has the buckets by the time when their leases are due, in milliseconds on the watchdog's own monotonic count. The zero
// value is empty. The watchdog's lock guards it.
type calendar struct {
	buckets map[int64]*bucket // by bucket.at
	order   starts            // of all buckets, also of those that have become empty
	size    int               // leases
}

// grain returns the span of the buckets for leases of this length, in milliseconds. Long leases share wide buckets: a lease is due
// up to a grain early, which costs a long lease nothing and would cost a short one too much.
func grain(length time.Duration) int64 {
	if length < time.Second {
		return 1
	}
	return 100
}

// round returns the start of the bucket that the lease goes into when it is due at this time.
func (l *Lease) round(due int64) int64 { return due - due%grain(l.deadline.Load().length) }

// add puts the lease into the bucket of this time, and makes the bucket if need be.
func (c *calendar) add(l *Lease, due int64) {
	at := l.round(due)
	b := c.buckets[at]
	if b == nil {
		if len(c.order) > 2*c.size+1000 {
			c.prune()
		}
		b = &bucket{at: at}
		if c.buckets == nil {
			c.buckets = make(map[int64]*bucket)
		}
		c.buckets[at] = b
		heap.Push(&c.order, at)
	}
	l.bucket, l.prev, l.next = b, nil, b.head
	if b.head != nil {
		b.head.prev = l
	}
	b.head = l
	b.size++
	c.size++
}

// prune removes the buckets that have become empty. Without it they stay until take reaches their time.
func (c *calendar) prune() {
	c.order = c.order[:0]
	for at, b := range c.buckets {
		if b.head == nil {
			delete(c.buckets, at)
		} else {
			c.order = append(c.order, at)
		}
	}
	heap.Init(&c.order)
}

// remove takes the lease out of its bucket. It does nothing with a lease that is in none.
func (c *calendar) remove(l *Lease) {
	if l.bucket == nil {
		return
	}
	if l.prev != nil {
		l.prev.next = l.next
	} else {
		l.bucket.head = l.next
	}
	if l.next != nil {
		l.next.prev = l.prev
	}
	l.bucket.size--
	l.bucket, l.prev, l.next = nil, nil, nil
	c.size--
}

// crowd returns how many leases are in the bucket that begins at this time.
func (c *calendar) crowd(at int64) int {
	if b := c.buckets[at]; b != nil {
		return b.size
	}
	return 0
}

// first returns the start of the earliest bucket, and whether there is a bucket.
func (c *calendar) first() (int64, bool) {
	if len(c.order) == 0 {
		return 0, false
	}
	return c.order[0], true
}

// take removes leases whose bucket's span has begun at the time now, no more than most, and appends them to due.
func (c *calendar) take(now int64, most int, due []*Lease) []*Lease {
	for len(c.order) > 0 && c.order[0] <= now {
		b := c.buckets[c.order[0]]
		for ; b.head != nil; most-- {
			if most == 0 {
				return due
			}
			l := b.head
			c.remove(l)
			due = append(due, l)
		}
		delete(c.buckets, b.at)
		heap.Pop(&c.order)
	}
	return due
}

// all appends every lease to out.
func (c *calendar) all(out []*Lease) []*Lease {
	for _, b := range c.buckets {
		for l := b.head; l != nil; l = l.next {
			out = append(out, l)
		}
	}
	return out
}

// starts is a heap of bucket starts, the earliest at the front.
type starts []int64

func (s starts) Len() int           { return len(s) }
func (s starts) Less(i, j int) bool { return s[i] < s[j] }
func (s starts) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *starts) Push(x any)        { *s = append(*s, x.(int64)) }
func (s *starts) Pop() any {
	old := *s
	x := old[len(old)-1]
	*s = old[:len(old)-1]
	return x
}
