//! URLs that are over and are asked for again by choice: by status, by cause, by their beginning. Judged by the server's log.

use ringcrawl_base::TempFolder;

use super::seeds::{config, names_server, page};
use crate::rig::program::run;

#[test]
fn what_is_chosen_is_asked_for_again_and_nothing_else() {
    let folder = TempFolder::new("asked-again");
    let (addr, asked) = names_server(|place, _| match place {
        "a.test/401" => ("401 Unauthorized".to_owned(), String::new()),
        "a.test/500" => ("500 Internal Server Error".to_owned(), String::new()),
        "a.test/404" => ("404 Not Found".to_owned(), String::new()),
        "a.test/long" => page(&"long ".repeat(50_000)),
        _ => page("a page"),
    });
    let port = addr.port();
    let config =
        config(&folder, "politeness.retries_max = 0\nfetch.body_bytes_max = \"100KiB\"\nscope.follow = \"seed-hosts\"");
    let urls = [
        "a.test/401",
        "a.test/500",
        "a.test/404",
        "a.test/docs/1",
        "a.test/docs/2",
        "a.test/long",
        "b.test/docs/3",
        "c.none/",
    ];
    let urls = urls.map(|place| format!("http://{}", place.replacen('/', &format!(":{port}/"), 1)));
    let dir = folder.at("crawl");
    let first: Vec<&str> =
        ["crawl", "--dir", &dir, "-c", &config].into_iter().chain(urls.iter().map(String::as_str)).collect();
    run(&first).expect(0);
    let before = run(&["urls", &dir]).expect(0).out;
    let again = |choices: &[&str], count: usize| -> Vec<String> {
        asked.lock().expect("a log").clear();
        let ended = run(&[&["crawl", "--dir", &dir, "-c", &config][..], choices].concat()).expect(0);
        let told = ended.err.lines().filter(|line| line.ends_with(" asked for again"));
        let counts = told.filter_map(|line| line.split(' ').find_map(|word| word.parse::<usize>().ok()));
        assert_eq!(counts.sum::<usize>(), count, "{}", ended.err);
        let mut places: Vec<String> =
            asked.lock().expect("a log").iter().filter(|place| !place.ends_with("/robots.txt")).cloned().collect();
        places.sort();
        places
    };
    assert_eq!(again(&[], 0), [""; 0]);
    assert_eq!(again(&["--retry", "status=401,5xx"], 2), ["a.test/401", "a.test/500"]);
    assert_eq!(again(&["--retry", "cause=dns-not-found"], 1), [""; 0]);
    assert_eq!(again(&["--retry", "cause=cut"], 1), ["a.test/long"]);
    let docs = format!("prefix=http://a.test:{port}/docs/");
    assert_eq!(again(&["--retry", &docs], 2), ["a.test/docs/1", "a.test/docs/2"]);
    let both = ["--retry", &docs, "--retry", "status=404", "--retry-failed"];
    assert_eq!(again(&both, 4), ["a.test/404", "a.test/docs/1", "a.test/docs/2"]);
    // All of it is over, as before.
    let columns = |text: &str| -> Vec<String> {
        let mut lines: Vec<String> = text
            .lines()
            .map(|line| {
                line.split('\t')
                    .enumerate()
                    .filter(|(column, _)| *column != 3)
                    .map(|(_, text)| text)
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect();
        lines.sort();
        lines
    };
    assert_eq!(columns(&run(&["urls", &dir]).expect(0).out), columns(&before));
    // What is known of them is listed by the same words.
    let listed =
        |arguments: &[&str]| -> usize { run(&[&["urls", &dir], arguments].concat()).expect(0).out.lines().count() };
    assert_eq!(listed(&["--cause", "401,5xx"]), 2);
    assert_eq!((listed(&["--cause", "dns-not-found"]), listed(&["--cause", "cut"])), (1, 1));
    assert_eq!(listed(&["--prefix", &format!("http://a.test:{port}/docs/")]), 2);
    assert_eq!(listed(&["--prefix", &format!("http://a.test:{port}/docs/"), "--cause", "404"]), 0);
    // And what is stored of them is exported alone.
    let out = folder.at("exported");
    run(&["store", "export", &dir, "--to", "warc.gz", "--out", &out, "--host", "b.test"]).expect(0);
    let exported: Vec<String> = std::fs::read_dir(&out)
        .expect("a folder")
        .map(|file| file.expect("a file").path().display().to_string())
        .filter(|path| path.ends_with(".warc.gz"))
        .collect();
    let mut found: Vec<String> = Vec::new();
    for path in &exported {
        let listed = run(&["store", "ls", "--records", path]).out;
        found.extend(listed.lines().filter_map(|line| Some(line.split('\t').nth(5)?.to_owned())));
    }
    assert!(found.iter().any(|url| url.ends_with("/docs/3")), "{found:?}");
    assert!(found.iter().all(|url| !url.contains("a.test") && !url.contains("c.none")), "{found:?}");
}

#[test]
fn a_choice_that_is_none_is_refused_with_the_nearest() {
    let folder = TempFolder::new("no-choice");
    for (choice, expected) in [
        (
            "cause=dns-fail",
            "there is no cause \"dns-fail\" (did you mean dns-failed?); expected a name as `ringcrawl urls` shows it",
        ),
        ("status=4x", "\"4x\" is no status; expected one such as 404, or a class such as 5xx"),
        (
            "state=404",
            "there is no choice \"state\" (did you mean status?); expected status=401,5xx, cause=NAME or prefix=URL, each also a list with commas",
        ),
    ] {
        let ended = run(&["crawl", "--dir", &folder.at("crawl"), "http://127.0.0.1:9/", "--retry", choice]).expect(2);
        assert_eq!(ended.err, format!("ringcrawl: --retry: {expected}\n"));
        assert!(!std::path::Path::new(&folder.at("crawl")).exists());
    }
    run(&["urls", &folder.at(""), "--cause", "conect-refused"]).expect(2).says(&["(did you mean connect-refused?)"]);
}
