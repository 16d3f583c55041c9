//! The program itself: streams, exit codes, settings, and a coordinator's life from the command line.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

type TestResult = Result<(), Box<dyn Error>>;

/// The program, without settings from the environment of the tests.
fn grundy(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_grundy"));
    command.args(arguments).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GRUNDY_") || name == "RUST_LOG" {
            command.env_remove(name);
        }
    }
    command
}

/// Exit code, stdout, stderr.
fn run(command: &mut Command) -> Result<(i32, String, String), Box<dyn Error>> {
    let Output { status, stdout, stderr } = command.output()?;
    let code = status.code().ok_or_else(|| format!("ended by {status}"))?;
    Ok((code, String::from_utf8(stdout)?, String::from_utf8(stderr)?))
}

fn run_with_input(command: &mut Command, input: &str) -> Result<(i32, String, String), Box<dyn Error>> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    child.stdin.take().ok_or("stdin is piped")?.write_all(input.as_bytes())?;
    let Output { status, stdout, stderr } = child.wait_with_output()?;
    let code = status.code().ok_or_else(|| format!("ended by {status}"))?;
    Ok((code, String::from_utf8(stdout)?, String::from_utf8(stderr)?))
}

#[test]
fn eval_answers_lines() -> TestResult {
    let (code, stdout, stderr) = run_with_input(&mut grundy(&["eval", "cram"]), "...\n....\nno\n.....\n")?;
    assert_eq!((code, stdout.as_str()), (1, "...\t1\n....\t2\nno\t\n.....\t0\n"));
    assert!(stderr.starts_with("line 3: cram: "), "{stderr}");
    let (code, stdout, stderr) =
        run_with_input(&mut grundy(&["eval", "kalah", "--question", "outcome"]), "")?;
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (0, "", ""), "no lines, no mistakes");
    Ok(())
}

#[test]
fn simulate_measures_each_number_of_workers_and_draws() -> TestResult {
    let folder = tempfile::tempdir()?;
    let picture = folder.path().join("scaling.svg");
    let svg = picture.to_str().ok_or("a path of letters")?;
    let arguments =
        ["simulate", "cram", "4x5", "--workers", "1,3", "--memory", "64MiB", "--json", "--svg", svg];
    let (code, out, _) = run(&mut grundy(&arguments))?;
    assert_eq!(code, 0);
    let lines: Vec<serde_json::Value> = out.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let workers: Vec<_> = lines.iter().map(|line| line["workers"].as_u64()).collect();
    assert_eq!(workers, [Some(1), Some(3), None], "{out}");
    assert_eq!(lines[2]["message_type"], "summary");
    assert!(lines[2]["sequential_nodes"].as_u64() > Some(0), "{out}");
    assert!(std::fs::read_to_string(&picture)?.starts_with("<svg"));
    let refused = folder.path().join("none").join("scaling.svg");
    let refused = refused.to_str().ok_or("a path of letters")?;
    let (code, out, complaint) = run(&mut grundy(&["simulate", "cram", "4x5", "--svg", refused]))?;
    assert_eq!((code, out.as_str()), (1, ""), "refused before anything is searched");
    assert!(complaint.contains("cannot write"), "{complaint}");
    Ok(())
}

#[test]
fn exit_codes_tell_mistakes_apart() -> TestResult {
    let nowhere = "127.0.0.1:1";
    for (arguments, expected, words) in [
        (&["--version"][..], 0, ""),
        (&[], 2, "Usage"),
        (&["solve", "chess", "8x8"], 2, "invalid value 'chess'"),
        (&["solve", "cram", "3y4"], 2, "error: cram: "),
        (&["solve", "konane", "6x6"], 2, "error: konane needs --start"),
        (&["solve", "cram", "3x4", "--memory", "lots"], 2, "lots"),
        (
            &["solve", "cram", "3x4", "--workers", "0"],
            2,
            "'--workers <N>': expected a whole number of at least 1",
        ),
        (&["serve"], 2, "error: serve needs --data"),
        (&["man", "dance"], 2, "error: there is no command 'dance'"),
        (&["status", "--coordinator", nowhere], 4, "error: no coordinator answers at 127.0.0.1:1: "),
        (&["status", "--coordinator", "a b"], 2, "error: 'a b' is no address"),
        (&["query", "1", "--data", "/nowhere/at/all"], 3, "error: there is no directory"),
        (&["status", "--config", "/nowhere.toml"], 2, "error: cannot read /nowhere.toml"),
    ] {
        let (code, _, stderr) = run(&mut grundy(arguments))?;
        assert_eq!(code, expected, "{arguments:?}: {stderr}");
        assert!(stderr.contains(words), "{arguments:?}: {stderr}");
    }
    Ok(())
}

#[test]
fn flags_beat_the_environment_which_beats_the_file() -> TestResult {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("grundy.toml");
    std::fs::write(&file, "coordinator = \"127.0.0.1:3\"\n")?;
    let file = file.display().to_string();
    for (flag, variable, expected) in [
        (Some("127.0.0.1:1"), Some("127.0.0.1:2"), "127.0.0.1:1"),
        (None, Some("127.0.0.1:2"), "127.0.0.1:2"),
        (None, None, "127.0.0.1:3"),
    ] {
        let mut command = grundy(&["status", "--config", &file]);
        command.args(flag.map(|flag| ["--coordinator", flag]).into_iter().flatten());
        command.envs(variable.map(|variable| ("GRUNDY_COORDINATOR", variable)));
        let (code, _, stderr) = run(&mut command)?;
        assert!(code == 4 && stderr.contains(&format!("at {expected}: ")), "{stderr}");
    }
    std::fs::write(directory.path().join("grundy.toml"), "coordinater = \"127.0.0.1:3\"\n")?;
    let (code, _, stderr) = run(grundy(&["status"]).env("GRUNDY_CONFIG", &file))?;
    assert_eq!(code, 2);
    assert!(stderr.contains(&file) && stderr.contains("unknown field `coordinater`"), "{stderr}");
    Ok(())
}

#[test]
fn completions_and_manual_come_from_the_same_flags() -> TestResult {
    for shell in ["bash", "zsh", "fish"] {
        let (code, stdout, _) = run(&mut grundy(&["completions", shell]))?;
        assert!(code == 0 && stdout.contains("at-least"), "{shell}");
    }
    let (code, page, _) = run(&mut grundy(&["man"]))?;
    assert!(code == 0 && page.contains(".TH grundy") && page.contains("solve"), "{page}");
    let (code, page, _) = run(&mut grundy(&["man", "solve"]))?;
    assert!(code == 0 && page.contains("at\\-least"), "{page}");
    Ok(())
}

/// `grundy serve`, ended when the test ends.
struct Serve {
    child: Child,
    address: String,
}

impl Serve {
    fn start(data: &Path) -> Result<Self, Box<dyn Error>> {
        Self::start_at(data, "127.0.0.1:0")
    }

    fn start_at(data: &Path, listen: &str) -> Result<Self, Box<dyn Error>> {
        let data = data.display().to_string();
        let mut command = grundy(&["serve", "--listen", listen, "--data", &data]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("stdout is piped")?).read_line(&mut line)?;
        let address =
            line.trim().strip_prefix("listening on ").ok_or_else(|| format!("an address, not {line:?}"))?;
        Ok(Self { address: address.to_owned(), child })
    }

    fn call(&self, arguments: &[&str]) -> Result<(i32, String, String), Box<dyn Error>> {
        run(grundy(arguments).env("GRUNDY_COORDINATOR", &self.address))
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // It has ended already where the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_coordinator_lives_drains_and_resumes() -> TestResult {
    let directory = tempfile::tempdir()?;
    let mut serve = Serve::start(directory.path())?;
    let (code, stdout, stderr) = serve.call(&["submit", "cram", "3x9"])?;
    assert_eq!((code, stdout.as_str()), (0, "job 1\n"), "{stderr}");
    let (code, stdout, _) = serve.call(&["submit", "cram", "3x9", "--json"])?;
    let submitted: serde_json::Value = serde_json::from_str(&stdout)?;
    assert_eq!((code, &submitted["job"], &submitted["resumed"]), (0, &1.into(), &true.into()));
    let (code, stdout, _) = serve.call(&["status", "1"])?;
    assert!(
        code == 0 && stdout.starts_with("job 1: cram .........|.........|........., nimber, running"),
        "{stdout}"
    );
    let (code, stdout, _) = serve.call(&["query", "1"])?;
    assert_eq!((code, stdout.as_str()), (3, "nimber at least 0\n"), "not decided");
    assert_eq!(serve.call(&["status", "7"])?.0, 3);
    assert_eq!(serve.call(&["query", "1", "3y"])?.0, 2);

    // The address and the directory are taken.
    let other = tempfile::tempdir()?;
    let other = other.path().display().to_string();
    let (code, _, stderr) = run(&mut grundy(&["serve", "--listen", &serve.address, "--data", &other]))?;
    assert!(code == 1 && stderr.contains("another program listens there"), "{stderr}");
    assert_eq!(stderr.matches("in use").count(), 1, "the cause is said once: {stderr}");
    let data = directory.path().display().to_string();
    let (code, _, stderr) = run(&mut grundy(&["serve", "--listen", "127.0.0.1:0", "--data", &data]))?;
    assert!(code == 1 && stderr.contains("in use by another process"), "{stderr}");

    assert_eq!(serve.call(&["drain"])?.0, 0);
    assert_eq!(serve.child.wait()?.code(), Some(0), "a drained coordinator ends");
    assert_eq!(serve.call(&["status"])?.0, 4);
    let (code, stdout, _) = run(&mut grundy(&["query", "1", "--data", &data]))?;
    assert_eq!((code, stdout.as_str()), (3, "nimber at least 0\n"), "the directory knows the job");
    assert_eq!(run(grundy(&["query", "1"]).env("GRUNDY_DATA", &data))?.0, 3, "the same by the environment");
    let both = run(grundy(&["query", "1", "--coordinator", "127.0.0.1:1"]).env("GRUNDY_DATA", &data))?;
    assert_eq!(both.0, 4, "a flag beats the environment: {both:?}");
    let both = run(&mut grundy(&["query", "1", "--coordinator", "127.0.0.1:1", "--data", &data]))?;
    assert!(both.0 == 2 && both.2.contains("cannot be used with"), "two flags contradict: {both:?}");

    let mut serve = Serve::start(directory.path())?;
    let (code, stdout, _) = serve.call(&["cancel", "1", "--json"])?;
    let cancelled: serde_json::Value = serde_json::from_str(&stdout)?;
    assert_eq!((code, &cancelled["status"]), (0, &"cancelled".into()));
    assert_eq!(serve.call(&["watch", "1"])?.0, 3, "a cancelled job has no answer");
    let interrupted = Command::new("kill").args(["-INT", &serve.child.id().to_string()]).status()?;
    assert!(interrupted.success());
    assert_eq!(serve.child.wait()?.code(), Some(130));
    Ok(())
}

/// All files below a folder with their bytes, the folders too.
fn contents(folder: &Path) -> std::io::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut contents = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            contents.extend(self::contents(&path)?);
            contents.insert(path, Vec::new());
        } else {
            contents.insert(path.clone(), std::fs::read(path)?);
        }
    }
    Ok(contents)
}

/// A command that follows a job, with its stderr to read from while it runs.
struct Following {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Following {
    fn start(serve: &Serve, arguments: &[&str]) -> Result<Self, Box<dyn Error>> {
        let mut command = grundy(arguments);
        command.env("GRUNDY_COORDINATOR", &serve.address).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let stderr = BufReader::new(child.stderr.take().ok_or("stderr is piped")?);
        Ok(Self { child, stderr })
    }

    /// Reads on to a line with these words.
    fn until(&mut self, words: &str) -> TestResult {
        let mut read = String::new();
        while self.stderr.read_line(&mut read)? > 0 {
            if read.lines().last().is_some_and(|line| line.contains(words)) {
                return Ok(());
            }
        }
        Err(format!("'{words}' is not in:\n{read}").into())
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn who_follows_a_job_outlives_its_coordinator() -> TestResult {
    let directory = tempfile::tempdir()?;
    let mut serve = Serve::start(directory.path())?;
    let address = serve.address.clone();
    let mut watch = Following::start(&serve, &["submit", "cram", "3x9", "--watch"])?;
    // A line without a terminal, with the bound.
    watch.until("job 1: waiting for workers: ")?;
    serve.child.kill()?;
    serve.child.wait()?;
    watch.until(&format!("no answer from {address} ("))?;
    let serve = Serve::start_at(directory.path(), &address)?;
    watch.until(&format!("{address} answers again after "))?;
    assert_eq!(serve.call(&["cancel", "1"])?.0, 0);
    watch.until("job 1 is cancelled")?;
    assert_eq!(watch.child.wait()?.code(), Some(3));

    // Of one that does not come back it takes leave.
    assert_eq!(serve.call(&["submit", "cram", "3x9"])?.0, 0);
    let mut watch = Following::start(&serve, &["watch", "1", "--give-up-after", "1"])?;
    watch.until("nimber at least 0")?;
    drop(serve);
    watch.until("trying again for 1 s")?;
    watch.until("no coordinator answers")?;
    assert_eq!(watch.child.wait()?.code(), Some(4));
    Ok(())
}

#[test]
fn a_query_of_a_directory_changes_nothing_in_it() -> TestResult {
    let directory = tempfile::tempdir()?;
    let data = directory.path().join("data");
    let mut serve = Serve::start(&data)?;
    serve.call(&["submit", "cram", "3x9"])?;
    // While a coordinator has it open, it is not for reading.
    let path = data.display().to_string();
    let (code, _, stderr) = run(&mut grundy(&["query", "1", "--data", &path]))?;
    assert!(code == 1 && stderr.contains("in use by another process"), "{stderr}");
    // Killed, so that what was committed is still in the log.
    serve.child.kill()?;
    serve.child.wait()?;
    let before = contents(directory.path())?;
    for (job, expected) in [("1", 3), ("2", 3)] {
        let (code, stdout, stderr) = run(&mut grundy(&["query", job, "--data", &path]))?;
        assert_eq!(code, expected, "{stdout}{stderr}");
    }
    let after = contents(directory.path())?;
    let changed: Vec<_> = after.iter().filter(|(path, bytes)| before.get(*path) != Some(*bytes)).collect();
    assert!(changed.is_empty() && before.len() == after.len(), "{:?} changed", changed);

    // A directory that is none of ours stays what it is.
    let other = tempfile::tempdir()?;
    std::fs::write(other.path().join("letter"), "dear reader")?;
    let path = other.path().display().to_string();
    let (code, _, stderr) = run(&mut grundy(&["query", "1", "--data", &path]))?;
    assert!(code == 2 && stderr.contains(&path) && stderr.contains("no GRUNDY file"), "{code}: {stderr}");
    assert_eq!(contents(other.path())?.len(), 1);
    Ok(())
}

#[test]
fn a_directory_of_another_problem_is_refused() -> TestResult {
    let directory = tempfile::tempdir()?;
    let data = directory.path().display().to_string();
    let mut serve = Serve::start(directory.path())?;
    serve.call(&["submit", "cram", "3x4"])?;
    serve.call(&["drain"])?;
    serve.child.wait()?;
    // The worker program is looked for first, and any file will do for that.
    let program = env!("CARGO_BIN_EXE_grundy");
    let (code, _, stderr) =
        run(&mut grundy(&["solve", "cram", "3x5", "--data", &data, "--worker-program", program]))?;
    assert_eq!(code, 2);
    assert!(stderr.contains("position is '....|....|....' there and '.....|.....|.....' here"), "{stderr}");
    Ok(())
}
