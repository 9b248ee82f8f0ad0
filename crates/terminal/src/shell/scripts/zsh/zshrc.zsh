# Makes an interactive zsh (5.3 or later) tell where prompts and commands begin and end, by
# OSC 133 and OSC 7. Read for ~/.zshrc, which it loads first, as usual.
#
#   D;status, OSC 7    first thing after a command, before the person's own precmd
#   D;status, A ... B  within PS1: the status once more, for when the hooks were lost
#   A;k=s ... B        within PS2
#   C                  last thing before a command runs
#
# The prompts are the person's own while a command runs: they may be exported.
# Hooks write to the terminal itself, and what xtrace would tell of them to nobody.

# Before the person's file: it may say that all variables are exported.
typeset -g __ostler_told=0 __ostler_ran=first __ostler_sp=0
typeset -g __ostler_cwd= __ostler_cwd_url=
typeset -g __ostler_ps1=$'%{\e]133;D;%?;ostler='"$__ostler_nonce"$'\a\e]133;A;ostler='"$__ostler_nonce"$'\a%}'
typeset -g __ostler_ps2=$'%{\e]133;A;k=s;ostler='"$__ostler_nonce"$'\a%}'
typeset -g __ostler_close=$'%{\e]133;B;ostler='"$__ostler_nonce"$'\a%}'

if [[ -n "${__ostler_zdotdir+x}" ]]; then
    # The system's files may have taken our directory for the person's.
    [[ "${HISTFILE-}" == "$ZDOTDIR/"* ]] && HISTFILE="$__ostler_zdotdir/${HISTFILE##*/}"
    ZDOTDIR="$__ostler_zdotdir"
    [[ "$__ostler_exported" == 1 ]] && export ZDOTDIR
else
    [[ "${HISTFILE-}" == "$ZDOTDIR/"* ]] && HISTFILE="$HOME/${HISTFILE##*/}"
    unset ZDOTDIR
fi
unset __ostler_zdotdir __ostler_exported
typeset -g __ostler_literal="${OSTLER_SHELL_LITERAL-}"
unset OSTLER_SHELL_LITERAL
if [[ -r "${ZDOTDIR-$HOME}/.zshrc" ]]; then
    source "${ZDOTDIR-$HOME}/.zshrc"
fi
[[ -n "$__ostler_literal" ]] && setopt no_bang_hist
unset __ostler_literal

# The working directory, percent-encoded into __ostler_cwd_url.
__ostler_url() {
    [[ "$PWD" == "$__ostler_cwd" ]] && return 0
    builtin setopt no_multibyte
    builtin local char code LC_ALL=C
    __ostler_cwd_url=
    for char in "${(@s::)PWD}"; do
        case "$char" in
            ([a-zA-Z0-9/._~-]) ;;
            (*)
                code=$(( #char & 255 ))
                builtin printf -v char '%%%02X' "$code"
                ;;
        esac
        __ostler_cwd_url+="$char"
    done
    __ostler_cwd="$PWD"
}

# Tells that a command ended with status $1, and where the shell is now; before the first
# command there is no status. What zsh does for output without a newline at its end
# (PROMPT_SP) comes after that, so that it counts as no output.
__ostler_tell() {
    builtin emulate -L zsh -o no_err_exit -o no_err_return -o no_aliases
    builtin local code=";$1" mark="${PROMPT_EOL_MARK-%B%S%#%s%b}" plain
    [[ "$__ostler_ran" == first ]] && code=
    __ostler_url
    builtin printf '\e]133;D%s;ostler=%s\a\e]7;file://%s%s\a' \
        "$code" "$__ostler_nonce" "${HOST-}" "$__ostler_cwd_url" >/dev/tty
    if [[ "$__ostler_sp" == 1 ]]; then
        plain="${(%)${mark//\%[BbSsUuEkf]/}}"
        builtin print -Pn -- "$mark" >/dev/tty
        builtin printf '%*s\r%*s\r' $((COLUMNS - ${#plain})) '' ${#plain} '' >/dev/tty
    fi
    __ostler_told=1
    __ostler_ran=0
    return 0
}

# First of precmd_functions, and before the person's own precmd.
__ostler_first() {
    {
        builtin local code=$? keep=1
        [[ -o err_exit || -o err_return ]] && keep=0
        [[ "$__ostler_told" == 1 ]] || __ostler_tell "$code"
        __ostler_hook
        if [[ "$keep" == 1 ]]; then
            builtin return "$code"
        fi
        builtin return 0
    } 2>/dev/null
}

# Last of precmd_functions: the person's own may have set new prompts.
__ostler_last() {
    {
        builtin local code=$?
        [[ "$__ostler_told" == 1 ]] || __ostler_tell "$code"
        __ostler_told=0
        __ostler_wrap
        __ostler_options
        builtin return 0
    } 2>/dev/null
}

# PROMPT_SP writes before any hook: it is done by __ostler_tell instead.
__ostler_options() {
    if [[ -o prompt_sp ]]; then
        __ostler_sp=0
        [[ -o prompt_cr ]] && __ostler_sp=1
        builtin unsetopt prompt_sp
    fi
    builtin return 0
}

__ostler_unwrap() {
    builtin emulate -L zsh -o no_err_exit -o no_err_return -o no_aliases
    PS1="${${PS1-}//$__ostler_ps1/}"
    PS1="${PS1//$__ostler_close/}"
    PS2="${${PS2-}//$__ostler_ps2/}"
    PS2="${PS2//$__ostler_close/}"
}

__ostler_wrap() {
    builtin emulate -L zsh -o no_err_exit -o no_err_return -o no_aliases
    __ostler_unwrap
    PS1="$__ostler_ps1$PS1$__ostler_close"
    PS2="$__ostler_ps2$PS2$__ostler_close"
    if (( ! $+functions[precmd] )); then
        functions[precmd]='{ __ostler_first } 2>/dev/null'
    elif [[ "$functions[precmd]" != *__ostler_* ]]; then
        functions[__ostler_own_precmd]="$functions[precmd]"
        functions[precmd]='{ __ostler_first } 2>/dev/null; __ostler_own_precmd "$@"'
    fi
    return 0
}

# Last of preexec_functions.
__ostler_start() {
    {
        builtin emulate -L zsh -o no_err_exit -o no_err_return -o no_aliases
        __ostler_unwrap
        __ostler_hook
        __ostler_told=0
        __ostler_ran=1
        builtin printf '\e]133;C;ostler=%s\a' "$__ostler_nonce" >/dev/tty
        builtin return 0
    } 2>/dev/null
}

# Puts the hooks where they belong, also where the person's own replaced them.
__ostler_hook() {
    builtin emulate -L zsh -o no_err_exit -o no_err_return -o no_aliases
    [[ "${precmd_functions[1]-}" == __ostler_first &&
        "${precmd_functions[-1]-}" == __ostler_last &&
        "${preexec_functions[-1]-}" == __ostler_start ]] && return 0
    builtin typeset -ga precmd_functions preexec_functions
    precmd_functions=(
        __ostler_first
        ${precmd_functions:#__ostler_(first|last)}
        __ostler_last
    )
    preexec_functions=(${preexec_functions:#__ostler_start} __ostler_start)
    return 0
}

__ostler_hook
{ __ostler_options } 2>/dev/null
