// batch HOST:PORT < links: prints the URLs that are new.  The standard library
// has no HTTP; HTTP/1.0 needs some lines of it.

use std::io::{Read, Write};
use std::net::TcpStream;

fn main() -> std::io::Result<()> {
    let mut links = String::new();
    std::io::stdin().read_to_string(&mut links)?;

    let address = std::env::args().nth(1).expect("HOST:PORT");
    let mut store = TcpStream::connect(&address)?;
    write!(store, "POST /add?only=new HTTP/1.0\r\nHost: {}\r\n\
        Content-Type: text/plain\r\nAccept: text/plain\r\n\
        Content-Length: {}\r\n\r\n{}", address, links.len(), links)?;

    let mut answer = String::new();
    store.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    let first = head.lines().next().unwrap_or("");
    assert!(first.contains(" 200"), "{}", first);

    for line in body.lines() {
        let mut part = line.split('\t');
        if let (Some(id), Some("new"), Some(url)) =
            (part.next(), part.next(), part.next()) {
            println!("{} {}", id, url);
        }
    }
    Ok(())
}
