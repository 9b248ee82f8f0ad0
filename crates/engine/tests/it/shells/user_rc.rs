//! The person's own files, options and prompts.

use std::time::Duration;

use ostler_engine::{Error, ShellEnd};
use ostler_model::ShellKind;
use tempfile::TempDir;

use super::fixture::ShellFixture;
use crate::test_engine::test_caller;

in_every_shell! {
    strict_options_do_no_harm
    a_slow_start_is_waited_for
    exported_prompts_and_allexport
    the_persons_own_files_are_loaded
    a_broken_prompt_never_hangs
}

async fn strict_options_do_no_harm(kind: ShellKind) {
    let fixture = ShellFixture::new(kind).await;
    let options: &[&str] = match kind {
        ShellKind::Bash => &[
            "set -u",
            "set -o noclobber",
            "set -o posix",
            "set -f",
            "IFS=e4/",
            "set -x",
            "set -e",
            "unset PATH",
            "shopt -s nocasematch extglob",
            "trap 'true' DEBUG",
            "trap 'true' ERR",
        ],
        ShellKind::Zsh => &[
            "setopt no_unset",
            "setopt noclobber",
            "setopt ksh_arrays",
            "setopt sh_word_split",
            "setopt glob_subst",
            "setopt err_return",
            "IFS=e4/",
            "set -x",
            "setopt prompt_subst",
            "setopt no_prompt_cr",
            "setopt prompt_sp",
            "set +x",
            "trap 'true' DEBUG",
            "trap - DEBUG",
            "unset PATH",
            "setopt err_exit",
            "setopt xtrace warn_create_global",
        ],
        ShellKind::Fish => &["set -e PATH", "set -g fish_trace 0"],
    };
    for option in options {
        assert_eq!(fixture.run_to_end(option).await.0, 0, "{kind:?}: {option}");
        let (status, output) = fixture.run_to_end("echo fine").await;
        assert_eq!(status, 0, "{kind:?}: {option}");
        assert!(
            output.ends_with("fine\r\n"),
            "{kind:?}: {option}: {output:?}"
        );
    }
    if kind != ShellKind::Fish {
        assert_eq!(fixture.run_to_end("! true").await.0, 1);
    }
    fixture.end().await;
}

async fn a_slow_start_is_waited_for(kind: ShellKind) {
    let rc = match kind {
        ShellKind::Bash => "read -t 1 x; PS1='slow$ '",
        ShellKind::Zsh => "read -t 1 x; PS1='slow%# '",
        ShellKind::Fish => "sleep 1",
    };
    let fixture = ShellFixture::with_rc(kind, rc).await;
    assert_eq!(
        fixture.run_to_end("echo up").await,
        (0, "up\r\n".to_owned())
    );
    fixture.end().await;
}

async fn exported_prompts_and_allexport(kind: ShellKind) {
    let rc = match kind {
        ShellKind::Bash | ShellKind::Zsh => "export PS1='mine> ' PS2 PS0\nset -a",
        ShellKind::Fish => "set -gx PS1 mine",
    };
    let fixture = ShellFixture::with_rc(kind, rc).await;
    let info = fixture
        .engine
        .info(&test_caller(), &fixture.id)
        .expect("known");
    let nonce = info.spec.shell.as_ref().expect("a shell").nonce.clone();
    fixture.run_to_end("true").await;
    let (_, output) = fixture.run_to_end("env").await;
    assert!(output.contains("PS1="), "{output}");
    assert!(!output.contains(&nonce), "{output}");
    fixture.end().await;
}

/// As prompt frameworks do: redraws before each prompt, and prints output of its own.
async fn the_persons_own_files_are_loaded(kind: ShellKind) {
    let rc = match kind {
        ShellKind::Bash => {
            r#"
            mine() { local s=$?; printf '\e]0;title %s\a' "$s"; echo "hook $s"; PS1="[$s] \$ "; }
            PROMPT_COMMAND='mine;'
            PS2='more> '
            alias mine2='echo own'
            export FROM_RC=yes
            "#
        }
        ShellKind::Zsh => {
            r#"
            precmd() { local s=$?; print -n "\e]0;title $s\a"; print "hook $s"; PROMPT="[$s] %# " }
            other() { PROMPT="$PROMPT$ " }
            precmd_functions=(other)
            preexec() { print -n "\e]0;$1\a" }
            setopt prompt_subst
            alias mine2='echo own'
            export FROM_RC=yes
            "#
        }
        ShellKind::Fish => {
            r#"
            function fish_prompt; echo -n "[$status] > "; end
            function hook --on-event fish_prompt; echo "hook $status"; end
            function mine2; echo own; end
            set -gx FROM_RC yes
            "#
        }
    };
    let fixture = ShellFixture::with_rc(kind, rc).await;
    assert_eq!(
        fixture.run_to_end("mine2").await,
        (0, "own\r\n".to_owned()),
        "{kind:?}"
    );
    assert_eq!(
        fixture.run_to_end("sh -c 'printf x; exit 5'").await,
        (5, "x".to_owned())
    );
    assert_eq!(fixture.run_to_end("echo $FROM_RC").await.1, "yes\r\n");
    assert_eq!(fixture.run_to_end("false").await, (1, String::new()));
    // Until the next one, so that its own prompt is there.
    fixture.run_to_end("true; sh -c 'exit 9'").await;
    fixture.run_to_end("true").await;
    let view = fixture
        .engine
        .screen(&test_caller(), &fixture.id)
        .await
        .expect("a screen")
        .text();
    assert!(
        view.contains("[9]") && view.contains("hook "),
        "{kind:?}: {view}"
    );
    if kind != ShellKind::Fish {
        assert!(view.contains("hook 5"), "{kind:?}: {view}");
    }
    fixture.end().await;
}

async fn a_broken_prompt_never_hangs(kind: ShellKind) {
    let breaks: &[&str] = match kind {
        ShellKind::Bash => &[
            "PS1=x",
            "PROMPT_COMMAND=",
            "PROMPT_COMMAND=true",
            "unset PROMPT_COMMAND",
            "PS0=",
            "PROMPT_COMMAND='sleep 0.1; false'; PS1='a b '",
            "trap 'echo traced' DEBUG",
            "unset PROMPT_COMMAND PS0 PS1",
            "unset -f __ostler_first",
            "unset -f __ostler_last __ostler_tell",
        ],
        ShellKind::Zsh => &[
            "PS1=x",
            "precmd_functions=()",
            "preexec_functions=()",
            "precmd() { false }",
            "unfunction precmd",
            "precmd_functions=() preexec_functions=() PS1=x; unfunction precmd",
            "unsetopt prompt_percent",
            "unfunction __ostler_first",
        ],
        ShellKind::Fish => &[
            "function fish_prompt; echo -n 'x '; end",
            "functions -e fish_prompt",
            "functions -e __ostler_end",
            "functions -e __ostler_start __ostler_end __ostler_prompt",
        ],
    };
    for script in breaks {
        let fixture = ShellFixture::new(kind).await;
        let first = fixture.run_end(script).await;
        let actual = matches!(
            first,
            ShellEnd::Finished { status: 0, .. } | ShellEnd::NoMarker
        );
        assert!(actual, "{kind:?}: {script}: {first:?}");
        for (next, expected) in [("echo next", 0), ("sh -c 'exit 4'", 4)] {
            match fixture.run_for(next, Duration::from_secs(5)).await {
                Ok(run) => match run.end {
                    ShellEnd::Finished { status, .. } => {
                        assert_eq!(status, expected, "{kind:?}: {script}: {next}");
                    }
                    ShellEnd::NoMarker => {}
                    other => panic!("{kind:?}: {script}: {next}: {other:?}"),
                },
                Err(Error::ShellBusy { .. }) => {}
                Err(error) => panic!("{kind:?}: {script}: {error}"),
            }
        }
        fixture.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn zsh_finds_the_persons_own_directory() {
    let home = TempDir::new().expect("a directory");
    let dotted = home.path().join("zsh files");
    std::fs::create_dir(&dotted).expect("made");
    std::fs::write(dotted.join(".zshenv"), "export ENV_READ=1").expect("written");
    std::fs::write(dotted.join(".zshrc"), "export RC_READ=$ENV_READ").expect("written");
    let own = vec![("ZDOTDIR".into(), dotted.clone().into())];
    let fixture = ShellFixture::with_home(ShellKind::Zsh, home, own).await;
    let (_, output) = fixture.run_to_end("echo \"$RC_READ $ZDOTDIR\"").await;
    assert_eq!(output, format!("1 {}\r\n", dotted.display()));
    fixture.end().await;
}
