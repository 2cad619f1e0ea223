// The status page of zones of other kinds, and under access rules
// (t/web/page.t).

import assert from "node:assert/strict";
import { test } from "node:test";

import { add, base, figure, lookUp, open, shot, text } from "./browser.mjs";


test("an empty store, and one of three URLs", async () => {
    const page = await open();

    await page.goto(base + "few/");
    assert.equal(await figure(page, "urls"), 0);

    for (let i = 0; i < 2; i++) {
        assert.equal(await text(page, "each"), "\u2013");
        assert.match(await text(page, "each-sub"), /not known yet/);

        await add(["http://a.example/1", "http://a.example/2",
                   "http://b.example/"], base + "few/");
        await page.waitForFunction(
            () => document.getElementById("urls").textContent === "3");
    }

    await page.waitForSelector("#c-urls path.curve",
                               { state: "attached", timeout: 60000 });
    assert.equal(await page.isVisible("#c-each"), false,
                 "no curve of what is not known");
    await page.screenshot({ path: shot + "-few.png", fullPage: true });
    assert.deepEqual(page.faults, []);
});


test("the curve of bytes per URL begins where they are known", async () => {
    const page = await open();

    await page.goto(base + "few/");
    await figure(page, "urls");

    for (let n = 1; n <= 6; n++) {
        await add(Array.from({ length: 10000 },
                  (x, i) => `http://s${n}.example/${i}/page.html`),
                  base + "few/");
    }

    await page.waitForSelector("#c-each path.curve",
                               { state: "attached", timeout: 60000 });

    const high = await page.evaluate(() => Math.max(...samples
        .map(s => s[2] ?? 0)));

    assert.ok(high > 0 && high < 60, "no spike: " + high);
});


test("a filter", async () => {
    const page = await open();

    await page.goto(base + "filter/");
    assert.equal(await figure(page, "urls"), 10000);
    assert.match(await page.textContent("#about"), /a filter/);
    assert.equal(await text(page, "fit"), "90 k");
    assert.match(await page.textContent("#parts"), /at capacity/);
    assert.equal(await page.isVisible("#sets"), false, "it has no sets");

    let r = await lookUp(page, "http://filled.example/1/page-1.html");
    assert.equal(r.status, "seen");
    assert.equal(r.id, undefined);
    r = await lookUp(page, "http://filled.example/none");
    assert.equal(r.status, "unseen");
    r = await lookUp(page, "17");
    assert.equal(r.reason, "no-base", "there are no ids");

    await page.screenshot({ path: shot + "-filter.png", fullPage: true });
    assert.deepEqual(page.faults, []);
});


test("a router, with its shards", async () => {
    const page = await open();

    await page.goto(base + "router/");
    assert.equal(await figure(page, "urls"), 10000);
    assert.match(await page.textContent("#about"),
                 /a router, map version 1 by url/);
    assert.equal(await text(page, "state"), "ready");
    assert.equal(await text(page, "parts-title"), "Shards");

    const rows = await page.$$eval("#parts tr", all => all.map(tr =>
        [...tr.children].map(td => td.textContent.trim())));

    assert.deepEqual(rows.map(r => r[0]), ["", "0", "1"]);
    assert.equal(rows.slice(1).map(r => +r[1].replace(",", ""))
                     .reduce((a, b) => a + b), 10000);
    assert.match(await page.textContent("#answers"), /unavailable/);

    let r = await lookUp(page, "http://filled.example/1/page-1.html");
    assert.equal(r.status, "seen");
    r = await lookUp(page, r.id.replaceAll(",", ""));
    assert.equal(r.status, "known");

    await page.screenshot({ path: shot + "-router.png", fullPage: true });

    // one that does not answer is named, and no sum is drawn without it

    const drawn = await page.evaluate(() => samples.length);

    await page.route("**/stats", async route => {
        const answer = await route.fetch();
        const s = await answer.json();

        s.status = "degraded";
        s.shards[0].bytes_per_url = 21.5;
        s.shards[1] = { status: "unavailable", writable: false, node: "n1",
            address: "127.0.0.1:9", reason: "it could not be connected" };
        await route.fulfill({ json: s });
    });

    await page.waitForFunction(() =>
        /degraded/.test(document.getElementById("state").textContent));
    assert.match(await page.textContent("#parts"),
                 /1 it could not be connected/);
    assert.match(await page.textContent("#state"),
                 /^degraded: 1 of 2 shards accept new URLs$/);
    assert.match(await page.textContent("#urls-sub"), /in 1 of 2 shards/);
    assert.match(await page.textContent("#each"), /^21\.5 /);
    assert.ok(await page.evaluate(() => samples.length) <= drawn + 1);
    assert.deepEqual(page.faults, []);
});


test("what an endpoint holds back, the page has not", async () => {
    const page = await open();

    await page.goto(base + "closed/");
    await page.waitForFunction(
        () => /403/.test(document.getElementById("state").textContent));
    assert.equal(await page.textContent("#urls"), "");

    const r = await lookUp(page, "http://filled.example/1/page-1.html");
    assert.match(r.hint, /Forbidden/);
    assert.equal(r.status, undefined);
    assert.equal((await lookUp(page, "0")).status, "known");
});


test("a marked word of a zone is text", async () => {
    const page = await open();

    await page.route("**/stats", async route => {
        const answer = await route.fetch();
        const s = await answer.json();

        s.zone = s.state = s.normalization = "<img src=x onerror=alert(1)>";
        s.parts["<b>"] = 1;
        await route.fulfill({ json: s });
    });

    await page.goto(base);
    await figure(page, "urls");
    assert.equal(await page.locator("img, b").count(), 0);
    assert.match(await page.textContent("#zone"), /<img/);
});


test("replicas and nodes of a replicated log", async () => {
    const page = await open();
    let figures;

    await page.route("**/stats", async route => {
        const answer = await route.fetch();

        await route.fulfill({ json: { ...await answer.json(), ...figures } });
    });

    // the primary, one whose log does not confirm, a standby, one that begins;
    // a replica with its primary and without

    for (const [own, about, state, bad] of [
        [{ state: "ready", is_primary: true, term: 7, holder: "us_a" },
         /; node us_a of a log, term 7 of us_a/, /^ready/, false],
        [{ state: "stalled", stalled: true, writable: false, ready: false,
           is_primary: false, term: 7, holder: "us_a" },
         /term 7 of us_a/, /read-only: the log does not confirm/, true],
        [{ state: "standby", writable: false, ready: false,
           is_primary: false, term: 8, holder: "us_b" },
         /; node us_a of a log, term 8 of us_b/, /^standby/, false],
        [{ state: "loading", progress: 40, writable: false, ready: false,
           is_primary: false, term: 0, holder: "" },
         /term 0 of nobody/, /^loading, 40 %/, true],
        [{ state: "replica", writable: false, connected: true, node: undefined,
           primary: "http://a/", holder: undefined },
         /; a replica of http:\/\/a\/$/, /^replica$/, false],
        [{ state: "replica", writable: false, connected: false,
           node: undefined, primary: "http://a/", holder: undefined },
         /a replica of/, /^replica: its primary does not answer$/, true] ])
    {
        figures = { node: "us_a", persistent: true, ...own };
        await page.goto(base + "few/");
        await figure(page, "urls");
        assert.match(await page.textContent("#about"), about);
        assert.match(await page.textContent("#state"), state);
        assert.equal(await page.getAttribute("#state", "class") === "bad", bad);
    }

    await page.screenshot({ path: shot + "-replicated.png", fullPage: true });
    assert.deepEqual(page.faults, []);
});
