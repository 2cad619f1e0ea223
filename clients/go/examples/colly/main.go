//go:build colly

// A crawler on Colly that follows every link and shares what it has seen:
//
//	go run -tags colly ./examples/colly STORE START [PROXY]
//
// Colly's own memory of visited URLs is off: the store is it. A page is marked
// when its links are stored; a crawler begins with what has no mark.
package main

import (
	"context"
	"log"
	"os"

	"github.com/gocolly/colly/v2"

	"urlstore"
)

type crawler struct {
	store *urlstore.Store
	colly *colly.Collector
}

// fetch queues a page, whose id goes with it.
func (c *crawler) fetch(id *uint64, url string) {
	page := colly.NewContext()
	if id != nil {
		page.Put("id", *id)
	}
	if err := c.colly.Request("GET", url, nil, page, nil); err != nil {
		log.Print(url, ": ", err)
	}
}

// links adds all links of a page in one request, and queues the new ones. Its
// fault keeps the page without a mark.
func (c *crawler) links(e *colly.HTMLElement) {
	links := e.ChildAttrs("a[href]", "href")
	batch, err := c.store.AddAll(context.Background(), links,
		urlstore.Adding{Base: e.Request.URL.String()})
	if err != nil {
		log.Print(e.Request.URL, " comes back: ", err)
		e.Request.Ctx.Put("failed", true)
		return
	}
	for _, item := range batch.ToFetch() {
		c.fetch(item.ID, e.Request.AbsoluteURL(links[item.Index]))
	}
}

// done marks a page that had no fault.
func (c *crawler) done(r *colly.Response) {
	id, ok := r.Ctx.GetAny("id").(uint64)
	if !ok || r.Ctx.GetAny("failed") != nil {
		return
	}
	if _, err := c.store.Mark(context.Background(), "visited", id); err != nil {
		log.Print(r.Request.URL, " comes back: ", err)
	}
}

func main() {
	store, err := urlstore.New(os.Args[1], urlstore.Options{Cache: 100000})
	if err != nil {
		log.Fatal(err)
	}
	c := &crawler{store, colly.NewCollector(colly.Async(true), colly.AllowURLRevisit())}
	if len(os.Args) > 3 {
		if err := c.colly.SetProxy(os.Args[3]); err != nil {
			log.Fatal(err)
		}
	}
	c.colly.OnHTML("html", c.links)
	c.colly.OnScraped(c.done)
	ctx := context.Background()
	if _, err := store.Add(ctx, os.Args[2], urlstore.Adding{}); err != nil {
		log.Fatal(err)
	}
	err = store.Feed(ctx, urlstore.Feed{Mark: "!visited"}, func(e urlstore.Entry) error {
		c.fetch(&e.ID, e.URL)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	c.colly.Wait()
}
