// Headless Chromium for tests of the status page:
//
//     node t/web/NAME.mjs URL CHROMIUM SCREENSHOT

import { after } from "node:test";

import { chromium } from "playwright-core";

const [base, executablePath, shot] = process.argv.slice(2);
const browser = await chromium.launch({
    executablePath, args: ["--no-sandbox", "--disable-gpu"]
});

after(() => browser.close());


// a page that keeps what went wrong in it (faults) and what it asked of other
// hosts (foreign)

async function open(options = {}) {
    const context = await browser.newContext(
        { viewport: { width: 1120, height: 900 }, ...options });
    const page = await context.newPage();

    page.faults = [];
    page.foreign = [];
    page.on("pageerror", e => page.faults.push(e.message));
    page.on("console", m => {

        // Chromium reports each answer of 4xx as an error

        if (m.type() === "error" && !/server responded/.test(m.text())) {
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


// looks something up and returns the texts of the answer: { status, URL, .. }

async function lookUp(page, query) {
    await page.fill("input[name=q]", query);
    await page.evaluate(
        () => document.getElementById("result").replaceChildren());
    await page.click("button");
    return result(page);
}


async function result(page) {
    await page.waitForSelector("#result > *");

    return page.evaluate(() => {
        const texts = {};

        for (const dt of document.querySelectorAll("#result dt")) {
            texts[dt.textContent] = dt.nextElementSibling.textContent;
        }

        texts.hint = document.querySelector("#result .hint")?.textContent;
        texts.steps = [...document.querySelectorAll("#result .steps tr")]
            .map(tr => tr.querySelector("th").textContent);

        return texts;
    });
}


// a figure once it is there

async function text(page, id) {
    await page.waitForFunction(
        i => document.getElementById(i).textContent !== "", id);
    return page.textContent("#" + id);
}


const figure = async (page, id) => Number(
    (await text(page, id)).replace(/[^\d.]/g, ""));


async function add(lines, at = base) {
    const answer = await fetch(at + "add", { method: "POST",
        body: lines.map(l => l + "\n").join(""),
        headers: { "Content-Type": "text/plain" } });

    return (await answer.text()).trimEnd().split("\n")
        .map(l => l.split("\t")[0]);
}


export { base, shot, open, lookUp, result, text, figure, add };
