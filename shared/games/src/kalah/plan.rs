//! How a question about a position is answered by claims "the mover gains at least v".
//!
//! An opening's value follows from the gain of the board it leads to. That gain is narrowed by claims of its parity: first
//! near a guess, then away from it step by step until it is caught from both sides, then by halving. Long games are narrowed from afar instead. A perfect
//! continuation plays, time after time, a move that keeps the gain. A search that finds a board to gain so much knows such a move, and
//! reports it as a fact: so the claim that is asked is that of the board itself, which tables answer at once mostly, and
//! only if no fact came of it, one claim after the other about its moves.

use super::claims::child_margin;
use super::{Board, KalahClaims, Opening, Played, Position, Problem, Question};
use crate::claim::{Claim, ClaimRules, Polarity};
use crate::plan::{Answer, Knowledge, OpenPart, OpeningAnswer, Plan, Progress};
use std::collections::HashSet;

/// The plan of one problem.
pub struct KalahPlan {
    claims: KalahClaims,
    position: Position,
    question: Question,
    openings: Vec<Opening>,
}

/// A value is decided by the claim that it is reached and the claim that no more is; nearly all the work goes into these two.
const CLAIMS_OF_A_VALUE: u16 = 2;

/// What is known of a gain: at least `low`, at most `high`, both of its parity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Interval {
    low: i16,
    high: i16,
}

impl Interval {
    fn exact(self) -> Option<i16> {
        (self.low == self.high).then_some(self.low)
    }
}

impl KalahPlan {
    /// The plan that answers a problem.
    pub fn new(problem: &Problem) -> Self {
        Self {
            claims: KalahClaims::new(problem.position().houses(), problem.rules()),
            position: *problem.position(),
            question: problem.question().clone(),
            openings: problem.openings().to_vec(),
        }
    }

    /// A claim's truth, by the rules or from knowledge.
    fn truth(&self, known: &dyn Knowledge, board: Board, margin: i16) -> Option<bool> {
        self.claims.settled(board, margin).or_else(|| known.truth(&self.claims.claim(board, margin)))
    }

    /// All that is known of the mover's gain. Truth falls from true to false as the margin grows, so both ends are found by halving.
    fn interval(&self, known: &dyn Knowledge, board: Board) -> Interval {
        if board.is_over() {
            return Interval { low: board.swept(), high: board.swept() };
        }
        let seeds = board.seeds();
        // Margins from -seeds to seeds in steps of 2, by number; the first is true, and one past the last is false.
        let margin = |number: i16| 2 * number - seeds;
        let last_where = |holds: &dyn Fn(Option<bool>) -> bool, from: i16| {
            let (mut low, mut high) = (from, seeds + 1);
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if holds(known.truth(&self.claims.claim(board, margin(middle)))) {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            low
        };
        let low = last_where(&|truth| truth == Some(true), 0);
        let high = last_where(&|truth| truth != Some(false), low);
        Interval { low: margin(low), high: margin(high) }
    }

    /// The claims that narrow intervals next, most urgent first; none of those that are exact.
    ///
    /// Long games are narrowed from both sides, the easiest step first, so that something is known of each board early. Beside that step a claim
    /// where the gain is thought to be is searched from the start: most of the work goes into such claims, and only they tell how much there is.
    fn narrowing(&self, boards: impl Iterator<Item = (Board, Interval)>) -> Vec<Claim> {
        let (mut steps, mut aims) = (Vec::new(), Vec::new());
        for (board, interval) in boards.filter(|(_, interval)| interval.exact().is_none()) {
            let margin = next_margin(board, interval);
            // At the lower end the claim is known; the next one is not.
            let aim = aim(board, interval).max(interval.low + 2);
            let way = if is_long(board) { (aim - margin).abs() } else { 0 };
            steps.push((-way, self.claims.claim(board, margin)));
            if way > NEAR_AIM {
                aims.push(self.claims.claim(board, aim));
            }
        }
        steps.sort_by_key(|(rank, _)| *rank);
        let mut claims: Vec<Claim> = steps.into_iter().map(|(_, claim)| claim).collect();
        if !aims.is_empty() {
            claims.insert(1, aims.remove(0));
            claims.append(&mut aims);
        }
        claims
    }

    /// The value of an opening to the mover, from the gain of whoever moves after it.
    fn value(&self, opening: &Opening, gain: i16) -> i16 {
        self.position.lead() + i16::from(opening.banked) + if opening.passes { -gain } else { gain }
    }

    /// The board and margin whose claim says whether an opening reaches `value`, and what truth says that it does.
    fn bound(&self, opening: &Opening, value: i16) -> (i16, bool) {
        let needed = value - self.position.lead() - i16::from(opening.banked);
        // The opening fails when the other gains more than -needed.
        if opening.passes { (1 - needed, false) } else { (needed, true) }
    }

    /// The claim that an at-least question needs for an opening, or nothing.
    fn wanted_for_bound(&self, known: &dyn Knowledge, opening: &Opening, value: i16) -> Option<Claim> {
        let (margin, _) = self.bound(opening, value);
        let open = self.truth(known, opening.board, margin).is_none();
        open.then(|| self.claims.claim(opening.board, margin))
    }

    /// A perfect line after an opening in bin numbers, or the claim that it waits for. `gain` is the gain of the mover after the opening.
    ///
    /// Knowledge that contradicts itself ends the line early: nothing then keeps the gain.
    fn continuation(&self, known: &dyn Knowledge, opening: &Opening, gain: i16) -> Result<Vec<u8>, Claim> {
        let table = self.claims.table();
        let mut position = self.position;
        for house in &opening.houses {
            match position.play(table, house - 1) {
                Some(next) => position = next,
                None => return Ok(Vec::new()),
            }
        }
        let (mut line, mut gain) = (Vec::new(), gain);
        while !position.is_over() {
            let mut moves: Vec<_> = table.moves(position.board()).collect();
            // The likeliest first: a wrong one costs a search that proves nothing.
            moves.sort_by_key(|(_, played)| {
                let guess = played.board.guess();
                -i16::from(played.banked) + if played.again { -guess } else { guess }
            });
            let child = |played: &Played| child_margin(gain, played.banked, played.again);
            let keeps = |played: &Played| {
                let polarity = if played.again { Polarity::Same } else { Polarity::Opposite };
                Some(polarity.supports(self.truth(known, played.board, child(played))?))
            };
            let Some(&(house, played)) = moves.iter().find(|(_, played)| keeps(played) == Some(true)) else {
                if self.truth(known, position.board(), gain).is_none() {
                    return Err(self.claims.claim(position.board(), gain));
                }
                return match moves.iter().find(|(_, played)| keeps(played).is_none()) {
                    Some((_, played)) => Err(self.claims.claim(played.board, child(played))),
                    None => Ok(line),
                };
            };
            let Some(next) = position.play(table, house) else {
                return Ok(line);
            };
            line.push(position.bin(house));
            let left = gain - i16::from(played.banked);
            gain = if played.again { left } else { -left };
            position = next;
        }
        Ok(line)
    }

    /// What the answer to a values question needs next; empty when it is complete.
    ///
    /// Continuations wait for every opening's value: values are worth more to whoever watches, and their search warms the tables.
    fn wanted_for_values(&self, known: &dyn Knowledge) -> Vec<Claim> {
        let intervals: Vec<Interval> = self.openings.iter().map(|o| self.interval(known, o.board)).collect();
        let pairs = || self.openings.iter().zip(&intervals);
        let narrowing = self.narrowing(pairs().map(|(opening, interval)| (opening.board, *interval)));
        if !narrowing.is_empty() {
            return narrowing;
        }
        pairs()
            .filter_map(|(opening, interval)| self.continuation(known, opening, interval.low).err())
            .collect()
    }

    /// One opening's entry of the answer.
    fn opening_answer(&self, known: &dyn Knowledge, opening: &Opening) -> OpeningAnswer {
        let mut answer = OpeningAnswer {
            opening: opening.to_string(),
            value: None,
            at_least: None,
            at_most: None,
            continuation: Vec::new(),
        };
        if let Question::AtLeast(value) = self.question {
            let (margin, reached) = self.bound(opening, value);
            // The value has the parity of all seeds, so a bound of the other parity can be sharpened by one.
            let total = self.position.lead() + self.position.board().seeds();
            let value = value + ((value ^ total) & 1);
            match self.truth(known, opening.board, margin) {
                Some(truth) if truth == reached => answer.at_least = Some(value),
                Some(_) => answer.at_most = Some(value - 2),
                None => {}
            }
            return answer;
        }
        let interval = self.interval(known, opening.board);
        if let Some(gain) = interval.exact() {
            answer.value = Some(self.value(opening, gain));
            answer.continuation = self.continuation(known, opening, gain).unwrap_or_default();
            return answer;
        }
        let ends = [self.value(opening, interval.low), self.value(opening, interval.high)];
        // What the rules alone say is no news.
        let seeds = opening.board.seeds();
        let news = [interval.low > -seeds, interval.high < seeds];
        let (low, high) = if opening.passes { (1, 0) } else { (0, 1) };
        answer.at_least = news[low].then_some(ends[low]);
        answer.at_most = news[high].then_some(ends[high]);
        answer
    }

    /// The best opening's value, once no other can exceed it. An at-least question leaves it open; a finished game has it anyway.
    fn best(&self, openings: &[OpeningAnswer]) -> Option<i16> {
        if openings.is_empty() {
            return Some(self.position.lead() + self.position.board().swept());
        }
        let best = openings.iter().filter_map(|opening| opening.value).max()?;
        let ceiling = |opening: &OpeningAnswer| opening.value.or(opening.at_most);
        openings.iter().all(|opening| ceiling(opening).is_some_and(|most| most <= best)).then_some(best)
    }
}

/// Boards of at most so many seeds are solved soon: the first claim about them is the one that a guess makes likeliest to decide.
const SEEDS_SOON: i16 = 64;

/// A claim of a long game that is at most so far from where the gain is thought to be is as hard as those that decide it, more or less.
const NEAR_AIM: i16 = 4;

/// Where a gain is thought to be: at the guess, or at the end of the interval that is nearest to it.
fn aim(board: Board, Interval { low, high }: Interval) -> i16 {
    board.guess().clamp(low, high)
}

/// Whether something is to be known of a board long before its value is.
fn is_long(board: Board) -> bool {
    board.seeds() > SEEDS_SOON
}

/// The margin to ask next about an interval of a long game that has an end far from the aim: a quarter of the way from its further end to there.
/// Claims are the easier the further they are from the value, by some factor for each seed, so all these steps take little more than the last of them.
fn step(board: Board, interval: Interval) -> Option<i16> {
    let Interval { low, high } = interval;
    let aim = aim(board, interval);
    let (below, above) = (aim - low, high - aim);
    let quarter = |way: i16| (way / 8 * 2).max(2);
    (is_long(board) && below.max(above) > NEAR_AIM)
        .then(|| if below >= above { low + quarter(below) } else { high + 2 - quarter(above) })
}

/// The margin to ask next about an interval that is not exact: always above `low` and at most `high`.
fn next_margin(board: Board, interval: Interval) -> i16 {
    if let Some(margin) = step(board, interval) {
        return margin;
    }
    let Interval { low, high } = interval;
    let (seeds, guess) = (board.seeds(), board.guess());
    let margin = match (low > -seeds, high < seeds) {
        (false, false) => guess,
        // By the least step: a claim further away takes nearly as long as the nearest, and often more has been found out than was asked.
        (true, false) => low + 2,
        (false, true) => high,
        (true, true) => low + 2 + (high - low - 2) / 4 * 2,
    };
    margin.clamp(low + 2, high)
}

impl Plan for KalahPlan {
    fn rules(&self) -> &dyn ClaimRules {
        &self.claims
    }

    fn next(&self, known: &dyn Knowledge) -> Progress {
        let wanted: Vec<Claim> = match self.question {
            Question::Values => self.wanted_for_values(known),
            Question::AtLeast(value) => self
                .openings
                .iter()
                .filter_map(|opening| self.wanted_for_bound(known, opening, value))
                .collect(),
            Question::Gain => {
                let board = self.position.board();
                self.narrowing([(board, self.interval(known, board))].into_iter())
            }
        };
        // Openings that transpose into one board ask the same.
        let mut seen = HashSet::new();
        let distinct: Vec<Claim> = wanted.into_iter().filter(|claim| seen.insert(claim.clone())).collect();
        if distinct.is_empty() { Progress::Answered(self.partial(known)) } else { Progress::Ask(distinct) }
    }

    fn partial(&self, known: &dyn Knowledge) -> Answer {
        if self.question == Question::Gain {
            return Answer::Gain { gain: self.interval(known, self.position.board()).exact() };
        }
        let openings: Vec<OpeningAnswer> =
            self.openings.iter().map(|opening| self.opening_answer(known, opening)).collect();
        let asked_at_least = match self.question {
            Question::AtLeast(value) => Some(value),
            Question::Values | Question::Gain => None,
        };
        Answer::Openings { asked_at_least, value: self.best(&openings), openings }
    }

    fn is_typical(&self, known: &dyn Knowledge, claim: &Claim) -> bool {
        // Whatever a bound asks is what it takes.
        if !is_long(self.position.board()) || matches!(self.question, Question::AtLeast(_)) {
            return true;
        }
        let Ok((board, margin)) = self.claims.decode(claim) else {
            return false;
        };
        (aim(board, self.interval(known, board)) - margin).abs() <= NEAR_AIM
    }

    fn open_parts(&self, known: &dyn Knowledge) -> Vec<OpenPart> {
        let open = |part: String, board: Board, claims: u16| OpenPart {
            part,
            level: board.seeds().unsigned_abs(),
            claims,
        };
        let is_exact = |board| self.interval(known, board).exact().is_some();
        match self.question {
            Question::Gain => {
                let board = self.position.board();
                let gain = open("gain".to_owned(), board, CLAIMS_OF_A_VALUE);
                if is_exact(board) { Vec::new() } else { vec![gain] }
            }
            Question::Values => {
                let undecided = self.openings.iter().filter(|opening| !is_exact(opening.board));
                undecided.map(|opening| open(opening.to_string(), opening.board, CLAIMS_OF_A_VALUE)).collect()
            }
            Question::AtLeast(value) => {
                let is_wanted = |opening: &&Opening| self.wanted_for_bound(known, opening, value).is_some();
                let undecided = self.openings.iter().filter(is_wanted);
                undecided.map(|opening| open(opening.to_string(), opening.board, 1)).collect()
            }
        }
    }
}
