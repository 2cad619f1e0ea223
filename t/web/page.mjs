// The status page of a store that has some URLs (t/web/page.t).

import assert from "node:assert/strict";
import { test } from "node:test";

import { add, base, figure, lookUp, open, result, shot, text }
    from "./browser.mjs";


test("look-up", async () => {
    const page = await open();
    const [first] = await add(["http://www.example.com/a/c?x=1"]);

    await page.goto(base);
    assert.match((await result(page)).hint, /^A URL: /);

    let r = await lookUp(page, "HTTP://Example.COM:80/a/b/../c?x=1#top");
    assert.equal(r.status, "seen");
    assert.equal(r.id.replace(/,/g, ""), first);
    assert.equal(r.URL, "http://www.example.com/a/c?x=1");
    assert.ok(r.steps.length >= 3, "the steps are shown");
    assert.equal(r.steps.at(-1), "spell as first seen: id " + first,
                 "and why the host became www.example.com");

    // which is a link

    await page.click(".steps a");
    await page.waitForLoadState();
    r = await result(page);
    assert.equal(r.status, "known");
    assert.equal(r.URL, "http://www.example.com/a/c?x=1");

    r = await lookUp(page, "http://example.com/never");
    assert.equal(r.status, "unseen");
    assert.equal(r.URL, "http://www.example.com/never");
    assert.deepEqual(r.steps, ["spell as first seen: id " + first]);

    r = await lookUp(page, first);
    assert.equal(r.status, "known");

    r = await lookUp(page, "99999999999999999999");
    assert.equal(r.status, "unknown");

    r = await lookUp(page, "gopher://example.com/");
    assert.equal(r.status, "invalid");
    assert.equal(r.reason, "scheme");

    const [gone] = await add(["http://gone.example/"]);
    await fetch(base + "url/" + gone, { method: "DELETE" });
    r = await lookUp(page, gone);
    assert.equal(r.status, "deleted");

    r = await lookUp(page, "007");
    assert.match(r.hint, /id/, "what the endpoint says of it");

    r = await lookUp(page, "");
    assert.match(r.hint, /^A URL: /);

    // ?q= is a look-up

    await page.goto(base + "?q=" + first);
    assert.equal(await page.inputValue("input[name=q]"), first);
    assert.equal((await result(page)).status, "known");

    assert.deepEqual(page.faults, []);
    assert.deepEqual(page.foreign, [], "nothing from elsewhere");
});


test("what is looked up stays text", async () => {
    const page = await open();
    const nasty = 'http://e.com/"><img src=x onerror=alert(1)>'
        + "</textarea><script>document.title='bad'</script>&amp;'";

    await page.goto(base + "?q=" + encodeURIComponent(nasty));
    assert.equal(await page.inputValue("input[name=q]"), nasty);
    assert.equal((await result(page)).status, "unseen");
    await lookUp(page, nasty);
    assert.equal(await page.locator("#result img, #result script").count(),
                 0);
    assert.notEqual(await page.title(), "bad");
    assert.deepEqual(page.faults, []);
});


test("without JavaScript there are two links", async () => {
    const page = await open({ javaScriptEnabled: false });

    await page.goto(base);
    assert.ok(await page.isVisible("noscript"));
    assert.equal(await page.isVisible("main"), false);
    assert.deepEqual(await page.locator("noscript a").evaluateAll(
        all => all.map(a => a.getAttribute("href"))),
        ["stats", "openapi.yaml"]);
});


test("figures are those of stats", async () => {
    const page = await open();

    await page.goto(base);
    const shown = await figure(page, "urls");
    const s = await (await fetch(base + "stats")).json();

    assert.equal(shown, s.urls);
    assert.equal(await page.textContent("#zone"), s.zone);
    assert.match(await page.textContent("#state"), /^ready$/);
    assert.equal(await page.textContent("#each"),
                 s.bytes_per_url.toFixed(1) + " bytes");
    assert.ok(s.bytes_per_url > 5 && s.bytes_per_url < 60, s.bytes_per_url);
    assert.equal(await page.locator("#parts tr").count(),
                 1 + Object.keys(s.parts).length);
    assert.match(await page.textContent("#parts"), /per URL.*log/);
    assert.match(await page.textContent("#answers"), /over quota/);
    assert.equal(await page.textContent("#answers tr:nth-child(2) .n"),
                 s.answers.seen.toLocaleString("en"));
    assert.deepEqual(page.faults, []);
});


test("sets, with their members and bytes", async () => {
    const page = await open();

    await fetch(base + "set/crawl-1", { method: "PUT" });
    await fetch(base + "add?set=crawl-1", { method: "POST",
        headers: { "Content-Type": "text/plain" },
        body: "http://sets.example/1\nhttp://sets.example/2\n" });
    await page.goto(base);
    await page.waitForSelector("#sets td", { timeout: 60000 });

    const rows = await page.locator("#sets tr").evaluateAll(all => all.map(
        row => [...row.children].map(x => x.textContent)));
    const { sets } = await (await fetch(base + "set", {
        headers: { Accept: "application/json" } })).json();
    const set = sets.find(x => x.name === "crawl-1");

    assert.equal(rows.length, 1 + sets.length);
    assert.match(rows[1][0], /^crawl-1 since \d{4}-\d\d-\d\d$/);
    assert.deepEqual(rows[1].slice(1), ["2", set.bytes + " B"]);
    assert.equal(rows.filter(x => / a mark$/.test(x[0])).length,
                 sets.filter(x => x.created === null).length);
    await fetch(base + "set/crawl-1", { method: "DELETE" });
    await page.waitForFunction(() => !/crawl-1/.test(document
        .getElementById("sets").textContent), null, { timeout: 60000 });
    assert.deepEqual(page.faults, []);
});


test("figures and curves follow the store", async () => {
    const page = await open();

    await page.goto(base);
    const before = await figure(page, "urls");

    await page.waitForSelector("#c-urls path.curve",
                               { state: "attached", timeout: 60000 });
    await add(Array.from({ length: 500 },
                         (x, i) => `http://live.example/${before}/${i}`));
    await page.waitForFunction(
        n => Number(document.getElementById("urls").textContent
                    .replace(/,/g, "")) === n, before + 500,
        { timeout: 60000 });
    await page.waitForFunction(
        () => /new a second/.test(document.getElementById("urls-sub")
                                  .textContent), null, { timeout: 60000 });

    assert.match(await text(page, "fit-sub"), /full in /);
    assert.equal(await page.locator("#charts path.curve").count(), 2);
    assert.match(await page.textContent("#c-each"), /\d B/, "with its unit");

    // looking something up leaves the curves where they are

    await lookUp(page, "http://filled.example/7/./page-7.html");
    assert.equal(await page.isVisible("#charts"), true);

    await page.screenshot({ path: shot + ".png", fullPage: true });
    await page.emulateMedia({ colorScheme: "dark" });
    assert.equal(await page.evaluate(
        () => getComputedStyle(document.documentElement).backgroundColor),
        "rgb(20, 24, 28)", "dark");
    await page.screenshot({ path: shot + "-dark.png", fullPage: true });
    assert.deepEqual(page.faults, []);
});


test("it fits a telephone", async () => {
    const page = await open({ viewport: { width: 360, height: 740 } });

    await page.goto(base + "?q=" + encodeURIComponent(
        "http://WWW.example.com/" + "long/".repeat(60)));
    await result(page);
    await page.waitForSelector("#c-urls path.curve",
                               { state: "attached", timeout: 60000 });
    assert.ok(await page.evaluate(
        () => document.documentElement.scrollWidth <= innerWidth),
        "nothing sticks out");
    await page.screenshot({ path: shot + "-phone.png", fullPage: true });
});


test("it is quick", async () => {
    const page = await open();
    const start = Date.now();

    await page.goto(base);
    await figure(page, "urls");
    assert.ok(Date.now() - start < 2000);
});


test("the state says that the service is gone", async () => {
    const page = await open();

    await page.goto(base);
    await figure(page, "urls");
    await page.route("**/*", route => route.abort());
    await page.waitForFunction(
        () => /no answer/.test(document.getElementById("state").textContent),
        null, { timeout: 60000 });
    assert.match((await lookUp(page, "1")).hint, /no answer/);
});
