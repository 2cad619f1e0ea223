// The status page in headless Chromium:
//
//     node t/web/page.mjs URL CHROMIUM SCREENSHOT.png

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { chromium } from "playwright-core";

const [base, executablePath, shot] = process.argv.slice(2);
const browser = await chromium.launch({
    executablePath, args: ["--no-sandbox", "--disable-gpu"]
});


async function open(options = {}) {
    const context = await browser.newContext(
        { viewport: { width: 1120, height: 900 }, ...options });
    const page = await context.newPage();

    page.faults = [];
    page.foreign = [];
    page.on("pageerror", e => page.faults.push(e.message));
    page.on("console", m => {
        if (m.type() === "error") {
            page.faults.push(m.text());
        }
    });
    page.on("request", r => {
        if (!r.url().startsWith(base) && !r.url().startsWith("data:")) {
            page.foreign.push(r.url());
        }
    });

    return page;
}

async function lookUp(page, query) {
    await page.fill("input[name=q]", query);
    await page.click("button");
    await page.waitForFunction(
        q => new URLSearchParams(location.search).get("q") === q, query);
    await page.waitForLoadState();
}

const figure = async (page, id) => Number(
    (await page.textContent("#" + id)).replace(/[^\d.]/g, ""));

async function add(text) {
    const answer = await fetch(base + "add", { method: "POST", body: text,
        headers: { "Content-Type": "text/plain" } });

    assert.equal(answer.status, 200);
    return answer.text();
}


for (const javaScriptEnabled of [true, false]) {
    const how = javaScriptEnabled ? "with a script" : "without JavaScript";

    test("look-up " + how, async () => {
        const page = await open({ javaScriptEnabled });

        await add("http://www.example.com/a/c?x=1\n");
        await page.goto(base);

        await lookUp(page, "HTTP://Example.COM:80/a/b/../c?x=1#top");
        assert.equal(await page.textContent("#result .tag"), "seen");
        assert.equal(await page.textContent("#result #url"),
                     "http://www.example.com/a/c?x=1");
        const id = (await page.textContent("#result #id")).replace(/,/g, "");
        assert.ok(await page.locator(".steps tr").count() >= 2,
                  "the steps are shown");

        await lookUp(page, id);
        assert.equal(await page.textContent("#result .tag"), "known");
        assert.equal(await page.textContent("#result #url"),
                     "http://www.example.com/a/c?x=1");

        await lookUp(page, "http://example.net/never");
        assert.equal(await page.textContent("#result .tag"), "unseen");

        await lookUp(page, "99999999999999999999");
        assert.equal(await page.textContent("#result .tag"), "unknown");

        await lookUp(page, "gopher://example.com/");
        assert.equal(await page.textContent("#result .tag"), "invalid");
        assert.match(await page.textContent("#result"), /scheme/);

        assert.deepEqual(page.faults, []);
        assert.deepEqual(page.foreign, [], "nothing from elsewhere");
    });

    test("what is looked up stays text " + how, async () => {
        const page = await open({ javaScriptEnabled });
        const nasty = 'http://e.com/"><img src=x onerror=alert(1)>'
            + "</textarea><script>document.title='bad'</script>&amp;'";

        await page.goto(base);
        await lookUp(page, nasty);
        assert.equal(await page.inputValue("input[name=q]"), nasty);
        assert.equal(await page.locator("#result img, #result script")
                     .count(), 0);
        assert.notEqual(await page.title(), "bad");
        assert.deepEqual(page.faults, []);
    });
}


test("figures are there without JavaScript", async () => {
    const page = await open({ javaScriptEnabled: false });

    await page.goto(base);
    assert.ok(await figure(page, "urls") > 0);
    assert.ok(await figure(page, "bpu") > 1);
    assert.ok(await page.locator("#parts tr").count() >= 5);
    assert.equal(await page.isVisible("#charts"), false);
});


test("figures and curves follow the store", async () => {
    const page = await open();

    await page.goto(base);
    const before = await figure(page, "urls");

    await page.waitForSelector("#charts path.curve",
                               { state: "attached", timeout: 60000 });
    await add(Array.from({ length: 500 },
                         (x, i) => `http://live.example/${i}\n`).join(""));
    await page.waitForFunction(
        n => Number(document.getElementById("urls").textContent
                    .replace(/,/g, "")) === n, before + 500,
        { timeout: 60000 });
    await page.waitForFunction(
        () => /a second/.test(document.getElementById("rate").textContent),
        null, { timeout: 60000 });

    assert.equal(await page.locator("#charts path.curve").count(), 2);

    // looking something up leaves the curves where they are

    await lookUp(page, "0");
    assert.equal(await page.isVisible("#charts"), true);

    await page.screenshot({ path: shot, fullPage: true });
    assert.deepEqual(page.faults, []);
});


test("it fits a telephone", async () => {
    const page = await open({ viewport: { width: 360, height: 740 } });

    await page.goto(base + "?q=" + encodeURIComponent(
        "http://www.example.com/" + "long/".repeat(60)));
    assert.ok(await page.evaluate(
        () => document.documentElement.scrollWidth <= innerWidth),
        "nothing sticks out");
});


test("it is quick", async () => {
    const page = await open();
    const start = Date.now();

    await page.goto(base);
    assert.ok(Date.now() - start < 2000);
    assert.ok((await (await fetch(base)).text()).length < 32768);
});


test("the state tells when the service is gone", async () => {
    const page = await open();

    await page.goto(base);
    await page.route("**/*", route => route.abort());
    await page.waitForFunction(
        () => /no answer/.test(document.getElementById("state").textContent),
        null, { timeout: 60000 });
});


after(() => browser.close());
