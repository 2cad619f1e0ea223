package urlstore

// Does what clients/cases.json says: a job a line in, its results out.
//
//	FILE=JOBS RESULTS=FILE go test -run TestCases

import (
	"bufio"
	"context"
	"encoding/json"
	"net/url"
	"os"
	"testing"
	"time"
)

type call struct {
	Do      string
	URL     string
	URLs    []string
	Base    string
	OnlyNew bool `json:"only_new"`
	Older   any
	Set     string
	Sites   bool
	Times   bool
	ID      uint64
	IDs     []uint64
	Name    string
	Items   []any
	At      *int64
	Clear   bool
	From    uint64
	Limit   int
	Mark    string
	Site    string
	Path    string
	Args    map[string]string
	Write   bool
	Seconds float64
}

type job struct {
	Name    string
	Address string
	Options struct {
		Timeout, Patience *float64
		Batch, Body       int
		Gzip              bool
		Cache             int
	}
	Calls []call
}

// As a batch is printed: with the ids to fetch.
type batch struct {
	*Batch
	ToFetch []*uint64 `json:"to_fetch"`
}

// duration reads what stands in the table; the service reads 30d itself.
func (c call) duration() time.Duration {
	switch older := c.Older.(type) {
	case float64:
		return time.Duration(older) * time.Second
	case string:
		return map[string]time.Duration{"30d": 30 * 24 * time.Hour, "1h": time.Hour,
			"1d": 24 * time.Hour}[older]
	}
	return 0
}

func (c call) adding() Adding {
	return Adding{Base: c.Base, OnlyNew: c.OnlyNew, Older: c.duration(), Set: c.Set,
		Sites: c.Sites, Times: c.Times}
}

func (c call) make(ctx context.Context, s *Store) (any, error) {
	switch c.Do {
	case "pause":
		time.Sleep(seconds(c.Seconds))
		return nil, nil
	case "add":
		return s.Add(ctx, c.URL, c.adding())
	case "seen":
		return s.Seen(ctx, c.URL, c.adding())
	case "add_all":
		return whole(s.AddAll(ctx, c.URLs, c.adding()))
	case "seen_all":
		return whole(s.SeenAll(ctx, c.URLs, c.adding()))
	case "add_stream":
		at, items, steps := 0, []Item{}, []Progress{}
		err := s.AddStream(ctx, func() (string, bool) {
			if at++; at > len(c.URLs) {
				return "", false
			}
			return c.URLs[at-1], true
		}, c.adding(), func(item Item) error {
			items = append(items, item)
			return nil
		}, func(p Progress) { steps = append(steps, p) })
		return map[string]any{"items": items, "progress": steps}, err
	case "url":
		return s.URL(ctx, c.ID)
	case "urls":
		found, err := s.URLs(ctx, c.IDs)
		return append([]Found{}, found...), err
	case "delete":
		return nil, s.Delete(ctx, c.ID)
	case "make_set":
		return s.MakeSet(ctx, c.Name)
	case "drop_set":
		return nil, s.DropSet(ctx, c.Name)
	case "mark", "unmark", "claim", "put_in", "take_out":
		marked, err := c.marked(ctx, s)
		return append([]Marked{}, marked...), err
	case "feed":
		entries := []Entry{}
		err := s.Feed(ctx, Feed{From: c.From, Limit: c.Limit, Mark: c.Mark, Set: c.Set, Site: c.Site},
			func(e Entry) error {
				entries = append(entries, e)
				return nil
			})
		return entries, err
	case "get":
		args := url.Values{}
		for name, value := range c.Args {
			args.Set(name, value)
		}
		return s.Get(ctx, c.Path, args)
	case "health":
		return s.Health(ctx, c.Write)
	}
	panic("no call " + c.Do)
}

func (c call) marked(ctx context.Context, s *Store) ([]Marked, error) {
	for i, item := range c.Items {
		if n, ok := item.(float64); ok {
			c.Items[i] = uint64(n)
		}
	}
	switch {
	case c.Do == "mark":
		return s.Mark(ctx, c.Name, c.Items...)
	case c.Do == "unmark":
		return s.Unmark(ctx, c.Name, c.Items...)
	case c.Do == "put_in":
		return s.PutIn(ctx, c.Name, c.Items...)
	case c.Do == "take_out":
		return s.TakeOut(ctx, c.Name, c.Items...)
	case c.Clear:
		return s.Unclaim(ctx, c.Items...)
	case c.At != nil:
		return s.ClaimAt(ctx, time.Unix(*c.At, 0), c.Items...)
	}
	return s.Claim(ctx, c.Items...)
}

func whole(b *Batch, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	w := batch{b, []*uint64{}}
	for _, item := range b.ToFetch() {
		w.ToFetch = append(w.ToFetch, item.ID)
	}
	return w, nil
}

func seconds(n float64) time.Duration {
	return time.Duration(n * float64(time.Second))
}

func fault(err error) any {
	e := map[string]any{"text": err.Error()}
	switch f := err.(type) {
	case *Problem:
		e["kind"], e["status"], e["document"] = "problem", f.Status, f.Document
		e["tries"], e["done"], e["unsure"] = f.Tries, append([]Item{}, f.Done...), f.Unsure
		if f.RetryAfter != nil {
			e["retry_after"] = f.RetryAfter.Seconds()
		}
	case *NoAnswer:
		e["kind"], e["tries"], e["done"] = "no-answer", f.Tries, append([]Item{}, f.Done...)
		e["unsure"] = f.Unsure
	default:
		e["kind"] = err.Error()
	}
	return map[string]any{"error": e}
}

func (j job) run(t *testing.T) []any {
	o := Options{Batch: j.Options.Batch, Body: j.Options.Body, Gzip: j.Options.Gzip,
		Cache: j.Options.Cache}
	if j.Options.Timeout != nil {
		o.Timeout = seconds(*j.Options.Timeout)
	}
	if j.Options.Patience != nil {
		if o.Patience = seconds(*j.Options.Patience); o.Patience == 0 {
			o.Patience = -1
		}
	}
	s, err := New(j.Address, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	results := []any{}
	for _, c := range j.Calls {
		result, err := c.make(context.Background(), s)
		if err != nil {
			result = fault(err)
		}
		results = append(results, plain(result))
	}
	return results
}

// plain is a result as JSON, with null for what Go shows as "".
func plain(result any) any {
	text, err := json.Marshal(result)
	if err != nil {
		panic(err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		panic(err)
	}
	return nulls(value)
}

func nulls(value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = nulls(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = nulls(v[name])
		}
	case string:
		if v == "" {
			return nil
		}
	}
	return value
}

func TestCases(t *testing.T) {
	file, err := os.Open(os.Getenv("FILE"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out, err := os.Create(os.Getenv("RESULTS"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	lines := bufio.NewReader(file)
	for {
		var j job
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		if err := json.Unmarshal(line, &j); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		results := j.run(t)
		if err := json.NewEncoder(out).Encode(map[string]any{"name": j.Name,
			"results": results, "seconds": time.Since(start).Seconds()}); err != nil {
			t.Fatal(err)
		}
	}
}
