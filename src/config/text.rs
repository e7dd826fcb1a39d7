//! The forms of text values: product token, web address, mail address, line, list of CPUs, range of ports, hours of
//! the day, media types, kinds of records, groups of domains, path of a file.
//!
//! Decides: what identifies the crawler to site owners is checked as strictly as a parser on their side would,
//! because they block a User-Agent that breaks their log analysis. The three parts are in a comment of the field
//! value (RFC 9110 section 5.6.5), so parentheses, backslash and `;` are refused in them.
//! Limits: token 64, address 512, mail 254 (RFC 5321 section 4.5.3.1.3), CPU list 1,024 bytes; CPU numbers up to
//! `CPU_MAX`.
//! Leaves to others: whether the address answers, whether the CPU exists (`boot`).

use super::hierarchy::Hierarchy;
use super::hours::Hours;
use super::record_kinds::RecordKinds;
use super::value::Value;
use ringcrawl_html::MediaRanges;
use std::sync::Arc;

/// The form of one text key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TextForm {
    /// `identifier` of RFC 9309 section 2.2.1.
    Token,
    /// An http or https URL.
    WebAddress,
    /// An https URL.
    SecureAddress,
    /// `local@domain`.
    MailAddress,
    /// A line of text.
    Line,
    /// `1-7,9`.
    Cpus,
    /// `20000-60000`.
    Ports,
    /// `22:00-06:00`.
    Hours,
    /// `text/*,application/pdf`.
    MediaTypes,
    /// `text/markdown,text/html;q=0.9`.
    Accept,
    /// `request,metadata`.
    RecordKinds,
    /// `/etc/ringcrawl/scope.rules`.
    File,
    /// `com | net org`.
    Domains,
}

/// Highest CPU number: the kernel's own limit, NR_CPUS on x86-64 with CPUMASK_OFFSTACK.
const CPU_MAX: u32 = 8_191;

impl TextForm {
    /// What would be right, after "expected".
    pub(super) const fn expected(self) -> &'static str {
        match self {
            TextForm::Token => "1 to 64 letters, \"_\" or \"-\" (RFC 9309 section 2.2.1), such as \"examplebot\"",
            TextForm::WebAddress => {
                "an http:// or https:// address without credentials, such as \"https://example.org/bot\", or \"\""
            }
            TextForm::SecureAddress => {
                "an https:// address without credentials, such as \
                 \"https://example.org/.well-known/http-message-signatures-directory\", or \"\""
            }
            TextForm::Line => "at most 1000 characters in one line, or \"\"",
            TextForm::MailAddress => "a mail address, such as \"bot@example.org\", or \"\"",
            TextForm::Ports => "a range of ports from 1024 to 65535, such as \"20000-60000\", or \"\"",
            TextForm::Hours => "two times of the day, such as \"22:00-06:00\", or \"\"",
            TextForm::MediaTypes => "media types and ranges of them, such as \"text/*,application/pdf\" or \"*/*\"",
            TextForm::Accept => "media types with weights, such as \"text/markdown,text/html;q=0.9,*/*;q=0.5\"",
            TextForm::RecordKinds => {
                "some of request, metadata, failure and dns, such as \"metadata,failure\", or \"\""
            }
            TextForm::Domains => "groups of top-level domains, such as \"com | net org | de at ch\"",
            TextForm::File => "the path of a file, such as \"/etc/ringcrawl/scope.rules\", or \"\"",
            TextForm::Cpus => "CPU numbers and ascending ranges from 0 to 8191, such as \"1-7,9\", or \"\"",
        }
    }

    /// Reads `text` as the type that its key has.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(self, text: &str) -> Result<Value, String> {
        match self {
            TextForm::Token => check_token(text)?,
            TextForm::WebAddress => check_web_address(text)?,
            TextForm::SecureAddress => check_secure_address(text)?,
            TextForm::MailAddress => check_mail_address(text)?,
            TextForm::Line => check_line(text)?,
            TextForm::Cpus => drop(read_cpus(text)?),
            TextForm::Ports => drop(read_ports(text)?),
            TextForm::Hours => return Hours::parse(text).map(Value::Hours),
            TextForm::MediaTypes => return read_media_types(text).map(Value::MediaTypes),
            TextForm::Accept => check_accept(text)?,
            TextForm::RecordKinds => return RecordKinds::parse(text).map(Value::RecordKinds),
            TextForm::Domains => return Hierarchy::parse(text).map(Arc::new).map(Value::Domains),
            TextForm::File if text.contains('\0') => return Err("this is not a path".to_owned()),
            TextForm::File => {}
        }
        Ok(Value::Text(text.to_owned()))
    }
}

/// The CPUs of a list such as `"1-7,9"`, in ascending order; none for the empty list. A CPU listed twice is an error.
pub fn read_cpus(text: &str) -> Result<Vec<u32>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    if text.len() > 1_024 {
        return Err("a list of more than 1024 bytes".to_owned());
    }
    let mut cpus = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (read_cpu(first)?, read_cpu(last)?);
        if first > last {
            return Err(format!("the range {part:?} is descending"));
        }
        cpus.extend(first..=last);
        // Checked after each of at most 513 parts, so that `cpus` never grows far beyond CPU_MAX.
        cpus.sort_unstable();
        if let Some((twice, _)) = cpus.iter().zip(cpus.iter().skip(1)).find(|(one, next)| one == next) {
            return Err(format!("CPU {twice} is listed twice"));
        }
    }
    Ok(cpus)
}

/// First and last port of a range such as `"20000-60000"`; `None` for the empty text.
pub(super) fn read_ports(text: &str) -> Result<Option<(u16, u16)>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let port = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u16>().ok().filter(|port| digits && *port >= 1_024)
    };
    match text.split_once('-').map(|(first, last)| (port(first), port(last))) {
        Some((Some(first), Some(last))) if first <= last => Ok(Some((first, last))),
        _ => Err("this is not an ascending range of such ports".to_owned()),
    }
}

fn read_media_types(text: &str) -> Result<MediaRanges, String> {
    if text.len() > 1_024 {
        return Err("a list of more than 1024 bytes".to_owned());
    }
    MediaRanges::parse(text).map_err(|wrong| format!("{wrong:?} is not a media type"))
}

/// A field value that means something to a server (RFC 9110 section 12.5.1).
fn check_accept(text: &str) -> Result<(), String> {
    if text.len() > 1_024 || !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Err("not a field value: expected at most 1024 bytes of ASCII in one line".to_owned());
    }
    for element in text.split(',').map(str::trim) {
        let (range, parameters) = element.split_once(';').unwrap_or((element, ""));
        if !ringcrawl_html::is_media_range(range.trim()) {
            return Err(format!("{:?} is not a media type", range.trim()));
        }
        for parameter in parameters.split(';').map(str::trim).filter(|parameter| !parameter.is_empty()) {
            let Some((name, value)) = parameter.split_once('=') else {
                return Err(format!("{parameter:?} is not a parameter"));
            };
            if name.eq_ignore_ascii_case("q") && !is_weight(value) {
                return Err(format!("{value:?} is not a weight from 0 to 1 with at most three digits"));
            }
        }
    }
    Ok(())
}

/// `qvalue` (RFC 9110 section 12.4.2).
fn is_weight(text: &str) -> bool {
    let (whole, digits) = text.split_once('.').unwrap_or((text, ""));
    let in_range = |byte: u8| byte == b'0' || whole == "0" && byte.is_ascii_digit();
    matches!(whole, "0" | "1") && digits.len() <= 3 && digits.bytes().all(in_range)
}

fn read_cpu(text: &str) -> Result<u32, String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u32>() {
        Ok(cpu) if digits && cpu <= CPU_MAX => Ok(cpu),
        _ => Err(format!("{text:?} is not a CPU number")),
    }
}

fn check_token(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    if text.len() > 64 {
        return Err("the name is longer than 64 bytes".to_owned());
    }
    match text.chars().find(|character| !(character.is_ascii_alphabetic() || matches!(character, '_' | '-'))) {
        Some(character) => Err(format!("{character:?} is not allowed in a product token")),
        None => Ok(()),
    }
}

fn check_web_address(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    check_comment(text, 512)?;
    match ::url::Url::parse(text) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") => Err(format!("the scheme is {:?}", url.scheme())),
        // It would end up in the log of every server that we send requests to.
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            Err("it has a user name or a password, which would be sent to every server".to_owned())
        }
        Ok(_) => Ok(()),
        Err(::url::ParseError::RelativeUrlWithoutBase) => Err("it must begin with https:// or http://".to_owned()),
        Err(error) => Err(format!("this is not an address ({error})")),
    }
}

/// Characters that may appear unescaped both in a string of structured fields (RFC 9651 section 3.3.3) and in a URL.
fn check_secure_address(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    if text.len() > 512 {
        return Err("it is longer than 512 bytes".to_owned());
    }
    if let Some(character) =
        text.chars().find(|character| !character.is_ascii_graphic() || matches!(character, '"' | '\\'))
    {
        return Err(format!("{character:?} is not allowed in this address"));
    }
    let url = ::url::Url::parse(text).map_err(|error| format!("this is not an address ({error})"))?;
    match url.scheme() {
        "https" if url.username().is_empty() && url.password().is_none() && url.fragment().is_none() => Ok(()),
        "https" => Err("it has credentials or a fragment".to_owned()),
        scheme => Err(format!("the scheme is {scheme:?}")),
    }
}

fn check_line(text: &str) -> Result<(), String> {
    match text.chars().find(|character| character.is_control()) {
        Some(character) => Err(format!("{character:?} is not allowed in a line")),
        None if text.chars().count() > 1_000 => Err("it is longer than 1000 characters".to_owned()),
        None => Ok(()),
    }
}

fn check_mail_address(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    check_comment(text, 254)?;
    let (local, domain) = text.rsplit_once('@').ok_or("no \"@\"")?;
    let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~.".contains(&byte);
    // RFC 5321 section 4.1.2, Dot-string: the quoted form is not supported, as contacts are not published in it.
    if local.is_empty() || local.starts_with('.') || local.ends_with('.') || !local.bytes().all(usual) {
        return Err(format!("{local:?} before the \"@\" is not a mailbox"));
    }
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    if domain.split('.').all(label) { Ok(()) } else { Err(format!("{domain:?} after the \"@\" is not a domain")) }
}

/// Printable ASCII that is allowed in a comment of User-Agent, and no `;`, which separates our three parts.
fn check_comment(text: &str, bytes_max: usize) -> Result<(), String> {
    if text.len() > bytes_max {
        return Err(format!("it is longer than {bytes_max} bytes"));
    }
    let stray = |character: &char| !character.is_ascii_graphic() || matches!(character, '(' | ')' | '\\' | ';');
    match text.chars().find(stray) {
        Some(character) => Err(format!("{character:?} is not allowed in the User-Agent")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists() {
        assert_eq!(read_cpus(""), Ok(vec![]));
        assert_eq!(read_cpus("1-3,9, 0"), Ok(vec![0, 1, 2, 3, 9]));
        for wrong in ["1-", "-1", "3-1", "1,,2", "1,1", "1-3,2", "a", "8192", "99999999999", "0-8191,0", "+1", ","] {
            assert!(read_cpus(wrong).is_err(), "{wrong}");
        }
        assert_eq!(read_cpus("0-8191").map(|cpus| cpus.len()), Ok(8192));
    }

    #[test]
    fn port_ranges() {
        assert_eq!(read_ports(""), Ok(None));
        assert_eq!(read_ports("1024-65535"), Ok(Some((1_024, 65_535))));
        assert_eq!(read_ports("5000-5000"), Ok(Some((5_000, 5_000))));
        for wrong in
            ["5000", "5000-", "-5000", "6000-5000", "80-90", "5000-65536", "+5000-6000", "5000-6000-7000", "a-b"]
        {
            assert!(read_ports(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn accepts_are_field_values() {
        for right in ["text/markdown,text/html;q=0.9,*/*;q=0.5", "*/*", "text/*; level=1 ; q=1.000", "a/b;q=0"] {
            assert_eq!(TextForm::Accept.read(right).map(drop), Ok(()), "{right}");
        }
        for wrong in [
            "",
            "markdown",
            "text/html,",
            "text/html;q=2",
            "text/html;q=0.1234",
            "text/html;q=1.5",
            "text/html;q=",
            "text/html;level",
            "text/html\r\nX: y",
            "text/ü",
            &"a/b,".repeat(300),
        ] {
            assert!(TextForm::Accept.read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn tokens_are_rfc_9309_identifiers() {
        for right in ["", "ringcrawl", "My_Bot-", "a"] {
            assert_eq!(TextForm::Token.read(right).map(drop), Ok(()));
        }
        for wrong in ["bot2", "my bot", "*", "böt", "bot/1", &"a".repeat(65)] {
            assert!(TextForm::Token.read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn addresses_fit_a_user_agent_comment() {
        for right in ["", "https://example.org/bot", "http://example.org/?a=b#c"] {
            assert_eq!(TextForm::WebAddress.read(right).map(drop), Ok(()));
        }
        for wrong in
            ["example.org", "ftp://example.org", "https://", "https://example.org/(x)", "https://a b/", "https://é.org"]
        {
            assert!(TextForm::WebAddress.read(wrong).is_err(), "{wrong}");
        }
        // User-Agent is public; the error does not quote it, either.
        for wrong in
            ["https://me:secret@a.org/", "http://:secret@a.org", "https://secret@a.org/bot", "https:\\\\x:secret@a.org"]
        {
            let mistake = TextForm::WebAddress.read(wrong).expect_err(wrong);
            assert!(!mistake.contains("secret"), "{mistake}");
        }
        assert_eq!(TextForm::WebAddress.read("https://a.org/@me:x").map(drop), Ok(()));
        for right in ["", "bot@example.org", "a.b+c@localhost"] {
            assert_eq!(TextForm::MailAddress.read(right).map(drop), Ok(()));
        }
        for wrong in
            ["bot", "@example.org", "bot@", "b ot@example.org", "bot@-a.org", "a;b@c.d", ".a@b.c", "a@b..c", "a\r\n@b"]
        {
            assert!(TextForm::MailAddress.read(wrong).is_err(), "{wrong}");
        }
    }
}
