//! `ostler completions`.

use clap::{Arg, Args, Command, CommandFactory as _};
use clap_complete::Shell;

use crate::error::CommandResult;
use crate::output::StdoutWriter;

/// What `completions` takes.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// For which shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the completion script.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn run(args: &CompletionsArgs) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut verbs(), "ostler", &mut script);
    let script = with_dynamic_completion(args.shell, String::from_utf8_lossy(&script).into_owned());
    let mut out = StdoutWriter::new();
    out.write_raw(script.as_bytes())?;
    out.flush()?;
    Ok(0)
}

/// The verbs and their flags, without the copies below `help`.
fn verbs() -> Command {
    let verbs = super::args::Cli::command().disable_help_subcommand(true);
    let verb = Arg::new("VERB");
    verbs.subcommand(Command::new("help").about("Print help").arg(verb))
}

/// The script extended by dynamic completion of ids and names, where the shell supports it.
#[expect(clippy::wildcard_enum_match_arm, reason = "the list of shells is open")]
fn with_dynamic_completion(shell: Shell, script: String) -> String {
    match shell {
        Shell::Bash => script + BASH,
        Shell::Fish => script + FISH,
        // The end of the script registers the completion function.
        Shell::Zsh => match script.rsplit_once(ZSH_END) {
            Some((verbs, _)) => verbs.to_owned() + ZSH,
            None => script,
        },
        _ => script,
    }
}

const BASH: &str = r#"
_ostler_words() {
    local word about n=$COMP_CWORD
    local -a words=("${COMP_WORDS[@]:1:n}")
    # To bash '@' is a word of its own; what it replaces begins with it.
    if [[ $2 == @?* && ${COMP_WORDS[n - 1]} == @ ]]; then
        words=("${COMP_WORDS[@]:1:n - 2}" "$2")
    fi
    COMPREPLY=()
    while IFS=$'\t' read -r word about; do
        [[ -n $word ]] && COMPREPLY+=("$word")
    done < <(ostler __complete -- "${words[@]}" 2>/dev/null)
    ((${#COMPREPLY[@]})) && return
    # What follows '--' is a command with arguments of its own.
    local i
    for ((i = 1; i < n; i++)); do
        [[ ${COMP_WORDS[i]} == -- ]] || continue
        ((i < n - 1)) || mapfile -t COMPREPLY < <(compgen -c -- "$2")
        return
    done
    _ostler "$@"
    # Names of directories: no blank after them.
    [[ ${COMPREPLY[0]-} && -d ${COMPREPLY[0]} ]] && compopt -o filenames
}
complete -F _ostler_words -o bashdefault -o default ostler
"#;

const FISH: &str = r#"
function __ostler_words
    set -l typed (commandline -opc)
    set -l last (commandline -ct)
    ostler __complete -- $typed[2..-1] "$last" 2>/dev/null
end
complete -c ostler -n 'count (__ostler_words) >/dev/null' -f -k -a '(__ostler_words)'
"#;

/// How the script of `clap_complete` for zsh ends.
const ZSH_END: &str = r#"if [ "$funcstack[1]" = "_ostler" ]; then"#;

const ZSH: &str = r#"
_ostler_words() {
    local line
    local -a found about
    for line in "${(@f)$(ostler __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -n $line ]] && found+=("${line%%$'\t'*}") && about+=("${line/$'\t'/  }")
    done
    if (( $#found )); then
        compadd -V ostler -l -d about -a found
    else
        _ostler "$@"
    fi
}
compdef _ostler_words ostler
if [ "$funcstack[1]" = "_ostler" ]; then
    _ostler_words "$@"
fi
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_we_know_asks_for_words() {
        for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut verbs(), "ostler", &mut script);
            let script = with_dynamic_completion(shell, String::from_utf8(script).unwrap());
            assert!(script.contains("ostler __complete -- "), "{shell}");
        }
    }
}
