//! Names, from a server of the test's own.

use std::rc::Rc;
use std::time::Duration;

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::{Name, RData, Record, RecordType, rdata};
use ringcrawl_base::Failure;
use ringcrawl_brain::outcome::Outcome;
use ringcrawl_crawler::fetch::Resolver;
use ringcrawl_ring as ring;

use crate::rig::hands::*;
use crate::rig::names::{NameServer, Reply};

/// A name server that has a name for each kind of answer.
fn name_server() -> NameServer {
    NameServer::start(|question, answer| {
        let name = question.name().clone();
        let four = |ttl, last| Record::from_rdata(name.clone(), ttl, RData::A(rdata::A::new(127, 0, 0, last)));
        match (name.to_ascii().as_str(), question.query_type()) {
            ("short.test.", RecordType::A) => drop(answer.add_answer(four(5, 2)).add_answer(four(7, 3))),
            ("long.test.", RecordType::A) => drop(answer.add_answer(four(9_999_999, 2))),
            ("an_hour.test.", RecordType::A) => drop(answer.add_answer(four(3_600, 2))),
            ("alias.test.", RecordType::A) => {
                let target = Name::from_ascii("target.test.").expect("name");
                let alias = Record::from_rdata(name.clone(), 300, RData::CNAME(rdata::CNAME(target.clone())));
                answer.add_answer(alias);
                answer.add_answer(Record::from_rdata(target, 600, RData::A(rdata::A::new(127, 0, 0, 9))));
            }
            ("six.test.", RecordType::AAAA) => {
                let six = RData::AAAA(rdata::AAAA::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
                answer.add_answer(Record::from_rdata(name.clone(), 900, six));
            }
            ("six.test." | "empty.test.", _) => {}
            ("servfail.test.", _) => answer.metadata.response_code = ResponseCode::ServFail,
            ("refused.test.", _) => answer.metadata.response_code = ResponseCode::Refused,
            ("silent.test.", _) => return Reply::Silence,
            ("junk.test.", _) => return Reply::Bytes(b"junk"),
            _ => answer.metadata.response_code = ResponseCode::NXDomain,
        }
        Reply::Message
    })
}

#[test]
fn names_resolve() {
    let names = name_server();
    let mut config = config();
    config.dns.servers = vec![names.addr];
    config.dns.hosts.insert("Table.Test".to_owned(), vec!["127.0.0.7".parse().expect("address")]);
    with_hands(&config.clone(), |hands| async move {
        let resolver = Rc::new(Resolver::new(&config, hands, 1));
        let resolved = |addrs: &[&str], seconds| Outcome::Resolved {
            addrs: addrs.iter().map(|addr| addr.parse().expect("address")).collect(),
            ttl: Duration::from_secs(seconds),
            is_half: false,
            alias: None,
        };
        // Without asking.
        assert_eq!(resolver.resolve("table.test", false).await, resolved(&["127.0.0.7"], 86_400));
        assert_eq!(resolver.resolve("192.0.2.1", false).await, resolved(&["192.0.2.1"], 86_400));
        assert_eq!(resolver.resolve("[2001:db8::5]", false).await, resolved(&["2001:db8::5"], 86_400));
        let no_address = |seconds| Outcome::NoAddress { ttl: Duration::from_secs(seconds) };
        for no_name in ["", ".", "a..b", &"x".repeat(64), &"abc.".repeat(80)] {
            assert_eq!(resolver.resolve(no_name, false).await, no_address(3 * 3_600), "{no_name}");
        }
        assert_eq!(names.asked(), 0);

        assert_eq!(resolver.resolve("short.test", false).await, resolved(&["127.0.0.2", "127.0.0.3"], 60));
        assert_eq!(names.asked(), 1, "one query, no search list, no AAAA");
        assert_eq!(resolver.resolve("short.test.", false).await, resolved(&["127.0.0.2", "127.0.0.3"], 60));
        assert_eq!(names.asked(), 2, "nothing is kept here");
        assert_eq!(resolver.resolve("long.test", false).await, resolved(&["127.0.0.2"], 86_400));
        assert_eq!(resolver.resolve("an_hour.test", false).await, resolved(&["127.0.0.2"], 3_600));
        let of_alias = resolver.resolve("alias.test", false).await;
        let is_told = matches!(&of_alias, Outcome::Resolved { addrs, ttl, alias: Some(alias), .. }
            if **addrs == [std::net::Ipv4Addr::new(127, 0, 0, 9)] && ttl.as_secs() == 300 && **alias == *"target.test.");
        assert!(is_told, "{of_alias:?}");
        assert_eq!(resolver.resolve("six.test", false).await, resolved(&["2001:db8::1"], 900));
        for name in ["nx.test", "empty.test"] {
            assert_eq!(resolver.resolve(name, false).await, no_address(60), "{name}");
        }
        for name in ["servfail.test", "refused.test"] {
            assert_eq!(resolver.resolve(name, false).await, Outcome::Failed(Failure::DnsFailed), "{name}");
        }
        for name in ["silent.test", "junk.test"] {
            assert_eq!(resolver.resolve(name, false).await, Outcome::Failed(Failure::DnsTimeout), "{name}");
        }
        // More than may be asked for at once: all are answered all the same.
        let tasks: Vec<_> = (0..100)
            .map(|_| {
                let resolver = Rc::clone(&resolver);
                ring::spawn(async move { resolver.resolve("an_hour.test", false).await })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.expect("task"), resolved(&["127.0.0.2"], 3_600));
        }
    });
}
