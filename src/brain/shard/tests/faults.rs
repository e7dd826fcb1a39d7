//! An input that the shard did not ask for is a bug of ours. It is reported with its location, even while others of
//! its kind are in flight.

use super::*;
use crate::spool::Block;
use ringcrawl_base::Failure;
use ringcrawl_ring::caught;

/// A shard that has received no end of anything, and what it waits for: the end of a fetch of the first host, an
/// answer for the second, an acknowledgement of a message, and from its disk blocks of two logs and a sync, two spool
/// blocks to write and one to read.
fn busy() -> (Shard, Vec<Effect>) {
    let mut hosts = names(0);
    let mut host = || hosts.next().unwrap_or_default();
    let (known, looked_up) = (host(), host());
    let mut rig = Rig::new(
        config(|config| {
            config.dns.hosts.insert(known.clone(), vec!["192.0.2.1".parse().expect("an address")]);
            config.exchange.batch_urls_max = 1;
            config.exchange.waiting_bytes_max = 0;
        }),
        Logs::new(),
    );
    for host in [known, looked_up] {
        rig.seed(&Url::parse(&format!("http://{host}/")).expect("a URL"));
    }
    (0..3).for_each(|number| rig.seed(&foreign(number)));
    let after_the_sync_interval = Instant::ZERO + Duration::from_secs(2);
    let effects = std::iter::from_fn(|| rig.shard.poll(after_the_sync_interval)).collect();
    (rig.shard, effects)
}

/// The panic message of a busy shard that receives the last of `inputs`; it accepts the others.
fn fault(inputs: impl IntoIterator<Item = Input>) -> String {
    let (mut shard, _) = busy();
    let mut inputs: Vec<Input> = inputs.into_iter().collect();
    let last = inputs.pop().expect("an input");
    inputs.into_iter().for_each(|input| shard.handle(Instant::ZERO, input));
    let taken = caught(|| shard.handle(Instant::ZERO, last));
    taken.err().map_or_else(|| "it was taken".to_owned(), |panic| panic.to_string())
}

fn assert_fault(inputs: impl IntoIterator<Item = Input>, expected: &str) {
    let message = fault(inputs);
    assert!(message.contains(expected), "{message}; expected: {expected}");
}

#[test]
fn ends_of_fetches_and_lookups() {
    let (_, effects) = busy();
    let jobs = effects.iter().filter_map(|effect| if let Effect::Fetch(job) = effect { Some(job.id) } else { None });
    let lookups =
        effects.iter().filter_map(|effect| if let Effect::Ask(query) = effect { Some(query.lookup) } else { None });
    let (jobs, lookups): (Vec<u64>, Vec<u64>) = (jobs.collect(), lookups.collect());
    let ([job], [lookup]) = (&jobs[..], &lookups[..]) else { panic!("in flight: {jobs:?}, {lookups:?}") };
    let fetched = |job: u64| Input::Fetched { job, result: Err(Failure::Reset) };
    let answered = |lookup: u64| Input::Answered { lookup, answer: DnsAnswer::Silent };
    assert_fault([fetched(job + 1_000)], &format!("job {} ended and was not in flight", job + 1_000));
    assert_fault([fetched(*job), fetched(*job)], &format!("job {job} ended and was not in flight"));
    assert_fault([answered(*job)], &format!("an answer to lookup {job}, which is not in flight"));
    assert_fault([answered(*lookup), answered(*lookup)], "an answer to a query that was not sent");
}

#[test]
fn ends_of_the_disk() {
    let (_, effects) = busy();
    let ops: Vec<&DiskOp> =
        effects.iter().filter_map(|effect| if let Effect::Disk(op) = effect { Some(op) } else { None }).collect();
    let written: Vec<(Block, &Vec<u8>)> = ops
        .iter()
        .filter_map(
            |op| if let DiskOp::Spool(SpoolOp::Write { block, bytes }) = op { Some((*block, bytes)) } else { None },
        )
        .collect();
    let read: Vec<Block> = ops
        .iter()
        .filter_map(|op| if let DiskOp::Spool(SpoolOp::Read { block }) = op { Some(*block) } else { None })
        .collect();
    let [(first, content), (second, _)] = written[..] else { panic!("written: {written:?}") };
    assert_eq!(read, [first]);
    let logs: Vec<u64> = ops
        .iter()
        .filter_map(|op| if let DiskOp::Append(append) = op { Some(append.bytes.len() as u64) } else { None })
        .collect();
    assert_eq!(logs.len(), 2, "URLs and journal");
    let bytes: u64 = ops.iter().map(|op| op.bytes()).sum();

    let block_read = |block| Input::Disk(DiskEnd::BlockRead { block, bytes: content.clone() });
    let done = |bytes| Input::Disk(DiskEnd::Done { spare: None, bytes });
    assert_fault([block_read(second)], &format!("{second:?} came back and was not asked for"));
    assert_fault([block_read(first), block_read(first)], &format!("{first:?} came back and was not asked for"));
    assert_fault([done(bytes + 1)], "the disk ended an operation that was not requested");
    assert_fault([done(bytes), done(1)], "the disk ended an operation that was not requested");
    let one_too_many = (0..=ops.len()).map(|_| done(0));
    assert_fault(one_too_many, "the disk ended an operation that was not requested");
    assert_fault([Input::Disk(DiskEnd::LogRead { bytes: Vec::new() })], "a log came that was not requested");
    let synced = || Input::Disk(DiskEnd::Synced);
    assert_fault([synced(), synced()], "a sync ended that was not requested");
}

#[test]
fn messages() {
    let (_, effects) = busy();
    let sent = effects.iter().filter(|effect| matches!(effect, Effect::Send(_))).count();
    assert_eq!(sent, 1);
    let received = |kind, number, acknowledged, content: &[u8]| {
        let bytes = Header { kind, number, acknowledged, batch: number, durable: 0 }.with(content);
        Input::Received { from: 1, bytes }
    };
    let told = |acknowledged| received(MessageKind::Acknowledgement, 0, acknowledged, b"");
    assert_fault([told(2)], "shard 1 acknowledged message 2; 1 were sent, 0 acknowledged");
    assert_fault([told(1), told(0)], "shard 1 acknowledged message 0; 1 were sent, 1 acknowledged");
    assert_fault(
        [received(MessageKind::Urls, 1, 0, b""), received(MessageKind::Urls, 3, 0, b"")],
        "shard 1 sent message 3 after 1",
    );
    assert_fault([received(MessageKind::RobotsRequest, 1, 0, b"\0?")], "shard 1 sent a RobotsRequest that is none");
    assert_fault([received(MessageKind::RobotsAnswer, 1, 0, b"\0?")], "shard 1 sent a RobotsAnswer that is none");
}

#[test]
fn phases_that_go_back() {
    let enter = |phase| Input::Command(Command::Enter(phase));
    assert_fault([enter(Phase::Abort), enter(Phase::Drain)], "Drain after Abort: phases go forward only");
}
