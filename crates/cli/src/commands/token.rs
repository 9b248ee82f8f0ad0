//! `ostler token`. Works on the token file itself, so it needs no daemon; a running one applies
//! the change to its next request. Only the codes of links are the daemon's.

use clap::{Args, Subcommand};
use hyper::Method;
use ostler_api::WebLinkBody;
use ostler_http::LINK_MINUTES;
use ostler_http::tokens::{AccessToken, NewToken, SCOPE_FORMS, TokenScope, token_principal};
use ostler_model::{Principal, Timestamp, duration, visible};
use serde_json::json;

use super::value_parsers;
use crate::batch::BatchExit;
use crate::client::RequestBody;
use crate::context::{CliContext, block_on};
use crate::daemon::own_principal;
use crate::error::{CommandError, CommandResult};
use crate::output::{StdoutWriter, TextTable, cells, format_age, print_json};

/// The verbs of `token`.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenVerb {
    /// Make a token and print it, this once
    #[command(visible_alias = "create")]
    New(TokenNewArgs),
    /// Make a link that opens the web interface of the running daemon and signs in, once
    Link(TokenLinkArgs),
    /// List tokens, without their secrets
    List(TokenListArgs),
    /// Take tokens away; their holders are turned away from their next request on
    Revoke(TokenRevokeArgs),
}

/// What `token new` takes.
#[derive(Debug, Args)]
#[command(override_usage = "ostler token new [OPTIONS] <NAME>")]
pub(crate) struct TokenNewArgs {
    /// What to call it
    #[arg(value_name = "NAME", required_unless_present = "name_option")]
    name: Option<String>,
    /// The same
    #[arg(
        long = "name",
        value_name = "NAME",
        conflicts_with = "name",
        hide = true
    )]
    name_option: Option<String>,
    /// Whom it speaks for, apart from all others; without it, for you
    #[arg(long, value_name = "NAME", value_parser = token_principal)]
    principal: Option<Principal>,
    /// What it allows; can be repeated. Without one it starts, sees and changes what belongs to the
    /// sessions of its holder
    #[arg(long, visible_alias = "scopes", value_name = "SCOPE", value_delimiter = ',',
          long_help = scope_help())]
    scope: Vec<TokenScope>,
    /// From when on it is refused: in 12h, 30d, or 2027-01-31T12:00:00Z; never unless given
    #[arg(long, value_name = "TIME", value_parser = value_parsers::future_time)]
    expires: Option<Timestamp>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// What `token link` takes.
#[derive(Debug, Args)]
pub(crate) struct TokenLinkArgs {
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// What `token list` takes.
#[derive(Debug, Args)]
pub(crate) struct TokenListArgs {
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// What `token revoke` takes.
#[derive(Debug, Args)]
pub(crate) struct TokenRevokeArgs {
    /// Which
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

/// The help of `--scope`.
fn scope_help() -> String {
    let forms = SCOPE_FORMS.map(|(form, description)| format!("- {form}: {description}"));
    format!(
        "What it allows; can be repeated. Without one it starts, sees and changes what belongs to \
         the sessions of its holder. Of a project that is named, nothing else is seen\n\n\
         Allowed:\n{}",
        forms.join("\n")
    )
}

/// Creates, lists or revokes tokens.
///
/// # Errors
/// When the token does not exist, or exists already, or the file cannot be used; for a link, when no
/// daemon serves HTTP.
pub(crate) fn run(context: &CliContext, verb: &TokenVerb) -> CommandResult {
    match verb {
        TokenVerb::New(args) => create(context, args)?,
        TokenVerb::Link(args) => link(context, args)?,
        TokenVerb::List(args) => list(context, args)?,
        TokenVerb::Revoke(args) => {
            let tokens = context.config.tokens();
            let mut exit = BatchExit::default();
            for name in &args.names {
                exit.record(tokens.revoke(name).map_err(CommandError::from))?;
            }
            return Ok(exit.code());
        }
    }
    Ok(0)
}

fn create(context: &CliContext, args: &TokenNewArgs) -> Result<(), CommandError> {
    context.dirs.prepare()?;
    let principal = args.principal.clone().unwrap_or_else(own_principal);
    let mut scopes = args.scope.clone();
    scopes.sort();
    scopes.dedup();
    let name = args.name.as_ref().or(args.name_option.as_ref());
    let name = name.cloned().unwrap_or_default();
    let secret = context.config.tokens().create(NewToken {
        name: name.clone(),
        principal: principal.clone(),
        scopes,
        expires: args.expires,
    })?;
    if args.json {
        let token = json!({
            "name": name,
            "principal": principal,
            "expires": args.expires,
            "token": secret.reveal(),
        });
        return print_json(&token);
    }
    let mut out = StdoutWriter::new();
    out.write_line(secret.reveal())?;
    out.flush()?;
    crate::print_note("shown this once; send it as 'Authorization: Bearer TOKEN'");
    Ok(())
}

/// Prints a link that opens the page.
fn link(context: &CliContext, args: &TokenLinkArgs) -> Result<(), CommandError> {
    let client = context.running_daemon_client();
    let request = client.call::<WebLinkBody>(Method::POST, "/api/v1/web/codes", RequestBody::None);
    let link = block_on(request)?;
    if args.json {
        return print_json(&link);
    }
    let mut out = StdoutWriter::new();
    out.write_line(&link.url)?;
    out.flush()?;
    if link.expires.is_some() {
        crate::print_note(&format!("it signs in once, within {LINK_MINUTES} minutes"));
    }
    Ok(())
}

fn list(context: &CliContext, args: &TokenListArgs) -> Result<(), CommandError> {
    let store = context.config.tokens();
    let tokens = store.list()?;
    if args.json {
        let as_json = |token: &AccessToken| as_json(token, store.last_use(token));
        return print_json(&tokens.iter().map(as_json).collect::<Vec<_>>());
    }
    let now = Timestamp::now();
    let mut table = TextTable::new(&["NAME", "PRINCIPAL", "SCOPES", "CREATED", "EXPIRES", "USED"]);
    for token in &tokens {
        table.push_row(cells![
            &token.name,
            token.principal.to_string(),
            visible(&scopes(token).join(",")).into_owned(),
            format_age(token.created, now),
            expiry(token, now),
            store
                .last_use(token)
                .map_or_else(|| "never".to_owned(), |at| format_age(at, now)),
        ]);
    }
    let mut out = StdoutWriter::new();
    table.print(&mut out)?;
    out.flush()?;
    let unknown = store.list_unknown()?;
    if !unknown.is_empty() {
        let names = unknown.join(", ");
        crate::print_note(&format!(
            "a newer version made these; they let nobody in here: {names}"
        ));
    }
    Ok(())
}

/// When it expires, for people.
fn expiry(token: &AccessToken, now: Timestamp) -> String {
    match token.expires {
        None => "never".to_owned(),
        Some(at) if token.is_expired(now) => format!("expired {}", format_age(at, now)),
        Some(at) => format!("in {}", duration::compact(duration::between(now, at))),
    }
}

fn as_json(token: &AccessToken, used: Option<Timestamp>) -> serde_json::Value {
    json!({
        "name": token.name,
        "principal": token.principal,
        "scopes": scopes(token),
        "created": token.created,
        "expires": token.expires,
        "used": used,
    })
}

fn scopes(token: &AccessToken) -> Vec<String> {
    token.scopes.iter().map(ToString::to_string).collect()
}
