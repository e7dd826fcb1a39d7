//! What requests carry, and to whom.

use ringcrawl_brain::job::{FetchJob, JobKind};

use crate::rig::hands::*;
use crate::rig::servers::*;

#[test]
fn credentials_go_to_their_origin_and_nowhere_else() {
    let (addr, asked) = noting_server(|_| String::new());
    let (other, asked_other) = noting_server(|_| String::new());
    let origin = format!("http://intranet.example.test:{}", addr.port());
    let config = config_with(&format!("[http]\nauth = {{ \"{origin}\" = \"crawler:open sesame\" }}\n"));
    with_hands(&config, |hands| async move {
        for _ in 0..2 {
            let exchange = get(&hands, &format!("{origin}/a")).await.expect("exchange");
            assert_eq!(last(&asked, "Authorization").as_deref(), Some("Basic Y3Jhd2xlcjpvcGVuIHNlc2FtZQ=="));
            // What is stored says that there were some, and not which.
            let stored = String::from_utf8(exchange.request_bytes).expect("text");
            assert!(stored.contains("\r\nAuthorization: (removed)\r\n"), "{stored}");
            assert!(!stored.contains("Y3Jhd2x") && !stored.contains("sesame"), "{stored}");
        }
        // Another host at the same address, and the same host at another port.
        let host = format!("http://www.example.test:{}/a", addr.port());
        let port = format!("http://intranet.example.test:{}/a", other.port());
        assert!(get(&hands, &host).await.is_ok() && get(&hands, &port).await.is_ok());
        assert_eq!((last(&asked, "Authorization"), last(&asked_other, "Authorization")), (None, None));
        assert_eq!((asked.lock().expect("asked").len(), asked_other.lock().expect("asked").len()), (3, 1));
    });
}

#[test]
fn pages_are_asked_for_in_the_types_that_are_wanted() {
    const DEFAULT: &str = "text/html,application/xhtml+xml,*/*;q=0.8";
    const MARKDOWN: &str = "text/markdown, text/html;q=0.9, */*;q=0.1";
    for (more, page) in [("", DEFAULT), (&*format!("http.accept = \"{MARKDOWN}\"\n"), MARKDOWN)] {
        let (addr, asked) = noting_server(|_| String::new());
        let at = |path: &str| format!("http://a.test:{}{path}", addr.port());
        let (page_at, robots_at) = (at("/a"), at("/robots.txt"));
        with_hands(&config_with(more), |hands| async move {
            assert!(get(&hands, &page_at).await.is_ok());
            assert_eq!(last(&asked, "Accept").as_deref(), Some(page));
            let robots = FetchJob { kind: JobKind::Robots, ..job(&robots_at) };
            assert!(hands.exchange(&robots).await.is_ok());
            assert_eq!(last(&asked, "Accept").as_deref(), Some(DEFAULT), "robots.txt is asked for as ever");
        });
    }
}

#[test]
fn cookies_come_back_when_they_are_wanted() {
    let (addr, asked) = noting_server(|path| match path {
        "/login" => "Set-Cookie: session=1; Path=/\r\nSet-Cookie: wide=2; Domain=site.test; Path=/\r\n".to_owned(),
        "/logout" => "Set-Cookie: session=; Path=/; Max-Age=0\r\n".to_owned(),
        _ => String::new(),
    });
    let at = move |host: &str, path: &str| format!("http://{host}:{}{path}", addr.port());
    for (cookies, expected) in
        [("off", [None; 4]), ("site", [Some("session=1; wide=2"), Some("wide=2"), None, Some("wide=2")])]
    {
        let asked = asked.clone();
        with_hands(&config_with(&format!("[http]\ncookies = \"{cookies}\"\n")), |hands| async move {
            let mut seen = Vec::new();
            for (host, path, is_noted) in [
                ("www.site.test", "/login", false),
                ("www.site.test", "/a", true),
                ("site.test", "/a", true),
                ("other.test", "/a", true),
                ("www.site.test", "/logout", false),
                ("www.site.test", "/a", true),
            ] {
                let exchange = get(&hands, &at(host, path)).await.expect("exchange");
                if is_noted {
                    seen.push(last(&asked, "Cookie"));
                    // A cookie is no secret of ours: it is stored, as the answer that set it is.
                    let stored = String::from_utf8(exchange.request_bytes).expect("text");
                    assert_eq!(stored.contains("\r\nCookie: "), seen.last().is_some_and(Option::is_some), "{stored}");
                }
            }
            assert_eq!(seen, expected.map(|field| field.map(str::to_owned)), "{cookies}");
        });
    }
}
