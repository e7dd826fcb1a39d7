//! Stores that were tampered with: files that are gone, empty or in the way, and indexes that lie. Each is found by
//! `store verify`, and no other command passes something else off as a page.

use std::path::{Path, PathBuf};
use std::process::Command;

use ringcrawl_warc::read::find_segments;
use ringcrawl_warc::verify::index_path;
use ringcrawl_web::ModelConfig;

use crate::rig::program::{Ended, run};
use crate::rig::web::{self, web};
use ringcrawl_base::TempFolder;

/// A crawl with one closed segment and its index, and the seed's URL.
fn crawled(name: &str) -> (TempFolder, String, PathBuf, PathBuf) {
    let folder = TempFolder::new(name);
    let (web, seed) = web(ModelConfig { sites: 2, pages: 20, ..ModelConfig::default() });
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, "crawl.shards = 1"));
    run(&["crawl", &seed, "--dir", &dir, "-c", &config]).expect(0);
    let segment = find_segments(Path::new(&dir)).expect("a crawl").remove(0);
    let index = index_path(&segment).expect("a closed segment");
    (folder, seed, segment, index)
}

/// Runs `store verify`, which must find `problems`, each a path and what is wrong, and nothing else.
#[track_caller]
fn verify(folder: &TempFolder, problems: &[(&Path, &str)]) -> Ended {
    let ended = run(&["store", "verify", &folder.at("crawl")]).expect(i32::from(!problems.is_empty()));
    let lines: Vec<String> = problems.iter().map(|(path, what)| format!("{}: {what}", path.display())).collect();
    assert_eq!(ended.out.lines().collect::<Vec<&str>>(), lines);
    let count = if problems.len() == 1 { "1 problem".to_owned() } else { format!("{} problems", problems.len()) };
    assert!(ended.err.ends_with(&format!("checked: {count}\n")), "{}", ended.err);
    ended
}

#[test]
fn segments_and_indexes_that_are_gone() {
    let (folder, _, segment, index) = crawled("gone");
    let aside = folder.path().join("aside");
    verify(&folder, &[]).says(&["1 file, "]);
    std::fs::rename(&segment, &aside).expect("a file");
    verify(&folder, &[(&index, "-: -: index: there is no segment beside it")]).says(&["no segments yet"]);
    std::fs::rename(&aside, &segment).expect("a file");
    std::fs::rename(&index, &aside).expect("a file");
    verify(&folder, &[(&index, "-: -: index: there is none")]);
    let ended = run(&["store", "verify", segment.to_str().expect("UTF-8")]).expect(1);
    assert!(ended.out.contains("index: there is none"), "{}", ended.out);
    std::os::unix::fs::symlink("nowhere", &index).expect("a link");
    verify(&folder, &[(&index, "-: -: index: a link that leads nowhere")]);
    std::fs::remove_file(&index).expect("a file");
    std::fs::create_dir(&index).expect("a folder");
    verify(&folder, &[(&index, "-: -: index: no file")]);
    std::fs::remove_dir(&index).expect("a folder");
    std::fs::rename(&aside, &index).expect("a file");
    verify(&folder, &[]);
}

#[test]
fn what_lies_in_a_segment_s_place() {
    let (folder, ..) = crawled("place");
    let at = |name: &str| folder.path().join("crawl/shard-00/segments").join(name);
    std::fs::create_dir(at("a.warc.zst")).expect("a folder");
    let made = Command::new("mkfifo").arg(at("b.warc.zst")).status();
    assert!(made.expect("mkfifo").success());
    let problem = "-: -: no file, and it has a segment's name";
    verify(&folder, &[(&at("a.warc.zst"), problem), (&at("b.warc.zst"), problem)]);
}

#[test]
fn lines_of_an_index_are_called_lines_of_the_index() {
    let (folder, _, segment, index) = crawled("lines");
    let text = std::fs::read_to_string(&index).expect("an index");
    std::fs::write(&index, format!("{text}zzz\n")).expect("an index");
    let number = text.lines().count() + 1;
    verify(&folder, &[(&index, &format!("line {number}: -: index: line is malformed"))]);
    // Without its records, each line is one of nothing; the first in the order of the file.
    std::fs::write(&index, text).expect("an index");
    std::fs::write(&segment, "").expect("a segment");
    let ended = run(&["store", "verify", &folder.at("crawl")]).expect(1);
    let first = format!("{}: line 1: -: index: no capture at offset ", index.display());
    assert!(ended.out.starts_with(&first), "{}", ended.out);
}

#[test]
fn an_index_that_leads_to_nothing_or_to_another_page() {
    let (folder, seed, segment, index) = crawled("astray");
    let (dir, bytes) = (folder.at("crawl"), std::fs::read(&segment).expect("a segment"));
    assert!(!run(&["store", "cat", &dir, &seed]).expect(0).out.is_empty());
    std::fs::write(&segment, "").expect("a segment");
    let ended = run(&["store", "cat", &dir, &seed]).expect(1);
    assert!(ended.out.is_empty(), "{}", ended.out);
    ended.says(&[&seed, "the segment ends before that"]);
    run(&["store", "ls", &dir]).expect(1).says(&[segment.to_str().expect("UTF-8"), "has no record"]);
    std::fs::write(&segment, bytes).expect("a segment");
    // Every line is given the offset of the record before it in the list.
    let text = std::fs::read_to_string(&index).expect("an index");
    let offset = |line: &str| {
        let (_, rest) = line.split_once("\"offset\":\"").expect("an offset");
        rest.split('"').next().expect("its end").to_owned()
    };
    let offsets: Vec<String> = text.lines().map(offset).collect();
    let turned = text.lines().zip(offsets.iter().cycle().skip(1)).map(|(line, other)| {
        let own = format!("\"offset\":\"{}\"", offset(line));
        line.replace(&own, &format!("\"offset\":\"{other}\"")) + "\n"
    });
    std::fs::write(&index, turned.collect::<String>()).expect("an index");
    for arguments in [&["store", "cat", &dir, &seed][..], &["store", "cat", "--record", &dir, &seed]] {
        let ended = run(arguments).expect(1);
        assert!(ended.out.is_empty(), "another page's bytes: {}", ended.out);
        ended.says(&[&format!("the index has {seed} here, and there is a response of http"), "store verify"]);
    }
}

#[test]
fn a_folder_that_cannot_be_read_is_named() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;

    use crate::rig::program::{Process, copy_program, is_root};
    if !is_root() {
        crate::rig::skip("only root can run the program as another user");
        return;
    }
    let folder = TempFolder::new("unread");
    for (path, mode) in [("", 0o755), ("open", 0o755), ("open/closed", 0o700)] {
        std::fs::create_dir_all(folder.at(path)).expect("a folder");
        std::fs::set_permissions(folder.at(path), std::fs::Permissions::from_mode(mode)).expect("permissions");
    }
    let program = folder.at("ringcrawl");
    copy_program(&program);
    let mut command = Command::new(&program);
    command.args(["store", "ls", &folder.at("open")]).uid(65_534).gid(65_534).current_dir("/");
    let closed = format!("{}: Permission denied", folder.at("open/closed"));
    Process::start(&mut command).end().expect(2).says(&[&closed]);
}

/// Files of other tools: a body that is in the chunked coding as it came, one whose field alone is left, one that was cut, and one in a
/// content coding within. What is printed and counted is the body; what is exported is what was stored.
#[test]
fn bodies_that_other_tools_store_in_the_chunked_coding() {
    use std::io::Write as _;
    let folder = TempFolder::new("foreign-chunked");
    let gzip = |text: &[u8]| {
        let mut file = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        file.write_all(text).and_then(|()| file.finish()).expect("in memory")
    };
    let chunked = |body: &[u8], piece: usize| -> Vec<u8> {
        let chunk = |piece: &[u8]| [format!("{:x};x=y\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
        body.chunks(piece).map(chunk).chain([b"0\r\nExpires: 0\r\n\r\n".to_vec()]).collect::<Vec<_>>().concat()
    };
    let page = b"<!doctype html>\n<p>A page, in pieces.".to_vec();
    let cut = [b"a\r\n0123456789\r\nff\r\n", &page[..]].concat();
    let cases: [(&str, &str, Vec<u8>, Vec<u8>); 6] = [
        ("whole", "Transfer-Encoding: chunked", chunked(&page, 7), page.clone()),
        ("removed", "Transfer-Encoding: chunked", page.clone(), page.clone()),
        ("gzip", "Transfer-Encoding: chunked\r\nContent-Encoding: gzip", chunked(&gzip(&page), 20), page.clone()),
        ("cut", "transfer-encoding: Chunked", cut, [b"0123456789", &page[..]].concat()),
        ("list", "Transfer-Encoding: chunked", b"10\r\n20\r\n30\r\n".to_vec(), b"10\r\n20\r\n30\r\n".to_vec()),
        ("no-field", "X-Other: chunked", chunked(&page, 7), chunked(&page, 7)),
    ];
    let mut warc = Vec::new();
    for (index, (name, fields, stored, _)) in cases.iter().enumerate() {
        let http =
            [format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{fields}\r\n\r\n").as_bytes(), stored].concat();
        let head = format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-00000000000{index}>\r\n\
             WARC-Date: 2026-11-21T08:40:3{index}Z\r\nWARC-Target-URI: http://a.test/{name}\r\n\
             Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n",
            http.len()
        );
        warc.extend([head.as_bytes(), &http, b"\r\n\r\n"].concat());
    }
    let file = folder.at("foreign.warc");
    std::fs::write(&file, &warc).expect("a file");
    let listed = run(&["store", "ls", &file]).expect(0).out;
    let out = folder.at("exported");
    run(&["store", "export", &file, "--to", "warc.gz", "--out", &out]).expect(0);
    let exported = format!("{out}/foreign.warc.gz");
    assert_eq!(run(&["store", "ls", &exported]).expect(0).out, listed);
    let digests = |path: &str| run(&["store", "ls", "--digests", path]).expect(0).out;
    assert_eq!(digests(&file), digests(&exported));
    for ((name, _, stored, body), line) in cases.iter().zip(listed.lines()) {
        let url = format!("http://a.test/{name}");
        // What is within a content coding is as long as it is stored.
        let bytes = if *name == "gzip" { gzip(&page).len() } else { body.len() };
        assert_eq!(line.split('\t').skip(3).collect::<Vec<_>>(), [bytes.to_string(), url.clone()], "{line}");
        for path in [&file, &exported] {
            assert_eq!(run(&["store", "cat", path, &url]).expect(0).out_bytes, *body, "{name}");
            assert_eq!(run(&["store", "cat", "--as-stored", path, &url]).expect(0).out_bytes, *stored, "{name}");
        }
    }
}
