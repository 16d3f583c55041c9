//! A whole count, part by part, through the pieces that would cross the wire.

use super::*;
use crate::leases::{Epoch, JobId, LeaseId, Leases};
use grundy_games::peg::Problem;

/// Runs `counter`'s stages as a coordinator would, each stage cut into `parts`.
fn count(counter: &Counter, parts: u32) -> Result<u128, Box<dyn std::error::Error>> {
    let leases = Arc::new(Leases::default());
    let mut sum = 0u128;
    // runs[stage][source part][destination part]
    let mut runs: Vec<Vec<Vec<Vec<u8>>>> = Vec::new();
    for stage in 0..=counter.levels() {
        let (last, own_parts) = (stage == counter.levels(), if stage == 0 { 1 } else { parts });
        let mut outputs = Vec::new();
        for part in 0..own_parts {
            let task = v1::lease_progress::Task::Part(v1::PartKey { stage, part });
            let held = leases.hold(LeaseId(1), Epoch(1), JobId(1), task);
            let joins = last && counter.near_level().is_some_and(|near| near > 0 && near < stage);
            let sources = |back: usize| {
                let all = runs.len().checked_sub(back).and_then(|at| runs.get(at));
                all.into_iter().flatten().map(|source| source[part as usize].clone()).collect::<Vec<_>>()
            };
            let (own, near) = (sources(1), if joins { sources(2) } else { Vec::new() });
            let (inputs, join_inputs) = (own.len() as u32, near.len() as u32);
            let parts_next = if last { 0 } else { parts };
            let task = v1::PartTask { stage, part, parts_next, inputs, join_inputs };
            let done = work(counter, &task, &held, || Ok(own.into_iter().chain(near).collect()))?;
            if last {
                let shares = grundy_proto::convert::shares(done.header.shares.clone())?;
                sum += shares.iter().map(|(_, ways)| ways).sum::<u128>();
            }
            outputs.push(through_the_wire(&done, parts_next as usize)?);
        }
        runs.push(outputs);
    }
    Ok(sum)
}

/// The runs as the other side puts them together.
fn through_the_wire(done: &PartDone, runs: usize) -> Result<Vec<Vec<u8>>, Status> {
    let mut gathered = Gathered::new(runs);
    for message in messages(done.header.clone(), Arc::clone(&done.runs)).skip(1) {
        let Some(v1::complete_part_request::Message::Chunk(chunk)) = message.message else {
            return Err(Status::internal("only the first message is a header"));
        };
        assert!(chunk.data.len() <= limits::CHUNK_BYTES_MAX);
        gathered.add(chunk)?;
    }
    gathered.finish()
}

#[test]
fn parts_add_up_to_the_count_of_one_process() -> Result<(), Box<dyn std::error::Error>> {
    // Even and odd numbers of jumps, halves and whole counts, and the smallest boards. The counts are from a recursion over all jump
    // sequences.
    let boards = [
        ("oo.oo|ooooo|ooooo", "finish c1", 17_424),
        ("oo.oo|ooooo|ooooo", "finish any", 17_424),
        (".ooo|oooo|oooo", "finish a1", 420),
        (".ooo|oooo|oooo", "finish any", 852),
        ("o.oo|oooo|oooo", "finish b1", 488),
        ("o.oo|oooo|oooo|oooo", "finish any", 210_422),
        ("o.oo|oooo|oooo|oooo", "finish b1", 0),
        ("oo.", "finish c1", 1),
        ("o.o", "finish any", 0),
        (".o.", "finish any", 1),
    ];
    for (position, question, expected) in boards {
        let problem = Problem::from_text("", position, question)?;
        for parts in [1, 3] {
            for counter in [Counter::new(&problem), Counter::full(&problem)] {
                let method = counter.method();
                assert_eq!(
                    count(&counter, parts)?,
                    expected,
                    "{position} {question} {method:?} in {parts} parts"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn a_long_run_is_cut_and_put_together_again() -> Result<(), Box<dyn std::error::Error>> {
    let long: Vec<u8> = (0..2 * limits::CHUNK_BYTES_MAX + 5).map(|i| (i % 251) as u8).collect();
    let runs = vec![Vec::new(), long, vec![7; limits::CHUNK_BYTES_MAX]];
    let done = PartDone { header: v1::PartResult::default(), runs: Arc::new(runs.clone()) };
    assert_eq!(through_the_wire(&done, 3)?, runs);
    Ok(())
}

#[test]
fn damaged_or_missing_pieces_are_noticed() {
    let piece = |run, data: &[u8], last, crc32c| v1::RunChunk { run, data: data.to_vec(), last, crc32c };
    let right = crc32c::crc32c(b"abc");
    let mut gathered = Gathered::new(2);
    assert!(gathered.add(piece(1, b"abc", true, right)).is_err(), "run 0 comes first");
    let error = Gathered::new(1).add(piece(0, b"abd", true, right)).expect_err("a flipped bit");
    assert!(error.message().contains("checksum"), "{error}");
    gathered.add(piece(0, b"abc", true, right)).expect("whole");
    gathered.add(piece(1, b"ab", false, 0)).expect("its beginning");
    let error = gathered.finish().expect_err("the second run has no end");
    assert_eq!(error.code(), tonic::Code::Unavailable);
}
