// The main calls, with Go's standard library:
//
//     go run examples/example.go http://127.0.0.1:8080

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
)

var store = "http://127.0.0.1:8080"

// Item is an answer; ID is nil where there is none.
type Item struct {
	ID     *uint64 `json:"id"`
	Status string  `json:"status"`
	URL    string  `json:"url"`
	Reason string  `json:"reason"`
}

func call(path string, body, answer any) error {
	method, content := "GET", io.Reader(nil)
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		method, content = "POST", bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, store+path, content)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= 400 {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

// Is this URL new?  It is added if so.
func addOne(u string) (item Item, err error) {
	err = call("/add", map[string]string{"url": u}, &item)
	return item, err
}

// All links of a page, as they stand in it; one answer for each.
func addPage(base string, links []string) ([]Item, error) {
	var answer struct{ Results []Item }
	err := call("/add", map[string]any{"base": base, "urls": links}, &answer)
	return answer.Results, err
}

// Is it known?  Adds nothing.
func seen(u string) (item Item, err error) {
	err = call("/seen?url="+url.QueryEscape(u), nil, &item)
	return item, err
}

// id -> URL, and the same for many.
func getURL(id uint64) (string, error) {
	var item Item
	err := call("/url/"+strconv.FormatUint(id, 10), nil, &item)
	return item.URL, err
}

func getURLs(ids []uint64) ([]Item, error) {
	var answer struct{ Results []Item }
	err := call("/url", map[string]any{"ids": ids}, &answer)
	return answer.Results, err
}

// Everything from an id on: an export, and a feed of new URLs.
func since(from uint64, each func(id, u string)) error {
	for {
		path := fmt.Sprintf("%s/urls?from=%d&limit=1000", store, from)
		response, err := http.Get(path)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || len(text) == 0 {
			return err
		}
		for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			id, u, _ := strings.Cut(line, "\t")
			each(id, u)
			last, _ := strconv.ParseUint(id, 10, 64)
			from = last + 1
		}
	}
}

func show(item Item) {
	id, text := "-", item.URL
	if item.ID != nil {
		id = strconv.FormatUint(*item.ID, 10)
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

func main() {
	if len(os.Args) > 1 {
		store = os.Args[1]
	}
	page := "http://example.com/shop/list.html"

	show(must(addOne(page)))
	for _, item := range must(addPage(page, []string{
		"item?id=7", "/about.html",
		"HTTP://WWW.Example.com/about.html#team", "ftp://example.com/"})) {
		show(item)
	}
	show(must(seen("http://example.com/shop/./item?id=7")))
	show(must(seen("http://example.com/never")))
	fmt.Println(must(getURL(1)))
	for _, item := range must(getURLs([]uint64{0, 2, 99})) {
		if item.URL == "" {
			item.URL = "-\t" + item.Status
		}
		fmt.Printf("%d\t%s\n", *item.ID, item.URL)
	}
	if err := since(0, func(id, u string) { fmt.Println(id + "\t" + u) }); err != nil {
		log.Fatal(err)
	}
}
