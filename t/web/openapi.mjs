// Is front/openapi.yaml a valid OpenAPI 3.1 description, and do live answers
// have the form that it describes?
//
//     node t/web/openapi.mjs URL
//
// The cases below cover every operation; a case says what it sends and which
// status comes.  That the status, the content type and the body are described
// is checked for each.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Validator } from "@seriousme/openapi-schema-validator";
import Ajv from "ajv/dist/2020.js";
import YAML from "yaml";

const base = process.argv[2];
const text = { "Content-Type": "text/plain" };
const json = { "Content-Type": "application/json" };
const ndjson = { "Content-Type": "application/x-ndjson" };
const form = { "Content-Type": "application/x-www-form-urlencoded" };
const asJson = { Accept: "application/json" };
const asText = { Accept: "text/plain" };
const asNdjson = { Accept: "application/x-ndjson" };

const urls = "http://example.com/\nhttp://www.example.com/\nftp://x/\n";

// operation, method, path, headers, body, status

const cases = [
    ["addUrls", "POST", "/add", json, '{"url":"http://example.org/a"}', 201],
    ["addUrls", "POST", "/add", json, '{"url":"http://example.org/a"}', 200],
    ["addUrls", "POST", "/add?url=http://example.org/b", {}, "", 201],
    ["addUrls", "POST", "/add", form, "url=http%3A%2F%2Fexample.org%2Fc",
     201],
    ["addUrls", "POST", "/add", form, "url=c&url=d&base=http://a.example/",
     200],
    ["addUrls", "POST", "/add", text, urls, 200],
    ["addUrls", "POST", "/add?brief=1&summary=1", text, urls, 200],
    ["addUrls", "POST", "/add?sites=1", text, "http://b.example/\n", 200],
    ["addUrls", "POST", "/add?only=new", text,
     "http://example.com/\nhttp://c.example/\n", 200],
    ["addUrls", "POST", "/add?only=new&sites=1", { ...text, ...asJson },
     "http://example.com/\nhttp://d.example/\n", 200],
    ["addUrls", "POST", "/add", { ...text, ...asNdjson }, urls, 200],
    ["addUrls", "POST", "/add", json,
     '{"base":"http://example.com/x/","urls":["y","../z",7]}', 200],
    ["addUrls", "POST", "/add?summary=1", ndjson,
     '{"url":"http://example.com/q","ref":{"n":[1,null]}}\n{"url":"r",'
     + '"base":"http://example.com/"}\n{broken\n', 200],
    ["addUrls", "POST", "/add", json, '["http://example.com/', 400],
    ["addUrls", "POST", "/add", json, '{"url":"mailto:x@example.com"}', 422],
    ["addUrls", "POST", "/add", { "Content-Type": "image/png" }, "x", 415],
    ["addUrls", "POST", "/add", text, "http://example.com/x\n".repeat(10001),
     413],

    ["seenUrl", "GET", "/seen?url=http://example.com/", {}, null, 200],
    ["seenUrl", "GET", "/seen?url=never&base=http://example.com/", asText,
     null, 200],
    ["seenUrl", "GET", "/seen?url=http://[", {}, null, 422],
    ["seenUrls", "POST", "/seen", text, urls, 200],
    ["seenUrls", "POST", "/seen", json, '["http://example.com/","no"]', 200],
    ["seenUrls", "POST", "/seen", json, '[[[', 400],

    ["addUrls", "POST", "/add?older=30d&times=1&summary=1", text, urls, 200],
    ["addUrls", "POST", "/add?older=30d&times=1", { ...text, ...asJson }, urls,
     200],
    ["addUrls", "POST", "/add?older=1s", text, urls, 400],
    ["seenUrl", "GET", "/seen?url=http://example.com/&older=1d&times=1", {},
     null, 200],
    ["claim", "POST", "/claim?clear=1", text, "0\n999\nhttp://never/\n", 200],
    ["addUrls", "POST", "/add?older=30d", { ...text, ...asNdjson }, urls, 200],
    ["claim", "POST", "/claim?at=2026-01-01T00:00:00Z", json,
     '[0,"http://www.example.com/",999]', 200],
    ["claim", "POST", "/claim?at=never", json, "[0]", 400],
    ["listUrls", "GET", "/urls?older=1d&times=1", {}, null, 200],
    ["listUrls", "GET", "/urls?times=1", asNdjson, null, 200],
    ["getUrl", "GET", "/url/0?times=1", asJson, null, 200],
    ["getUrls", "POST", "/url?times=1", json, "[0,999]", 200],

    ["getUrl", "GET", "/url/0", {}, null, 200],
    ["getUrl", "GET", "/url/0", asJson, null, 200],
    ["getUrl", "GET", "/url/0,1,999", {}, null, 200],
    ["getUrl", "GET", "/url/0,1,999", asJson, null, 200],
    ["getUrl", "GET", "/url/0?redirect=1", {}, null, 302],
    ["getUrl", "GET", "/url/999999", {}, null, 404],
    ["getUrl", "GET", "/url/007", {}, null, 400],
    ["getUrls", "POST", "/url", text, "0\n1\n999\n", 200],
    ["getUrls", "POST", "/url", json, "[0,1,999]", 200],
    ["getUrls", "POST", "/url", json, '{"ids":[0,1,999]}', 200],
    ["listUrls", "GET", "/urls?from=0&limit=3", {}, null, 200],
    ["listUrls", "GET", "/urls?from=0&limit=3&summary=1", {}, null, 200],
    ["listUrls", "GET", "/urls?from=0&limit=3", asNdjson, null, 200],
    ["listUrls", "GET", "/urls?from=x", {}, null, 400],
    ["longestPrefix", "GET", "/prefix?url=http://example.com/x/y/z/1", {},
     null, 200],
    ["getSite", "GET", "/site/example.com", {}, null, 200],
    ["getSite", "GET", "/site/nowhere.example", {}, null, 404],

    ["setMark", "POST", "/mark/visited", text, "0\nhttp://example.com/\n999\n",
     200],
    ["setMark", "POST", "/mark/visited", json, '[0,"http://example.com/"]',
     200],
    ["setMark", "POST", "/mark/nothing", text, "0\n", 404],
    ["clearMarkOfId", "DELETE", "/mark/visited/1", {}, null, 200],
    ["clearMark", "DELETE", "/mark/visited", text, "0\n", 200],

    ["makeSet", "PUT", "/set/crawl-1", {}, null, 201],
    ["makeSet", "PUT", "/set/crawl-1", {}, null, 200],
    ["makeSet", "PUT", "/set/-+-", {}, null, 400],
    ["getSet", "GET", "/set/crawl-1", {}, null, 200],
    ["getSet", "GET", "/set/none", {}, null, 404],
    ["listSets", "GET", "/set", {}, null, 200],
    ["listSets", "GET", "/set", asText, null, 200],
    ["listSets", "GET", "/set", asNdjson, null, 200],
    ["addUrls", "POST", "/add?set=crawl-1&stored=1&summary=1", text, urls,
     200],
    ["addUrls", "POST", "/add?set=crawl-1", json, '["http://example.com/"]',
     200],
    ["addUrls", "POST", "/add?set=none", text, urls, 404],
    ["seenUrls", "POST", "/seen?set=visited", { ...text, ...asJson }, urls,
     200],
    ["seenUrl", "GET", "/seen?set=visited&stored=1&url=http://example.com/",
     asText, null, 200],
    ["putIntoSet", "POST", "/set/crawl-1", text, "0\nhttp://example.com/\n9\n",
     200],
    ["putIntoSet", "POST", "/set/crawl-1?remove=1", json, "[0,1,999]", 200],
    ["putIntoSet", "POST", "/set/none", json, "[0]", 404],
    ["takeOutOfSet", "DELETE", "/set/crawl-1/0", {}, null, 200],
    ["listUrls", "GET", "/urls?set=!crawl-1", {}, null, 200],
    ["dropSet", "DELETE", "/set/crawl-1", {}, null, 204],
    ["dropSet", "DELETE", "/set/crawl-1", {}, null, 404],
    ["dropSet", "DELETE", "/set/visited", {}, null, 409],

    ["erase", "POST", "/erase?reason=x", text,
     "http://example.com/q\n3\n99999\nnever\nhttp://never.example/\n", 202],
    ["erase", "POST", "/erase", json, '["http://never2.example/",99999]', 202],
    ["erase", "POST", "/erase?url=http://never3.example/", {}, null, 202],
    ["erase", "POST", "/erase?site=never4.example", {}, null, 202],
    ["erase", "POST", "/erase", text, "99999\n", 200],
    ["erase", "POST", "/erase?id=99999", {}, null, 200],
    ["erase", "POST", "/erase?url=never", {}, null, 422],
    ["erase", "POST", "/erase?site=a%2Fb", {}, null, 400],
    ["addUrls", "POST", "/add?url=http://never.example/", {}, null, 422],
    ["addUrls", "POST", "/add", text, "http://never.example/\n", 200],
    ["addUrls", "POST", "/add", json, '["http://never.example/"]', 200],
    ["listErasures", "GET", "/erase", {}, null, 200],
    ["listErasures", "GET", "/erase?limit=1&summary=1", asText, null, 200],
    ["listErasures", "GET", "/erase", asNdjson, null, 200],
    ["listErasures", "GET", "/erase?from=0", {}, null, 400],
    ["getErasure", "GET", "/erase/1", {}, null, 200],
    ["getErasure", "GET", "/erase/1", asText, null, 200],
    ["getErasure", "GET", "/erase/99", {}, null, 404],
    ["liftErasure", "DELETE", "/erase/1", {}, null, 204],
    ["liftErasure", "DELETE", "/erase/x", {}, null, 400],
    ["deleteUrl", "DELETE", "/url/2?erase=1&reason=x", {}, null, 202],
    ["deleteUrl", "DELETE", "/url/1", {}, null, 204],
    ["deleteUrl", "DELETE", "/url/999999", {}, null, 404],
    ["getUrl", "GET", "/url/1", {}, null, 410],
    ["getUrl", "GET", "/url/0,1", asJson, null, 200],
    ["listUrls", "GET", "/urls?from=0&limit=3&deleted=1", {}, null, 200],
    ["listUrls", "GET", "/urls?from=0&limit=3&deleted=1", asNdjson, null,
     200],

    ["normalizeUrl", "GET", "/normalize?explain=1&url="
     + encodeURIComponent("HTTP://Example.COM:80/a/../b?x#y"), {}, null, 200],
    ["normalizeUrl", "GET", "/normalize?url=http://example.com/", asText,
     null, 200],
    ["normalizeUrl", "GET", "/normalize?url=ftp://x/", {}, null, 422],
    ["normalizeUrl", "GET", "/normalize?explain=1&url=ftp://x/", {}, null,
     422],
    ["normalizeUrl", "GET", "/normalize?explain=1&url=http://www.example.com/",
     {}, null, 200],
    ["getLog", "GET", "/kept/log", {}, null, 200],
    ["getLog", "GET", "/kept/log?from=0", {}, null, 200],
    ["getLog", "GET", "/kept/log?from=x", {}, null, 400],
    ["getLog", "GET", "/kept/log?from=1", {}, null, 410],
    ["getLog", "GET", "/log", {}, null, 404],
    ["health", "GET", "/health", {}, null, 200],
    ["health", "GET", "/health", asJson, null, 200],
    ["health", "GET", "/health?write=1", {}, null, 200],
    ["stats", "GET", "/stats", {}, null, 200],
    ["stats", "GET", "/kept/stats", {}, null, 200],
    ["stats", "GET", "/filter/stats", {}, null, 200],
    ["getCluster", "GET", "/shard/cluster", {}, null, 200],
    ["getCluster", "GET", "/cluster", {}, null, 404],
    ["addUrls", "POST", "/shard/add?summary=1", text, urls, 200],
    ["stats", "GET", "/shard/stats", {}, null, 200],
    ["addUrls", "POST", "/router/add?summary=1&times=1", text, urls, 200],
    ["addUrls", "POST", "/router/add", json, '["http://r.com/"]', 200],
    ["addUrls", "POST", "/router/add?url=http://s.com/", {}, null, 201],
    ["setMark", "POST", "/router/mark/visited", json, "[0,7]", 200],
    ["makeSet", "PUT", "/router/set/a", {}, null, 201],
    ["makeSet", "PUT", "/router/set/a", {}, null, 200],
    ["addUrls", "POST", "/router/add?set=a", { ...text, ...asJson }, urls, 200],
    ["putIntoSet", "POST", "/router/set/a", json, "[0,7]", 200],
    ["takeOutOfSet", "DELETE", "/router/set/a/0", {}, null, 200],
    ["getSet", "GET", "/router/set/a", {}, null, 200],
    ["listSets", "GET", "/router/set", {}, null, 200],
    ["dropSet", "DELETE", "/router/set/a", {}, null, 204],
    ["getSet", "GET", "/router/set/a", {}, null, 404],
    ["setMark", "POST", "/router/mark/nothing", json, "[0]", 404],
    ["claim", "POST", "/router/claim", json, "[0,7]", 200],
    ["listUrls", "GET", "/router/urls?times=1", asNdjson, null, 200],
    ["listUrls", "GET", "/router/urls?cursor=x", {}, null, 400],
    ["longestPrefix", "GET", "/router/prefix?url=http://r.com/x", {}, null,
        200],
    ["getSite", "GET", "/router/site/r.com", {}, null, 200],
    ["erase", "POST", "/router/erase", text,
     "http://r.com/\n99999\nnever\nhttp://never.example/\n", 202],
    ["erase", "POST", "/router/erase", json, '["http://never2.example/",9]',
     202],
    ["erase", "POST", "/router/erase?url=http://never3.example/", {}, null,
     202],
    ["erase", "POST", "/router/erase?site=never4.example", {}, null, 202],
    ["erase", "POST", "/router/erase", text, "99999\n", 200],
    ["addUrls", "POST", "/router/add?url=http://r.com/", {}, null, 422],
    ["deleteUrl", "DELETE", "/router/url/0?erase=1", {}, null, 202],
    ["deleteUrl", "DELETE", "/router/url/99999?erase=1", {}, null, 404],
    ["listErasures", "GET", "/router/erase", {}, null, 200],
    ["listErasures", "GET", "/router/erase?limit=1", asText, null, 200],
    ["listErasures", "GET", "/router/erase", asNdjson, null, 200],
    ["listErasures", "GET", "/router/erase?cursor=x", {}, null, 400],
    ["getErasure", "GET", "/router/erase/0.1", {}, null, 200],
    ["getErasure", "GET", "/router/erase/0.1", asText, null, 200],
    ["getErasure", "GET", "/router/erase/0.99", {}, null, 404],
    ["liftErasure", "DELETE", "/router/erase/0.1", {}, null, 204],
    ["liftErasure", "DELETE", "/router/erase/1", {}, null, 400],
    ["getCluster", "GET", "/router/cluster", {}, null, 200],
    ["metrics", "GET", "/metrics", {}, null, 200],
    ["statusPage", "GET", "/?q=http://example.com/", {}, null, 200],
    ["openapi", "GET", "/openapi.yaml", {}, null, 200],
    ["listUrls", "GET", "/urls?limit=2&deleted=1&times=1", asJson, null, 200],
    ["addUrls", "POST", "/add", { ...text, Origin: "http://other.example" },
     urls, 403],
    ["setMark", "POST", "/mark/visited", { ...text,
     Origin: "http://other.example" }, "0\n", 403],
    ["setMark", "POST", "/mark/visited?id=0", asJson, null, 200],
    ["claim", "POST", "/claim?id=0&brief=1", asJson, null, 200],
    ["getUrl", "GET", "/url/1099511627776", {}, null, 404],
    ["getUrl", "GET", "/shard/url/1099511627776", {}, null, 421],
    ["health", "GET", "/health?write=1", asText, null, 200],
    ["health", "GET", "/router/health", {}, null, 200],
    ["health", "GET", "/router/health", asText, null, 200],
    ["stats", "GET", "/router/stats", {}, null, 200]
];


const source = await (await fetch(base + "/openapi.yaml")).text();
const api = YAML.parse(source);
const ajv = new Ajv({ strict: false, allErrors: true });

ajv.addSchema(api, "api");


// where a JSON pointer leads, with references followed on the way

function find(...path) {
    let at = api, pointer = "#";

    for (const name of path) {
        at = at?.[name];
        pointer += "/" + name.replaceAll("~", "~0").replaceAll("/", "~1");

        while (at?.$ref) {
            pointer = at.$ref;
            at = pointer.slice(2).split("/").reduce((o, k) => o[k], api);
        }
    }

    return { at, pointer };
}


function operation(id) {
    for (const path in api.paths) {
        for (const method in api.paths[path]) {
            if (api.paths[path][method].operationId === id) {
                return [path, method];
            }
        }
    }
}


function fits(pointer, value) {
    const check = ajv.getSchema("api" + pointer)
        ?? ajv.compile({ $ref: "api" + pointer });

    assert.ok(check(value), JSON.stringify(value).slice(0, 500) + ": "
        + ajv.errorsText(check.errors));
}


test("openapi.yaml is valid OpenAPI 3.1", async () => {
    const result = await new Validator().validate(api);

    assert.ok(result.valid, JSON.stringify(result.errors));
    assert.match(api.openapi, /^3\.1/);
});


// the body of an answer; of a stream, which does not end, what comes first

async function read(answer) {
    if (answer.headers.get("content-type") !== "application/octet-stream") {
        return await answer.text();
    }

    const reader = answer.body.getReader();
    const { value } = await reader.read();

    await reader.cancel();
    return new TextDecoder("latin1").decode(value);
}


for (const [id, method, path, headers, body, status] of cases) {
    test(`${id}: ${method} ${path} ${status}`, async () => {
        const answer = await fetch(base + path, {
            method, headers, body: body ?? undefined, redirect: "manual"
        });
        const content = await read(answer);

        assert.equal(answer.status, status, content);

        const [place, verb] = operation(id);
        const { at } = find("paths", place, verb, "responses", String(status));

        assert.ok(at, `${status} is not described`);

        if (!at.content || answer.status === 302) {
            return;
        }

        const type = answer.headers.get("content-type").split(";")[0];

        assert.ok(at.content[type], `${type} is not described`);

        const { pointer } = find("paths", place, verb, "responses",
                                 String(status));
        const schema = pointer + "/content/" + type.replaceAll("/", "~1")
            + "/schema";

        if (type === "application/x-ndjson") {
            for (const line of content.trimEnd().split("\n")) {
                fits(schema, JSON.parse(line));
            }

        } else if (/json$/.test(type)) {
            fits(schema, JSON.parse(content));

        } else {
            fits(schema, content);
        }

        for (const name in at.headers ?? {}) {
            const value = answer.headers.get(name);

            if (value !== null && at.headers[name].schema) {
                assert.match(value, new RegExp(
                    at.headers[name].schema.pattern ?? ""), name);
            }
        }
    });
}


test("every operation was asked", () => {
    const asked = new Set(cases.map(c => c[0]));
    const described = Object.values(api.paths).flatMap(Object.values)
        .map(o => o.operationId).filter(id => id);

    assert.deepEqual(described.filter(id => !asked.has(id)), []);
});


test("a wrong answer would be noticed", () => {
    assert.throws(() => fits("#/components/schemas/Item",
                             { id: null, status: "new" }));
    assert.throws(() => fits("#/components/schemas/Lines", "0 new x\n"));
    assert.throws(() => fits("#/components/schemas/Single",
                             { id: 0, status: "seen", url: "http://a/" }));
});


// the arguments that an operation takes: a request with another one is told

for (const path in api.paths) {
    const at = path.replace("{ids}", "0").replace("{id}", "0")
        .replace("{name}", "visited").replace("{host}", "example.com")
        .replace("{number}", "1");
    const method = path === "/set/{name}" ? "POST"
                   : api.paths[path].get ? "GET"
                   : api.paths[path].post ? "POST" : "DELETE";

    test(`the arguments of ${path}`, async () => {
        const answer = await fetch(`${base}${at}?no-such-one=1`, { method,
            headers: text, body: method === "GET" ? undefined : "0" });
        const { detail } = await answer.json();
        const allowed = /allowed are: (.*)$/.exec(detail)[1].split(" ")
            .filter(name => name !== "none"
                && !(path === "/url"
                     && ["redirect", "erase", "reason"].includes(name)));
        const described = new Set;

        assert.equal(answer.status, 400, detail);

        for (const verb of ["get", "post", "delete"]) {
            for (const i in api.paths[path][verb]?.parameters ?? []) {
                const { at } = find("paths", path, verb, "parameters", i);

                if (at.in === "query") {
                    described.add(at.name);
                }
            }
        }

        assert.deepEqual([...described].sort(), allowed.sort());
    });
}
