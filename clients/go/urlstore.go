// Package urlstore is the client of a URL store: is this URL new or seen, and
// what is its id?
//
//	store, err := urlstore.New("http://127.0.0.1:8080", urlstore.Options{})
//	batch, err := store.AddAll(ctx, links, urlstore.Adding{Base: page})
//
// A Store is safe for use by many goroutines. The rules of retrying are in
// exchange.go.
package urlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options of a store; a zero value stands for the default.
type Options struct {
	// Timeout is how long a try may take until the service answers, and a
	// connection be silent (30 s).
	Timeout time.Duration

	// Patience is how long a request is tried again (50 s; below 0: not at
	// all). The service remembers an Idempotency-Key for 5 minutes: stay below.
	Patience time.Duration

	// Batch is how many items a request has, at most 10,000 (1,000).
	Batch int

	// Body is how many bytes a request has, before compression (1 MiB).
	Body int

	// Gzip compresses bodies of 1 KiB and more.
	Gzip bool

	// Cache is how many URLs are kept here with their id and canonical form
	// (none): a link found among them is answered as "seen" without a
	// request. Entries leave when an id is deleted through this Store or the
	// epoch changes; a delete by another client is not noticed.
	Cache int

	// Header is sent with each request.
	Header http.Header

	// Log gets a line when the service begins not to answer; nil for the
	// standard logger.
	Log *log.Logger

	// Transport is for proxies and TLS; nil for one of the store's own.
	Transport http.RoundTripper
}

// Store is a store at an address such as http://127.0.0.1:8080/urls.
type Store struct {
	address string
	options Options
	header  http.Header
	client  *http.Client
	cache   *cache

	silent atomic.Bool // no answer, and a line in the log has said so
	lock   sync.Mutex
	shards map[uint64]shard
}

// Item is the answer for one URL. Its status is new, due, seen, unseen, invalid,
// rejected, refused (erased), full or unavailable.
type Item struct {
	Index   int     `json:"index"` // its position in the input, from 0
	ID      *uint64 `json:"id"`    // nil where there is none
	Status  string  `json:"status"`
	URL     string  `json:"url"` // canonical; "" where it was refused
	Reason  string  `json:"reason"`
	NewSite *bool   `json:"new_site"` // with Adding.Sites
	Time    *int64  `json:"time"`     // of its last claim, with Times
	Stored  string  `json:"stored"`   // with Adding.Set: the status without it

	// Unsure is set if Status is "seen" or "unavailable", and an earlier try
	// got no answer or a shard did not answer: the call may have added the
	// URL itself, claimed it with Adding.Older, or put it into Adding.Set.
	Unsure bool `json:"unsure"`
}

// Mine reports whether the call added or claimed the URL: fetch it.
func (i Item) Mine() bool {
	return i.Status == "new" || i.Status == "due"
}

// Batch has the items of a call, in the order of its input, and their counts.
type Batch struct {
	Items  []Item  `json:"items"`
	New    int     `json:"new"`
	Due    int     `json:"due"`
	Seen   int     `json:"seen"`
	Unseen int     `json:"unseen"`
	Errors int     `json:"errors"`
	NextID *uint64 `json:"next_id"` // of ids when the call began; nil at a router
	Epoch  *uint64 `json:"epoch"`   // ids of another epoch are void; nil at a router
	Tries  int     `json:"tries"`   // requests sent, retries included
}

// ToFetch returns the items that are the caller's to fetch, and those that
// may be.
func (b *Batch) ToFetch() []Item {
	var items []Item
	for _, item := range b.Items {
		if item.Mine() || item.Unsure {
			items = append(items, item)
		}
	}
	return items
}

// drop takes out the items at `asked`, which were refused, to be asked again.
func (b *Batch) drop(index int, asked []int) {
	again := map[int]bool{}
	for _, at := range asked {
		again[index+at] = true
	}
	kept := b.Items[:0]
	for _, item := range b.Items {
		if !again[item.Index] {
			kept = append(kept, item)
		}
	}
	b.Items = kept
	b.Errors -= len(asked)
}

func (b *Batch) join(part *Batch) {
	b.Items = append(b.Items, part.Items...)
	b.New += part.New
	b.Due += part.Due
	b.Seen += part.Seen
	b.Unseen += part.Unseen
	b.Errors += part.Errors
	b.Tries += part.Tries
	if b.NextID == nil {
		b.NextID = part.NextID
	}
	if part.Epoch != nil {
		b.Epoch = part.Epoch
	}
}

// Found is the answer for one id: Status is ok, unknown or deleted.
type Found struct {
	ID     uint64 `json:"id"`
	Status string `json:"status"`
	URL    string `json:"url"`
	Time   *int64 `json:"time"`
}

// Marked is the answer for one item of Mark, Unmark, Claim, PutIn and TakeOut:
// Status is set, clear, claimed, in, was, out, unseen, unknown, deleted, or what
// else the service answers.
type Marked struct {
	Index  int     `json:"index"`
	ID     *uint64 `json:"id"`
	Status string  `json:"status"`
	URL    string  `json:"url"`
	Reason string  `json:"reason"`

	// Unsure is set if Status is "was" or "unavailable", and the call may have
	// put the item into the set itself.
	Unsure bool `json:"unsure"`
}

// Entry is one of the feed; URL is "" where the id is deleted.
type Entry struct {
	ID   uint64 `json:"id"`
	URL  string `json:"url"`
	Time *int64 `json:"time"`
}

// Progress is where a stream is, after each of its requests.
type Progress struct {
	Done    int     `json:"done"`
	New     int     `json:"new"`
	Seen    int     `json:"seen"`
	Errors  int     `json:"errors"`
	Seconds float64 `json:"seconds"`
}

// Adding says how URLs are added or looked up.
type Adding struct {
	Base    string        // URL of the page: links are given as they stand in it
	OnlyNew bool          // leaves out all answers but new and due
	Older   time.Duration // what was claimed longer ago is due
	Set     string        // what is not in this set is new, stored or not
	Sites   bool          // says for each whether it is the first of its site
	Times   bool          // gives the time of the last claim
}

func (a Adding) args() url.Values {
	args := url.Values{}
	if a.OnlyNew {
		args.Set("only", "new")
	}
	older(args, a.Older)
	if a.Set != "" {
		args.Set("set", a.Set)
	}
	flag(args, "sites", a.Sites)
	flag(args, "times", a.Times)
	return args
}

// New returns a client; it does not connect yet.
func New(address string, options Options) (*Store, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("address %q: an http or https URL is needed", address)
	}
	if options.Batch < 0 || options.Batch > 10000 {
		return nil, fmt.Errorf("batch %d: 1 to 10000 items are allowed", options.Batch)
	}
	if options.Batch == 0 {
		options.Batch = 1000
	}
	if options.Body <= 0 {
		options.Body = 1 << 20
	}
	if options.Timeout <= 0 {
		options.Timeout = 30 * time.Second
	}
	if options.Patience == 0 {
		options.Patience = 50 * time.Second
	}
	header := http.Header{"User-Agent": {"urlstore-go/1.0"}}
	if u.User != nil {
		password, _ := u.User.Password()
		r := http.Request{Header: header}
		r.SetBasicAuth(u.User.Username(), password)
	}
	for name, values := range options.Header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	if options.Log == nil {
		options.Log = log.Default()
	}
	if options.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = 64
		t.DisableCompression = true
		options.Transport = t
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return &Store{
		address: strings.TrimRight(u.String(), "/"),
		options: options,
		header:  header,
		cache:   newCache(options.Cache),
		shards:  map[uint64]shard{},
		client: &http.Client{
			Transport: options.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		},
	}, nil
}

// Close closes the idle connections; the Store can still be used.
func (s *Store) Close() {
	s.client.CloseIdleConnections()
}

// Add says whether a URL is new; it is added if so.
func (s *Store) Add(ctx context.Context, u string, how Adding) (Item, error) {
	return first(s.AddAll(ctx, []string{u}, how))
}

// AddAll adds what is new: one answer for each URL, in their order.
func (s *Store) AddAll(ctx context.Context, urls []string, how Adding) (*Batch, error) {
	return s.gather(ctx, "/add", urls, how)
}

// AddStream is AddAll for inputs of any length. It adds what next returns
// until that returns false, and calls each for every item as requests are
// answered; an error of each ends it. report, which may be nil, is called
// after each request.
func (s *Store) AddStream(ctx context.Context, next func() (string, bool), how Adding,
	each func(Item) error, report func(Progress)) error {
	start := time.Now()
	var sum Progress
	return s.lookUp(ctx, "/add", next, how, func(part *Batch) error {
		sum.Done += part.New + part.Due + part.Seen + part.Unseen + part.Errors
		sum.New += part.New + part.Due
		sum.Seen += part.Seen
		sum.Errors += part.Errors
		sum.Seconds = time.Since(start).Seconds()
		if report != nil {
			report(sum)
		}
		for _, item := range part.Items {
			if err := each(item); err != nil {
				return err
			}
		}
		return nil
	})
}

// Seen says whether a URL is known. It adds nothing and claims nothing.
func (s *Store) Seen(ctx context.Context, u string, how Adding) (Item, error) {
	return first(s.SeenAll(ctx, []string{u}, how))
}

// SeenAll is Seen for many.
func (s *Store) SeenAll(ctx context.Context, urls []string, how Adding) (*Batch, error) {
	how.OnlyNew, how.Sites = false, false
	return s.gather(ctx, "/seen", urls, how)
}

// URL returns the URL of an id. Problem 404: not given yet; 410: deleted.
func (s *Store) URL(ctx context.Context, id uint64) (string, error) {
	var answer struct {
		URL *string `json:"url"`
	}
	_, err := s.exchange(ctx, "GET", "/url/"+strconv.FormatUint(id, 10), nil, nil,
		time.Now(), func(body []byte) error {
			if err := json.Unmarshal(body, &answer); err != nil {
				return err
			}
			if answer.URL == nil {
				return fmt.Errorf("no url")
			}
			return nil
		})
	if err != nil {
		return "", err
	}
	return *answer.URL, nil
}

// URLs returns the URLs of many ids, in their order.
func (s *Store) URLs(ctx context.Context, ids []uint64) ([]Found, error) {
	var found []Found
	for len(ids) > 0 {
		n := len(ids)
		if n > s.options.Batch {
			n = s.options.Batch
		}
		part, _, err := results[Found](ctx, s, "/url", nil, map[string][]uint64{"ids": ids[:n]}, n)
		if err != nil {
			return found, err
		}
		found = append(found, part...)
		ids = ids[n:]
	}
	return found, nil
}

// Delete forgets the URL of an id. It empties the cache of this Store.
func (s *Store) Delete(ctx context.Context, id uint64) error {
	s.cache.clear()
	_, err := s.exchange(ctx, "DELETE", "/url/"+strconv.FormatUint(id, 10), nil, nil,
		time.Now(), func([]byte) error { return nil })
	if p, ok := err.(*Problem); ok && p.Status == http.StatusGone {
		return nil
	}
	return err
}

// MakeSet makes a set, unless it is there. It reports whether this call made
// it, or may have (a lost try).
func (s *Store) MakeSet(ctx context.Context, name string) (bool, error) {
	out, err := s.exchange(ctx, "PUT", "/set/"+url.PathEscape(name), nil, nil, time.Now(),
		func([]byte) error { return nil })
	return out.status == http.StatusCreated || out.lost, err
}

// DropSet drops a set, if it is there. Its URLs stay in the store.
func (s *Store) DropSet(ctx context.Context, name string) error {
	_, err := s.exchange(ctx, "DELETE", "/set/"+url.PathEscape(name), nil, nil, time.Now(),
		func([]byte) error { return nil })
	if p, ok := err.(*Problem); ok && p.Status == http.StatusNotFound &&
		p.Document["reason"] == "set" {
		return nil
	}
	return err
}

// PutIn puts into a set what the store has: "in" is answered to one caller of
// all, the others get "was". An item is an id (uint64, int) or a URL (string).
func (s *Store) PutIn(ctx context.Context, name string, items ...any) ([]Marked, error) {
	return s.mark(ctx, "/set/"+url.PathEscape(name), nil, items)
}

// TakeOut takes out of a set: "out", or "unseen".
func (s *Store) TakeOut(ctx context.Context, name string, items ...any) ([]Marked, error) {
	return s.mark(ctx, "/set/"+url.PathEscape(name), url.Values{"remove": {"1"}}, items)
}

// Mark sets a mark. An item is an id (uint64, int) or a URL (string).
func (s *Store) Mark(ctx context.Context, name string, items ...any) ([]Marked, error) {
	return s.mark(ctx, "/mark/"+url.PathEscape(name), nil, items)
}

// Unmark clears a mark.
func (s *Store) Unmark(ctx context.Context, name string, items ...any) ([]Marked, error) {
	return s.mark(ctx, "/mark/"+url.PathEscape(name), url.Values{"clear": {"1"}}, items)
}

// Claim claims items now.
func (s *Store) Claim(ctx context.Context, items ...any) ([]Marked, error) {
	return s.mark(ctx, "/claim", nil, items)
}

// ClaimAt claims items at a time.
func (s *Store) ClaimAt(ctx context.Context, at time.Time, items ...any) ([]Marked, error) {
	args := url.Values{"at": {strconv.FormatInt(at.Unix(), 10)}}
	return s.mark(ctx, "/claim", args, items)
}

// Unclaim makes items due at once.
func (s *Store) Unclaim(ctx context.Context, items ...any) ([]Marked, error) {
	return s.mark(ctx, "/claim", url.Values{"clear": {"1"}}, items)
}

func (s *Store) mark(ctx context.Context, path string, args url.Values, items []any) ([]Marked, error) {
	var marked []Marked
	for len(items) > 0 {
		n, size := 0, 64
		for n < len(items) && n < s.options.Batch {
			size += len(encoded(items[n])) + 1
			if n > 0 && size > s.options.Body {
				break
			}
			n++
		}
		part, lost, err := results[Marked](ctx, s, path, args, items[:n], n)
		if err != nil {
			return marked, err
		}
		for i := range part {
			part[i].Index = len(marked) + i
			part[i].Unsure = lost && part[i].Status == "was" ||
				part[i].Status == "unavailable" &&
					(lost || strings.HasPrefix(part[i].Reason, "unknown:"))
		}
		marked = append(marked, part...)
		items = items[n:]
	}
	return marked, nil
}

// Feed says which URLs a feed has.
type Feed struct {
	From     uint64        // the first id
	Limit    int           // entries in a request (1,000)
	Site     string        // only URLs of this site
	Prefix   string        // only URLs that begin so
	Mark     string        // only URLs with this mark, or without it: "!visited"
	Set      string        // the same of a set
	Older    time.Duration // only URLs last claimed longer ago
	Times    bool          // gives the time of the last claim
	Deleted  bool          // deleted ids as well
	NewSites bool          // only the first URL of each site
	Follow   time.Duration // at the end, asks again so often, until ctx ends
}

// Feed calls each for all URLs from an id on, in the order of ids; an error of
// each ends it.
func (s *Store) Feed(ctx context.Context, what Feed, each func(Entry) error) error {
	args := url.Values{}
	if what.Limit == 0 {
		what.Limit = 1000
	}
	args.Set("limit", strconv.Itoa(what.Limit))
	for name, value := range map[string]string{"site": what.Site, "prefix": what.Prefix,
		"mark": what.Mark, "set": what.Set} {
		if value != "" {
			args.Set(name, value)
		}
	}
	older(args, what.Older)
	flag(args, "times", what.Times)
	flag(args, "deleted", what.Deleted)
	flag(args, "new_sites", what.NewSites)
	args.Set("from", strconv.FormatUint(what.From, 10))
	for {
		entries, more, err := s.page(ctx, args)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if err := each(entry); err != nil {
				return err
			}
		}
		if !more {
			if what.Follow == 0 {
				return nil
			}
			if err := sleep(ctx, what.Follow); err != nil {
				return err
			}
		}
	}
}

// Get is any other GET that answers JSON: Get(ctx, "/normalize", ...).
func (s *Store) Get(ctx context.Context, path string, args url.Values) (map[string]any, error) {
	var answer map[string]any
	_, err := s.exchange(ctx, "GET", path, args, nil, time.Now(), func(body []byte) error {
		return json.Unmarshal(body, &answer)
	})
	return answer, err
}

// Health returns the state of the service; it is asked once.
func (s *Store) Health(ctx context.Context, write bool) (map[string]any, error) {
	args := url.Values{}
	flag(args, "write", write)
	once := s.view()
	once.options.Patience = -1
	answer, err := once.Get(ctx, "/health", args)
	if p, ok := err.(*Problem); ok && p.Status == http.StatusServiceUnavailable &&
		len(p.Document) > 0 {
		return p.Document, nil
	}
	return answer, err
}

func first(batch *Batch, err error) (Item, error) {
	if err != nil {
		return Item{}, err
	}
	return batch.Items[0], nil
}

func older(args url.Values, d time.Duration) {
	if d > 0 {
		args.Set("older", strconv.FormatInt(int64(d/time.Second), 10)+"s")
	}
}

func flag(args url.Values, name string, value bool) {
	if value {
		args.Set(name, "1")
	}
}
