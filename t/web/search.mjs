// What examples/search.html shows (t/web/search.t).

import assert from "node:assert/strict";
import { test } from "node:test";

import { base, open } from "./browser.mjs";


async function shown(url) {
    const page = await open();

    await page.goto(url);
    await page.waitForFunction(() =>
        document.querySelector("ol").textContent !== "",
        null, { timeout: 10000 });

    return page.evaluate(() => {
        const items = [...document.querySelectorAll("li")];

        return items.map((li) => `${li.value} ${li.querySelector("a")?.href
            ?? li.textContent}`).join("\n")
            || document.querySelector("ol").textContent;
    });
}


test("the URLs of a list of ids", async () => {
    assert.equal(await shown(base), "1 https://www.b.test/x?y=1&z=%22\n"
        + "0 http://a.test/\n2 deleted\n99 unknown");
});


test("a page of an origin that is not allowed", async () => {
    assert.match(await shown(base.replace("127.0.0.1", "127.0.0.2")),
        /fetch/i);
});
