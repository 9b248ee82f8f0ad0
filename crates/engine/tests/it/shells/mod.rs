//! Commands typed into running shells: bash, zsh and fish, without a zygote.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "whatever else an answer is, the test fails and shows it"
)]

/// One body, a test for every shell.
macro_rules! in_every_shell {
    ($($body:ident)*) => {
        mod bash {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $body() { super::$body(ostler_model::ShellKind::Bash).await; })*
        }
        mod zsh {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $body() { super::$body(ostler_model::ShellKind::Zsh).await; })*
        }
        mod fish {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $body() { super::$body(ostler_model::ShellKind::Fish).await; })*
        }
    };
}

mod edge_cases;
mod ends;
mod fixture;
mod scripts;
mod user_rc;
