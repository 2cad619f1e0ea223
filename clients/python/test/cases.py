"""Does what clients/cases.json says: a job a line in, its results out.

    python3 test/cases.py [--async] < jobs
"""

import asyncio
import dataclasses
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from urlstore import Batch, NoAnswer, Problem, Store, UrlStoreError  # noqa


def plain(value):
    """What a call returned, as JSON."""
    if isinstance(value, Batch):
        return dict(vars(value), items=plain(value.items),
                    to_fetch=[item.id for item in value.to_fetch()])
    if isinstance(value, list):
        return [plain(v) for v in value]
    if dataclasses.is_dataclass(value):
        return dataclasses.asdict(value)
    if hasattr(value, "_asdict"):
        return value._asdict()
    return value


def fault(e):
    error = {"tries": e.tries, "done": plain(e.done), "unsure": e.unsure,
             "text": str(e)}
    if isinstance(e, Problem):
        error.update(kind="problem", status=e.status, document=e.document,
                     retry_after=e.retry_after)
    else:
        assert isinstance(e, NoAnswer)
        error.update(kind="no-answer")
    return {"error": error}


def arguments(call):
    """The positional and the named arguments of a call, and its name."""
    a = dict(call)
    do = a.pop("do")
    first = [a.pop(k) for k in ("url", "urls", "id", "ids", "path", "name",
                                "items", "from") if k in a]
    a.update(a.pop("args", {}))
    return do, first, a


def run(job):
    results = []
    with Store(job["address"], **job["options"]) as store:
        for call in job["calls"]:
            do, first, a = arguments(call)
            try:
                if do == "pause":
                    results.append(time.sleep(a["seconds"]))
                elif do == "add_stream":
                    steps = []
                    items = list(store.add_stream(*first, **a,
                                                  progress=steps.append))
                    results.append({"items": plain(items),
                                    "progress": plain(steps)})
                elif do == "feed":
                    results.append(plain(list(store.feed(*first, **a))))
                else:
                    results.append(plain(getattr(store, do)(*first, **a)))
            except UrlStoreError as e:
                results.append(fault(e))
    return results


async def run_async(job):
    from urlstore.aio import AsyncStore
    results = []
    async with AsyncStore(job["address"], **job["options"]) as store:
        for call in job["calls"]:
            do, first, a = arguments(call)
            try:
                if do == "pause":
                    results.append(await asyncio.sleep(a["seconds"]))
                elif do == "add_stream":
                    steps = []
                    items = [item async for item in store.add_stream(
                        *first, **a, progress=steps.append)]
                    results.append({"items": plain(items),
                                    "progress": plain(steps)})
                elif do == "feed":
                    results.append(plain([entry async for entry in
                                          store.feed(*first, **a)]))
                else:
                    results.append(plain(
                        await getattr(store, do)(*first, **a)))
            except UrlStoreError as e:
                results.append(fault(e))
    return results


def main():
    for line in sys.stdin:
        job = json.loads(line)
        start = time.monotonic()
        if "--async" in sys.argv:
            results = asyncio.run(run_async(job))
        else:
            results = run(job)
        print(json.dumps({"name": job["name"], "results": results,
                          "seconds": time.monotonic() - start}), flush=True)


main()
