// The main calls:
//
//	go run ./examples/tour http://127.0.0.1:8080
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"urlstore"
)

func show(item urlstore.Item) {
	id, text := "-", item.URL
	if item.ID != nil {
		id = fmt.Sprint(*item.ID)
	}
	if text == "" {
		text = item.Reason
	}
	fmt.Printf("%s\t%s\t%s\n", id, item.Status, text)
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func tour(ctx context.Context, store *urlstore.Store) {
	page := "http://example.com/shop/list.html"
	links := []string{"item?id=7", "/about.html",
		"HTTP://WWW.Example.com/about.html#team", "ftp://example.com/"}

	// Is this URL new?  It is added if so.
	show(must(store.Add(ctx, page, urlstore.Adding{})))

	// All links of a page, as they stand in it; one answer for each.
	batch := must(store.AddAll(ctx, links, urlstore.Adding{Base: page}))
	for _, item := range batch.Items {
		show(item)
	}

	// What this caller is to fetch.
	queue := []string{}
	for _, item := range batch.ToFetch() {
		queue = append(queue, item.URL)
	}
	fmt.Println(len(queue))

	// Is it known?  Adds nothing.
	show(must(store.Seen(ctx, "http://example.com/shop/./item?id=7", urlstore.Adding{})))
	show(must(store.Seen(ctx, "http://example.com/never", urlstore.Adding{})))

	// id -> URL, and the same for many.
	fmt.Println(must(store.URL(ctx, 1)))
	for _, found := range must(store.URLs(ctx, []uint64{0, 2, 99})) {
		if found.URL == "" {
			found.URL = "-"
		}
		fmt.Printf("%d\t%s\t%s\n", found.ID, found.Status, found.URL)
	}

	// A mark says what is done; the feed, what is left.
	must(store.Mark(ctx, "visited", 0, 2))
	err := store.Feed(ctx, urlstore.Feed{Mark: "!visited"}, func(e urlstore.Entry) error {
		fmt.Printf("%d\t%s\n", e.ID, e.URL)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}

	// A refusal carries the problem document.
	var problem *urlstore.Problem
	if _, err := store.URL(ctx, 99); errors.As(err, &problem) {
		fmt.Println(problem.Status, problem.Document["title"])
	}

	// A crawl of its own: what is new to its set, whether stored or not.
	must(store.MakeSet(ctx, "crawl-7"))
	batch = must(store.AddAll(ctx, links[:2], urlstore.Adding{Base: page, Set: "crawl-7"}))
	for _, item := range batch.Items {
		show(item)
	}
}

func main() {
	store := must(urlstore.New(os.Args[1], urlstore.Options{Cache: 100000}))
	defer store.Close()
	tour(context.Background(), store)
}
