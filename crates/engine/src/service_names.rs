//! Names of services.

use std::path::Path;

use ostler_model::Command;

/// The longest name, in characters.
pub(crate) const NAME_CHARS: usize = 63;
/// The name of a service where nothing better is known.
const FALLBACK: &str = "service";

/// Validates a name.
///
/// # Errors
/// The rule for names, as text.
pub(crate) fn check(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = name.len() <= NAME_CHARS
        && name.starts_with(plain)
        && name.chars().all(|c| plain(c) || "_.-".contains(c));
    if fits {
        return Ok(());
    }
    Err(format!(
        "a name begins with a lower-case letter or digit and has only those and '_', '.', '-', \
         at most {NAME_CHARS} in all"
    ))
}

/// Chooses a name for an unnamed service: that of the framework, else of its program, with a number
/// where it is taken.
pub(crate) fn choose(
    detected: Option<&str>,
    command: &Command,
    is_taken: impl Fn(&str) -> bool,
) -> String {
    let base = detected.map_or_else(|| sanitize(&program_of(command)), sanitize);
    if !is_taken(&base) {
        return base;
    }
    let mut number = 2_u32;
    loop {
        let suffix = format!("-{number}");
        let prefix: String = base.chars().take(NAME_CHARS - suffix.len()).collect();
        let name = format!("{prefix}{suffix}");
        if !is_taken(&name) {
            return name;
        }
        number += 1;
    }
}

/// Turns any text into a valid name.
fn sanitize(text: &str) -> String {
    let replace = |c: char| {
        let c = c.to_ascii_lowercase();
        let plain = c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c);
        if plain { c } else { '-' }
    };
    let name: String = text.chars().map(replace).take(NAME_CHARS).collect();
    let name = name.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    if name.is_empty() {
        FALLBACK.to_owned()
    } else {
        name.to_owned()
    }
}

/// The base name of a program; of a script, the first word that is no assignment.
fn program_of(command: &Command) -> String {
    let first = match command {
        Command::Argv { program, .. } => program.to_string(),
        Command::Shell { script, .. } => {
            let script = script.to_string();
            let mut words = script.split_whitespace();
            let word = words.find(|word| !word.contains('='));
            word.unwrap_or_default().to_owned()
        }
    };
    let base = Path::new(&first).file_stem();
    base.map(|it| it.to_string_lossy().into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_model::ByteString;
    use proptest::prelude::*;

    fn script(text: &str) -> Command {
        Command::Shell {
            shell: ByteString::from("/bin/sh"),
            script: ByteString::from(text),
        }
    }

    #[test]
    fn names_are_plain() {
        for good in ["web", "a", "0", "my-app_2.test", &"a".repeat(63)] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["", "Web", "-web", ".x", "a b", "ä", "a/b", &"a".repeat(64)] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_is_made_up_from_what_is_known() {
        let free = |_: &str| false;
        assert_eq!(choose(Some("vite"), &script("x"), free), "vite");
        assert_eq!(
            choose(None, &script("PORT=1 /opt/My_Server.py -x"), free),
            "my_server"
        );
        assert_eq!(choose(None, &script("'§§'"), free), "service");
        let taken = |name: &str| name == "vite" || name == "vite-2";
        assert_eq!(choose(Some("vite"), &script("x"), taken), "vite-3");
    }

    proptest! {
        #[test]
        fn every_chosen_name_can_be_one(id in ".{0,80}", text in ".{0,80}", taken in 0..12_usize) {
            let seen = std::cell::Cell::new(0);
            let is_taken = |_: &str| { seen.set(seen.get() + 1); seen.get() <= taken };
            let name = choose((!id.is_empty()).then_some(id.as_str()), &script(&text), is_taken);
            prop_assert_eq!(check(&name), Ok(()));
        }
    }
}
