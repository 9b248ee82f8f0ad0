//! The shipped table against corpora of commands, output lines and scripts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ostler_model::{ByteString, Command, ServiceKind};
use proptest::prelude::*;
use regex::Regex;

use super::table::check_expressions;
use super::*;

/// Command lines of services: `id kind port | command`.
const POSITIVES: &str = include_str!("../tests/corpus/positives.txt");
/// Command lines of other programs.
const NEGATIVES: &str = include_str!("../tests/corpus/negatives.txt");
/// The files of the workspace they run in, below `/w`.
const WORKSPACE: &str = include_str!("../tests/corpus/workspace.txt");
/// Output of programs: `id field | line`, and lines that no `ready` may match.
const LINES: &str = include_str!("../tests/corpus/lines.txt");

struct Workspace(BTreeMap<PathBuf, String>);

impl WorkspaceFiles for Workspace {
    fn read(&self, path: &Path) -> Option<Vec<u8>> {
        self.0.get(path).map(|text| text.clone().into_bytes())
    }
}

fn workspace() -> Workspace {
    let files = WORKSPACE.split("\n=== ").filter_map(|part| {
        let (path, text) = part.trim_start_matches("=== ").split_once('\n')?;
        Some((Path::new("/w").join(path.trim()), text.to_owned()))
    });
    Workspace(files.collect())
}

fn shell(script: &str) -> Command {
    Command::Shell {
        shell: ByteString::from("/bin/sh"),
        script: ByteString::from(script),
    }
}

fn argv(words: &[String]) -> Command {
    let mut words = words.iter().map(|it| ByteString::from(it.as_str()));
    Command::Argv {
        program: words.next().unwrap_or_default(),
        args: words.collect(),
    }
}

fn detect(command: &Command, env: &[(&str, &str)]) -> Option<DetectedService> {
    detect_in(command, env, &workspace())
}

fn detect_in(
    command: &Command,
    env: &[(&str, &str)],
    files: &dyn WorkspaceFiles,
) -> Option<DetectedService> {
    let env: Vec<(ByteString, ByteString)> = env
        .iter()
        .map(|(name, value)| (ByteString::from(*name), ByteString::from(*value)))
        .collect();
    let query = DetectionQuery {
        command,
        cwd: Path::new("/w"),
        env: &env,
    };
    DetectionTable::shipped().detect(query, files)
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with("# "))
}

fn kind_name(kind: ServiceKind) -> &'static str {
    match kind {
        ServiceKind::Unknown => "unknown",
        ServiceKind::Server => "server",
        ServiceKind::Socket => "socket",
        ServiceKind::Watcher => "watcher",
        ServiceKind::Multi => "multi",
    }
}

fn summary(found: Option<&DetectedService>) -> String {
    found.map_or_else(
        || "no service".to_owned(),
        |it| {
            let port = it
                .ready
                .port
                .map_or("-".to_owned(), |port| port.to_string());
            format!("{} {} {port}", it.id, kind_name(it.ready.kind))
        },
    )
}

#[test]
fn services_are_recognised() {
    let mut misses = Vec::new();
    let mut count = 0;
    for line in lines(POSITIVES) {
        let (wanted, command) = line.split_once(" | ").expect("id kind port | command");
        let wanted = wanted.split_whitespace().collect::<Vec<_>>().join(" ");
        count += 1;
        let found = summary(detect(&shell(command), &[]).as_ref());
        if found != wanted {
            misses.push(format!(
                "{command}\n    wanted {wanted}\n    found  {found}"
            ));
        }
    }
    assert!(count >= 200, "only {count}");
    assert!(
        misses.is_empty(),
        "{} misses:\n{}",
        misses.len(),
        misses.join("\n")
    );
}

#[test]
fn what_ends_is_no_service() {
    let mut misses = Vec::new();
    let mut count = 0;
    for command in lines(NEGATIVES) {
        count += 1;
        if let Some(found) = detect(&shell(command), &[]) {
            misses.push(format!("{command}\n    found {}", summary(Some(&found))));
        }
    }
    assert!(count >= 300, "only {count}");
    assert!(
        misses.is_empty(),
        "{} misses:\n{}",
        misses.len(),
        misses.join("\n")
    );
}

/// The words of a script that is one command of plain words.
fn plain_words(script: &str) -> Option<Vec<String>> {
    let list = ostler_policy::command_list(script)?;
    let [ostler_policy::ListStep::Command(command)] = list.steps.as_slice() else {
        return None;
    };
    if !command.assignments.is_empty() {
        return None;
    }
    let words: Vec<String> = command
        .words
        .iter()
        .map(|word| word.expand(&|_| None))
        .collect();
    let simple = !script.contains(['<', '>', '$', '`', '#', '{', '}', '!']);
    let assigns = words.first().is_some_and(|it| it.contains('='));
    (simple && !assigns).then_some(words)
}

#[test]
fn words_are_judged_as_scripts_are() {
    for command in lines(POSITIVES).filter_map(|line| Some(line.split_once(" | ")?.1)) {
        let Some(words) = plain_words(command) else {
            continue;
        };
        let [script, words] = [detect(&shell(command), &[]), detect(&argv(&words), &[])];
        assert_eq!(
            summary(script.as_ref()),
            summary(words.as_ref()),
            "{command}"
        );
        assert_eq!(
            script.map(|it| it.port_arguments),
            words.map(|it| it.port_arguments)
        );
    }
}

/// Each service behind one wrapper and before one ending, each of which has its turn.
#[test]
fn a_service_behind_a_wrapper_stays_one() {
    check_wrappers(|number, texts| vec![texts[number % texts.len()]]);
}

#[test]
fn full_a_service_behind_every_wrapper_stays_one() {
    check_wrappers(|_, texts| texts.to_vec());
}

/// `choose` selects wrappers, and endings, for the service with a number.
fn check_wrappers(choose: fn(usize, &[&'static str]) -> Vec<&'static str>) {
    let wrappers = [
        "env A=b",
        "FOO=bar",
        "nohup",
        "setsid",
        "time",
        "nice -n 5",
        "timeout -k 5 60s",
        "stdbuf -oL",
        "exec",
        "cross-env A=b",
        "npm ci &&",
        "cd . &&",
        "true;",
        "sudo -E",
        "dotenv -e .env --",
        "direnv exec .",
        "mise exec --",
        "xvfb-run -a",
        "set -e; export X=1;",
        "( true ) &&",
    ];
    let endings = [
        "",
        " &",
        " > log 2>&1",
        " 2>&1 | tee log",
        " # now",
        " || exit 1",
        ";",
    ];
    let mut misses = Vec::new();
    for (number, line) in lines(POSITIVES).enumerate() {
        let (_, command) = line.split_once(" | ").expect("id kind port | command");
        if plain_words(command).is_none() {
            continue;
        }
        let plain = summary(detect(&shell(command), &[]).as_ref());
        let (wrappers, endings) = (choose(number, &wrappers), choose(number, &endings));
        let wrapped = wrappers.iter().map(|it| format!("{it} {command}"));
        let ended = endings.iter().map(|it| format!("{command}{it}"));
        for script in wrapped.chain(ended) {
            let found = summary(detect(&shell(&script), &[]).as_ref());
            if found != plain {
                misses.push(format!("{script}: {found}, not {plain}"));
            }
        }
    }
    assert!(
        misses.is_empty(),
        "{}:\n{}",
        misses.len(),
        misses.join("\n")
    );
}

#[test]
fn scripts_that_go_on_are_no_services() {
    for line in lines(POSITIVES) {
        let (_, command) = line.split_once(" | ").expect("id kind port | command");
        if command.contains(['#', '&', ';']) {
            continue;
        }
        for script in [
            format!("{command} & sleep 5; curl -s localhost"),
            format!("echo {command}"),
            format!("grep -r '{}' src", command.replace('\'', "")),
            format!("for i in 1 2; do {command}; done"),
            format!("cat <<E\n{command}\nE"),
            format!("# {command}"),
        ] {
            assert_eq!(
                summary(detect(&shell(&script), &[]).as_ref()),
                "no service",
                "{script}"
            );
        }
    }
}

#[test]
fn expressions_compile_and_ids_are_unique() {
    let table = DetectionTable::shipped();
    let mut ids = BTreeSet::new();
    for entry in table.all() {
        check_expressions("shipped", &entry.text).expect("its expressions compile");
        assert!(ids.insert(&entry.text.id), "{} twice", entry.text.id);
        assert!(!entry.text.title.is_empty() && !entry.text.language.is_empty());
        for argument in entry.text.port_arguments.iter().flatten() {
            assert!(
                !argument.contains('{') || argument.contains("{port}"),
                "{argument}"
            );
        }
    }
    assert!(ids.len() >= 120, "only {}", ids.len());
    assert_eq!(table.entries().count(), ids.len());
}

#[test]
fn lines_match_as_they_should() {
    let table = DetectionTable::shipped();
    let mut misses = Vec::new();
    let mut never = Vec::new();
    for line in lines(LINES) {
        let (head, text) = line.split_once(" | ").expect("id field | line");
        if head.trim() == "never" {
            never.push(text);
            continue;
        }
        let (id, field) = head.trim().split_once(' ').expect("id field");
        let entry = table.all().find(|it| it.text.id == id).expect(id);
        let (list, group) = match field.split_once('=').unwrap_or((field, "")) {
            ("ready", _) => (&entry.text.ready, None),
            ("fail", _) => (&entry.text.fail, None),
            ("url", wanted) => (&entry.text.url, Some(wanted)),
            (other, _) => panic!("no field {other}"),
        };
        let found = list.iter().find_map(|it| {
            let captures = Regex::new(it).expect("it compiles").captures(text)?;
            let named = ["url", "port", "addr"]
                .into_iter()
                .find_map(|it| captures.name(it));
            Some(named.map_or("", |it| it.as_str()).to_owned())
        });
        match (found, group) {
            (None, _) => misses.push(format!("{head}: {text}")),
            (Some(found), Some(wanted)) if found != wanted => {
                misses.push(format!("{head}: {text}: found {found}"));
            }
            (Some(_), _) => {}
        }
    }
    for entry in table.all() {
        for ready in &entry.text.ready {
            let regex = Regex::new(ready).expect("it compiles");
            let wrong = never.iter().filter(|line| regex.is_match(line));
            misses.extend(wrong.map(|line| format!("{} ready {ready}: {line}", entry.text.id)));
        }
    }
    assert!(never.len() >= 20);
    assert!(
        misses.is_empty(),
        "{} misses:\n{}",
        misses.len(),
        misses.join("\n")
    );
}

#[test]
fn port_arguments_reach_the_program() {
    let given = |command: &str| detect(&shell(command), &[]).expect(command).port_arguments;
    let list = |words: &str| {
        Some(
            words
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        )
    };
    for (command, wanted) in [
        ("vite", list("--port {port} --strictPort")),
        ("npx vite", list("--port {port} --strictPort")),
        ("npm exec vite", list("-- --port {port} --strictPort")),
        ("npm exec -- vite", list("--port {port} --strictPort")),
        ("npm run dev", list("-- --port {port} --strictPort")),
        ("npm run dev -- --host", list("--port {port} --strictPort")),
        ("npm run twice", list("-- -- --port {port} --strictPort")),
        ("yarn dev", list("--port {port} --strictPort")),
        ("pnpm dev", list("--port {port} --strictPort")),
        ("pnpm run dev", list("--port {port} --strictPort")),
        ("bun run dev", list("--port {port} --strictPort")),
        ("npm --prefix web run dev", list("-- -p {port}")),
        ("cd web && yarn dev", list("-p {port}")),
        ("vite > log 2>&1", list("--port {port} --strictPort")),
        ("vite &", None),
        ("vite | tee log", None),
        ("vite # now", None),
        ("(vite)", None),
        ("sh -c vite", None),
        ("vite --port 4000", None),
        ("npm run dev -- --port 4000", None),
        ("next dev &", list("")),
        ("PORT=4000 next dev &", None),
        ("PORT=4000 next dev", list("-p {port}")),
        ("node server.js", list("")),
        ("PORT=4000 node server.js", None),
        ("make dev", None),
        ("python manage.py runserver", list("{port}")),
        ("python manage.py runserver 8001", None),
        ("python3 -m http.server", list("{port}")),
        ("python3 -m http.server $PORT", list("")),
        ("vite --port ${PORT}", list("")),
        ("gunicorn app:app -b \"0.0.0.0:$PORT\"", list("")),
        ("poetry run uvicorn app:app", list("--port {port}")),
        ("npm start", list("")),
    ] {
        assert_eq!(given(command), wanted, "{command}");
    }
}

#[test]
fn ports_come_from_the_environment_too() {
    for (command, env, wanted) in [
        ("next dev", vec![("PORT", "4000")], Some(4000)),
        ("next dev -p 5000", vec![("PORT", "4000")], Some(5000)),
        ("PORT=6000 next dev", vec![("PORT", "4000")], Some(6000)),
        ("vite", vec![("PORT", "4000")], None),
        ("vite --port $PORT", vec![("PORT", "4000")], Some(4000)),
        ("vite --port ${PORT:-4100}", vec![], Some(4100)),
        ("export PORT=4200; next dev", vec![], Some(4200)),
        (
            "dotnet run",
            vec![("ASPNETCORE_URLS", "http://+:5050")],
            Some(5050),
        ),
    ] {
        let found = detect(&shell(command), &env).expect(command);
        assert_eq!(found.ready.port, wanted, "{command} {env:?}");
    }
}

#[test]
fn without_files_names_decide() {
    for (command, wanted) in [
        ("npm run dev", Some("package-script")),
        ("npm start", Some("package-script")),
        ("yarn serve", Some("package-script")),
        ("pnpm --filter web dev", Some("package-script")),
        ("pnpm -r --parallel run dev", Some("monorepo")),
        ("yarn vite", Some("vite")),
        ("npm run build", None),
        ("npm test", None),
        ("yarn", None),
        ("npm run dev:seed", None),
        ("make dev", Some("task-runner")),
        ("make", None),
        ("node app.js", None),
        ("python app.py", None),
    ] {
        let found = detect_in(&shell(command), &[], &NoFiles).map(|it| it.id);
        assert_eq!(found.as_deref(), wanted, "{command}");
    }
}

#[test]
fn an_answer_has_all_the_table_says() {
    let found = detect(&shell("flask --app hello run --debug -p 5050"), &[]).expect("flask");
    assert_eq!(found.title, "Flask server");
    assert_eq!(
        found.env,
        [(ByteString::from("PYTHONUNBUFFERED"), ByteString::from("1"))]
    );
    assert_eq!(found.ready.default_port, Some(5000));
    assert!(found.ready.listens_before_ready);
    assert_eq!(found.normalised, "flask --app hello run --debug -p 5050");
    let found = detect(&shell("docker compose up"), &[]).expect("compose");
    assert_eq!(found.ready.timeout().as_secs(), 120);
    let found = detect(&shell("npm run dev -- --host"), &[]).expect("npm");
    assert_eq!(found.normalised, "vite --host");
    assert!(detect(&shell("iex -S mix"), &[]).expect("iex").terminal);
}

#[test]
fn users_add_and_replace_entries() {
    let mine = "[[entry]]\nid = \"mine\"\ntitle = \"Mine\"\nlanguage = \"c\"\nkind = \"server\"\n\
                argv = [\"serve-it up\"]\nport = [\"--port\"]\n\
                [[entry]]\nid = \"vite\"\ntitle = \"Our vite\"\nlanguage = \"javascript\"\nargv = [\"vite\"]\n\
                [[wrapper]]\nwords = [\"with-us\"]\noperands = 1\n";
    let table = DetectionTable::shipped()
        .with_file("mine.toml", mine)
        .expect("it is right");
    let detect = |script: &str| {
        let command = shell(script);
        let query = DetectionQuery {
            command: &command,
            cwd: Path::new("/w"),
            env: &[],
        };
        table.detect(query, &NoFiles)
    };
    let found = detect("with-us now ./serve-it up --port 99").expect("ours");
    assert_eq!((found.id.as_str(), found.ready.port), ("mine", Some(99)));
    assert_eq!(detect("vite").expect("replaced").title, "Our vite");
    assert_eq!(table.entries().next().map(|it| it.id), Some("mine"));
    assert_eq!(
        table.entries().count(),
        DetectionTable::shipped().entries().count() + 1
    );
}

#[test]
fn invalid_tables_are_refused_with_the_line() {
    let entry =
        |extra: &str| format!("[[entry]]\nid = \"x\"\ntitle = \"X\"\nlanguage = \"c\"\n{extra}\n");
    for (text, wanted) in [
        (
            entry("argv = [\"x\"]\nredy = []"),
            "t.toml: line 6: unknown key 'redy'; did you mean 'ready'?",
        ),
        (
            entry("argv = []"),
            "t.toml: entry 'x', argv: there is no pattern",
        ),
        (
            entry("argv = [\"x --y\"]"),
            "t.toml: entry 'x', argv: '--y': an option is written with '+' or '!' before it",
        ),
        (
            entry("argv = [\"x <\"]"),
            "t.toml: entry 'x', argv: '<' needs 'contains'",
        ),
        (
            entry("argv = [\"x\"]\nurl = ['http']"),
            "t.toml: entry 'x', url: 'http' has no group named url, port or addr",
        ),
        (
            entry("argv = [\"x\"]").repeat(2),
            "t.toml: two entries are called 'x'",
        ),
    ] {
        let error = DetectionTable::shipped()
            .with_file("t.toml", &text)
            .unwrap_err();
        assert_eq!(error.to_string(), wanted);
    }
    let error = DetectionTable::shipped()
        .with_file("t.toml", &entry("argv = [\"x\"]\nready = ['(']"))
        .unwrap_err();
    assert!(matches!(error, TableError::Expression { field, .. } if field == "ready"));
}

#[test]
fn appended_arguments_need_the_end_of_the_script() {
    for script in [
        "npm run dev\n",
        "npm run dev;",
        "{ npm run dev; }",
        "vite || exit 1",
    ] {
        let found = detect(&shell(script), &[]).expect(script);
        assert_eq!(found.port_arguments, None, "{script}");
    }
}

#[test]
fn cycles_and_depth_end() {
    for command in ["npm run cycle", "npm run a1", "npm run bomb", "./loop.sh"] {
        assert_eq!(detect(&shell(command), &[]), None, "{command}");
    }
}

fn commands() -> Vec<&'static str> {
    lines(POSITIVES)
        .filter_map(|line| Some(line.split_once(" | ")?.1))
        .collect()
}

proptest! {
    #[test]
    fn no_script_makes_it_panic(script in ".{0,200}") {
        let _found = detect(&shell(&script), &[]);
    }

    #[test]
    fn no_script_of_shell_pieces_makes_it_panic(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "npm", "run", "dev", "vite", "--port", "3000", "&&", "||", ";", "&", "|", "(", ")",
                "'", "\"", "$", "${", "}", "`", "\\", "\n", "<", ">", "<<", "#", "cd", "..", "--",
                "env", "A=b", "npx", "python", "-m", "make", "sh", "-c", "concurrently", "npm:*",
                "-p3", "=", "@", "-", "timeout", "yarn", "workspace", "é", "pnpm", "--filter",
            ]),
            0..30,
        ),
        gap in prop::sample::select(vec!["", " "]),
    ) {
        let _found = detect(&shell(&pieces.join(gap)), &[("PORT", "3")]);
    }

    #[test]
    fn no_words_make_it_panic(words in prop::collection::vec(".{0,12}", 0..8)) {
        let _found = detect(&argv(&words), &[]);
    }

    #[test]
    fn quotes_change_nothing(at in 0..10_000_usize, style in prop::collection::vec(0..3_u8, 12)) {
        let all = commands();
        let command = all[at % all.len()];
        if let Some(words) = plain_words(command) {
            let quoted = words.iter().enumerate().map(|(at, word)| match style[at % style.len()] {
                0 => format!("'{}'", word.replace('\'', "'\\''")),
                1 => format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"")),
                _ if word.is_empty() || word.contains(|c: char| " '\"\\&|;()*~:[]".contains(c)) => format!("'{word}'"),
                _ => word.clone(),
            });
            let script = quoted.collect::<Vec<_>>().join(" ");
            prop_assert_eq!(detect(&shell(&script), &[]), detect(&shell(command), &[]), "{}", script);
        }
    }

    #[test]
    fn no_file_makes_it_panic(text in ".{0,200}") {
        let files = ["package.json", "Makefile", "composer.json", "pyproject.toml", "server.js", "x.sh"];
        let files = Workspace(files.iter().map(|it| (Path::new("/w").join(it), text.clone())).collect());
        for command in ["npm run dev", "make dev", "composer dev", "pdm run dev", "node server.js", "./x.sh", "npx concurrently npm:*"] {
            let _found = detect_in(&shell(command), &[], &files);
        }
    }
}

#[test]
fn programs_that_share_an_entry_have_names_and_ports_of_their_own() {
    for (command, name, port) in [
        ("waitress-serve app:app", "waitress-serve", 8080),
        ("daphne app:app", "daphne", 8000),
        ("hypercorn app:app", "hypercorn", 8000),
        ("locust -f load.py", "locust", 8089),
        ("litestar run", "litestar", 8000),
        ("quart run", "quart", 5000),
        ("prisma studio", "prisma", 5555),
        ("mailpit", "mailpit", 8025),
        ("zola serve", "zola", 1111),
        ("cargo leptos watch", "cargo", 0),
        ("vite preview", "vite-preview", 4173),
        ("vite", "vite", 5173),
        ("ruby -run -e httpd .", "ruby-httpd", 8080),
        ("rackup", "rackup", 9292),
        ("python -m pyftpdlib", "pyftpdlib", 2121),
        ("prometheus", "prometheus", 9090),
    ] {
        let found = detect(&shell(command), &[]).expect(command);
        let actual = (found.name.as_str(), found.ready.default_port.unwrap_or(0));
        assert_eq!(actual, (name, port), "{command}");
    }
}
