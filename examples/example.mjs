// The main calls, with what Node 18 and browsers have:
//
//     node examples/example.mjs http://127.0.0.1:8080

const store = process.argv[2] ?? "http://127.0.0.1:8080";


async function call(path, body) {
    const answer = await fetch(store + path, {
        method: body === undefined ? "GET" : "POST",
        headers: {
            "Accept": "application/json",
            ...(body !== undefined && { "Content-Type": "application/json" })
        },
        body: JSON.stringify(body)
    });
    const content = await answer.json();

    if (!answer.ok) {
        throw new Error(`${answer.status} ${content.title}`);
    }

    return content;
}


// Is this URL new?  It is added if so.
async function addOne(url) {
    return call("/add", { url });
}


// All links of a page, as they stand in it; one answer for each.
async function addPage(base, urls) {
    return (await call("/add", { base, urls })).results;
}


// Is it known?  Adds nothing.
async function seen(url) {
    return call("/seen?" + new URLSearchParams({ url }));
}


// id -> URL, and the same for many.
async function url(id) {
    return (await call("/url/" + id)).url;
}

async function urls(ids) {
    return (await call("/url", { ids })).results;
}


// Everything from an id on: an export, and a feed of new URLs.
async function* since(from) {
    for ( ;; ) {
        const answer = await fetch(`${store}/urls?from=${from}&limit=1000`);
        const text = await answer.text();

        if (text === "") {
            return;
        }

        for (const line of text.trimEnd().split("\n")) {
            const [id, url] = line.split("\t");
            yield [id, url];
            from = Number(id) + 1;
        }
    }
}


function show(item) {
    console.log([item.id ?? "-", item.status,
                 item.url ?? item.reason].join("\t"));
}


const page = "http://example.com/shop/list.html";

show(await addOne(page));

for (const item of await addPage(page, [
    "item?id=7", "/about.html", "HTTP://WWW.Example.com/about.html#team",
    "ftp://example.com/"]))
{
    show(item);
}

show(await seen("http://example.com/shop/./item?id=7"));
show(await seen("http://example.com/never"));
console.log(await url(1));

for (const item of await urls([0, 2, 99])) {
    console.log(`${item.id}\t${item.url ?? "-\t" + item.status}`);
}

for await (const [id, url] of since(0)) {
    console.log(`${id}\t${url}`);
}
