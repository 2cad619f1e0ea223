
/*
 * What the usual structures in memory take for the same URLs: one a line on
 * standard input, all different.
 *
 *     build/bench/structures < URLS
 *
 * One line each: name, exact, id -> URL, takes new URLs, bytes per URL
 * (what malloc() gives out, but for the list of URLs itself), ns of CPU time of
 * an insert, of a hit and of a miss in random order.
 */


#include <Judy.h>
#include <hat-trie/hat-trie.h>
#include <malloc.h>
#include <marisa.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>


static std::vector<std::string>  urls, absent;
static std::vector<uint32_t>     order;


static size_t
allocated()
{
    struct mallinfo2  m = mallinfo2();

    return m.uordblks + m.hblkhd;
}


static double
now()
{
    struct timespec  ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);

    return ts.tv_sec * 1e9 + ts.tv_nsec;
}


static double
ns(std::function<void()> f)
{
    double  start = now();

    f();

    return (now() - start) / urls.size();
}


static void
report(const char *name, const char *back, const char *grows, size_t bytes,
    double insert, double hit, double miss)
{
    printf("%s\tyes\t%s\t%s\t%.1f\t%.0f\t%.0f\t%.0f\n", name, back, grows,
           (double) bytes / urls.size(), insert, hit, miss);
    fflush(stdout);
}


/* a wrong answer would make the figures worthless */

static void
expect(bool right, const char *what)
{
    if (!right) {
        fprintf(stderr, "structures: wrong answer of %s\n", what);
        exit(1);
    }
}


static void
hash_map()
{
    size_t                                     before = allocated();
    double                                     insert, hit, miss;
    std::unordered_map<std::string, uint64_t>  map;
    std::vector<const std::string *>           back;

    insert = ns([&] {
        for (auto &u : urls) {
            auto  r = map.emplace(u, map.size());
            back.push_back(&r.first->first);
        }
    });

    hit = ns([&] {
        for (auto i : order) {
            expect(map.find(urls[i])->second == i, "unordered_map");
        }
    });

    miss = ns([&] {
        for (auto i : order) {
            expect(map.find(absent[i]) == map.end(), "unordered_map");
        }
    });

    report("std::unordered_map and a vector back", "yes", "yes",
           allocated() - before, insert, hit, miss);
}


static void
judy()
{
    size_t    before = allocated();
    double    insert, hit, miss;
    Pvoid_t   array = NULL;
    uint64_t  n = 0;

    insert = ns([&] {
        for (auto &u : urls) {
            PPvoid_t  p = JudySLIns(&array, (const uint8_t *) u.c_str(), NULL);
            *(uint64_t *) p = n++;
        }
    });

    hit = ns([&] {
        for (auto i : order) {
            PPvoid_t  p = JudySLGet(array, (const uint8_t *) urls[i].c_str(),
                                    NULL);
            expect(p && *(uint64_t *) p == i, "JudySL");
        }
    });

    miss = ns([&] {
        for (auto i : order) {
            expect(!JudySLGet(array, (const uint8_t *) absent[i].c_str(),
                              NULL), "JudySL");
        }
    });

    report("JudySL", "no", "yes", allocated() - before, insert, hit, miss);
    JudySLFreeArray(&array, NULL);
}


static void
hat_trie()
{
    size_t      before = allocated();
    double      insert, hit, miss;
    hattrie_t  *trie = hattrie_create();
    uint64_t    n = 0;

    insert = ns([&] {
        for (auto &u : urls) {
            *hattrie_get(trie, u.data(), u.size()) = n++;
        }
    });

    hit = ns([&] {
        for (auto i : order) {
            value_t  *p = hattrie_tryget(trie, urls[i].data(), urls[i].size());
            expect(p && *p == i, "HAT-trie");
        }
    });

    miss = ns([&] {
        for (auto i : order) {
            expect(!hattrie_tryget(trie, absent[i].data(), absent[i].size()),
                   "HAT-trie");
        }
    });

    report("HAT-trie", "no", "yes", allocated() - before, insert, hit, miss);
    hattrie_free(trie);
}


/* its ids are its own, not those of first sight */

static void
trie()
{
    size_t         before;
    double         insert, hit, miss;
    marisa::Trie   t;
    marisa::Agent  agent;

    before = allocated();

    insert = ns([&] {
        marisa::Keyset  keys;

        for (auto &u : urls) {
            keys.push_back(u.data(), u.size());
        }

        t.build(keys, 3);
    });

    hit = ns([&] {
        for (auto i : order) {
            agent.set_query(urls[i].data(), urls[i].size());
            expect(t.lookup(agent), "marisa");
        }
    });

    miss = ns([&] {
        for (auto i : order) {
            agent.set_query(absent[i].data(), absent[i].size());
            expect(!t.lookup(agent), "marisa");
        }
    });

    report("marisa-trie (static, own numbering)", "yes", "no",
           allocated() - before, insert, hit, miss);
}


int
main()
{
    std::string   line;
    std::mt19937  random(1);

    while (std::getline(std::cin, line)) {
        urls.push_back(line);

        /* a near miss; no canonical URL has this character */

        absent.push_back(line + "\x7f");
        order.push_back(order.size());
    }

    if (urls.empty()) {
        fprintf(stderr, "structures: no URLs\n");
        return 1;
    }

    std::shuffle(order.begin(), order.end(), random);

    hash_map();
    judy();
    hat_trie();
    trie();

    return 0;
}
