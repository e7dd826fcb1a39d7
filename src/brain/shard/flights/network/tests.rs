//! Which hosts are witnesses of an outage after a restart.

use super::*;

/// A host that answered once and then did not, or that was left alone, is no witness of an outage after a restart: a
/// crawl that has only such hosts left must end.
#[test]
fn what_was_said_last_of_a_host_holds() {
    let mut network = Network::new(1);
    let site = |host: &str| Url::parse(&format!("http://{host}/")).expect("a URL");
    network.asked_for_rest("rests.test");
    for (host, was_answered) in [
        ("answers.test", Some(true)),
        ("died.test", Some(true)),
        ("died.test", Some(false)),
        ("recovered.test", Some(false)),
        ("recovered.test", Some(true)),
        ("rests.test", Some(true)),
        ("answers.test", None),
    ] {
        network.was_answered(&site(host), was_answered);
    }
    network.is_taken_up();
    let known = ["answers.test", "died.test", "recovered.test", "rests.test"]
        .map(|host| network.answered.contains(&site(host)));
    assert_eq!(known, [true, false, true, false]);
    network.was_answered(&site("rests.test"), Some(true));
    assert!(network.answered.contains(&site("rests.test")), "what an earlier run noted is forgotten by now");
}
