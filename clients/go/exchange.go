package urlstore

// One request, as often as it takes. The rules are those of all clients:
//
//   - A request is sent again when no whole answer came, on the codes in
//     retried and on any refusal that brings Retry-After.
//   - It is sent again with the same bytes and the same Idempotency-Key.
//   - The wait is what Retry-After says, plus a random part of a backoff that
//     doubles from backoff to backoffMax.
//   - A wait that would end later than Patience after the first try is not
//     begun: the call returns what the last try met.

import (
	"bytes"
	"compress/gzip"
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"time"
)

const (
	backoff    = 100 * time.Millisecond
	backoffMax = 5 * time.Second
	gzipFrom   = 1024
)

var retried = map[int]bool{408: true, 425: true, 429: true, 500: true, 502: true,
	503: true, 504: true}

// without "processed", these can come after a change; 503 and 429 cannot
var unknown = map[int]bool{408: true, 500: true, 502: true, 504: true}

// NoAnswer says that no whole answer came: refused, cut off, timed out, or not
// readable. The service may have applied the request.
type NoAnswer struct {
	Text   string
	Tries  int    // how often it was sent
	Done   []Item // what earlier requests of the call answered
	Unsure bool   // a part may be applied: what is seen next time may be new
	Err    error
}

func (e *NoAnswer) Error() string { return e.Text + ": " + e.Err.Error() }
func (e *NoAnswer) Unwrap() error { return e.Err }

// Problem says that the service refused the request.
type Problem struct {
	Status     int
	Document   map[string]any // RFC 9457; empty if there was none
	RetryAfter *time.Duration // what the service asked to wait, or nil
	Tries      int            // how often it was sent
	Done       []Item         // what earlier requests of the call answered
	Unsure     bool           // as that of NoAnswer
	where      string
}

func (e *Problem) Error() string {
	text := e.where + ": " + strconv.Itoa(e.Status)
	if len(e.Document) == 0 && (e.Status == 404 || e.Status == 405) {
		text += ": no urlstore answers at this address"
	}
	if title, ok := e.Document["title"].(string); ok {
		text += " " + title
	}
	if detail, ok := e.Document["detail"].(string); ok {
		text += ": " + detail
	}
	return text
}

func (e *Problem) processed() float64 {
	n, _ := e.Document["processed"].(float64)
	return n
}

// applied reports whether the request may have changed the store: the service
// says that it did, or did not say, as a proxy that waits in vain.
func (e *Problem) applied() bool {
	if _, known := e.Document["processed"]; known {
		return e.processed() > 0
	}
	return unknown[e.Status]
}

// outcome is how an exchange went: how many tries, whether a lost one may have
// changed the store before the one that was answered, and that one's status.
type outcome struct {
	tries  int
	lost   bool
	status int
}

// exchange sends a request until it is answered, or patience ends, which began
// at the start. read returns an error for an answer that is not whole.
func (s *Store) exchange(ctx context.Context, method, path string, args url.Values,
	payload any, start time.Time, read func([]byte) error) (outcome, error) {
	var out outcome
	request, err := s.request(method, path, args, payload)
	if err != nil {
		return out, err
	}
	lost := 0
	where := method + " " + s.address + path
	for pauses := 0; ; pauses++ {
		var fault error
		var after time.Duration
		status, header, body, sent, stale, err := s.send(ctx, request)
		out.tries++
		switch {
		case ctx.Err() != nil:
			return out, ctx.Err()
		case err != nil:
			if sent {
				lost++
			}
			fault = &NoAnswer{Text: where, Tries: out.tries, Unsure: lost > 0, Err: err}
			if stale && out.tries == pauses+1 {
				pauses--
				continue
			}
		case status >= 200 && status < 300:
			s.silent.Store(false)
			err := read(body)
			if err == nil {
				// what was new to a lost try is so again, if the answer says so
				out.lost = lost > 0 && header.Get("Idempotency-Status") != "repeated"
				out.status = status
				return out, nil
			}
			lost++
			fault = &NoAnswer{Text: where + ": the answer is not whole", Tries: out.tries,
				Unsure: true, Err: err}
		default:
			p := &Problem{Status: status, Document: document(header, body),
				RetryAfter: retryAfter(header.Get("Retry-After")), Tries: out.tries, where: where}
			if p.applied() {
				lost++
			}
			p.Unsure = lost > 0
			if !retried[status] && p.RetryAfter == nil {
				return out, p
			}
			if p.RetryAfter != nil {
				after = *p.RetryAfter
			}
			fault = p
		}
		wait := after + pause(pauses)
		if time.Since(start)+wait > s.options.Patience {
			return out, fault
		}
		if err == nil {
			s.silent.Store(false)
		} else if !s.silent.Swap(true) {
			s.options.Log.Printf("%v; it is tried again for %v", fault, s.options.Patience)
		}
		if err := sleep(ctx, wait); err != nil {
			return out, err
		}
	}
}

type request struct {
	method, address string
	header          http.Header
	body            []byte
}

func (s *Store) request(method, path string, args url.Values, payload any) (*request, error) {
	r := &request{method: method, address: s.address + path, header: s.header.Clone()}
	if len(args) > 0 {
		r.address += "?" + args.Encode()
	}
	r.header.Set("Accept", "application/json")
	if path == "/urls" {
		r.header.Set("Accept", "application/x-ndjson")
	}
	if payload != nil {
		r.body = encoded(payload)
		r.header.Set("Content-Type", "application/json")
		if s.options.Gzip && len(r.body) >= gzipFrom {
			var packed bytes.Buffer
			w, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
			_, _ = w.Write(r.body)
			_ = w.Close()
			r.body = packed.Bytes()
			r.header.Set("Content-Encoding", "gzip")
		}
	}
	if method == "POST" && (path == "/add" || path == "/claim" ||
		strings.HasPrefix(path, "/mark/") || strings.HasPrefix(path, "/set/")) {
		var key [16]byte
		if _, err := crand.Read(key[:]); err != nil {
			return nil, err
		}
		r.header.Set("Idempotency-Key", `"`+hex.EncodeToString(key[:])+`"`)
	}
	return r, nil
}

// send sends a request once. With an error, sent says whether the service may
// have received it, and stale whether it went over a connection that an earlier
// request had used, and nothing came back: the service may have closed it.
func (s *Store) send(ctx context.Context, r *request) (status int, header http.Header,
	body []byte, sent, stale bool, err error) {
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silent := time.AfterFunc(s.options.Timeout, cancel)
	defer silent.Stop()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(c httptrace.GotConnInfo) { stale = c.Reused },
	})
	q, err := http.NewRequestWithContext(ctx, r.method, r.address, bytes.NewReader(r.body))
	if err != nil {
		return 0, nil, nil, false, false, err
	}
	q.Header = r.header
	// Without GetBody the transport does not send a request again by itself:
	// that an answer was lost has to be known here.
	q.GetBody = nil
	response, err := s.client.Do(q)
	if err != nil {
		if outer.Err() == nil && ctx.Err() != nil {
			return 0, nil, nil, true, false, fmt.Errorf("no answer for %v", s.options.Timeout)
		}
		var op *net.OpError
		return 0, nil, nil, !(errors.As(err, &op) && op.Op == "dial"), stale, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(&patient{response.Body, silent, s.options.Timeout})
	return response.StatusCode, response.Header, body, true, false, err
}

// patient is a reader that puts off a timer while bytes come.
type patient struct {
	io.Reader
	timer *time.Timer
	limit time.Duration
}

func (p *patient) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.timer.Reset(p.limit)
	return n, err
}

// lookUp adds or looks up what next returns, in as many requests as it takes,
// and hands on the answer of each.
func (s *Store) lookUp(ctx context.Context, path string, next func() (string, bool), how Adding,
	each func(*Batch) error) error {
	var urls []string
	index, empty := 0, 64+len(encoded(how.Base))
	size := empty
	flush := func() error {
		batch, err := s.part(ctx, path, urls, index, how)
		index += len(urls)
		urls = urls[:0]
		size = empty
		if err != nil {
			return err
		}
		return each(batch)
	}
	for {
		u, more := next()
		if !more {
			break
		}
		need := len(encoded(u)) + 1
		if len(urls) > 0 && (len(urls) == s.options.Batch || size+need > s.options.Body) {
			if err := flush(); err != nil {
				return err
			}
		}
		urls = append(urls, u)
		size += need
	}
	if len(urls) == 0 {
		return nil
	}
	return flush()
}

func (s *Store) gather(ctx context.Context, path string, urls []string, how Adding) (*Batch, error) {
	batch := &Batch{Items: []Item{}}
	at := 0
	err := s.lookUp(ctx, path, func() (string, bool) {
		if at == len(urls) {
			return "", false
		}
		at++
		return urls[at-1], true
	}, how, func(part *Batch) error {
		batch.join(part)
		return nil
	})
	if err != nil {
		done(err, batch.Items)
		return nil, err
	}
	return batch, nil
}

// done notes in an error what was answered before it.
func done(err error, items []Item) {
	switch e := err.(type) {
	case *Problem:
		e.Done = append(append([]Item{}, items...), e.Done...)
	case *NoAnswer:
		e.Done = append(append([]Item{}, items...), e.Done...)
	}
}

// part answers URLs that fit in one request: those in the cache at once.
func (s *Store) part(ctx context.Context, path string, urls []string, index int, how Adding) (
	*Batch, error) {
	batch := &Batch{}
	var asked []int
	add := func(item Item) {
		if !how.OnlyNew {
			batch.Items = append(batch.Items, item)
		}
	}
	for at, u := range urls {
		// what is in the store may be due, or new to the set
		if how.Older == 0 && how.Set == "" && !how.Times {
			if k, found := s.cache.get(u, how.Base); found {
				item := Item{Index: index + at, ID: &k.id, Status: "seen", URL: k.url}
				if how.Sites {
					item.NewSite = new(bool)
				}
				batch.Seen++
				add(item)
				continue
			}
		}
		if len(encoded(u)) > s.options.Body {
			batch.Errors++
			add(Item{Index: index + at, Status: "invalid", Reason: "length"})
			continue
		}
		asked = append(asked, at)
	}
	var err error
	if len(asked) > 0 {
		err = s.ask(ctx, path, urls, asked, index, how, nil, batch)
	}
	sort.SliceStable(batch.Items, func(a, b int) bool {
		return batch.Items[a].Index < batch.Items[b].Index
	})
	if err != nil {
		done(err, batch.Items)
		return nil, err
	}
	return batch, nil
}

type answered struct {
	Results []struct {
		Item
		Index *int `json:"index"`
	} `json:"results"`
	New    int     `json:"new"`
	Due    int     `json:"due"`
	Seen   int     `json:"seen"`
	Unseen int     `json:"unseen"`
	Errors int     `json:"errors"`
	NextID *uint64 `json:"next_id"`
	Epoch  *uint64 `json:"epoch"`

	// of a router, by shard
	NextIDs map[uint64]*uint64 `json:"next_ids"`
	Epochs  map[uint64]*uint64 `json:"epochs"`
}

// shard is what is known of one; a store alone is shard 0.
type shard struct {
	epoch  *uint64
	nextID uint64 // at least so many ids were given
}

// shards is what an answer says of its shards; the top bits of an id name one.
func (a *answered) shards() map[uint64]shard {
	found := map[uint64]shard{}
	for number, nextID := range a.NextIDs {
		found[number] = shard{epoch: a.Epochs[number], nextID: value(nextID)}
	}
	if a.NextIDs == nil {
		nextID := value(a.NextID)
		for _, r := range a.Results {
			if r.ID != nil && *r.ID > nextID {
				nextID = *r.ID
			}
		}
		found[nextID>>40] = shard{a.Epoch, nextID}
	}
	for _, r := range a.Results {
		if r.ID != nil {
			if f, ok := found[*r.ID>>40]; ok && *r.ID >= f.nextID {
				found[*r.ID>>40] = shard{f.epoch, *r.ID + 1}
			}
		}
	}
	return found
}

// resolved is a URL to fetch, where the service has named none.
func resolved(link, base string) string {
	if b, err := url.Parse(base); err == nil {
		if u, err := b.Parse(link); err == nil {
			return u.String()
		}
	}
	return link
}

// given reports whether an id was given before; ids of another epoch say
// nothing, and a filter has none.
func given(id *uint64, before, found map[uint64]shard) bool {
	if id == nil {
		return false
	}
	b, known := before[*id>>40]
	f, answered := found[*id>>40]
	return known && answered && *id < b.nextID && same(b.epoch, f.epoch)
}

func value(n *uint64) uint64 {
	if n == nil {
		return 0
	}
	return *n
}

// ask adds to the batch what the service answers for the URLs at `asked`. It
// asks again for the items whose outcome is unknown: what is seen then may be
// of the first request. lostAt: it may be of a whole, of which this is a half,
// whose try then was lost.
func (s *Store) ask(ctx context.Context, path string, urls []string, asked []int, index int,
	how Adding, lostAt map[uint64]shard, batch *Batch) error {
	before := map[uint64]shard{}
	if how.Older == 0 && how.Set == "" { // else no id shows what a lost try changed
		s.lock.Lock()
		for number, shard := range s.shards {
			before[number] = shard
		}
		s.lock.Unlock()
	}
	if lostAt != nil {
		before = lostAt
	}
	start := time.Now()
	adds, onlyNew := path == "/add", how.OnlyNew
	for rounds := 0; ; rounds++ {
		answer, out, err := s.asked(ctx, path, urls, asked, how, start)
		if err != nil && rounds > 0 && ctx.Err() == nil {
			return nil // the items are in the batch, and unsure
		}
		if p, ok := err.(*Problem); ok && p.Status == http.StatusRequestEntityTooLarge &&
			p.processed() == 0 && len(asked) > 1 {
			half := len(asked) / 2
			if p.Unsure {
				lostAt = before
			}
			if err := s.ask(ctx, path, urls, asked[:half], index, how, lostAt, batch); err != nil {
				return err
			}
			return s.ask(ctx, path, urls, asked[half:], index, how, lostAt, batch)
		}
		if err != nil {
			return err
		}
		lost := adds && (out.lost || rounds > 0 || lostAt != nil)
		found := answer.shards()
		s.learn(found)
		if rounds > 0 {
			batch.drop(index, asked)
		}
		part := &Batch{New: answer.New, Due: answer.Due, Seen: answer.Seen, Unseen: answer.Unseen,
			Errors: answer.Errors, NextID: answer.NextID, Epoch: answer.Epoch, Tries: out.tries}
		var unknown []int
		for n, r := range answer.Results {
			if r.Index != nil {
				n = *r.Index
			}
			item := r.Item
			item.Index = index + asked[n]
			switch item.Status {
			case "seen":
				item.Unsure = lost && !given(item.ID, before, found)
			case "unavailable":
				item.Unsure = lost || adds && strings.HasPrefix(item.Reason, "unknown:")
				if item.Unsure {
					item.URL = resolved(urls[asked[n]], how.Base)
					unknown = append(unknown, asked[n])
				}
			}
			if item.ID != nil && item.URL != "" && (item.Status == "new" || item.Status == "seen") {
				s.cache.put(urls[asked[n]], how.Base, *item.ID, item.URL)
			}
			if rounds == 0 || !onlyNew || item.Mine() || item.Unsure {
				part.Items = append(part.Items, item)
			}
		}
		batch.join(part)
		wait := pause(rounds)
		if len(unknown) == 0 || time.Since(start)+wait > s.options.Patience {
			return nil
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
		asked, how.OnlyNew = unknown, false // which leaves out what is unsure
	}
}

// asked is one request of ask, as often as it takes since the start.
func (s *Store) asked(ctx context.Context, path string, urls []string, asked []int, how Adding,
	start time.Time) (*answered, outcome, error) {
	payload := map[string]any{"urls": pick(urls, asked)}
	if how.Base != "" {
		payload["base"] = how.Base
	}
	var answer answered
	out, err := s.exchange(ctx, "POST", path, how.args(), payload, start, func(body []byte) error {
		answer = answered{}
		if err := json.Unmarshal(body, &answer); err != nil {
			return err
		}
		if answer.Results == nil || !how.OnlyNew && len(answer.Results) != len(asked) {
			return fmt.Errorf("%d results for %d URLs", len(answer.Results), len(asked))
		}
		for n, r := range answer.Results {
			if r.Index != nil {
				n = *r.Index
			}
			if n < 0 || n >= len(asked) {
				return fmt.Errorf("index %d of %d URLs", n, len(asked))
			}
		}
		return nil
	})
	return &answer, out, err
}

// learn remembers how many ids were given, at least. The cache does not
// outlive an epoch of any shard.
func (s *Store) learn(found map[uint64]shard) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for number, f := range found {
		before, known := s.shards[number]
		switch {
		case known && !same(before.epoch, f.epoch):
			s.cache.clear()
		case known && before.nextID > f.nextID:
			f.nextID = before.nextID
		}
		s.shards[number] = f
	}
}

// results posts items and returns one result for each, and whether a lost try
// may have changed the store before.
func results[T any](ctx context.Context, s *Store, path string, args url.Values, payload any,
	count int) ([]T, bool, error) {
	var answer struct {
		Results []T `json:"results"`
	}
	out, err := s.exchange(ctx, "POST", path, args, payload, time.Now(), func(body []byte) error {
		answer.Results = nil
		if err := json.Unmarshal(body, &answer); err != nil {
			return err
		}
		if len(answer.Results) != count {
			return fmt.Errorf("%d results for %d items", len(answer.Results), count)
		}
		return nil
	})
	return answer.Results, out.lost, err
}

// page returns the next entries of the feed, and whether there are more. It
// sets in args where to go on.
func (s *Store) page(ctx context.Context, args url.Values) (entries []Entry, more bool, err error) {
	var name, place string
	_, err = s.exchange(ctx, "GET", "/urls", args, nil, time.Now(), func(body []byte) error {
		entries = nil
		lines := json.NewDecoder(bytes.NewReader(body))
		for {
			var line struct {
				Entry
				Next        *uint64  `json:"next"`
				Cursor      string   `json:"cursor"` // of a router, and with it:
				More        bool     `json:"more"`
				Unavailable []uint64 `json:"unavailable"`
			}
			if err := lines.Decode(&line); err == io.EOF {
				return errors.New("the last line is missing")
			} else if err != nil {
				return err
			}
			if line.Next != nil {
				name, place = "from", strconv.FormatUint(*line.Next, 10)
				more = place != args.Get("from")
				return nil
			}
			if line.Cursor != "" {
				if len(line.Unavailable) > 0 && len(entries) == 0 {
					return fmt.Errorf("shards that do not answer: %v", line.Unavailable)
				}
				name, place, more = "cursor", line.Cursor, line.More
				return nil
			}
			entries = append(entries, line.Entry)
		}
	})
	if err == nil {
		args.Del("from")
		args.Set(name, place)
	}
	return entries, more, err
}

// view is a copy of what a Store talks with.
func (s *Store) view() *Store {
	return &Store{address: s.address, options: s.options, header: s.header, client: s.client,
		cache: newCache(0), shards: map[uint64]shard{}}
}

func pick(urls []string, at []int) []string {
	picked := make([]string, len(at))
	for n, i := range at {
		picked[n] = urls[i]
	}
	return picked
}

// encoded is the JSON of a value, its strings as they are; bytes that are not
// UTF-8 become U+FFFD.
func encoded(value any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic(err) // what is sent can be encoded
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// document is the problem document of a refusal; empty if there is none.
func document(header http.Header, body []byte) map[string]any {
	d := map[string]any{}
	if strings.Contains(header.Get("Content-Type"), "json") && json.Unmarshal(body, &d) != nil {
		return map[string]any{}
	}
	return d
}

// retryAfter reads a number of seconds or an HTTP date.
func retryAfter(value string) *time.Duration {
	if value == "" {
		return nil
	}
	wait := time.Duration(0)
	if n, err := strconv.ParseUint(value, 10, 31); err == nil {
		wait = time.Duration(n) * time.Second
	} else if date, err := http.ParseTime(value); err != nil {
		return nil
	} else if wait = time.Until(date); wait < 0 {
		wait = 0
	}
	return &wait
}

// pause is how long to wait before the next try, after so many pauses.
func pause(pauses int) time.Duration {
	if pauses > 20 {
		pauses = 20
	}
	most := backoff << pauses
	if most > backoffMax {
		most = backoffMax
	}
	return most/2 + time.Duration(rand.Int63n(int64(most/2)))
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
