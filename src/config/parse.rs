//! From the text of a file to a configuration, or to the list of everything that is wrong with it.
//!
//! Decides: all mistakes are reported at once, because an operator who sees one at a time restarts ten times. The
//! TOML parser stops at its first error, so the offending line is blanked and the rest is parsed again; the offsets
//! stay those of the operator's text. Blanking a table header also blanks its table: otherwise its keys would be
//! attributed to the table before it.
//!
//! Invariants: errors are in file order; a configuration is returned only when there are none; rules between keys are
//! checked only for keys whose own values are right.
//! Limits: files of `FILE_BYTES_MAX`, `ERRORS_MAX` errors, at most `SYNTAX_ERRORS_MAX` of them syntax errors;
//! toml_edit limits nesting.
//! Leaves to others: what a key takes (`kind`), rules between keys (`check`).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml_edit::{Document, Item, TableLike};

use super::check::Clash;
use super::error::ConfigError;
use super::keys::{Config, ConfigKey, TABLES, Table};
use super::nearest::nearest;

/// The file format version that this program reads.
pub(super) const VERSION: i64 = 1;
/// Longest file: enough for a hundred thousand fixed names.
pub(super) const FILE_BYTES_MAX: usize = 16 << 20;
/// Syntax errors reported for one file; each costs another parse.
const SYNTAX_ERRORS_MAX: usize = 32;

/// Errors reported for one file: more would not be read, and the wrong file may hold a million.
const ERRORS_MAX: usize = 200;

/// Reads `text` and checks `rules` on the result.
pub(super) fn parse(
    text: &str,
    file: &str,
    rules: impl Fn(&mut Config) -> Vec<Clash>,
) -> Result<Config, Vec<ConfigError>> {
    let mut reader = Reader {
        file,
        text,
        lines: line_starts(text),
        config: Config::default(),
        places: BTreeMap::new(),
        wrong: BTreeSet::new(),
        errors: Vec::new(),
        untold: 0,
    };
    if text.len() > FILE_BYTES_MAX {
        reader.blame(None, "", format!("{} bytes; expected at most {FILE_BYTES_MAX}", text.len()));
        return Err(reader.errors);
    }
    if let Some(document) = reader.syntax() {
        reader.version(document.as_table());
        reader.tables(document.as_table());
        reader.rules(rules);
    }
    if reader.errors.is_empty() {
        return Ok(reader.config);
    }
    reader.errors.sort_by_key(|error| (error.line, error.column));
    if reader.untold > 0 {
        let message = format!("{} more errors that are not shown", reader.untold);
        reader.errors.push(ConfigError { file: file.to_owned(), line: 0, column: 0, key: String::new(), message });
    }
    Err(reader.errors)
}

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    /// Offsets of the first byte of each line.
    lines: Vec<usize>,
    config: Config,
    /// Where keys stand in the file, by path.
    places: BTreeMap<String, Range<usize>>,
    /// Keys whose values are wrong, by path.
    wrong: BTreeSet<String>,
    errors: Vec<ConfigError>,
    /// Errors beyond `ERRORS_MAX`.
    untold: usize,
}

impl Reader<'_> {
    /// Parses, blanking what is not TOML; `None` when too much of it is not.
    fn syntax(&mut self) -> Option<Document<String>> {
        let mut text = self.text.to_owned();
        for _ in 0..SYNTAX_ERRORS_MAX {
            let error = match Document::parse(text.clone()) {
                Ok(document) => return Some(document),
                Err(error) => error,
            };
            // At the end of the text, the mistake is on the last line that is not blank.
            let end = text.trim_end().len();
            let at = error.span().map_or(end, |span| span.start).min(end.saturating_sub(1));
            self.blame(Some(at..at), "", syntax_message(error.message(), text.get(at..).unwrap_or_default()));
            let blanked = self.blank(&text, at)?;
            text = blanked;
        }
        self.blame(None, "", format!("more than {SYNTAX_ERRORS_MAX} syntax errors; the rest is not shown"));
        None
    }

    /// `text` with the line of byte `at`, or the table that this line opens, replaced by as many spaces; `None` when
    /// there was nothing to remove.
    fn blank(&self, text: &str, at: usize) -> Option<String> {
        let index = self.lines.partition_point(|start| *start <= at).saturating_sub(1);
        let start = self.lines.get(index).copied()?;
        let opens =
            |start: usize| text.get(start..).is_some_and(|rest| rest.trim_start_matches([' ', '\t']).starts_with('['));
        let mut rest = self.lines.iter().skip(index + 1).copied();
        let end = if opens(start) { rest.find(|start| opens(*start)) } else { rest.next() }.unwrap_or(text.len());
        let (before, line, after) = (text.get(..start)?, text.get(start..end)?, text.get(end..)?);
        if line.trim().is_empty() {
            return None;
        }
        let spaces: String = line.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect();
        Some([before, &spaces, after].concat())
    }

    /// Checks that the file has the version read here. It is read as this version in any case: a wrong number is more
    /// often a typing error than a newer version.
    fn version(&mut self, root: &dyn TableLike) {
        let Some(item) = root.get("version").filter(|item| item.as_integer() != Some(VERSION)) else { return };
        let message = match item.as_integer() {
            Some(other) => format!("config is of version {other}, this ringcrawl reads version {VERSION}"),
            None => format!("not a number; expected {VERSION}"),
        };
        self.blame(item.span(), "version", message);
    }

    fn tables(&mut self, root: &dyn TableLike) {
        for (name, item) in root.iter().filter(|(name, _)| *name != "version") {
            let span = item.span().or_else(|| key_span(root, name));
            match (TABLES.iter().find(|table| table.name == name), item.as_table_like()) {
                (Some(table), Some(entries)) => self.keys(table, entries),
                // The value is not shown: it may be a secret.
                (Some(_), None) => self.blame(span, name, format!("not a table; expected [{name}]")),
                (None, _) => {
                    let message = unknown("table or key", name, TABLES.iter().map(|table| table.name));
                    self.blame(key_span(root, name).or(span), &shown(name), message);
                }
            }
        }
    }

    fn keys(&mut self, table: &Table, entries: &dyn TableLike) {
        for (name, item) in entries.iter() {
            match table.keys.iter().find(|key| key.name == name) {
                Some(key) => self.value(key, item, key_span(entries, name)),
                None => {
                    let message = unknown("key", name, table.keys.iter().map(|key| key.name));
                    let span = key_span(entries, name).or_else(|| item.span());
                    self.blame(span, &format!("{}.{}", table.name, shown(name)), message);
                }
            }
        }
    }

    fn value(&mut self, key: &ConfigKey, item: &Item, key_span: Option<Range<usize>>) {
        let path = key.path();
        let span = item.span().or(key_span);
        match key.kind.read(item) {
            Ok(value) => {
                // The range is within the field's type: a test writes both ends of every range.
                let fits = (key.put)(&mut self.config, value).is_some();
                assert!(fits, "the range of {path} is wider than its field");
                if let Some(span) = span {
                    self.places.insert(path, span);
                }
            }
            Err(faults) => {
                for fault in faults {
                    let name = fault.name.map_or(path.clone(), |name| format!("{path}.{:?}", shown(&name)));
                    self.blame(fault.span.or_else(|| span.clone()), &name, fault.message);
                }
                self.wrong.insert(path);
            }
        }
    }

    fn rules(&mut self, rules: impl Fn(&mut Config) -> Vec<Clash>) {
        for clash in rules(&mut self.config) {
            if clash.keys.iter().any(|key| self.wrong.contains(*key)) {
                continue;
            }
            // A default is never at fault: the mistake is reported at the key that the operator wrote.
            let [low, high] = clash.keys;
            let [at_low, at_high] = clash.messages;
            let low_stands = self.places.contains_key(low) || !self.places.contains_key(high);
            let (key, message) = if low_stands { (low, at_low) } else { (high, at_high) };
            self.blame(self.places.get(key).cloned(), key, message);
        }
    }

    fn blame(&mut self, span: Option<Range<usize>>, key: &str, message: String) {
        if self.errors.len() >= ERRORS_MAX {
            self.untold += 1;
            return;
        }
        let (line, column) = span.map_or((0, 0), |span| self.place(span.start));
        self.errors.push(ConfigError { file: self.file.to_owned(), line, column, key: key.to_owned(), message });
    }

    /// Line and column, from 1, of a byte of the text.
    fn place(&self, at: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|start| *start <= at).max(1);
        let start = self.lines.get(line - 1).copied().unwrap_or(0);
        let column = self.text.get(start..at).map_or(1, |before| before.chars().count() + 1);
        (line, column)
    }
}

/// Rewords toml_edit's message; `rest` is the text from the mistake on.
fn syntax_message(message: &str, rest: &str) -> String {
    let message = message.trim();
    if message.starts_with("duplicate key") {
        let name: String = rest.chars().take_while(|character| !"=]\r\n".contains(*character)).collect();
        return format!("{} is there twice; expected each key and table once", shown(name.trim()));
    }
    // What it expected, if anything, is on a line of its own.
    match message.split_once('\n') {
        Some((what, expected)) => format!("{what}; {}", expected.replace('\n', ", ")),
        None => format!("{message}; expected TOML"),
    }
}

/// "unknown key (did you mean …?)", looking in this table first and then for the same word in all tables.
pub(super) fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let word = name.rsplit('.').next().unwrap_or(name);
    if let Some(near) = nearest(name, known.clone()) {
        return format!("unknown {what} (did you mean {near:?}?)");
    }
    let namesakes = TABLES.iter().flat_map(|table| table.keys).filter(|key| key.name == word).map(ConfigKey::path);
    let namesakes: Vec<String> = namesakes.collect();
    if !namesakes.is_empty() {
        return format!("unknown {what} (did you mean {}?)", namesakes.join(" or "));
    }
    format!("unknown {what}; expected one of {}", known.collect::<Vec<_>>().join(", "))
}

/// A foreign name for a message: escaped, and cut after 60 characters.
fn shown(name: &str) -> String {
    name.chars().take(60).flat_map(char::escape_debug).collect()
}

fn key_span(table: &dyn TableLike, name: &str) -> Option<Range<usize>> {
    table.get_key_value(name).and_then(|(key, _)| key.span())
}

fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1)).collect()
}
