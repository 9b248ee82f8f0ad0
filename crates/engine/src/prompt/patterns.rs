//! The patterns of prompts: common ones, and those of widely used programs.

use std::sync::LazyLock;

use regex::Regex;

/// Defines a compiled regular expression.
macro_rules! pattern {
    ($(#[$about:meta])* $name:ident = $text:literal) => {
        $(#[$about])*
        pub(super) static $name: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($text).expect("a constant"));
    };
}

pattern! {
    /// `[Y/n]`, `(y/N)`, `(yes/no)`, `[yN]`, `([y]/n)`, `(yes/no/[fingerprint])`, `y/n?`.
    YES_NO = r"(?x)
        [\[(<]\s* (\[?[Yy](?:[Ee][Ss])?\]?) \s*[/|,]?\s* (\[?[Nn][Oo]?\]?) (?:\s*[/|,]\s*\[\w+\])? \s*[\])>]
        | \b ([Yy](?:[Ee][Ss])?) / ([Nn][Oo]?) \b"
}
pattern! {
    /// Yes-or-no questions that do not list the answers.
    CONFIRMATION = r"(?ix)
        \b(?: do\ you\ (?:really\ )?(?:want|wish)\b | would\ you\ like\ to\b | are\ you\ sure\b
        | is\ (?:this|that|it)\ (?:ok|okay|correct|right)\b | proceed\b | continue\b
        | overwrite\b | replace\ it\b | really\b )
        [^?？]* [?？] \s* (?:[\[(]\s*(\w+)\s*[\])])? \s* [:：]? \s* $
        | \bis\ this\ ok(?:ay)?\ \[?\(?(\w+)\)?\]?\s*:?\s*$
        | (?:是否|确定|确认|继续)[^?？]*[?？:：]\s*$"
}
pattern! {
    /// More than two alternatives: not a confirmation.
    EITHER_OR = r"(?i)\bor\b|还是"
}
pattern! {
    /// Prompts for values that must not be displayed.
    SECRET = r"(?ix)
        (?: \b(?: pass(?:word|phrase|wd|code) | pin(?:\ code)? | otp | one[-\ ]time\ (?:code|password)
        | verification\ code | (?:api|access|secret)[-_\ ]?(?:key|token) | token | secret )\b
        | 密码 | 口令 )
        [^?？]* (?: [:：>] \s* (?: [\[(] (?:input\ is\ )?hidden [\])] )?
        | [\[(] (?:input\ is\ )?hidden [\])] ) \s* $"
}
pattern! {
    /// A word for a secret and nothing else, as some programs prompt.
    BARE_SECRET = r"(?i)^\W*(?:enter |your |new |current )*(?:password|passphrase|pin)\W*$"
}
pattern! {
    /// Prompts that accept any key.
    ANY_KEY = r"(?i)\b(?:press|hit)\b.*\b(?:key|enter|return)\b|^--\s?more\s?--|按.*键"
}
pattern! {
    /// Prompts for a path.
    PATH = r"(?ix)
        (?: \b(?: file | file\ ?name | path | pathname | directory | folder | dir )\b
        | 文件 | 路径 | 目录 ) [^?？:：]*? (?:[\[(][^\])]*[\])])? \s* [:：?？>] \s* $"
}
pattern! {
    /// Ends of prompts.
    ENDING = r"(?:[:?>$%#»❯›：？]|>>>|\.\.\.)\s*$"
}
pattern! {
    /// Ends of the prompts of shells and interpreters, which wait for a command.
    COMMAND_ENDING = r"(?:[>$%#»❯›]|\.\.\.)\s*$"
}
pattern! {
    /// Prompts of interpreters, debuggers and database shells that have another ending, or text in
    /// brackets that is not a default.
    INTERPRETER = r#"(?x)
        ^\s* (?:
          # gdb, lldb, pdb, ruby's debuggers, delve, rr, jdb, cmd.Cmd, maxima
          \( (?: [\w+-]*[dD][bB]\+* (?::\d+)? | rdbg(?:@[^()]+)? | byebug | dlv | rr | [Cc]md | %i\d+ ) \)
          # ipython, its continuation, sage
        | In\ \[\d+\]: | \.\.\.: | sage:
          # irb, with what is open: a block, a string, a pattern
        | irb\([^()]*\):\d+(?::\d+)?[>*"'`/\]?~-]
          # pry
        | \[\d+\]\ pry\([^()]*\)[>*"']
          # MariaDB and MySQL with the database in use
        | (?:MariaDB|MySQL|mysql)\ \[[^\]]*\]\s*>
          # redis-cli, on another database than the first
        | [\w.:-]+:\d+\[\d+\](?:\(TX\))?>
          # guile, clisp and radare2, with the level or the address
        | scheme@\([^()]*\)(?:\ \[\d+\])?> | \[(?:\d+|0x[0-9a-f]+)\]>
          # SBCL and its debugger, the continuation of R
        | \* | \d+\] | \+
        ) \s* $"#
}
pattern! {
    /// Beginnings of prompts.
    BEGINNING = r"(?i)^\W*(?:please\s+)?(?:enter|input|type|choose|select|pick|specify|provide|请输入|请选择)\b"
}
pattern! {
    /// Words in the prompt of a menu.
    CHOICE = r"(?i)\b(?:choose|choice|select|selection|option|pick|number|which)\b|[\[(]\d+\s*-\s*\d+[\])]|选择"
}
pattern! {
    /// `[bob]:`, `(default: bob)`, `[default=bob]`, `: (bob)`, `(/home/ann/.ssh/id_rsa):`.
    DEFAULT = r"(?ix)
        (?: [\[(] \s* default (?:\ is|\ value)? \s* [:=]? \s* ([^\])]+?) \s* [\])]
        | \[ ([^\]\[]+) \]
        | [:：] \s* \( ([^()]+) \)
        | \( ([^()\s]*/[^()\s]*) \) )
        \s* [:?>：？]? \s* $"
}
pattern! {
    /// Text in brackets that is not a default.
    REMARK = r"(?i)^(?:optional|required|hidden|empty|none|\W*|.*(?:/|,|\|).*[?]|\d+\s*-\s*\d+)$"
}
