<?php
// php batch.php STORE < links: prints the URLs that are new

$answer = file_get_contents("$argv[1]/add?only=new", false,
    stream_context_create(["http" => ["method" => "POST", "timeout" => 30,
        "content" => stream_get_contents(STDIN), "header" => [
            "Content-Type: text/plain", "Accept: text/plain",
            'Idempotency-Key: "' . bin2hex(random_bytes(16)) . '"']]]));

if ($answer === false) {        // refused, or no answer; PHP has warned
    exit(1);
}

foreach (preg_split('/\n/', $answer, 0, PREG_SPLIT_NO_EMPTY) as $line) {
    [$id, $status, $url] = explode("\t", $line);
    if ($status === "new") {
        echo "$id $url\n";
    }
}
