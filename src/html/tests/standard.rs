//! The html5lib-tests cases about tags, attributes, references and encodings.

use serde_json::Value;

use super::super::block::with_each;
use super::super::tokenizer::RawText;
use super::super::value::{self, Decoder};
use super::twin::{Attributes, Read, StartOrEnd};
use super::{conformance, scanned};

fn tokenizer_tests() -> Vec<(String, Value)> {
    let Some(root) = conformance("html/html5lib-tests/tokenizer") else { return Vec::new() };
    let mut tests = Vec::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "test") {
            continue;
        }
        // A byte stream cannot contain a lone surrogate, and serde_json refuses it: such tests are double escaped.
        let file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        tests.extend(file["tests"].as_array().into_iter().flatten().map(|test| (name.clone(), test.clone())));
    }
    tests
}

/// Undoes the suite's second escaping; `None` for lone surrogates.
fn text_of(value: &Value, double_escaped: bool) -> Option<String> {
    let text = value.as_str()?;
    if double_escaped { serde_json::from_str(&format!("\"{text}\"")).ok() } else { Some(text.to_owned()) }
}

/// Tags and their attributes, according to the suite.
fn expected_tags(output: &Value, double_escaped: bool) -> Option<Vec<StartOrEnd>> {
    let mut tags = Vec::new();
    for token in output.as_array()? {
        let end = match token[0].as_str()? {
            "StartTag" => false,
            "EndTag" => true,
            _ => continue,
        };
        let mut attributes = Attributes::new();
        for (name, value) in token[2].as_object().into_iter().flatten() {
            attributes.insert(text_of(&Value::String(name.clone()), double_escaped)?, text_of(value, double_escaped)?);
        }
        tags.push(StartOrEnd { end, name: text_of(&token[1], double_escaped)?, attributes });
    }
    Some(tags)
}

#[test]
fn tokenizer_cases() {
    let tests = tokenizer_tests();
    let (mut cases, mut skipped, mut wrong) = (0, 0, Vec::new());
    for (file, test) in &tests {
        let double_escaped = test["doubleEscaped"].as_bool().unwrap_or(false);
        let input = text_of(&test["input"], double_escaped);
        let (Some(input), Some(expected)) = (input, expected_tags(&test["output"], double_escaped)) else {
            skipped += 1;
            continue;
        };
        let data = [Value::String("Data state".to_owned())];
        for state in test["initialStates"].as_array().map_or(&data[..], Vec::as_slice) {
            let last = test["lastStartTag"].as_str().unwrap_or_default();
            let state = state.as_str().unwrap();
            // A CDATA section is entered by its own start; the others by what follows a start tag.
            let bytes = if state == "CDATA section state" { format!("<![CDATA[{input}") } else { input.clone() };
            let inside = match state {
                "Data state" | "CDATA section state" => None,
                "PLAINTEXT state" => Some(RawText::Plaintext),
                "RCDATA state" | "RAWTEXT state" => Some(RawText::Plain),
                "Script data state" => Some(RawText::Script),
                other => panic!("{other}"),
            };
            let read = Read {
                inside: inside.map(|raw| (last.as_bytes(), raw)),
                foreign: state == "CDATA section state",
                raw_text: false,
                ..Read::page(bytes.as_bytes(), &[])
            };
            for (kernel, mut found) in with_each(&read) {
                // End tags have no attributes in the suite.
                found.iter_mut().filter(|tag| tag.end).for_each(|tag| tag.attributes.clear());
                if found != expected {
                    wrong.push(format!("{file}: {kernel}: {state}: {input:?}: {found:?}, not {expected:?}"));
                }
            }
            cases += 1;
        }
    }
    println!("{cases} tokenizer cases, {} wrong, {skipped} skipped", wrong.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn reference_cases() {
    let mut cases = 0;
    for (file, test) in tokenizer_tests() {
        let input = test["input"].as_str().unwrap_or_default();
        // In text, a name without semicolon also counts before a letter; numbers are the same in text and attributes.
        let same = file == "numericEntities.test" || (file == "namedEntities.test" && input.ends_with(';'));
        if !same || test["output"].as_array().is_none_or(|output| output.iter().any(|token| token[0] != "Character")) {
            continue;
        }
        let expected: String =
            test["output"].as_array().unwrap().iter().filter_map(|token| token[1].as_str()).collect();
        if expected.ends_with(';') {
            continue;
        }
        assert_eq!(Decoder::new(encoding_rs::UTF_8).text(value::Value::Raw(input.as_bytes())), expected, "{input}");
        cases += 1;
    }
    println!("{cases} reference cases");
}

#[test]
fn encoding_cases() {
    let Some(root) = conformance("html/html5lib-tests/encoding") else { return };
    let (mut cases, mut wrong) = (0, Vec::new());
    for file in ["tests1.dat", "tests2.dat", "test-yahoo-jp.dat"] {
        let bytes = std::fs::read(root.join(file)).unwrap();
        // The files contain bytes of several encodings; the marks are ASCII.
        let (text, _) = encoding_rs::WINDOWS_1252.decode_without_bom_handling(&bytes);
        for case in text.split("#data\n").skip(1) {
            let Some((data, label)) = case.split_once("\n#encoding\n") else { continue };
            let data = encoding_rs::WINDOWS_1252.encode(data).0;
            let expected = encoding_rs::Encoding::for_label(label.trim().as_bytes()).map(encoding_rs::Encoding::name);
            let found = scanned(&data, None, 0).1.encoding;
            cases += 1;
            if Some(found.name()) != expected {
                wrong.push(format!(
                    "{file}: {:?}: {}, not {}",
                    data.escape_ascii().to_string(),
                    found.name(),
                    label.trim()
                ));
            }
        }
    }
    println!("{cases} encoding cases, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}
