// mono batch.exe STORE < links: prints the URLs that are new

using System;
using System.Net.Http;

class Batch
{
    static void Main(string[] args)
    {
        var post = new HttpRequestMessage(HttpMethod.Post,
            args[0] + "/add?only=new");
        post.Content = new StringContent(Console.In.ReadToEnd());
        post.Headers.Add("Accept", "text/plain");
        post.Headers.Add("Idempotency-Key", "\"" + Guid.NewGuid() + "\"");

        var answer = new HttpClient().SendAsync(post).Result;
        answer.EnsureSuccessStatusCode();       // throws unless it is 2xx
        var lines = answer.Content.ReadAsStringAsync().Result.Split('\n');

        foreach (var line in lines) {
            var part = line.Split('\t');        // id, status, URL
            if (part.Length > 2 && part[1] == "new") {
                Console.WriteLine(part[0] + " " + part[2]);
            }
        }
    }
}
