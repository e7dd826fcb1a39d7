//! How to serve the files: for nginx and for Caddy, and the directory's fields for any other server.
//!
//! Decides: each file is served at one path, with its media type, and nothing else of the folder is. The same snippet
//! works for all hosts named in it. A directory whose bytes change in transit has another digest, so no coding is
//! applied.
//! Limits: paths and values need no quoting but quotes (`publication` ensures it).

use std::fmt::Write as _;

use super::directory::Directory;
use super::publication::{ADDRESSES, CARD, DIRECTORY, DirectoryPlace, Facts, PAGE};
use ringcrawl_url::Url;

/// A file that is served.
pub(super) struct Served<'a> {
    /// Below the host.
    path: String,
    /// Below the folder.
    file: &'static str,
    /// Fields of its response, Content-Type first.
    fields: Vec<(&'a str, &'a str)>,
}

/// Which file is served where.
pub(super) fn served<'a>(facts: &Facts<'_>, directory: Option<(&DirectoryPlace, &'a Directory)>) -> Vec<Served<'a>> {
    let path = |url: &str| Url::parse(url).map(|url| url.path_and_query().to_owned()).unwrap_or_default();
    let one = |path: String, file, media_type| Served { path, file, fields: vec![("Content-Type", media_type)] };
    let mut served = vec![
        one(facts.places.page.path_and_query().to_owned(), PAGE, "text/html; charset=utf-8"),
        one(path(&facts.places.card), CARD, "application/json"),
    ];
    if facts.has_addresses() {
        served.push(one(path(&facts.places.addresses), ADDRESSES, "application/json"));
    }
    if let Some((place, directory)) = directory {
        let fields = directory.fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        served.push(Served { path: place.path.clone(), file: DIRECTORY, fields });
    }
    served
}

/// For the `server` of nginx.
pub(super) fn nginx(served: &[Served<'_>], folder: &str) -> String {
    let mut text =
        head("include it in the server block of each host that is named in the configuration, then reload nginx");
    for Served { path, file, fields } in served {
        let _ = writeln!(text, "location = {path} {{");
        let _ = writeln!(text, "    root \"{folder}\";");
        let _ = writeln!(text, "    try_files /{file} =404;");
        let _ = writeln!(text, "    types {{ }}");
        for (index, (name, value)) in fields.iter().enumerate() {
            let _ = match index {
                0 => writeln!(text, "    default_type \"{value}\";"),
                _ => writeln!(text, "    add_header {name} '{value}';"),
            };
        }
        if *file == DIRECTORY {
            text.push_str("    gzip off;\n");
        }
        text.push_str("}\n");
    }
    text
}

/// For the site block of Caddy.
pub(super) fn caddy(served: &[Served<'_>], folder: &str) -> String {
    let mut text =
        head("import it in the site block of each host that is named in the configuration, then reload Caddy");
    for Served { path, file, fields } in served {
        let _ = writeln!(text, "handle {path} {{\n\troot * \"{folder}\"\n\trewrite * /{file}");
        for (name, value) in fields {
            let _ = writeln!(text, "\theader {name} `{value}`");
        }
        text.push_str("\tfile_server\n}\n");
        if *file == DIRECTORY {
            // Not every version respects no-transform. This runs before any encoder, wherever it stands in the block.
            let _ = writeln!(text, "request_header {path} -Accept-Encoding");
        }
    }
    text
}

/// The fields of the directory's response, one per line.
pub(super) fn header_lines(directory: &Directory) -> String {
    directory.fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
}

fn head(how: &str) -> String {
    let days = super::directory::LIFETIME.as_secs() / 86_400;
    format!(
        "# Made by `ringcrawl identity`: {how}.\n# Signatures in it expire {days} days after it was made: make it anew every day.\n"
    )
}
