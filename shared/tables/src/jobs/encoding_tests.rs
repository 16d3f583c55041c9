//! Round trips, order of keys, and damage.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn claims() -> impl Strategy<Value = Claim> {
    (vec(any::<u8>(), 0..12), any::<i16>()).prop_map(|(subject, parameter)| {
        let subject = Subject::new(subject).expect("far below the limit");
        Claim { subject, parameter }
    })
}

fn parts() -> impl Strategy<Value = PartId> {
    (any::<u32>(), any::<u32>()).prop_map(|(stage, part)| PartId { stage, part })
}

fn tasks() -> impl Strategy<Value = Task> {
    prop_oneof![claims().prop_map(Task::Claim), parts().prop_map(Task::Part)]
}

fn job_records() -> impl Strategy<Value = JobRecord> {
    let status = prop_oneof![
        Just(JobStatus::Running),
        Just(JobStatus::Solved),
        Just(JobStatus::Cancelled),
        ".*".prop_map(JobStatus::Failed)
    ];
    let fields = [".*", ".*", ".*", ".*"];
    (fields, status, any::<[u64; 6]>()).prop_map(|([game, rules, position, question], status, numbers)| {
        let [submitted_unix_ms, nodes, results, leases, leases_lost, active_ms] = numbers;
        let fields = Fields { game, rules, position, question };
        JobRecord { fields, submitted_unix_ms, status, nodes, results, leases, leases_lost, active_ms }
    })
}

fn children() -> impl Strategy<Value = Children> {
    let numbers = (0..=INFINITE, 0..=INFINITE).prop_map(|(proof, disproof)| Numbers { proof, disproof });
    let child = (claims(), any::<bool>(), numbers).prop_map(|(claim, same, numbers)| {
        let polarity = if same { Polarity::Same } else { Polarity::Opposite };
        Child { edge: Edge { polarity, claim }, numbers }
    });
    prop_oneof![Just(Children::None), Just(Children::OfRules), vec(child, 0..9).prop_map(Children::Found),]
}

fn claim_records() -> impl Strategy<Value = ClaimRecord> {
    let numbers = (0..=INFINITE, 0..=INFINITE).prop_map(|(proof, disproof)| Numbers { proof, disproof });
    (any::<Option<bool>>(), children(), numbers, any::<u64>(), any::<u32>(), ".*").prop_map(
        |(truth, children, numbers, work, searches, source)| ClaimRecord {
            truth,
            children,
            numbers,
            work,
            searches,
            source,
        },
    )
}

fn lease_records() -> impl Strategy<Value = LeaseRecord> {
    (any::<[u64; 3]>(), ".*").prop_map(|([epoch, lease, incarnation], worker)| LeaseRecord {
        epoch: Epoch(epoch),
        lease,
        worker,
        incarnation,
    })
}

fn part_records() -> impl Strategy<Value = PartRecord> {
    (
        any::<[u64; 2]>(),
        vec(any::<(u8, u128)>(), 0..3),
        vec(any::<u64>(), 0..5),
        vec(any::<u32>(), 0..5),
        ".*",
    )
        .prop_map(|([boards, boards_with_images], shares, outputs, checksums, source)| PartRecord {
            boards,
            boards_with_images,
            shares,
            outputs,
            checksums,
            source,
        })
}

/// A write that puts a record which is loaded.
fn puts() -> impl Strategy<Value = Write> {
    let job = || any::<u64>().prop_map(JobId);
    prop_oneof![
        (job(), job_records()).prop_map(|(job, record)| Write::Job(job, record)),
        (job(), claims(), claim_records()).prop_map(|(job, claim, record)| Write::Claim(job, claim, record)),
        (job(), tasks(), lease_records()).prop_map(|(job, task, record)| Write::Lease(job, task, record)),
        (job(), parts(), part_records()).prop_map(|(job, part, record)| Write::Part(job, part, record)),
    ]
}

fn put(write: &Write) -> (Family, Vec<u8>, Vec<u8>) {
    match change(write) {
        Change::Put(family, key, value) => (family, key, value),
        other => panic!("{other:?} is no put"),
    }
}

/// The write that puts what was loaded.
fn loaded_write(loaded: Loaded) -> Option<Write> {
    let Loaded { jobs, claims, leases, parts } = loaded;
    let jobs = jobs.into_iter().map(|(job, record)| Write::Job(job, record));
    let claims = claims.into_iter().map(|(job, claim, record)| Write::Claim(job, claim, record));
    let leases = leases.into_iter().map(|(job, task, record)| Write::Lease(job, task, record));
    let parts = parts.into_iter().map(|(job, part, record)| Write::Part(job, part, record));
    jobs.chain(claims).chain(leases).chain(parts).next()
}

/// Loads one record, or tells that it is corrupt.
fn load(family: Family, key: &[u8], value: &[u8]) -> Result<Option<Write>, StorageError> {
    let mut loaded = Loaded::default();
    load_into(&mut loaded, family, key, value)?;
    Ok(loaded_write(loaded))
}

fn is_corrupt<T>(result: &Result<T, StorageError>) -> bool {
    matches!(result, Err(StorageError::Corrupt { .. }))
}

proptest! {
    #[test]
    fn records_come_back_as_they_were(write in puts()) {
        let (family, key, value) = put(&write);
        prop_assert_eq!(load(family, &key, &value), Ok(Some(write)));
    }

    #[test]
    fn every_flipped_byte_of_a_value_is_detected(write in puts(), flip in 1..=255u8) {
        let (family, key, value) = put(&write);
        for place in 0..value.len() {
            let mut damaged = value.clone();
            damaged[place] ^= flip;
            prop_assert!(is_corrupt(&load(family, &key, &damaged)), "byte {} of {:?}", place, write);
        }
    }

    #[test]
    fn every_truncation_is_detected(write in puts()) {
        let (family, key, value) = put(&write);
        for length in 0..value.len() {
            prop_assert!(is_corrupt(&load(family, &key, &value[..length])), "{} bytes of {:?}", length, write);
        }
    }

    #[test]
    fn a_value_under_another_key_is_detected(write in puts(), flip in 1..=255u8) {
        let (family, key, value) = put(&write);
        for place in 0..key.len() {
            let mut other = key.clone();
            other[place] ^= flip;
            prop_assert!(is_corrupt(&load(family, &other, &value)), "byte {} of the key of {:?}", place, write);
        }
    }

    #[test]
    fn any_bytes_are_refused_without_a_panic(key in vec(any::<u8>(), 0..40), value in vec(any::<u8>(), 0..80)) {
        for family in LOADED {
            prop_assert!(is_corrupt(&load(family, &key, &value)));
        }
    }

    /// Behind a checksum that is right, as from a program with a mistake.
    #[test]
    fn any_sealed_body_is_read_or_refused_without_a_panic(job: u64, body in vec(any::<u8>(), 0..80)) {
        let key = job_key(JobId(job));
        let mut writer = Writer::new(FORMAT);
        for byte in &body {
            writer.u8(*byte);
        }
        let value = writer.seal(RecordKind::Job, &key);
        if let Ok(Some(write)) = load(Family::Jobs, &key, &value) {
            prop_assert_eq!(put(&write).2, value);
        }
    }

    #[test]
    fn claim_keys_sort_by_job_length_subject_and_parameter(
        a in (0..3u64, claims()),
        b in (0..3u64, claims()),
        same_subject: bool,
    ) {
        let mut b = b;
        if same_subject {
            b.1.subject = a.1.subject.clone();
        }
        let order = |(job, claim): &(u64, Claim)| {
            let subject = claim.subject.as_bytes();
            (*job, subject.len(), subject.to_vec(), claim.parameter)
        };
        let key = |(job, claim): &(u64, Claim)| claim_key(JobId(*job), claim);
        prop_assert_eq!(key(&a).cmp(&key(&b)), order(&a).cmp(&order(&b)));
    }

    #[test]
    fn run_keys_sort_by_number_and_stages_hold_their_runs(
        a in (0..3u64, parts(), any::<u32>()),
        b in (0..3u64, parts(), any::<u32>()),
        last_stage: bool,
    ) {
        let (mut a, mut b) = (a, b);
        if last_stage {
            (a.1.stage, b.1.stage) = (u32::MAX, u32::MAX);
        }
        let key = |&(job, from, to): &(u64, PartId, u32)| run_key(JobId(job), from, to);
        prop_assert_eq!(key(&a).cmp(&key(&b)), a.cmp(&b));
        let (from, to) = stage_range(JobId(a.0), a.1.stage);
        let inside = (from..to).contains(&key(&b));
        prop_assert_eq!(inside, (a.0, a.1.stage) == (b.0, b.1.stage));
    }

    #[test]
    fn runs_come_back_and_damage_is_detected(
        part in parts(),
        to: u32,
        bytes in vec(any::<u8>(), 0..60),
        flip in 1..=255u8,
    ) {
        let job = JobId(7);
        let Change::Put(_, _, value) = run_change(job, part, to, &bytes) else {
            panic!("a run is put");
        };
        prop_assert_eq!(decode_run(job, part, to, &value), Ok(bytes));
        prop_assert!(is_corrupt(&decode_run(JobId(8), part, to, &value)));
        for place in 0..value.len() {
            prop_assert!(is_corrupt(&decode_run(job, part, to, &value[..place])));
            let mut damaged = value.clone();
            damaged[place] ^= flip;
            prop_assert!(is_corrupt(&decode_run(job, part, to, &damaged)));
        }
    }
}

#[test]
fn a_newer_layout_is_named_as_such() {
    let key = job_key(JobId(1));
    let value = Writer::new(FORMAT + 1).seal(RecordKind::Job, &key);
    let error = load(Family::Jobs, &key, &value).expect_err("nobody can read tomorrow's layout");
    assert_eq!(
        error.to_string(),
        "corrupt data in record 0000000000000001 of jobs: it has layout 2, this program reads layout 1"
    );
}

/// The examples of `docs/formats.md` are what is written.
#[test]
fn the_documented_examples_are_right() {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let documented = words(include_str!("../../../../docs/formats.md"));
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    let subject = Subject::new([5, 3, 0xff, 0x7f]).expect("far below the limit");
    let claim = Claim { subject, parameter: 0 };
    let source = "w1".to_owned();
    let examples = [
        Write::Claim(
            JobId(1),
            claim.clone(),
            ClaimRecord {
                truth: Some(true),
                children: Children::None,
                numbers: Numbers::decided(true),
                work: 1500,
                searches: 1,
                source: source.clone(),
            },
        ),
        Write::Lease(
            JobId(1),
            Task::Claim(claim),
            LeaseRecord {
                epoch: Epoch(3),
                lease: 3 << 32,
                worker: source.clone(),
                incarnation: 0x1122_3344_5566_7788,
            },
        ),
        Write::Part(
            JobId(2),
            PartId { stage: 4, part: 7 },
            PartRecord {
                boards: 3,
                boards_with_images: 20,
                shares: Vec::new(),
                outputs: vec![5, 6],
                checksums: vec![0x0102_0304, 0x0506_0708],
                source,
            },
        ),
    ];
    for example in examples {
        let Change::Put(_, key, value) = change(&example) else { panic!("{example:?} puts a record") };
        let (key, value) = (format!("key {}", hex(&key)), format!("value {}", hex(&value)));
        assert!(documented.contains(&key), "{example:?}: {key}");
        assert!(documented.contains(&value), "{example:?}: {value}");
    }
}
