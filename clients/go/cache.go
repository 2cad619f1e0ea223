package urlstore

import (
	"container/list"
	"regexp"
	"strconv"
	"sync"
)

// A bounded memory of URLs that the store is known to have; the least recently
// used one leaves.
type cache struct {
	lock  sync.Mutex
	size  int
	known map[string]*list.Element
	order *list.List // of *known, the last used first
}

type known struct {
	key, url string
	id       uint64
}

var (
	absolute = regexp.MustCompile(`^(?i)https?://`)
	oneSlash = regexp.MustCompile(`^/([^/\\\t\n\r]|$)`)
	origin   = regexp.MustCompile(`^(?i)(https?://[^/\\?#\s]+)(?:[/\\?#]|$)`)
)

func newCache(size int) *cache {
	return &cache{size: size, known: map[string]*list.Element{}, order: list.New()}
}

// The key of a link is what decides how the service resolves it: an absolute
// http(s) link does not depend on its base; one that begins with one slash
// depends on the base's scheme and host; any other on all of it.
func key(u, base string) string {
	if base == "" || absolute.MatchString(u) {
		return u
	}
	if oneSlash.MatchString(u) {
		if m := origin.FindStringSubmatch(base); m != nil {
			return m[1] + u
		}
	}
	return strconv.Itoa(len(base)) + " " + base + u
}

func (c *cache) get(u, base string) (known, bool) {
	if c.size == 0 {
		return known{}, false
	}
	k := key(u, base)
	c.lock.Lock()
	defer c.lock.Unlock()
	element, found := c.known[k]
	if !found {
		return known{}, false
	}
	c.order.MoveToFront(element)
	return *element.Value.(*known), true
}

func (c *cache) put(u, base string, id uint64, canonical string) {
	if c.size == 0 {
		return
	}
	k := key(u, base)
	c.lock.Lock()
	defer c.lock.Unlock()
	if element, found := c.known[k]; found {
		element.Value = &known{k, canonical, id}
		c.order.MoveToFront(element)
		return
	}
	c.known[k] = c.order.PushFront(&known{k, canonical, id})
	if c.order.Len() > c.size {
		last := c.order.Remove(c.order.Back()).(*known)
		delete(c.known, last.key)
	}
}

func (c *cache) clear() {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.known = map[string]*list.Element{}
	c.order.Init()
}

func same(a, b *uint64) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}
