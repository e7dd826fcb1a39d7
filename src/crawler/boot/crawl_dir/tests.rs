//! Tests of the crawl's directory.

use super::*;
use crate::boot::dir_lock::LOCK_PAUSE;
use crate::boot::manifest::FORMAT;
use ringcrawl_base::TempFolder;
use ringcrawl_brain::seed::SeedOptions;
use ringcrawl_url::Url;

fn manifest() -> Manifest {
    Manifest {
        format: FORMAT,
        created_by: "ringcrawl test".to_owned(),
        created: "2026-11-21T00:00:00Z".to_owned(),
        crawl_id: "0123456789abcdef".to_owned(),
        rng_seed: 7,
        shards: 2,
        partition: "site-hash".to_owned(),
        exchange_mode: "exchange".to_owned(),
        moved_sites: 0,
        agent_name: "bot".to_owned(),
        segments_from: Vec::new(),
    }
}

fn url(text: &str) -> Seed {
    Url::parse(text).unwrap().into()
}

/// Begins a crawl in `root`.
fn begin(root: &Path) {
    let mut dir = CrawlDir::open(root, &Wanted::default(), None, manifest).unwrap();
    dir.keep(&[url("http://a.test/")], &Config::default(), Partition::by_site(1), 1 << 20).unwrap();
}

fn open(root: &Path) -> Result<CrawlDir, DirError> {
    CrawlDir::open(root, &Wanted::default(), None, manifest)
}

/// Also a link to an empty folder, which would be taken for a shard of a killed run. The directory's owner may create
/// links.
#[test]
fn a_link_that_another_user_prepared_is_refused() {
    use std::os::unix::fs::{MetadataExt as _, lchown, symlink};
    let folder = TempFolder::new("prepared");
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        println!("skipped: only root can make another user's link");
        return;
    }
    let elsewhere = folder.path().join("elsewhere");
    fs::create_dir_all(elsewhere.join("within")).unwrap();
    for (name, is_full) in
        [("shard-00", true), ("shard-01", false), ("shard-00/segments", false), ("shard-07/journal", true)]
    {
        let root = folder.path().join(name.replace('/', "-"));
        let link = root.join(name);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(if is_full { elsewhere.clone() } else { elsewhere.join("within") }, &link).unwrap();
        lchown(&link, Some(1_234), Some(1_234)).unwrap();
        let refused = open(&root).expect_err(name).to_string();
        let expected = format!(
            "{} is a link that another user made (uid 1234), and the crawl would write to where it leads: remove it, or make it \
             yourself if you want it (chown -h)",
            link.display()
        );
        assert_eq!(refused, expected);
        assert!(!root.join(LOCK).exists() && fs::read_dir(&elsewhere).unwrap().count() == 1, "nothing was written");
        // Now it belongs to the operator.
        let whose = if name == "shard-01" { (&root, 1_234) } else { (&link, 0) };
        lchown(whose.0, Some(whose.1), None).unwrap();
        let refused = open(&root).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(!refused.contains("another user"), "{refused}");
    }
}

#[test]
fn begun_once_then_resumed_and_locked() {
    let folder = TempFolder::new("resume");
    let root = folder.path().join("crawl");
    let [a, b] = ["http://a.test/", "http://b.test/"].map(url);
    let mut first = open(&root).unwrap();
    assert!(first.is_new() && !root.join(MANIFEST).exists(), "it has not begun");
    let seeds = first.with_earlier_seeds(std::slice::from_ref(&a)).unwrap();
    assert_eq!(first.keep(&seeds, &Config::default(), Partition::by_site(1), 1 << 20).unwrap().notes, [""; 0]);
    assert!(root.join("shard-01/segments").is_dir());
    let locked = open(&root).unwrap_err();
    assert!(matches!(locked, DirError::Locked(_)), "{locked}");
    drop(first);
    fs::write(root.join("shard-00/spool/0"), "old").unwrap();
    let mut again = CrawlDir::open(&root, &Wanted::default(), None, || unreachable!("it is not new")).unwrap();
    let seeds = again.with_earlier_seeds(&[b.clone(), a.clone()]).unwrap();
    assert_eq!(seeds, [a.clone(), b.clone()]);
    assert_eq!(again.keep(&seeds, &Config::default(), Partition::by_site(1), 1 << 20).unwrap().notes, [""; 0]);
    assert!(!again.is_new() && !root.join("shard-00/spool/0").exists());
    assert_eq!(again.manifest(), &manifest());
    drop(again);
    let paid = Seed { options: Some(Box::new(SeedOptions::parse("pages=3 time=1h").unwrap())), ..a };
    let mut later = open(&root).unwrap();
    let seeds = later.with_earlier_seeds(std::slice::from_ref(&paid)).unwrap();
    assert_eq!(seeds, [b.clone(), paid.clone()], "what is said later comes later");
    later.keep(&seeds, &Config::default(), Partition::by_site(1), 1 << 20).unwrap();
    drop(later);
    assert_eq!(open(&root).unwrap().with_earlier_seeds(&[]).unwrap(), [b, paid]);
    let mut second = open(&root).unwrap();
    second.begin_round(2);
    let seeds = second.with_earlier_seeds(&[]).unwrap();
    second.keep(&seeds, &Config::default(), Partition::by_site(1), 1 << 20).unwrap();
    drop(second);
    let again = open(&root).unwrap();
    assert_eq!((again.round(), again.with_earlier_seeds(&[]).unwrap()), (2, seeds));
    drop(again);
    let wanted = Wanted { rng_seed: Some(8), ..Wanted::default() };
    let differs = CrawlDir::open(&root, &wanted, None, manifest).unwrap_err().to_string();
    assert!(differs.contains("crawl.rng_seed 7") && differs.contains('8'), "{differs}");
    let new = CrawlDir::open(&root, &Wanted { new: true, ..Wanted::default() }, None, manifest).unwrap_err();
    assert!(matches!(new, DirError::NotNew(_)), "{new}");
}

/// `urls` and `hosts` check whether a process works in the directory.
#[test]
fn who_looks_for_a_moment_is_no_obstacle() {
    let folder = TempFolder::new("looked-at");
    begin(folder.path());
    let lock = File::open(folder.path().join(LOCK)).unwrap();
    lock.lock_shared().unwrap();
    let looking = std::thread::spawn(move || {
        std::thread::sleep(3 * LOCK_PAUSE);
        drop(lock);
    });
    assert!(open(folder.path()).is_ok());
    looking.join().unwrap();
}

#[test]
fn a_crawl_keeps_its_name() {
    let named = |name: &str| Wanted { agent_name: Some(name.to_owned()), ..Wanted::default() };
    let folder = TempFolder::new("named");
    let root = folder.path().join("crawl");
    begin(&root);
    let is_open = |wanted: &Wanted| {
        let open = CrawlDir::open(&root, wanted, None, manifest);
        open.map(|dir| dir.manifest().agent_name.clone()).map_err(|error| error.to_string())
    };
    assert_eq!(is_open(&named("bot")), Ok("bot".to_owned()));
    // Without a name the crawl keeps its own.
    assert_eq!(is_open(&Wanted::default()), Ok("bot".to_owned()));
    let refused = is_open(&named("other")).unwrap_err();
    for word in ["agent.name \"bot\", and \"other\" was asked for", "leave it at \"bot\", or give a new directory"] {
        assert!(refused.contains(word), "{refused}");
    }
}

#[test]
fn the_configuration_is_kept_and_changes_are_told() {
    let folder = TempFolder::new("kept");
    let root = folder.path().join("crawl");
    assert_eq!(kept_config::kept_config(&root).unwrap(), None);
    begin(&root);
    // Fixed settings are in it even when the run did not give them.
    let fixed = |config: &Config| (config.crawl.shards, config.crawl.rng_seed, config.agent.name.clone());
    let kept = kept_config::kept_config(&root).unwrap().expect("a crawl");
    assert_eq!(fixed(&kept), (2, 7, "bot".to_owned()));
    let mut config = Config::default();
    config.set("politeness.host_delay", "2s").unwrap();
    config.set("visited.tracking_parameters", &"long_name_*,".repeat(20)).unwrap();
    let seeds = [url("http://a.test/")];
    let notes = open(&root).unwrap().keep(&seeds, &config, Partition::by_site(1), 1 << 20).unwrap().notes;
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].ends_with("config.toml: politeness.host_delay = \"2s\" from now on, was \"1s\""), "{notes:?}");
    assert!(notes[1].contains("visited.tracking_parameters = [\"long_name_*\"") && notes[1].contains('…'), "{notes:?}");
    let kept = kept_config::kept_config(&root).unwrap().expect("a crawl");
    assert_eq!(kept.politeness, config.politeness);
    assert_eq!(
        open(&root).unwrap().keep(&seeds, &kept, Partition::by_site(1), 1 << 20).unwrap().notes,
        [""; 0],
        "nothing changed"
    );
    assert_eq!(kept_config::kept_config(&root).unwrap(), Some(kept));
}

/// Between two rounds of a process no other process takes its directory.
#[test]
fn the_lock_goes_from_round_to_round() {
    let folder = TempFolder::new("rounds-lock");
    let root = folder.path().join("crawl");
    begin(&root);
    let dir = open(&root).unwrap();
    let lock = dir.lock();
    drop(dir);
    assert!(matches!(open(&root), Err(DirError::Locked(_))));
    let next = CrawlDir::open(&root, &Wanted::default(), Some(lock), manifest).unwrap();
    assert!(matches!(open(&root), Err(DirError::Locked(_))));
    drop(next);
    open(&root).unwrap();
}

/// The logs are in place first. The next run without a number of shards continues with them, and moves nothing back.
#[test]
fn a_kill_before_the_configuration_is_written_undoes_no_redistribution() {
    let folder = TempFolder::new("killed-between");
    let root = folder.path().join("crawl");
    begin(&root);
    let config = fs::read_to_string(root.join(CONFIG)).unwrap();
    let seeds = [url("http://a.test/")];
    let mut dir =
        CrawlDir::open(&root, &Wanted { shards: Some(3), ..Wanted::default() }, None, || panic!("there is a crawl"))
            .unwrap();
    dir.keep(&seeds, &Config::default(), Partition::by_site(3), 1 << 20).unwrap();
    drop(dir);
    let after = fs::read_to_string(root.join(CONFIG)).unwrap();
    assert_ne!(after, config);
    fs::write(root.join(CONFIG), &config).unwrap();
    let kept = kept_config::kept_config(&root).unwrap().expect("a crawl");
    assert_eq!(kept.crawl.shards, 3);
    open(&root).unwrap().keep(&seeds, &kept, Partition::by_site(3), 1 << 20).unwrap();
    assert_eq!(fs::read_to_string(root.join(CONFIG)).unwrap(), after);
}

#[test]
fn a_configuration_that_cannot_be_used_is_told_and_replaced() {
    let folder = TempFolder::new("unkept");
    let root = folder.path().join("crawl");
    begin(&root);
    let path = root.join(CONFIG);
    let right = fs::read_to_string(&path).unwrap();
    let id = manifest().crawl_id;
    let told = || kept_config::kept_config(&root).unwrap_err().to_string();
    fs::write(&path, right.replace("\"1s\"", "\"2s\"")).unwrap();
    assert!(told().contains("config.toml: it is damaged or was changed: its checksum does not match"), "{}", told());
    assert!(told().contains("give the settings with -c FILE"), "{}", told());
    sealed_file::write(&root, CONFIG, "fedcba9876543210", "").unwrap();
    assert!(told().contains("it belongs to another crawl (fedcba9876543210)"), "{}", told());
    let newer = "# Written by ringcrawl 9.0.0\nversion = 2\n[colour]\nred = 1\n";
    sealed_file::write(&root, CONFIG, &id, newer).unwrap();
    let newer = "ringcrawl 9.0.0 wrote it, and this version rejects it: line 2: version: config is of version 2, \
                 this ringcrawl reads version 1 (and 1 more)";
    assert!(told().contains(newer), "{}", told());
    fs::remove_file(&path).unwrap();
    assert!(told().contains("config.toml: it is missing"), "{}", told());
    // A run that gives the settings again continues.
    let warnings = open(&root)
        .unwrap()
        .keep(&[url("http://a.test/")], &Config::default(), Partition::by_site(1), 1 << 20)
        .unwrap()
        .warnings;
    assert!(warnings.len() == 1 && warnings[0].contains("rewritten with this run's settings"), "{warnings:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), right);
}

#[test]
fn damaged_seeds_are_told_and_left_alone() {
    let folder = TempFolder::new("bad-seeds");
    let root = folder.path().join("crawl");
    begin(&root);
    let path = root.join(SEEDS);
    let right = fs::read_to_string(&path).unwrap();
    let wrong = right.replace("a.test", "b.test");
    fs::write(&path, &wrong).unwrap();
    let error = open(&root).unwrap_err().to_string();
    for word in ["seeds: it is damaged", "its checksum does not match", "restore the file", "give all seeds"] {
        assert!(error.contains(word), "{error}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), wrong);
    sealed_file::write(&root, SEEDS, &manifest().crawl_id, "http://a.test/\nnews:c\n").unwrap();
    assert!(open(&root).unwrap_err().to_string().contains("seeds: line 2: "));
    fs::remove_file(&path).unwrap();
    let missing = open(&root).unwrap().with_earlier_seeds(&[]).unwrap_err().to_string();
    assert!(missing.contains("seeds: it is missing") && missing.contains("give all seeds"), "{missing}");
    let mut dir = open(&root).unwrap();
    let seeds = dir.with_earlier_seeds(&[url("http://a.test/")]).unwrap();
    let warnings = dir.keep(&seeds, &Config::default(), Partition::by_site(1), 1 << 20).unwrap().warnings;
    assert!(warnings.len() == 1 && warnings[0].contains("seeds was missing; rewritten with 1 seeds"), "{warnings:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), right);
}

/// A start that was killed before it wrote the manifest has begun nothing, and the next start begins.
#[test]
fn what_a_killed_start_left_is_no_obstacle() {
    let folder = TempFolder::new("killed-start");
    let root = folder.path();
    begin(root);
    let fresh = |name: &str| fs::write(sealed_file::open_name(root, name), "torn").unwrap();
    fs::remove_dir_all(root.join("shard-00")).unwrap();
    fs::remove_dir_all(root.join("shard-01")).unwrap();
    fs::remove_file(root.join(MANIFEST)).unwrap();
    [MANIFEST, SEEDS, CONFIG].iter().for_each(|name| fresh(name));
    let mut dir = open(root).unwrap();
    assert!(dir.is_new());
    let warnings =
        dir.keep(&[url("http://b.test/")], &Config::default(), Partition::by_site(1), 1 << 20).unwrap().warnings;
    assert_eq!(warnings, [""; 0]);
    drop(dir);
    assert_eq!(open(root).unwrap().with_earlier_seeds(&[]).unwrap(), [url("http://b.test/")]);
    // A foreign file of that name is not ours.
    fs::remove_file(root.join(MANIFEST)).unwrap();
    fs::remove_dir_all(root.join("shard-00")).unwrap();
    fs::remove_dir_all(root.join("shard-01")).unwrap();
    fs::write(root.join(CONFIG), "agent.name = \"bot\"\n").unwrap();
    assert!(matches!(open(root), Err(DirError::Foreign(_))));
}

#[test]
fn foreign_directories_are_left_alone() {
    let folder = TempFolder::new("foreign");
    let root = folder.path();
    fs::write(root.join("thesis.tex"), "precious").unwrap();
    assert!(matches!(open(root), Err(DirError::Foreign(_))));
    assert_eq!(fs::read_dir(root).unwrap().count(), 1, "nothing was added");
    fs::remove_file(root.join("thesis.tex")).unwrap();
    for (text, expected) in [
        ("{\"format\": 9}", "format 9"),
        ("{\"format\": 2}", "damaged"),
        ("{}", "no format"),
        ("not json", "damaged manifest"),
    ] {
        fs::write(root.join(MANIFEST), text).unwrap();
        for error in [open(root).unwrap_err(), kept_config::kept_config(root).unwrap_err()] {
            assert!(error.to_string().contains(expected), "{text}: {error}");
        }
        assert_eq!(fs::read_to_string(root.join(MANIFEST)).unwrap(), text);
        assert_eq!(fs::read_dir(root).unwrap().count(), 1, "nothing was added");
    }
}

/// A file, and the part of the new one that still has another name.
type Image = (Option<Vec<u8>>, Option<Vec<u8>>);

/// What a crash leaves of a file that is being replaced: the old one, the old one and part of the new one under
/// another name, or the new one.
fn images(old: Option<&[u8]>, new: &[u8]) -> Vec<Image> {
    let cuts = [0, 1, new.len() / 2, new.len() - 1, new.len()].map(|bytes| Some(new[..bytes].to_vec()));
    let old = old.map(<[u8]>::to_vec);
    let mut images = vec![(old.clone(), None)];
    images.extend(cuts.map(|open| (old.clone(), open)));
    images.push((Some(new.to_vec()), None));
    images
}

/// Begins with `old` seeds, or without a crawl, and crashes at each step of a run with `new` seeds as well.
fn crash_at_each_step(old: Option<&[Seed]>, new: &[Seed]) -> usize {
    let folder = TempFolder::new("crash-images");
    let root = folder.path().join("whole");
    let read = |root: &Path, name: &str| fs::read(root.join(name)).ok();
    if let Some(old) = old {
        CrawlDir::open(&root, &Wanted::default(), None, manifest)
            .unwrap()
            .keep(old, &Config::default(), Partition::by_site(1), 1 << 20)
            .unwrap();
    }
    let files = [SEEDS, CONFIG, MANIFEST];
    let before = files.map(|name| read(&root, name));
    let mut config = Config::default();
    config.fetch.in_flight_max += 1;
    CrawlDir::open(&root, &Wanted::default(), None, manifest)
        .unwrap()
        .keep(new, &config, Partition::by_site(1), 1 << 20)
        .unwrap();
    let after = files.map(|name| read(&root, name).unwrap());
    let mut count = 0;
    // They are replaced one after another: earlier ones are new, later ones are old.
    for (step, name) in files.iter().enumerate() {
        if before[step].as_ref() == Some(&after[step]) {
            continue;
        }
        for (held, open) in images(before[step].as_deref(), &after[step]) {
            for shards in if old.is_some() { 2..3 } else { 0..3 } {
                let image = folder.path().join(format!("image-{count}"));
                count += 1;
                fs::create_dir(&image).unwrap();
                fs::write(image.join(LOCK), "").unwrap();
                for shard in 0..shards {
                    make_shard(&shard_dir(&image, shard)).unwrap();
                }
                for (place, other) in files.iter().enumerate() {
                    let content = match place.cmp(&step) {
                        std::cmp::Ordering::Less => Some(after[place].clone()),
                        std::cmp::Ordering::Equal => held.clone(),
                        std::cmp::Ordering::Greater => before[place].clone(),
                    };
                    content.into_iter().for_each(|content| fs::write(image.join(other), content).unwrap());
                }
                open.iter().for_each(|open| fs::write(sealed_file::open_name(&image, name), open).unwrap());
                if name == &MANIFEST && held.is_some() && shards < 2 {
                    continue; // The manifest comes after the shards' folders.
                }
                let what =
                    format!("{name}: {:?} and {:?} bytes", held.as_ref().map(Vec::len), open.as_ref().map(Vec::len));
                let mut dir = open_image(&image, &what);
                assert_eq!(dir.is_new(), read(&image, MANIFEST).is_none(), "{what}");
                if !dir.is_new() {
                    let (known, all) = (dir.with_earlier_seeds(&[]).unwrap(), [old.unwrap_or_default(), new]);
                    assert!(all.contains(&known.as_slice()), "{what}: {known:?}");
                }
                let seeds = dir.with_earlier_seeds(new).unwrap();
                let warnings = dir.keep(&seeds, &config, Partition::by_site(1), 1 << 20).unwrap().warnings;
                assert!(
                    !warnings.iter().any(|told| told.contains("damaged") || told.contains("missing")),
                    "{warnings:?}"
                );
                drop(dir);
                let again = open_image(&image, &what);
                assert_eq!(again.with_earlier_seeds(&[]).unwrap(), new, "{what}");
                assert_eq!(files.map(|name| read(&image, name).unwrap()), after, "{what}");
            }
        }
    }
    count
}

fn open_image(image: &Path, what: &str) -> CrawlDir {
    open(image).unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// Seeds, settings and manifest are each as before or as after, and the next start continues from there.
#[test]
fn a_crash_at_any_step_leaves_a_crawl_that_starts() {
    let [a, b] = ["http://a.test/", "http://b.test/"].map(url);
    let begun = crash_at_each_step(None, &[a.clone(), b.clone()]);
    let resumed = crash_at_each_step(Some(std::slice::from_ref(&a)), &[a.clone(), b]);
    assert!(begun > 50 && resumed > 10, "{begun} and {resumed} images");
}
